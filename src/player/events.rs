//! What happened, as values, and what the player makes of it.

use std::time::Duration;

use super::effect::{Effect, Ticket};
use super::machine::{DEVICE_PATIENCE, FAILURES_IN_A_ROW, Intent, Machine, NextSlot, Now, Slot};
use super::queue::Source;
use crate::control::{Notice, QueueChange, Reason};
use crate::track::{EntryId, TrackInfo};

/// A track that is open and can be decoded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenedTrack {
    /// From its container; `duration` is what the decoder counts.
    pub info: TrackInfo,
    /// For example `FLAC`.
    pub codec: String,
    /// Why it cannot be sought in, if it cannot.
    pub not_seekable: Option<String>,
    /// Where decoding begins; may differ from what was asked where the format allows a guess only.
    pub start: Duration,
    /// Where it is only about there.
    pub start_is_a_guess: bool,
}

/// Why a track does not play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A stable word for the bus: `plugin`, `stream`, `decode`, `uri`.
    pub code: &'static str,
    /// A sentence that names the track.
    pub message: String,
    /// Trying again will not help.
    pub for_good: bool,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An opening succeeded.
    Opened(Ticket, OpenedTrack),
    /// An opening failed.
    OpenFailed(Ticket, Failure),
    /// The decoder is at the end of `from` and went on with the next track without a break.
    TookNext {
        /// The track before.
        from: Ticket,
        /// The track that is decoded now.
        ticket: Ticket,
        /// Its entry.
        entry: EntryId,
    },
    /// The decoder is at the end of this track and has nothing to go on with.
    FedToEnd(Ticket),
    /// The decoder was asked to go on with a track that it has left.
    Lost(Ticket),
    /// A seek in this track ended here.
    Landed {
        /// The track.
        ticket: Ticket,
        /// Where sound goes on.
        position: Duration,
        /// False where the format tells only about where that is.
        exact: bool,
    },
    /// This track turned out to be so long.
    Measured(Ticket, Duration),
    /// The decoder had to give this track up; what it made is still heard.
    DecodeFailed(Ticket, Failure),
    /// All bytes of this track are here.
    Fetched(Ticket),
    /// Bytes of this track are waited for, and why.
    Waiting(Ticket, Reason),
    /// Bytes flow again.
    Flowing(Ticket),
    /// An entry, or a new position in it, begins to be heard.
    Heard {
        /// Which entry.
        entry: EntryId,
        /// Of which sound.
        generation: u64,
        /// Where in the entry.
        position: Duration,
    },
    /// Sound begins, after silence of any kind.
    Sounding(u64),
    /// The card has nothing to play, though more is to come.
    Empty(u64),
    /// All has been heard.
    Finished(u64),
    /// The card is missing, busy or gone.
    DeviceGone(String),
    /// The card works again.
    DeviceBack(String),
    /// The card came back with another format: decode again from where the ear is.
    NeedsRestart,
    /// More became known about an entry.
    Info(EntryId, TrackInfo),
    /// Time passed.
    Tick,
}

