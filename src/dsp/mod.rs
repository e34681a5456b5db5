//! What is done to samples between the decoder and the ring, where something has to be done.

mod convert;
mod resample;
mod settings;
#[cfg(test)]
mod tests;

pub use convert::{ConvertError, Converter};
pub use settings::{LONGEST_CROSSFADE, ReplayGain, Settings};
