//! From the source's frames to those that the ring takes.
//!
//! ```text
//!  source ──► gain ──► mixing down ──► rate ──► mixing up ──► limiter ──► ring
//! ```
//! Each step is left out where nothing is to be done; where all are, frames are copied bit for bit. The fewer
//! channels are resampled: mixing down comes before it, doubling after.

use super::limiter::Limiter;
use super::mix::{Blend, Mix, pick};
use super::resample::Resampler;
use crate::track::SourceFormat;

/// Rates above this are no sound.
const MAX_RATE: u32 = 768_000;
const MAX_CHANNELS: u16 = 32;
/// A setting that is changed while music plays comes in over this time.
const RAMP_MS: u32 = 20;

/// 1 as a left-justified sample.
const FULL: f64 = 2_147_483_648.0;

/// A conversion that makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("cannot convert {from} Hz with {from_channels} channels to {to} Hz with {to_channels} channels")]
pub struct ConvertError {
    from: u32,
    from_channels: u16,
    to: u32,
    to_channels: u16,
}

/// Converts interleaved frames before they go into the ring. What need not change stays bit for bit.
pub struct Chain {
    from: SourceFormat,
    from_channels: usize,
    to_channels: usize,
    rate: u32,
    gain: Gain,
    mono: bool,
    mix: Mix,
    blend: Option<Blend>,
    resampler: Option<Resampler>,
    limiter: Option<Limiter>,
    /// So many more frames go through the limiter; then it has nothing to do any more.
    limiter_ends: Option<u64>,
    floats: Vec<f32>,
    mixed: Vec<f32>,
}

/// A factor for the samples, on its way from one value to another.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gain {
    from: f32,
    to: f32,
    done: u32,
    length: u32,
}

impl Gain {
    fn constant(factor: f32) -> Gain {
        Gain { from: factor, to: factor, done: 0, length: 0 }
    }

    fn now(&self) -> f32 {
        if self.done >= self.length {
            return self.to;
        }
        self.from + (self.to - self.from) * (self.done as f32 / self.length as f32)
    }

    fn is_unity(&self) -> bool {
        self.done >= self.length && self.to == 1.0
    }
}

impl Chain {
    /// A chain to a rate and a number of channels. With `mono`, both ears hear both channels.
    pub fn new(
        from: SourceFormat,
        to_rate: u32,
        to_channels: u16,
        mono: bool,
    ) -> Result<Chain, ConvertError> {
        let error =
            || ConvertError { from: from.rate, from_channels: from.channels, to: to_rate, to_channels };
        let fine = |rate: u32, channels: u16| {
            (1..=MAX_RATE).contains(&rate) && (1..=MAX_CHANNELS).contains(&channels)
        };
        if !fine(from.rate, from.channels) || !fine(to_rate, to_channels) {
            return Err(error());
        }
        let resampler = if from.rate == to_rate {
            None
        } else {
            Some(Resampler::new(from.rate, to_rate, from.channels.min(to_channels)).ok_or_else(error)?)
        };
        let (from_channels, channels) = (usize::from(from.channels), usize::from(to_channels));
        Ok(Chain {
            from,
            from_channels,
            to_channels: channels,
            rate: to_rate,
            gain: Gain::constant(1.0),
            mono,
            mix: Mix::new(from_channels, channels, mono),
            blend: None,
            resampler,
            limiter: None,
            limiter_ends: None,
            floats: Vec::new(),
            mixed: Vec::new(),
        })
    }

    /// Whether frames pass unchanged.
    pub fn is_identity(&self) -> bool {
        self.is_plain() && self.resampler.is_none() && self.mix == Mix::Keep
    }

    /// Nothing is done but to convert rate and channels.
    fn is_plain(&self) -> bool {
        self.gain.is_unity() && self.limiter.is_none() && self.blend.is_none()
    }

