//! A station has no place but now, and one that was heard is not given up.

use std::time::Duration;

use super::{Intent, Machine, Now};
use crate::control::Reason;
use crate::player::effect::{Effect, Ticket};
use crate::player::event::Failure;

/// A station that was heard and cannot be opened is tried again after this time, for as long as it is wanted.
const STATION_PAUSE: Duration = Duration::from_secs(15);

impl Machine {
    /// Whether this opening is that of a station.
    pub fn is_live(&self, ticket: Ticket) -> bool {
        self.opened.get(&ticket).is_some_and(|track| track.live)
    }

    /// Where to begin after a restart of the daemon: a station has no place but now.
    pub fn position_to_keep(&self, now: Now) -> Duration {
        if self.plays_live() { Duration::ZERO } else { self.position(now) }
    }

    /// Whether the current entry is a station that was heard, which is not given up after a restart either.
    pub fn is_station(&self) -> bool {
        self.station.is_some() && self.station == self.current
    }

    /// Whether the current entry is known to be a station.
    pub fn plays_live(&self) -> bool {
        self.slot.ticket().is_some_and(|ticket| self.is_live(ticket))
    }

    /// A station that was heard is not given up because it is off the air, or its network asks for a login. Only what
    /// its plugin says of it is believed.
    pub(super) fn waits_for_station(
        &mut self,
        failure: &Failure,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let waits = self.is_station() && failure.code != "plugin";
        if waits {
            self.station_due = Some(now.at + STATION_PAUSE);
            self.reason = Reason::Server;
            self.event("trouble", format!("{}; the station is tried again", failure.message), effects);
        }
        waits
    }

    /// Tries it again when it is time.
    pub(super) fn try_station(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let due = self.station_due.is_some_and(|due| due <= now.at);
        if let Some(entry) = self.current.filter(|_| due && self.intent == Intent::Playing) {
            self.begin(entry, Duration::ZERO, effects);
        }
    }
}
