//! What is played now, what comes next, and how one becomes the other.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::effect::{Effect, Ticket};
use super::event::{Failure, OpenedTrack};
use super::preload;
use super::queue::Queue;
use super::restart::Restarts;
use super::slot::{Coming, NextSlot, Slot};
use crate::control::{LastError, Notice, Reason, Repeat, VolumeControl};
use crate::dsp;
use crate::track::{EntryId, TrackInfo, TrackUri};

/// So many different tracks in a row may fail without a sound; then playback stops instead of racing on.
pub(super) const FAILURES_IN_A_ROW: usize = 3;

/// So long a lost sound card is waited for with the wish to play on.
pub(super) const DEVICE_PATIENCE: Duration = Duration::from_secs(600);

/// What the person wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Intent {
    /// Nothing.
    #[default]
    Stopped,
    /// To go on later from here.
    Paused,
    /// To hear music.
    Playing,
}

/// The moment at which something happens, as read by the caller.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Monotonic.
    pub at: Instant,
    /// Where the ear is, if sound of [`Machine::valid_from`] or later of the current entry has been heard.
    pub heard: Option<Duration>,
}

/// What an earlier run of the daemon left.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    /// The queue.
    pub queue: Queue,
    /// The entry that was heard last.
    pub current: Option<EntryId>,
    /// And where in it.
    pub position: Duration,
    /// What the person wanted.
    pub intent: Intent,
    /// Mode.
    pub repeat: Repeat,
    /// Linear, 0 to 1; `None` is full.
    pub volume: Option<f64>,
    /// Silenced.
    pub mute: bool,
    /// What is to be done to the samples.
    pub sound: dsp::Settings,
    /// The device that was chosen.
    pub selected_output: Option<String>,
    /// The entry is a station that was heard.
    pub station: bool,
}

/// The player's mind. See the module for what it does and does not do.
#[derive(Debug)]
pub struct Machine {
    pub(super) queue: Queue,
    pub(super) folders: Vec<PathBuf>,
    pub(super) repeat: Repeat,
    pub(super) volume: f64,
    pub(super) volume_control: VolumeControl,
    /// Volume and mute of the software, which are kept while the card has its own.
    pub(super) software: (f64, bool),
    pub(super) mute: bool,
    pub(super) sound: dsp::Settings,
    pub(super) selected_output: Option<String>,

    pub(super) intent: Intent,
    pub(super) reason: Reason,
    pub(super) current: Option<EntryId>,
    /// Where the current entry begins or was sought to; holds until sound of it is heard.
    pub(super) anchor: Duration,
    pub(super) slot: Slot,
    pub(super) next: NextSlot,
    /// Where the entry of this opening has to go on by another opening, since this one gives no more.
    pub(super) again: Option<(Ticket, Duration)>,
    pub(super) restarts: Restarts,
    /// What a station, or a part of a chained recording, says is heard now.
    pub(super) now_playing: Option<TrackInfo>,
    pub(super) paused_at: Option<Instant>,
    /// The entry, if it is a station that has been heard: it is not given up.
    pub(super) station: Option<EntryId>,
    /// When that station is tried again.
    pub(super) station_due: Option<Instant>,
    pub(super) opened: BTreeMap<Ticket, OpenedTrack>,
    /// Tickets whose bytes are all here.
    pub(super) fetched: Vec<Ticket>,
    /// Entries that failed for good while they were next; passed over until the current entry changes.
    pub(super) passed_over: Vec<EntryId>,
    /// The next entry, if it could not be opened but may be later: tried again when its turn has come.
    pub(super) postponed: Option<EntryId>,
    pub(super) failures: usize,
    /// The first of them that may play another time.
    pub(super) first_failed: Option<EntryId>,
    /// Why the opening of what comes waits.
    pub(super) coming_waits: Option<(Ticket, Reason)>,

