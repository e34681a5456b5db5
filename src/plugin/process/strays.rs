//! Ends what an earlier run of the daemon left behind.
//!
//! A plugin's processes end with the daemon. Remainders are possible after its SIGKILL: bubblewrap's own child, if
//! bubblewrap was ended between that child's creation and the moment at which the child asks to end with it; a
//! keeper that is not done yet; and, where a keeper was ended as well, a process that left its session. They carry
//! the path of a verified copy in their arguments, and nobody but the daemon that owns this state folder starts
//! those.

use std::path::Path;

use nix::sys::signal::Signal;
use nix::unistd::Uid;

use super::RUNNER;
use super::pidfd::{self, PidFd};
use super::spawn::END;

/// Ends every process of this user that was started from a copy below `packages` and that lost its parent.
/// To be called before the first plugin is started.
pub(in crate::plugin) fn end(packages: &Path) {
    let Ok(processes) = std::fs::read_dir("/proc") else { return };
    for process in processes.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // The handle first: whatever is read afterwards is about this very process, or about none.
        let Ok(handle) = PidFd::open_raw(pid) else { continue };
        if let Some(signal) = what_ends(&process.path(), packages) {
            tracing::warn!(pid, "a plugin's process outlived an earlier segued; it is ended");
            pidfd::send(&handle, signal);
        }
    }
}

/// The signal for a stray. A keeper is asked to end what it keeps, and ends after that.
fn what_ends(process: &Path, packages: &Path) -> Option<Signal> {
    let arguments = std::fs::read(process.join("cmdline")).ok()?;
    let mut arguments =
        arguments.split(|byte| *byte == 0).map(|word| Path::new(std::str::from_utf8(word).unwrap_or("")));
    let program = arguments.clone().next()?;
    let (is_bubblewrap, is_keeper) = (program.ends_with("bwrap"), program.ends_with(RUNNER));
    if !arguments.any(|word| word.starts_with(packages)) {
        return None;
    }
    let status = std::fs::read_to_string(process.join("status")).ok()?;
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    let is_orphan = field("PPid:") == Some("1");
    let is_ours = field("Uid:") == Some(Uid::current().to_string().as_str());
    match is_ours && (is_orphan || is_bubblewrap || is_keeper) {
        true if is_keeper => Some(END),
        true => Some(Signal::SIGKILL),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command};

    use super::*;

    /// A shell that waits, under this name and with this path among its arguments.
    fn waiting(name: &str, path: &Path) -> Child {
        let words = ["-c", "read line", "sh"];
        let mut command = Command::new("/bin/sh");
        command.arg0(name).args(words).arg(path).stdin(std::process::Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn what_was_started_from_a_copy_and_has_no_owner_is_ended() {
        let (packages, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let copy = packages.path().join("0123/demo/demo");
        let mut stray = waiting("/usr/bin/bwrap", &copy);
        let mut keeper = waiting("/usr/lib/segue/segue-plugin-runner", &copy);
        let mut elsewhere = waiting("/usr/bin/bwrap", &other.path().join("demo"));
        let mut reader = waiting("less", &copy);
        end(packages.path());
        assert_eq!(stray.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert_eq!(keeper.wait().unwrap().signal(), Some(libc::SIGHUP));
        for spared in [&mut elsewhere, &mut reader] {
            assert!(spared.try_wait().unwrap().is_none());
            drop(spared.stdin.take());
            assert_eq!(spared.wait().unwrap().signal(), None);
        }
    }
}
