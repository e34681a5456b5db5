//! One test for each rule.

use std::time::Duration;

use super::*;
use crate::control::{CommandError, Reason, Repeat, Status};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn play_opens_the_first_track_and_is_buffering_until_it_is_heard() {
    let mut world = World::with_tracks(2);
    assert_eq!(world.state().status, Status::Stopped);
    world.ask(Command::Play).unwrap();
    assert_eq!((world.state().status, world.state().reason), (Status::Buffering, Reason::Opening));
    let ticket = world.ticket(1);
    world.open(ticket, 100);
    assert!(world.wanted().contains(&Effect::Feed { ticket, generation: world.machine.valid_from() }));
    world.hear(1, Duration::ZERO);
    assert_eq!((world.state().status, world.current()), (Status::Playing, Some(1)));
}

#[test]
fn the_next_track_is_opened_once_when_this_one_is_fetched_and_joined_when_it_is_heard() {
    let mut world = World::with_tracks(3);
    let first = world.play(1);
    world.wanted();
    world.happens(Event::Tick);
    assert_eq!(world.wanted(), []);
    world.happens(Event::Fetched(first));
    world.happens(Event::Tick);
    let second = world.ticket(2);
    assert_eq!(count(&world.wanted(), |effect| matches!(effect, Effect::Open { .. })), 1);
    world.open(second, 100);
    assert!(world.wanted().contains(&Effect::FeedNext(second)));
    world.happens(Event::TookNext { from: first, ticket: second, entry: EntryId(2) });
    assert_eq!(world.current(), Some(1), "the ear is still on the first");
    world.hear(2, Duration::ZERO);
    assert_eq!((world.current(), world.state().status), (Some(2), Status::Playing));
    assert!(world.wanted().contains(&Effect::Abandon(first)), "its memory goes back when its end was heard");
}

#[test]
fn the_music_ends_once_and_only_when_nothing_follows() {
    let mut world = World::with_tracks(1);
    let ticket = world.play(1);
    world.wanted();
    world.happens(Event::FedToEnd(ticket));
    world.happens(Event::Tick);
    let end = Effect::EndOfMusic { generation: world.machine.valid_from() };
    assert_eq!(count(&world.wanted(), |effect| *effect == end), 1);
    world.happens(Event::Finished(world.machine.valid_from()));
    assert_eq!((world.state().status, world.state().reason), (Status::Stopped, Reason::EndOfQueue));
}

#[test]
fn a_track_that_is_added_while_the_last_one_rings_out_still_follows() {
    let mut world = World::with_tracks(1);
    let ticket = world.play(1);
    world.happens(Event::FedToEnd(ticket));
    world.wanted();
    world.ask(Command::Add { uris: vec!["http://host/2.flac".into()], before: None }).unwrap();
    let second = world.ticket(2);
    world.happens(Event::Finished(world.machine.valid_from()));
    assert_eq!(world.state().status, Status::Buffering);
    world.open(second, 100);
    world.happens(Event::TookNext { from: ticket, ticket: second, entry: EntryId(2) });
    world.hear(2, Duration::ZERO);
    assert_eq!((world.state().status, world.current()), (Status::Playing, Some(2)));
}

#[test]
fn a_next_track_that_is_removed_after_it_was_decoded_is_taken_back() {
    let mut world = World::with_tracks(3);
    let first = world.play(1);
    world.happens(Event::Fetched(first));
    let second = world.ticket(2);
    world.open(second, 100);
    world.happens(Event::TookNext { from: first, ticket: second, entry: EntryId(2) });
    world.wanted();
    world.ask(Command::Remove(vec![EntryId(2)])).unwrap();
    let wanted = world.wanted();
    assert!(wanted.iter().any(|e| matches!(e, Effect::CutAfter { entry: EntryId(2), .. })), "{wanted:?}");
    assert!(wanted.contains(&Effect::Abandon(second)));
    assert!(wanted.iter().any(|e| matches!(e, Effect::Open { entry: EntryId(3), .. })));
    assert!(!wanted.iter().any(|e| matches!(e, Effect::Cut { .. })), "what is heard goes on");
}

