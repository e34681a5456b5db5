//! What the demuxers leave undone, one file for each format.

pub(super) mod aac;
pub(super) mod caf;
#[cfg(feature = "he-aac")]
pub(super) mod he_aac;
pub(super) mod mkv;
pub(super) mod mp4;
pub(super) mod ogg;
pub(super) mod opus;
pub(super) mod pcm;
pub(super) mod pictures;
