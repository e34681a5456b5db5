//! `[output]`: the sound card.

use serde::Deserialize;

use super::{A_DAY_S, Complaint};
use crate::output::VolumeMode;

/// No receiver takes longer to wake up.
const LONGEST_LEAD_IN_MS: u64 = 5_000;

/// `[output]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Output {
    /// An ALSA device, `auto`, or several in order of preference.
    pub device: Devices,
    /// How much the card holds, in milliseconds; by the system's permissions without it.
    pub buffer_ms: Option<u64>,
    /// After so many seconds without sound the card is given back.
    pub release_after_s: u64,
    /// Keep the card and feed it silence while nothing plays.
    pub keep_alive: bool,
    /// Silence before the first sound of a card that was still, in milliseconds.
    pub lead_in_ms: u64,
    /// Who controls the volume: `auto`, `hardware`, `software` or `fixed`.
    pub volume: VolumeMode,
    /// Name of the card's volume control; the likeliest without it.
    pub mixer: Option<String>,
    /// ALSA's name of the mixer; that of the card that is open without it.
    pub mixer_device: Option<String>,
}

impl Default for Output {
    fn default() -> Self {
        Output {
            device: Devices(vec!["auto".to_owned()]),
            buffer_ms: None,
            release_after_s: 10,
            keep_alive: false,
            lead_in_ms: 0,
            volume: VolumeMode::Auto,
            mixer: None,
            mixer_device: None,
        }
    }
}

/// One device or several in order of preference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices(pub Vec<String>);

impl<'de> Deserialize<'de> for Devices {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "the name of an ALSA device, or a list of such names")]
        enum OneOrMany {
            One(String),
            Many(Vec<String>),
        }
        Ok(Devices(match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(device) => vec![device],
            OneOrMany::Many(devices) => devices,
        }))
    }
}

impl Output {
    pub(super) fn complaint(&self) -> Option<Complaint> {
        let complain = |key, message: String| Some(Complaint { table: "output", key, message });
        if self.device.0.is_empty() || self.device.0.iter().any(|name| name.trim().is_empty()) {
            return complain("device", "name a device, for example \"auto\" or \"hw:CARD=DAC\"".to_owned());
        }
        if self.buffer_ms.is_some_and(|ms| !(50..=2_000).contains(&ms)) {
            return complain("buffer_ms", "between 50 and 2000 milliseconds".to_owned());
        }
        if self.lead_in_ms > LONGEST_LEAD_IN_MS {
            return complain("lead_in_ms", format!("at most {LONGEST_LEAD_IN_MS} milliseconds"));
        }
        if self.release_after_s > A_DAY_S {
            return complain("release_after_s", format!("at most {A_DAY_S} seconds"));
        }
        None
    }
}
