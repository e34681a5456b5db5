//! What to do when a request failed or a body ended too early.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{Fetch, MAX_USELESS_RESOLVES};
use crate::stream::http::Missing;
use crate::stream::{StreamError, WaitReason};

/// Why a request gave no body, or a body ended before its end.
pub(super) enum Setback {
    /// No host answers.
    Unreachable(Missing, String),
    /// The host can be reached, but gives nothing.
    Failing(String),
    /// The host asks for patience.
    Later(Duration, String),
    /// The address is no longer good.
    Refused { status: u16, host: String },
    /// The answer was not what was asked for: no more ranges from this address.
    NotAsAsked(String),
    /// It will not get better.
    Final(StreamError),
}

impl Setback {
    /// Of several candidates' failures the one that says best what to do.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Setback::Refused { .. } => 5,
            Setback::NotAsAsked(_) => 4,
            Setback::Later(..) => 3,
            Setback::Failing(_) => 2,
            Setback::Unreachable(..) => 1,
            Setback::Final(_) => 0,
        }
    }
}

impl Fetch {
    /// Says what is wrong, and waits as long as is right; an error when the track is given up.
    ///
    /// A live stream that has been heard is never given up, whatever its server says meanwhile: it may be about
    /// to start again.
    pub(super) async fn bear(&mut self, setback: Setback) -> Result<(), StreamError> {
        let now = Instant::now();
        let trouble = *self.trouble.get_or_insert(now);
        self.outage = matches!(setback, Setback::Unreachable(..));
        let host = self.source.host();
        let heard = self.is_heard_live();
        let (reason, least, barren, why) = match setback {
            Setback::Final(StreamError::Refused { host, status, .. }) if heard => {
                (WaitReason::Server, Duration::ZERO, self.patience.answered(now), off_the_air(&host, status))
            }
            Setback::Final(error) => return Err(error),
            Setback::Refused { status, host } if heard && self.source.same_as_before => {
                // A fresh address was the same. Another is asked for only now and then.
                self.must_resolve =
                    self.resolve_not_before.is_none_or(|since| now > since + self.settings.give_up);
                (WaitReason::Server, Duration::ZERO, self.patience.answered(now), off_the_air(&host, status))
            }
            Setback::Refused { status, host } => return self.bear_refusal(status, host),
            Setback::Unreachable(missing, why) => {
                let others = self.web.others_have(&missing, trouble);
                (WaitReason::Network, Duration::ZERO, self.patience.unreachable(now, others), why)
            }
            Setback::NotAsAsked(why) => {
                self.source.ranges = false;
                (WaitReason::Server, Duration::ZERO, self.patience.answered(now), why)
            }
            Setback::Failing(why) => (WaitReason::Server, Duration::ZERO, self.patience.answered(now), why),
            Setback::Later(pause, why) => (WaitReason::Server, pause, self.patience.answered(now), why),
        };
        let mut left = self.settings.give_up.saturating_sub(barren);
        if self.source.resolved.live {
            // Never given up, so only a single pause is bounded.
            left = self.settings.give_up;
        } else if left.is_zero() {
            let (track, seconds) = (self.shared.track.clone(), barren.as_secs());
            return Err(StreamError::NoData { track, host, seconds, last: why });
        }
        self.shared.waiting(reason, &why);
        let live = self.source.resolved.live;
        let pause = self.patience.pause(&self.settings, live).max(least);
        sleep(pause.min(left.max(self.settings.backoff_min))).await;
        Ok(())
    }

    /// Whether it is a live stream that has given sound: reconnected as long as it is wanted.
    pub(super) fn is_heard_live(&self) -> bool {
        self.source.resolved.live && self.shared.fetched() > 0
    }

    fn bear_refusal(&mut self, status: u16, host: String) -> Result<(), StreamError> {
        let message = format!("{host} refuses the address (status {status}); a fresh one is asked for");
        self.must_resolve = true;
        let heard = self.is_heard_live();
        if self.source.fresh {
            let failed = self.patience.useless_resolve(Instant::now(), true);
            // At the very start an address that is refused twice, such as a plain URL, will not do.
            let stubborn = self.source.same_as_before && self.shared.fetched() == 0;
            if !heard && (failed >= MAX_USELESS_RESOLVES || stubborn) {
                let tried = format!("also after {failed} attempt(s) with a fresh address");
                return Err(StreamError::Refused { track: self.shared.track.clone(), host, status, tried });
            }
        }
        self.shared.waiting(WaitReason::Expired, &message);
        Ok(())
    }
}

fn off_the_air(host: &str, status: u16) -> String {
    format!("{host} has no stream at the moment (status {status})")
}
