//! What is done to samples between the decoder and the ring, where something has to be done.

mod chain;
mod crossfade;
mod limiter;
mod loudness;
mod mix;
mod resample;
mod settings;
#[cfg(test)]
pub(crate) mod tests;

pub use chain::{Chain, ConvertError};
pub use crossfade::{Crossfade, fade_frames};
pub use loudness::{Amplification, Level, Loudness};
pub use mix::keeps_samples;
pub use settings::{LONGEST_CROSSFADE, ReplayGain, Settings};
