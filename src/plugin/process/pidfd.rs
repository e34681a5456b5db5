//! Handles of processes. Unlike a number, a handle never comes to mean another process.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::sys::signal::Signal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A process, until it has ended.
#[derive(Debug)]
pub(super) struct PidFd {
    fd: AsyncFd<OwnedFd>,
    pid: u32,
}

impl PidFd {
    /// A handle that must be registered with the runtime before it can be awaited.
    #[allow(unsafe_code)]
    pub(super) fn open_raw(pid: u32) -> io::Result<OwnedFd> {
        // SAFETY: pidfd_open takes two integers and touches no memory; what it returns is a new
        // descriptor that nobody else owns, close-on-exec by definition.
        unsafe {
            let fd = libc::syscall(libc::SYS_pidfd_open, libc::c_long::from(pid.cast_signed()), 0);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = i32::try_from(fd).map_err(io::Error::other)?;
            Ok(OwnedFd::from_raw_fd(fd))
        }
    }

    #[allow(unsafe_code)]
    pub(super) fn new(pid: u32, fd: OwnedFd) -> io::Result<PidFd> {
        // SAFETY: an OwnedFd gives the same descriptor as long as it lives, and closes it only when dropped.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        Ok(PidFd { fd, pid })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns when the process has ended. A PID namespace's first process ends after all others.
    pub(super) async fn ended(&self) {
        // An error cannot be waited out; the caller's time limits still hold.
        let _ = self.fd.readable().await;
    }

    /// Sends a signal; a process that has ended already is no error.
    pub(super) fn signal(&self, signal: Signal) {
        send(self.fd.get_ref(), signal);
    }
}

/// Sends a signal through a handle.
#[allow(unsafe_code)]
pub(super) fn send(fd: &OwnedFd, signal: Signal) {
    // SAFETY: pidfd_send_signal takes integers and a null pointer for "no siginfo"; the descriptor is
    // borrowed for the time of the call.
    unsafe {
        let no_info = std::ptr::null::<libc::c_void>();
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            libc::c_long::from(fd.as_raw_fd()),
            signal as i32,
            no_info,
            0,
        );
    }
}
