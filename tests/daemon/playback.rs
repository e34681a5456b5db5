//! Pause, seek, skip, volume: nothing is lost, nothing is heard twice.

use crate::support::prelude::*;

/// After a cut the sound fades in over 5 ms.
fn fade(rate: u32) -> usize {
    rate as usize * 6 / 1_000
}

#[tokio::test]
async fn pause_and_resume_lose_and_repeat_nothing() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let source = Recording::music(70, 48_000, 16, 4.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    for position in [700_000, 1_500_000, 2_200_000] {
        daemon.wait_position(position).await;
        daemon.pause().await;
        daemon.wait_state("paused").await;
        let held = daemon.position().await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        assert_eq!(daemon.position().await, held, "the position moves during the pause");
        daemon.play().await;
        daemon.wait_state("playing").await;
    }
    daemon.wait_end(0).await;
    let drops = card.events_of("drop");
    let cuts = drops.iter().map(|event| event.number("consumed") as usize).filter(|at| *at < source.frames());
    let faded: Vec<_> = cuts.map(|at| at..at + fade(48_000)).collect();
    assert_eq!(faded.len(), 3, "{drops:?}");
    assert_exact_outside(&card.music(), &source, &faded);
}

#[tokio::test]
async fn the_sound_stops_soon_after_pause() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let source = Recording::music(71, 48_000, 16, 3.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    daemon.wait_position(500_000).await;
    let asked = Instant::now();
    daemon.pause().await;
    card.wait_for("drop", |events| events.iter().any(|event| event.kind == "drop")).await;
    // 50 ms on an idle machine; the tests may share theirs.
    assert!(asked.elapsed() < Duration::from_millis(250), "{:?}", asked.elapsed());
}

/// What is heard from the first cut on, and where that was.
fn after_the_cut(card: &Card) -> (Recording, usize) {
    let cut = card.events_of("drop")[0].number("consumed") as usize;
    let heard = &card.sessions()[0].heard;
    (heard.cut(cut..heard.frames()).trimmed(), cut)
}

#[tokio::test]
async fn a_seek_in_flac_lands_on_the_frame() {
    for target in [2_500_000, 250_000] {
        let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
        let source = Recording::music(72, 44_100, 16, 4.0);
        let url = server.serve("/a.flac", source.encode(Codec::Flac));
        let mut daemon = Daemon::new().card(&card).start().await;
        daemon.play_uris(&[url]).await;
        daemon.wait_position(1_000_000).await;
        daemon.set_position(target).await;
        daemon.record.wait_from(0, "Seeked", |said| *said == Said::Seeked(target)).await;
        daemon.wait_end(0).await;
        let (heard, cut) = after_the_cut(&card);
        assert_exact(&card.sessions()[0].heard.cut(0..cut), &source.cut(0..cut));
        let frame = target as usize * 441 / 10_000;
        let rest = source.cut(frame..source.frames());
        // The first frame of the fade is silent and so not counted.
        let rest = rest.cut(rest.frames() - heard.frames().min(rest.frames())..rest.frames());
        assert!((source.frames() - frame).abs_diff(heard.frames()) <= 1, "{} frames", heard.frames());
        assert_exact_outside(&heard, &rest, &[0..fade(44_100)]);
    }
}

#[tokio::test]
async fn a_seek_while_paused_is_heard_at_resume_and_shown_at_once() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let source = Recording::music(73, 44_100, 16, 3.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    daemon.wait_position(500_000).await;
    daemon.pause().await;
    daemon.set_position(2_000_000).await;
    assert_eq!(daemon.position().await, 2_000_000);
    assert_eq!(daemon.state().await, "paused");
    daemon.play().await;
    daemon.wait_end(0).await;
    let (heard, _) = after_the_cut(&card);
    assert!(heard.frames().abs_diff(44_100) <= 1, "{} frames", heard.frames());
    let rest = source.cut(source.frames() - heard.frames()..source.frames());
    assert_exact_outside(&heard, &rest, &[0..fade(44_100)]);
}

