//! How long to wait after a failure, and when to give a track up. Pure: the clock is passed in.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use super::Settings;

/// What was tried since the last new byte.
#[derive(Debug, Default)]
pub(super) struct Patience {
    failures: u32,
    /// Since when the server answers without giving a byte. An outage in between starts the count anew.
    barren: Option<Instant>,
    /// Resolves that failed, or whose URL was refused, since the last new byte.
    useless_resolves: u32,
    /// When the last of them failed.
    last_useless: Option<Instant>,
    /// The resolver asked not to be called before this moment.
    hold: Option<Instant>,
}

impl Patience {
    /// A new byte has come: all is forgiven, but for the pace of resolving.
    pub fn byte(&mut self) {
        self.failures = 0;
        self.barren = None;
        self.useless_resolves = 0;
    }

    /// The server answered, but gave nothing. Returns how long it has gone on.
    pub fn answered(&mut self, now: Instant) -> Duration {
        self.failures = self.failures.saturating_add(1);
        now.duration_since(*self.barren.get_or_insert(now))
    }

    /// No answer from the host. While others answer, that is the host's own fault and counts like an answer.
    pub fn unreachable(&mut self, now: Instant, others_answer: bool) -> Duration {
        if others_answer {
            return self.answered(now);
        }
        self.failures = self.failures.saturating_add(1);
        self.barren = None;
        Duration::ZERO
    }

    /// The pause before the next attempt: doubling, with a jitter of a quarter so that many players do not
    /// come back in step.
    pub fn pause(&self, settings: &Settings, live: bool) -> Duration {
        let doubled = settings.backoff_min.saturating_mul(1 << self.failures.saturating_sub(1).min(16));
        let pause = doubled.min(if live { settings.live_backoff_max } else { settings.backoff_max });
        let random = RandomState::new().build_hasher().finish() % 1000;
        pause.mul_f64(0.75 + random as f64 / 4000.0)
    }

    /// A resolve failed or its URL was refused; during an outage that does not count. Returns how many did
    /// since the last new byte.
    pub fn useless_resolve(&mut self, now: Instant, counts: bool) -> u32 {
        self.last_useless = Some(now);
        self.useless_resolves += u32::from(counts);
        self.useless_resolves
    }

    /// The resolver asked not to be called before `until`.
    pub fn hold_resolves(&mut self, until: Instant) {
        self.hold = Some(until);
    }

    /// The earliest moment for another resolve.
    pub fn resolve_not_before(&self, now: Instant, settings: &Settings) -> Instant {
        let paced = self.last_useless.map(|at| at + settings.resolve_pause);
        [Some(now), paced, self.hold].into_iter().flatten().max().unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_limit_and_start_anew_after_a_byte() {
        let settings = Settings::default();
        let mut patience = Patience::default();
        let now = Instant::now();
        for expected in [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0] {
            patience.answered(now);
            let pause = patience.pause(&settings, false).as_secs_f64();
            assert!((expected * 0.75..=expected).contains(&pause), "{pause} is not about {expected}");
        }
        patience.byte();
        patience.answered(now);
        assert!(patience.pause(&settings, false) <= settings.backoff_min);
        for _ in 0..20 {
            patience.answered(now);
        }
        assert!(patience.pause(&settings, true) > Duration::from_secs(20));
        assert!(patience.pause(&settings, true) <= Duration::from_secs(30));
    }

    #[test]
    fn an_outage_does_not_count_against_the_server() {
        let mut patience = Patience::default();
        let start = Instant::now();
        patience.answered(start);
        let later = start + Duration::from_secs(50);
        assert_eq!(patience.answered(later), Duration::from_secs(50));
        assert_eq!(patience.unreachable(later, false), Duration::ZERO);
        assert_eq!(patience.answered(start + Duration::from_secs(70)), Duration::ZERO);
        assert_eq!(patience.unreachable(start + Duration::from_secs(130), true), Duration::from_secs(60));
    }
}
