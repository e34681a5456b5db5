//! How early the next request has to go out, so that its bytes are here before they are needed. Pure.

use std::time::{Duration, Instant};

/// Shorter looks at the reader say little: it takes bytes in bursts.
const WINDOW: Duration = Duration::from_secs(2);
/// In a longer one it stood still.
const STOOD_STILL: Duration = Duration::from_secs(30);
/// A request may need so many times as long as the slowest of late, and then this.
const ROUND_TRIPS: u32 = 4;
const MARGIN: Duration = Duration::from_secs(2);

/// How fast the reader takes bytes, and how long a server takes to answer.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Bytes in a second.
    rate: f64,
    /// Since when, and from which byte on, it is being looked at.
    window: Option<(Instant, u64)>,
    /// The slowest answer of late, connection included.
    round_trip: Duration,
}

impl Pace {
    /// The reader has come to `at` by reading.
    pub fn read(&mut self, at: u64, now: Instant) {
        let Some((since, from)) = self.window.filter(|(_, from)| *from <= at) else {
            self.window = Some((now, at));
            return;
        };
        let time = now.saturating_duration_since(since);
        if time < WINDOW {
            return;
        }
        self.window = Some((now, at));
        if time <= STOOD_STILL {
            let rate = (at - from) as f64 / time.as_secs_f64();
            self.rate = if self.rate == 0.0 { rate } else { (self.rate + rate) / 2.0 };
        }
    }

    /// The reader went elsewhere.
    pub fn jumped(&mut self) {
        self.window = None;
    }

    /// A request was answered after this time.
    pub fn answered(&mut self, after: Duration) {
        // What was slow once is forgotten by and by.
        self.round_trip = after.max(self.round_trip * 3 / 4);
    }

    /// Bytes that have to be here when the next request goes out.
    pub fn needed(&self) -> u64 {
        (self.rate * (self.round_trip * ROUND_TRIPS + MARGIN).as_secs_f64()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_the_music_and_the_slower_the_server_the_earlier_the_request() {
        let start = Instant::now();
        let needed = |rate: u64, round_trip| {
            let mut pace = Pace::default();
            (0..100u64).for_each(|n| pace.read(n * rate / 10, start + Duration::from_millis(n * 100)));
            pace.answered(Duration::from_millis(round_trip));
            pace.needed()
        };
        assert_eq!(Pace::default().needed(), 0);
        assert_eq!(needed(100_000, 0), 200_000);
        assert_eq!(needed(100_000, 500), 400_000);
        assert_eq!(needed(700_000, 500), 2_800_000);
    }

    #[test]
    fn jumps_and_pauses_say_nothing_about_the_rate() {
        let start = Instant::now();
        let mut pace = Pace::default();
        pace.read(0, start);
        pace.read(200_000, start + Duration::from_secs(2));
        let needed = pace.needed();
        pace.read(200_001, start + Duration::from_secs(90));
        pace.jumped();
        pace.read(90_000_000, start + Duration::from_secs(91));
        pace.read(5, start + Duration::from_secs(99));
        assert_eq!(pace.needed(), needed);
    }

    #[test]
    fn a_slow_answer_is_remembered_for_some_requests() {
        let mut pace = Pace { rate: 1_000.0, ..Pace::default() };
        pace.answered(Duration::from_secs(4));
        let slow = pace.needed();
        (0..20).for_each(|_| pace.answered(Duration::from_millis(10)));
        assert!(pace.needed() < slow / 5);
    }
}
