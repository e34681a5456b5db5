//! What to do when a segment or a playlist does not come.

use std::fmt;
use std::time::Duration;

use tracing::debug;

use super::follow::Follow;
use super::sound::Sound;
use super::{ENCRYPTED, Hls, What};
use crate::stream::http::{self, Missing};
use crate::stream::range::Entity;

/// Failures of one live segment, or of one form of the recording, before the next is taken.
const MOST_FAILURES: u32 = 3;

/// Why nothing comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::stream) enum Trouble {
    /// No host answers.
    Unreachable(Missing, String),
    /// The host can be reached, but gives nothing.
    Failing(String),
    /// The host asks for patience.
    Later(Duration, String),
    /// The address is no longer good.
    Refused { status: u16, host: String },
    /// An answer that waiting would not change.
    Final { status: u16, host: String },
    /// The answer was not what was asked for.
    NotAsAsked(String),
    /// The host cannot prove who it is.
    Insecure { host: String, why: String },
    /// The address is against the rules.
    Forbidden { host: String, why: String },
    /// A segment is another one than before it was cut.
    Changed { host: String, how: String },
    /// It will not do; the end of a sentence says why.
    Unplayable { host: String, why: &'static str },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Unreachable(_, why)
            | Trouble::Failing(why)
            | Trouble::Later(_, why)
            | Trouble::NotAsAsked(why) => f.write_str(why),
            Trouble::Refused { status, host } | Trouble::Final { status, host } => {
                write!(f, "{host} refuses a part of the stream (status {status})")
            }
            Trouble::Insecure { host, why } | Trouble::Forbidden { host, why } => {
                write!(f, "{host} is not allowed: {why}")
            }
            Trouble::Changed { host, how } => write!(f, "a segment on {host} changed: {how}"),
            Trouble::Unplayable { host, why } => write!(f, "the stream on {host} cannot be played: {why}"),
        }
    }
}

impl Hls {
    /// What was being fetched, or was to be, cannot be had for now. An error when the caller has to wait or to give up.
    pub(super) fn failed(&mut self, trouble: Trouble) -> Result<(), Trouble> {
        let what = self.job.take().map_or(What::Segment, |job| job.what);
        if matches!(what, What::Playlist) {
            return self.form_failed(trouble);
        }
        if matches!(trouble, Trouble::NotAsAsked(_)) {
            self.ranges = false;
        }
        if !matches!(trouble, Trouble::Unreachable(..)) {
            self.failures += 1;
        }
        let lasts = matches!(
            trouble,
            Trouble::Unplayable { .. }
                | Trouble::Final { .. }
                | Trouble::Insecure { .. }
                | Trouble::Forbidden { .. }
        );
        if !self.heard && (lasts || (self.failures >= MOST_FAILURES && self.has_another_form())) {
            return self.form_failed(trouble);
        }
        if !self.is_live() {
            return Err(trouble);
        }
        // Time has passed: what is to come next depends on what is listed now.
        self.follow.reload();
        match trouble {
            Trouble::Unplayable { why: ENCRYPTED, .. } => Err(trouble),
            Trouble::Unplayable { .. } | Trouble::Changed { .. } => {
                let failures = self.failures;
                self.skip();
                self.failures = failures;
                if failures >= MOST_FAILURES { Err(trouble) } else { Ok(()) }
            }
            trouble => {
                if self.failures >= MOST_FAILURES {
                    self.skip();
                }
                match trouble {
                    // It has left the list by now, or is listed before it is there.
                    Trouble::Refused { status: status @ (404 | 410), host } => {
                        Err(Trouble::Failing(format!("{host} does not have a segment (status {status})")))
                    }
                    trouble => Err(trouble),
                }
            }
        }
    }

    /// This form of the recording cannot be had for now: the next one is taken, or when there is none the first.
    pub(super) fn form_failed(&mut self, trouble: Trouble) -> Result<(), Trouble> {
        self.failures += 1;
        // Where a host does not answer, its other addresses do not either.
        let next = self.forms.get((self.form + 1) % self.forms.len().max(1));
        let same_host = next.map(http::host) == self.forms.get(self.form).map(http::host);
        let others = self.has_another_form() && !(same_host && matches!(trouble, Trouble::Unreachable(..)));
        // One that was heard is not left for a moment's trouble, nor in the middle of a segment.
        let leave = others && (!self.heard || (self.failures >= MOST_FAILURES && self.read == 0));
        if leave {
            self.failures = 0;
            self.failed_forms += 1;
            self.form = (self.form + 1) % self.forms.len();
            debug!(track = self.track, form = self.form, %trouble, "another form of the stream is tried");
            self.follow.forget();
            self.map = None;
            if self.heard {
                self.follow.cut();
            } else {
                (self.read, self.entity, self.sound, self.silent) =
                    (0, Entity::default(), Sound::default(), 0);
                self.parts.clear();
                self.follow = Follow::default();
            }
            return Ok(());
        }
        self.failed_forms = 0;
        self.follow.reload();
        Err(trouble)
    }

    fn has_another_form(&self) -> bool {
        self.failed_forms + 1 < self.forms.len()
    }

    /// This segment is given up; what follows does not continue what came.
    fn skip(&mut self) {
        debug!(track = self.track, "a segment is left out");
        self.advance();
        self.follow.cut();
    }
}
