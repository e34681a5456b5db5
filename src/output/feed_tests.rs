//! The bookkeeping without a card: frames are their own numbers, so that each one lost or repeated shows.

use std::time::Duration;

use rtrb::{Producer, RingBuffer};

use super::*;

struct Bench {
    feed: Feed,
    notes: Producer<Note>,
    ring: Producer<i32>,
    written: u64,
}

impl Bench {
    fn new() -> Bench {
        let (notes, notes_out) = RingBuffer::new(MOST_NOTES);
        let (ring, ring_out) = RingBuffer::new(1000);
        let mut feed = Feed::new(notes_out);
        feed.set_ring(ring_out, 1, 200, 0);
        Bench { feed, notes, ring, written: 0 }
    }

    fn note(&mut self, generation: u64, what: What) {
        self.notes.push(Note { at: self.written, generation, what }).unwrap();
    }

    fn mark(&mut self, entry: u64, generation: u64) {
        let mark = Mark {
            entry: EntryId(entry),
            generation,
            position: Duration::ZERO,
            source_frame: 0,
            opening: 0,
            part: 0,
            treatment: crate::output::Treatment::NONE,
        };
        self.note(generation, What::Mark(mark));
    }

    fn write(&mut self, frames: std::ops::Range<i32>) {
        self.written += frames.len() as u64;
        for frame in frames {
            self.ring.push(frame).unwrap();
        }
    }

    /// What a card with this much room takes.
    fn play(&mut self, most: usize) -> Vec<i32> {
        let mut all = Vec::new();
        let mut out = vec![0; 64];
        while all.len() < most {
            let room = (most - all.len()).min(64);
            let frames = self.feed.next(&mut out[..room]);
            if frames == 0 {
                break;
            }
            self.feed.wrote(frames);
            all.extend_from_slice(&out[..frames]);
        }
        all
    }

    fn heard(&mut self, at: u64) -> Vec<u64> {
        self.feed.set_heard(at);
        let mut entries = Vec::new();
        while let Some(t) = self.feed.reached(true) {
            if let What::Mark(m) = t.note.what {
                entries.push(m.entry.0);
            }
        }
        entries
    }
}

fn numbers(range: std::ops::Range<i32>) -> Vec<i32> {
    range.collect()
}

#[test]
fn an_entry_begins_when_its_first_frame_is_heard_not_when_it_is_written() {
    let mut b = Bench::new();
    b.mark(1, 1);
    b.write(0..100);
    b.mark(2, 1);
    b.write(100..200);
    assert_eq!(b.play(200), numbers(0..200));
    assert_eq!(b.heard(0), [1]);
    assert_eq!(b.heard(99), [0u64; 0]);
    assert_eq!(b.feed.until_note(), Some(1));
    assert_eq!(b.heard(100), [2]);
}

#[test]
fn what_was_not_heard_is_given_again_without_a_frame_lost_or_repeated() {
    let mut b = Bench::new();
    b.mark(1, 1);
    b.write(0..300);
    assert_eq!(b.play(150), numbers(0..150));
    b.heard(42);
    b.feed.again();
    assert_eq!(b.play(300), numbers(42..300));
}

#[test]
fn a_cut_drops_the_card_and_the_ring_and_waits_for_the_new_generation() {
    let mut b = Bench::new();
    b.mark(1, 1);
    b.write(0..300);
    b.play(100);
    b.heard(50);
    assert!(b.feed.cut(2));
    assert!(b.feed.current.is_none());
    b.write(300..350); // the old writer has not noticed yet
    assert!(!b.feed.has_frames());
    assert_eq!(b.play(10), [0i32; 0]);
    b.mark(2, 2);
    b.write(1000..1100);
    assert_eq!(b.play(500), numbers(1000..1100));
    let at = b.feed.written - 100;
    assert_eq!(b.heard(at), [2]);
}

#[test]
fn a_cut_keeps_frames_of_its_generation_that_the_card_has_already() {
    let mut b = Bench::new();
    b.mark(1, 1);
    b.write(0..50);
    b.mark(2, 2);
    b.write(50..100);
    b.play(100);
    b.heard(10);
    assert!(b.feed.cut(2));
    assert_eq!(b.play(100), numbers(50..100));
    assert!(!b.feed.cut(2), "a second time there is nothing to cut");
}

#[test]
fn a_cut_below_what_plays_changes_nothing() {
    let mut b = Bench::new();
    b.mark(1, 5);
    b.write(0..50);
    b.play(50);
    b.heard(10);
    assert!(!b.feed.cut(5));
    assert_eq!(b.feed.unheard(), 40);
}

