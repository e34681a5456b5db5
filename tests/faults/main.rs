//! Cards that fail at random moments, two hundred times, under a player that pauses, seeks and turns the volume: nothing
//! is skipped, at most a period is heard twice, at the volume that was set, and each return fades in.
//!
//! `SEGUE_FAULT_SEED=17 cargo test --test faults` runs one of them again.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../output/card.rs"]
#[allow(dead_code)]
mod card;
mod feeder;
mod judge;
mod signal;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use card::{Card, frames_of};
use feeder::{Feeder, RATE};
use judge::{Expected, Session, Verdict, judge};
use segue::output::{Event, SampleFormat, Settings};

const RUNS: u64 = 200;
/// They sleep most of the time.
const AT_ONCE: usize = 20;
/// Frames of sound in each run.
const FRAMES: u32 = RATE * 3 / 2;
/// Of the card's buffer of 250 ms, which has four.
const PERIOD: u32 = RATE / 16;
/// What the card offers before and after it was exchanged for another.
const ABILITIES: [&str; 2] = ["channels \"2\"", "channels \"4\""];

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % most
    }

    fn ms(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}

/// One run: a card, a player, and what was asked of them.
struct Run {
    random: Random,
    card: Card,
    player: Feeder,
    exchanged: bool,
    seeks: Vec<u32>,
    volumes: Vec<f64>,
    /// For the report.
    story: Vec<String>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let card = Card::new(&format!("formats \"S32_LE\" {}", ABILITIES[0]));
        let settings = Settings { device: vec![card.name.clone()], ..Settings::default() };
        Run {
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            player: Feeder::start(settings, FRAMES),
            card,
            exchanged: false,
            seeks: Vec::new(),
            volumes: vec![1.0],
            story: Vec::new(),
        }
    }

    /// The card has this fault for a while.
    fn fault(&mut self, word: &str, from: u64, to: u64) {
        self.card.fault(word);
        let time = self.random.ms(from, to);
        self.player.play_on(time);
    }

    /// Lets things go wrong, or a person do something, a few times.
    fn torment(&mut self) {
        for _ in 0..2 + self.random.below(4) {
            let time = self.random.ms(20, 400);
            self.player.play_on(time);
            let kind = self.random.below(12);
            self.story.push(format!("{:?}: {kind}", self.player.output.playhead().map(|p| p.position)));
            self.act(kind);
        }
    }

    fn act(&mut self, kind: u64) {
        match kind {
            0 => self.fault("xrun", 1, 30),
            1 => self.fault("unplug", 20, 150),
            2 => {
                self.fault("unplug", 20, 150);
                self.fault("busy", 20, 150);
            }
            3 => self.fault("freeze", 5, 300),
            4 => self.fault("suspend", 5, 300),
            5 => self.fault("sleep", 5, 300),
            6 => {
                // Another card in the same socket.
                self.fault("unplug", 20, 100);
                self.exchanged = !self.exchanged;
                let abilities = ABILITIES[usize::from(self.exchanged)];
                self.card.configure(&format!("formats \"S32_LE\" {abilities}"));
            }
            7 | 8 => self.seek(),
            9 => self.turn(),
            10 => {
                self.player.output.pause();
                let time = self.random.ms(1, 150);
                self.player.play_on(time);
            }
            _ => {
                // A pause, and a card that is lost or asleep meanwhile.
                let word = ["unplug", "suspend", "sleep"][self.random.below(3) as usize];
                if self.random.below(2) == 0 {
                    self.fault(word, 1, 100);
                }
                self.player.output.pause();
                self.fault(word, 1, 100);
            }
        }
        // What a person does comes while the card is still away, now and then.
        match self.random.below(6) {
            0 => self.seek(),
            1 => self.turn(),
            _ => {}
        }
        if kind != 0 {
            self.card.fault("");
        }
        self.player.output.resume();
    }

    fn seek(&mut self) {
        let target = self.random.below(u64::from(FRAMES - 2 * PERIOD)) as u32;
        self.seeks.push(target);
        self.story.push(format!("to {target}"));
        self.player.seek(target);
    }

    fn turn(&mut self) {
        let volume = [1.0, 0.75, 0.5, 0.25][self.random.below(4) as usize];
        self.volumes.push(volume);
        self.story.push(format!("volume {volume}"));
        self.player.output.set_volume(volume as f32);
    }

    /// What the card played, and with how many channels.
    fn sessions(&self) -> Vec<Session> {
        let log = self.card.log();
        let channels = log.lines().filter_map(|line| {
            let value = |key: &str| line.split(' ').find_map(|pair| pair.strip_prefix(key));
            (line.split(' ').nth(1) == Some("params")).then(|| value("channels=").unwrap().parse().unwrap())
        });
        let captures = self.card.captures();
        let samples = captures.iter().map(|bytes| frames_of(bytes, SampleFormat::S32));
        let sessions = channels.zip(samples).enumerate().map(|(number, (channels, mut samples))| {
            // A card that stands still records nothing: a frame of silence shows where it was.
            let mut stops: Vec<usize> = log.lines().filter_map(|line| stop_of(line, number + 1)).collect();
            stops.sort_unstable();
            let heard = samples.len();
            for stop in stops.into_iter().rev().filter(|stop| stop * channels <= heard) {
                samples.splice(stop * channels..stop * channels, std::iter::repeat_n(0, channels));
            }
            Session { channels, samples }
        });
        sessions.collect()
    }

    fn verdict(mut self) -> Result<Verdict, String> {
        self.torment();
        let ended = self.player.play_to_end();
        self.player.output.shutdown(Duration::ZERO);
        let starved =
            self.player.told.iter().filter(|told| matches!(told, Event::Empty { .. })).count() as u32;
        let (seeks, volumes) = (&self.seeks[..], &self.volumes[..]);
        let expected = Expected { frames: FRAMES, period: PERIOD, seeks, volumes, starved };
        let judged = if ended { judge(&self.sessions(), &expected) } else { Err("it never ended".into()) };
        let (story, told) = (&self.story, &self.player.told);
        judged.map_err(|what| format!("{what}\n{story:#?}\n{told:#?}\n{}", self.card.log()))
    }
}

