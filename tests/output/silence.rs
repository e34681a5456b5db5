//! Nothing to play: an empty ring, an idle card, and silence that is no part of the music.

use std::time::{Duration, Instant};

use crate::card::{Card, frames_of};
use crate::player::{Player, noise, settings};
use crate::source;
use segue::output::{BeginState, Event, Settings};

#[test]
fn an_empty_ring_stops_cleanly_and_goes_on_without_a_lost_frame() {
    let card = Card::new("");
    let sound = noise(48_000, 16, 4);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound[..40_000]);
    player.until(|e| matches!(e, Event::Empty { generation: 1 }));
    assert_eq!(player.output.facts().xruns, 0);
    player.write(&sound[40_000..]);
    player.end(1);
    player.until(|e| matches!(e, Event::Finished { .. }));
    drop(player);
    let heard = frames_of(&card.capture(0), running.sample);
    assert_eq!(heard[..40_000], sound[..40_000]);
    let silence = heard[40_000..].chunks(2).take_while(|f| **f == [0, 0]).count() * 2;
    assert_eq!(heard[40_000 + silence..][..sound.len() - 40_000], sound[40_000..]);
}

#[test]
fn frames_that_come_while_the_last_ones_ring_out_are_heard() {
    let sound = noise(24_000, 16, 9);
    // Half a second of sound; the next comes a little before, at and after its end.
    for delay in (460..=520).step_by(6) {
        let card = Card::new("");
        // Nothing else may wake the thread.
        let patient = Settings { release_after: Duration::from_secs(600), ..settings(&card) };
        let mut player = Player::start(patient);
        let running = player.begin(source(48_000, 16), 1);
        player.play(1, 1, &sound);
        player.until(|e| matches!(e, Event::Sounding { .. }));
        std::thread::sleep(Duration::from_millis(delay));
        player.play(2, 1, &sound);
        player.until(|e| matches!(e, Event::Heard(mark) if mark.entry.0 == 2));
        player.end(1);
        player.until(|e| matches!(e, Event::Finished { .. }));
        drop(player);
        let heard = frames_of(&card.capture(0), running.sample);
        assert_eq!(heard[..sound.len()], sound);
        let silence = heard[sound.len()..].iter().take_while(|sample| **sample == 0).count();
        assert_eq!(heard[sound.len() + silence..][..sound.len()], sound, "after {delay} ms");
    }
}

#[test]
fn an_idle_device_is_released_and_opened_again_for_the_next_frames() {
    let card = Card::new("clock \"demand\"");
    let sound = noise(10_000, 16, 14);
    let mut settings = settings(&card);
    settings.release_after = Duration::from_millis(200);
    let mut player = Player::start(settings);
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Finished { .. }));
    player.until(|e| matches!(e, Event::Released));
    assert_eq!(player.output.facts().card, None);
    assert!(matches!(player.writer.begin(source(48_000, 16), 2), BeginState::Ready(_)));
    player.play(2, 2, &sound);
    player.end(2);
    player.until(|e| matches!(e, Event::Finished { generation: 2 }));
    drop(player);
    card.assert_begins_with(0, running.sample, &sound);
    card.assert_begins_with(1, running.sample, &sound);
}

#[test]
fn silence_in_front_wakes_a_receiver_and_counts_nowhere() {
    let card = Card::new("");
    let sound = noise(24_000, 16, 31);
    let mut player = Player::start(Settings { lead_in: Duration::from_millis(400), ..settings(&card) });
    let running = player.begin(source(48_000, 16), 1);
    let began = Instant::now();
    player.play(1, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Sounding { .. }));
    assert_eq!(player.output.playhead(), None, "nothing is heard yet");
    player.until(|e| matches!(e, Event::Heard(_)));
    assert!(began.elapsed() >= Duration::from_millis(390), "heard after {:?}", began.elapsed());
    player.until(|e| matches!(e, Event::Finished { .. }));
    // At once again: the receiver is awake.
    player.play(2, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Finished { .. }));
    assert_eq!(player.output.facts().xruns, 0);
    drop(player);
    let heard = frames_of(&card.capture(0), running.sample);
    let lead = heard.iter().position(|sample| *sample != 0).unwrap();
    assert_eq!(lead, 2 * 48_000 * 4 / 10);
    assert_eq!(heard[lead..lead + sound.len()], sound);
    let between = heard[lead + sound.len()..].iter().position(|sample| *sample != 0).unwrap();
    assert!(between < 2 * 48_000 * 3 / 10, "{between} samples of silence before the second");
}

#[test]
fn a_card_that_is_kept_awake_plays_silence_between_and_every_frame_of_the_music() {
    let card = Card::new("");
    let mut kept = settings(&card);
    (kept.keep_alive, kept.release_after) = (true, Duration::ZERO);
    let parts: Vec<Vec<i32>> = (0..3).map(|n| noise(24_000, 16, 40 + n)).collect();
    let mut player = Player::start(kept);
    let running = player.begin(source(48_000, 16), 1);
    for (n, part) in (1..).zip(&parts) {
        player.play(n, 1, part);
        if n == 2 {
            // A pause is silent, too, and loses nothing.
            player.until(|e| matches!(e, Event::Heard(m) if m.entry.0 == 2));
            player.output.pause();
            player.play_on(Duration::from_millis(200));
            let held = player.output.playhead().unwrap().position;
            player.play_on(Duration::from_millis(200));
            assert_eq!(player.output.playhead().unwrap().position, held, "silence counts nowhere");
            player.output.resume();
        }
        player.end(1);
        player.until(|e| matches!(e, Event::Finished { .. }));
        let quiet = player.events_within(Duration::from_millis(300));
        assert_eq!(quiet, [], "silence is no event, and the device is not released");
    }
    assert_eq!(player.output.facts().xruns, 0);
    drop(player);
    let heard = frames_of(&card.capture(0), running.sample);
    let music: Vec<i32> = heard.into_iter().filter(|sample| *sample != 0).collect();
    // The pause ends with a fade in, whose first frames may be silent.
    assert_eq!(music[..parts[0].len()], parts[0]);
    assert_eq!(music[music.len() - parts[2].len()..], parts[2]);
    let lost = parts.iter().map(Vec::len).sum::<usize>() - music.len();
    assert!(lost <= 2 * 240, "{lost} samples are missing");
}

#[test]
fn a_ring_that_is_often_empty_never_makes_the_card_run_dry() {
    let card = Card::new("");
    let sound = noise(60_000, 16, 24);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound[..24_000]);
    // So little at a time that the ring is empty before each piece, and the card nearly.
    for piece in sound[24_000..].chunks(7_200) {
        player.play_on(Duration::from_millis(60));
        player.write(piece);
    }
    player.end(1);
    player.until(|e| matches!(e, Event::Finished { .. }));
    assert_eq!(player.output.facts().xruns, 0);
    drop(player);
    let heard = frames_of(&card.capture(0), running.sample);
    let music: Vec<i32> = heard.into_iter().filter(|sample| *sample != 0).collect();
    assert!(music == sound, "{} of {} samples", music.len(), sound.len());
}
