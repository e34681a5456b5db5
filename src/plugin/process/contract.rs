//! What the daemon and `segue-plugin-runner` tell each other. Both programs compile this file.
//!
//! The runner is started as `segue-plugin-runner MODE DESCRIPTOR TASK -- PROGRAM ARGUMENT…`, with the [`Task`] as
//! JSON. On the descriptor it says one [`Said::Holds`] and becomes the plugin, which closes the descriptor; or it
//! says [`Said::Failed`] and ends. Each is one line of JSON.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Confine within what bubblewrap prepared.
pub const INSIDE: &str = "inside";
/// Stay as the plugin's keeper, and confine a child as far as that goes without namespaces.
pub const KEEPER: &str = "keeper";
/// The plugin's `PATH`.
pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How to confine one plugin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Run nothing that is not enforced.
    pub require_sandbox: bool,
    /// Whether internet sockets are granted.
    pub network: bool,
    /// The verified copy; becomes the working folder.
    pub package: PathBuf,
    /// The plugin's `TMPDIR`.
    pub tmp: PathBuf,
    /// A folder of the daemon's that the plugin must not write to.
    pub foreign: PathBuf,
    /// Its device and inode: inside of a namespace another folder may have its path.
    pub foreign_identity: (u64, u64),
    /// Read and run what is below.
    pub run: Vec<PathBuf>,
    /// Read what is below.
    pub read: Vec<PathBuf>,
    /// Read what is below, if it is still the folder that was looked at.
    pub granted: Vec<GrantedFolder>,
    /// Read, write and run what is below.
    pub write: Vec<PathBuf>,
}

/// A folder that a person granted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrantedFolder {
    /// Where the runner finds it.
    pub path: PathBuf,
    /// Its device and inode.
    pub identity: (u64, u64),
}

/// One line from the runner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// The plugin is confined, and this is what holds. It runs next, unless the task forbids that.
    Holds(Measured),
    /// The plugin does not run, and why.
    Failed(String),
}

/// What was found by trying, after everything was set up and before the plugin ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// The version of Landlock's rules in effect; 0 without.
    pub landlock: i32,
    /// Whether system calls are filtered.
    pub seccomp: bool,
    /// What worked though it should not have, in the order of [`Gap`].
    pub gaps: Vec<Gap>,
}

/// Something that a plugin is asked not to do and nothing keeps it from doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// Reading files that were not granted.
    Files,
    /// Writing to files that are not its own.
    Changes,
    /// Seeing names, sizes and times of files.
    Names,
    /// Changing modes and times of the daemon's files.
    Modes,
    /// Internet sockets without the scope.
    Internet,
    /// UNIX sockets, and with them the bus.
    Unix,
    /// Netlink sockets.
    Netlink,
    /// Packet sockets.
    Packet,
    /// Sockets between virtual machines.
    Vsock,
    /// io_uring, which does most things past the filter of system calls.
    IoUring,
    /// Memory of the daemon's processes.
    Memory,
    /// Signals to the daemon's processes.
    Signals,
    /// Namespaces of its own.
    Namespaces,
    /// Calls that are for administrators and debuggers.
    Kernel,
    /// Real-time priority.
    Realtime,
    /// A process that takes more memory than is allowed.
    Hunger,
    /// More open files than are allowed.
    Descriptors,
    /// More processes than are allowed.
    Processes,
}

impl Gap {
    /// Whether it takes more than its share of the machine, rather than reaching what is not its own.
    pub fn is_appetite(self) -> bool {
        matches!(self, Gap::Hunger | Gap::Descriptors | Gap::Processes)
    }
}
