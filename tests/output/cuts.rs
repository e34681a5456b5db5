//! What a person does: the sound is cut at once, and goes on where it should.

use std::time::{Duration, Instant};

use crate::card::{Card, frames_of};
use crate::player::{Player, noise, settings};
use crate::source;
use segue::output::{BeginState, Event, SampleFormat};

#[test]
fn a_pause_loses_and_repeats_nothing() {
    let card = Card::new("");
    let sound = noise(96_000, 16, 5);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound);
    player.end(1);
    for _ in 0..3 {
        player.until(|e| matches!(e, Event::Sounding { .. }));
        player.play_on(Duration::from_millis(230));
        let before = Instant::now();
        player.output.pause();
        let paused = card.wait_for("drop");
        assert!(before.elapsed() < Duration::from_millis(50), "{:?}", before.elapsed());
        player.play_on(Duration::from_millis(50));
        let still = player.output.playhead().unwrap();
        assert!(!still.running);
        let consumed = paused as f64 / 48_000.0;
        assert!((still.position.as_secs_f64() - consumed).abs() < 0.001, "{still:?} {consumed}");
        player.output.resume();
    }
    player.until(|e| matches!(e, Event::Finished { .. }));
    drop(player);
    let heard = frames_of(&card.capture(0), running.sample);
    let mut differing = 0;
    for (i, (a, b)) in heard.iter().zip(&sound).enumerate() {
        if a != b {
            differing += 1;
            assert!(a.unsigned_abs() <= b.unsigned_abs(), "sample {i} is not faded but another");
        }
    }
    assert!(differing > 0 && differing <= 3 * 2 * 240, "{differing} samples differ, three fades are 1440");
    assert!(heard.len() >= sound.len());
}

#[test]
fn a_cut_is_silent_at_once_and_the_next_generation_follows() {
    let card = Card::new("");
    let old = noise(96_000, 16, 5);
    let new = noise(24_000, 16, 6);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &old[..60_000]);
    player.until(|e| matches!(e, Event::Heard(_)));
    player.play_on(Duration::from_millis(200));
    let before = Instant::now();
    player.output.cut(2);
    let consumed = card.wait_for("drop") as usize;
    assert!(before.elapsed() < Duration::from_millis(50), "{:?}", before.elapsed());
    assert!(player.writer.is_cut(1));
    player.writer.write(&old[60_000..70_000]); // from a decoder that has not noticed yet
    assert!(matches!(player.writer.begin(source(48_000, 16), 2), BeginState::Ready(_)));
    player.play(2, 2, &new);
    player.end(2);
    player.until(|e| matches!(e, Event::Finished { generation: 2 }));
    drop(player);
    let heard = frames_of(&card.capture(0), running.sample);
    assert_eq!(heard[..consumed * 2], old[..consumed * 2]);
    assert_eq!(heard[consumed * 2..][..new.len()], new, "an entry's beginning does not fade");
}

#[test]
fn an_entry_that_is_taken_back_is_never_heard() {
    let card = Card::new("");
    let sound = noise(48_000, 16, 9);
    let other = noise(12_000, 16, 10);
    let mut player = Player::start(settings(&card));
    let running = player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound[..20_000 * 2]);
    player.play(2, 1, &sound[20_000 * 2..]);
    // So late that the card has frames of the second entry.
    player.until(|e| matches!(e, Event::Heard(_)));
    player.play_on(Duration::from_millis(330));
    assert!(player.output.cut_after(segue::track::EntryId(2), 2));
    assert!(matches!(player.writer.begin(source(48_000, 16), 2), BeginState::Ready(_)));
    player.play(3, 2, &other);
    player.end(2);
    let events = player.until(|e| matches!(e, Event::Finished { .. }));
    assert!(!events.iter().any(|e| matches!(e, Event::Heard(m) if m.entry.0 == 2)), "{events:?}");
    drop(player);
    let expected = [&sound[..20_000 * 2], &other].concat();
    card.assert_begins_with(0, running.sample, &expected);
}

#[test]
fn a_change_of_volume_is_heard_within_a_quarter_second_and_full_volume_is_exact_again() {
    let card = Card::new("formats \"S16_LE\"");
    let sound: Vec<i32> = vec![8000 << 16; 48_000 * 2 * 2];
    let mut player = Player::start(settings(&card));
    assert_eq!(player.begin(source(48_000, 16), 1).sample, SampleFormat::S16);
    player.play(1, 1, &sound);
    player.end(1);
    player.until(|e| matches!(e, Event::Heard(_)));
    player.play_on(Duration::from_millis(300));
    let half = player.output.playhead().unwrap().position;
    player.output.set_volume(0.5);
    assert_eq!(player.output.facts().reason, "software volume at 50 %");
    player.play_on(Duration::from_millis(500));
    player.output.set_volume(1.0);
    player.until(|e| matches!(e, Event::Finished { .. }));
    drop(player);
    let heard = frames_of(&card.capture(0), SampleFormat::S16);
    let frame = |from: usize, test: &dyn Fn(i32) -> bool| {
        from + heard[from * 2..].chunks(2).position(|f| test(f[0] >> 16)).expect("it is in the capture")
    };
    let changed = frame(0, &|s| s != 8000);
    let late = changed as f64 / 48_000.0 - half.as_secs_f64();
    assert!(late < 0.26, "heard after {late} s");
    let settled = frame(changed, &|s| (s - 4000).abs() <= 2);
    assert!(settled - changed < 48_000 / 40, "the ramp took {} frames", settled - changed);
    let back = frame(settled, &|s| s > 7990);
    let end = sound.len() / 2;
    assert!(heard[(back + 1000) * 2..end * 2].iter().all(|s| *s == 8000 << 16));
}

#[test]
fn shutting_down_fades_and_takes_less_than_half_a_second() {
    let card = Card::new("formats \"S16_LE\"");
    let sound: Vec<i32> = vec![8000 << 16; 48_000 * 2];
    let mut player = Player::start(settings(&card));
    player.begin(source(48_000, 16), 1);
    player.play(1, 1, &sound);
    player.until(|e| matches!(e, Event::Heard(_)));
    player.play_on(Duration::from_millis(200));
    let before = Instant::now();
    player.output.shutdown(Duration::from_millis(50));
    assert!(before.elapsed() < Duration::from_millis(500), "{:?}", before.elapsed());
    assert_eq!(player.next_event(), None);
    let heard = frames_of(&card.capture(0), SampleFormat::S16);
    assert!(heard.len() > 48_000 / 5 && (heard[heard.len() - 2] >> 16) < 800, "the end is quiet");
}
