//! The network goes away and comes back, with a small buffer.

use crate::fault::{Authority, Door, FaultServer, head};
use crate::gaps::{heard_since, heard_with_gaps};
use crate::support::prelude::*;

/// The card runs so much faster than real time; the time-outs are shortened with it.
const SPEED: u32 = 6;

/// Plays a FLAC of a minute, and cuts the network off for so many seconds of the card's. Says how often it
/// had to buffer.
async fn cut_off_for(seconds: u32, seed: u64) -> usize {
    let (card, server) = (
        Card::new().clock(Clock::Times(f64::from(SPEED))).plug(),
        FaultServer::start(&Authority::new("Segue's tests")),
    );
    let source = Recording::music(seed, 44_100, 16, 60.0);
    let file = source.encode(Codec::Flac);
    let a_second = file.bytes.len() / 60 * SPEED as usize;
    let url = server.serve(Door::Http, "a.flac", file, vec![head("").pace(3 * a_second).rest()]);
    let mut daemon = Daemon::new()
        .card(&card)
        .output("buffer_ms = 1000")
        .config("[stream]\nbuffer = \"2 MiB\"\nconnect_s = 1\nsilence_s = 1\ngive_up_s = 10\n")
        .start()
        .await;
    daemon.play_uris(&[url]).await;
    daemon.wait_position(12_000_000).await;
    let from = daemon.record.len();
    let cut = server.cut_off(Door::Http);
    let until = Instant::now() + Duration::from_secs(u64::from(seconds)) / SPEED;
    if seconds > 30 {
        daemon.wait_state("buffering").await;
        let reason = async || daemon.player.get_property::<String>("StateReason").await.unwrap();
        while reason().await != "network" {
            assert!(Instant::now() < until, "the reason is never the network");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    tokio::time::sleep_until(until.into()).await;
    drop(cut);
    daemon.wait_end(from).await;
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    assert!(!server.fetched_twice_at_once("a.flac"));
    let buffered = daemon
        .record
        .all()
        .into_iter()
        .skip(from)
        .filter(|said| *said == Said::State("buffering".to_owned()));
    let (buffered, gaps) =
        (buffered.count(), heard_with_gaps(&heard_since(&card, 0).unwrap(), &source, false).unwrap());
    // A card that was given back meanwhile records no silence.
    assert!(gaps <= buffered, "{gaps} silences, but buffering {buffered} times");
    buffered
}

#[tokio::test]
async fn a_network_that_is_gone_for_one_or_five_seconds_is_not_heard() {
    let (one, five) = tokio::join!(cut_off_for(1, 7_001), cut_off_for(5, 7_002));
    assert_eq!((one, five), (0, 0));
}

#[tokio::test]
async fn a_network_that_is_gone_for_a_minute_is_waited_for_and_the_track_goes_on_by_itself() {
    assert_eq!(cut_off_for(60, 7_003).await, 1);
}
