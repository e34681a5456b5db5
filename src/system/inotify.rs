//! The kernel's word on changed files, for tokio.

use std::os::fd::{AsFd, AsRawFd, RawFd};

use nix::sys::inotify::{InitFlags, Inotify};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches, without blocking.
pub struct FileEvents(pub Inotify);

impl FileEvents {
    /// No watch yet. Must be called within a tokio runtime.
    #[allow(unsafe_code)]
    pub fn new() -> std::io::Result<AsyncFd<FileEvents>> {
        let inotify = FileEvents(Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?);
        // SAFETY: the value owns its descriptor, which is neither replaced nor closed before the value is
        // dropped, and `as_raw_fd` always gives that one.
        let registered = unsafe { AsyncFd::register_with_interest(inotify, Interest::READABLE) };
        registered.map_err(|error| error.into_parts().1)
    }
}

impl AsRawFd for FileEvents {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}