    /// ReplayGain by itself, which is what most who want any of this want.
    fn is_gain_only(&self) -> bool {
        let plain = self.limiter.is_none() && self.blend.is_none() && self.resampler.is_none();
        plain && self.mix == Mix::Keep
    }

    /// From the next frame on samples are multiplied by `factor`. What is made louder is kept below full scale: the
    /// peak may be unknown, a tag may lie, and at another rate the sound between two samples comes out.
    pub fn set_gain(&mut self, factor: f32) {
        self.gain = Gain::constant(factor);
        if factor > 1.0 {
            self.limiter.get_or_insert_with(|| Limiter::new(self.rate, self.to_channels));
            self.limiter_ends = None;
        } else if self.limiter.is_some() {
            self.limiter_ends = Some(self.resampler.as_ref().map_or(0, Resampler::held));
        }
    }

    /// The same, but a listener hears the change: it comes in over 20 ms.
    pub fn ramp_gain(&mut self, factor: f32) {
        let from = self.gain.now();
        self.set_gain(factor);
        if from != factor {
            self.gain = Gain { from, to: factor, done: 0, length: self.from.rate * RAMP_MS / 1000 };
        }
        // It comes up again before it is left out.
        self.limiter_ends = self.limiter_ends.map(|frames| frames + u64::from(self.rate));
    }

    /// Frames of the source after which a change that comes in slowly is done.
    pub fn until_steady(&self) -> u64 {
        let gain = self.gain.length.saturating_sub(self.gain.done);
        let blend = if self.blend.is_some() { self.from.rate * RAMP_MS / 1000 } else { 0 };
        u64::from(gain.max(blend))
    }

    /// Both ears hear both channels, or each its own again; over 20 ms.
    pub fn set_mono(&mut self, mono: bool) {
        let mix = Mix::new(self.from_channels, self.to_channels, mono);
        if mix != self.mix {
            let down = self.from_channels > self.to_channels;
            let length = if down { self.from.rate } else { self.rate } * RAMP_MS / 1000;
            let now = self.blend.take().map_or_else(|| self.mix.clone(), |blend| blend.now());
            self.blend = Some(Blend::new(&now, &mix, self.from_channels, length as usize));
        }
        (self.mono, self.mix) = (mono, mix);
    }

    /// What samples are multiplied by, or soon will be.
    pub fn gain(&self) -> f32 {
        self.gain.to
    }

    /// Whether both ears hear both channels.
    pub fn is_mono(&self) -> bool {
        self.mono
    }

    /// Frames, at the rate of the ring, that went in and have not come out yet.
    pub fn held(&self) -> u64 {
        let resampler = self.resampler.as_ref().map_or(0, Resampler::held);
        resampler + self.limiter.as_ref().map_or(0, |limiter| limiter.held() as u64)
    }

    /// Converts `input` and appends what is ready to `out`; resampler and limiter keep some back.
    pub fn process(&mut self, input: &[i32], out: &mut Vec<i32>) {
        if self.limiter_ends == Some(0) {
            self.give(&[], false, out);
        }
        // What comes behind a change is exact again from its first frame on.
        if let Some(blend) = self.blend.as_ref().filter(|_| self.resampler.is_none())
            && blend.left() * self.from_channels < input.len()
        {
            let (during, after) = input.split_at(blend.left() * self.from_channels);
            self.process(during, out);
            return self.process(after, out);
        }
        if self.is_plain() && self.resampler.is_none() {
            match &self.mix {
                Mix::Keep => return out.extend_from_slice(input),
                Mix::Pick(from) => return pick(from, self.from_channels, input, out, 0),
                Mix::Matrix(_) => {}
            }
        }
        if self.is_gain_only() {
            return self.multiply(input, out);
        }
        let mut floats = std::mem::take(&mut self.floats);
        to_floats(input, &mut floats);
        self.apply_gain(&mut floats);
        if self.from_channels > self.to_channels {
            self.apply_mix(&mut floats);
            self.apply_rate(&mut floats);
        } else {
            self.apply_rate(&mut floats);
            self.apply_mix(&mut floats);
        }
        self.give(&floats, false, out);
        self.floats = floats;
    }

