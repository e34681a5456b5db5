//! What the player knows: what is played now, what comes next, and how far each has come.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use self::restart::Restarts;
use self::slot::{NextSlot, Slot};
use super::effect::{Effect, Ticket};
use super::event::OpenedTrack;
use super::queue::Queue;
use crate::control::{LastError, Reason, Repeat, VolumeControl};
use crate::dsp;
use crate::track::{EntryId, TrackInfo};

mod commands;
mod cuts;
mod events;
mod failures;
mod heard;
mod listed;
mod notices;
mod openings;
mod plan;
mod preload;
mod restart;
mod slot;
mod station;
mod view;

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
    queue: Queue,
    folders: Vec<PathBuf>,
    repeat: Repeat,
    volume: f64,
    volume_control: VolumeControl,
    /// Volume and mute of the software, which are kept while the card has its own.
    software: (f64, bool),
    mute: bool,
    sound: dsp::Settings,
    selected_output: Option<String>,

    intent: Intent,
    reason: Reason,
    current: Option<EntryId>,
    /// Where the current entry begins or was sought to; holds until sound of it is heard.
    anchor: Duration,
    slot: Slot,
    next: NextSlot,
    /// Where the entry of this opening has to go on by another opening, since this one gives no more.
    again: Option<(Ticket, Duration)>,
    restarts: Restarts,
    /// What a station, or a part of a chained recording, says is heard now.
    now_playing: Option<TrackInfo>,
    paused_at: Option<Instant>,
    /// The entry, if it is a station that has been heard: it is not given up.
    station: Option<EntryId>,
    /// When that station is tried again.
    station_due: Option<Instant>,
    opened: BTreeMap<Ticket, OpenedTrack>,
    /// Tickets whose bytes are all here.
    fetched: Vec<Ticket>,
    /// Entries that failed for good while they were next; passed over until the current entry changes.
    passed_over: Vec<EntryId>,
    /// The next entry, if it could not be opened but may be later: tried again when its turn has come.
    postponed: Option<EntryId>,
    failures: usize,
    /// The first of them that may play another time.
    first_failed: Option<EntryId>,
    /// Why the opening of what comes waits.
    coming_waits: Option<(Ticket, Reason)>,

    last_ticket: u64,
    generation: u64,
    valid_from: u64,
    /// False where the format tells the position only about.
    exact: bool,
    sounding: bool,
    /// It fell silent without being asked to.
    stalled: bool,
    ending: bool,
    announced: bool,
    device_gone_since: Option<Instant>,
    last_error: Option<LastError>,
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

    /// The last entry is followed by the first.
    fn wraps(&self) -> bool {
        self.repeat == Repeat::Queue
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
        let promised = || self.queue.get(self.current?)?.info.duration;
        self.opened_track().and_then(|track| track.info.duration).or_else(promised)
    }
}
