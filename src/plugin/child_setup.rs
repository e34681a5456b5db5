//! What a new process does between fork and exec: only system calls, nothing that allocates or locks.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// When memory runs out a plugin dies, not the music.
const OOM_SCORE: &[u8] = b"800";
/// Open files.
const MAX_OPEN_FILES: libc::rlim_t = 256;

/// Has the child die with the thread that started it, keep no descriptor but 0, 1, 2 and `keep`, and give
/// up real-time rights, locked memory, core dumps and new privileges.
#[allow(unsafe_code)]
pub(super) fn in_child(command: &mut Command, keep: Option<i32>) {
    let parent = std::process::id().cast_signed();
    // SAFETY: the closure runs in the forked child of a threaded process. It makes system calls only:
    // no allocation, no lock, no destructor; errors are made from errno.
    unsafe {
        command.pre_exec(move || set_up(parent, keep));
    }
}

#[allow(unsafe_code)]
fn set_up(parent: libc::pid_t, keep: Option<i32>) -> io::Result<()> {
    // SAFETY: plain system calls on integers and on local values that outlive them.
    unsafe {
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        if libc::getppid() != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        // Marked rather than closed: the standard library's own pipe tells it that exec worked. On kernels
        // without close_range the flag was set when each descriptor was opened.
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
        if let Some(keep) = keep {
            check(libc::fcntl(keep, libc::F_SETFD, 0))?;
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
        for (what, most) in [
            (libc::RLIMIT_CORE, 0),
            (libc::RLIMIT_RTPRIO, 0),
            (libc::RLIMIT_MEMLOCK, 0),
            (libc::RLIMIT_NOFILE, MAX_OPEN_FILES),
        ] {
            let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
            libc::setrlimit(what, &raw const limit);
        }
    }
    Ok(())
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
