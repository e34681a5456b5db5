//! What is remembered about a plugin's calls and runs, from which its health follows.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use segue_protocol::messages::RawResult;
use segue_protocol::{ErrorCode, Fault};

use super::health::{Facts, Health, Outcome};

/// Calls whose times are kept for the percentiles.
const KEPT_TIMES: usize = 1_000;

/// Numbers about one plugin since the daemon's start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls that were given to it, pings included.
    pub calls: u64,
    /// Those that failed, for whatever reason.
    pub errors: u64,
    /// Those that it did not answer in time.
    pub timeouts: u64,
    /// Starts after the first.
    pub restarts: u64,
    /// Replies that came too late, twice, or with an id of their own making.
    pub late_replies: u64,
    /// Bytes of its standard output.
    pub bytes_received: u64,
    /// Bytes written to its standard input.
    pub bytes_sent: u64,
    /// Half of the last 1,000 calls that it answered took at most so long; `None` before the first.
    pub p50: Option<Duration>,
    /// 99 of 100 took at most so long.
    pub p99: Option<Duration>,
}

/// Shared by the processes that a plugin has one after the other.
#[derive(Default)]
pub(super) struct Counters(Mutex<Record>);

#[derive(Default)]
struct Record {
    counts: CallCounts,
    starts: u64,
    times: VecDeque<Duration>,
    facts: Facts,
}

impl Counters {
    fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.lock().counts.bytes_sent += bytes as u64;
    }

    pub(super) fn received(&self, bytes: usize) {
        self.lock().counts.bytes_received += bytes as u64;
    }

    /// A reply that nobody waited for.
    pub(super) fn dropped(&self) {
        self.lock().counts.late_replies += 1;
    }

    /// A call was answered, or was not.
    pub(super) fn called(&self, answer: &Result<RawResult, Fault>, took: Duration) {
        let mut record = self.lock();
        record.counts.calls += 1;
        match answer {
            Ok(_) => record.facts.note(Outcome::Good, Instant::now()),
            Err(fault) => record.failed(fault),
        }
        if !answer.as_ref().is_err_and(|fault| fault.code == ErrorCode::PluginTimeout) {
            if record.times.len() == KEPT_TIMES {
                record.times.pop_front();
            }
            record.times.push_back(took);
        }
    }

    /// A reply that was taken for good turned out to have the wrong shape.
    pub(super) fn misshapen(&self, fault: &Fault) {
        self.lock().failed(fault);
    }

    /// A process shook hands. `partly` says which capabilities it left out, else it is empty.
    pub(super) fn started(&self, partly: String) {
        let mut record = self.lock();
        record.starts += 1;
        record.counts.restarts = record.starts - 1;
        record.facts.started(partly);
    }

    /// It told about itself in a ping.
    pub(super) fn told(&self, partly: String) {
        self.lock().facts.partly = partly;
    }

    /// It crashed, fell silent, or does not start.
    pub(super) fn crashed(&self, why: String) {
        self.lock().facts.crashed(why, Instant::now());
    }

    /// How it is, and why.
    pub(super) fn health(&self) -> (Health, String) {
        self.lock().facts.verdict(Instant::now())
    }

    pub(super) fn counts(&self) -> CallCounts {
        let record = self.lock();
        let mut times: Vec<Duration> = record.times.iter().copied().collect();
        times.sort_unstable();
        let at = |percent: usize| times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        CallCounts { p50: at(50), p99: at(99), ..record.counts.clone() }
    }
}

impl Record {
    fn failed(&mut self, fault: &Fault) {
        self.counts.errors += 1;
        self.counts.timeouts += u64::from(fault.code == ErrorCode::PluginTimeout);
        self.facts.note(Outcome::of(fault), Instant::now());
    }
}
