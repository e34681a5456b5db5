//! What the decoder makes of a track.

use std::time::Duration;

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

impl SourceFormat {
    /// When a frame begins, counted from frame 0; [`SourceFormat::frame_at`] leads back to the very frame.
    pub fn time_of(&self, frame: u64) -> Duration {
        let nanos = (u128::from(frame) * 1_000_000_000).div_ceil(u128::from(self.rate.max(1)));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The frame that sounds at a time.
    pub fn frame_at(&self, time: Duration) -> u64 {
        u64::try_from(time.as_nanos() * u128::from(self.rate) / 1_000_000_000).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_frames_time_leads_back_to_it(frame in 0u64..1 << 40, rate in 1u32..800_000) {
            let format = SourceFormat { rate, channels: 2, bits: 16, lossy: false };
            prop_assert_eq!(format.frame_at(format.time_of(frame)), frame);
        }
    }
}
