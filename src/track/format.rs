//! What the decoder makes of a track.

/// Sample format of a source as decoded. Samples are integers, left-justified in `i32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceFormat {
    /// Frames per second.
    pub rate: u32,
    /// Samples in a frame, in the order of WAVE: left, right, centre, LFE, rear, side.
    pub channels: u16,
    /// Significant bits of a sample, counted from the top; 32 for what was decoded to floats.
    pub bits: u16,
    /// The codec is lossy: its floats were rounded into `i32`.
    pub lossy: bool,
}