    /// Appends what was kept back; the output is then as long in time as the input was. The next frames begin
    /// a new recording. Between tracks that follow each other without a gap there is no need to flush.
    pub fn flush(&mut self, out: &mut Vec<i32>) {
        let mut floats = std::mem::take(&mut self.floats);
        floats.clear();
        if let Some(resampler) = &mut self.resampler {
            resampler.flush(&mut floats);
            if self.from_channels <= self.to_channels {
                self.apply_mix(&mut floats);
            }
        }
        self.give(&floats, true, out);
        self.floats = floats;
    }

    fn apply_gain(&mut self, floats: &mut [f32]) {
        if self.gain.is_unity() {
            return;
        }
        for frame in floats.chunks_exact_mut(self.from_channels) {
            let factor = self.gain.now();
            self.gain.done = self.gain.done.saturating_add(1);
            for sample in frame {
                *sample *= factor;
            }
        }
    }

    /// Without the way through floats, and with all 32 bits.
    fn multiply(&mut self, input: &[i32], out: &mut Vec<i32>) {
        let left = self.gain.length.saturating_sub(self.gain.done) as usize;
        let (ramp, steady) = input.split_at(input.len().min(left * self.from_channels));
        for frame in ramp.chunks_exact(self.from_channels) {
            let factor = f64::from(self.gain.now());
            self.gain.done += 1;
            out.extend(frame.iter().map(|&s| to_int(f64::from(s) * factor)));
        }
        let factor = f64::from(self.gain.to);
        out.extend(steady.iter().map(|&s| to_int(f64::from(s) * factor)));
    }

    fn apply_mix(&mut self, floats: &mut Vec<f32>) {
        if self.blend.is_none() && self.mix == Mix::Keep {
            return;
        }
        self.mixed.clear();
        match &mut self.blend {
            Some(blend) => blend.apply(self.from_channels, floats, &mut self.mixed),
            None => self.mix.apply(self.from_channels, floats, &mut self.mixed),
        }
        self.blend.take_if(|blend| blend.is_done());
        std::mem::swap(floats, &mut self.mixed);
    }

    fn apply_rate(&mut self, floats: &mut Vec<f32>) {
        if let Some(resampler) = &mut self.resampler {
            self.mixed.clear();
            resampler.process(floats, &mut self.mixed);
            std::mem::swap(floats, &mut self.mixed);
        }
    }

    fn give(&mut self, floats: &[f32], at_end: bool, out: &mut Vec<i32>) {
        let Some(limiter) = &mut self.limiter else { return to_ints(floats, out) };
        let frames = (floats.len() / self.to_channels) as u64;
        let through = self.limiter_ends.map_or(frames, |left| left.min(frames));
        let (limited, free) = floats.split_at(through as usize * self.to_channels);
        self.limiter_ends = self.limiter_ends.map(|left| left - through);
        let ends = self.limiter_ends == Some(0);
        self.mixed.clear();
        limiter.process(limited, &mut self.mixed);
        if at_end || ends {
            limiter.flush(&mut self.mixed);
        }
        if ends {
            (self.limiter, self.limiter_ends) = (None, None);
        }
        to_ints(&self.mixed, out);
        to_ints(free, out);
    }
}

/// A conversion to floats rounds once, and the scale is a power of two.
fn to_floats(input: &[i32], out: &mut Vec<f32>) {
    out.clear();
    out.extend(input.iter().map(|&s| s as f32 * (1.0 / FULL as f32)));
}

fn to_ints(input: &[f32], out: &mut Vec<i32>) {
    out.extend(input.iter().map(|&s| to_int(f64::from(s) * FULL)));
}

/// The nearest integer. The cast saturates, and NaN becomes silence. (`round` is a call for each sample.)
fn to_int(sample: f64) -> i32 {
    (sample + 0.5f64.copysign(sample)) as i32
}
