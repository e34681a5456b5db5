//! Confines one plugin, finds out by trying what holds, tells the daemon, and becomes the plugin.
//!
//! A program of its own, because neither Landlock's nor seccomp's preparation may run between fork and exec of a
//! daemon with threads: they allocate. It has one thread and links neither the sound library nor a runtime.

mod confine;
#[path = "../../plugin/process/contract.rs"]
mod contract;
mod files;
mod keeper;
mod limits;
mod measure;
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")),
    path = "no_syscalls.rs"
)]
mod syscalls;

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

use contract::{INSIDE, KEEPER, Said, Task};

/// What is said to those who start it by hand.
const USAGE: &str = "segue-plugin-runner is started by segued, which confines plugins with it.";
/// The exit status when the plugin did not run.
const NOT_RUN: u8 = 125;

/// What was asked for on the command line.
struct Job {
    task: Task,
    /// The program, then its arguments.
    command: Vec<CString>,
    /// Where to tell; closed by exec.
    status: File,
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let mode = words.next();
    let job = match read(words) {
        Ok(job) => job,
        Err(error) => {
            eprintln!("{USAGE} ({error})");
            return ExitCode::from(NOT_RUN);
        }
    };
    match mode.as_deref().and_then(|mode| mode.to_str()) {
        Some(INSIDE) => confine::become_plugin(job, true),
        Some(KEEPER) => keeper::keep(job),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(NOT_RUN)
        }
    }
}

#[allow(unsafe_code)]
fn read(mut words: impl Iterator<Item = OsString>) -> Result<Job, String> {
    let mut word = || words.next().ok_or("too few arguments");
    let descriptor = word()?.to_str().and_then(|word| word.parse().ok()).filter(|fd| *fd > 2);
    let descriptor = descriptor.ok_or("no descriptor")?;
    nix::fcntl::fcntl(
        // SAFETY: only borrowed for this call, which fails when it is not open.
        unsafe { std::os::fd::BorrowedFd::borrow_raw(descriptor) },
        nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC),
    )
    .map_err(|error| format!("descriptor {descriptor}: {error}"))?;
    // SAFETY: it is open, as fcntl has shown, and whoever started this program gave it to us alone.
    let status = unsafe { File::from_raw_fd(descriptor) };
    let task = serde_json::from_slice(word()?.as_encoded_bytes()).map_err(|error| error.to_string())?;
    if word()? != "--" {
        return Err("no --".to_owned());
    }
    let command: Result<Vec<CString>, _> = words.map(|word| CString::new(word.into_vec())).collect();
    let command = command.map_err(|error| error.to_string())?;
    if command.is_empty() {
        return Err("no program".to_owned());
    }
    Ok(Job { task, command, status })
}

impl Job {
    /// Tells the daemon. When it is gone, this process is about to be ended, too.
    fn say(&mut self, said: &Said) {
        if let Ok(mut line) = serde_json::to_vec(said) {
            line.push(b'\n');
            let _ = self.status.write_all(&line);
        }
    }
}
