//! Cards that fail at random moments, two hundred times: nothing is skipped, at most a period is heard twice, at the same
//! volume, and each return fades in.
//!
//! `SEGUE_FAULT_SEED=17 cargo test --test faults` runs one of them again.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../output/card.rs"]
#[allow(dead_code)]
mod card;
#[path = "../output/player.rs"]
#[allow(dead_code)]
mod player;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use card::{Card, frames_of};
use player::{Player, settings};
use segue::output::{Event, SampleFormat, SourceFormat};

const RUNS: u64 = 200;
/// They sleep most of the time.
const AT_ONCE: usize = 20;
const RATE: u32 = 48_000;
/// Frames of sound in each run.
const FRAMES: u32 = RATE * 3 / 2;
/// Sound comes back over 5 ms, on a card that may begin in the middle of it.
const FADE: u32 = RATE / 1000 * 5;

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

/// Each frame tells its number: on the left, and the other way round on the right.
fn numbered() -> Vec<i32> {
    (0..FRAMES).flat_map(|frame| [sample(frame), !sample(frame)]).collect()
}

fn sample(frame: u32) -> i32 {
    // Loud enough for any fade to be told from silence.
    ((frame + 1) << 8 | 1 << 30) as i32
}

/// What happened to a card, for the report.
type Story = Vec<String>;

/// Lets things go wrong until the sound is over.
fn torment(random: &mut Random, card: &Card, player: &mut Player, story: &mut Story) {
    for _ in 0..1 + random.below(3) {
        player.play_on(random.ms(30, 500));
        let kind = random.below(6);
        story.push(format!("{:?}: {kind}", player.output.playhead().map(|p| p.position)));
        match kind {
            0 => card.fault("xrun"),
            1 | 2 => {
                card.fault("unplug");
                player.play_on(random.ms(20, 150));
                if kind == 2 {
                    card.fault("busy");
                    player.play_on(random.ms(20, 150));
                }
                card.fault("");
            }
            3 => {
                card.fault("freeze");
                player.play_on(random.ms(5, 300));
                card.fault("");
            }
            4 => {
                player.output.pause();
                player.play_on(random.ms(1, 150));
                player.output.resume();
            }
            _ => {
                // A pause and a lost card at once, in either order.
                player.output.pause();
                card.fault("unplug");
                player.play_on(random.ms(20, 100));
                card.fault("");
                player.output.resume();
            }
        }
    }
}

/// Goes through what was heard; returns how often a return was.
fn check(heard: &[i32], period: u32) -> Result<u32, String> {
    let (mut due, mut faded, mut returns) = (0u32, 0u32, 0);
    let mut loudest = 0i32;
    for (at, frame) in heard.chunks_exact(2).enumerate() {
        let [left, right] = [frame[0], frame[1]];
        if left == 0 && right == 0 {
            continue;
        }
        let number = ((left & 0x3fff_ffff) >> 8) as u32;
        let whole = number > 0 && number <= FRAMES && left == sample(number - 1) && right == !left;
        if !whole {
            // In a fade, which only rises.
            if faded == 0 {
                loudest = 0;
            }
            faded += 1;
            if left < loudest || right > 0 || faded > FADE {
                return Err(format!(
                    "heard frame {at} ({left:#x}, {right:#x}) is neither whole nor of a fade in"
                ));
            }
            loudest = left;
            continue;
        }
        let frame = number - 1;
        // The first frame of a fade is silent and is not seen.
        let start = frame.saturating_sub(if faded > 0 { faded + 1 } else { 0 });
        if faded > 0 || frame != due {
            returns += 1;
            if start > due {
                return Err(format!("{} frames were skipped at {due}", start - due));
            }
            if due - start > period + 1 {
                return Err(format!(
                    "{} frames were heard twice at {due}; a period has {period}",
                    due - start
                ));
            }
            if faded == 0 && due != 0 && frame != due {
                return Err(format!("a return to {frame} after {due} did not fade in"));
            }
        }
        (due, faded) = (frame + 1, 0);
    }
    if due == FRAMES { Ok(returns) } else { Err(format!("it ends at {due} of {FRAMES}")) }
}

fn run(seed: u64) -> Result<u32, String> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let card = Card::new("formats \"S32_LE\"");
    let mut player = Player::start(settings(&card));
    let format = player.begin(SourceFormat { rate: RATE, channels: 2, bits: 32, lossy: false }, 1);
    player.play(1, 1, &numbered());
    player.until(|event| matches!(event, Event::Sounding { .. }));
    let mut story = Story::new();
    torment(&mut random, &card, &mut player, &mut story);
    player.end(1);
    player.until(|event| matches!(event, Event::Finished { .. }));
    drop(player);
    assert_eq!(format.sample, SampleFormat::S32);
    let heard: Vec<i32> =
        card.captures().iter().flat_map(|bytes| frames_of(bytes, SampleFormat::S32)).collect();
    check(&heard, RATE / 16).map_err(|what| format!("seed {seed}: {what}\n{story:#?}\n{}", card.log()))
}

#[test]
fn whatever_a_card_does_nothing_is_skipped_and_at_most_a_period_is_heard_twice() {
    if let Ok(seed) = std::env::var("SEGUE_FAULT_SEED") {
        run(seed.parse().unwrap()).unwrap();
        return;
    }
    let next = AtomicU64::new(1);
    let outcomes: Vec<Result<u32, String>> = std::thread::scope(|scope| {
        let worker = || {
            let seeds = std::iter::from_fn(|| {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                (seed <= RUNS).then_some(seed)
            });
            seeds.map(run).collect::<Vec<_>>()
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a run broke down")).collect()
    });
    let wrong: Vec<&String> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    let returns: u32 = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).sum();
    eprintln!("{} runs, {returns} returns, {} wrong", outcomes.len(), wrong.len());
    assert_eq!(outcomes.len() as u64, RUNS);
    assert!(wrong.is_empty(), "{} of {RUNS} runs; the first: {}", wrong.len(), wrong[0]);
    assert!(returns > RUNS as u32, "hardly anything went wrong: {returns} returns");
}
