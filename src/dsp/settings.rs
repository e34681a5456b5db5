//! What a person may have done to the samples.

use std::time::Duration;

/// No fade from track to track is longer: what overlaps is held in memory.
pub const LONGEST_CROSSFADE: Duration = Duration::from_secs(12);

/// Which loudness tags are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplayGain {
    /// None: samples stay as they are.
    #[default]
    Off,
    /// Each track's own.
    Track,
    /// The album's, which keeps quiet tracks quiet.
    Album,
    /// The album's where a neighbour in the queue is of the same album, else the track's.
    Auto,
}

impl ReplayGain {
    /// All modes, in the order in which people read them.
    pub const ALL: [ReplayGain; 4] =
        [ReplayGain::Off, ReplayGain::Track, ReplayGain::Album, ReplayGain::Auto];

    /// The word on the bus and in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            ReplayGain::Off => "off",
            ReplayGain::Track => "track",
            ReplayGain::Album => "album",
            ReplayGain::Auto => "auto",
        }
    }
}

/// What is to be done to samples. With the defaults, nothing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Which loudness tags are followed.
    pub replay_gain: ReplayGain,
    /// Added to the gain of tagged tracks, in dB, while ReplayGain is on.
    pub preamp_db: f32,
    /// The gain of tracks without tags, in dB, while ReplayGain is on.
    pub untagged_db: f32,
    /// Both ears hear both channels.
    pub mono: bool,
    /// How long one track fades into the next; zero is not at all.
    pub crossfade: Duration,
}
