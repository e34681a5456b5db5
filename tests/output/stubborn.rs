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
