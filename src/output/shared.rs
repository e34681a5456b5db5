//! What the output thread shares with the rest: numbers that it reads or writes without waiting for anybody.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};

use super::devices::DeviceAbilities;
use super::format::{CardFormat, SourceFormat};
use super::mixer::{VolumeControl, VolumeSettings};
use super::playhead::Published;
use super::treatment::{SoundPath, Treatment};

/// Settings of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// ALSA names in order of preference; `auto` stands for every card, the likeliest first, but never for another than
    /// the one on which something is under way.
    pub device: Vec<String>,
    /// How much the card buffers; None is a quarter of a second, or half of one where the thread may not run above
    /// ordinary ones.
    pub buffer: Option<Duration>,
    /// When a silent device is closed, so that others may use it.
    pub release_after: Duration,
    /// Keep the device and feed it silence while nothing plays.
    pub keep_alive: bool,
    /// Silence before the first frame of a device that was still.
    pub lead_in: Duration,
    /// Who controls the volume.
    pub volume: VolumeSettings,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            device: vec!["auto".into()],
            buffer: None,
            release_after: Duration::from_secs(10),
            keep_alive: false,
            lead_in: Duration::ZERO,
            volume: VolumeSettings::default(),
        }
    }
}

/// The open device, as `facts` tells of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Opened {
    pub device: String,
    pub card: Option<CardFormat>,
    /// ALSA's name of its mixer, where known.
    pub mixer: Option<String>,
    pub converts: bool,
    /// What it can do by itself.
    pub offers: Arc<DeviceAbilities>,
}

/// Orders that are states: the last one counts, and their order among each other does not matter.
pub(super) struct Shared {
    /// Wakes the output thread.
    pub orders: EventFd,
    /// Wakes the mixer thread.
    pub mixer_orders: EventFd,
    /// Wakes the writer.
    pub space: EventFd,
    /// Wakes the event stream.
    bell: UnixStream,
    pub paused: AtomicBool,
    /// Everything below is cut.
    pub cut: AtomicU64,
    /// f32 bits of the software's volume, and mute.
    volume: AtomicU32,
    muted: AtomicBool,
    /// Who controls the volume: where it is not the software, its volume has no effect.
    control: AtomicU8,
    /// The card has a switch to mute with.
    card_mutes: AtomicBool,
    /// The card was away, and its volume has to be put back before it sounds.
    pub volume_is_away: AtomicBool,
    /// What the card's control is to be set to.
    hardware_wishes: Mutex<(Option<f64>, Option<bool>)>,
    /// Asked to end, with so many milliseconds of fade.
    pub ending: AtomicBool,
    pub fade_ms: AtomicU64,
    /// The output thread sleeps and wants to know of new frames and notes.
    pub hungry: AtomicBool,
    /// Counts what the writer did, so that the output thread misses nothing while it falls asleep.
    pub fed: AtomicU64,
    /// The ring (by its request) that has the wrong format since the device came back.
    pub stale_ring: AtomicU64,
    /// The writer sleeps and wants to know of room.
    pub starving: AtomicBool,
    pub playhead: Published,
    pub xruns: AtomicU64,
    pub delay_ns: AtomicU64,
    pub buffered_ns: AtomicU64,
    source: AtomicU64,
    treatment: AtomicU64,
    /// The device that was selected. Locked by the output thread only when another one was.
    selected: Mutex<Option<String>>,
    pub reselect: AtomicBool,
    /// Nothing is under way any more.
    pub rested: AtomicBool,
    /// Held while somebody looks at a device, which must not be opened meanwhile: it would seem busy.
    pub looking: Mutex<()>,
    /// Locked by the output thread only while it opens or closes a device, never while it plays.
    pub opened: Mutex<Opened>,
}

impl Shared {
    /// The shared state, and the end of the bell that the event stream listens to.
    pub fn new() -> std::io::Result<(Shared, UnixStream)> {
        let (bell, listener) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        listener.set_nonblocking(true)?;
        let event = || EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
        let shared = Shared {
            orders: event()?,
            mixer_orders: event()?,
            space: event()?,
            bell,
            paused: AtomicBool::new(false),
            cut: AtomicU64::new(0),
            volume: AtomicU32::new(1f32.to_bits()),
            muted: AtomicBool::new(false),
            control: AtomicU8::new(VolumeControl::Software as u8),
            card_mutes: AtomicBool::new(false),
            volume_is_away: AtomicBool::new(false),
            hardware_wishes: Mutex::new((None, None)),
            ending: AtomicBool::new(false),
            fade_ms: AtomicU64::new(0),
            hungry: AtomicBool::new(false),
            fed: AtomicU64::new(0),
            stale_ring: AtomicU64::new(0),
            starving: AtomicBool::new(false),
            playhead: Published::new(),
            xruns: AtomicU64::new(0),
            delay_ns: AtomicU64::new(0),
            buffered_ns: AtomicU64::new(0),
            source: AtomicU64::new(0),
            treatment: AtomicU64::new(0),
            selected: Mutex::new(None),
            reselect: AtomicBool::new(false),
            rested: AtomicBool::new(false),
            looking: Mutex::new(()),
            opened: Mutex::new(Opened::default()),
        };
        Ok((shared, listener))
    }

