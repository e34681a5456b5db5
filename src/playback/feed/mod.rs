//! The decode thread: takes opened tracks, and feeds the output without a break from one to the next.
//!
//! It owns the decoder that works now, the one that comes next, and the writing end of the ring. It blocks in
//! three places only: for a message when there is nothing to do, for room in the ring (a message wakes it), and
//! in a track's stream (an interrupt or an abort of that stream ends the wait).

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::eventfd::EventFd;
use tokio::sync::mpsc::UnboundedSender;

use self::calls::Call;
use self::joins::Left;
use self::work::{Stage, Work};
use super::feeder::{Message, Told};
use super::inbox::Inbox;
use super::open::OpenTrack;
use super::runaway::Desk;
use crate::dsp;
use crate::output::PcmWriter;
use crate::player::Ticket;

mod calls;
mod crossfade;
mod joins;
mod orders;
mod processing;
mod ring;
mod work;

pub(super) use calls::LaidDown;

/// While the ring is full the thread looks again after this time even if nobody wakes it.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The thread's own state.
pub(super) struct Feed {
    writer: PcmWriter,
    told: UnboundedSender<Inbox>,
    messages: Receiver<Message>,
    wake: Arc<EventFd>,
    current: Option<Work>,
    next: Option<(Ticket, Box<OpenTrack>)>,
    /// The track that was decoded to its end before one that was taken back: what comes next follows it.
    left: Option<Left>,
    /// The track that the current one is faded into, until that is heard: it may be wanted back.
    before: Option<Work>,
    generation: u64,
    /// What is to be done to the samples.
    sound: dsp::Settings,
    /// The end of the music is still to be announced to the output.
    end: Option<u64>,
    /// Messages that are read and not obeyed yet.
    waiting: VecDeque<Message>,
}

/// What to do after a step.
enum Step {
    Again,
    WaitForRoom,
    WaitForMessage,
    Decoder(Call),
}

impl Feed {
    pub(super) fn new(
        writer: PcmWriter,
        told: UnboundedSender<Inbox>,
        messages: Receiver<Message>,
        wake: Arc<EventFd>,
    ) -> Feed {
        Feed {
            writer,
            told,
            messages,
            wake,
            current: None,
            next: None,
            left: None,
            before: None,
            generation: 0,
            sound: dsp::Settings::default(),
            end: None,
            waiting: VecDeque::new(),
        }
    }

    /// Works until the other end of the message channel is gone, or somebody else goes on with it.
    pub(super) fn run(self: Box<Self>, desk: &Desk<LaidDown>) {
        let mut feed = self;
        loop {
            let Some(step) = feed.turn() else { return };
            match step {
                Step::Again => {}
                Step::WaitForRoom => {
                    if feed.writer.wait(feed.wake.as_fd(), LOOK_AGAIN) {
                        let _ = feed.wake.read();
                    }
                }
                Step::WaitForMessage => {
                    let mut fds = [PollFd::new(feed.wake.as_fd(), PollFlags::POLLIN)];
                    let _ = nix::poll::poll(&mut fds, PollTimeout::NONE);
                    let _ = feed.wake.read();
                }
                Step::Decoder(call) => match feed.call(call, desk) {
                    Some(same) => feed = same,
                    None => return,
                },
            }
        }
    }

    /// One message, or one step; `None` when nobody is there any more to send messages.
    fn turn(&mut self) -> Option<Step> {
        loop {
            match self.messages.try_recv() {
                Ok(message) => self.waiting.push_back(message),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => break,
            }
        }
        let Some(message) = self.waiting.pop_front() else { return Some(self.step()) };
        // Of a burst of seeks only the last is worth its time.
        let obsolete = matches!(message, Message::Seek { .. })
            && self.waiting.iter().any(|later| matches!(later, Message::Seek { .. } | Message::Feed { .. }));
        let call = if obsolete { None } else { self.obey(message) };
        Some(call.map_or(Step::Again, Step::Decoder))
    }

    fn tell(&self, what: Told) {
        // Nobody listens any more only when the program is on its way out.
        let _ = self.told.send(Inbox::Feeder(what));
    }

    fn step(&mut self) -> Step {
        if let Some(generation) = self.end {
            match self.current.as_mut().filter(|work| work.is_unwritten_at_end()) {
                Some(work) => work.released = true,
                None if !self.writer.end(generation) => return Step::WaitForRoom,
                None => self.end = None,
            }
        }
        let Some(work) = &mut self.current else { return Step::WaitForMessage };
        if let most @ 1.. = work.is_due(&self.sound, &self.writer) {
            return self.write(most);
        }
        if !work.pcm.is_empty() {
            return self.convert();
        }
        match work.stage {
            Stage::Decoding => Step::Decoder(Call::Next),
            Stage::Ending => self.come_to_the_end(),
            // What may be joined waits for that as long as there is time.
            Stage::AtEnd if work.holds_back() && (self.end.is_some() || self.writer.is_half_empty()) => {
                work.finish(&self.sound);
                work.stage = Stage::Ending;
                Step::Again
            }
            Stage::AtEnd if work.holds_back() || work.waiting() > 0 => Step::WaitForRoom,
            Stage::AtEnd | Stage::AwaitingSeek => Step::WaitForMessage,
        }
    }
}
