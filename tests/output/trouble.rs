//! Cards that fail.

use std::time::Duration;

use crate::card::{Card, frames_of};
use crate::player::{Player, noise, settings};
use crate::source;
use segue::output::{BeginState, Event, GoneReason};

#[test]
fn an_unplugged_card_plays_on_when_it_is_back() {
    let card = Card::new("");
    let sound = noise(48_000 * 2, 16, 11);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Heard(_)));
    player.play_on(Duration::from_millis(600));
    card.fault("unplug");
    let events = player.until(|e| matches!(e, Event::DeviceGone { .. }));
    assert!(matches!(events.last(), Some(Event::DeviceGone { why: GoneReason::Unplugged, .. })));
    player.play_on(Duration::from_millis(600));
    card.fault("");
    player.until(|e| matches!(e, Event::DeviceBack));
    player.until(|e| matches!(e, Event::Finished { .. }));
    drop(player);
    let first = frames_of(&card.capture(0), running.sample);
    let second = frames_of(&card.capture(1), running.sample);
    let lost_at = first.len();
    assert_eq!(first, sound[..lost_at]);
    // Find where it went on, by frames that do not fade any more.
    let probe = &second[480..520];
    let found = sound.windows(probe.len()).position(|w| w == probe).expect("it is the same sound") - 480;
    assert!(found <= lost_at, "{} samples were skipped", found - lost_at);
    let repeated = (lost_at - found) / 2;
    assert!(repeated <= 3000, "{repeated} frames were heard twice, a period has 3000");
    assert_eq!(second[480..sound.len() - found], sound[found + 480..]);
}

#[test]
fn a_busy_card_is_waited_for_and_nothing_is_lost() {
    for fault in ["busy", "unplug"] {
        let card = Card::new("");
        card.fault(fault);
        let sound = noise(24_000, 16, 12);
        let mut player = Player::start(settings(&card));
        assert_eq!(player.writer.begin(source(48_000, 16), 1), BeginState::Waiting);
        let events = player.until(|e| matches!(e, Event::DeviceGone { .. }));
        let why = if fault == "busy" { GoneReason::Busy } else { GoneReason::Missing };
        assert!(matches!(events.last(), Some(Event::DeviceGone { why: w, .. }) if *w == why), "{events:?}");
        player.play_on(Duration::from_millis(300));
        card.fault("");
        let running = player.begin(source(48_000, 16), 1);
        player.play(1, 1, &sound);
        player.end(1);
        let events = player.until(|e| matches!(e, Event::Finished { .. }));
        assert!(!events.iter().any(|e| matches!(e, Event::DeviceGone { .. })), "said once: {events:?}");
        drop(player);
        card.assert_begins_with(0, running.sample, &sound);
    }
}

#[test]
fn an_underrun_is_counted_and_skips_nothing() {
    let card = Card::new("");
    let sound = noise(72_000, 16, 13);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Heard(_)));
    player.play_on(Duration::from_millis(200));
    card.fault("xrun");
    player.until(|e| matches!(e, Event::Xrun { count: 1 }));
    player.until(|e| matches!(e, Event::Finished { .. }));
    assert_eq!(player.output.facts().xruns, 1);
    drop(player);
    card.assert_begins_with(0, running.sample, &sound);
}

#[test]
fn a_dead_stop_of_the_card_is_noticed_and_it_plays_on() {
    let card = Card::new("");
    let sound = noise(48_000, 16, 15);
    let mut player = Player::start(settings(&card));
    player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Heard(_)));
    card.fault("freeze");
    player.play_on(Duration::from_millis(1500));
    card.fault("");
    player.until(|e| matches!(e, Event::Finished { .. }));
}

#[test]
fn a_card_that_comes_back_with_other_abilities_asks_for_the_frames_anew() {
    let card = Card::new("");
    let sound = noise(96_000, 16, 16);
    let mut player = Player::start(settings(&card));
    player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound);
    player.until(|e| matches!(e, Event::Heard(_)));
    player.play_on(Duration::from_millis(500));
    card.fault("unplug");
    player.until(|e| matches!(e, Event::DeviceGone { .. }));
    let position = player.output.playhead().unwrap().position;
    assert!((position.as_secs_f64() - 0.5).abs() < 0.15, "{position:?}");
    card.configure("rates \"44100\"");
    card.fault("");
    player.until(|e| matches!(e, Event::NeedsRestart { generation: 1 }));
    assert_eq!(player.output.playhead().unwrap().position, position);
    player.stop_writing();
    player.output.cut(2);
    let running = player.begin(source(48_000, 16), 2);
    assert_eq!(running.rate, 44_100);
    let rest = noise(4_410, 16, 17);
    player.play(1, 2, &rest);
    player.end(2);
    player.until(|e| matches!(e, Event::Finished { generation: 2 }));
    assert_eq!(player.output.facts().reason, "the card runs at 44100 Hz");
    drop(player);
    card.assert_begins_with(1, running.sample, &rest);
}

#[test]
fn a_pause_while_the_card_is_away_holds_until_resumed() {
    let card = Card::new("");
    let sound = noise(48_000, 16, 19);
    let mut player = Player::start(settings(&card));
    player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Heard(_)));
    card.fault("unplug");
    player.until(|e| matches!(e, Event::DeviceGone { .. }));
    player.output.pause();
    player.play_on(Duration::from_millis(100));
    card.fault("");
    player.play_on(Duration::from_millis(800));
    assert_eq!(player.output.facts().card, None, "nobody wants the device yet");
    player.output.resume();
    let events = player.until(|e| matches!(e, Event::Finished { .. }));
    assert!(events.contains(&Event::DeviceBack), "{events:?}");
}

#[test]
fn a_card_that_slept_goes_on_where_it_was() {
    let card = Card::new("");
    let sound = noise(72_000, 16, 22);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Heard(_)));
    player.play_on(Duration::from_millis(300));
    card.fault("suspend");
    card.wait_for("suspend");
    player.play_on(Duration::from_millis(400));
    card.fault("");
    card.wait_for("resume");
    player.until(|e| matches!(e, Event::Finished { .. }));
    assert_eq!(player.output.facts().xruns, 0);
    drop(player);
    card.assert_begins_with(0, running.sample, &sound);
}

#[test]
fn an_unplugged_card_below_a_plugin_is_found_out_and_plays_on() {
    let card = Card::new("");
    card.become_plug();
    let mut player = Player::start(settings(&card));
    player.begin(source(48_000, 16), 1);
    player.play(1, 1, &noise(72_000, 16, 23));
    player.end(1);
    player.until(|e| matches!(e, Event::Heard(_)));
    player.play_on(Duration::from_millis(300));
    card.fault("unplug");
    player.until(|e| matches!(e, Event::DeviceGone { why: GoneReason::Unplugged, .. }));
    card.fault("");
    player.until(|e| matches!(e, Event::DeviceBack));
    player.until(|e| matches!(e, Event::Finished { .. }));
}
