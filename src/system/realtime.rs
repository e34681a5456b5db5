//! How urgently the kernel runs a thread.

use std::io;

/// Puts the calling thread into SCHED_FIFO at `priority` (1 to 99, 10 is above everything ordinary and below the
/// kernel's interrupt threads). Programs that it starts are ordinary again.
///
/// # Errors
/// EPERM where RLIMIT_RTPRIO does not allow it (`LimitRTPRIO=` in the unit).
pub fn become_realtime(priority: i32) -> io::Result<()> {
    set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
}

/// Puts the calling thread back among the ordinary ones.
///
/// # Errors
/// Whatever the kernel says; it always allows this.
pub fn become_ordinary() -> io::Result<()> {
    set(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0)
}

/// Puts the calling thread below everything else: it runs when nothing else wants to.
///
/// # Errors
/// Whatever the kernel says; it always allows this.
pub fn become_idle() -> io::Result<()> {
    set(libc::SCHED_IDLE | libc::SCHED_RESET_ON_FORK, 0)
}

#[allow(unsafe_code)]
fn set(policy: libc::c_int, priority: i32) -> io::Result<()> {
    // SAFETY: sched_param is plain numbers, for which all zeroes are valid (musl has more fields than glibc).
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = priority;
    // SAFETY: 0 is the calling thread; `param` is valid for reading during the call, which keeps no pointer to it.
    let result = unsafe { libc::sched_setscheduler(0, policy, &param) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
