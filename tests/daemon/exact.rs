//! Lossless music arrives as it was recorded.

use crate::support::card::CardEvent;
use crate::support::prelude::*;

#[tokio::test]
async fn flac_from_a_plugin_arrives_bit_for_bit() {
    for (rate, bits) in [(44_100, 16), (48_000, 16), (44_100, 24), (96_000, 24)] {
        let (card, server) = (Card::new().plug(), Server::start());
        let plugin = Plugin::new(&server, "tests");
        let source = Recording::music(10, rate, bits, 2.5);
        let uri =
            plugin.add("a", Track::at(server.serve("/a.flac", source.encode(Codec::Flac)), "audio/flac"));
        let mut daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
        daemon.add(&[uri]).await;
        daemon.play().await;
        daemon.wait_end(0).await;
        assert_exact(&card.music(), &source);
        assert_eq!(plugin.calls("stream").len(), 1, "one URL is enough");
        assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    }
}

#[tokio::test]
async fn a_piece_of_the_demo_plugin_arrives_bit_for_bit_although_its_urls_expire() {
    let card = Card::new().clock(Clock::Times(8.0)).plug();
    let mut daemon = Daemon::new().card(&card).bundled("demo").start().await;
    let (results, errors) = daemon.search("dew").await.unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    let uri: String = get(&results[0], "uri");
    daemon.play_to_the_end(&[uri]).await;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/plugins/demo/music/1-dew.flac");
    let wav = std::process::Command::new("flac").args(["-d", "-s", "-c", file]).output().unwrap().stdout;
    assert_exact(&card.music(), &Recording::from_wav(&wav));
}

#[tokio::test]
async fn a_card_that_takes_16_bits_only_gets_16_bit_music_untouched() {
    let (card, server) = (Card::new().formats(&["S16_LE"]).plug(), Server::start());
    let source = Recording::music(11, 44_100, 16, 1.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_to_the_end(&[url]).await;
    assert_exact(&card.music(), &source);
}

#[tokio::test]
async fn three_tracks_cut_from_one_recording_arrive_as_that_recording() {
    let whole = Recording::music(12, 44_100, 16, 6.0);
    let end = whole.frames();
    for (clock, cuts) in [(Clock::Demand, [44_101, 132_299]), (Clock::Times(4.0), [88_200, 176_400])] {
        let (card, server) = (Card::new().clock(clock).plug(), Server::start());
        let plugin = Plugin::new(&server, "tests");
        let uris = [0..cuts[0], cuts[0]..cuts[1], cuts[1]..end].map(|part| {
            let path = format!("/{}.flac", part.start);
            let url = server.serve(&path, whole.cut(part).encode(Codec::Flac));
            plugin.add(&path[1..], Track::at(url, "audio/flac"))
        });
        let mut daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
        daemon.play_to_the_end(&uris).await;
        assert_exact(&card.music(), &whole);
        assert_eq!(card.events_of("params").len(), 1, "the card was set up again");
        let in_the_music = |event: &&CardEvent| (event.number("consumed") as usize) < whole.frames();
        assert_eq!(card.events_of("xrun").iter().filter(in_the_music).count(), 0);
        assert_eq!(daemon.events("joined"), 2);
    }
}

#[tokio::test]
async fn tracks_of_different_rates_are_each_heard_whole_at_their_own_rate() {
    let (card, server) = (Card::new().clock(Clock::Times(8.0)).plug(), Server::start());
    let rates = [44_100, 48_000, 44_100];
    let sources = rates.map(|rate| Recording::music(13 + u64::from(rate), rate, 16, 2.0));
    let number = |n: usize| server.serve(&format!("/{n}.flac"), sources[n].encode(Codec::Flac));
    let uris = [number(0), number(1), number(2)];
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_to_the_end(&uris).await;
    let sessions = card.sessions();
    assert_eq!(sessions.iter().map(|session| session.heard.rate).collect::<Vec<_>>(), rates);
    for (session, source) in sessions.iter().zip(&sources) {
        assert_exact(&session.heard, source);
    }
}
