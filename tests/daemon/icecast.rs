//! The real icecast2: titles, listeners that are thrown out, restarts.

use crate::radio::wait_title;
use crate::support::icecast::Icecast;
use crate::support::prelude::*;

/// Waits until another than this one listens, and says who.
async fn wait_listener(icecast: &Icecast, mount: &str, other_than: Option<u64>) -> u64 {
    let mut found = None;
    until("somebody listens", || {
        found = icecast.listeners(mount).into_iter().find(|id| Some(*id) != other_than);
        found.is_some()
    })
    .await;
    found.unwrap()
}

/// Sound goes on: for another second, from now.
async fn plays_on(daemon: &mut Daemon) {
    daemon.wait_state("playing").await;
    let at = daemon.position().await;
    daemon.wait_position(at + 1_000_000).await;
}

async fn survives_kicks_and_restarts(codec: Codec, seed: u64) {
    let Some(mut icecast) = Icecast::start().await else { return };
    let card = Card::new().clock(Clock::Real).plug();
    let recording = Recording::music(seed, 48_000, 16, 20.0);
    let source = icecast.source("/live", recording.encode(codec), recording.seconds());
    let mut daemon = Daemon::new().card(&card).start().await;
    icecast.wait_on_the_air("/live").await;
    let titled = codec == Codec::Mp3;
    if titled {
        icecast.set_title("/live", "Sigur Rós - Glósóli");
    }
    daemon.play_uris(&[icecast.url("/live")]).await;
    plays_on(&mut daemon).await;
    if titled {
        wait_title(&daemon, "Glósóli").await;
        icecast.set_title("/live", "Röyksopp - Don't Go; 'Eple'");
        wait_title(&daemon, "Don't Go; 'Eple'").await;
    }
    let listener = wait_listener(&icecast, "/live", None).await;
    icecast.kick("/live", listener);
    wait_listener(&icecast, "/live", Some(listener)).await;
    plays_on(&mut daemon).await;
    icecast.end();
    daemon.wait_state("buffering").await;
    icecast.begin().await;
    plays_on(&mut daemon).await;
    if titled {
        icecast.wait_on_the_air("/live").await;
        icecast.set_title("/live", "After");
        wait_title(&daemon, "After").await;
    }
    daemon.stop().await;
    daemon.wait_state("stopped").await;
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    drop(source);
    let heard = card.music().trimmed();
    assert!(heard.seconds() > 3.0, "{} s", heard.seconds());
}

#[tokio::test]
async fn an_mp3_mount_survives_kicks_and_restarts_and_tells_its_titles() {
    survives_kicks_and_restarts(Codec::Mp3, 401).await;
}

#[tokio::test]
async fn a_vorbis_mount_survives_kicks_and_restarts() {
    survives_kicks_and_restarts(Codec::Vorbis, 402).await;
}

#[tokio::test]
async fn an_opus_mount_survives_kicks_and_restarts() {
    survives_kicks_and_restarts(Codec::Opus, 403).await;
}

#[tokio::test]
async fn the_playlist_that_icecast_makes_for_a_mount_leads_to_it() {
    let Some(mut icecast) = Icecast::start().await else { return };
    let card = Card::new().clock(Clock::Real).plug();
    let recording = Recording::music(404, 48_000, 16, 20.0);
    let _source = icecast.source("/live", recording.encode(Codec::Mp3), recording.seconds());
    let mut daemon = Daemon::new().card(&card).start().await;
    icecast.wait_on_the_air("/live").await;
    icecast.set_title("/live", "A - B");
    for list in ["/live.m3u", "/live.xspf"] {
        daemon.play_uris(&[icecast.url(list)]).await;
        plays_on(&mut daemon).await;
        wait_title(&daemon, "B").await;
    }
}