    last_ticket: u64,
    pub(super) generation: u64,
    pub(super) valid_from: u64,
    /// False where the format tells the position only about.
    pub(super) exact: bool,
    pub(super) sounding: bool,
    /// It fell silent without being asked to.
    pub(super) stalled: bool,
    pub(super) ending: bool,
    pub(super) announced: bool,
    pub(super) device_gone_since: Option<Instant>,
    pub(super) last_error: Option<LastError>,
}

impl Machine {
    /// A player with what an earlier run left. `file:` URIs are allowed below `folders`.
    pub fn new(restored: Restored, folders: Vec<PathBuf>) -> Machine {
        let current = restored.current.filter(|id| restored.queue.get(*id).is_some());
        let anchor = if current.is_some() { restored.position } else { Duration::ZERO };
        let current = current.or(restored.queue.first());
        let volume = restored.volume.unwrap_or(1.0).clamp(0.0, 1.0);
        Machine {
            intent: if current.is_some() { restored.intent } else { Intent::Stopped },
            queue: restored.queue,
            folders,
            repeat: restored.repeat,
            volume,
            volume_control: VolumeControl::Software,
            software: (volume, restored.mute),
            mute: restored.mute,
            sound: restored.sound,
            selected_output: restored.selected_output,
            reason: Reason::None,
            current,
            anchor,
            slot: Slot::Empty,
            next: NextSlot::Empty,
            again: None,
            restarts: Restarts::default(),
            now_playing: None,
            paused_at: None,
            station: restored.station.then_some(current).flatten(),
            station_due: None,
            opened: BTreeMap::new(),
            fetched: Vec::new(),
            passed_over: Vec::new(),
            postponed: None,
            failures: 0,
            first_failed: None,
            coming_waits: None,
            last_ticket: 0,
            generation: 0,
            valid_from: 0,
            exact: true,
            sounding: false,
            stalled: false,
            ending: false,
            announced: false,
            device_gone_since: None,
            last_error: None,
        }
    }

    /// What to do right after the start: sets volume and sound, and plays on where that is wanted.
    pub fn start(&mut self) -> Vec<Effect> {
        let mut effects = vec![Effect::RestoreVolume(self.volume, self.mute), Effect::SetSound(self.sound)];
        if self.selected_output.is_some() {
            effects.push(Effect::SelectOutput(self.selected_output.clone()));
        }
        if let (Intent::Playing, Some(entry)) = (self.intent, self.current) {
            self.begin(entry, self.anchor, &mut effects);
        }
        effects
    }

    /// The queue.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// What the person wants.
    pub fn intent(&self) -> Intent {
        self.intent
    }

    /// What is to be done to the samples.
    pub fn sound(&self) -> dsp::Settings {
        self.sound
    }

    /// The device that a person chose.
    pub fn selected_output(&self) -> Option<&str> {
        self.selected_output.as_deref()
    }

    /// Volume and mute of the software, and repeat mode.
    pub fn modes(&self) -> (f64, bool, Repeat) {
        (self.software.0, self.software.1, self.repeat)
    }

    /// The entry that is heard.
    pub fn current(&self) -> Option<EntryId> {
        self.current
    }

    /// Sound of older generations says nothing about the current entry's position.
    pub fn valid_from(&self) -> u64 {
        self.valid_from
    }

    /// The opening that serves the current entry.
    pub fn current_ticket(&self) -> Option<Ticket> {
        self.slot.ticket()
    }

    /// Where the ear is, or will be when sound begins.
    pub fn position(&self, now: Now) -> Duration {
        now.heard.unwrap_or(self.anchor)
    }

    /// How long the current entry plays, as well as it is known.
    pub fn duration(&self) -> Option<Duration> {
        let opened = self.slot.ticket().and_then(|ticket| self.opened.get(&ticket));
        let promised = || self.queue.get(self.current?)?.info.duration;
        opened.and_then(|track| track.info.duration).or_else(promised)
    }

    pub(super) fn new_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// Ends all that is heard, decoded or coming, and makes way for a new generation.
    pub(super) fn cut(&mut self, effects: &mut Vec<Effect>) {
        self.generation += 1;
        self.valid_from = self.generation;
        self.sounding = false;
        self.stalled = false;
        self.exact = true;
        self.ending = false;
        self.again = None;
        effects.push(Effect::Cut { generation: self.generation });
    }

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

