//! Each decision of the player's, with plain values.

mod again;
mod album;
mod cases;
mod random;

use std::time::{Duration, Instant};

use super::*;
use crate::control::{Answer, Command, Output, State};
use crate::track::{EntryId, TrackInfo};

/// A player and a world that does what it is told, when the test says so.
pub(super) struct World {
    pub machine: Machine,
    pub effects: Vec<Effect>,
    pub heard: Option<Duration>,
    started: Instant,
    /// Every opening so far.
    openings: Vec<(Ticket, EntryId)>,
}

impl World {
    pub fn new() -> World {
        World::restored(Restored::default())
    }

    pub fn restored(restored: Restored) -> World {
        let mut machine = Machine::new(restored, vec!["/music".into()]);
        let effects = machine.start();
        let mut world = World {
            machine,
            effects: Vec::new(),
            heard: None,
            started: Instant::now(),
            openings: Vec::new(),
        };
        world.take(effects);
        world
    }

    /// A player with so many tracks in its queue, numbered from 1.
    pub fn with_tracks(count: usize) -> World {
        let mut world = World::new();
        let uris = (1..=count).map(|n| format!("segue:demo:track:{n}")).collect();
        world.ask(Command::Add { uris, before: None }).unwrap();
        world
    }

    pub fn now(&self) -> Now {
        Now { at: self.started, heard: self.heard }
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        self.started += time;
    }

    pub fn ask(&mut self, command: Command) -> Result<Answer, crate::control::CommandError> {
        let (answer, effects) = self.machine.command(command, self.now());
        self.take(effects);
        answer
    }

    pub fn happens(&mut self, event: Event) {
        let effects = self.machine.happened(event, self.now());
        self.take(effects);
    }

    fn take(&mut self, effects: Vec<Effect>) {
        if effects.iter().any(|effect| matches!(effect, Effect::Cut { .. })) {
            self.heard = None;
        }
        self.openings.extend(effects.iter().filter_map(|effect| match effect {
            Effect::Open { ticket, entry, .. } => Some((*ticket, *entry)),
            _ => None,
        }));
        self.effects.extend(effects);
    }

    /// Everything that was wanted since the last time.
    pub fn wanted(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The ticket of the newest opening of this entry.
    pub fn ticket(&self, of: u64) -> Ticket {
        let opened = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Open { ticket, entry, .. } if *entry == EntryId(of) => Some(*ticket),
            _ => None,
        });
        opened.unwrap_or_else(|| panic!("entry {of} is not being opened: {:?}", self.effects))
    }

    pub fn state(&self) -> State {
        self.machine.state(Output::default())
    }

    pub fn current(&self) -> Option<u64> {
        self.machine.current().map(|entry| entry.0)
    }

    pub fn open(&mut self, ticket: Ticket, seconds: u64) {
        let info = TrackInfo { duration: Some(Duration::from_secs(seconds)), ..TrackInfo::default() };
        self.happens(Event::Opened(ticket, OpenedTrack { info, ..OpenedTrack::default() }));
    }

    pub fn hear(&mut self, entry: u64, position: Duration) {
        self.heard = Some(position);
        let generation = self.machine.valid_from();
        let newest = self.openings.iter().rev().find(|(_, of)| *of == EntryId(entry));
        let ticket = newest.expect("only what was opened is heard").0;
        self.happens(Event::Heard { entry: EntryId(entry), generation, position, ticket });
    }

    /// Plays this entry until it is heard; all tracks last 100 s. Returns its ticket.
    pub fn play(&mut self, entry: u64) -> Ticket {
        self.ask(Command::PlayEntry(EntryId(entry))).unwrap();
        let ticket = self.ticket(entry);
        self.open(ticket, 100);
        self.hear(entry, Duration::ZERO);
        ticket
    }
}

pub(super) fn failure(for_good: bool) -> Failure {
    Failure { code: "stream", message: "no".to_owned(), for_good, again: false }
}

pub(super) fn count(effects: &[Effect], wanted: impl Fn(&Effect) -> bool) -> usize {
    effects.iter().filter(|effect| wanted(effect)).count()
}
