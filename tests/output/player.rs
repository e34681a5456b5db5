//! An output with a writer and its events, driven by a test.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use segue::output::{
    BeginState, CardFormat, Event, EventStream, Mark, Output, PcmWriter, Settings, SourceFormat, Treatment,
};
use segue::track::EntryId;

use crate::card::Card;

/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Player {
    pub output: Output,
    pub writer: PcmWriter,
    events: EventStream,
    runtime: tokio::runtime::Runtime,
    /// Never readable.
    quiet: OwnedFd,
    _other: OwnedFd,
    waiting: Vec<i32>,
    ending: Option<u64>,
}

pub fn settings(card: &Card) -> Settings {
    Settings { device: vec![card.name.clone()], ..Settings::default() }
}

/// Reproducible noise of so many significant bits, two channels, without a zero frame.
pub fn noise(frames: usize, bits: u16, seed: u32) -> Vec<i32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    (0..frames * 2)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            ((state as i32 >> (32 - bits)) | 1) << (32 - bits)
        })
        .collect()
}

impl Player {
    pub fn start(settings: Settings) -> Player {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (output, events) = Output::start(settings).expect("the output starts");
        let writer = output.writer().expect("the writer is there once");
        let (quiet, other) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
        Player {
            output,
            writer,
            events,
            runtime,
            quiet: quiet.into(),
            _other: other.into(),
            waiting: Vec::new(),
            ending: None,
        }
    }

    /// Announces a format and keeps what waits flowing until it is ready.
    pub fn begin(&mut self, format: SourceFormat, generation: u64) -> CardFormat {
        let deadline = Instant::now() + PATIENCE;
        self.flush();
        loop {
            if let BeginState::Ready(card) = self.writer.begin(format, generation) {
                return card;
            }
            assert!(Instant::now() < deadline, "no device");
            self.writer.wait(self.quiet.as_fd(), Duration::from_secs(1));
        }
    }

    /// Marks an entry and queues its sound; `until` and `play_on` write what does not fit.
    pub fn play(&mut self, entry: u64, generation: u64, sound: &[i32]) {
        self.flush();
        let mark = Mark {
            entry: EntryId(entry),
            generation,
            position: Duration::ZERO,
            source_frame: 0,
            opening: 0,
            part: 0,
            treatment: Treatment::NONE,
        };
        assert!(self.writer.mark(mark));
        self.write(sound);
    }

    pub fn write(&mut self, sound: &[i32]) {
        self.waiting.extend_from_slice(sound);
        self.pump();
    }

    /// Forgets what does not fit.
    pub fn stop_writing(&mut self) {
        self.waiting.clear();
        self.ending = None;
    }

    pub fn end(&mut self, generation: u64) {
        self.ending = Some(generation);
        self.pump();
    }

    fn pump(&mut self) {
        let took =
            self.writer.write(&self.waiting) * self.writer.card().map_or(1, |c| usize::from(c.channels));
        self.waiting.drain(..took);
        if self.waiting.is_empty()
            && let Some(generation) = self.ending.take()
        {
            assert!(self.writer.end(generation));
        }
    }

    fn flush(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.waiting.is_empty() {
            self.pump();
            assert!(Instant::now() < deadline, "the output takes no frames");
            self.writer.wait(self.quiet.as_fd(), Duration::from_millis(100));
        }
    }

    /// Lets the sound go on for a while.
    pub fn play_on(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            self.pump();
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
    }

    /// Lets the sound go on until this event; returns all events on the way, this one last.
    pub fn until(&mut self, is_it: impl Fn(&Event) -> bool) -> Vec<Event> {
        let deadline = Instant::now() + PATIENCE;
        let mut all = Vec::new();
        loop {
            self.pump();
            let next = self.runtime.block_on(async {
                tokio::time::timeout(Duration::from_millis(20), self.events.next()).await
            });
            match next {
                Ok(Some(event)) => {
                    let found = is_it(&event);
                    all.push(event);
                    if found {
                        return all;
                    }
                }
                Ok(None) => panic!("the output ended after {all:?}"),
                Err(_) => assert!(Instant::now() < deadline, "not among {all:?}; {:?}", self.output.facts()),
            }
        }
    }

    /// Everything that happens within this time.
    pub fn events_within(&mut self, time: Duration) -> Vec<Event> {
        self.play_on(time);
        std::iter::from_fn(|| self.events.try_next()).collect()
    }

    pub fn next_event(&mut self) -> Option<Event> {
        while let Some(event) = self.events.try_next() {
            drop(event);
        }
        self.runtime.block_on(self.events.next())
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.output.shutdown(Duration::ZERO);
    }
}
