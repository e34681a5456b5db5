//! The output against the virtual card: what was written is what was heard.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "output/card.rs"]
mod card;
#[path = "output/player.rs"]
mod player;

use std::time::{Duration, Instant};

use card::{Card, frames_of};
use player::{Player, noise, settings};
use segue::output::{BeginState, Event, GoneReason, SampleFormat, Settings, SourceFormat};

fn source(rate: u32, bits: u16) -> SourceFormat {
    SourceFormat { rate, channels: 2, bits, lossy: false }
}

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
