//! Plays the numbered sound as a player does: marks, seeks, and a new start where the output asks for one.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use segue::output::{
    BeginState, Event, EventStream, Mark, Output, PcmWriter, Settings, SourceFormat, Treatment,
};
use segue::track::EntryId;

use crate::signal::frame;

/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Frames made in one go.
const CHUNK: u32 = 4_800;

pub const RATE: u32 = 48_000;
const FORMAT: SourceFormat = SourceFormat { rate: RATE, channels: 2, bits: 32, lossy: false };

pub struct Feeder {
    pub output: Output,
    writer: PcmWriter,
    events: EventStream,
    frames: u32,
    generation: u64,
    next: u32,
    /// Where this generation began.
    target: u32,
    begun: bool,
    ended: bool,
    /// Never readable.
    quiet: OwnedFd,
    _other: OwnedFd,
    pub finished: bool,
    pub told: Vec<Event>,
}

impl Feeder {
    pub fn start(settings: Settings, frames: u32) -> Feeder {
        let (output, events) = Output::start(settings).expect("the output starts");
        let writer = output.writer().expect("the writer is there once");
        let (quiet, other) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
        Feeder {
            output,
            writer,
            events,
            frames,
            generation: 1,
            next: 0,
            target: 0,
            begun: false,
            ended: false,
            quiet: quiet.into(),
            _other: other.into(),
            finished: false,
            told: Vec::new(),
        }
    }

    /// Goes on at another frame, at once.
    pub fn seek(&mut self, frame: u32) {
        self.generation += 1;
        self.output.cut(self.generation);
        (self.next, self.target) = (frame, frame);
        (self.begun, self.ended, self.finished) = (false, false, false);
    }

    /// Does what can be done without waiting.
    pub fn pump(&mut self) {
        self.listen();
        if !self.begun {
            let ready = matches!(self.writer.begin(FORMAT, self.generation), BeginState::Ready(_));
            self.begun = ready && self.writer.mark(self.mark());
        }
        let Some(card) = self.writer.card().filter(|_| self.begun) else { return };
        let channels = usize::from(card.channels);
        while self.next < self.frames {
            let wanted = (self.frames - self.next).min(CHUNK).min(self.writer.room() as u32);
            let samples: Vec<i32> =
                (self.next..self.next + wanted).flat_map(|number| frame(number, channels)).collect();
            let took = self.writer.write(&samples) as u32;
            self.next += took;
            if took == 0 {
                return;
            }
        }
        self.ended = self.ended || self.writer.end(self.generation);
    }

    fn mark(&self) -> Mark {
        Mark {
            entry: EntryId(1),
            generation: self.generation,
            position: Duration::from_nanos(u64::from(self.next) * 1_000_000_000 / u64::from(RATE)),
            source_frame: u64::from(self.next),
            opening: 0,
            part: 0,
            treatment: Treatment::NONE,
        }
    }

    fn listen(&mut self) {
        while let Some(event) = self.events.try_next() {
            match &event {
                Event::Finished { generation } if *generation == self.generation => self.finished = true,
                Event::NeedsRestart { generation } if *generation == self.generation => {
                    let heard = self.output.playhead().filter(|p| p.generation == self.generation);
                    let frame =
                        |position: Duration| (position.as_secs_f64() * f64::from(RATE)).round() as u32;
                    self.seek(heard.map_or(self.target, |playhead| frame(playhead.position)));
                }
                _ => {}
            }
            self.told.push(event);
        }
    }

    /// Lets the sound go on for a while.
    pub fn play_on(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            self.pump();
            self.writer.wait(self.quiet.as_fd(), left.min(Duration::from_millis(20)));
        }
    }

    /// Lets the sound go on until its end; false if that does not come.
    pub fn play_to_end(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while !self.finished && Instant::now() < deadline {
            self.play_on(Duration::from_millis(20));
        }
        self.finished
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.output.shutdown(Duration::ZERO);
    }
}