#[test]
fn a_decoder_that_took_the_old_next_a_moment_too_early_is_put_right() {
    let mut world = World::with_tracks(3);
    let first = world.play(1);
    world.happens(Event::Fetched(first));
    let second = world.ticket(2);
    world.open(second, 100);
    world.ask(Command::Remove(vec![EntryId(2)])).unwrap();
    world.wanted();
    world.happens(Event::TookNext { from: first, ticket: second, entry: EntryId(2) });
    assert!(world.wanted().iter().any(|e| matches!(e, Effect::CutAfter { entry: EntryId(2), .. })));
}

#[test]
fn next_and_previous_keep_paused_and_stopped_as_they_are() {
    let mut world = World::with_tracks(3);
    world.ask(Command::Next).unwrap();
    assert_eq!((world.state().status, world.current()), (Status::Stopped, Some(2)));
    world.play(2);
    world.ask(Command::Pause).unwrap();
    world.ask(Command::Previous).unwrap();
    assert_eq!((world.state().status, world.current()), (Status::Paused, Some(1)));
    assert_eq!(
        world.effects.iter().rev().find(|e| matches!(e, Effect::Pause | Effect::Resume)),
        Some(&Effect::Pause)
    );
    world.ask(Command::Play).unwrap();
    world.ask(Command::Next).unwrap();
    world.ask(Command::Next).unwrap();
    world.ask(Command::Next).unwrap();
    assert_eq!((world.state().status, world.current()), (Status::Stopped, Some(3)), "no successor: stop");
}

#[test]
fn play_after_stop_starts_at_the_beginning() {
    let mut world = World::with_tracks(1);
    world.play(1);
    world.heard = Some(30 * SECOND);
    world.ask(Command::Stop).unwrap();
    assert_eq!(world.machine.position(world.now()), Duration::ZERO);
    world.wanted();
    world.ask(Command::Play).unwrap();
    assert!(world.wanted().iter().any(|e| matches!(e, Effect::Open { start: Duration::ZERO, .. })));
}

#[test]
fn a_seek_holds_its_position_until_it_is_heard_and_past_the_end_it_is_next() {
    let mut world = World::with_tracks(2);
    let ticket = world.play(1);
    world.heard = Some(10 * SECOND);
    world.wanted();
    world.ask(Command::SeekBy(20_000_000)).unwrap();
    assert_eq!(world.machine.position(world.now()), 30 * SECOND);
    let generation = world.machine.valid_from();
    assert!(world.wanted().contains(&Effect::Seek { ticket, generation, position: 30 * SECOND }));
    world.ask(Command::SeekBy(-90_000_000)).unwrap();
    assert_eq!(world.machine.position(world.now()), Duration::ZERO);
    world.ask(Command::SetPosition(EntryId(2), 5_000_000)).unwrap();
    world.ask(Command::SetPosition(EntryId(1), 500_000_000)).unwrap();
    world.ask(Command::SetPosition(EntryId(1), -1)).unwrap();
    assert_eq!(world.machine.position(world.now()), Duration::ZERO, "nothing of this was meant");
    world.ask(Command::SeekBy(100_000_000)).unwrap();
    assert_eq!(world.current(), Some(2));
}

#[test]
fn a_seek_while_the_track_is_still_being_opened_is_not_forgotten() {
    let mut world = World::with_tracks(1);
    world.ask(Command::Play).unwrap();
    world.ask(Command::SetPosition(EntryId(1), 42_000_000)).unwrap();
    let ticket = world.ticket(1);
    world.open(ticket, 100);
    let wanted = world.wanted();
    assert!(wanted.iter().any(|e| matches!(e, Effect::Seek { position, .. } if *position == 42 * SECOND)));
}

