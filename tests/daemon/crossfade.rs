//! One track fades into the next, where a person wants that.

use std::f64::consts::FRAC_PI_2;
use std::process::Command;
use std::sync::Arc;

use crate::support::prelude::*;

/// What is heard of two tracks with a fade of so many frames.
fn faded(first: &Recording, second: &Recording, frames: usize) -> Recording {
    let begin = first.frames() - frames;
    let mut mixed = first.cut(begin..first.frames());
    for (at, sample) in mixed.samples.iter_mut().enumerate() {
        let (rise, fall) = (((at / 2) as f64 + 0.5) / frames as f64 * FRAC_PI_2).sin_cos();
        *sample = (f64::from(second.samples[at]) * rise + f64::from(*sample) * fall).round() as i32;
    }
    first.cut(0..begin).then(&mixed).then(&second.cut(frames..second.frames()))
}

/// FLAC with tags, where some are wanted.
fn flac(of: &Recording, album: Option<&str>) -> Encoded {
    let Encoded { bytes, content_type } = of.encode(Codec::Flac);
    let Some(album) = album else { return Encoded { bytes, content_type } };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.flac");
    std::fs::write(&file, bytes.as_slice()).unwrap();
    let tag = format!("--set-tag=ALBUM={album}");
    assert!(Command::new("metaflac").arg(tag).arg(&file).status().unwrap().success());
    Encoded { bytes: Arc::new(std::fs::read(&file).unwrap()), content_type }
}

async fn reason(daemon: &Daemon) -> (bool, String) {
    let output = daemon.output().await;
    (get(&output, "bit_perfect"), get(&output, "reason"))
}

fn fade_of(millis: u32) -> String {
    format!("[sound]\ncrossfade_ms = {millis}\n")
}

#[tokio::test]
async fn a_fade_is_the_sum_of_both_tracks_by_the_curve_frame_by_frame() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let sources = [50, 51].map(|seed| Recording::music(seed, 44_100, 16, 5.0));
    let uris = [0, 1].map(|n| server.serve(&format!("/{n}.flac"), flac(&sources[n], None)));
    let mut daemon = Daemon::new().card(&card).config(&fade_of(1_500)).start().await;
    let ids = daemon.add(&uris).await;
    daemon.play().await;
    daemon.wait_position(2_500_000).await;
    assert_eq!(reason(&daemon).await, (true, String::new()), "before the fade");
    daemon.wait_event("joined").await;
    assert_eq!(daemon.current().await, ids[1], "the next track is the current one where the fade begins");
    assert_eq!(reason(&daemon).await, (false, "crossfade".to_owned()));
    assert!(daemon.position().await < 1_500_000);
    until_async("the fade is over", async || reason(&daemon).await == (true, String::new())).await;
    let position = daemon.position().await;
    assert!(position >= 1_500_000, "at {position} µs the fade was said to be over");
    daemon.wait_end(0).await;
    assert_exact(&card.music(), &faded(&sources[0], &sources[1], 66_150));
    assert_eq!(card.events_of("params").len(), 1, "the card was set up again");
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
}

#[tokio::test]
async fn an_album_short_tracks_and_other_formats_are_joined_without_a_fade() {
    let music = |seed, rate, seconds| Recording::music(seed, rate, 16, seconds);
    let long = music(52, 44_100, 5.0);
    let cases = [
        ("of an album", music(53, 44_100, 5.0), Some("A")),
        ("shorter than twice the fade", music(54, 44_100, 1.9), None),
        ("of another rate", music(55, 48_000, 5.0), None),
    ];
    for (what, other, album) in cases {
        for [first, second] in [[&long, &other], [&other, &long]] {
            let (card, server) = (Card::new().clock(Clock::Times(4.0)).plug(), Server::start());
            let uris = [("/1.flac", first), ("/2.flac", second)];
            let uris = uris.map(|(path, recording)| server.serve(path, flac(recording, album)));
            let mut daemon = Daemon::new().card(&card).config(&fade_of(1_000)).start().await;
            daemon.play_to_the_end(&uris).await;
            assert_eq!(daemon.events("joined"), 1, "{what}");
            let sessions: Vec<_> = card.sessions().into_iter().map(|session| session.heard).collect();
            if first.rate == second.rate {
                assert_exact(&card.music(), &first.clone().then(second));
            } else {
                assert_exact(&sessions[0], first);
                assert_exact(&sessions[1], second);
            }
        }
    }
}

