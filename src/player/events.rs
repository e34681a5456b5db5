//! What the player makes of what happened.

use std::time::Duration;

use super::effect::{Effect, Ticket};
use super::event::{Event, Failure, OpenedTrack};
use super::machine::{DEVICE_PATIENCE, FAILURES_IN_A_ROW, Intent, Machine, Now};
use super::queue::Source;
use super::restart::Restarts;
use super::slot::{Coming, NextSlot, Slot};
use crate::control::{Notice, QueueChange, Reason, VolumeControl};
use crate::track::{EntryId, TrackInfo};

impl Machine {
    /// Takes in what happened and says what to do.
    pub fn happened(&mut self, event: Event, now: Now) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Opened(ticket, track) => self.opened(ticket, track, &mut effects),
            Event::OpenFailed(ticket, failure) => self.open_failed(ticket, failure, now, &mut effects),
            Event::TookNext { from, ticket, entry } => self.took_next(from, ticket, entry, &mut effects),
            Event::Lost(ticket) => self.lost(ticket, &mut effects),
            Event::FedToEnd(ticket) => {
                self.fed_to_end(ticket);
            }
            Event::DecodeFailed { ticket, failure, reached } => {
                self.decode_failed(ticket, failure, reached, &mut effects);
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
            Event::Waiting(ticket, reason) => self.coming_waits = Some((ticket, reason)),
            Event::Flowing(ticket) => {
                self.coming_waits.take_if(|(of, _)| *of == ticket);
            }
            Event::Heard { entry, generation, position, ticket } if generation >= self.valid_from => {
                self.heard(entry, position, ticket, now, &mut effects);
            }
            Event::NowPlaying { entry, ticket, info, codec } => {
                if let Some(track) = self.opened.get_mut(&ticket) {
                    track.codec = codec;
                }
                if let Some(info) = info.filter(|_| self.current == Some(entry)) {
                    self.now_playing(info, &mut effects);
                }
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
            Event::Introduced(entry, info) => self.learn(entry, &info, Source::Container, &mut effects),
            Event::Listed { ticket, listed, playing } => self.listed(ticket, listed, playing, &mut effects),
            Event::Volume(control, hardware) => self.volume_changed(control, hardware),
            Event::Tick => self.tick(now, &mut effects),
        }
        self.plan(now, &mut effects);
        effects
    }

    /// By the card, or by somebody at the card.
    fn volume_changed(&mut self, control: VolumeControl, hardware: Option<(f64, bool)>) {
        self.volume_control = control;
        (self.volume, self.mute) = match control {
            VolumeControl::Fixed => (1.0, self.mute),
            VolumeControl::Software | VolumeControl::Hardware => hardware.unwrap_or(self.software),
        };
    }

    fn opened(&mut self, ticket: Ticket, track: OpenedTrack, effects: &mut Vec<Effect>) {
        // What a station's bytes say is about what it plays at the moment.
        let info = if track.live { TrackInfo::default() } else { track.info.clone() };
        let (start, exact) = (track.start, !track.start_is_a_guess);
        let seekable = track.not_seekable.is_none();
        self.opened.insert(ticket, track);
        if let Slot::Opening { ticket: awaited, start: asked } = self.slot
            && awaited == ticket
        {
            self.slot = Slot::Feeding { ticket };
            self.reason = Reason::None;
            if let Some(entry) = self.current {
                self.learn(entry, &info, Source::Container, effects);
                effects.push(Effect::Place(ticket, self.place(entry)));
            }
            effects.push(Effect::Feed { ticket, generation: self.generation });
            let sought_meanwhile = self.anchor != asked;
            if sought_meanwhile && seekable {
                self.jump(self.anchor, effects);
            } else {
                (self.anchor, self.exact) = (start, exact);
            }
        } else if let NextSlot::Opening(coming) = self.next
            && coming.ticket == ticket
        {
            self.next = NextSlot::Ready(coming);
            self.learn(coming.entry, &info, Source::Container, effects);
            effects.push(Effect::Place(ticket, self.place(coming.entry)));
            effects.push(Effect::FeedNext(ticket));
        } else {
            self.abandon(ticket, effects);
        }
    }

    fn open_failed(&mut self, ticket: Ticket, failure: Failure, now: Now, effects: &mut Vec<Effect>) {
        if let Slot::Opening { ticket: awaited, start } = self.slot
            && awaited == ticket
        {
            self.slot = Slot::Empty;
            if self.waits_for_station(&failure, now, effects) || self.opens_again(&failure, start, effects) {
                return;
            }
            self.count_failure(self.current, &failure);
            self.fail(failure, effects);
            self.go_on_after_failure(effects);
        } else if let NextSlot::Opening(coming) = self.next
            && coming.ticket == ticket
        {
            self.next = NextSlot::Empty;
            let current_is_done = matches!(self.slot, Slot::Fed { .. });
            if self.again.take().is_some() {
                if self.waits_for_station(&failure, now, effects) {
                    return;
                }
                // The rest of the current entry is lost, not what comes behind it.
                self.failures += 1;
                self.fail(failure, effects);
            } else if failure.for_good || current_is_done {
                self.count_failure(Some(coming.entry), &failure);
                self.passed_over.push(coming.entry);
                self.fail(failure, effects);
            } else {
                self.postponed = Some(coming.entry);
            }
        }
    }

