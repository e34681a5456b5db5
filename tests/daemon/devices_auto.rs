//! `device = "auto"`: the likeliest card where music begins, and the same one for as long as it is under way.

use crate::support::prelude::*;

/// Longer than a device that is named is waited for before the next of the list is used.
const LONG_AWAY: Duration = Duration::from_millis(4_500);

/// A DAC on USB, and the board's own headphones.
fn machine(clock: Clock) -> (Card, Card, Rack) {
    let dac = Card::new().clock(clock).plug();
    let phones = Card::new().clock(clock).beside(&dac, "Headphones").plug();
    let rack = Rack::of(&[(&phones, "bcm2835_headpho"), (&dac, "USB-Audio")]);
    (dac, phones, rack)
}

fn serve(server: &Server, name: &str, source: &Recording) -> String {
    server.serve(name, source.encode(Codec::Flac))
}

async fn wait_reason(daemon: &Daemon, wanted: &str) {
    until_async(&format!("the reason “{wanted}”"), async || {
        daemon.player.get_property::<String>("StateReason").await.unwrap() == wanted
    })
    .await;
}

async fn wait_device(daemon: &Daemon, wanted: &str) {
    until_async(&format!("the device “{wanted}”"), async || {
        daemon.player.get_property::<String>("Device").await.unwrap() == wanted
    })
    .await;
}

/// Waits until the card has been looked for after it was away for so long.
async fn is_looked_for(card: &Card, away: Duration) {
    until("the card is looked for again and again", || {
        let tries = card.events_of("open_failed");
        let between = tries.first().zip(tries.last()).map_or(0, |(first, last)| last.ns - first.ns);
        u128::from(between) > away.as_nanos()
    })
    .await;
}

fn opened(card: &Card) -> usize {
    card.events_of("open").len()
}

#[tokio::test]
async fn a_dac_that_is_unplugged_while_it_plays_is_waited_for_and_nothing_is_heard_elsewhere() {
    let (dac, phones, rack) = machine(Clock::Real);
    let server = Server::start();
    let source = Recording::music(100, 44_100, 16, 4.0);
    let mut daemon = rack.daemon(Daemon::new().card(&dac)).start().await;
    daemon.play_uris(&[serve(&server, "/a.flac", &source)]).await;
    daemon.wait_position(1_000_000).await;
    wait_device(&daemon, "hw:CARD=dac").await;
    rack.unplug(&dac);
    wait_reason(&daemon, "device").await;
    is_looked_for(&dac, LONG_AWAY).await;
    // Asked for again, it is still that card that is meant.
    daemon.pause().await;
    daemon.play().await;
    wait_reason(&daemon, "device").await;
    rack.plug(&dac);
    daemon.wait_end(0).await;
    let [before, after] = &dac.sessions()[..] else { panic!("{} sessions", dac.sessions().len()) };
    let end = before.heard.trimmed().frames();
    assert_exact(&before.heard.trimmed(), &source.cut(0..end));
    let start = goes_on_at(&after.heard, &source);
    assert_not_skipped(end, start, before.period);
    assert_eq!(start + after.heard.trimmed().frames(), source.frames(), "heard to its end");
    assert_eq!((opened(&phones), daemon.errors().len()), (0, 1), "{:?}", daemon.errors());
}

#[tokio::test]
async fn a_dac_that_goes_between_two_formats_or_in_a_skip_is_waited_for_too() {
    let (dac, phones, rack) = machine(Clock::Real);
    let server = Server::start();
    let sources = [(101, 44_100), (102, 48_000)].map(|(seed, rate)| Recording::music(seed, rate, 16, 2.0));
    let urls = [serve(&server, "/a.flac", &sources[0]), serve(&server, "/b.flac", &sources[1])];
    let mut daemon = rack.daemon(Daemon::new().card(&dac)).start().await;
    daemon.play_uris(&urls).await;
    daemon.wait_position(500_000).await;
    rack.unplug(&dac);
    daemon.next().await;
    wait_reason(&daemon, "device").await;
    is_looked_for(&dac, LONG_AWAY).await;
    rack.plug(&dac);
    daemon.wait_end(0).await;
    assert_exact(&dac.sessions().last().unwrap().heard.trimmed(), &sources[1]);
    assert_eq!(opened(&phones), 0);
}