#[tokio::test]
async fn a_next_track_that_is_removed_before_its_fade_is_heard_leaves_the_first_one_whole() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let sources = [56, 57].map(|seed| Recording::music(seed, 44_100, 16, 8.0));
    let uris = [0, 1].map(|n| server.serve(&format!("/{n}.flac"), flac(&sources[n], None)));
    let mut daemon = Daemon::new().card(&card).config(&fade_of(4_000)).start().await;
    let ids = daemon.add(&uris).await;
    daemon.play().await;
    // The fade begins at 4 s, and a second at least is decoded ahead.
    daemon.wait_position(3_200_000).await;
    let (status, _, error) = daemon.segue(&["queue", "remove", &ids[1].to_string()]).await;
    assert_eq!(status, 0, "{error}");
    let position = daemon.position().await;
    assert!(position < 3_800_000, "this machine was too slow for the test: {position}");
    daemon.wait_end(0).await;
    assert_exact(&card.music(), &sources[0]);
    assert_eq!(daemon.events("joined"), 0);
}

#[tokio::test]
async fn a_person_who_skips_or_seeks_hears_no_fade() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let sources = [58, 59, 60].map(|seed| Recording::music(seed, 44_100, 16, 5.0));
    let uris = [0, 1, 2].map(|n| server.serve(&format!("/{n}.flac"), flac(&sources[n], None)));
    let mut daemon = Daemon::new().card(&card).config(&fade_of(2_400)).start().await;
    let ids = daemon.add(&uris).await;
    daemon.play().await;
    // The fade, which begins at 2.6 s, is in the ring.
    daemon.wait_position(1_900_000).await;
    daemon.next().await;
    daemon.wait_position(100_000).await;
    assert_eq!((daemon.current().await, reason(&daemon).await.0), (ids[1], true));
    // Within the next fade: back into the third track, which is the current one by now.
    daemon.wait_event("joined").await;
    assert_eq!(daemon.current().await, ids[2]);
    assert_eq!(reason(&daemon).await.1, "crossfade");
    daemon.set_position(1_000_000).await;
    until_async("the fade is left", async || reason(&daemon).await.0).await;
    daemon.wait_end(0).await;
    let heard = card.music();
    let (second, end) = (&sources[1], sources[2].cut(44_100..220_500));
    // Behind the 5 ms that come in softly after the cut.
    let tail = heard.cut(heard.frames() - end.frames() + 441..heard.frames());
    assert_exact(&tail, &end.cut(441..end.frames()));
    let whole = second.cut(1_000..second.frames() * 52 / 100 - 1_000);
    let found = heard.samples.windows(2_048).step_by(2).position(|w| w == &whole.samples[..2_048]);
    let from = found.expect("the second track is heard from its beginning, alone");
    assert_exact(&heard.cut(from..from + whole.frames()), &whole);
}

#[tokio::test]
async fn a_fade_that_is_asked_for_while_music_plays_holds_for_the_next_join() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let sources = [61, 62].map(|seed| Recording::music(seed, 48_000, 24, 4.0));
    let uris = [0, 1].map(|n| server.serve(&format!("/{n}.flac"), flac(&sources[n], None)));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.add(&uris).await;
    daemon.play().await;
    daemon.wait_position(300_000).await;
    let (status, _, error) = daemon.segue(&["sound", "crossfade", "0.5"]).await;
    assert_eq!(status, 0, "{error}");
    daemon.wait_end(0).await;
    assert_exact(&card.music(), &faded(&sources[0], &sources[1], 24_000));
}

/// FLAC as it is made for a pipe: it does not say how long it is.
fn of_unknown_length(of: &Recording) -> Encoded {
    let Encoded { bytes, content_type } = of.encode(Codec::Flac);
    let mut bytes = bytes.to_vec();
    // The 36 bits of the first block that count the samples.
    bytes[21] &= 0xf0;
    bytes[22..26].fill(0);
    Encoded { bytes: Arc::new(bytes), content_type }
}

