//! The only place that knows ALSA: one playback device, opened, fed and watched.
//!
//! Everything here is non-blocking. `snd_pcm_drain` is never called: it blocks for ever on some drivers.

mod fault;
mod list;
mod mixer;
mod order;
mod params;
mod poll;

use std::sync::Arc;
use std::time::Duration;

use alsa::pcm::PCM;
use alsa::{Direction, Output as Text};

use super::devices::DeviceAbilities;
use super::format::{Abilities, CardFormat, SourceFormat};
pub(super) use fault::{Fault, OpenError};
pub(super) use list::{Held, list_devices, probe_device};
pub(super) use mixer::{HardwareVolume, MixerWoken, Reading, control_name, first_mixer, mixer_of};
pub(super) use poll::Poller;

/// A device that is open and set up.
pub(super) struct Device {
    pcm: PCM,
    /// ALSA's name, as it was opened.
    pub name: String,
    pub card: CardFormat,
    pub abilities: Abilities,
    /// Frames of the card's buffer and of one of its periods.
    pub buffer: usize,
    pub period: usize,
    /// ALSA's name of the card's mixer, where the card is known.
    pub mixer: Option<String>,
    /// True where ALSA may convert samples before they reach the card.
    pub converts: bool,
    /// What it can do by itself.
    pub offers: Arc<DeviceAbilities>,
    /// Why a device that comes before this one could not be opened.
    pub instead_of: Option<String>,
    /// True for `null` and `file`, which take everything at once and always poll ready.
    pub instant: bool,
    frame_bytes: usize,
    /// For each channel of the card, which of a frame's it plays, where that differs.
    order: Option<Box<[u8]>>,
    is_hardware: bool,
    /// True where a sound server is behind it: PulseAudio, PipeWire, JACK.
    pub is_served: bool,
}

/// What a running card says of itself, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Room in the card's buffer.
    pub avail: usize,
    /// Until a frame written now is heard.
    pub delay: usize,
}

/// Keeps alsa-lib from printing to standard error on this thread. What it says is in our errors anyway.
pub(super) fn silence_library() {
    // The text grows with each message, so this is called before each attempt to open: that drops the old text.
    drop(Text::local_error_handler());
}

impl Device {
    /// Opens the first of `names` that can be used and sets it up for `source` with about `buffer` of frames. Those
    /// behind `last` are left alone, and `held` narrows what `auto` stands for.
    pub fn open(
        names: &[String],
        held: Option<Held<'_>>,
        last: Option<&str>,
        source: &SourceFormat,
        buffer: Duration,
    ) -> Result<Device, OpenError> {
        silence_library();
        let mut first: Option<OpenError> = None;
        let mut names = list::candidates(names, held);
        if let Some(at) = names.iter().position(|name| Some(name.as_str()) == last) {
            names.truncate(at + 1);
        }
        for name in names {
            match Device::open_one(&name, source, buffer) {
                Ok(device) => return Ok(Device { instead_of: first.map(|e| e.message), ..device }),
                // Somebody uses the preferred device: wait for it instead of surprising the house with another.
                Err(e) if e.is_busy() => return Err(e),
                Err(e) => first = first.or(Some(e)),
            }
        }
        Err(first.unwrap_or_else(OpenError::no_card))
    }

    fn open_one(name: &str, source: &SourceFormat, buffer: Duration) -> Result<Device, OpenError> {
        if name.contains('\0') {
            return Err(OpenError::bad_name(name));
        }
        let pcm = PCM::new(name, Direction::Playback, true).map_err(|e| OpenError::open(name, e))?;
        let refused = |e| OpenError::params(name, e);
        let offers = Arc::new(params::offered(&pcm).map_err(refused)?);
        let set = params::set_up(&pcm, source, buffer).map_err(refused)?;
        let (kind, converts) = describe(&pcm, name);
        let is_hardware = kind == Kind::Hardware;
        let card = || pcm.info().ok().map(|info| info.get_card()).filter(|card| *card >= 0);
        let by_name = || mixer::mixer_of(name);
        let by_card = || card().map(|card| format!("hw:{card}"));
        let mixer = if name.contains(':') { by_name().or_else(by_card) } else { by_card().or_else(by_name) };
        Ok(Device {
            name: name.to_owned(),
            card: set.card,
            abilities: set.abilities,
            buffer: set.buffer,
            period: set.period,
            mixer,
            converts,
            offers,
            instead_of: None,
            instant: kind == Kind::Instant,
            frame_bytes: set.card.sample.bytes() * usize::from(set.card.channels),
            order: order::of_card(&pcm, set.card.channels, is_hardware),
            is_hardware,
            is_served: kind == Kind::Served,
            pcm,
        })
    }

    /// Sets the stopped device up for another format without letting go of it.
    pub fn set_up(&mut self, source: &SourceFormat, buffer: Duration) -> Result<(), OpenError> {
        silence_library();
        // Some drivers refuse to free what was never prepared; the set-up below then says what is wrong.
        let _ = self.pcm.hw_free();
        let set = params::set_up(&self.pcm, source, buffer).map_err(|e| OpenError::params(&self.name, e))?;
        self.card = set.card;
        self.abilities = set.abilities;
        self.buffer = set.buffer;
        self.period = set.period;
        self.frame_bytes = set.card.sample.bytes() * usize::from(set.card.channels);
        self.order = order::of_card(&self.pcm, set.card.channels, self.is_hardware);
        Ok(())
    }

    /// Makes the card ready for frames.
    pub fn prepare(&self) -> Result<(), Fault> {
        self.pcm.prepare().map_err(Fault::from)
    }

