//! The C library's allocator.

/// In bytes: what glibc begins with.
#[cfg(target_env = "gnu")]
const LARGE: i32 = 128 * 1024;

/// Has large blocks given back to the kernel as soon as they are free.
///
/// glibc does so at first, but whenever a larger block than before is freed, it takes blocks of that size for usual
/// and keeps up to twice as much from then on. One line of 10 MiB from a plugin would cost some 20 MiB for ever.
/// Other C libraries do not do that.
#[allow(unsafe_code)]
pub fn give_back_large_blocks() {
    // SAFETY: the call takes two numbers, and comes before there is a second thread.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}
