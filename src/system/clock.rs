//! Whether the wall clock can be believed.

use std::io;

/// Whether the kernel says that the wall clock follows a time server. A board without a battery boots in 1970, and the
/// network is there before the time is.
///
/// False also where the kernel does not tell, as in some containers: then nobody vouches for the clock.
pub fn is_synchronised() -> bool {
    status().is_ok_and(|(state, status)| state != libc::TIME_ERROR && status & libc::STA_UNSYNC == 0)
}

/// The clock's state and its bits, from adjtimex(2).
#[allow(unsafe_code)]
fn status() -> io::Result<(libc::c_int, libc::c_int)> {
    // SAFETY: timex is plain numbers, for which all zeroes are valid; `modes` = 0 means to change nothing.
    let mut answer: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `answer` is valid for reading and writing during the call, which keeps no pointer to it.
    let state = unsafe { libc::adjtimex(&mut answer) };
    if state < 0 { Err(io::Error::last_os_error()) } else { Ok((state, answer.status)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_of_the_clock_is_in_itself_consistent() {
        let Ok((state, status)) = status() else {
            // Containers may forbid the call; then the clock counts as not set.
            assert!(!is_synchronised());
            return;
        };
        assert!((libc::TIME_OK..=libc::TIME_ERROR).contains(&state));
        // The kernel gives TIME_ERROR whenever it sets STA_UNSYNC.
        assert!(status & libc::STA_UNSYNC == 0 || state == libc::TIME_ERROR);
        assert_eq!(is_synchronised(), state != libc::TIME_ERROR && status & libc::STA_UNSYNC == 0);
    }
}
