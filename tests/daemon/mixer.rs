//! The card's own volume control: followed, set when a person sets it, and never otherwise.

use crate::support::daemon::Setup;
use crate::support::prelude::*;

/// As the virtual control has it: half decibels from -103.5 dB, 207 is 0 dB.
const FULL: i64 = 207;

fn setup(card: &Card) -> Setup {
    Daemon::new().card(card).output("mixer_device = \"dac\"")
}

async fn wait_volume(daemon: &Daemon, what: &str, holds: impl Fn(f64, bool) -> bool) {
    until_async(what, async || {
        let volume: f64 = daemon.player.get_property("Volume").await.unwrap();
        let muted: bool = daemon.player.get_property("Mute").await.unwrap();
        holds(volume, muted)
    })
    .await;
}

async fn wait_control(daemon: &Daemon, wanted: &str) {
    until_async(wanted, async || {
        daemon.player.get_property::<String>("VolumeControl").await.unwrap() == wanted
    })
    .await;
}

#[tokio::test]
async fn the_card_is_set_when_a_person_sets_it_and_never_otherwise() {
    let (card, server) = (Card::new().clock(Clock::Times(8.0)).mixer("").plug(), Server::start());
    card.turn_knob(150, true);
    let sources = [Recording::music(70, 44_100, 16, 3.0), Recording::music(71, 48_000, 24, 3.0)];
    let urls: Vec<String> = sources
        .iter()
        .enumerate()
        .map(|(n, source)| server.serve(&format!("/{n}.flac"), source.encode(Codec::Flac)))
        .collect();
    // Neither does a gain for tracks without tags.
    let sound = "[sound]\nreplay_gain = \"track\"\n";
    let mut daemon = setup(&card).config(sound).start().await;
    wait_control(&daemon, "hardware").await;
    // Read, not set: -28.5 dB is a third of the way on alsamixer's scale.
    wait_volume(&daemon, "what the card stands at", |volume, _| (0.30..0.36).contains(&volume)).await;
    daemon.play_uris(&urls).await;
    daemon.wait_end(0).await;
    let from = daemon.record.len();
    daemon.play().await;
    daemon.wait_event_from(from, "playing").await;
    daemon.pause().await;
    daemon.play().await;
    daemon.stop().await;
    daemon.wait_state("stopped").await;
    let untouched = (0, Some((150, true)));
    assert_eq!((card.mixer_writes(), card.mixer()), untouched, "start, two formats, end, pause, stop");
    for (session, source) in card.sessions().iter().zip(&sources) {
        assert_exact(&session.heard.trimmed(), source);
    }
    daemon.player.set_property("Volume", 1.0).await.unwrap();
    until("full volume", || card.mixer() == Some((FULL, true))).await;
    daemon.player.set_property("Volume", 0.5).await.unwrap();
    until("half volume", || card.mixer().is_some_and(|(step, _)| (168..174).contains(&step))).await;
    // Rounding to the card's steps is nobody's change.
    wait_volume(&daemon, "half", |volume, _| volume == 0.5).await;
    daemon.player.set_property("Mute", true).await.unwrap();
    until("muted by its switch", || card.mixer().is_some_and(|(_, on)| !on)).await;
    daemon.player.set_property("Mute", false).await.unwrap();
    until("loud again", || card.mixer().is_some_and(|(_, on)| on)).await;
    daemon.player.set_property("Volume", 0.0).await.unwrap();
    until("silent", || card.mixer().is_some_and(|(step, _)| step == 0)).await;
    let writes = card.mixer_writes();
    daemon.term().await;
    daemon.start_again().await;
    wait_control(&daemon, "hardware").await;
    wait_volume(&daemon, "what the card stands at", |volume, muted| volume == 0.0 && !muted).await;
    assert_eq!(card.mixer_writes(), writes, "a restart sets nothing");
}

#[tokio::test]
async fn what_is_changed_at_the_card_is_followed_and_announced() {
    let card = Card::new().clock(Clock::Real).mixer("").plug();
    card.turn_knob(FULL, true);
    let source = Recording::music(72, 44_100, 16, 4.0);
    let server = Server::start();
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = setup(&card).start().await;
    daemon.play_uris(&[url]).await;
    daemon.wait_position(200_000).await;
    card.turn_knob(150, true);
    let announced = |said: &Said| matches!(said, Said::Volume(volume) if (0.30..0.36).contains(volume));
    daemon.record.wait_from(0, "the volume", announced).await;
    card.turn_knob(150, false);
    wait_volume(&daemon, "muted at the card", |_, muted| muted).await;
    // Above 0 dB the card would amplify: that is full volume, and no more is asked for.
    card.turn_knob(255, true);
    wait_volume(&daemon, "louder than full scale", |volume, muted| volume == 1.0 && !muted).await;
    daemon.wait_end(0).await;
    assert_exact(&card.music(), &source);
    assert_eq!(card.mixer_writes(), 0);
}