#[tokio::test]
async fn a_dac_that_is_unplugged_in_a_long_pause_is_the_one_that_plays_on() {
    let (dac, phones, rack) = machine(Clock::Real);
    let server = Server::start();
    let source = Recording::music(103, 44_100, 16, 3.0);
    let setup = Daemon::new().card(&dac).output("release_after_s = 0");
    let mut daemon = rack.daemon(setup).start().await;
    daemon.play_uris(&[serve(&server, "/a.flac", &source)]).await;
    daemon.wait_position(1_000_000).await;
    daemon.pause().await;
    dac.wait_for("let go of", |events| events.iter().any(|event| event.kind == "close")).await;
    rack.unplug(&dac);
    daemon.play().await;
    wait_reason(&daemon, "device").await;
    is_looked_for(&dac, LONG_AWAY).await;
    rack.plug(&dac);
    daemon.wait_end(0).await;
    assert_eq!(opened(&phones), 0);
    let [before, after] = &dac.sessions()[..] else { panic!("{} sessions", dac.sessions().len()) };
    let paused = before.heard.trimmed().frames();
    // With the first frame of its fade, which is silent.
    let heard = before.heard.trimmed().then(&after.heard);
    assert_exact_outside(&heard, &source, &[paused..paused + 44_100 * 6 / 1_000]);
}

#[tokio::test]
async fn a_device_that_was_chosen_is_waited_for_as_well() {
    let (dac, phones, rack) = machine(Clock::Real);
    let server = Server::start();
    let source = Recording::music(104, 44_100, 16, 3.0);
    let mut daemon = rack.daemon(Daemon::new().card(&dac)).start().await;
    daemon.select_output("hw:CARD=Headphones").await.unwrap();
    daemon.play_uris(&[serve(&server, "/a.flac", &source)]).await;
    daemon.wait_position(500_000).await;
    rack.unplug(&phones);
    wait_reason(&daemon, "device").await;
    is_looked_for(&phones, LONG_AWAY).await;
    assert_eq!(opened(&dac), 0, "the choice was another one");
    // A person may choose anew, and it goes on there at once.
    daemon.select_output("").await.unwrap();
    wait_device(&daemon, "hw:CARD=dac").await;
    daemon.wait_end(0).await;
    let [before] = &phones.sessions()[..] else { panic!("{} sessions", phones.sessions().len()) };
    let start = goes_on_at(&dac.sessions()[0].heard, &source);
    assert_not_skipped(before.heard.trimmed().frames(), start, before.period);
}

#[tokio::test]
async fn where_music_begins_the_best_card_that_is_there_is_taken() {
    let (dac, phones, rack) = machine(Clock::Times(4.0));
    let server = Server::start();
    let source = Recording::music(105, 44_100, 16, 2.0);
    let url = serve(&server, "/a.flac", &source);
    rack.unplug(&dac);
    let mut daemon = rack.daemon(Daemon::new().card(&dac).output("release_after_s = 0")).start().await;
    daemon.play_to_the_end(&[&url]).await;
    assert_exact(&phones.music(), &source);
    // A better one appears while nothing plays.
    rack.plug(&dac);
    daemon.play_to_the_end(&[&url]).await;
    assert_exact(&dac.music(), &source);
    // It goes, and a person gives it up.
    daemon.segue(&["queue", "clear"]).await;
    let from = daemon.record.len();
    daemon.play_uris(&[&url]).await;
    daemon.wait_event_from(from, "playing").await;
    rack.unplug(&dac);
    wait_reason(&daemon, "device").await;
    daemon.stop().await;
    let from = daemon.record.len();
    daemon.play().await;
    wait_device(&daemon, "hw:CARD=Headphones").await;
    daemon.wait_end(from).await;
    assert_exact(&phones.sessions()[1].heard.trimmed(), &source);
    assert_eq!(phones.sessions().len(), 2);
}
