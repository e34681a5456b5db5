//! Stations: what is heard, shown and said when they are cut, fall silent or go off the air.

use crate::support::prelude::*;
use crate::support::radio::{Radio, Show, Speaks};

/// Two recordings as shows of a station, one for each connection.
fn shows(codec: Codec, seeds: [u64; 2]) -> ([Recording; 2], Vec<Show>) {
    let sources = seeds.map(|seed| Recording::music(seed, 44_100, 16, 30.0));
    let titles = ["First - Röyk", "Second - Sopp"];
    let show = |(source, title): (&Recording, &'static str)| Show {
        file: source.encode(codec),
        seconds: source.seconds(),
        title,
        then: None,
    };
    let shows = sources.iter().zip(titles).map(show).collect();
    (sources, shows)
}

/// Waits until this is shown as what plays.
pub(super) async fn wait_title(daemon: &Daemon, title: &str) {
    let looked = async {
        while try_get::<String>(&daemon.metadata().await, "xesam:title").as_deref() != Some(title) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let shown = tokio::time::timeout(PATIENCE, looked).await;
    assert!(shown.is_ok(), "“{title}” was never shown, but {:?}", daemon.metadata().await);
}

/// What was heard between the card's stops.
fn sounds(card: &Card) -> Vec<Recording> {
    let (heard, mut from) = (card.music(), 0);
    let stops = card.events_of("drop").into_iter().map(|stop| stop.number("consumed") as usize);
    let mut sounds = Vec::new();
    for stop in stops.filter(|stop| *stop > 0) {
        sounds.push(heard.cut(from..stop).trimmed());
        from = stop;
    }
    sounds
}

/// The first seconds of what was heard are those of the source, as nearly as the codec allows.
fn assert_heard(heard: &Recording, source: &Recording) {
    let second = source.rate as usize;
    let frames = heard.frames().min(source.frames()).min(5 * second);
    assert!(frames > second, "only {frames} frames were heard");
    let alike = likeness(heard, &source.cut(0..frames));
    assert!(alike.correlation > 0.9, "{alike:?}");
}

async fn is_off_the_air_for_a_while(codec: Codec, speaks: Speaks, seeds: [u64; 2]) {
    let (sources, shows) = shows(codec, seeds);
    let card = Card::new().clock(Clock::Real).plug();
    let radio = Radio::start(speaks, shows);
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[radio.url("/stream")]).await;
    daemon.wait_state("playing").await;
    if codec == Codec::Mp3 {
        wait_title(&daemon, "Röyk").await;
    }
    daemon.wait_position(1_000_000).await;
    radio.off_the_air(true);
    radio.cut();
    daemon.wait_state("buffering").await;
    let before = daemon.position().await;
    radio.off_the_air(false);
    daemon.wait_state("playing").await;
    daemon.wait_position(before + 2_000_000).await;
    if codec == Codec::Mp3 {
        wait_title(&daemon, "Sopp").await;
    }
    daemon.stop().await;
    daemon.wait_state("stopped").await;
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    assert_eq!(radio.served(), 2);
    let sounds = sounds(&card);
    assert_eq!(sounds.len(), 2, "{:?}", sounds.iter().map(Recording::seconds).collect::<Vec<_>>());
    assert_heard(&sounds[0], &sources[0]);
    assert_heard(&sounds[1], &sources[1]);
}

#[tokio::test]
async fn an_mp3_station_that_was_off_the_air_plays_on_and_the_state_tells_the_truth() {
    is_off_the_air_for_a_while(Codec::Mp3, Speaks::Icecast, [301, 302]).await;
}

#[tokio::test]
async fn an_ogg_station_that_was_off_the_air_plays_on_and_the_state_tells_the_truth() {
    is_off_the_air_for_a_while(Codec::Vorbis, Speaks::Icecast, [303, 304]).await;
}

#[tokio::test]
async fn an_old_shoutcast_station_that_was_off_the_air_plays_on() {
    is_off_the_air_for_a_while(Codec::Mp3, Speaks::Shoutcast, [305, 306]).await;
}

#[tokio::test]
async fn a_station_by_a_playlist_that_is_cut_for_a_moment_is_heard_without_a_silence() {
    let (sources, shows) = shows(Codec::Mp3, [307, 308]);
    let card = Card::new().clock(Clock::Real).plug();
    let radio = Radio::start(Speaks::Shoutcast, shows);
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[radio.url("/list.pls")]).await;
    daemon.wait_state("playing").await;
    wait_title(&daemon, "Röyk").await;
    daemon.wait_position(2_000_000).await;
    radio.cut();
    wait_title(&daemon, "Sopp").await;
    let at = daemon.position().await;
    daemon.wait_position(at + 1_000_000).await;
    daemon.stop().await;
    daemon.wait_state("stopped").await;
    assert_eq!(radio.served(), 2);
    let sounds = sounds(&card);
    assert_eq!(sounds.len(), 1, "{:?}", sounds.iter().map(Recording::seconds).collect::<Vec<_>>());
    assert_heard(&sounds[0], &sources[0]);
}

#[tokio::test]
async fn a_station_that_falls_silent_is_connected_anew() {
    let (_, shows) = shows(Codec::Mp3, [309, 310]);
    let card = Card::new().clock(Clock::Real).plug();
    let radio = Radio::start(Speaks::Icecast, shows);
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[radio.url("/stream")]).await;
    daemon.wait_state("playing").await;
    wait_title(&daemon, "Röyk").await;
    radio.fall_silent();
    daemon.wait_state("buffering").await;
    daemon.wait_state("playing").await;
    wait_title(&daemon, "Sopp").await;
    assert_eq!(radio.served(), 2);
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
}

#[tokio::test]
async fn a_stations_title_is_shown_when_it_is_heard_and_not_when_it_comes() {
    const AT: f64 = 8.0;
    let (_, mut shows) = shows(Codec::Mp3, [311, 312]);
    shows[0].then = Some((AT, "Third - Brønn"));
    let card = Card::new().clock(Clock::Real).plug();
    let radio = Radio::start(Speaks::Icecast, shows);
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[radio.url("/stream")]).await;
    daemon.wait_state("playing").await;
    wait_title(&daemon, "Röyk").await;
    assert!(daemon.position().await < 1_500_000, "the first title belongs to the first sound");
    let shown: Dict = daemon.metadata().await;
    assert_eq!(try_get::<String>(&shown, "xesam:album").as_deref(), Some("Example FM"));
    assert_eq!(try_get::<Vec<String>>(&shown, "xesam:artist"), Some(vec!["First".to_owned()]));
    wait_title(&daemon, "Brønn").await;
    // A busy machine shows it late, but nothing shows it early: its bytes came four seconds before.
    let position = daemon.position().await;
    let expected = (AT * 1e6) as i64;
    assert!((expected - 400_000..expected + 1_500_000).contains(&position), "shown at {position} µs");
    let listed = daemon.listed().await;
    assert_eq!(listed.len(), 1);
    assert_eq!(daemon.state().await, "playing");
}
