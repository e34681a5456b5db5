//! The thread that owns the device: takes orders, keeps the card fed, tells what is heard, and sleeps.
//!
//! While it plays it takes no lock, allocates nothing and logs nothing. It wakes up when half of the card's buffer is
//! free, when a mark in that buffer is due, and when somebody gives an order.

mod device;
mod play;
mod recover;
mod silence;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use nix::sys::inotify::Inotify;
use rtrb::{Consumer, Producer};

use super::alsa::{Device, Level, Poller};
use super::convert::Noise;
use super::feed::Feed;
use super::format::{CardFormat, SourceFormat};
use super::marks::{Event, Prepared, What};
use super::playhead::{Observation, duration, now_ns};
use super::refill::Refill;
use super::shared::{Settings, Shared, calm, wake};
use super::volume::Gain;
use crate::track::EntryId;
use device::Lost;

/// An entry to take back, and the generation that follows it.
pub(super) type TakeBack = (EntryId, u64);

/// What the card does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// Nothing; there may be no device at all.
    Stopped,
    /// It is given its first frames.
    Filling,
    /// It plays.
    Running,
    /// It plays its last frames and the silence behind them, at most until then.
    Draining { until: Instant },
    /// The machine slept and the card is not back yet; it had played about so far, as play count.
    Asleep { heard: u64 },
    /// It plays silence, to stay awake.
    Silent,
}

/// Ends of the queues to the rest of the program.
pub(super) struct Links {
    pub notes: Consumer<super::marks::Note>,
    pub answers: Producer<Prepared>,
    pub take_backs: Consumer<TakeBack>,
    pub events: Producer<Event>,
}

pub(super) struct OutputThread {
    shared: Arc<Shared>,
    settings: Settings,
    /// The device that a person chose, before those of the settings.
    selected: Option<String>,
    feed: Feed,
    answers: Producer<Prepared>,
    take_backs: Consumer<TakeBack>,
    events: Producer<Event>,
    told: bool,
    answered: bool,
    device: Option<Device>,
    /// The device that what is under way was heard on last.
    on: Option<String>,
    lost: Option<Lost>,
    watch: Option<Inotify>,
    flow: Flow,
    /// Format for which the ring was made.
    ring: Option<RingFor>,
    gain: Gain,
    noise: Noise,
    samples: Box<[i32]>,
    bytes: Box<[u8]>,
    level: Level,
    /// When `level` was asked.
    level_ns: u64,
    /// Frames of silence behind the last frame of sound.
    silence: usize,
    /// Frames of silence that are still to be written in front of the sound.
    lead: usize,
    /// Frames of silence that the card has in front of the sound that it was given.
    leading: u64,
    /// The device was opened and has not played yet.
    asleep: bool,
    /// The system lets this thread run above ordinary ones.
    may_be_realtime: bool,
    fade_next: bool,
    /// Recoveries since the card last moved.
    recoveries: u32,
    moved: Instant,
    stopped: Instant,
    dry_since: Option<Instant>,
    refill: Refill,
    paused: bool,
    cut: u64,
}

#[derive(Clone, Copy)]
struct RingFor {
    request: u64,
    source: SourceFormat,
    card: CardFormat,
}

/// How long to sleep, and whether the card may wake us.
struct Sleep {
    timeout: Option<Duration>,
    card: bool,
}

impl OutputThread {
    pub fn new(shared: Arc<Shared>, settings: Settings, links: Links) -> OutputThread {
        let volume = shared.gain();
        OutputThread {
            shared,
            settings,
            selected: None,
            feed: Feed::new(links.notes),
            answers: links.answers,
            take_backs: links.take_backs,
            events: links.events,
            told: false,
            answered: false,
            device: None,
            on: None,
            lost: None,
            watch: None,
            flow: Flow::Stopped,
            ring: None,
            gain: Gain::new(48_000, volume),
            noise: Noise::new(),
            samples: Box::default(),
            bytes: Box::default(),
            level: Level { avail: 0, delay: 0 },
            level_ns: 0,
            silence: 0,
            lead: 0,
            leading: 0,
            asleep: true,
            may_be_realtime: false,
            fade_next: false,
            recoveries: 0,
            moved: Instant::now(),
            stopped: Instant::now(),
            dry_since: None,
            refill: Refill::default(),
            paused: false,
            cut: 0,
        }
    }

    /// Runs until it is asked to end.
    pub fn run(mut self) {
        self.try_realtime();
        let mut poller = Poller::new();
        loop {
            let fed = self.shared.fed.load(SeqCst);
            if self.shared.ending.load(SeqCst) {
                self.finish();
                return;
            }
            let sleep = self.turn();
            self.tell();
            // While the card wakes us the writer need not.
            self.shared.hungry.store(!sleep.card, SeqCst);
            if !sleep.card && self.shared.fed.load(SeqCst) != fed {
                continue;
            }
            let device = if sleep.card { self.device.as_ref() } else { None };
            let watch = if self.lost.is_some() { self.watch.as_ref() } else { None };
            let woken =
                poller.wait(self.shared.orders.as_fd(), watch.map(|w| w.as_fd()), device, sleep.timeout);
            if woken.order {
                calm(&self.shared.orders);
            }
            if woken.devices {
                self.devices_changed();
            }
            if woken.trouble {
                self.troubled();
            }
        }
    }

