//! Opus: its header, and libopus as a decoder of up to eight channels. The demuxers leave the gain and most of the
//! pre-skip to others, and symphonia has no decoder of its own.

mod decoder;
mod head;

pub(in crate::decode) use decoder::OpusDecoder;
pub(in crate::decode) use head::{Head, refusal};
