//! `[sound]`: what is done to the samples. With the defaults, nothing is.

use std::time::Duration;

use serde::Deserialize;

use super::Complaint;
use crate::dsp::{self, LONGEST_CROSSFADE, ReplayGain};

/// Gain that is set by hand, either way, in dB.
const MOST_GAIN_DB: f32 = 15.0;

/// `[sound]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sound {
    /// Which loudness tags are followed: `off`, `track`, `album` or `auto`.
    pub replay_gain: ReplayGain,
    /// Added to the gain of tagged tracks, in dB.
    pub preamp_db: f32,
    /// The gain of tracks without tags while ReplayGain is on, in dB.
    pub untagged_db: f32,
    /// Both ears hear both channels.
    pub mono: bool,
    /// How long one track fades into the next, in milliseconds; 0 is not at all.
    pub crossfade_ms: u64,
}

impl Default for Sound {
    fn default() -> Self {
        Sound { replay_gain: ReplayGain::Off, preamp_db: 0.0, untagged_db: 0.0, mono: false, crossfade_ms: 0 }
    }
}

impl Sound {
    pub(super) fn complaint(&self) -> Option<Complaint> {
        let complain = |key, message: String| Some(Complaint { table: "sound", key, message });
        for (key, gain) in [("preamp_db", self.preamp_db), ("untagged_db", self.untagged_db)] {
            // NaN is in no range.
            if !(-MOST_GAIN_DB..=MOST_GAIN_DB).contains(&gain) {
                return complain(key, format!("from -{MOST_GAIN_DB} to {MOST_GAIN_DB} dB"));
            }
        }
        let longest = LONGEST_CROSSFADE.as_millis();
        if u128::from(self.crossfade_ms) > longest {
            return complain("crossfade_ms", format!("at most {longest} milliseconds"));
        }
        None
    }

    /// The same for the parts that carry it out.
    pub fn settings(&self) -> dsp::Settings {
        dsp::Settings {
            replay_gain: self.replay_gain,
            preamp_db: self.preamp_db,
            untagged_db: self.untagged_db,
            mono: self.mono,
            crossfade: Duration::from_millis(self.crossfade_ms),
        }
    }
}
