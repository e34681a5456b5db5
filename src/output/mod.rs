//! [6] PCM to sound.
//!
//! One thread owns the device (`thread/`). The decode thread gives it frames through a ring and, beside the ring, marks:
//! an entry begins when its mark is *heard*, so what a person sees follows the ear, not the decoder that runs ahead.
//!
//! ```text
//!  PcmWriter ──frames──► ring ──► Feed ──► history ──► volume, fades ──► card's format ──► ALSA
//!            ──notes───► queue ─►      ◄── heard (by snd_pcm_delay)                          │
//!  Output    ──orders──► atomics + eventfd                          EventStream ◄── events ──┘
//! ```
//!
//! What may be relied on:
//! - At volume 1.0 and not muted, samples are not touched, from the first frame of a start on and over joins.
//! - After a cut, a pause or a lost device the first 5 ms fade in, unless they are the very first of an entry (a mark
//!   at position 0). The frames themselves are continuous: none is lost or repeated by a pause, at most one period is
//!   repeated after a lost device. A start from silence and a start after an empty ring do not fade.
//! - Silence that is written so that the last frame is heard counts nowhere.
//! - `cut` and `pause` silence the card at once: ALSA is told to drop what it has, and what was not heard is given to
//!   it again from the history (one buffer of the card, before volume).

mod alsa;
mod convert;
pub mod devices;
mod events;
mod feed;
mod format;
mod history;
mod marks;
#[cfg(test)]
mod measured;
mod mixer;
mod playhead;
mod refill;
mod shared;
mod thread;
mod treatment;
mod volume;
mod writer;

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rtrb::{Producer, RingBuffer};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::track::EntryId;
pub use events::EventStream;
pub use format::{CardFormat, SampleFormat, SourceFormat};
pub use marks::{Event, GoneReason, Mark};
use mixer::MixerThread;
pub use mixer::{VolumeControl, VolumeEvent, VolumeMode, VolumeSettings};
pub use playhead::Playhead;
pub use shared::Settings;
use shared::Shared;
use thread::{Links, OutputThread, TakeBack};
pub use treatment::Treatment;
pub use writer::{BeginState, PcmWriter};

/// Events that may wait for their reader.
const MOST_EVENTS: usize = 1024;
/// Entries that may be taken back before the thread looks, which is at once unless a device is being opened.
const MOST_TAKE_BACKS: usize = 64;
/// How long `shutdown` waits for the thread beyond its fade. A driver that blocks longer than this is left behind.
const JOIN_WITHIN: Duration = Duration::from_millis(300);

/// Frames that the card is given before it starts: 100 ms, or half of a smaller buffer.
fn start_frames(rate: u32, buffer: usize) -> usize {
    (rate as usize / 10).min(buffer / 2).max(1)
}

/// What is known about the sound path.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// ALSA's name of the open device, empty while none is open.
    pub device: String,
    /// What it runs at.
    pub card: Option<CardFormat>,
    /// The source that is heard, or was last.
    pub source: Option<SourceFormat>,
    /// True if its samples reach the device untouched.
    pub bit_perfect: bool,
    /// What alters them, as a phrase; empty if nothing does or nothing plays.
    pub reason: String,
    /// Sound that the card has but that is not heard yet.
    pub delay: Duration,
    /// Times that the card ran out of frames although there were some.
    pub xruns: u64,
    /// Sound that waits in the ring.
    pub buffered: Duration,
}

/// A handle to the output. Cheap to clone; none of its calls but `shutdown` waits for anything.
#[derive(Clone)]
pub struct Output {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    take_backs: Mutex<Producer<TakeBack>>,
    writer: Mutex<Option<PcmWriter>>,
    names: Arc<[String]>,
    thread: Mutex<Option<JoinHandle<()>>>,
    volume_events: Mutex<Option<UnboundedReceiver<VolumeEvent>>>,
}

