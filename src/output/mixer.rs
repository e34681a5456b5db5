//! Who controls the volume: the card's own control where it has one, else the samples are scaled.
//!
//! A thread of its own talks to the card's mixer, which allocates and may block. What the card stands at is *read* when
//! it is opened, and followed when it is changed elsewhere; it is set when a person sets it, and never otherwise: not at
//! the start, not at the end, not at a change of format.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use tokio::sync::mpsc::UnboundedSender;

use super::alsa::{HardwareVolume, MixerWoken, Reading, first_mixer};
use super::shared::{Shared, calm};

/// Where nothing happens the thread sleeps; it looks again after this time all the same.
const LOOK_AGAIN: Duration = Duration::from_secs(3_600);

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

pub(super) struct MixerThread {
    shared: Arc<Shared>,
    settings: VolumeSettings,
    /// ALSA's names of the cards, for the time before one is open.
    names: Vec<String>,
    events: UnboundedSender<VolumeEvent>,
    open: Option<HardwareVolume>,
    /// ALSA's name of the mixer that was opened, or tried.
    mixer: Option<String>,
    told: Option<VolumeEvent>,
    warned: bool,
}

impl MixerThread {
    pub fn new(
        shared: Arc<Shared>,
        settings: VolumeSettings,
        names: Vec<String>,
        events: UnboundedSender<VolumeEvent>,
    ) -> MixerThread {
        MixerThread { shared, settings, names, events, open: None, mixer: None, told: None, warned: false }
    }

    /// Runs until the output ends.
    pub fn run(mut self) {
        while !self.shared.ending.load(SeqCst) {
            self.follow_card();
            self.obey();
            self.tell();
            let woken = self.wait();
            if woken.gone {
                self.open = None;
                self.mixer = None;
            }
            calm(&self.shared.mixer_orders);
        }
    }

    /// Opens the mixer of the card that is in use, if that is another one than before.
    fn follow_card(&mut self) {
        let opened = self.shared.opened.lock().map(|opened| opened.clone()).unwrap_or_default();
        let mut mixer = self.settings.mixer.clone();
        mixer = mixer.or(opened.mixer);
        if mixer.is_none() && opened.device.is_empty() && self.told.is_none() {
            mixer = first_mixer(&self.names);
        }
        let idle = opened.device.is_empty() && self.open.is_some();
        // A card that was released is still the one that will be heard.
        if mixer == self.mixer && self.open.is_some() || idle {
            return;
        }
        self.open =
            mixer.as_deref().and_then(|mixer| HardwareVolume::open(mixer, self.settings.control.as_deref()));
        self.mixer = mixer;
        match &self.open {
            Some(open) => {
                tracing::info!(mixer = self.mixer.as_deref(), control = %open.name(), "the card controls the volume");
                self.warned = false;
            }
            None => self.warn_of_none(&opened.device),
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
        let Some(open) = &mut self.open else { return };
        let set = volume.map_or(Some(()), |volume| open.set_volume(volume));
        let muted_by_card = muted.map(|muted| open.set_mute(muted));
        if muted_by_card == Some(Some(false)) {
            // It has no switch: silence is made of the samples.
            self.shared.set_software_mute(muted.unwrap_or(false));
        }
        if set.is_none() || muted_by_card == Some(None) {
            self.open = None;
        }
    }

    fn tell(&mut self) {
        let reading = self.open.as_ref().and_then(HardwareVolume::read);
        if reading.is_none() {
            self.open = None;
        }
        let control = if reading.is_some() { VolumeControl::Hardware } else { VolumeControl::Software };
        let has_switch = self.open.as_ref().is_some_and(HardwareVolume::has_switch);
        let hardware = reading.map(|Reading { volume, muted }| {
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
                let timeout = PollTimeout::try_from(LOOK_AGAIN).unwrap_or(PollTimeout::NONE);
                let _ = nix::poll::poll(&mut fds, timeout);
                MixerWoken::default()
            }
        }
    }
}