    /// Starts the card if its start threshold has not done so.
    pub fn start(&self) -> Result<(), Fault> {
        if self.is_running() {
            return Ok(());
        }
        match self.pcm.start() {
            Err(_) if self.is_running() => Ok(()),
            other => other.map_err(Fault::from),
        }
    }

    pub fn is_running(&self) -> bool {
        self.pcm.state_raw() == alsa_sys::SND_PCM_STATE_RUNNING as i32
    }

    /// True when it stands still because it ran out of frames.
    pub fn is_dry(&self) -> bool {
        self.pcm.state_raw() == alsa_sys::SND_PCM_STATE_XRUN as i32
    }

    /// Asks the card where it is.
    pub fn level(&self) -> Result<Level, Fault> {
        let avail = self.pcm.avail().map_err(Fault::from)?;
        let avail = (avail.max(0) as usize).min(self.buffer);
        let delay = match self.pcm.delay() {
            Ok(delay) => delay.max(0) as usize,
            // PulseAudio has not heard from its server since it was prepared.
            Err(e) if self.is_served && e.errno().abs() == libc::EIO => 0,
            Err(e) => return Err(e.into()),
        };
        // It says 0 for a while after a start that took it long, or for good. What it holds is not heard yet.
        let held = if self.is_served { self.buffer - avail } else { 0 };
        Ok(Level { avail, delay: delay.max(held) })
    }

    /// The same with both numbers of one moment: the card plays on between the two questions, and a frame that is
    /// counted in one of them alone would be lost or heard twice.
    pub fn exact_level(&self) -> Result<Level, Fault> {
        let mut level = self.level()?;
        for _ in 0..8 {
            let again = self.level()?;
            if again.avail == level.avail {
                return Ok(level);
            }
            level = again;
        }
        Ok(level)
    }

    /// Writes whole frames; returns how many the card took, 0 when it has no room.
    pub fn write(&self, bytes: &[u8]) -> Result<usize, Fault> {
        // The object must not live on: a second one panics in the library.
        match self.pcm.io_bytes().writei(bytes) {
            Ok(frames) => Ok(frames),
            Err(e) if e.errno().abs() == libc::EAGAIN => Ok(0),
            Err(e) => Err(e.into()),
        }
    }

    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// Gives each of the card's loudspeakers what is meant for it, in whole frames.
    pub fn reorder(&self, samples: &mut [i32]) {
        let Some(order) = &self.order else { return };
        let mut frame = [0; 8];
        for samples in samples.chunks_exact_mut(order.len()) {
            frame[..samples.len()].copy_from_slice(samples);
            for (sample, from) in samples.iter_mut().zip(order) {
                *sample = frame[usize::from(*from) & 7];
            }
        }
    }

    /// Silences the card at once and returns how many of the frames that it had at `before` it played until then.
    pub fn drop_now(&self, before: Level) -> usize {
        if self.pcm.drop().is_err() {
            return 0;
        }
        // What was played between the question and the drop. Where the card forgets its pointers at a drop the
        // difference is absurd and not used.
        let after = self.pcm.status().map(|s| s.get_avail()).unwrap_or(0).max(0) as usize;
        let played = after.saturating_sub(before.avail);
        if played <= self.card.rate as usize / 200 { played } else { 0 }
    }

    /// Silences the card at once, with nobody asking for its position.
    pub fn stop(&self) {
        // A device that refuses is found out by the next call that matters.
        let _ = self.pcm.drop();
    }

    /// ALSA's own way back from a suspended card: true when it runs again or is prepared, false while it is still
    /// asleep. Plugins say that they resumed and did not; a card that does so is believed if `patient`, else prepared.
    pub fn wake(&self, patient: bool) -> Result<bool, Fault> {
        match self.pcm.resume() {
            Ok(()) if self.pcm.state_raw() != alsa_sys::SND_PCM_STATE_SUSPENDED as i32 => Ok(true),
            Ok(()) if patient => Ok(false),
            Ok(()) => self.prepare().map(|()| true),
            Err(e) if e.errno().abs() == libc::EAGAIN => Ok(false),
            // The card cannot: it starts anew, and the caller gives it the frames again.
            Err(e) if e.errno().abs() == libc::ENOSYS => self.prepare().map(|()| true),
            Err(e) => Err(e.into()),
        }
    }
}

#[derive(PartialEq, Eq)]
enum Kind {
    Instant,
    /// The kernel's own, with nothing in between.
    Hardware,
    /// A sound server, perhaps with ALSA's plugins in front of it.
    Served,
    Paced,
}

/// What kind of device this is, by the library's own description: the crate does not wrap `snd_pcm_type`.
fn describe(pcm: &PCM, name: &str) -> (Kind, bool) {
    let text =
        Text::buffer_open().ok().and_then(|mut text| pcm.dump(&mut text).ok().map(|()| text.to_string()));
    let first = text.as_deref().and_then(|t| t.lines().next()).unwrap_or_default();
    let instant = first.starts_with("Null PCM") || first.starts_with("File PCM");
    let plugin =
        ["Plug", "Direct", "Rate", "Soft", "Route", "Linear", "Float", "ALSA <->", "PulseAudio", "PipeWire"]
            .iter()
            .any(|p| first.starts_with(p));
    let base = name.split(':').next().unwrap_or(name);
    let converting =
        ["default", "sysdefault", "plughw", "plug", "dmix", "pulse", "pipewire", "jack", "dsnoop"];
    let kind = match first {
        _ if instant => Kind::Instant,
        _ if first.starts_with("Hardware PCM") => Kind::Hardware,
        _ if text.as_deref().is_some_and(|text| text.contains("ALSA <->")) => Kind::Served,
        _ => Kind::Paced,
    };
    (kind, plugin || converting.contains(&base))
}