#[tokio::test]
async fn seeks_in_quick_succession_never_end_the_music() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    // As long as the ring and the card hold, so that the decoder comes to the end again and again.
    let source = Recording::music(79, 44_100, 16, 2.4);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    daemon.wait_state("playing").await;
    for seek in 0..120 {
        let target = i64::from(seek % 7) * 100_000;
        daemon.set_position(target).await;
        tokio::time::sleep(Duration::from_millis(seek as u64 % 23)).await;
        assert_ne!(daemon.state().await, "stopped", "after {seek} seeks");
    }
    daemon.set_position(1_000_000).await;
    daemon.wait_end(0).await;
    let last =
        card.events_of("drop").iter().rev().map(|event| event.number("consumed") as usize).find(|at| {
            let all = card.sessions()[0].heard.frames();
            all - at > 44_100
        });
    let heard = &card.sessions()[0].heard;
    let rest = heard.cut(last.unwrap()..heard.frames()).trimmed();
    let wanted = source.cut(source.frames() - rest.frames().min(source.frames())..source.frames());
    assert!(rest.frames().abs_diff(source.frames() - 44_100) <= 1, "{} frames", rest.frames());
    assert_exact_outside(&rest, &wanted, &[0..fade(44_100)]);
}

#[tokio::test]
async fn next_and_previous_begin_their_tracks_at_the_first_frame() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let sources = [74, 75].map(|seed| Recording::music(seed, 44_100, 16, 1.5));
    let uris = [0, 1].map(|n| server.serve(&format!("/{n}.flac"), sources[n].encode(Codec::Flac)));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&uris).await;
    let first = daemon.current().await;
    daemon.wait_position(500_000).await;
    daemon.next().await;
    assert_ne!(daemon.current().await, first);
    daemon.wait_position(500_000).await;
    daemon.previous().await;
    assert_eq!(daemon.current().await, first);
    daemon.wait_end(0).await;
    let drops: Vec<usize> =
        card.events_of("drop").iter().map(|event| event.number("consumed") as usize).collect();
    let heard = &card.sessions()[0].heard;
    assert_exact(&heard.cut(0..drops[0]), &sources[0].cut(0..drops[0]));
    let second = heard.cut(drops[0]..drops[1]);
    assert_exact_outside(&second, &sources[1].cut(0..second.frames()), &[0..fade(44_100)]);
    let third = heard.cut(drops[1]..heard.frames()).trimmed();
    let both = sources[0].clone().then(&sources[1]);
    let both = both.cut(both.frames() - third.frames().min(both.frames())..both.frames());
    assert_exact_outside(&third, &both, &[0..fade(44_100)]);
}

#[tokio::test]
async fn volume_scales_every_sample_and_says_so() {
    let (card, server) = (Card::new().clock(Clock::Times(4.0)).plug(), Server::start());
    let source = Recording::music(76, 44_100, 16, 2.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.set_volume(0.5).await;
    daemon.play_uris(&[url]).await;
    daemon.wait_state("playing").await;
    let output = daemon.output().await;
    assert!(!get::<bool>(&output, "bit_perfect"), "{output:?}");
    assert!(get::<String>(&output, "reason").contains("volume"), "{output:?}");
    daemon.wait_end(0).await;
    let heard = card.music();
    assert_eq!(heard.frames(), source.frames());
    let step = if card.sessions()[0].format == "S16_LE" { 1 << 17 } else { 1 << 9 };
    let off =
        heard.samples.iter().zip(&source.samples).map(|(heard, source)| (heard - source / 2).abs()).max();
    assert!(off.unwrap() <= step, "up to {off:?} off");
}

#[tokio::test]
async fn what_is_shown_follows_the_ear() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let plugin = Plugin::new(&server, "tests");
    let sources = [77, 78].map(|seed| Recording::music(seed, 44_100, 16, 2.0));
    let uris = [0, 1].map(|n| {
        let url = server.serve(&format!("/{n}.flac"), sources[n].encode(Codec::Flac));
        plugin.add(&n.to_string(), Track::at(url, "audio/flac").titled(&format!("Title {n}")))
    });
    let mut daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
    daemon.play_uris(&uris).await;
    // By now the decoder is far in the second track.
    daemon.wait_position(1_700_000).await;
    let metadata = daemon.metadata().await;
    assert_eq!(get::<String>(&metadata, "xesam:title"), "Title 0");
    assert_eq!(get::<Vec<String>>(&metadata, "xesam:artist"), ["Test artist"]);
    assert_eq!(get::<i64>(&metadata, "mpris:length"), 2_000_000);
    assert_eq!(get::<String>(&metadata, "xesam:url"), uris[0]);
    daemon.wait_event("joined").await;
    let heard = card.frames_heard() as i64 - sources[0].frames() as i64;
    assert!(heard > -2_205, "the second track was announced {} frames too early", -heard);
    assert_eq!(get::<String>(&daemon.metadata().await, "xesam:title"), "Title 1");
    assert!(daemon.position().await < 700_000);
}
