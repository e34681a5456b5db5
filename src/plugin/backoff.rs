//! When a plugin that crashed may be started again. Pure: time is passed in.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The numbers behind supervision. The defaults are the protocol's; tests use shorter ones.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Wait after the first crash; doubles with each further one.
    pub backoff_first: Duration,
    /// The longest wait between two starts.
    pub backoff_most: Duration,
    /// A run of this length makes the waits start over.
    pub healthy_after: Duration,
    /// This many crashes within `fault_window` make a plugin FAULTED.
    pub fault_crashes: usize,
    /// See `fault_crashes`.
    pub fault_window: Duration,
    /// How long FAULTED lasts unless a person enables the plugin again.
    pub fault_time: Duration,
    /// A call waits for a start that is at most this far away, else it fails at once.
    pub patience: Duration,
    /// While a plugin runs it is asked for a sign of life so often.
    pub ping_every: Duration,
    /// What each of a plugin's two folders may occupy on the disk, in bytes.
    pub folder_bytes: u64,
    /// A plugin that does not take a request for this long does not read.
    pub write_timeout: Duration,
    /// Between closing standard input, SIGTERM and SIGKILL.
    pub stop_grace: Duration,
    /// The same at the daemon's exit, from closing and SIGTERM together to SIGKILL.
    pub exit_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            backoff_first: Duration::from_millis(500),
            backoff_most: Duration::from_secs(60),
            healthy_after: Duration::from_secs(60),
            fault_crashes: 5,
            fault_window: Duration::from_secs(180),
            fault_time: Duration::from_secs(600),
            patience: Duration::from_secs(2),
            ping_every: Duration::from_secs(60),
            folder_bytes: 256 * 1024 * 1024,
            write_timeout: Duration::from_secs(5),
            stop_grace: Duration::from_secs(2),
            exit_grace: Duration::from_millis(500),
        }
    }
}

/// The crashes of one plugin.
#[derive(Debug)]
pub(super) struct Backoff {
    limits: Limits,
    recent: VecDeque<Instant>,
    next_wait: Duration,
    not_before: Option<Instant>,
    faulted_until: Option<Instant>,
}

/// Whether a start is allowed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// After this time, which may be zero.
    StartAfter(Duration),
    /// Too far away to wait for.
    Refuse { retry_in: Duration, faulted: bool },
}

impl Backoff {
    pub(super) fn new(limits: Limits) -> Backoff {
        let next_wait = limits.backoff_first;
        Backoff { limits, recent: VecDeque::new(), next_wait, not_before: None, faulted_until: None }
    }

    /// A run, or an attempt to start, ended badly after `uptime`.
    pub(super) fn crashed(&mut self, now: Instant, uptime: Duration) {
        if uptime >= self.limits.healthy_after {
            self.next_wait = self.limits.backoff_first;
        }
        self.not_before = Some(now + self.next_wait);
        self.next_wait = (self.next_wait * 2).min(self.limits.backoff_most);
        self.recent.push_back(now);
        while self.recent.front().is_some_and(|then| now - *then > self.limits.fault_window) {
            self.recent.pop_front();
        }
        if self.recent.len() >= self.limits.fault_crashes {
            self.faulted_until = Some(now + self.limits.fault_time);
            self.recent.clear();
        }
    }

    /// A run of `uptime` ended as it should.
    pub(super) fn ended_well(&mut self, uptime: Duration) {
        if uptime >= self.limits.healthy_after {
            self.next_wait = self.limits.backoff_first;
        }
    }

    pub(super) fn verdict(&self, now: Instant) -> Verdict {
        if let Some(retry_in) = self.faulted_until.map(|until| until.saturating_duration_since(now))
            && !retry_in.is_zero()
        {
            return Verdict::Refuse { retry_in, faulted: true };
        }
        let wait = self.not_before.map_or(Duration::ZERO, |then| then.saturating_duration_since(now));
        if wait <= self.limits.patience {
            Verdict::StartAfter(wait)
        } else {
            Verdict::Refuse { retry_in: wait, faulted: false }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_and_only_a_healthy_run_resets_them() {
        let limits = Limits { fault_crashes: 100, patience: 100 * SECOND, ..Limits::default() };
        let mut backoff = Backoff::new(limits);
        let now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..9 {
            backoff.crashed(now, SECOND);
            let Verdict::StartAfter(wait) = backoff.verdict(now) else { panic!("refused") };
            waits.push(wait.as_millis());
            backoff.ended_well(SECOND);
        }
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        backoff.crashed(now, 60 * SECOND);
        assert_eq!(backoff.verdict(now), Verdict::StartAfter(SECOND / 2));
    }

    #[test]
    fn five_crashes_in_three_minutes_fault_it_for_ten() {
        let mut backoff = Backoff::new(Limits::default());
        let start = Instant::now();
        for crash in 0..5u32 {
            backoff.crashed(start + 10 * crash * SECOND, SECOND);
        }
        let last = start + 40 * SECOND;
        assert_eq!(backoff.verdict(last), Verdict::Refuse { retry_in: 600 * SECOND, faulted: true });
        assert_eq!(backoff.verdict(last + 600 * SECOND), Verdict::StartAfter(Duration::ZERO));
        let mut slow = Backoff::new(Limits::default());
        for crash in 0..20u32 {
            slow.crashed(start + 50 * crash * SECOND, SECOND);
        }
        assert!(!matches!(slow.verdict(start + 950 * SECOND), Verdict::Refuse { faulted: true, .. }));
    }
}
