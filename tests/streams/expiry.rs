//! URLs that run out while a track plays, and while it is paused.

use crate::support::prelude::*;

/// Of the long track, against real time.
const SPEED: f64 = 14.0;
const TEN_MINUTES: f64 = 600.0;
const LIFE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn ten_minutes_by_urls_that_live_five_seconds_play_without_a_break() {
    // It consumes nothing until a little is there: a server that gives 1.3 times what is played gives no head start.
    let card = Card::new().clock(Clock::Times(SPEED)).fault(Fault::Freeze).plug();
    let server = Server::start();
    let plugin = Plugin::new(&server, "tests");
    // A low rate keeps the work small that a fast card makes.
    let source = Recording::music(8_000, 8_000, 16, TEN_MINUTES);
    let file = source.encode(Codec::Flac);
    let pace = file.bytes.len() as f64 / TEN_MINUTES * SPEED * 1.3;
    server.serve_with("/long.flac", file.clone(), &[Trouble::Throttle(pace as usize)]);
    let uri = plugin.add("long", Track::expiring("/long.flac", "audio/flac", &[LIFE]).and_says_so());
    let mut daemon =
        Daemon::new().card(&card).plugin(&plugin).output("buffer_ms = 2000").log_level("info").start().await;
    daemon.play_uris(&[uri]).await;
    while get::<f64>(&daemon.buffer().await, "seconds_ahead") < 10.0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    card.heal();
    daemon.wait_state("playing").await;
    let from = daemon.record.len();
    wait_long(&mut daemon).await;
    let while_playing = daemon.record.all().split_off(from);
    assert!(!while_playing.contains(&Said::State("buffering".to_owned())), "{while_playing:?}");
    let mut xruns = card.events_of("xrun");
    // The silence behind the last frame is over sooner on a fast card.
    xruns.retain(|event| (event.number("consumed") as usize) < source.frames());
    assert!(xruns.is_empty(), "{xruns:?}");
    assert_exact(&card.music(), &source);

    let requests = server.requests("/long.flac");
    assert!(requests.iter().all(|request| request.status == 206), "{requests:?}");
    let calls = plugin.calls("stream");
    let apart: Vec<Duration> = calls.windows(2).map(|two| two[1].at - two[0].at).collect();
    // Half of a life is left for asking.
    let shortest = LIFE / 2 - Duration::from_millis(100);
    assert!(apart.iter().all(|apart| *apart >= shortest), "asked too often: {apart:?}");
    assert!(apart.iter().all(|apart| *apart < LIFE), "asked too late: {apart:?}");
    assert!(calls.len() >= 8, "the track is so long that {} URLs cannot be enough", calls.len());
    assert_eq!(daemon.events("renewed"), calls.len() - 1);
    let fetched: usize = requests.iter().map(|request| request.sent).sum();
    assert!(fetched < file.bytes.len() * 11 / 10, "{fetched} of {} bytes were sent", file.bytes.len());
}

/// Longer than most tests wait for anything.
async fn wait_long(daemon: &mut Daemon) {
    let until = Instant::now() + 4 * PATIENCE;
    while daemon.events("finished") == 0 {
        assert!(Instant::now() < until, "it is not played to its end");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    daemon.wait_state("stopped").await;
}

#[tokio::test]
async fn after_a_pause_beyond_the_end_of_its_url_one_resolve_and_one_request_go_on_at_the_byte() {
    let (card, server) = (Card::new().clock(Clock::Times(4.0)).plug(), Server::start());
    let plugin = Plugin::new(&server, "tests");
    // Longer than what is sent while the first URL is good, so that the rest has to be fetched after the pause.
    let source = Recording::music(8_001, 48_000, 24, 40.0);
    let file = source.encode(Codec::Wav);
    let total = file.bytes.len();
    server.serve_with("/a.wav", file, &[Trouble::Throttle(1_500_000)]);
    let lives = [Duration::from_secs(4), Duration::from_secs(600)];
    let uri = plugin.add("a", Track::expiring("/a.wav", "audio/wav", &lives).and_says_so());
    let mut daemon =
        Daemon::new().card(&card).plugin(&plugin).config("[stream]\nbuffer = \"2 MiB\"\n").start().await;
    daemon.play_uris(&[uri]).await;
    daemon.wait_position(1_000_000).await;
    daemon.pause().await;
    let resolved = plugin.calls("stream")[0].at;
    tokio::time::sleep_until((resolved + lives[0] + Duration::from_millis(500)).into()).await;
    assert_eq!(plugin.calls("stream").len(), 1, "nothing is needed while it is paused");
    let held = get::<u64>(&daemon.buffer().await, "bytes") as usize;
    daemon.play().await;
    daemon.wait_end(0).await;
    let paused_at = card.events_of("drop")[0].number("consumed") as usize;
    assert_exact_outside(&card.music(), &source, &[paused_at..paused_at + 48 * 6]);
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    assert_eq!(plugin.calls("stream").len(), 2);
    let requests = server.requests("/a.wav");
    let [first, second] = &requests[..] else { panic!("not two requests: {requests:?}") };
    assert_eq!((first.status, second.status), (206, 206));
    let from: usize = second.range.as_ref().unwrap()["bytes=".len()..].trim_end_matches('-').parse().unwrap();
    // What was held at the pause, what had been read before, and what the network still held.
    assert!((held..=first.sent).contains(&from), "from {from}, held {held}, sent {}", first.sent);
    assert_eq!(from + second.sent, total);
}
