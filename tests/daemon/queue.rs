//! The queue changes while what follows is decoded already.

use crate::support::prelude::*;

struct Three {
    card: Card,
    server: Server,
    sources: [Recording; 3],
    uris: [String; 3],
}

/// Three tracks on a card in real time. The ring holds 2 s, so the second one is in it 1 s before the first one's end.
fn three() -> Three {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let sources =
        [(100, 3.0), (101, 1.0), (102, 1.5)].map(|(seed, length)| Recording::music(seed, 44_100, 16, length));
    let uris = [0, 1, 2].map(|n| server.serve(&format!("/{n}.flac"), sources[n].encode(Codec::Flac)));
    Three { card, server, sources, uris }
}

#[tokio::test]
async fn a_track_that_is_removed_after_it_was_decoded_is_not_heard_and_the_next_one_joins() {
    let Three { card, sources, uris, server: _server } = three();
    let mut daemon = Daemon::new().card(&card).start().await;
    let entries = daemon.add(&uris).await;
    daemon.play().await;
    daemon.wait_position(2_000_000).await;
    daemon.queue.call_method("Remove", &vec![entries[1]]).await.unwrap();
    daemon.wait_end(0).await;
    assert_exact(&card.music(), &sources[0].clone().then(&sources[2]));
}

#[tokio::test]
async fn a_track_that_is_put_before_one_that_was_decoded_is_heard_first() {
    let Three { card, sources, uris, server: _server } = three();
    let mut daemon = Daemon::new().card(&card).start().await;
    let entries = daemon.add(&uris[..2]).await;
    daemon.play().await;
    daemon.wait_position(2_000_000).await;
    daemon.insert(&uris[2..], entries[1]).await;
    daemon.wait_end(0).await;
    assert_exact(&card.music(), &sources[0].clone().then(&sources[2]).then(&sources[1]));
}

#[tokio::test]
async fn a_queue_that_is_emptied_falls_silent_at_once() {
    let Three { card, sources, uris, server } = three();
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&uris).await;
    daemon.wait_position(2_000_000).await;
    daemon.queue.call_method("Clear", &()).await.unwrap();
    daemon.wait_state("stopped").await;
    card.wait_for("drop", |events| events.iter().any(|event| event.kind == "drop")).await;
    let heard = card.music();
    assert_exact(&heard, &sources[0].cut(0..heard.frames()));
    assert!(daemon.listed().await.is_empty());
    until("all connections to be closed", || server.connections() == 0).await;
}

#[tokio::test]
async fn a_skip_to_a_track_that_was_fetched_ahead_begins_at_once_and_asks_nothing() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let sources = [(106, 20.0), (107, 1.5)].map(|(seed, length)| Recording::music(seed, 44_100, 16, length));
    let first = server.serve("/0.flac", sources[0].encode(Codec::Flac));
    let second = server.serve("/1.flac", sources[1].encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.add(&[first, second]).await;
    daemon.play().await;
    daemon.wait_position(500_000).await;
    until("the next track is here", || server.requests("/1.flac").iter().any(|request| !request.open)).await;
    // Whoever asked it now would be refused.
    server.withdraw("/1.flac");
    daemon.wait_position(3_000_000).await;
    daemon.next().await;
    daemon.wait_state("playing").await;
    assert_eq!(daemon.current().await, 2);
    daemon.wait_end(0).await;
    assert_eq!((server.requests("/0.flac").len(), server.requests("/1.flac").len()), (1, 1));
    let heard = card.music();
    let from = heard.frames() - sources[1].frames();
    assert_exact(&heard.cut(from..heard.frames()), &sources[1]);
}
