//! What keeps a plugin in bounds, as it was measured, in values and in words.

use std::fmt;

use super::contract::{Gap, Measured};

/// What a plugin is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// bubblewrap: own user, process and mount namespaces, and no network unless granted.
    Bubblewrap,
    /// A keeper process, and what the kernel can do without namespaces.
    Keeper,
    /// The program that confines plugins is missing: none is started.
    Nothing,
}

/// What keeps a plugin in bounds on this machine: measured where it is to run, before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    pub(super) means: Means,
    pub(super) measured: Measured,
    /// Why it is not bubblewrap; empty where it is.
    pub(super) why: String,
}

impl Isolation {
    /// What it is started with.
    pub fn means(&self) -> Means {
        self.means
    }

    /// What nothing keeps it from doing, in the order of [`Gap`].
    pub fn gaps(&self) -> &[Gap] {
        &self.measured.gaps
    }

    /// Whether it reaches nothing but its own and what was granted. What it may take too much of is listed among
    /// the gaps, and does not count here.
    pub fn is_enforced(&self) -> bool {
        self.means == Means::Bubblewrap && self.gaps().iter().all(|gap| gap.is_appetite())
    }

    /// `enforced`, `advisory`, or `missing` where plugins are not started at all.
    pub fn state(&self) -> &'static str {
        match self.means {
            Means::Nothing => "missing",
            _ if self.is_enforced() => "enforced",
            _ => "advisory",
        }
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.means == Means::Nothing {
            return write!(f, "missing ({})", self.why);
        }
        let by = if self.means == Means::Bubblewrap { "bubblewrap" } else { "keeper" };
        write!(f, "{} ({by}", self.state())?;
        match self.measured.landlock {
            0 => f.write_str(", no Landlock in this kernel")?,
            version => write!(f, ", Landlock {version}")?,
        }
        f.write_str(if self.measured.seccomp { ", seccomp" } else { ", no seccomp here" })?;
        if !self.why.is_empty() {
            write!(f, "; {}", self.why)?;
        }
        for (n, gap) in self.gaps().iter().enumerate() {
            write!(f, "{}{}", if n == 0 { ": " } else { "; " }, gap.text())?;
        }
        f.write_str(")")
    }
}

impl Gap {
    /// What the plugin can do, as a part of a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Gap::Files => "it can read files that you did not grant",
            Gap::Changes => "it can write to files that are not its own",
            Gap::Names => "it can see names, sizes and times of other files, not what is in them",
            Gap::Modes => "it can change modes and times of the player's files, not what is in them",
            Gap::Internet => "it can use the internet without the scope “network”",
            Gap::Unix => "it can talk to services of this machine through UNIX sockets, such as the bus",
            Gap::Netlink => "it can open netlink sockets",
            Gap::Packet => "it can open packet sockets",
            Gap::Vsock => "it can open vsock sockets",
            Gap::IoUring => "it can use io_uring",
            Gap::Memory => "it can read the memory of the player's processes",
            Gap::Signals => "it can send signals to the player's processes, and end what keeps it",
            Gap::Namespaces => "it can make namespaces of its own",
            Gap::Kernel => "it can make system calls that are for administrators and debuggers",
            Gap::Realtime => "it can take real-time priority",
            Gap::Hunger => "nothing limits its memory",
            Gap::Descriptors => "nothing limits its open files",
            Gap::Processes => "nothing limits how many processes it starts",
        }
    }
}
