//! MPEG audio and ADTS: runs of frames without an index, in which one has to be made.

mod header;
mod index;
mod toc;

pub(super) use index::{Entrance, Index};

/// Frames of PCM in one frame of MPEG audio.
pub(super) fn samples_of_mpeg(frame: &[u8]) -> Option<u32> {
    header::Kind::Mpeg.parse(frame).map(|frame| frame.samples)
}
