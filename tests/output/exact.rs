//! Bit for bit, joined and not.

use std::time::{Duration, Instant};

use crate::card::{Card, frames_of};
use crate::player::{Player, noise, settings};
use crate::source;
use segue::output::{BeginState, Event, Settings};

#[test]
fn sixteen_and_twenty_four_bits_arrive_bit_for_bit_in_every_format() {
    for (format, bits) in [("S32_LE", 24), ("S24_3LE", 24), ("S24_LE", 24), ("S16_LE", 16), ("S32_LE", 16)] {
        for rate in [44_100, 48_000] {
            let card = Card::new(&format!("clock \"demand\" formats \"{format}\""));
            let sound = noise(rate as usize, bits, 7);
            let mut player = Player::start(settings(&card));
            let running = player.begin(source(rate, bits), 1);
            assert_eq!(running.rate, rate);
            player.play(1, 1, &sound);
            player.end(1);
            player.until(|e| matches!(e, Event::Finished { generation: 1 }));
            assert!(player.output.facts().bit_perfect, "{:?}", player.output.facts());
            drop(player);
            card.assert_begins_with(0, running.sample, &sound);
        }
    }
}

#[test]
fn joined_tracks_are_one_stream_and_marks_follow_the_ear() {
    let card = Card::new("");
    let sound = noise(48_000, 16, 3);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound[..30_000 * 2]);
    // Another entry, 24 bits, in the format that the card runs already.
    assert!(matches!(player.writer.begin(source(48_000, 24), 1), BeginState::Ready(_)));
    player.play(2, 1, &sound[30_000 * 2..]);
    player.end(1);
    player.until(|e| matches!(e, Event::Heard(m) if m.entry.0 == 1));
    let first = Instant::now();
    player.until(|e| matches!(e, Event::Heard(m) if m.entry.0 == 2));
    let gap = first.elapsed().as_secs_f64();
    assert!((gap - 0.625).abs() < 0.12, "the second entry was heard {gap} s after the first");
    let playhead = player.output.playhead().unwrap();
    assert_eq!(playhead.entry.0, 2);
    assert!(playhead.position < Duration::from_millis(120), "{playhead:?}");
    player.until(|e| matches!(e, Event::Finished { .. }));
    assert_eq!(player.output.facts().xruns, 0);
    assert_eq!(player.events_within(Duration::from_millis(300)), [], "an end is not an empty ring");
    drop(player);
    card.assert_begins_with(0, running.sample, &sound);
}

#[test]
fn another_rate_waits_for_the_end_of_the_old_one() {
    let card = Card::new("");
    let old = noise(22_050, 16, 1);
    let new = noise(24_000, 16, 2);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(44_100, 16), 1);
    player.play(1, 1, &old);
    assert_eq!(player.begin(source(48_000, 16), 1).rate, 48_000);
    player.play(2, 1, &new);
    player.end(1);
    player.until(|e| matches!(e, Event::Finished { .. }));
    drop(player);
    card.assert_begins_with(0, running.sample, &old);
    card.assert_begins_with(1, running.sample, &new);
}

#[test]
fn a_file_takes_everything_at_once_and_holds_exactly_what_was_written() {
    let card = Card::new("");
    let file = card.become_file();
    let sound = noise(48_000 * 4, 24, 18);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 24), 1);
    player.play(1, 1, &sound[..48_000]);
    player.play(2, 1, &sound[48_000..]);
    player.end(1);
    let events = player.until(|e| matches!(e, Event::Finished { .. }));
    assert_eq!(events.iter().filter(|e| matches!(e, Event::Heard(_))).count(), 2);
    drop(player);
    assert!(frames_of(&std::fs::read(file).unwrap(), running.sample) == sound, "the file differs");
}

#[test]
fn the_default_device_is_not_called_exact() {
    let card = Card::new("");
    card.also_known_as("default");
    let mut player = Player::start(Settings { device: vec!["default".into()], ..settings(&card) });
    let running = player.begin(source(48_000, 16), 1);
    let sound = noise(4_800, 16, 25);
    player.play(1, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Finished { .. }));
    assert_eq!(player.output.facts().reason, "the ALSA device “default” may convert");
    assert!(!player.output.facts().bit_perfect);
    drop(player);
    card.assert_begins_with(0, running.sample, &sound);
}

#[test]
fn what_alsa_may_convert_is_not_called_exact_but_is_where_it_need_not() {
    let card = Card::new("formats \"S16_LE,S32_LE\" rates \"48000\" channels \"2\"");
    card.become_plug();
    let sound = noise(24_000, 16, 21);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    assert_eq!((running.rate, running.channels), (48_000, 2));
    player.play(1, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Finished { .. }));
    let facts = player.output.facts();
    assert!(!facts.bit_perfect && facts.reason.contains("may convert"), "{facts:?}");
    drop(player);
    card.assert_begins_with(0, running.sample, &sound);
}
