//! How urgently the kernel runs a thread.

use std::io;
use std::time::Duration;

use nix::time::ClockId;
use nix::unistd::Pid;

/// Puts the calling thread into SCHED_FIFO at `priority` (1 to 99, 10 is above everything ordinary and below the
/// kernel's interrupt threads). Programs that it starts are ordinary again.
///
/// # Errors
/// EPERM where RLIMIT_RTPRIO does not allow it (`LimitRTPRIO=` in the unit).
pub fn become_realtime(priority: i32) -> io::Result<()> {
    set(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
}

/// Puts the calling thread back among the ordinary ones.
///
/// # Errors
/// Whatever the kernel says; it always allows this.
pub fn become_ordinary() -> io::Result<()> {
    set(0, libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0)
}

/// Puts the calling thread below everything else: it runs when nothing else wants to.
///
/// # Errors
/// Whatever the kernel says; it always allows this.
pub fn become_idle() -> io::Result<()> {
    set(0, libc::SCHED_IDLE | libc::SCHED_RESET_ON_FORK, 0)
}

/// Puts another thread of this program below everything else.
///
/// # Errors
/// ESRCH where there is no such thread any more.
pub fn make_idle(thread: Pid) -> io::Result<()> {
    set(thread.as_raw(), libc::SCHED_IDLE | libc::SCHED_RESET_ON_FORK, 0)
}

/// How long a thread of this program has run; `None` where there is no such thread any more.
pub fn cpu_time(thread: Pid) -> Option<Duration> {
    // The kernel's number for a thread's own clock: the inverted thread, "of a thread" (4), "as scheduled" (2).
    let clock = (!thread.as_raw()) << 3 | 6;
    nix::time::clock_gettime(ClockId::from_raw(clock)).ok().map(Duration::from)
}

#[allow(unsafe_code)]
fn set(thread: libc::pid_t, policy: libc::c_int, priority: i32) -> io::Result<()> {
    // SAFETY: sched_param is plain numbers, for which all zeroes are valid (musl has more fields than glibc).
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = priority;
    // SAFETY: `param` is valid for reading during the call, which keeps no pointer to it. Of threads that are not
    // there, and of other programs', the kernel tells; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(thread, policy, &param) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
