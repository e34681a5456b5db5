//! The decode thread's handle, and what is said to it and by it.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};
use tokio::sync::mpsc::UnboundedSender;

use super::feed::{Feed, LaidDown};
use super::inbox::Inbox;
use super::open::OpenTrack;
use super::runaway::{Desk, Found, Runaways, Watch};
use crate::decode::DecodeError;
use crate::dsp;
use crate::output::PcmWriter;
use crate::player::Ticket;
use crate::track::{EntryId, TrackInfo};

/// What the decode thread is told.
pub(super) enum Message {
    /// Decode this now, in place of what was decoded before. Without a track: the one that was to be next.
    Feed { ticket: Ticket, track: Option<Box<OpenTrack>>, generation: u64 },
    /// Decode this when the one before it is at its end.
    Next { ticket: Ticket, track: Box<OpenTrack> },
    /// What comes behind this track, which failed, is decided.
    GoOn(Ticket),
    /// Forget this track.
    Abandon(Ticket),
    /// Go on at another position of this track.
    Seek { ticket: Ticket, generation: u64, position: Duration },
    /// Sound of this track is not to be heard: it is forgotten, and what comes behind the track before it is of
    /// this generation.
    TakeBack { ticket: Ticket, generation: u64 },
    /// All bytes of this track are here: find out how long it is, where only its end tells.
    Measure(Ticket),
    /// What is to be done to the samples from now on.
    Sound(dsp::Settings),
    /// Nothing follows: let the ring be heard to its end.
    End { generation: u64 },
}

/// What the decode thread tells.
#[derive(Debug)]
pub(super) enum Told {
    /// It went on with the next track.
    TookNext { from: Ticket, ticket: Ticket, entry: EntryId },
    /// It is at the end of this track, in this generation, and has nothing to go on with.
    AtEnd(Ticket, u64),
    /// It was asked for a track that it does not have any more.
    Lost(Ticket),
    /// It goes on here after a seek.
    Landed { ticket: Ticket, position: Duration, exact: bool },
    /// This track is so long.
    Measured(Ticket, Duration),
    /// It had to give this track up, in this generation; its sound comes as far as this.
    Failed(Ticket, u64, DecodeError, Duration),
    /// Another part of the recording begins: it is heard when the mark with this number is.
    Part(Ticket, Part),
}

/// A part of a recording: a station's title, a link of a chain.
#[derive(Debug)]
pub(super) struct Part {
    /// As in the marks.
    pub(super) number: u64,
    /// What it is called, where that is told.
    pub(super) info: Option<TrackInfo>,
    /// For example `Vorbis`.
    pub(super) codec: String,
}

/// How long the end of the program waits for the thread. A decoder that computes longer is left behind.
const JOIN_WITHIN: Duration = Duration::from_millis(500);

/// The rest of the program's end of the decode thread. Dropping it ends the thread, as soon as no stream holds
/// it up: abort the streams first.
pub(super) struct Feeder {
    messages: Option<Sender<Message>>,
    wake: Arc<EventFd>,
    desk: Arc<Desk<LaidDown>>,
    watch: Watch,
    thread: Option<JoinHandle<()>>,
    runaways: Runaways,
}

impl Feeder {
    /// Starts the thread.
    pub(super) fn start(
        writer: PcmWriter,
        told: UnboundedSender<Inbox>,
        runaways: Runaways,
    ) -> std::io::Result<Feeder> {
        let wake = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?);
        let (messages, receiver) = mpsc::channel();
        let (desk, thread) = start(Box::new(Feed::new(writer, told, receiver, wake.clone())))?;
        let (messages, thread) = (Some(messages), Some(thread));
        Ok(Feeder { messages, wake, desk, watch: Watch::default(), thread, runaways })
    }

    /// False once the thread has ended, which it should not while this exists.
    pub(super) fn lives(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Looks after the thread, and puts another in its place if its decoder has run away. To be called every few
    /// seconds while this says that it is in a decoder.
    pub(super) fn is_in_decoder(&mut self) -> bool {
        let (laid_down, thread) = match self.watch.look(&self.desk) {
            Found::Outside => return false,
            Found::Inside => return true,
            Found::RanAway(laid_down, thread) => (laid_down, thread),
        };
        self.runaways.leave(thread);
        self.watch = Watch::default();
        match start(laid_down.without_the_track()) {
            // The old thread's handle goes, not the thread.
            Ok((desk, thread)) => (self.desk, self.thread) = (desk, Some(thread)),
            Err(error) => {
                tracing::error!(%error, "cannot start another thread to decode");
                self.thread = None;
            }
        }
        true
    }

    /// Leaves a message and wakes the thread.
    pub(super) fn tell(&self, message: Message) {
        if let Some(messages) = &self.messages {
            // A thread that has ended takes no message; the program is on its way out then.
            let _ = messages.send(message);
            let _ = self.wake.write(1);
        }
    }
}

fn start(feed: Box<Feed>) -> std::io::Result<(Arc<Desk<LaidDown>>, JoinHandle<()>)> {
    let desk = Arc::new(Desk::new());
    let its = Arc::clone(&desk);
    let thread = std::thread::Builder::new().name("decode".to_owned()).spawn(move || feed.run(&its))?;
    Ok((desk, thread))
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.messages = None;
        let _ = self.wake.write(1);
        let Some(thread) = self.thread.take() else { return };
        let deadline = Instant::now() + JOIN_WITHIN;
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        if thread.is_finished() {
            // A panic of that thread has been reported where it happened.
            let _ = thread.join();
        }
    }
}