    pub(super) fn abandon(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) {
        self.again.take_if(|(of, _)| *of == ticket);
        self.opened.remove(&ticket);
        self.fetched.retain(|fetched| *fetched != ticket);
        effects.push(Effect::Abandon(ticket));
    }

    pub(super) fn abandon_current(&mut self, effects: &mut Vec<Effect>) {
        if let Some(ticket) = self.slot.ticket() {
            self.abandon(ticket, effects);
        }
        self.slot = Slot::Empty;
    }

    pub(super) fn abandon_next(&mut self, effects: &mut Vec<Effect>) {
        if let Some(coming) = self.next.coming() {
            self.abandon(coming.ticket, effects);
        }
        self.next = NextSlot::Empty;
    }

    /// Plays this entry from `start`, now, with whatever of it is open already.
    pub(super) fn begin(&mut self, entry: EntryId, start: Duration, effects: &mut Vec<Effect>) {
        self.cut(effects);
        self.abandon_current(effects);
        let is_this = |coming: Coming| coming.entry == entry && coming.start.is_zero();
        let reusable = start.is_zero() && self.next.coming().is_some_and(is_this);
        let prepared = std::mem::replace(&mut self.next, NextSlot::Empty);
        if !reusable && let Some(coming) = prepared.coming() {
            self.abandon(coming.ticket, effects);
        }
        let generation = self.generation;
        self.slot = match prepared {
            NextSlot::Opening(Coming { ticket, .. }) if reusable => Slot::Opening { ticket, start },
            NextSlot::Ready(Coming { ticket, .. }) if reusable => {
                effects.push(Effect::Feed { ticket, generation });
                Slot::Feeding { ticket }
            }
            NextSlot::Taken { coming: Coming { ticket, .. }, .. } if reusable => {
                effects.push(Effect::Seek { ticket, generation, position: Duration::ZERO });
                Slot::Feeding { ticket }
            }
            _ => self.open(entry, start, effects),
        };
        self.station_due = None;
        if self.current != Some(entry) {
            self.station = None;
            self.forget_failed_nexts();
            self.restarts = Restarts::default();
        }
        self.current = Some(entry);
        self.now_playing = None;
        self.anchor = start;
        self.announced = false;
        self.reason = self.slot.ticket().and_then(|ticket| self.why_waits(ticket)).unwrap_or(Reason::Opening);
        effects.push(if self.intent == Intent::Playing { Effect::Resume } else { Effect::Pause });
        effects.push(Effect::SaveState);
    }

    pub(super) fn open(&mut self, entry: EntryId, start: Duration, effects: &mut Vec<Effect>) -> Slot {
        let Some(uri) = self.queue.get(entry).map(|found| found.uri.clone()) else { return Slot::Empty };
        let ticket = self.new_ticket();
        self.fetch_info(entry, &uri, effects);
        effects.push(Effect::Open { ticket, entry, uri, start });
        Slot::Opening { ticket, start }
    }

    fn fetch_info(&self, entry: EntryId, uri: &TrackUri, effects: &mut Vec<Effect>) {
        let unknown = self.queue.get(entry).is_some_and(|entry| entry.info.title.is_none());
        if unknown && matches!(uri, TrackUri::Plugin(..)) {
            effects.push(Effect::FetchInfo(entry, uri.clone()));
        }
    }

    /// Why this opening waits, if it did when it was that of what comes.
    pub(super) fn why_waits(&self, ticket: Ticket) -> Option<Reason> {
        self.coming_waits.filter(|(of, _)| *of == ticket).map(|(_, reason)| reason)
    }

    /// An entry was given up before a sound of it was heard.
    pub(super) fn count_failure(&mut self, entry: Option<EntryId>, failure: &Failure) {
        self.failures += 1;
        if !failure.for_good {
            self.first_failed = self.first_failed.or(entry);
        }
    }

