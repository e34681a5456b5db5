//! Which entries are of one album.

use super::*;

fn of_album(album: &str, artist: &str) -> TrackInfo {
    let artists = if artist.is_empty() { Vec::new() } else { vec![artist.to_owned()] };
    TrackInfo { album: Some(album.to_owned()), album_artists: artists, ..TrackInfo::default() }
}

fn place(world: &World, entry: u64) -> (bool, bool) {
    let Place { in_album, continues_album } = world.machine.queue().place(EntryId(entry), false);
    (in_album, continues_album)
}

#[test]
fn neighbours_with_the_same_album_and_artist_are_of_one_album() {
    let mut world = World::with_tracks(5);
    for (entry, album, artist) in [(1, "A", "x"), (2, "A", "x"), (3, "A", ""), (4, "A", "y"), (5, "B", "y")] {
        world.happens(Event::Info(EntryId(entry), of_album(album, artist)));
    }
    let places: Vec<_> = (1..=5).map(|entry| place(&world, entry)).collect();
    assert_eq!(places, [(true, false), (true, true), (true, true), (true, true), (false, false)]);
    world.ask(Command::Remove(vec![EntryId(3)])).unwrap();
    assert_eq!(place(&world, 4), (false, false), "other artists' album of the same name");
}

#[test]
fn what_is_not_known_yet_is_of_the_album_in_whose_folder_it_lies() {
    let mut world = World::new();
    let uris = ["http://h/a/1.flac?t=1", "http://h/a/2.flac", "http://h/b/1.flac", "segue:demo:track:1"];
    world.ask(Command::Add { uris: uris.map(str::to_owned).to_vec(), before: None }).unwrap();
    assert_eq!(place(&world, 1), (false, false), "nothing is known");
    world.happens(Event::Info(EntryId(2), of_album("A", "x")));
    world.happens(Event::Info(EntryId(4), of_album("A", "x")));
    assert_eq!([1, 2, 3, 4].map(|entry| place(&world, entry).0), [true, true, false, false]);
}

#[test]
fn an_opened_track_is_told_its_place_before_it_is_decoded() {
    let mut world = World::with_tracks(2);
    for entry in 1..=2 {
        world.happens(Event::Info(EntryId(entry), of_album("A", "x")));
    }
    let first = world.play(1);
    world.happens(Event::Fetched(first));
    let second = world.ticket(2);
    world.wanted();
    world.open(second, 100);
    let effects = world.wanted();
    let placed = Effect::Place(second, Place { in_album: true, continues_album: true });
    let at = |wanted: &Effect| effects.iter().position(|effect| effect == wanted).unwrap();
    assert!(at(&placed) < at(&Effect::FeedNext(second)));
}
