//! What is heard right now, for anybody to read without waiting for the output thread.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use super::feed::Current;
use crate::track::EntryId;

/// What is heard at the moment of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Playhead {
    /// The queue entry.
    pub entry: EntryId,
    /// Of its mark.
    pub generation: u64,
    /// Time within the source, as it leaves the card.
    pub position: Duration,
    /// True while the card plays.
    pub running: bool,
    /// As in the mark.
    pub opening: u64,
}

/// One observation of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Observation {
    pub current: Option<Current>,
    /// Frames per second of the card.
    pub rate: u32,
    /// Play counts: heard at `time_ns`, and given to the card.
    pub heard: u64,
    pub written: u64,
    pub time_ns: u64,
    pub running: bool,
}

impl Observation {
    /// What is heard at `now_ns` (monotonic), never beyond what the card was given.
    pub fn at(&self, now_ns: u64) -> Option<Playhead> {
        let current = self.current?;
        let since = u128::from(now_ns.saturating_sub(self.time_ns));
        let played = if self.running { since * u128::from(self.rate) / 1_000_000_000 } else { 0 };
        let heard = self.heard.saturating_add(played as u64).min(self.written.max(self.heard));
        let frames = heard.saturating_sub(current.at);
        Some(Playhead {
            entry: current.mark.entry,
            generation: current.mark.generation,
            position: current.mark.position + duration(frames, self.rate),
            running: self.running,
            opening: current.mark.opening,
        })
    }
}

/// How long `frames` last.
pub(super) fn duration(frames: u64, rate: u32) -> Duration {
    let nanos = u128::from(frames) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// How many frames last `time`.
pub(super) fn frames(time: Duration, rate: u32) -> u64 {
    u64::try_from(time.as_nanos() * u128::from(rate) / 1_000_000_000).unwrap_or(u64::MAX)
}

/// CLOCK_MONOTONIC in nanoseconds.
pub(super) fn now_ns() -> u64 {
    let Ok(now) = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC) else { return 0 };
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

const WORDS: usize = 10;

/// The latest observation: one writer, any number of readers, nobody waits for the writer to be scheduled
/// (a reader repeats its few loads if it met a change).
pub(super) struct Published {
    /// Odd while a change is under way.
    sequence: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl Published {
    pub fn new() -> Published {
        Published { sequence: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; WORDS] }
    }

    /// For the output thread alone.
    pub fn write(&self, seen: &Observation) {
        let mark = seen.current.map(|c| c.mark);
        let flags = u64::from(seen.running) | u64::from(mark.is_some()) << 1;
        let words: [u64; WORDS] = [
            flags,
            u64::from(seen.rate),
            seen.heard,
            seen.written,
            seen.time_ns,
            seen.current.map_or(0, |c| c.at),
            mark.map_or(0, |m| m.entry.0),
            mark.map_or(0, |m| m.generation),
            mark.map_or(0, |m| m.position.as_nanos() as u64),
            mark.map_or(0, |m| m.opening),
        ];
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (to, word) in self.words.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// A consistent copy.
    pub fn read(&self) -> Observation {
        let words = loop {
            let before = self.sequence.load(Ordering::Acquire);
            let words: [u64; WORDS] = std::array::from_fn(|i| self.words[i].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before {
                break words;
            }
            std::hint::spin_loop();
        };
        let mark = super::Mark {
            entry: EntryId(words[6]),
            generation: words[7],
            position: Duration::from_nanos(words[8]),
            source_frame: 0,
            opening: words[9],
            part: 0,
            treatment: super::Treatment::NONE,
        };
        Observation {
            current: (words[0] & 2 != 0).then_some(Current { mark, at: words[5] }),
            rate: words[1] as u32,
            heard: words[2],
            written: words[3],
            time_ns: words[4],
            running: words[0] & 1 != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Observation {
        let mark = super::super::Mark {
            entry: EntryId(7),
            generation: 3,
            position: Duration::from_secs(10),
            source_frame: 0,
            opening: 5,
            part: 0,
            treatment: super::super::Treatment::NONE,
        };
        Observation {
            current: Some(Current { mark, at: 1000 }),
            rate: 1000,
            heard: 1500,
            written: 1700,
            time_ns: 1_000_000_000,
            running: true,
        }
    }

    #[test]
    fn the_position_goes_on_with_the_clock_but_not_beyond_what_was_written() {
        let at = |ms: u64| seen().at(ms * 1_000_000).unwrap().position.as_millis();
        assert_eq!(at(1000), 10_500);
        assert_eq!(at(1100), 10_600);
        assert_eq!(at(5000), 10_700);
        assert_eq!(at(900), 10_500);
    }

    #[test]
    fn a_silent_card_stands_still() {
        let still = Observation { running: false, ..seen() };
        assert_eq!(still.at(9_000_000_000).unwrap().position.as_millis(), 10_500);
        assert_eq!(Observation { current: None, ..seen() }.at(0), None);
    }

    #[test]
    fn what_is_published_is_read_back() {
        let published = Published::new();
        published.write(&seen());
        let back = published.read();
        assert_eq!(back, seen());
        assert_eq!(back.at(1_000_000_000).unwrap().opening, 5);
    }

    #[test]
    fn a_reader_never_sees_half_a_change() {
        let published = Published::new();
        published.write(&Observation { heard: 0, written: 0, ..seen() });
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..200_000 {
                    published.write(&Observation { heard: i, written: i, ..seen() });
                }
            });
            for _ in 0..200_000 {
                let o = published.read();
                assert_eq!(o.heard, o.written);
            }
        });
    }
}
