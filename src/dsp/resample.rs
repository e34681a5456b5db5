//! Sample-rate conversion with the filter's delay taken out: as many seconds come out as went in.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler as _, WindowFunction};

/// The shorter side of a transform, in frames. Longer puts the filter's edge closer to half the rate.
const BLOCK: usize = 1024;
/// No block is longer. Only rates that no recorder knows have nothing in common with those of cards, and memory for
/// each of them is not to be had.
const LONGEST_BLOCK: usize = 1 << 17;

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A resampler for interleaved floats.
pub(super) struct Resampler {
    fft: Fft<f32>,
    channels: usize,
    from: u64,
    to: u64,
    /// Input that does not fill a block yet.
    queue: Vec<f32>,
    block_out: Vec<f32>,
    /// Frames of the filter's delay that are still to be dropped.
    delay: usize,
    /// Frames taken in and given out since the last flush.
    taken: u64,
    given: u64,
}

impl Resampler {
    /// None for rates that have no useful ratio.
    pub(super) fn new(from: u32, to: u32, channels: u16) -> Option<Resampler> {
        let (rate_in, rate_out, channels) = (from as usize, to as usize, usize::from(channels));
        // A block of an even number of units has its filter's centre between no two frames, so that the delay
        // is a whole number of them on both sides.
        let unit = rate_in / gcd(rate_in, rate_out).max(1);
        let least = BLOCK * rate_in.div_ceil(rate_out.max(1)).max(1);
        let chunk = unit * least.div_ceil(unit.max(1)).next_multiple_of(2);
        if chunk > LONGEST_BLOCK {
            return None;
        }
        let fft = Fft::new_custom(
            rate_in,
            rate_out,
            chunk,
            1,
            channels,
            WindowFunction::BlackmanHarris2,
            FixedSync::Both,
        )
        .ok()?;
        Some(Resampler {
            block_out: vec![0.0; fft.output_frames_max() * channels],
            delay: fft.output_delay(),
            fft,
            channels,
            from: u64::from(from),
            to: u64::from(to),
            queue: Vec::new(),
            taken: 0,
            given: 0,
        })
    }

    /// Frames, as they will come out, that have been taken and not given yet.
    pub(super) fn held(&self) -> u64 {
        self.due().saturating_sub(self.given)
    }

    /// As many frames as were taken are so many on the other side.
    fn due(&self) -> u64 {
        (self.taken * self.to + self.from / 2) / self.from
    }

    /// Takes `input` and appends what is ready to `out`.
    pub(super) fn process(&mut self, input: &[f32], out: &mut Vec<f32>) {
        self.queue.extend_from_slice(input);
        self.taken += (input.len() / self.channels) as u64;
        let block = self.fft.input_frames_next() * self.channels;
        let mut done = 0;
        while self.queue.len() - done >= block {
            self.run(done, done + block, u64::MAX, out);
            done += block;
        }
        self.queue.drain(..done);
    }

    /// Appends the rest: after it, the output is as long as the input was, to a frame. Then begins anew.
    pub(super) fn flush(&mut self, out: &mut Vec<f32>) {
        let due = self.due();
        let block = self.fft.input_frames_next() * self.channels;
        while self.given < due {
            self.queue.resize(block, 0.0);
            self.run(0, block, due, out);
            self.queue.clear();
        }
        self.fft.reset();
        self.queue.clear();
        (self.taken, self.given, self.delay) = (0, 0, self.fft.output_delay());
    }

    /// Converts one block of the queue.
    fn run(&mut self, from: usize, to: usize, due: u64, out: &mut Vec<f32>) {
        let frames = self.block_out.len() / self.channels;
        let input = InterleavedSlice::new(&self.queue[from..to], self.channels, (to - from) / self.channels);
        let output = InterleavedSlice::new_mut(&mut self.block_out, self.channels, frames);
        // Sizes and channels are those that the resampler asked for, so neither step fails.
        let (Ok(input), Ok(mut output)) = (input, output) else { return };
        let Ok((_, frames)) = self.fft.process_into_buffer(&input, &mut output, None) else { return };
        let skip = self.delay.min(frames);
        self.delay -= skip;
        let left = usize::try_from(due - self.given).unwrap_or(usize::MAX);
        let give = (frames - skip).min(left);
        out.extend_from_slice(&self.block_out[skip * self.channels..(skip + give) * self.channels]);
        self.given += give as u64;
    }
}
