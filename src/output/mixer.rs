//! Who controls the volume: the card's own control where it has one, else the samples are scaled.
//!
//! A thread of its own talks to the card's mixer, which allocates and may block. What the card stands at is *read* when
//! it is opened, and followed when it is changed elsewhere; it is set when a person sets it, and never otherwise: not at
//! the start, not at the end, not at a change of format.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use tokio::sync::mpsc::UnboundedSender;

use super::alsa::{HardwareVolume, MixerWoken, Reading, first_mixer};
use super::shared::{Shared, calm};

/// Where nothing happens the thread sleeps; it looks again after this time all the same.
const LOOK_AGAIN: Duration = Duration::from_secs(3_600);

/// A mixer that is gone while its card seems to be there is tried again so often, and for so long: a card that comes back
/// brings its mixer along within moments.
const TRY_AGAIN: Duration = Duration::from_millis(200);
const MISSED_AT_MOST: Duration = Duration::from_secs(2);

/// Who controls the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VolumeControl {
    /// Samples are scaled.
    #[default]
    Software,
    /// The card's own control.
    Hardware,
    /// Nobody: samples stay as they are.
    Fixed,
}

/// Who is to control the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VolumeMode {
    /// The card, where it has a control with a scale in dB, else the samples are scaled.
    #[default]
    Auto,
    /// The same, and a card without one is worth a warning.
    Hardware,
    /// Samples are scaled.
    Software,
    /// Nobody.
    Fixed,
}

/// Settings of the volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeSettings {
    /// Who is to control it.
    pub mode: VolumeMode,
    /// Name of the card's control; None is the likeliest.
    pub control: Option<String>,
    /// ALSA's name of the mixer; None is that of the card that is open.
    pub mixer: Option<String>,
}

/// What the card's control stands at, or that there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VolumeEvent {
    /// Who controls the volume from now on.
    pub control: VolumeControl,
    /// What the card stands at, from 0 to 1, and whether it is muted; None where it has no say.
    pub hardware: Option<(f64, bool)>,
}

/// What a card stood at when it went away, so that it is the same when it is back: many cards on USB come back with
/// what they are made with, which may be as loud as they can.
#[derive(Clone, Debug)]
struct Kept {
    mixer: String,
    volume: f64,
    /// The card's step for it; None where somebody set the volume while the card was away.
    step: Option<i64>,
    muted: bool,
}

pub(super) struct MixerThread {
    shared: Arc<Shared>,
    settings: VolumeSettings,
    /// ALSA's names of the devices in the configuration.
    names: Arc<[String]>,
    events: UnboundedSender<VolumeEvent>,
    open: Option<HardwareVolume>,
    /// ALSA's name of the mixer that was opened, or tried.
    mixer: Option<String>,
    /// The card's step when it was last read.
    step: Option<i64>,
    kept: Option<Kept>,
    /// The mixer in use is gone.
    missed: bool,
    /// Since when it has been gone although its card seems to be there.
    tried_since: Option<Instant>,
    told: Option<VolumeEvent>,
    warned: bool,
}

impl MixerThread {
    pub fn new(
        shared: Arc<Shared>,
        settings: VolumeSettings,
        names: Arc<[String]>,
        events: UnboundedSender<VolumeEvent>,
    ) -> MixerThread {
        MixerThread {
            shared,
            settings,
            names,
            events,
            open: None,
            mixer: None,
            step: None,
            kept: None,
            missed: false,
            tried_since: None,
            told: None,
            warned: false,
        }
    }

    /// Runs until the output ends.
    pub fn run(mut self) {
        while !self.shared.ending.load(SeqCst) {
            self.follow_card();
            self.obey();
            self.tell();
            if self.wait().gone {
                self.lose();
            }
            calm(&self.shared.mixer_orders);
        }
    }

    /// Opens the mixer of the card that is in use, if that is another one than before, or is back.
    fn follow_card(&mut self) {
        let opened = self.shared.opened.lock().map(|opened| opened.clone()).unwrap_or_default();
        let (device, mixer) = if !opened.device.is_empty() {
            (opened.device, opened.mixer)
        } else if self.told.is_none() {
            first_mixer(&self.names).unwrap_or_default()
        } else {
            // A card that was released, or is away, is still the one that will be heard.
            self.tried_since = None;
            return;
        };
        let mixer = self.settings.mixer.clone().filter(|_| self.is_meant(&device)).or(mixer);
        if mixer == self.mixer && self.open.is_some() {
            return;
        }
        self.missed &= mixer == self.mixer;
        self.open =
            mixer.as_deref().and_then(|mixer| HardwareVolume::open(mixer, self.settings.control.as_deref()));
        self.mixer = mixer;
        match &self.open {
            Some(open) => {
                tracing::info!(mixer = self.mixer.as_deref(), control = %open.name(), "the card controls the volume");
                self.warned = false;
                self.missed = false;
                self.tried_since = None;
                self.put_back();
            }
            None => {
                self.tried_since.get_or_insert_with(Instant::now);
                if !self.is_missed() {
                    self.warn_of_none(&device);
                }
            }
        }
    }

