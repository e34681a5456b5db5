//! What is done to samples between the decoder and the ring, where something has to be done.

mod settings;

pub use settings::{LONGEST_CROSSFADE, ReplayGain, Settings};
