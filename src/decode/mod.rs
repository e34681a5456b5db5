//! [5] Bytes to PCM.
//!
//! A track's bytes come in as an [`Input`], PCM goes out as interleaved 32-bit integers, left-justified.
//! Containers and codecs are symphonia's, Opus is the system's libopus; none of their types leaves this
//! folder. What those get wrong is put right in [`source`] and [`quirks`], so that a recording that was
//! cut into tracks plays as one again.

mod blocks;
mod codec;
mod error;
mod foreign;
mod input;
mod link;
mod mpeg;
mod quirks;
mod registry;
mod samples;
mod source;
mod tags;
#[cfg(test)]
pub(crate) mod tests;

pub use error::DecodeError;
pub use input::{FileInput, Hints, Input};
pub use source::{Decoder, Landed};