#[test]
fn a_seek_back_when_the_decoder_has_left_the_track_opens_it_again() {
    let mut world = World::with_tracks(2);
    let first = world.play(1);
    world.happens(Event::Fetched(first));
    let second = world.ticket(2);
    world.open(second, 100);
    world.happens(Event::TookNext { from: first, ticket: second, entry: EntryId(2) });
    world.heard = Some(99 * SECOND);
    world.wanted();
    world.ask(Command::SeekBy(-50_000_000)).unwrap();
    let wanted = world.wanted();
    let reopened =
        |e: &Effect| matches!(e, Effect::Open { entry: EntryId(1), start, .. } if *start == 49 * SECOND);
    assert!(wanted.iter().any(reopened), "{wanted:?}");
    assert_eq!(world.current(), Some(1));
}

#[test]
fn an_unplayable_track_is_passed_over_and_three_in_a_row_stop_the_race() {
    let mut world = World::with_tracks(9);
    world.ask(Command::Play).unwrap();
    for entry in 1..=3 {
        let ticket = world.ticket(entry);
        world.happens(Event::OpenFailed(ticket, failure(true)));
    }
    let state = world.state();
    assert_eq!((state.status, state.reason), (Status::Stopped, Reason::Error));
    assert!(state.last_error.is_some());
    assert_eq!(world.current(), Some(3), "and it stays where it gave up");
}

#[test]
fn after_three_failures_that_may_pass_play_begins_at_the_first_of_them() {
    let mut world = World::with_tracks(9);
    world.ask(Command::PlayEntry(EntryId(2))).unwrap();
    for (entry, for_good) in [(2, true), (3, false), (4, false)] {
        let ticket = world.ticket(entry);
        world.happens(Event::OpenFailed(ticket, failure(for_good)));
    }
    assert_eq!((world.state().status, world.current()), (Status::Stopped, Some(3)));
    world.wanted();
    world.ask(Command::Play).unwrap();
    let ticket = world.ticket(3);
    world.open(ticket, 100);
    world.hear(3, Duration::ZERO);
    assert_eq!((world.state().status, world.current()), (Status::Playing, Some(3)));
}

#[test]
fn the_same_holds_for_tracks_that_failed_behind_one_that_was_heard() {
    let mut world = World::with_tracks(9);
    let first = world.play(1);
    world.happens(Event::FedToEnd(first));
    for entry in 2..=4 {
        let ticket = world.ticket(entry);
        world.happens(Event::OpenFailed(ticket, failure(false)));
    }
    world.happens(Event::Finished(world.machine.valid_from()));
    let state = world.state();
    assert_eq!((state.status, state.reason), (Status::Stopped, Reason::Error));
    assert_eq!(world.current(), Some(2));
}

#[test]
fn why_the_next_track_waits_is_shown_when_the_current_one_is_over() {
    let mut world = World::with_tracks(2);
    let first = world.play(1);
    world.happens(Event::Fetched(first));
    let second = world.ticket(2);
    world.happens(Event::Waiting(second, Reason::Network));
    assert_eq!((world.state().status, world.state().reason), (Status::Playing, Reason::None));
    world.happens(Event::FedToEnd(first));
    world.happens(Event::Empty(world.machine.valid_from()));
    assert_eq!((world.state().status, world.state().reason), (Status::Buffering, Reason::Network));
    world.ask(Command::Next).unwrap();
    assert_eq!((world.state().status, world.state().reason), (Status::Buffering, Reason::Network));
    world.happens(Event::Flowing(second));
    assert_eq!(world.state().reason, Reason::Opening);
}

#[test]
fn an_unplayable_next_track_is_known_before_its_turn_and_costs_no_gap() {
    let mut world = World::with_tracks(3);
    let first = world.play(1);
    world.happens(Event::Fetched(first));
    let second = world.ticket(2);
    world.happens(Event::OpenFailed(second, failure(true)));
    let third = world.ticket(3);
    world.open(third, 100);
    world.happens(Event::TookNext { from: first, ticket: third, entry: EntryId(3) });
    world.hear(3, Duration::ZERO);
    assert_eq!(world.current(), Some(3));
}

