//! When to open the next track: early enough to join without a break, late enough not to hold what may change.

use std::time::Duration;

/// So long before its end the next track is opened, even if this one is still being fetched.
const BEFORE_THE_END: Duration = Duration::from_secs(30);

/// Whether it is time to open the next track.
///
/// `fetched` says that all bytes of the current track are here, so that the connection is free.
pub(super) fn is_due(fetched: bool, position: Duration, duration: Option<Duration>) -> bool {
    fetched || duration.is_some_and(|duration| duration.saturating_sub(position) <= BEFORE_THE_END)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_track_is_opened_when_this_one_is_fetched_or_near_its_end() {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        assert!(!is_due(false, minutes(1), Some(minutes(4))));
        assert!(is_due(true, minutes(1), Some(minutes(4))));
        assert!(is_due(false, minutes(4) - BEFORE_THE_END, Some(minutes(4))));
        assert!(is_due(false, minutes(9), Some(minutes(4))), "the promised length was wrong");
        assert!(!is_due(false, minutes(9), None), "radio has no next");
    }
}