    /// Wakes the event stream. The socket can only be full, and then it wakes anyway.
    pub fn ring_bell(&self) {
        let _ = (&self.bell).write(&[1]);
    }

    /// Wakes the output thread in any case.
    pub fn order(&self) {
        wake(&self.orders);
    }

    /// Orders another device, or those of the configuration.
    pub fn select(&self, device: Option<String>) {
        if let Ok(mut selected) = self.selected.lock() {
            *selected = device;
        }
        self.reselect.store(true, SeqCst);
        self.order();
    }

    pub fn selected(&self) -> Option<String> {
        self.selected.lock().ok().and_then(|selected| selected.clone())
    }

    /// Wakes the output thread if it sleeps for want of frames.
    pub fn fed(&self) {
        self.fed.fetch_add(1, SeqCst);
        if self.hungry.swap(false, SeqCst) {
            wake(&self.orders);
        }
    }

    /// Who controls the volume.
    pub fn control(&self) -> VolumeControl {
        match self.control.load(Relaxed) {
            1 => VolumeControl::Hardware,
            2 => VolumeControl::Fixed,
            _ => VolumeControl::Software,
        }
    }

    /// Says who controls the volume, and whether mute is the card's, too.
    pub fn set_control(&self, control: VolumeControl, card_mutes: bool) {
        self.card_mutes.store(card_mutes, Relaxed);
        self.control.store(control as u8, Relaxed);
        self.order();
    }

    /// Whether the card has a switch to mute with.
    pub fn card_mutes(&self) -> bool {
        self.card_mutes.load(Relaxed)
    }

    /// Of the software; it has an effect only where that controls the volume.
    pub fn set_software_volume(&self, linear: f32) {
        self.volume.store(linear.to_bits(), Relaxed);
        self.order();
    }

    pub fn set_software_mute(&self, muted: bool) {
        self.muted.store(muted, Relaxed);
        self.order();
    }

    pub fn software_muted(&self) -> bool {
        self.muted.load(Relaxed)
    }

    /// Asks the card's control for a volume or to mute.
    pub fn wish_hardware(&self, volume: Option<f64>, muted: Option<bool>) {
        if let Ok(mut wishes) = self.hardware_wishes.lock() {
            *wishes = (volume.or(wishes.0), muted.or(wishes.1));
        }
        wake(&self.mixer_orders);
    }

    pub fn take_hardware_wishes(&self) -> (Option<f64>, Option<bool>) {
        self.hardware_wishes.lock().map(|mut wishes| std::mem::take(&mut *wishes)).unwrap_or_default()
    }

    /// What samples are multiplied by but for mute.
    pub fn volume(&self) -> f32 {
        match self.control() {
            VolumeControl::Software => f32::from_bits(self.volume.load(Relaxed)),
            VolumeControl::Hardware | VolumeControl::Fixed => 1.0,
        }
    }

    /// Whether samples are silenced.
    pub fn muted(&self) -> bool {
        self.muted.load(Relaxed) && !self.card_mutes.load(Relaxed)
    }

    /// What samples are multiplied by.
    pub fn gain(&self) -> f32 {
        if self.muted() { 0.0 } else { self.volume() }
    }

    /// What is done to what is heard.
    pub fn set_treatment(&self, treatment: Treatment) {
        self.treatment.store(treatment.word(), Relaxed);
    }

    /// All that stands between `source` and `card`.
    pub fn path<'a>(
        &self,
        source: SourceFormat,
        card: CardFormat,
        device: &'a str,
        converts: bool,
    ) -> SoundPath<'a> {
        let treatment = Treatment::from_word(self.treatment.load(Relaxed));
        SoundPath { source, treatment, volume: self.volume(), muted: self.muted(), card, device, converts }
    }

    /// The source that is heard, packed into one word.
    pub fn set_source(&self, source: &SourceFormat) {
        let word = u64::from(source.rate)
            | u64::from(source.channels & 0xff) << 32
            | u64::from(source.bits & 0xff) << 40
            | u64::from(source.lossy) << 48;
        self.source.store(word, Relaxed);
    }

    pub fn source(&self) -> Option<SourceFormat> {
        let word = self.source.load(Relaxed);
        (word != 0).then_some(SourceFormat {
            rate: word as u32,
            channels: (word >> 32) as u16 & 0xff,
            bits: (word >> 40) as u16 & 0xff,
            lossy: word >> 48 & 1 != 0,
        })
    }
}

/// Wakes whoever polls `fd`. It can only fail by being full, and then it wakes anyway.
pub(super) fn wake(fd: &EventFd) {
    let _ = fd.write(1);
}

/// Takes the wake-up away again.
pub(super) fn calm(fd: &EventFd) {
    let _ = fd.read();
}