#[test]
fn a_next_track_that_fails_for_now_is_tried_again_when_its_turn_comes() {
    let mut world = World::with_tracks(2);
    let first = world.play(1);
    world.happens(Event::Fetched(first));
    let early = world.ticket(2);
    world.wanted();
    world.happens(Event::OpenFailed(early, failure(false)));
    world.happens(Event::Tick);
    assert_eq!(count(&world.wanted(), |e| matches!(e, Effect::Open { .. })), 0, "not at once");
    world.happens(Event::FedToEnd(first));
    let again = world.ticket(2);
    world.open(again, 100);
    assert!(world.wanted().contains(&Effect::FeedNext(again)));
}

#[test]
fn a_lost_card_is_waited_for_until_a_person_says_otherwise() {
    let mut world = World::with_tracks(1);
    world.play(1);
    world.happens(Event::DeviceGone("unplugged".into()));
    assert_eq!((world.state().status, world.state().reason), (Status::Paused, Reason::Device));
    world.happens(Event::DeviceBack("back".into()));
    assert_eq!(world.state().status, Status::Playing);
    world.happens(Event::DeviceGone("unplugged".into()));
    world.ask(Command::Pause).unwrap();
    world.happens(Event::DeviceBack("back".into()));
    assert_eq!(world.state().status, Status::Paused);
}

#[test]
fn a_card_that_stays_away_for_ten_minutes_is_not_played_on_by_itself() {
    let mut world = World::with_tracks(1);
    world.play(1);
    world.happens(Event::DeviceGone("unplugged".into()));
    world.pass(Duration::from_secs(599));
    world.happens(Event::Tick);
    assert!(!world.wanted().contains(&Effect::Pause));
    world.pass(Duration::from_secs(2));
    world.happens(Event::Tick);
    assert!(world.wanted().contains(&Effect::Pause));
    world.happens(Event::DeviceBack("back".into()));
    assert_eq!((world.state().status, world.current()), (Status::Paused, Some(1)));
}

#[test]
fn what_is_played_while_the_card_is_away_waits_for_it_as_long_and_says_why() {
    let mut world = World::with_tracks(2);
    world.play(1);
    world.happens(Event::DeviceGone("unplugged".into()));
    world.pass(Duration::from_secs(660));
    world.happens(Event::Tick);
    assert!(world.wanted().contains(&Effect::Pause));
    world.ask(Command::PlayEntry(EntryId(2))).unwrap();
    world.pass(Duration::from_secs(500));
    world.happens(Event::Tick);
    assert!(!world.wanted().contains(&Effect::Pause), "the patience begins anew");
    assert_eq!(world.state().last_error.map(|error| error.code).as_deref(), Some("device"));
    world.happens(Event::DeviceBack("back".into()));
    assert_eq!((world.state().status, world.state().last_error), (Status::Buffering, None));
}

#[test]
fn play_confirms_the_return_of_a_card_and_stop_gives_it_up() {
    let mut world = World::with_tracks(1);
    world.play(1);
    world.happens(Event::DeviceGone("unplugged".into()));
    world.pass(Duration::from_secs(500));
    world.ask(Command::Pause).unwrap();
    world.ask(Command::Play).unwrap();
    world.pass(Duration::from_secs(500));
    world.wanted();
    world.happens(Event::Tick);
    assert!(!world.wanted().contains(&Effect::Pause), "the patience begins anew");
    world.ask(Command::Stop).unwrap();
    assert!(world.wanted().contains(&Effect::Rest), "what is played next may begin on another card");
    world.happens(Event::DeviceBack("back".into()));
    assert_eq!(world.state().status, Status::Stopped);
    world.happens(Event::DeviceGone("unplugged".into()));
    world.play(1);
    world.ask(Command::Next).unwrap();
    world.happens(Event::DeviceGone("unplugged".into()));
    world.ask(Command::PlayEntry(EntryId(1))).unwrap();
    assert_eq!(
        count(&world.wanted(), |effect| *effect == Effect::Rest),
        1,
        "Next at the end stops, a jump does not"
    );
}