impl Output {
    /// Starts the output thread. Needs no device: one is opened when the first format is announced.
    ///
    /// # Errors
    /// When the system gives no descriptors or no thread.
    pub fn start(settings: Settings) -> std::io::Result<(Output, EventStream)> {
        let (shared, bell) = Shared::new()?;
        let shared = Arc::new(shared);
        let (notes, notes_out) = RingBuffer::new(feed::MOST_NOTES);
        let (answers_in, answers) = RingBuffer::new(16);
        let (take_backs, take_backs_out) = RingBuffer::new(MOST_TAKE_BACKS);
        let (events_in, events) = RingBuffer::new(MOST_EVENTS);
        let links =
            Links { notes: notes_out, answers: answers_in, take_backs: take_backs_out, events: events_in };
        let volume = settings.volume.clone();
        let names: Arc<[String]> = settings.device.clone().into();
        let output = OutputThread::new(Arc::clone(&shared), settings, links);
        let thread = std::thread::Builder::new().name("output".into()).stack_size(512 << 10).spawn({
            let shared = Arc::clone(&shared);
            move || {
                let _last = LastRing(shared);
                output.run();
            }
        })?;
        let volume_events = start_mixer(&shared, volume, Arc::clone(&names))?;
        let writer = PcmWriter::new(Arc::clone(&shared), notes, answers);
        let stream = EventStream::new(events, bell);
        let handle = Arc::new(Handle {
            shared,
            take_backs: Mutex::new(take_backs),
            writer: Mutex::new(Some(writer)),
            names,
            thread: Mutex::new(Some(thread)),
            volume_events: Mutex::new(Some(volume_events)),
        });
        Ok((Output { handle }, stream))
    }

    /// What becomes of the volume's control. There is one: the second call gives None.
    pub fn volume_events(&self) -> Option<UnboundedReceiver<VolumeEvent>> {
        lock(&self.handle.volume_events).take()
    }

    /// The decode thread's end. There is one: the second call gives None.
    pub fn writer(&self) -> Option<PcmWriter> {
        lock(&self.handle.writer).take()
    }

    /// Silences everything below `generation` at once, in the card and in the ring. Nothing sounds until frames of
    /// that generation or a later one arrive. The playhead is None until their mark is heard.
    pub fn cut(&self, generation: u64) {
        self.handle.shared.cut.fetch_max(generation, SeqCst);
        self.handle.shared.order();
    }

    /// Takes `entry` back if its mark has not been heard: its frames, and everything behind them below `generation`,
    /// will not sound. If it has been heard, nothing is done, and `Event::Heard` has been sent or will be.
    ///
    /// False, with nothing done, if too many entries were taken back while a device is being opened: try again.
    pub fn cut_after(&self, entry: EntryId, generation: u64) -> bool {
        let sent = lock(&self.handle.take_backs).push((entry, generation)).is_ok();
        self.handle.shared.order();
        sent
    }

    /// Silences the card at once and keeps what was not heard.
    pub fn pause(&self) {
        self.handle.shared.paused.store(true, SeqCst);
        self.handle.shared.order();
    }

    /// Goes on with the frame after the last one heard.
    pub fn resume(&self) {
        self.handle.shared.paused.store(false, SeqCst);
        self.handle.shared.order();
    }

    /// Nothing is under way any more: a device that is away is not waited for, what comes next may begin on another.
    pub fn rest(&self) {
        self.handle.shared.rested.store(true, SeqCst);
        self.handle.shared.order();
    }

    /// What the software's volume was in an earlier run: nothing is done to the card's own control.
    pub fn restore_volume(&self, linear: f32, muted: bool) {
        self.handle.shared.set_software_volume(sensible(linear));
        self.handle.shared.set_software_mute(muted);
    }

    /// The volume, 0.0 to 1.0: by the card's own control, or as a factor of the samples, which ramps over 20 ms.
    pub fn set_volume(&self, volume: f32) {
        match self.handle.shared.control() {
            VolumeControl::Software => self.handle.shared.set_software_volume(sensible(volume)),
            VolumeControl::Hardware => {
                self.handle.shared.wish_hardware(Some(f64::from(sensible(volume))), None);
            }
            VolumeControl::Fixed => {}
        }
    }