    /// One round: orders, then what the card played, then what it gets.
    fn turn(&mut self) -> Sleep {
        self.look();
        self.take_orders();
        self.tell_notes();
        if self.flow == Flow::Stopped {
            self.set_up_if_due();
            self.fill_if_wanted();
        }
        match self.flow {
            Flow::Filling | Flow::Running => self.feed_card(),
            Flow::Draining { until } => self.drain(until),
            Flow::Asleep { .. } => self.wake_card(),
            Flow::Silent => self.stay_awake(),
            Flow::Stopped => {}
        }
        self.tell_notes();
        // A format, or frames, that came while the last ones were heard are due now: nobody will wake us for them.
        if self.flow == Flow::Stopped {
            self.set_up_if_due();
            self.fill_if_wanted();
            if self.flow == Flow::Filling {
                self.feed_card();
            }
        }
        if self.flow == Flow::Stopped {
            self.keep_awake_if_wanted();
        }
        self.publish();
        self.sleep()
    }

    fn take_orders(&mut self) {
        let cut = self.shared.cut.load(SeqCst);
        if cut > self.cut {
            self.cut = cut;
            self.refill.forget();
            let sounded = self.is_sounding() || matches!(self.flow, Flow::Asleep { .. });
            if self.feed.cut(cut) && !self.is_still() {
                self.stop_card();
                self.fade_next |= sounded;
            }
            self.try_soon();
        }
        while let Ok((entry, generation)) = self.take_backs.pop() {
            // What is heard by now is not taken back, and the usual look is only nearly exact.
            if self.is_sounding() {
                self.look_exactly();
                self.tell_notes();
            }
            if self.feed.cut_after(entry, generation) && self.flow != Flow::Stopped {
                let fade = self.fade_next;
                self.halt();
                self.fade_next = fade;
            }
        }
        if self.shared.rested.swap(false, SeqCst) {
            self.rest();
            if !self.is_still() {
                self.note_device();
            }
        }
        if self.shared.reselect.swap(false, SeqCst) {
            self.select();
        }
        let paused = self.shared.paused.load(SeqCst);
        if paused != self.paused {
            self.paused = paused;
            if paused && !self.is_still() {
                self.halt();
            }
            if !paused {
                self.try_soon();
            }
        }
        // What the card has been given goes on at the volume that it has.
        let silent = self.is_still();
        self.gain.set_volume(self.shared.gain(), silent);
    }

    /// Nothing of the sound is in the card.
    fn is_still(&self) -> bool {
        matches!(self.flow, Flow::Stopped | Flow::Silent)
    }

    fn is_sounding(&self) -> bool {
        matches!(self.flow, Flow::Running | Flow::Draining { .. })
    }

    /// It plays, and what it plays is sound.
    fn is_heard(&self) -> bool {
        self.is_sounding() && self.leading == 0
    }

    /// Passes on what has been heard.
    fn tell_notes(&mut self) {
        while let Some(taken) = self.feed.reached(self.is_heard()) {
            match taken.note.what {
                What::Mark(mark) => {
                    self.shared.set_treatment(mark.treatment);
                    self.event(Event::Heard(mark));
                }
                What::End => self.event(Event::Finished { generation: taken.note.generation }),
                What::Continue(format) => self.shared.set_source(&format),
                What::SetUp { .. } => {}
            }
        }
    }

    /// Queues an event. A reader that has not read a thousand of them is dead: its events are dropped.
    fn event(&mut self, event: Event) {
        let _ = self.events.push(event);
        self.told = true;
    }

    /// Wakes whoever has something to read or to write now.
    fn tell(&mut self) {
        if std::mem::take(&mut self.told) {
            self.shared.ring_bell();
        }
        let answered = std::mem::take(&mut self.answered);
        if (answered || self.feed.is_half_free()) && self.shared.starving.swap(false, SeqCst) {
            wake(&self.shared.space);
        }
    }

    fn publish(&mut self) {
        let rate = self.ring.map_or(0, |r| r.card.rate);
        let running = self.is_heard();
        self.shared.playhead.write(&Observation {
            current: self.feed.current,
            rate,
            heard: self.feed.heard,
            written: self.feed.written,
            time_ns: if running { self.level_ns } else { now_ns() },
            running,
        });
        let nanos = |frames| duration(frames, rate).as_nanos() as u64;
        self.shared.delay_ns.store(nanos(self.feed.unheard()), Relaxed);
        self.shared.buffered_ns.store(nanos(self.feed.in_ring()), Relaxed);
    }
}
