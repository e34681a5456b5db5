//! From a fresh process to the confined plugin.

use std::convert::Infallible;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};

use crate::contract::{Measured, PATH, Said};
use crate::{Job, NOT_RUN, files, limits, measure, syscalls};

/// Confines this process and replaces it by the plugin. Returns only when that fails; the daemon was told why.
pub fn become_plugin(mut job: Job, inside: bool) -> ExitCode {
    let why = match run(&mut job, inside) {
        Ok(never) => match never {},
        Err(why) => why,
    };
    job.say(&Said::Failed(why));
    ExitCode::from(NOT_RUN)
}

fn run(job: &mut Job, inside: bool) -> Result<Infallible, String> {
    std::env::set_current_dir(&job.task.package)
        .map_err(|error| format!("{} cannot be entered: {error}", job.task.package.display()))?;
    // Descriptors that are inherited by mistake go at exec; the standard ones are the daemon's pipes.
    close_on_exec();
    limits::give_up_rights();
    let own_processes = inside && limits::counts_processes_by_namespace();
    limits::set(own_processes).map_err(|error| format!("its limits cannot be set: {error}"))?;
    // The order matters: bubblewrap has mounted by now, which Landlock forbids, and the filter of system calls
    // forbids nothing that Landlock needs but a later change of mind.
    let landlock = files::confine(&job.task)?;
    let seccomp = syscalls::confine(job.task.network)?;
    let measured =
        Measured { landlock, seccomp, gaps: measure::gaps(&job.task, inside, own_processes, landlock > 0) };
    let enforced = inside && measured.gaps.iter().all(|gap| gap.is_appetite());
    job.say(&Said::Holds(measured));
    if job.task.require_sandbox && !enforced {
        return Err("require_sandbox is set, and it cannot be confined".to_owned());
    }
    exec(job)
}

fn exec(job: &Job) -> Result<Infallible, String> {
    let variable = |name: &str, value: &[u8]| {
        CString::new([name.as_bytes(), b"=", value].concat()).map_err(|error| error.to_string())
    };
    let environment = [
        variable("PATH", PATH.as_bytes())?,
        variable("LANG", b"C.UTF-8")?,
        variable("TMPDIR", job.task.tmp.as_os_str().as_bytes())?,
        variable("SEGUE_PLUGIN_PROTOCOL", b"1")?,
        variable("PYTHONDONTWRITEBYTECODE", b"1")?,
    ];
    ordinary_signals();
    let program = job.command.first().ok_or("no program")?;
    let error = match nix::unistd::execve(program, &job.command, &environment) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    let name = program.to_string_lossy();
    Err(match error {
        Errno::ENOENT => format!(
            "{name} cannot be run: the interpreter that its first line names, or its loader, is not installed below /usr"
        ),
        Errno::ENOEXEC => format!(
            "{name} cannot be run: it is neither a program for this machine nor does it begin with #! and an interpreter"
        ),
        error => format!("{name} cannot be run: {}", error.desc()),
    })
}

/// Rust ignores SIGPIPE, and the keeper blocks what it waits for; a plugin begins with neither.
#[allow(unsafe_code)]
fn ordinary_signals() {
    // SAFETY: the default action runs no code of this program.
    let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) };
    let _ = SigSet::empty().thread_set_mask();
}

#[allow(unsafe_code)]
fn close_on_exec() {
    // SAFETY: takes integers only, and closes nothing now. On kernels without it, the flag was set when each
    // descriptor was opened.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}