/// That much of it, and silence up to this length.
fn and_silence(of: &Recording, frames: usize) -> Recording {
    let mut longer = of.clone();
    longer.samples.resize(frames * of.channels, 0);
    longer
}

#[tokio::test]
async fn a_pause_within_a_fade_loses_nothing_of_either_track() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let sources = [63, 64].map(|seed| Recording::music(seed, 44_100, 16, 5.0));
    let uris = [0, 1].map(|n| server.serve(&format!("/{n}.flac"), flac(&sources[n], None)));
    let mut daemon = Daemon::new().card(&card).config(&fade_of(2_000)).start().await;
    let ids = daemon.add(&uris).await;
    daemon.play().await;
    daemon.wait_event("joined").await;
    daemon.wait_position(300_000).await;
    daemon.pause().await;
    card.wait_for("silence", |events| events.iter().any(|event| event.kind == "drop")).await;
    let held = daemon.position().await;
    assert!(held < 2_000_000, "this machine was too slow for the test: {held}");
    assert_eq!((daemon.current().await, reason(&daemon).await.1), (ids[1], "crossfade".to_owned()));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(daemon.position().await, held, "the position moved in silence");
    daemon.play().await;
    daemon.wait_end(0).await;
    let paused = card.events_of("drop")[0].number("consumed") as usize;
    let softly = paused..paused + 44_100 * 6 / 1_000;
    assert_exact_outside(&card.music(), &faded(&sources[0], &sources[1], 88_200), &[softly]);
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
}

#[tokio::test]
async fn next_while_a_fade_is_heard_leaves_both_tracks_for_the_one_behind_them() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let sources = [65, 66, 67].map(|seed| Recording::music(seed, 44_100, 16, 5.0));
    let uris = [0, 1, 2].map(|n| server.serve(&format!("/{n}.flac"), flac(&sources[n], None)));
    let mut daemon = Daemon::new().card(&card).config(&fade_of(2_000)).start().await;
    let ids = daemon.add(&uris).await;
    daemon.play().await;
    daemon.wait_event("joined").await;
    daemon.wait_position(300_000).await;
    assert_eq!(reason(&daemon).await.1, "crossfade");
    daemon.next().await;
    until_async("the fade is left", async || reason(&daemon).await.0).await;
    assert_eq!(daemon.current().await, ids[2]);
    daemon.wait_end(0).await;
    let cut = card.events_of("drop")[0].number("consumed") as usize;
    let before = faded(&sources[0], &sources[1], 88_200).cut(0..cut);
    assert!((132_300..220_500).contains(&cut), "cut at {cut}, not within the fade");
    assert_exact(&card.music(), &before.then(&sources[2]));
    assert_eq!(daemon.events("joined"), 1, "nothing was joined to the third track");
}

#[tokio::test]
async fn a_next_track_that_ends_within_its_own_fade_lets_the_first_fade_out_alone() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let first = Recording::music(68, 44_100, 16, 4.0);
    let short = Recording::music(69, 44_100, 16, 0.6);
    let last = Recording::music(71, 44_100, 16, 5.0);
    let uris = [
        server.serve("/0.flac", flac(&first, None)),
        server.serve("/1.flac", of_unknown_length(&short)),
        server.serve("/2.flac", flac(&last, None)),
    ];
    let mut daemon = Daemon::new().card(&card).config(&fade_of(1_500)).start().await;
    let ids = daemon.add(&uris).await;
    daemon.play().await;
    daemon.wait_event("joined").await;
    assert_eq!((daemon.current().await, reason(&daemon).await.1), (ids[1], "crossfade".to_owned()));
    daemon.wait_end(0).await;
    let mixed = faded(&first, &and_silence(&short, 66_150), 66_150);
    assert_exact(&card.music(), &mixed.then(&last));
    assert_eq!((daemon.events("joined"), daemon.errors()), (2, Vec::new()));
}