#[test]
fn removing_the_current_entry_goes_on_to_the_one_after_it() {
    let mut world = World::with_tracks(3);
    world.play(2);
    world.ask(Command::Remove(vec![EntryId(2)])).unwrap();
    assert_eq!(world.current(), Some(3));
    world.ask(Command::Remove(vec![EntryId(3)])).unwrap();
    assert_eq!((world.current(), world.state().status), (Some(1), Status::Stopped));
    assert_eq!(world.ask(Command::Remove(vec![EntryId(3)])), Err(CommandError::NoSuchEntry(EntryId(3))));
}

#[test]
fn repeating_a_track_opens_it_again_behind_itself() {
    let mut world = World::with_tracks(2);
    world.ask(Command::SetRepeat(Repeat::Track)).unwrap();
    let first = world.play(1);
    world.wanted();
    world.happens(Event::Fetched(first));
    let again = world.ticket(1);
    world.open(again, 100);
    world.happens(Event::TookNext { from: first, ticket: again, entry: EntryId(1) });
    world.heard = Some(99 * SECOND);
    world.hear(1, Duration::ZERO);
    assert_eq!(world.current(), Some(1));
    assert!(world.wanted().contains(&Effect::Abandon(first)));
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut world = World::with_tracks(2);
    let before = world.machine.queue().revision();
    let good = "segue:demo:track:9".to_owned();
    for bad in ["nonsense", "file:///etc/passwd", "segue:demo:album:1", "segue:demo:track:"] {
        let uris = vec![good.clone(), bad.to_owned()];
        assert!(world.ask(Command::Add { uris, before: None }).is_err(), "{bad}");
    }
    let before_nothing = Command::Add { uris: vec![good], before: Some(EntryId(77)) };
    assert_eq!(world.ask(before_nothing), Err(CommandError::NoSuchEntry(EntryId(77))));
    assert!(world.ask(Command::SetVolume(f64::NAN)).is_err());
    assert_eq!(World::new().ask(Command::Play), Err(CommandError::EmptyQueue));
    assert_eq!((world.machine.queue().revision(), world.machine.queue().len()), (before, 2));
    let file = vec!["file:///music/a.flac".to_owned()];
    assert!(world.ask(Command::Add { uris: file, before: None }).is_ok());
}

#[test]
fn the_queue_is_full_at_its_cap_and_says_how_much_fits() {
    let mut world = World::new();
    let uris = |count| (0..count).map(|n| format!("http://host/{n}")).collect::<Vec<_>>();
    world.ask(Command::Add { uris: uris(MAX_ENTRIES - 1), before: None }).unwrap();
    let refused = world.ask(Command::Add { uris: uris(2), before: None });
    assert_eq!(refused, Err(CommandError::QueueFull { cap: MAX_ENTRIES, free: 1 }));
    world.ask(Command::Add { uris: uris(1), before: None }).unwrap();
}

#[test]
fn after_a_restart_it_is_where_it_was() {
    let before = World::with_tracks(3);
    let restored = Restored {
        queue: before.machine.queue().clone(),
        current: Some(EntryId(2)),
        position: 17 * SECOND,
        intent: Intent::Playing,
        ..Restored::default()
    };
    let mut world = World::restored(restored.clone());
    let opens_there =
        |e: &Effect| matches!(e, Effect::Open { entry: EntryId(2), start, .. } if *start == 17 * SECOND);
    assert!(world.wanted().iter().any(opens_there));
    let mut paused = World::restored(Restored { intent: Intent::Paused, ..restored });
    assert_eq!((paused.state().status, paused.machine.position(paused.now())), (Status::Paused, 17 * SECOND));
    paused.wanted();
    paused.ask(Command::Play).unwrap();
    assert!(paused.wanted().iter().any(opens_there));
    let Ok(Answer::Added(ids)) = paused.ask(Command::Add { uris: vec!["http://h/".into()], before: None })
    else {
        panic!("not added");
    };
    assert_eq!(ids, [EntryId(4)], "numbers are never used again");
}