    /// Mutes without forgetting the volume.
    pub fn set_mute(&self, muted: bool) {
        match self.handle.shared.control() {
            VolumeControl::Hardware => self.handle.shared.wish_hardware(None, Some(muted)),
            VolumeControl::Software | VolumeControl::Fixed => self.handle.shared.set_software_mute(muted),
        }
    }

    /// What is heard now; None while no mark has been heard since the last cut.
    pub fn playhead(&self) -> Option<Playhead> {
        self.handle.shared.playhead.read().at(playhead::now_ns())
    }

    /// Lets sound go to this device from now on, or, with None, to those of the configuration. What is under way goes
    /// on there at the frame after the last one heard. Where it cannot be used, those of the configuration serve.
    pub fn select(&self, device: Option<String>) {
        self.handle.shared.select(device);
    }

    /// What sound can go to.
    pub fn devices(&self) -> devices::Devices {
        devices::Devices::new(Arc::clone(&self.handle.shared), Arc::clone(&self.handle.names))
    }

    /// What is known about the sound path.
    pub fn facts(&self) -> Facts {
        let shared = &self.handle.shared;
        let opened = lock(&shared.opened).clone();
        let source = shared.source();
        let reason = match (&source, &opened.card) {
            (Some(source), Some(card)) => {
                Some(shared.path(*source, *card, &opened.device, opened.converts).alteration())
            }
            _ => None,
        };
        Facts {
            device: opened.device,
            card: opened.card,
            source,
            bit_perfect: reason.as_ref().is_some_and(Option::is_none),
            reason: reason.flatten().unwrap_or_default(),
            delay: Duration::from_nanos(shared.delay_ns.load(Relaxed)),
            xruns: shared.xruns.load(Relaxed),
            buffered: Duration::from_nanos(shared.buffered_ns.load(Relaxed)),
        }
    }

    /// Fades out over at most `fade` (itself at most 150 ms), closes the device and ends the thread.
    /// Blocks, but well below half a second; a thread that a driver holds longer is left behind.
    pub fn shutdown(&self, fade: Duration) {
        let fade = fade.min(Duration::from_millis(150));
        let Some(thread) = lock(&self.handle.thread).take() else { return };
        self.handle.shared.fade_ms.store(fade.as_millis() as u64, Relaxed);
        self.handle.shared.ending.store(true, SeqCst);
        self.handle.shared.order();
        shared::wake(&self.handle.shared.mixer_orders);
        let deadline = Instant::now() + fade + JOIN_WITHIN;
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        if thread.is_finished() {
            // A panic of that thread has been reported where it happened.
            let _ = thread.join();
        }
    }
}

/// Starts the thread that talks to the card's mixer, where that has a say.
fn start_mixer(
    shared: &Arc<Shared>,
    settings: VolumeSettings,
    names: Arc<[String]>,
) -> std::io::Result<UnboundedReceiver<VolumeEvent>> {
    let (events, receiver) = tokio::sync::mpsc::unbounded_channel();
    let control = match settings.mode {
        VolumeMode::Auto | VolumeMode::Hardware => {
            let thread = MixerThread::new(Arc::clone(shared), settings, names, events);
            std::thread::Builder::new().name("mixer".into()).stack_size(256 << 10).spawn(|| thread.run())?;
            return Ok(receiver);
        }
        VolumeMode::Software => VolumeControl::Software,
        VolumeMode::Fixed => VolumeControl::Fixed,
    };
    shared.set_control(control, false);
    // The receiver is at hand.
    let _ = events.send(VolumeEvent { control, hardware: None });
    Ok(receiver)
}

/// Nonsense is silence: that is the safe reading.
fn sensible(volume: f32) -> f32 {
    if volume.is_nan() { 0.0 } else { volume.clamp(0.0, 1.0) }
}

/// Lets the event stream find its end, also when the thread panicked.
struct LastRing(Arc<Shared>);

impl Drop for LastRing {
    fn drop(&mut self) {
        self.0.ring_bell();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.ending.store(true, SeqCst);
        self.shared.order();
        shared::wake(&self.shared.mixer_orders);
    }
}

/// A lock whose holder panicked is still good: what it guards is replaced whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
