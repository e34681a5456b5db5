//! How a plugin is, judged from what happened lately. Pure: time is passed in.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use segue_protocol::{ErrorCode, Fault};

/// Calls that are looked back at.
const REMEMBERED: usize = 20;
/// What happened longer ago is forgiven.
const FORGIVEN_AFTER: Duration = Duration::from_secs(600);
/// So many failures in a row, and nothing else since, make it unhealthy.
const IN_A_ROW: usize = 3;

/// How a plugin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Health {
    /// It has not run yet.
    Unknown,
    /// All is well.
    Healthy,
    /// It works in part, or failed lately.
    Degraded,
    /// It does not work.
    Unhealthy,
}

impl Health {
    /// One lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Health::Unknown => "unknown",
            Health::Healthy => "healthy",
            Health::Degraded => "degraded",
            Health::Unhealthy => "unhealthy",
        }
    }
}

/// What one call says about the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Answered as it should, which an error about the content is as well.
    Good,
    /// The plugin, or what it depends on, failed.
    Bad(String),
}

impl Outcome {
    pub(super) fn of(fault: &Fault) -> Outcome {
        let at_fault = matches!(
            fault.code,
            ErrorCode::InternalError
                | ErrorCode::JsonRpcInternalError
                | ErrorCode::AuthRequired
                | ErrorCode::RateLimited
                | ErrorCode::UpstreamUnavailable
                | ErrorCode::PluginCrashed
                | ErrorCode::PluginTimeout
                | ErrorCode::PluginProtocolError
                | ErrorCode::PluginIdentityMismatch
                | ErrorCode::ParseError
        );
        if at_fault { Outcome::Bad(format!("{}: {}", fault.code, fault.message)) } else { Outcome::Good }
    }
}

/// What the verdict rests on.
#[derive(Debug, Default)]
pub(super) struct Facts {
    has_run: bool,
    calls: VecDeque<(Instant, Outcome)>,
    /// The last crash, and whether it has not started well since.
    crash: Option<(Instant, String)>,
    is_down: bool,
    /// What it says that it cannot do now; else empty.
    pub(super) partly: String,
}

impl Facts {
    pub(super) fn note(&mut self, outcome: Outcome, now: Instant) {
        if self.calls.len() == REMEMBERED {
            self.calls.pop_front();
        }
        self.calls.push_back((now, outcome));
    }

    pub(super) fn started(&mut self, partly: String) {
        self.has_run = true;
        self.is_down = false;
        self.partly = partly;
    }

    pub(super) fn crashed(&mut self, why: String, now: Instant) {
        self.crash = Some((now, why));
        self.is_down = true;
    }

    pub(super) fn verdict(&self, now: Instant) -> (Health, String) {
        let lately = |then: Instant| now.saturating_duration_since(then) < FORGIVEN_AFTER;
        let crash = self.crash.as_ref().filter(|(then, _)| lately(*then)).map(|(_, why)| why.clone());
        if self.is_down {
            let why = self.crash.as_ref().map(|(_, why)| why.clone()).unwrap_or_default();
            return (Health::Unhealthy, why);
        }
        let bad: Vec<&String> = self
            .calls
            .iter()
            .filter(|(then, _)| lately(*then))
            .filter_map(|(_, outcome)| if let Outcome::Bad(why) = outcome { Some(why) } else { None })
            .collect();
        let newest = self.calls.iter().rev().take(IN_A_ROW);
        let only_bad = newest.filter(|(then, what)| lately(*then) && *what != Outcome::Good).count();
        match (bad.last(), crash) {
            (Some(why), _) if only_bad == IN_A_ROW => (Health::Unhealthy, (*why).clone()),
            (Some(why), _) => {
                let of = self.calls.len();
                (
                    Health::Degraded,
                    format!("{} of the last {of} calls failed, the last with {why}", bad.len()),
                )
            }
            (None, Some(why)) => (Health::Degraded, format!("it was restarted lately: {why}")),
            (None, None) if !self.partly.is_empty() => (Health::Degraded, self.partly.clone()),
            (None, None) if self.has_run => (Health::Healthy, String::new()),
            (None, None) => (Health::Unknown, String::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad() -> Outcome {
        Outcome::of(&Fault::new(ErrorCode::PluginTimeout, "no answer"))
    }

    #[test]
    fn health_follows_what_happened_lately() {
        let now = Instant::now();
        let mut facts = Facts::default();
        assert_eq!(facts.verdict(now).0, Health::Unknown);
        facts.started(String::new());
        facts.note(Outcome::of(&Fault::new(ErrorCode::ContentNotFound, "no")), now);
        assert_eq!(facts.verdict(now), (Health::Healthy, String::new()));
        facts.note(bad(), now);
        let (health, why) = facts.verdict(now);
        assert_eq!(health, Health::Degraded);
        assert_eq!(why, "1 of the last 2 calls failed, the last with PLUGIN_TIMEOUT: no answer");
        facts.note(bad(), now);
        facts.note(bad(), now);
        assert_eq!(facts.verdict(now).0, Health::Unhealthy);
        facts.note(Outcome::Good, now);
        assert_eq!(facts.verdict(now).0, Health::Degraded);
        assert_eq!(facts.verdict(now + FORGIVEN_AFTER).0, Health::Healthy);
        facts.crashed("exit status: 3".to_owned(), now);
        assert_eq!(facts.verdict(now + FORGIVEN_AFTER), (Health::Unhealthy, "exit status: 3".to_owned()));
        facts.started("search does not work now".to_owned());
        assert_eq!(facts.verdict(now + FORGIVEN_AFTER).0, Health::Degraded);
    }
}