#[test]
fn the_next_entry_is_taken_back_from_the_ring() {
    let mut b = Bench::new();
    b.mark(1, 1);
    b.write(0..200);
    b.mark(2, 1);
    b.write(200..300);
    b.play(100);
    b.heard(50);
    assert!(!b.feed.cut_after(EntryId(2), 2), "the card has none of it");
    b.mark(3, 2);
    b.write(900..950);
    assert_eq!(b.play(500), [numbers(100..200), numbers(900..950)].concat());
    assert_eq!(b.heard(200), [3]);
}

#[test]
fn the_next_entry_is_taken_back_from_the_card() {
    let mut b = Bench::new();
    b.mark(1, 1);
    b.write(0..100);
    b.mark(2, 1);
    b.write(100..200);
    b.play(150);
    b.heard(60);
    assert!(b.feed.cut_after(EntryId(2), 2));
    b.feed.again();
    b.mark(3, 2);
    b.write(900..920);
    assert_eq!(b.play(500), [numbers(60..100), numbers(900..920)].concat());
}

#[test]
fn an_entry_whose_mark_comes_later_is_taken_back_too() {
    let mut b = Bench::new();
    b.mark(1, 1);
    b.write(0..100);
    b.heard(0);
    assert!(!b.feed.cut_after(EntryId(2), 2));
    b.mark(2, 1);
    b.write(100..200);
    b.mark(4, 1);
    b.write(200..220);
    b.mark(3, 2);
    b.write(900..920);
    assert_eq!(b.play(500), [numbers(0..100), numbers(900..920)].concat());
}

#[test]
fn an_entry_that_is_heard_is_not_taken_back() {
    let mut b = Bench::new();
    b.mark(1, 1);
    b.write(0..100);
    b.play(100);
    b.heard(10);
    assert!(!b.feed.cut_after(EntryId(1), 2));
    assert_eq!(b.heard(100), [0u64; 0]);
    b.mark(2, 1);
    b.write(100..120);
    assert_eq!(b.play(50), numbers(100..120));
}

#[test]
fn an_end_is_reached_when_everything_before_it_is_heard() {
    let mut b = Bench::new();
    b.mark(1, 1);
    b.write(0..100);
    b.note(1, What::End);
    b.play(200);
    assert!(b.feed.at_stop());
    b.heard(99);
    assert!(b.feed.at_stop());
    b.feed.set_heard(100);
    assert!(matches!(b.feed.reached(true).unwrap().note.what, What::End));
}

#[test]
fn a_later_change_of_format_replaces_one_that_nobody_waits_for() {
    let mut b = Bench::new();
    let format = SourceFormat { rate: 48_000, channels: 2, bits: 16, lossy: false };
    b.mark(1, 1);
    b.write(0..100);
    b.note(1, What::SetUp { request: 1, format });
    b.play(200);
    assert!(b.feed.pending_set_up().is_none(), "the old frames are not heard yet");
    b.note(2, What::SetUp { request: 2, format });
    b.heard(100);
    let note = b.feed.pending_set_up().unwrap();
    assert!(matches!(note.what, What::SetUp { request: 2, .. }));
    b.feed.put_back(note);
    assert!(b.feed.waits_for_set_up());
    assert!(b.feed.cut(3));
    assert!(!b.feed.waits_for_set_up());
}

proptest::proptest! {
    /// Whatever the card takes and plays, pauses in between lose and repeat nothing.
    #[test]
    fn pauses_at_any_moment_keep_every_frame(steps in proptest::collection::vec((1usize..90, 0u64..90, proptest::bool::ANY), 1..40)) {
        let mut b = Bench::new();
        b.mark(1, 1);
        let mut sound = Vec::new();
        let mut next = 0;
        for (room, heard, pause) in steps {
            if b.ring.slots() >= 100 {
                b.write(next..next + 100);
                next += 100;
            }
            let room = room.min(190usize.saturating_sub(b.feed.unheard() as usize));
            let before = b.feed.written as usize;
            let got = b.play(room);
            sound.truncate(before);
            sound.extend(got);
            let at = (b.feed.heard + heard).min(b.feed.written);
            b.heard(at);
            if pause {
                b.feed.again();
            }
        }
        proptest::prop_assert_eq!(sound.clone(), numbers(0..sound.len() as i32));
    }
}
