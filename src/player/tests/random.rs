//! Whatever is asked and whatever happens, in any order, the player's promises hold.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::control::{Reason, Repeat};

#[derive(Clone, Debug)]
enum Move {
    Ask(Command),
    /// The newest ticket but so many is opened.
    Open(usize, u64),
    Fail(usize, bool),
    Fetch(usize),
    Fed(usize),
    Took(usize, usize),
    Lost(usize),
    Heard(usize, bool),
    Broke(usize, bool),
    Sounding,
    Empty,
    Finished,
    Gone,
    Back,
    Restart,
    Tick,
}

fn moves() -> impl Strategy<Value = Move> {
    let entry = (1u64..9).prop_map(EntryId);
    let uri = (0u32..9).prop_map(|n| format!("http://host/{n}"));
    let add = (prop::collection::vec(uri, 0..3), prop::option::of(entry.clone()));
    let command = prop_oneof![
        Just(Command::Play),
        Just(Command::Pause),
        Just(Command::PlayPause),
        Just(Command::Stop),
        Just(Command::Next),
        Just(Command::Previous),
        Just(Command::Clear),
        any::<i64>().prop_map(Command::SeekBy),
        (-9_000_000i64..200_000_000).prop_map(Command::SeekBy),
        (entry.clone(), any::<i64>()).prop_map(|(entry, to)| Command::SetPosition(entry, to)),
        prop_oneof![Just(Repeat::Off), Just(Repeat::Track), Just(Repeat::Queue)].prop_map(Command::SetRepeat),
        add.prop_map(|(uris, before)| Command::Add { uris, before }),
        prop::collection::vec(entry.clone(), 0..3).prop_map(Command::Remove),
        entry.prop_map(Command::PlayEntry),
    ];
    prop_oneof![
        6 => command.prop_map(Move::Ask),
        4 => (0usize..3, 1u64..200).prop_map(|(back, seconds)| Move::Open(back, seconds)),
        1 => (0usize..3, any::<bool>()).prop_map(|(back, good)| Move::Fail(back, good)),
        2 => (0usize..3).prop_map(Move::Fetch),
        2 => (0usize..3).prop_map(Move::Fed),
        2 => (0usize..3, 0usize..3).prop_map(|(from, to)| Move::Took(from, to)),
        1 => (0usize..3).prop_map(Move::Lost),
        3 => (0usize..3, any::<bool>()).prop_map(|(back, start)| Move::Heard(back, start)),
        1 => (0usize..3, any::<bool>()).prop_map(|(back, again)| Move::Broke(back, again)),
        1 => Just(Move::Sounding), 1 => Just(Move::Empty), 1 => Just(Move::Finished),
        1 => Just(Move::Gone), 1 => Just(Move::Back), 1 => Just(Move::Restart), 1 => Just(Move::Tick),
    ]
}

/// What was opened and not abandoned, as the rest of the program would know it.
#[derive(Default)]
struct Open {
    tickets: Vec<(Ticket, EntryId)>,
    alive: BTreeSet<Ticket>,
    /// Not answered yet: each opening is answered once, and not at all when it was abandoned.
    opening: BTreeSet<Ticket>,
    generation: u64,
}

impl Open {
    /// A track that was opened at some time; the decode thread may still speak of it.
    fn newest(&self, back: usize) -> Option<(Ticket, EntryId)> {
        self.tickets.iter().rev().filter(|(ticket, _)| !self.opening.contains(ticket)).nth(back).copied()
    }