#[tokio::test]
async fn what_is_changed_while_the_card_is_let_go_of_is_followed_too() {
    let card = Card::new().clock(Clock::Times(4.0)).mixer("").plug();
    card.turn_knob(FULL, true);
    let source = Recording::music(75, 44_100, 16, 1.0);
    let server = Server::start();
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = setup(&card).output("release_after_s = 0").start().await;
    wait_control(&daemon, "hardware").await;
    // Before anything was played, between two tracks, and by several in a row, of which the last counts.
    card.turn_knob(150, true);
    wait_volume(&daemon, "turned down", |volume, _| (0.30..0.36).contains(&volume)).await;
    daemon.play_to_the_end(&[&url]).await;
    card.wait_for("let go of", |events| events.iter().any(|event| event.kind == "close")).await;
    for step in (100..=FULL).step_by(5).chain([FULL]) {
        card.turn_knob(step, true);
    }
    wait_volume(&daemon, "turned up", |volume, muted| volume == 1.0 && !muted).await;
    card.turn_knob(FULL, false);
    wait_volume(&daemon, "muted", |volume, muted| volume == 1.0 && muted).await;
    daemon.play_to_the_end(&[&url]).await;
    assert_eq!((card.mixer_writes(), card.mixer()), (0, Some((FULL, false))));
    for session in card.sessions() {
        assert_exact(&session.heard.trimmed(), &source);
    }
}

#[tokio::test]
async fn a_card_without_a_control_has_its_samples_scaled() {
    let card = Card::new().clock(Clock::Demand).plug();
    let daemon = Daemon::new().card(&card).output("volume = \"hardware\"").start().await;
    wait_control(&daemon, "software").await;
    daemon.player.set_property("Volume", 0.25).await.unwrap();
    wait_volume(&daemon, "a quarter", |volume, _| volume == 0.25).await;
}

#[tokio::test]
async fn a_fixed_volume_cannot_be_set_and_says_where_to() {
    let card = Card::new().clock(Clock::Demand).mixer("").plug();
    card.turn_knob(100, true);
    let daemon = setup(&card).output("volume = \"fixed\"").start().await;
    wait_control(&daemon, "fixed").await;
    let refused = daemon.player.set_property("Volume", 0.5).await.unwrap_err().to_string();
    assert!(refused.contains("fixed by [output] volume"), "{refused}");
    assert_eq!((card.mixer_writes(), card.mixer()), (0, Some((100, true))));
}

#[tokio::test]
async fn a_card_that_comes_back_has_its_volume_and_a_control_without_a_switch_can_be_silenced() {
    let (card, server) = (Card::new().clock(Clock::Times(2.0)).mixer("switch false").plug(), Server::start());
    card.turn_knob(180, true);
    let source = Recording::music(73, 44_100, 16, 8.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let daemon = setup(&card).start().await;
    wait_control(&daemon, "hardware").await;
    daemon.play_uris(&[url]).await;
    daemon.wait_position(500_000).await;
    card.fault(Fault::Unplug);
    until_async("the device is the reason", async || {
        daemon.player.get_property::<String>("StateReason").await.unwrap() == "device"
    })
    .await;
    card.heal();
    wait_control(&daemon, "hardware").await;
    assert_eq!((card.mixer_writes(), card.mixer()), (0, Some((180, true))));
    daemon.player.set_property("Mute", true).await.unwrap();
    wait_volume(&daemon, "muted", |_, muted| muted).await;
    assert_eq!(card.mixer().unwrap().0, 180, "muted by the samples");
}

#[tokio::test]
async fn a_card_that_comes_back_at_another_volume_gets_the_one_that_it_had() {
    let (card, server) = (Card::new().clock(Clock::Real).mixer("").plug(), Server::start());
    card.turn_knob(150, true);
    let source = Recording::music(74, 44_100, 16, 4.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = setup(&card).start().await;
    wait_control(&daemon, "hardware").await;
    daemon.play_uris(&[url]).await;
    daemon.wait_position(500_000).await;
    card.fault(Fault::Unplug);
    until_async("the device is the reason", async || {
        daemon.player.get_property::<String>("StateReason").await.unwrap() == "device"
    })
    .await;
    // As loud as it can, as it was made.
    card.turn_knob(255, true);
    wait_volume(&daemon, "what it was", |volume, _| (0.30..0.36).contains(&volume)).await;
    assert_eq!(daemon.player.get_property::<String>("VolumeControl").await.unwrap(), "hardware");
    card.heal();
    until("its old volume", || card.mixer() == Some((150, true))).await;
    card.wait_for("it plays on", |events| events.iter().filter(|event| event.kind == "start").count() == 2)
        .await;
    assert!(card.mixer_writes_ns()[0] < card.events_of("start")[1].ns, "it was loud for a moment");
    // Set while it was away, it holds when it is back.
    card.fault(Fault::Unplug);
    until_async("the device is the reason", async || {
        daemon.player.get_property::<String>("StateReason").await.unwrap() == "device"
    })
    .await;
    daemon.set_volume(0.5).await;
    wait_volume(&daemon, "as it was set", |volume, _| volume == 0.5).await;
    card.heal();
    until("its new volume", || card.mixer().is_some_and(|(step, _)| (168..174).contains(&step))).await;
    daemon.wait_end(0).await;
    wait_volume(&daemon, "as it was set", |volume, _| volume == 0.5).await;
}
