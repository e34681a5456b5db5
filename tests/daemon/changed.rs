//! Files that are others after a while: under the same name, or under the fresh one that a plugin gave.

use crate::support::prelude::*;

/// What is served first gives so little in one answer that the change is met in mid-track.
const LITTLE: Trouble = Trouble::CutAfter { bytes: 60_000, times: usize::MAX };

/// Plays `before`, which becomes `after` once its second request was answered.
async fn plays_exactly(source: &Recording, before: Encoded, after: Encoded, troubles: &[Trouble]) {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let url = server.serve_with("/a", before, &[LITTLE]);
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    daemon.wait_event("fetching").await;
    server.serve_with("/a", after, troubles);
    daemon.wait_end(0).await;
    assert_exact(&card.music(), source);
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    assert!(daemon.events("trouble") >= 1);
    assert_eq!(daemon.events("joined"), 0);
}

#[tokio::test]
async fn a_file_that_changes_in_mid_track_goes_on_at_the_same_frame() {
    let source = Recording::music(38, 44_100, 16, 5.0);
    let mut longer = source.encode(Codec::Wav);
    longer.bytes = Arc::new([&longer.bytes[..], b"junk\x10\0\0\0and some more..."].concat());
    plays_exactly(&source, source.encode(Codec::Wav), longer, &[]).await;
}

#[tokio::test]
async fn a_file_that_becomes_one_of_another_format_goes_on_at_the_same_frame() {
    let source = Recording::music(39, 44_100, 16, 5.0);
    plays_exactly(&source, source.encode(Codec::Flac), source.encode(Codec::Wav), &[]).await;
}

#[tokio::test]
async fn a_changed_file_from_a_server_without_ranges_goes_on_at_the_same_frame() {
    let source = Recording::music(40, 44_100, 16, 5.0);
    let troubles = [Trouble::NoRanges];
    plays_exactly(&source, source.encode(Codec::Wav), source.encode(Codec::Flac), &troubles).await;
}

#[tokio::test]
async fn a_fresh_url_that_leads_to_another_file_goes_on_at_the_same_frame_and_the_next_track_follows() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let plugin = Plugin::new(&server, "tests");
    let (source, next) = (Recording::music(41, 44_100, 16, 6.0), Recording::music(42, 44_100, 16, 1.0));
    server.serve_with("/one", source.encode(Codec::Wav), &[Trouble::Throttle(300_000)]);
    server.serve("/two", source.encode(Codec::Flac));
    server.serve("/next", next.encode(Codec::Flac));
    let lives = [Duration::from_secs(2), Duration::from_secs(600)];
    let track = Track::expiring("/one", "audio/wav", &lives).then_at("/two");
    let uri = plugin.add("a", track.and_says_so());
    let mut daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
    daemon.play_to_the_end(&[uri, server.url("/next")]).await;
    assert_exact(&card.music(), &source.clone().then(&next));
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
}

#[tokio::test]
async fn a_file_that_is_another_at_each_request_is_given_up_with_a_sentence() {
    let (card, server) = (Card::new().plug(), Server::start());
    let source = Recording::music(43, 44_100, 16, 3.0);
    let file = source.encode(Codec::Wav);
    let url = server.serve_with("/a", file, &[Trouble::OtherEachTime, LITTLE]);
    let next = server.serve("/next", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_to_the_end(&[url, next]).await;
    let errors = daemon.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("changed while it was played"), "{errors:?}");
    assert!(server.requests("/a").len() < 20);
}
