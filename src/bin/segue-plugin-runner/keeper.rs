//! Where no PID namespace holds a plugin's processes together, one keeper for each plugin does.
//!
//! It is a subreaper: whatever loses its parent becomes the keeper's child, also after `setsid` and a double
//! fork. The kernel tells it with [`END`] when the daemon's spawner thread is gone, whatever the reason. It holds
//! none of the plugin's pipes, so that their ends mean what they mean without it.

use std::fs::OpenOptions;
use std::process::ExitCode;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::prctl::{set_child_subreaper, set_pdeathsig};
use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, getpid, getppid, setsid};

use crate::contract::Said;
use crate::{Job, NOT_RUN, confine, files};

/// Asks for the end of the plugin and all its descendants. Also sent by the kernel at the daemon's end.
const END: Signal = Signal::SIGHUP;
/// Passed on to the plugin.
const TERMINATE: Signal = Signal::SIGTERM;
/// Between two looks at whether all that was killed is gone.
const PAUSE: Duration = Duration::from_millis(2);

/// Keeps the plugin until it ends or must end, and ends as it did.
pub fn keep(mut job: Job) -> ExitCode {
    let signals = SigSet::from_iter([END, TERMINATE, Signal::SIGCHLD]);
    let (plugin, shielded) = match begin(&signals) {
        Ok(Begun::Keeper(plugin, shielded)) => (plugin, shielded),
        Ok(Begun::Plugin) => return confine::become_plugin(job, false),
        Err(error) => {
            job.say(&Said::Failed(format!("its keeper cannot be set up: {error}")));
            return ExitCode::from(NOT_RUN);
        }
    };
    drop(job);
    let_go_of_pipes();
    let status = watch(&signals, plugin);
    let status = status.or(end_all(plugin, shielded));
    end_like(status)
}

enum Begun {
    Keeper(Pid, bool),
    Plugin,
}

#[allow(unsafe_code)]
fn begin(signals: &SigSet) -> Result<Begun, Errno> {
    signals.thread_block()?;
    set_child_subreaper(true)?;
    // Both are asked: that the rule holds, and that it is seen to. Only then may `kill(-1)` be used.
    let shielded = files::shield() && kill(getppid(), None) == Err(Errno::EPERM);
    let keeper = getpid();
    // SAFETY: this process has one thread, so that the child may do what it likes.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(Begun::Keeper(child, shielded)),
        ForkResult::Child => {
            set_pdeathsig(Signal::SIGKILL)?;
            if getppid() != keeper {
                return Err(Errno::ESRCH);
            }
            // Apart from the keeper, which a signal to the group would end as well.
            setsid()?;
            Ok(Begun::Plugin)
        }
    }
}

fn let_go_of_pipes() {
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null");
    let Ok(nothing) = nothing else { return };
    let _ = dup2_stdin(&nothing);
    let _ = dup2_stdout(&nothing);
    let _ = dup2_stderr(&nothing);
}

/// Returns how the plugin ended; `None` when it is to be ended.
fn watch(signals: &SigSet, plugin: Pid) -> Option<WaitStatus> {
    loop {
        match signals.wait() {
            Ok(TERMINATE) => {
                let _ = kill(plugin, TERMINATE);
            }
            Ok(Signal::SIGCHLD) => {
                if let Reaped { plugin: Some(status), .. } = reap(plugin) {
                    return Some(status);
                }
            }
            Ok(_) | Err(_) => return None,
        }
    }
}

struct Reaped {
    plugin: Option<WaitStatus>,
    /// Whether there are children left.
    more: bool,
}

/// Takes note of all children that have ended.
fn reap(plugin: Pid) -> Reaped {
    let mut found = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return Reaped { plugin: found, more: true },
            Ok(status) if status.pid() == Some(plugin) => found = Some(status),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Reaped { plugin: found, more: false },
        }
    }
}

/// Ends every descendant and waits until all are gone. Who loses its parent in that becomes a child of ours.
fn end_all(plugin: Pid, shielded: bool) -> Option<WaitStatus> {
    let mut found = None;
    loop {
        if shielded {
            // In one step, so that nobody forks away from it. It reaches our own descendants only.
            let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
        } else {
            end_below(getpid(), 0);
        }
        let Reaped { plugin: status, more } = reap(plugin);
        found = found.or(status);
        if !more {
            return found;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Of a long chain the rest is found in the next round, when its end hangs on us.
const MAX_DEPTH: usize = 16;

fn end_below(parent: Pid, depth: usize) {
    let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    for child in list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).map(Pid::from_raw) {
        if depth < MAX_DEPTH {
            end_below(child, depth + 1);
        }
        let _ = kill(child, Signal::SIGKILL);
    }
}

/// Passes on how the plugin ended.
#[allow(unsafe_code)]
fn end_like(status: Option<WaitStatus>) -> ExitCode {
    match status {
        Some(WaitStatus::Exited(_, code)) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(NOT_RUN)),
        Some(WaitStatus::Signaled(_, signal, _)) => {
            let _ = SigSet::empty().thread_set_mask();
            // SAFETY: the default action runs no code of this program.
            let _ = unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl) };
            let _ = raise(signal);
            ExitCode::from(NOT_RUN)
        }
        _ => ExitCode::from(NOT_RUN),
    }
}