    fn decode_failed(
        &mut self,
        ticket: Ticket,
        failure: Failure,
        reached: Duration,
        effects: &mut Vec<Effect>,
    ) {
        if let NextSlot::Ready(coming) = self.next
            && coming.ticket == ticket
        {
            // The decoder broke down on it before its turn had come.
            self.abandon_next(effects);
            self.passed_over.push(coming.entry);
            self.fail(failure, effects);
            return;
        }
        if !self.fed_to_end(ticket) {
            effects.push(Effect::GoOn(ticket));
            return;
        }
        if self.goes_on_again(ticket, &failure, reached) {
            if self.slot.ticket() == Some(ticket) {
                self.abandon_next(effects);
            }
            self.event("trouble", format!("{}; it is opened again", failure.message), effects);
        } else {
            if !self.sounding {
                self.count_failure(self.current, &failure);
            }
            self.fail(failure, effects);
        }
        effects.push(Effect::GoOn(ticket));
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
        if let NextSlot::Ready(coming) = self.next
            && coming.ticket == ticket
        {
            self.next = NextSlot::Taken { coming, fed: false };
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
        if let NextSlot::Taken { coming, fed } = &mut self.next
            && coming.ticket == ticket
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
        let next = self.next.coming().filter(|next| next.ticket == ticket).map(|next| next.entry);
        let current = self.current.filter(|_| self.slot.ticket() == Some(ticket));
        if let Some(entry) = next.or(current) {
            let info = TrackInfo { duration: Some(duration), ..TrackInfo::default() };
            self.learn(entry, &info, Source::Container, effects);
        }
    }

    fn fetched(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) {
        let is_current = self.slot.ticket() == Some(ticket);
        let is_next = self.next.coming().is_some_and(|next| next.ticket == ticket);
        if (is_current || is_next) && !self.fetched.contains(&ticket) {
            self.fetched.push(ticket);
            let next = self.next.coming().filter(|_| is_next).map(|next| next.entry);
            let which = if is_current { "this track is" } else { "the next track is" };
            let (kind, text) = ("fetched", format!("{which} completely here"));
            effects.push(Effect::Notify(Notice::Event { kind, entry: next.or(self.current), text }));
        }
    }

    fn heard(
        &mut self,
        entry: EntryId,
        position: Duration,
        ticket: Ticket,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        if let NextSlot::Taken { coming, fed } = self.next
            && coming.ticket == ticket
        {
            self.joined(coming, fed, position, effects);
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

    /// What came behind the current sound is heard now.
    fn joined(&mut self, coming: Coming, fed: bool, position: Duration, effects: &mut Vec<Effect>) {
        let Coming { ticket, entry, .. } = coming;
        let goes_on = self.again.is_some() && self.current == Some(entry);
        self.abandon_current(effects);
        if self.current == Some(entry) {
            // The same track again: only the position says so.
            self.sought(position, effects);
        } else {
            self.restarts = Restarts::default();
        }
        self.exact = self.opened.get(&ticket).is_none_or(|track| !track.start_is_a_guess);
        self.slot = if fed { Slot::Fed { ticket } } else { Slot::Feeding { ticket } };
        self.next = NextSlot::Empty;
        self.current = Some(entry);
        self.now_playing = None;
        self.anchor = position;
        self.forget_failed_nexts();
        self.announced = true;
        self.last_error = None;
        if goes_on {
            self.event("playing", format!("{} goes on", self.title(entry)), effects);
        } else {
            self.event("joined", format!("{} follows without a break", self.title(entry)), effects);
        }
        effects.push(Effect::SaveState);
    }

    /// A station says what it plays: heard from now on, and not written down.
    fn now_playing(&mut self, info: TrackInfo, effects: &mut Vec<Effect>) {
        let shown = match (&info.title, info.artists.is_empty()) {
            (Some(title), false) => format!("{title} by {}", info.artists.join(", ")),
            (Some(title), true) => title.clone(),
            // It says nothing any more.
            (None, _) => {
                self.now_playing = None;
                return;
            }
        };
        if self.now_playing.as_ref() != Some(&info) {
            self.now_playing = Some(info);
            self.event("title", shown, effects);
        }
    }

    fn sounds(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if std::mem::take(&mut self.stalled) {
            // Whoever counted on by the rate is wrong by as long as it was silent.
            self.sought(self.position(now), effects);
        }
        self.sounding = true;
        if self.plays_live() && !self.is_station() {
            self.station = self.current;
            effects.push(Effect::SaveState);
        }
        self.failures = 0;
        self.first_failed = None;
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
            let failure = Failure { code: "device", message, for_good: false, again: false };
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

    pub(super) fn learn(
        &mut self,
        entry: EntryId,
        info: &TrackInfo,
        source: Source,
        effects: &mut Vec<Effect>,
    ) {
        if self.queue.learn(entry, info, source) {
            let change = QueueChange::Info(entry);
            effects.push(Effect::Notify(Notice::Queue { revision: self.queue.revision(), change }));
            effects.push(Effect::SaveQueue);
        }
    }

    fn tick(&mut self, now: Now, effects: &mut Vec<Effect>) {
        self.try_station(now, effects);
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
            None => found.uri.shown(),
        }
    }
}
