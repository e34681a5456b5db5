//! How much is held, and where.

use std::time::Duration;

use crate::card::Card;
use crate::player::{Player, noise, settings};
use crate::source;
use segue::output::{Event, Settings, SourceFormat};

/// A number of the card's line about this event.
fn told(card: &Card, event: &str, key: &str) -> usize {
    let log = card.log();
    let line = log.lines().find(|line| line.split(' ').nth(1) == Some(event)).expect("the event");
    let value = line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    value.expect("the key").parse().expect("a number")
}

#[test]
fn the_card_holds_what_was_asked_for_in_four_periods_and_starts_with_a_tenth_of_a_second() {
    for (asked, fits) in [
        // By whether the system lets the thread run above ordinary ones.
        (None, [12_000, 24_000].as_slice()),
        (Some(100), &[4_800]),
        (Some(1_000), &[48_000]),
    ] {
        let card = Card::new("");
        let buffer = asked.map(Duration::from_millis);
        let mut player = Player::start(Settings { buffer, ..settings(&card) });
        player.begin(source(48_000, 16), 1);
        player.play(1, 1, &noise(48_000, 16, 26));
        player.until(|e| matches!(e, Event::Heard(_)));
        player.play_on(Duration::from_millis(600));
        let size = told(&card, "params", "buffer");
        assert!(fits.contains(&size), "{asked:?}: {size} frames");
        assert_eq!(told(&card, "params", "period"), size / 4);
        assert!(told(&card, "start", "buffered") >= 4_800.min(size / 2));
        assert_eq!(player.output.facts().xruns, 0);
    }
}

#[test]
fn sound_begins_with_a_quarter_of_a_second_of_music() {
    let card = Card::new("");
    let mut player = Player::start(settings(&card));
    player.begin(source(48_000, 16), 1);
    // Nothing more comes, and that it is the end is not told.
    player.play(1, 1, &noise(12_000, 16, 27));
    player.until(|e| matches!(e, Event::Sounding { .. }));
}

#[test]
fn the_ring_holds_two_seconds_and_at_most_two_mebibytes() {
    for (rate, channels, frames) in [(44_100, 2, 88_200), (384_000, 2, 262_144), (384_000, 8, 65_536)] {
        let card = Card::new("");
        let mut player = Player::start(settings(&card));
        player.begin(SourceFormat { rate, channels, bits: 24, lossy: false }, 1);
        player.output.pause();
        assert_eq!(player.writer.capacity(), frames, "{rate} Hz, {channels} channels");
    }
}