    /// The newest opening but so many is answered now.
    fn answer(&mut self, back: usize) -> Option<Ticket> {
        let ticket = self.opening.iter().rev().nth(back).copied()?;
        self.opening.remove(&ticket);
        Some(ticket)
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Open { ticket, entry, .. } => {
                    assert!(self.tickets.iter().all(|(old, _)| *old < ticket), "a ticket was used again");
                    self.tickets.push((ticket, entry));
                    self.alive.insert(ticket);
                    self.opening.insert(ticket);
                }
                Effect::Abandon(ticket) => {
                    self.alive.remove(&ticket);
                    self.opening.remove(&ticket);
                }
                Effect::Feed { ticket, generation } => {
                    assert!(self.alive.contains(&ticket), "an abandoned track is fed");
                    assert!(generation >= self.generation);
                }
                Effect::FeedNext(ticket) => assert!(self.alive.contains(&ticket)),
                Effect::Seek { ticket, generation, .. } => {
                    assert!(self.alive.contains(&ticket));
                    assert_eq!(generation, self.generation, "a seek is heard only behind its cut");
                }
                Effect::Cut { generation } | Effect::CutAfter { generation, .. } => {
                    assert!(generation > self.generation, "generations grow");
                    self.generation = generation;
                }
                _ => {}
            }
        }
        assert!(self.alive.len() <= 2, "more than two tracks are open: {:?}", self.alive);
    }
}

fn event(what: Move, open: &mut Open) -> Option<Event> {
    let generation = open.generation;
    Some(match what {
        Move::Ask(_) => return None,
        Move::Open(back, seconds) => {
            let info = TrackInfo { duration: Some(Duration::from_secs(seconds)), ..TrackInfo::default() };
            Event::Opened(open.answer(back)?, OpenedTrack { info, ..OpenedTrack::default() })
        }
        Move::Fail(back, for_good) => {
            let ticket = open.answer(back)?;
            // An opening that failed is closed by whoever reports it.
            open.alive.remove(&ticket);
            Event::OpenFailed(ticket, failure(for_good))
        }
        Move::Fetch(back) => Event::Fetched(open.newest(back)?.0),
        Move::Fed(back) => Event::FedToEnd(open.newest(back)?.0),
        Move::Took(from, to) => {
            let (ticket, entry) = open.newest(to)?;
            Event::TookNext { from: open.newest(from)?.0, ticket, entry }
        }
        Move::Lost(back) => Event::Lost(open.newest(back)?.0),
        Move::Heard(back, start) => {
            let position = if start { Duration::ZERO } else { Duration::from_secs(9) };
            let (ticket, entry) = open.newest(back)?;
            Event::Heard { entry, generation, position, ticket }
        }
        Move::Broke(back, again) => {
            let failure = Failure { again, ..failure(true) };
            let reached = Duration::from_secs(9);
            Event::DecodeFailed { ticket: open.newest(back)?.0, failure, reached }
        }
        Move::Sounding => Event::Sounding(generation),
        Move::Empty => Event::Empty(generation),
        Move::Finished => Event::Finished(generation),
        Move::Gone => Event::DeviceGone("gone".into()),
        Move::Back => Event::DeviceBack("back".into()),
        Move::Restart => Event::NeedsRestart,
        Move::Tick => Event::Tick,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_promises_hold(moves in prop::collection::vec(moves(), 1..60)) {
        let mut world = World::with_tracks(3);
        let mut open = Open::default();
        for what in moves {
            match what.clone() {
                Move::Ask(command) => {
                    let revision = world.machine.queue().revision();
                    if world.ask(command).is_err() {
                        prop_assert_eq!(world.machine.queue().revision(), revision);
                    }
                }
                other => {
                    if let Some(event) = event(other, &mut open) {
                        world.happens(event);
                    }
                }
            }
            open.take(world.wanted());
            let state = world.state();
            let current = world.machine.current();
            prop_assert!(current.is_none_or(|entry| world.machine.queue().get(entry).is_some()), "{:?}", what);
            prop_assert_eq!(current.is_none(), world.machine.queue().is_empty());
            if world.machine.intent() == Intent::Stopped {
                prop_assert!(open.alive.is_empty(), "stopped, and {:?} is open", open.alive);
            }
            prop_assert!(state.reason != Reason::Error || state.status == crate::control::Status::Stopped);
        }
    }
}
