//! The same entry, opened again: bytes that changed, stations.

use std::time::Duration;

use super::*;
use crate::control::Status;

const SECOND: Duration = Duration::from_secs(1);

fn changed() -> Failure {
    Failure { again: true, ..failure(true) }
}

#[test]
fn an_entry_whose_bytes_changed_goes_on_where_its_sound_ends() {
    let mut world = World::with_tracks(2);
    let first = world.play(1);
    world.happens(Event::Fetched(first));
    world.happens(Event::Tick);
    let prepared = world.ticket(2);
    world.open(prepared, 100);
    world.wanted();
    let reached = 40 * SECOND;
    world.happens(Event::DecodeFailed { ticket: first, failure: changed(), reached });
    let effects = world.wanted();
    assert!(effects.contains(&Effect::Abandon(prepared)), "what follows has to wait");
    let uri = "segue:demo:track:1".parse().unwrap();
    let again = effects.iter().find_map(|effect| match effect {
        Effect::Open { ticket, entry, uri: of, start } if *of == uri => Some((*ticket, *entry, *start)),
        _ => None,
    });
    let (again, entry, start) = again.unwrap();
    assert_eq!((entry, start), (EntryId(1), reached));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Cut { .. } | Effect::EndOfMusic { .. })));
    world.open(again, 100);
    assert!(world.wanted().contains(&Effect::FeedNext(again)));
    world.happens(Event::TookNext { from: first, ticket: again, entry });
    world.hear(1, reached);
    assert_eq!((world.state().status, world.current()), (Status::Playing, Some(1)));
    assert!(world.state().last_error.is_none());
    assert!(world.wanted().contains(&Effect::Abandon(first)));
    world.happens(Event::Fetched(again));
    world.happens(Event::Tick);
    world.ticket(2);
}

#[test]
fn an_entry_that_changes_all_the_time_is_given_up_and_the_next_one_plays() {
    let mut world = World::with_tracks(2);
    let mut ticket = world.play(1);
    for _ in 0..3 {
        world.wanted();
        world.happens(Event::DecodeFailed { ticket, failure: changed(), reached: SECOND / 2 });
        let again = world.ticket(1);
        world.open(again, 100);
        world.happens(Event::TookNext { from: ticket, ticket: again, entry: EntryId(1) });
        world.hear(1, SECOND / 2);
        ticket = again;
    }
    world.wanted();
    world.happens(Event::DecodeFailed { ticket, failure: changed(), reached: SECOND / 2 });
    assert!(world.state().last_error.is_some());
    world.ticket(2);
}

#[test]
fn a_station_is_heard_as_it_is_now_after_a_long_pause_and_as_it_was_after_a_short_one() {
    for (pause, begins_anew) in [(5, false), (40, true)] {
        let mut world = World::with_tracks(1);
        world.ask(Command::Play).unwrap();
        let ticket = world.ticket(1);
        world.happens(Event::Opened(ticket, OpenedTrack { live: true, ..OpenedTrack::default() }));
        world.hear(1, Duration::ZERO);
        world.ask(Command::Pause).unwrap();
        world.wanted();
        world.pass(pause * SECOND);
        world.ask(Command::Play).unwrap();
        let effects = world.wanted();
        assert_eq!(count(&effects, |effect| matches!(effect, Effect::Open { .. })) == 1, begins_anew);
        assert_eq!(effects.contains(&Effect::Abandon(ticket)), begins_anew);
    }
}

#[test]
fn a_stations_sound_that_breaks_off_is_taken_up_again_however_often() {
    let mut world = World::with_tracks(2);
    world.ask(Command::Play).unwrap();
    let mut ticket = world.ticket(1);
    let live = OpenedTrack { live: true, ..OpenedTrack::default() };
    world.happens(Event::Opened(ticket, live.clone()));
    world.hear(1, Duration::ZERO);
    for _ in 0..20 {
        world.wanted();
        world.happens(Event::DecodeFailed { ticket, failure: changed(), reached: 60 * SECOND });
        let again = world.ticket(1);
        world.happens(Event::Opened(again, live.clone()));
        world.happens(Event::TookNext { from: ticket, ticket: again, entry: EntryId(1) });
        world.hear(1, Duration::ZERO);
        ticket = again;
    }
    assert_eq!((world.current(), world.state().last_error), (Some(1), None));
    assert_eq!(world.machine.position_to_keep(world.now()), Duration::ZERO);
}

fn now_playing(ticket: Ticket, info: TrackInfo) -> Event {
    Event::NowPlaying { entry: EntryId(1), ticket, info: Some(info), codec: "Opus".to_owned() }
}