impl Machine {
    /// Takes in what happened and says what to do.
    pub fn happened(&mut self, event: Event, now: Now) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Opened(ticket, track) => self.opened(ticket, track, &mut effects),
            Event::OpenFailed(ticket, failure) => self.open_failed(ticket, failure, &mut effects),
            Event::TookNext { from, ticket, entry } => self.took_next(from, ticket, entry, &mut effects),
            Event::Lost(ticket) => self.lost(ticket, &mut effects),
            Event::FedToEnd(ticket) => {
                self.fed_to_end(ticket);
            }
            Event::DecodeFailed(ticket, failure) => {
                if self.fed_to_end(ticket) {
                    self.fail(failure, &mut effects);
                    self.failures += usize::from(!self.sounding);
                }
            }
            Event::Landed { ticket, position, exact } => {
                // A later seek may be on its way already: its position is the one to show.
                self.exact = exact;
                if self.slot == (Slot::Feeding { ticket }) && !exact {
                    self.anchor = position;
                }
            }
            Event::Measured(ticket, duration) => self.measured(ticket, duration, &mut effects),
            Event::Fetched(ticket) => self.fetched(ticket, &mut effects),
            Event::Waiting(ticket, reason) if self.slot.ticket() == Some(ticket) => self.reason = reason,
            Event::Flowing(ticket) if self.slot.ticket() == Some(ticket) => self.reason = Reason::None,
            Event::Waiting(..) | Event::Flowing(_) => {}
            Event::Heard { entry, generation, position } if generation >= self.valid_from => {
                self.heard(entry, position, now, &mut effects);
            }
            Event::Sounding(generation) if generation >= self.valid_from => self.sounds(now, &mut effects),
            Event::Empty(generation) if generation >= self.valid_from => {
                self.stalled |= self.sounding;
                self.sounding = false;
            }
            Event::Finished(generation) if generation >= self.valid_from => self.finished(&mut effects),
            Event::Heard { .. } | Event::Sounding(_) | Event::Empty(_) | Event::Finished(_) => {}
            Event::DeviceGone(message) => self.device_gone(message, now, &mut effects),
            Event::DeviceBack(message) => self.device_back(message, &mut effects),
            Event::NeedsRestart => self.jump(self.position(now), &mut effects),
            Event::Info(entry, info) => self.learn(entry, &info, Source::Plugin, &mut effects),
            Event::Tick => self.tick(now, &mut effects),
        }
        self.plan(now, &mut effects);
        effects
    }

    fn opened(&mut self, ticket: Ticket, track: OpenedTrack, effects: &mut Vec<Effect>) {
        let info = track.info.clone();
        let (start, exact) = (track.start, !track.start_is_a_guess);
        let seekable = track.not_seekable.is_none();
        self.opened.insert(ticket, track);
        if let Slot::Opening { ticket: awaited, start: asked } = self.slot
            && awaited == ticket
        {
            self.slot = Slot::Feeding { ticket };
            self.reason = Reason::None;
            effects.push(Effect::Feed { ticket, generation: self.generation });
            let sought_meanwhile = self.anchor != asked;
            if sought_meanwhile && seekable {
                self.jump(self.anchor, effects);
            } else {
                (self.anchor, self.exact) = (start, exact);
            }
            if let Some(entry) = self.current {
                self.learn(entry, &info, Source::Container, effects);
            }
        } else if let NextSlot::Opening { ticket: awaited, entry } = self.next
            && awaited == ticket
        {
            self.next = NextSlot::Ready { ticket, entry };
            effects.push(Effect::FeedNext(ticket));
            self.learn(entry, &info, Source::Container, effects);
        } else {
            self.abandon(ticket, effects);
        }
    }

    fn open_failed(&mut self, ticket: Ticket, failure: Failure, effects: &mut Vec<Effect>) {
        if matches!(self.slot, Slot::Opening { ticket: awaited, .. } if awaited == ticket) {
            self.slot = Slot::Empty;
            self.failures += 1;
            self.fail(failure, effects);
            self.go_on_after_failure(effects);
        } else if let NextSlot::Opening { ticket: awaited, entry } = self.next
            && awaited == ticket
        {
            self.next = NextSlot::Empty;
            let current_is_done = matches!(self.slot, Slot::Fed { .. });
            if failure.for_good || current_is_done {
                self.failures += 1;
                self.passed_over.push(entry);
                self.fail(failure, effects);
            } else {
                self.postponed = Some(entry);
            }
        }
    }

    fn go_on_after_failure(&mut self, effects: &mut Vec<Effect>) {
        let failed = self.current;
        let next = failed.and_then(|entry| self.queue.successor(entry, self.repeat));
        match next {
            Some(next) if self.failures < FAILURES_IN_A_ROW => self.begin(next, Duration::ZERO, effects),
            _ => self.halt(Reason::Error, effects),
        }
    }

    fn took_next(&mut self, from: Ticket, ticket: Ticket, entry: EntryId, effects: &mut Vec<Effect>) {
        if self.slot.ticket() != Some(from) {
            return;
        }
        self.slot = Slot::Fed { ticket: from };
        if self.next == (NextSlot::Ready { ticket, entry }) {
            self.next = NextSlot::Taken { ticket, entry, fed: false };
        } else {
            // It was not to be next any more, and the decoder was a moment faster.
            self.generation += 1;
            effects.push(Effect::CutAfter { ticket, entry, generation: self.generation });
        }
    }

    fn lost(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) {
        if self.slot.ticket() == Some(ticket)
            && let Some(entry) = self.current
        {
            let announced = self.announced;
            self.begin(entry, self.anchor, effects);
            self.announced = announced;
        }
    }

    fn fed_to_end(&mut self, ticket: Ticket) -> bool {
        if let NextSlot::Taken { ticket: taken, fed, .. } = &mut self.next
            && *taken == ticket
        {
            *fed = true;
            return true;
        }
        let is_current = self.slot == Slot::Feeding { ticket };
        if is_current {
            self.slot = Slot::Fed { ticket };
        }
        is_current
    }

    fn measured(&mut self, ticket: Ticket, duration: Duration, effects: &mut Vec<Effect>) {
        let Some(track) = self.opened.get_mut(&ticket) else { return };
        track.info.duration = Some(duration);
        let next = self.next.ticket_and_entry().filter(|(next, _)| *next == ticket).map(|(_, entry)| entry);
        let current = self.current.filter(|_| self.slot.ticket() == Some(ticket));
        if let Some(entry) = next.or(current) {
            let info = TrackInfo { duration: Some(duration), ..TrackInfo::default() };
            self.learn(entry, &info, Source::Container, effects);
        }
    }

    fn fetched(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) {
        let is_current = self.slot.ticket() == Some(ticket);
        let is_next = self.next.ticket_and_entry().is_some_and(|(next, _)| next == ticket);
        if (is_current || is_next) && !self.fetched.contains(&ticket) {
            self.fetched.push(ticket);
            let next = self.next.ticket_and_entry().filter(|_| is_next).map(|(_, entry)| entry);
            let which = if is_current { "this track is" } else { "the next track is" };
            let (kind, text) = ("fetched", format!("{which} completely here"));
            effects.push(Effect::Notify(Notice::Event { kind, entry: next.or(self.current), text }));
        }
    }

    fn heard(&mut self, entry: EntryId, position: Duration, now: Now, effects: &mut Vec<Effect>) {
        if let NextSlot::Taken { ticket, entry: taken, fed } = self.next
            && taken == entry
            && position.is_zero()
        {
            self.abandon_current(effects);
            if self.current == Some(entry) {
                // The same track again: only the position says so.
                self.sought(Duration::ZERO, effects);
            }
            self.exact = true;
            self.slot = if fed { Slot::Fed { ticket } } else { Slot::Feeding { ticket } };
            self.next = NextSlot::Empty;
            self.current = Some(entry);
            self.anchor = Duration::ZERO;
            self.forget_failed_nexts();
            self.announced = true;
            self.last_error = None;
            self.event("joined", format!("{} follows without a break", self.title(entry)), effects);
            effects.push(Effect::SaveState);
        } else if self.current == Some(entry) {
            if !self.announced {
                self.announced = true;
                self.last_error = None;
                self.event("playing", self.title(entry), effects);
            }
        } else if self.intent != Intent::Stopped {
            // It was taken back a moment too late: go to what follows now.
            match self.current.and_then(|current| self.queue.successor(current, self.repeat)) {
                Some(next) => self.begin(next, Duration::ZERO, effects),
                None => self.halt(Reason::EndOfQueue, effects),
            }
            return;
        }
        self.sounds(now, effects);
    }

    fn sounds(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if std::mem::take(&mut self.stalled) {
            // Whoever counted on by the rate is wrong by as long as it was silent.
            self.sought(self.position(now), effects);
        }
        self.sounding = true;
        self.failures = 0;
        self.reason = Reason::None;
    }

    fn finished(&mut self, effects: &mut Vec<Effect>) {
        self.sounding = false;
        if self.next != NextSlot::Empty || !matches!(self.slot, Slot::Fed { .. }) {
            return;
        }
        let reason = if self.failures >= FAILURES_IN_A_ROW { Reason::Error } else { Reason::EndOfQueue };
        self.event("finished", "the queue has been played to its end".to_owned(), effects);
        self.halt(reason, effects);
        if reason == Reason::EndOfQueue {
            self.current = self.queue.first();
        }
    }

    fn device_gone(&mut self, message: String, now: Now, effects: &mut Vec<Effect>) {
        if self.device_gone_since.is_none() {
            self.device_gone_since = Some(now.at);
            self.stalled = true;
            let failure = Failure { code: "device", message, for_good: false };
            self.fail(failure, effects);
            effects.push(Effect::SaveState);
        }
    }

    fn device_back(&mut self, message: String, effects: &mut Vec<Effect>) {
        if self.device_gone_since.take().is_some() {
            self.last_error.take_if(|error| error.code == "device");
            self.event("device", message, effects);
        }
    }

    fn learn(&mut self, entry: EntryId, info: &TrackInfo, source: Source, effects: &mut Vec<Effect>) {
        if self.queue.learn(entry, info, source) {
            let change = QueueChange::Info(entry);
            effects.push(Effect::Notify(Notice::Queue { revision: self.queue.revision(), change }));
            effects.push(Effect::SaveQueue);
        }
    }

    fn tick(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let patience_is_over = |since| now.at.saturating_duration_since(since) > DEVICE_PATIENCE;
        if self.intent == Intent::Playing && self.device_gone_since.is_some_and(patience_is_over) {
            self.intent = Intent::Paused;
            self.reason = Reason::Device;
            effects.extend([Effect::Pause, Effect::SaveState]);
        }
    }

    /// Tells that the position is not what the clock would say.
    pub(super) fn sought(&self, position: Duration, effects: &mut Vec<Effect>) {
        let micros = i64::try_from(position.as_micros()).unwrap_or(i64::MAX);
        effects.push(Effect::Notify(Notice::Seeked(micros)));
    }

    /// Goes on at another position of the current entry.
    pub(super) fn jump(&mut self, position: Duration, effects: &mut Vec<Effect>) {
        self.anchor = position;
        match (self.slot, self.next) {
            (Slot::Empty | Slot::Opening { .. }, _) => {}
            // The decoder has left this track already.
            (Slot::Feeding { ticket } | Slot::Fed { ticket }, NextSlot::Taken { .. }) => {
                self.lost(ticket, effects);
            }
            (Slot::Feeding { ticket } | Slot::Fed { ticket }, _) => {
                self.cut(effects);
                self.slot = Slot::Feeding { ticket };
                effects.push(Effect::Seek { ticket, generation: self.generation, position });
            }
        }
    }

    /// What a person calls this entry.
    pub(super) fn title(&self, entry: EntryId) -> String {
        let Some(found) = self.queue.get(entry) else { return String::new() };
        match &found.info.title {
            Some(title) if found.info.artists.is_empty() => title.clone(),
            Some(title) => format!("{title} by {}", found.info.artists.join(", ")),
            None => found.uri.to_string(),
        }
    }
}