/// The frame at which the card was prepared anew, by a line of its log.
fn stop_of(line: &str, session: usize) -> Option<usize> {
    let value = |key: &str| line.split(' ').find_map(|pair| pair.strip_prefix(key));
    let is_it = line.split(' ').nth(1) == Some("prepare") && value("session=")?.parse() == Ok(session);
    if is_it { value("consumed=")?.parse().ok() } else { None }
}

fn run(seed: u64) -> Result<Verdict, String> {
    Run::new(seed).verdict().map_err(|what| format!("seed {seed}: {what}"))
}

#[test]
fn whatever_a_card_does_nothing_is_skipped_and_at_most_a_period_is_heard_twice() {
    if let Ok(seed) = std::env::var("SEGUE_FAULT_SEED") {
        eprintln!("{:?}", run(seed.parse().unwrap()).unwrap());
        return;
    }
    let next = AtomicU64::new(1);
    let worker = || {
        let seeds = std::iter::from_fn(|| {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            (seed <= RUNS).then_some(seed)
        });
        seeds.map(run).collect::<Vec<_>>()
    };
    let outcomes: Vec<Result<Verdict, String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a run broke down")).collect()
    });
    let wrong: Vec<&String> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    let sum = |of: fn(&Verdict) -> u32| outcomes.iter().filter_map(|o| o.as_ref().ok()).map(of).sum::<u32>();
    let (returns, seeks, repeated) = (sum(|v| v.returns), sum(|v| v.seeks), sum(|v| v.repeated));
    eprintln!(
        "{} runs, {returns} returns, {seeks} of them by seeks, {repeated} frames heard twice, {} wrong",
        outcomes.len(),
        wrong.len()
    );
    assert_eq!(outcomes.len() as u64, RUNS);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults");
    std::fs::create_dir_all(&folder).unwrap();
    for (number, what) in wrong.iter().enumerate() {
        std::fs::write(folder.join(format!("{number}.txt")), what).unwrap();
    }
    let said: Vec<_> = wrong.iter().map(|what| what.lines().next().unwrap_or_default()).collect();
    assert!(
        wrong.is_empty(),
        "{} of {RUNS} runs:\n{}\nthe first: {}",
        wrong.len(),
        said.join("\n"),
        wrong[0]
    );
    assert!(returns > RUNS as u32 && seeks > RUNS as u32 / 4, "hardly anything went wrong");
}

/// A fade of the numbered sound from `from` on, as a card would play it.
fn played(from: u32, to: u32, fades: bool) -> Vec<i32> {
    (from..to)
        .flat_map(|number| {
            let gain = if fades { f64::from((number - from).min(240)) / 240.0 } else { 1.0 };
            signal::frame(number, 2).map(move |sample| (f64::from(sample) * gain) as i32)
        })
        .collect()
}

/// The judge finds each fault that it is for, and nothing in what is right.
#[test]
fn the_judge_can_tell() {
    let seeks = [500];
    let verdict = |parts: &[Vec<i32>], volumes: &[f64]| {
        let expected = Expected { frames: 9_000, period: 3_000, seeks: &seeks, volumes, starved: 0 };
        judge(&[Session { channels: 2, samples: parts.concat() }], &expected)
    };
    let silence = vec![0; 200];
    let right = [played(0, 2_000, false), silence.clone(), played(2_000, 9_000, true)];
    assert_eq!(verdict(&right, &[1.0]).map(|v| v.returns), Ok(1));
    let sought = [played(0, 4_000, false), silence.clone(), played(500, 9_000, true)];
    assert_eq!(verdict(&sought, &[1.0]).map(|v| v.seeks), Ok(1));
    let twice = [played(0, 5_000, false), silence.clone(), played(2_100, 9_000, true)];
    assert_eq!(verdict(&twice, &[1.0]).map(|v| v.repeated), Ok(2_900));
    let wrong = |parts: &[Vec<i32>], what: &str| {
        let found = verdict(parts, &[1.0]).expect_err(what);
        assert!(found.contains(what), "{found}");
    };
    wrong(&[played(0, 2_000, false), silence.clone(), played(2_002, 9_000, true)], "skipped");
    wrong(&[played(0, 5_000, false), silence.clone(), played(1_900, 9_000, true)], "heard twice");
    wrong(&[played(0, 5_000, false), silence, played(4_000, 9_000, false)], "did not fade in");
    wrong(&[played(0, 2_000, false), played(2_001, 9_000, false)], "skipped");
    wrong(&[played(0, 8_000, false)], "ends at 8000");
    let mut loud = played(0, 9_000, false);
    loud[4_000..].iter_mut().for_each(|sample| *sample /= 2);
    wrong(&[loud], "jumps");
}