#[test]
fn a_stations_title_is_shown_while_it_is_heard_and_not_kept() {
    let mut world = World::with_tracks(1);
    let ticket = world.play(1);
    let name = TrackInfo { title: Some("Radio".into()), ..TrackInfo::default() };
    world.happens(Event::Info(EntryId(1), name));
    world.wanted();
    let song = TrackInfo { title: Some("Song".into()), artists: vec!["Band".into()], ..TrackInfo::default() };
    world.happens(now_playing(ticket, song.clone()));
    let shown = |world: &World| (*world.state().current.unwrap().info).clone();
    assert_eq!(shown(&world).title.as_deref(), Some("Song"));
    assert_eq!(shown(&world).album.as_deref(), Some("Radio"));
    assert_eq!(world.state().output.codec, "Opus");
    assert_eq!(count(&world.wanted(), |effect| matches!(effect, Effect::SaveQueue | Effect::SaveState)), 0);
    assert_eq!(world.machine.queue().get(EntryId(1)).unwrap().info.title.as_deref(), Some("Radio"));
    world.happens(now_playing(ticket, TrackInfo::default()));
    assert_eq!(shown(&world).title.as_deref(), Some("Radio"), "it says nothing any more");
    world.happens(now_playing(ticket, song));
    world.happens(Event::DecodeFailed { ticket, failure: failure(true), reached: SECOND });
    world.ask(Command::Stop).unwrap();
    assert_eq!(shown(&world).title.as_deref(), Some("Radio"));
}

#[test]
fn a_playlist_becomes_its_tracks_without_a_break() {
    let mut world = World::with_tracks(2);
    let ticket = world.play(1);
    world.wanted();
    let track = |name: &str| {
        let info = TrackInfo { title: Some(name.to_owned()), ..TrackInfo::default() };
        (format!("http://host/{name}").parse().unwrap(), info)
    };
    let listed = ["dead", "one", "two", "three"].map(track).to_vec();
    world.happens(Event::Listed { ticket, listed, playing: 1 });
    let effects = world.wanted();
    let queue: Vec<String> =
        world.machine.queue().entries().iter().map(|entry| entry.uri.to_string()).collect();
    let host = |name: &str| format!("http://host/{name}");
    assert_eq!(queue, [host("dead"), host("one"), host("two"), host("three"), "segue:demo:track:2".into()]);
    assert_eq!(world.current(), Some(1), "it is heard on under the same number");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Open { .. } | Effect::Cut { .. })));
    world.happens(Event::Fetched(ticket));
    world.happens(Event::Tick);
    let opened = world.wanted().into_iter().find_map(|effect| match effect {
        Effect::Open { uri, .. } => Some(uri.to_string()),
        _ => None,
    });
    assert_eq!(opened, Some(host("two")));
}

/// A station that is heard, before another entry.
fn station() -> (World, Ticket) {
    let mut world = World::with_tracks(2);
    world.ask(Command::Play).unwrap();
    let ticket = world.ticket(1);
    world.happens(Event::Opened(ticket, OpenedTrack { live: true, ..OpenedTrack::default() }));
    world.hear(1, Duration::ZERO);
    (world, ticket)
}

/// Nothing of it can be had for a while.
fn is_off_the_air(world: &mut World) {
    for _ in 0..9 {
        let ticket = world.ticket(1);
        world.wanted();
        world.happens(Event::OpenFailed(ticket, failure(true)));
        assert_eq!((world.state().status, world.current()), (Status::Buffering, Some(1)));
        assert_eq!(count(&world.wanted(), |effect| matches!(effect, Effect::Open { .. })), 0, "not at once");
        world.pass(16 * SECOND);
        world.happens(Event::Tick);
    }
    let ticket = world.ticket(1);
    world.happens(Event::Opened(ticket, OpenedTrack { live: true, ..OpenedTrack::default() }));
    world.hear(1, Duration::ZERO);
    assert_eq!((world.state().status, world.current()), (Status::Playing, Some(1)));
}

#[test]
fn a_station_that_was_heard_is_waited_for_after_a_long_pause() {
    let (mut world, _) = station();
    world.ask(Command::Pause).unwrap();
    world.pass(60 * SECOND);
    world.ask(Command::Play).unwrap();
    is_off_the_air(&mut world);
}

#[test]
fn a_station_that_was_heard_is_waited_for_after_its_sound_broke_off_and_after_a_restart() {
    let (mut world, ticket) = station();
    world.wanted();
    world.happens(Event::DecodeFailed { ticket, failure: changed(), reached: SECOND });
    world.happens(Event::Empty(world.machine.valid_from()));
    is_off_the_air(&mut world);
    let restored = Restored {
        queue: world.machine.queue().clone(),
        current: world.machine.current(),
        intent: Intent::Playing,
        station: world.machine.is_station(),
        ..Restored::default()
    };
    is_off_the_air(&mut World::restored(restored));
}

#[test]
fn a_station_that_its_plugin_gave_up_makes_way() {
    let (mut world, ticket) = station();
    world.wanted();
    world.happens(Event::DecodeFailed { ticket, failure: changed(), reached: SECOND });
    let again = world.ticket(1);
    let gone = Failure { code: "plugin", ..failure(true) };
    world.happens(Event::OpenFailed(again, gone));
    world.ticket(2);
}

#[test]
fn a_next_track_on_which_the_decoder_breaks_down_before_its_turn_is_passed_over() {
    let mut world = World::with_tracks(3);
    let first = world.play(1);
    world.happens(Event::Fetched(first));
    let second = world.ticket(2);
    world.open(second, 100);
    world.wanted();
    let failure = Failure { code: "decode", message: "2: ran away".into(), for_good: true, again: false };
    world.happens(Event::DecodeFailed { ticket: second, failure, reached: Duration::ZERO });
    assert_ne!(world.ticket(3), second);
    assert!(world.wanted().contains(&Effect::Abandon(second)));
    assert_eq!(world.current(), Some(1), "the first is still heard");
}