    /// Stops, and stays at the current entry; after failures, at the first that may play another time.
    pub(super) fn halt(&mut self, reason: Reason, effects: &mut Vec<Effect>) {
        let first = self.first_failed.take().filter(|entry| self.queue.get(*entry).is_some());
        if reason == Reason::Error && first.is_some() {
            self.current = first;
        }
        self.cut(effects);
        self.abandon_current(effects);
        self.abandon_next(effects);
        self.intent = Intent::Stopped;
        self.now_playing = None;
        self.station_due = None;
        self.restarts = Restarts::default();
        self.reason = reason;
        self.anchor = Duration::ZERO;
        self.failures = 0;
        // Nobody waits for the card any more.
        self.last_error.take_if(|error| error.code == "device");
        self.forget_failed_nexts();
        effects.push(Effect::SaveState);
    }

    pub(super) fn forget_failed_nexts(&mut self) {
        self.passed_over.clear();
        self.postponed = None;
    }

    pub(super) fn fail(&mut self, failure: Failure, effects: &mut Vec<Effect>) {
        let error = LastError { code: failure.code.to_owned(), message: failure.message };
        self.last_error = Some(error.clone());
        effects.push(Effect::Notify(Notice::Error(error)));
    }

    pub(super) fn event(&self, kind: &'static str, text: String, effects: &mut Vec<Effect>) {
        effects.push(Effect::Notify(Notice::Event { kind, entry: self.current, text }));
    }

    /// The entry that is to follow the current one, without those that are known to be unplayable.
    fn wanted_next(&self) -> Option<EntryId> {
        if self.failures >= FAILURES_IN_A_ROW {
            return None;
        }
        let mut next = self.queue.successor(self.current?, self.repeat)?;
        while self.passed_over.contains(&next) {
            next = self.queue.following(next, self.repeat == Repeat::Queue)?;
            if Some(next) == self.current {
                return None;
            }
        }
        Some(next)
    }

    /// Opens the next entry when it is time, takes back what is not next any more, and lets the music end
    /// where nothing follows. Called after each change of anything that matters here.
    pub(super) fn plan(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let (fed, ticket) = match self.slot {
            Slot::Feeding { ticket } => (false, ticket),
            Slot::Fed { ticket } => (true, ticket),
            Slot::Empty | Slot::Opening { .. } => return,
        };
        if self.station_due.is_some() {
            // The same station comes next.
            return;
        }
        let again = self.again.filter(|(of, _)| fed && *of == ticket).map(|(_, at)| at).zip(self.current);
        let wanted = match again {
            Some((at, current)) => Some((current, at)),
            None => self.wanted_next().map(|entry| (entry, Duration::ZERO)),
        };
        self.take_back_unless(wanted, effects);
        if self.next != NextSlot::Empty {
            return;
        }
        let fed = fed || matches!(self.slot, Slot::Fed { .. });
        match wanted {
            None if fed && !self.ending => {
                self.ending = true;
                effects.push(Effect::EndOfMusic { generation: self.generation });
            }
            None => {}
            Some((entry, start)) => {
                let fetched = self.fetched.contains(&ticket);
                let due = preload::is_due(fetched, self.position(now), self.duration());
                if (fed || due && self.postponed != Some(entry))
                    && let Slot::Opening { ticket, .. } = self.open(entry, start, effects)
                {
                    self.next = NextSlot::Opening(Coming { ticket, entry, start });
                    self.ending = false;
                }
            }
        }
    }

    fn take_back_unless(&mut self, wanted: Option<(EntryId, Duration)>, effects: &mut Vec<Effect>) {
        let Some(Coming { ticket, entry, start }) = self.next.coming() else { return };
        if Some((entry, start)) == wanted {
            return;
        }
        if let (NextSlot::Taken { .. }, Some(heard)) = (self.next, self.slot.ticket()) {
            self.generation += 1;
            effects.push(Effect::CutAfter { ticket, entry, generation: self.generation });
            self.slot = Slot::Fed { ticket: heard };
        }
        self.abandon_next(effects);
    }
}