    /// Whether the mixer that the configuration names is for this device: for the first that it names.
    fn is_meant(&self, device: &str) -> bool {
        self.names.first().is_some_and(|first| first == device || first == "auto")
    }

    /// Sets a card that was away to what it stood at.
    fn put_back(&mut self) {
        let Some(kept) = self.kept.take_if(|kept| Some(&kept.mixer) == self.mixer.as_ref()) else { return };
        let Some(open) = &mut self.open else { return };
        let Some(now) = open.read() else { return };
        if kept.step == Some(now.step) {
            open.recall(kept.volume, now.step);
        } else {
            tracing::info!(mixer = %kept.mixer, "the card is back and gets the volume that it had");
            open.set_volume(kept.volume);
        }
        if kept.muted != now.muted {
            open.set_mute(kept.muted);
        }
    }

    /// Once for each card that should have a control.
    fn warn_of_none(&mut self, device: &str) {
        let unexpected = self.settings.mode == VolumeMode::Hardware && !device.is_empty();
        if unexpected && !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(
                device,
                "this card has no volume control with a scale in dB: samples are scaled instead; \
                 name another one in [output] mixer, or set volume = \"software\""
            );
        }
    }

    /// Does what a person asked for since the last time.
    fn obey(&mut self) {
        let (volume, muted) = self.shared.take_hardware_wishes();
        let Some(open) = &mut self.open else {
            if let Some(kept) = self.kept.as_mut().filter(|_| self.missed) {
                kept.step = if volume.is_some() { None } else { kept.step };
                kept.volume = volume.unwrap_or(kept.volume);
                kept.muted = muted.unwrap_or(kept.muted);
                if let Some(muted) = muted.filter(|_| !self.shared.card_mutes()) {
                    self.shared.set_software_mute(muted);
                }
                self.told =
                    self.told.map(|told| VolumeEvent { hardware: Some((kept.volume, kept.muted)), ..told });
            }
            return;
        };
        let set = volume.map_or(Some(()), |volume| open.set_volume(volume));
        let muted_by_card = muted.map(|muted| open.set_mute(muted));
        if muted_by_card == Some(Some(false)) {
            // It has no switch: silence is made of the samples.
            self.shared.set_software_mute(muted.unwrap_or(false));
        }
        if set.is_none() || muted_by_card == Some(None) {
            self.lose();
        }
    }

    /// The card is gone; keeps what it stood at.
    fn lose(&mut self) {
        if self.open.take().is_none() {
            return;
        }
        let told = self.told.and_then(|told| told.hardware);
        if let (Some(mixer), Some((volume, muted))) = (self.mixer.clone(), told) {
            self.kept = Some(Kept { mixer, volume, step: self.step, muted });
        }
        self.missed = true;
        self.shared.volume_is_away.store(true, SeqCst);
        self.tried_since = None;
    }

    /// The mixer is gone, and may be back in a moment.
    fn is_missed(&self) -> bool {
        self.missed
            && (self.is_closed() || self.tried_since.is_none_or(|since| since.elapsed() < MISSED_AT_MOST))
    }

    fn is_closed(&self) -> bool {
        self.shared.opened.lock().is_ok_and(|opened| opened.device.is_empty())
    }

    fn tell(&mut self) {
        let reading = self.open.as_ref().and_then(HardwareVolume::read);
        match reading {
            Some(reading) => self.step = Some(reading.step),
            None => self.lose(),
        }
        // While the card is away its volume is what it was.
        if reading.is_none() && self.is_missed() {
            return;
        }
        self.missed = false;
        if self.shared.volume_is_away.swap(false, SeqCst) {
            self.shared.order();
        }
        let control = if reading.is_some() { VolumeControl::Hardware } else { VolumeControl::Software };
        let has_switch = self.open.as_ref().is_some_and(HardwareVolume::has_switch);
        let hardware = reading.map(|Reading { volume, muted, .. }| {
            (volume, if has_switch { muted } else { self.shared.software_muted() })
        });
        let event = VolumeEvent { control, hardware };
        if self.told != Some(event) {
            self.shared.set_control(control, has_switch);
            self.told = Some(event);
            // Nobody listens only at the end.
            let _ = self.events.send(event);
        }
    }

    fn wait(&self) -> MixerWoken {
        match &self.open {
            Some(open) => open.wait(self.shared.mixer_orders.as_fd(), LOOK_AGAIN),
            None => {
                let mut fds = [PollFd::new(self.shared.mixer_orders.as_fd(), PollFlags::POLLIN)];
                let look_again = if self.missed && !self.is_closed() { TRY_AGAIN } else { LOOK_AGAIN };
                let timeout = PollTimeout::try_from(look_again).unwrap_or(PollTimeout::NONE);
                let _ = nix::poll::poll(&mut fds, timeout);
                MixerWoken::default()
            }
        }
    }
}
