//! The decode thread's end of the output.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use rtrb::{Consumer, Producer};

use super::format::{CardFormat, SourceFormat};
use super::marks::{Mark, Note, Prepared, What};
use super::shared::{Shared, calm};

/// Answer to `PcmWriter::begin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginState {
    /// Frames may be written, at this rate and with these channels.
    Ready(CardFormat),
    /// What is before is still heard, or there is no device: `wait`, then ask again.
    Waiting,
}

/// Writes frames and marks. There is one; the decode thread has it.
///
/// Frames of a generation that was cut are thrown away by the other side, so a writer never gets stuck with them.
pub struct PcmWriter {
    shared: Arc<Shared>,
    notes: Producer<Note>,
    answers: Consumer<Prepared>,
    /// The ring that is written to; None before the first format and while another is set up.
    ring: Option<Prepared>,
    asked: Option<Asked>,
    /// Of the frames that are written now.
    generation: u64,
    requests: u64,
    written: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Asked {
    request: u64,
    format: SourceFormat,
    generation: u64,
}

impl PcmWriter {
    pub(super) fn new(shared: Arc<Shared>, notes: Producer<Note>, answers: Consumer<Prepared>) -> PcmWriter {
        PcmWriter { shared, notes, answers, ring: None, asked: None, generation: 0, requests: 0, written: 0 }
    }

    /// Announces the format of the frames that follow.
    ///
    /// In the format that runs already (at the card) this returns `Ready` at once and nothing happens at the join.
    /// Otherwise what was written before is heard to its end, then the device is set up anew; until then `Waiting`,
    /// and nothing can be written. While `Waiting`, calling again with the same arguments asks for the answer, with
    /// other arguments it replaces the question. A `cut` of this generation silences the question: see `is_cut`.
    pub fn begin(&mut self, format: SourceFormat, generation: u64) -> BeginState {
        self.take_answers();
        let stale = self.shared.stale_ring.load(Relaxed);
        if self.ring.as_ref().is_some_and(|r| r.request == stale) {
            self.ring = None;
        }
        if let Some(asked) = self.asked {
            if (asked.format, asked.generation) == (format, generation) {
                return BeginState::Waiting;
            }
        } else if let Some(ring) = &mut self.ring {
            if ring.format == format && self.generation == generation {
                return BeginState::Ready(ring.card);
            }
            let same = ring.format == format || ring.abilities.choose(&format) == Some(ring.card);
            if same {
                let card = ring.card;
                if !self.note(generation, What::Continue(format)) {
                    return BeginState::Waiting;
                }
                if let Some(ring) = &mut self.ring {
                    ring.format = format;
                }
                self.generation = generation;
                return BeginState::Ready(card);
            }
        }
        let request = self.requests + 1;
        if self.note(generation, What::SetUp { request, format }) {
            self.requests = request;
            self.asked = Some(Asked { request, format, generation });
            self.ring = None;
        }
        BeginState::Waiting
    }

    fn take_answers(&mut self) {
        while let Ok(answer) = self.answers.pop() {
            if let Some(asked) = self.asked.filter(|a| a.request == answer.request) {
                self.generation = asked.generation;
                self.asked = None;
                self.ring = Some(answer);
            }
        }
    }

    /// Puts a mark at the next frame that is written. False when too many marks wait: `wait`, then try again.
    pub fn mark(&mut self, mark: Mark) -> bool {
        self.note(mark.generation, What::Mark(mark))
    }

    fn note(&mut self, generation: u64, what: What) -> bool {
        let sent = self.notes.push(Note { at: self.written, generation, what }).is_ok();
        if sent {
            self.shared.fed();
        }
        sent
    }

    /// Writes whole frames, interleaved and left-justified, in the card's rate and channels.
    /// Returns how many *frames* were taken; 0 when the ring is full or no format is ready.
    pub fn write(&mut self, samples: &[i32]) -> usize {
        let Some(ring) = &mut self.ring else { return 0 };
        let channels = usize::from(ring.card.channels).max(1);
        let frames = (ring.ring.slots() / channels).min(samples.len() / channels);
        if frames == 0 || ring.ring.push_entire_slice(&samples[..frames * channels]).is_err() {
            return 0;
        }
        self.written += frames as u64;
        self.shared.fed();
        frames
    }

    /// Says that no more frames come for now: what was written is heard to its end, then `Event::Finished`.
    /// False when too many marks wait: `wait`, then try again.
    pub fn end(&mut self, generation: u64) -> bool {
        self.note(generation, What::End)
    }

    /// True if `generation` was cut, so that writing it has become pointless.
    pub fn is_cut(&self, generation: u64) -> bool {
        self.shared.cut.load(Relaxed) > generation
    }

    /// What the card runs at, while a format is ready.
    pub fn card(&self) -> Option<CardFormat> {
        self.ring.as_ref().map(|r| r.card)
    }

    /// Whether frames of this format could follow what was written without a new set-up of the card.
    pub fn joins(&self, format: &SourceFormat) -> bool {
        let fits =
            |ring: &Prepared| ring.format == *format || ring.abilities.choose(format) == Some(ring.card);
        self.asked.is_none() && self.ring.as_ref().is_some_and(fits)
    }

    /// Frames that the ring can hold; 0 while no format is ready.
    pub fn capacity(&self) -> usize {
        self.ring.as_ref().map_or(0, |r| r.ring.buffer().capacity() / usize::from(r.card.channels).max(1))
    }

    /// Frames that `write` would take now.
    pub fn room(&self) -> usize {
        self.ring.as_ref().map_or(0, |r| r.ring.slots() / usize::from(r.card.channels).max(1))
    }

    /// Half of the ring is free, or there is none.
    pub fn is_half_empty(&self) -> bool {
        self.ring.as_ref().is_none_or(|r| r.ring.slots() * 2 >= r.ring.buffer().capacity())
    }

    /// Waits until half the ring is free, the answer to `begin` is there, marks are taken again, `also` is readable,
    /// or `timeout` has passed. Returns true if `also` is readable.
    ///
    /// Half a ring at a time, so that the decode thread works once a second instead of for each period.
    pub fn wait(&mut self, also: BorrowedFd, timeout: Duration) -> bool {
        self.shared.starving.store(true, SeqCst);
        let has_room = self.ring.is_some() && self.is_half_empty() && self.notes.slots() > 0;
        let has_answer = self.asked.is_some() && !self.answers.is_empty();
        let timeout = if has_room || has_answer { Duration::ZERO } else { timeout };
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let readable = {
            let mut fds = [
                PollFd::new(self.shared.space.as_fd(), PollFlags::POLLIN),
                PollFd::new(also, PollFlags::POLLIN),
            ];
            // Interrupted or failed: the caller looks for itself.
            let _ = nix::poll::poll(&mut fds, PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX));
            fds[1].any().unwrap_or(false)
        };
        self.shared.starving.store(false, SeqCst);
        calm(&self.shared.space);
        readable
    }
}
