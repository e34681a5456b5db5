//! Cards that say nothing is wrong and play nothing, and such that cannot wake up.

use std::time::Duration;

use crate::card::{Card, frames_of};
use crate::player::{Player, noise, settings};
use crate::source;
use segue::output::{Event, GoneReason, SampleFormat};

/// Samples that a fade of 5 ms takes.
const FADE: usize = 2 * 240;

/// What was heard of it, card by card: each piece goes on where the one before ended, or up to a period before that,
/// and fades in.
fn assert_goes_on(pieces: &[Vec<i32>], sound: &[i32]) {
    let mut end = 0;
    for piece in pieces.iter().filter(|piece| piece.len() > FADE) {
        let fade = if end == 0 { 0 } else { FADE };
        let probe = &piece[fade..(fade + 40).min(piece.len())];
        let found = sound.windows(probe.len()).position(|window| window == probe);
        let start = found.expect("it is of this sound") - fade;
        assert!(start <= end, "{} samples were skipped", start - end);
        assert!((end - start) / 2 <= 3_000, "{} frames were heard twice", (end - start) / 2);
        let length = piece.len().min(sound.len() - start);
        assert!(piece[fade..length] == sound[start + fade..start + length], "from {start} on it differs");
        end = start + length;
    }
    assert_eq!(end, sound.len(), "heard to its end");
}

fn pieces(card: &Card, sample: SampleFormat) -> Vec<Vec<i32>> {
    card.captures().iter().map(|capture| frames_of(capture, sample)).collect()
}

#[test]
fn a_card_that_moves_no_more_is_given_up_after_some_attempts_and_plays_on_when_it_moves() {
    let card = Card::new("");
    let sound = noise(72_000, 16, 28);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Heard(_)));
    player.play_on(Duration::from_millis(400));
    card.fault("freeze");
    let events = player.until(|e| matches!(e, Event::DeviceGone { .. }));
    assert!(matches!(events.last(), Some(Event::DeviceGone { why: GoneReason::Failing, .. })), "{events:?}");
    let attempts = card.log().lines().filter(|line| line.split(' ').nth(1) == Some("prepare")).count();
    assert!((5..=7).contains(&attempts), "prepared {attempts} times");
    let held = player.output.playhead().unwrap().position;
    card.fault("");
    player.until(|e| matches!(e, Event::DeviceBack));
    assert!(player.output.playhead().unwrap().position >= held);
    player.until(|e| matches!(e, Event::Finished { .. }));
    drop(player);
    assert_goes_on(&pieces(&card, running.sample), &sound);
}

#[test]
fn a_card_that_cannot_wake_up_is_prepared_anew_and_loses_nothing() {
    let card = Card::new("");
    let sound = noise(72_000, 16, 29);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Heard(_)));
    player.play_on(Duration::from_millis(400));
    card.fault("sleep");
    card.wait_for("suspend");
    // It stays so: only to be prepared helps.
    player.until(|e| matches!(e, Event::Finished { .. }));
    assert_eq!(player.output.facts().xruns, 0);
    drop(player);
    let consumed: usize = pieces(&card, running.sample).iter().map(Vec::len).sum();
    assert!(consumed >= sound.len(), "{consumed} of {} samples", sound.len());
}

#[test]
fn a_sound_server_that_begins_late_is_waited_for_and_not_begun_anew() {
    let card = Card::new("server 0");
    let sound = noise(24_000, 16, 32);
    card.fault("freeze");
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound);
    player.end(1);
    // A card would be taken for stuck, twice.
    player.play_on(Duration::from_millis(2_500));
    let waiting = player.output.playhead();
    assert!(waiting.is_none_or(|now| now.position < Duration::from_millis(300)), "{waiting:?}");
    card.fault("");
    let events = player.until(|e| matches!(e, Event::Finished { .. }));
    assert!(!events.iter().any(|e| matches!(e, Event::DeviceGone { .. })), "{events:?}");
    assert_eq!(player.output.facts().xruns, 0);
    let prepared = card.log().lines().filter(|line| line.split(' ').nth(1) == Some("drop")).count();
    assert_eq!(prepared, 1, "begun anew:\n{}", card.log());
    drop(player);
    card.assert_begins_with(0, running.sample, &sound);
}

#[test]
fn a_sound_server_that_denies_its_delay_is_heard_to_the_end() {
    // More than its buffer has.
    let card = Card::new("server 100000");
    let sound = noise(72_000, 16, 33);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Heard(_)));
    player.play_on(Duration::from_millis(700));
    let consumed = pieces(&card, running.sample)[0].len() / 2;
    let position = player.output.playhead().unwrap().position.as_secs_f64();
    assert!((position - consumed as f64 / 48_000.0).abs() < 0.1, "{position} s, {consumed} frames");
    player.until(|e| matches!(e, Event::Finished { .. }));
    drop(player);
    card.assert_begins_with(0, running.sample, &sound);
}
