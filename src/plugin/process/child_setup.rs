//! What a new process does between fork and exec: only system calls, nothing that allocates or locks. Limits and
//! rules follow after exec, in the runner.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::Signal;

/// When memory runs out a plugin dies, not the music.
const OOM_SCORE: &[u8] = b"800";

/// Has the child get `death` when the thread that started it ends, live in a session of its own, which has no
/// terminal, keep no descriptor but 0, 1, 2 and `keep`, and give up real-time rights and new privileges.
#[allow(unsafe_code)]
pub(super) fn in_child(command: &mut Command, death: Signal, keep: [Option<i32>; 2]) {
    let parent = std::process::id().cast_signed();
    // SAFETY: the closure runs in the forked child of a threaded process. It makes system calls only:
    // no allocation, no lock, no destructor; errors are made from errno.
    unsafe {
        command.pre_exec(move || set_up(parent, death, keep));
    }
}

#[allow(unsafe_code)]
fn set_up(parent: libc::pid_t, death: Signal, keep: [Option<i32>; 2]) -> io::Result<()> {
    // SAFETY: plain system calls on integers and on local values that outlive them.
    unsafe {
        check(libc::prctl(libc::PR_SET_PDEATHSIG, death as libc::c_int))?;
        if libc::getppid() != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        check(libc::setsid())?;
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        // Marked rather than closed: the standard library's own pipe tells it that exec worked. On kernels
        // without close_range the flag was set when each descriptor was opened.
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
        for fd in keep.into_iter().flatten() {
            check(libc::fcntl(fd, libc::F_SETFD, 0))?;
        }
        // Best effort: what is missing here makes a plugin more polite, not more powerful.
        let file = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file >= 0 {
            libc::write(file, OOM_SCORE.as_ptr().cast(), OOM_SCORE.len());
            libc::close(file);
        }
        let ordinary = libc::sched_param { sched_priority: 0 };
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const ordinary);
        libc::setpriority(libc::PRIO_PROCESS, 0, 0);
    }
    Ok(())
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
