//! When a URL must be renewed. Pure: the clocks are passed in.

use std::time::{Duration, Instant, SystemTime};

use crate::track::Expiry;

/// The moment after which a URL is no longer good, on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    /// The moment.
    pub at: Instant,
    /// How long the URL lived in all.
    pub lifetime: Duration,
}

impl Deadline {
    /// `now` and `wall` are the same moment on both clocks. `wall` is by the server's `Date` where one is known, else
    /// by our own clock where that is synchronised; without it a wall-clock expiry says nothing.
    pub fn of(expiry: Expiry, now: Instant, wall: Option<SystemTime>) -> Option<Self> {
        match expiry {
            Expiry::Unknown => None,
            Expiry::Deadline { at, lifetime } => Some(Deadline { at, lifetime }),
            Expiry::WallClock(until) => {
                let lifetime = until.duration_since(wall?).unwrap_or(Duration::ZERO);
                // A moment beyond the clock's range is never.
                now.checked_add(lifetime).map(|at| Deadline { at, lifetime })
            }
        }
    }

    /// How long before the end to ask for a fresh URL: the larger of 10 s and a tenth of the life, but at
    /// most half of it.
    pub fn margin(&self) -> Duration {
        (self.lifetime / 10).max(Duration::from_secs(10)).min(self.lifetime / 2)
    }

    /// From when on a fresh URL is asked for.
    pub fn renew_at(&self) -> Instant {
        self.at.checked_sub(self.margin()).unwrap_or(self.at)
    }

    /// Whether the URL is no longer good.
    pub fn passed(&self, now: Instant) -> bool {
        now >= self.at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_url_is_renewed_before_its_end_and_after_half_of_its_life(millis in 2u64..1_000_000_000) {
            let start = Instant::now();
            let lifetime = Duration::from_millis(millis);
            let deadline = Deadline { at: start + lifetime, lifetime };
            prop_assert!(deadline.renew_at() < deadline.at);
            prop_assert!(deadline.renew_at() >= start + lifetime / 2);
            prop_assert!(lifetime < Duration::from_secs(20) || deadline.margin() >= Duration::from_secs(10));
        }
    }

    #[test]
    fn margins_follow_the_rule() {
        let margin =
            |secs| Deadline { at: Instant::now(), lifetime: Duration::from_secs(secs) }.margin().as_secs();
        assert_eq!(margin(6), 3);
        assert_eq!(margin(60), 10);
        assert_eq!(margin(3600), 360);
    }

    #[test]
    fn a_wall_clock_expiry_counts_from_the_servers_date() {
        let (now, date) = (Instant::now(), SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000));
        let until = Expiry::WallClock(date + Duration::from_secs(300));
        let deadline = Deadline::of(until, now, Some(date)).unwrap();
        assert_eq!(
            deadline,
            Deadline { at: now + Duration::from_secs(300), lifetime: Duration::from_secs(300) }
        );
        let past = Expiry::WallClock(date - Duration::from_secs(1));
        assert!(Deadline::of(past, now, Some(date)).unwrap().passed(now));
        assert_eq!(Deadline::of(Expiry::Unknown, now, Some(date)), None);
    }

    #[test]
    fn without_a_clock_to_believe_only_a_monotonic_expiry_is_a_deadline() {
        let (now, lifetime) = (Instant::now(), Duration::from_secs(60));
        assert_eq!(Deadline::of(Expiry::WallClock(SystemTime::now() + lifetime), now, None), None);
        let at = now + lifetime;
        let told = Deadline::of(Expiry::Deadline { at, lifetime }, now, None);
        assert_eq!(told, Some(Deadline { at, lifetime }));
    }
}
