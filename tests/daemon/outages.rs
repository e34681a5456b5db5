//! Servers that stall, refuse and forget. What else they do is in `tests/streams`.

use crate::support::prelude::*;

#[tokio::test]
async fn a_connection_that_stalls_is_made_anew_and_the_bus_answers_meanwhile() {
    let (card, server) = (Card::new().plug(), Server::start());
    let source = Recording::music(33, 44_100, 16, 5.0);
    let stall = Trouble::StallAfter { bytes: 150_000, times: 1 };
    let url = server.serve_with("/a.flac", source.encode(Codec::Flac), &[stall]);
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    daemon.wait_state("playing").await;
    daemon.wait_state("buffering").await;
    let asked = Instant::now();
    daemon.position().await;
    assert!(asked.elapsed() < Duration::from_millis(500), "{:?}", asked.elapsed());
    daemon.wait_end(0).await;
    assert_eq!(server.requests("/a.flac").len(), 2);
    assert_heard_with_one_gap(&card.music(), &source);
}

/// All of it, with one silence in between, and a fade after that.
fn assert_heard_with_one_gap(heard: &Recording, source: &Recording) {
    let heard = heard.trimmed();
    let differs = heard.samples.chunks(2).zip(source.samples.chunks(2)).position(|(a, b)| a != b);
    let Some(at) = differs else { return assert_exact(&heard, source) };
    let silent = heard.samples.chunks(2).skip(at).take_while(|frame| **frame == [0, 0]).count();
    // The first frame of a fade in is silent too.
    let fade = source.rate as usize * 6 / 1_000;
    let rest = source.frames() - at;
    let without = heard.cut(0..at).then(&heard.cut(heard.frames() - rest..heard.frames()));
    assert!(silent > 0 || heard.frames() == source.frames(), "{}", difference(&heard, source));
    assert_exact_outside(&without, source, &[at..at + fade]);
}

#[tokio::test]
async fn a_url_that_answers_403_after_two_seconds_is_asked_for_anew_once() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let plugin = Plugin::new(&server, "tests");
    let source = Recording::music(34, 44_100, 16, 6.0);
    let file = source.encode(Codec::Flac);
    // A connection too slow to have fetched it all by then.
    let slow = Trouble::Throttle(file.bytes.len() / 4);
    server.serve_with("/a.flac", file, &[slow]);
    let lives = [Duration::from_secs(2), Duration::from_secs(600)];
    let uri = plugin.add("a", Track::expiring("/a.flac", "audio/flac", &lives));
    let mut daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
    daemon.play_to_the_end(&[uri]).await;
    assert_exact(&card.music(), &source);
    assert_eq!(plugin.calls("stream").len(), 2);
    let statuses: Vec<u16> = server.requests("/a.flac").into_iter().map(|request| request.status).collect();
    assert_eq!(statuses, [206, 403, 206]);
    assert_eq!(daemon.events("renewed"), 1);
}

/// Plays a little faster than the server gives, pauses until the URL has run out, and goes on.
async fn paused_beyond_the_end_of_its_url(says_so: bool) {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let plugin = Plugin::new(&server, "tests");
    let source = Recording::music(35, 44_100, 16, 7.0);
    // So slow that more than a third is missing when the URL runs out.
    let file = source.encode(Codec::Wav);
    server.serve_with("/a.wav", file, &[Trouble::Throttle(190_000)]);
    let lives = [Duration::from_secs(4), Duration::from_secs(600)];
    let track = Track::expiring("/a.wav", "audio/wav", &lives);
    let uri = plugin.add("a", if says_so { track.and_says_so() } else { track });
    let mut daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
    daemon.play_uris(&[uri]).await;
    daemon.wait_position(1_000_000).await;
    daemon.pause().await;
    let resolved = plugin.calls("stream")[0].at;
    tokio::time::sleep_until((resolved + lives[0] + Duration::from_millis(300)).into()).await;
    assert_eq!(daemon.state().await, "paused");
    let before = daemon.position().await;
    daemon.play().await;
    daemon.wait_state("playing").await;
    assert!(daemon.position().await >= before);
    daemon.wait_end(0).await;
    let paused_at = card.events_of("drop")[0].number("consumed") as usize;
    assert_exact_outside(&card.music(), &source, &[paused_at..paused_at + 44_100 * 6 / 1_000]);
    assert_eq!(plugin.calls("stream").len(), 2, "asked {:?}", plugin.calls("stream"));
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
}

#[tokio::test]
async fn a_url_that_expires_while_paused_is_resolved_once() {
    paused_beyond_the_end_of_its_url(true).await;
}

#[tokio::test]
async fn a_url_that_is_refused_after_a_pause_without_a_word_is_resolved_once() {
    paused_beyond_the_end_of_its_url(false).await;
}
