//! From the source's rate and channels to the card's.

use super::resample::Resampler;
use crate::track::SourceFormat;

/// Rates above this are no sound.
const MAX_RATE: u32 = 768_000;
const MAX_CHANNELS: u16 = 32;
/// Minus 3 dB, for what comes from the centre and from behind (ITU-R BS.775).
const MINUS_3_DB: f32 = std::f32::consts::FRAC_1_SQRT_2;

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
pub struct Converter {
    from_channels: usize,
    to_channels: usize,
    mix: Mix,
    resampler: Option<Resampler>,
    floats: Vec<f32>,
    mixed: Vec<f32>,
    resampled: Vec<f32>,
}

/// How channels become others.
#[derive(Debug, PartialEq)]
enum Mix {
    Keep,
    /// Each output channel is one input channel or silent.
    Pick(Vec<Option<usize>>),
    /// One row of factors for each output channel.
    Matrix(Vec<Vec<f32>>),
}

impl Converter {
    /// A converter to a rate and a number of channels.
    pub fn new(from: SourceFormat, to_rate: u32, to_channels: u16) -> Result<Converter, ConvertError> {
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
            // The fewer channels are resampled: mixing down comes before it, doubling after.
            Some(Resampler::new(from.rate, to_rate, from.channels.min(to_channels)).ok_or_else(error)?)
        };
        Ok(Converter {
            from_channels: usize::from(from.channels),
            to_channels: usize::from(to_channels),
            mix: Mix::new(usize::from(from.channels), usize::from(to_channels)),
            resampler,
            floats: Vec::new(),
            mixed: Vec::new(),
            resampled: Vec::new(),
        })
    }

    /// Whether frames pass unchanged.
    pub fn is_identity(&self) -> bool {
        self.resampler.is_none() && self.mix == Mix::Keep
    }

    /// Converts `input` and appends what is ready to `out`; a resampler keeps some back.
    pub fn process(&mut self, input: &[i32], out: &mut Vec<i32>) {
        match (&mut self.resampler, &self.mix) {
            (None, Mix::Keep) => out.extend_from_slice(input),
            (None, Mix::Pick(from)) => pick(from, self.from_channels, input, out, 0),
            (None, Mix::Matrix(rows)) => {
                to_floats(input, &mut self.floats);
                self.mixed.clear();
                mix(rows, self.from_channels, &self.floats, &mut self.mixed);
                to_ints(&self.mixed, out);
            }
            (Some(resampler), channels) => {
                to_floats(input, &mut self.floats);
                self.resampled.clear();
                if self.from_channels > self.to_channels {
                    self.mixed.clear();
                    channels.apply(self.from_channels, &self.floats, &mut self.mixed);
                    resampler.process(&self.mixed, &mut self.resampled);
                } else {
                    resampler.process(&self.floats, &mut self.resampled);
                }
                self.give(out);
            }
        }
    }

    /// Appends what was kept back; the output is then as long in time as the input was. The next frames begin
    /// a new recording. Between tracks that follow each other without a gap there is no need to flush.
    pub fn flush(&mut self, out: &mut Vec<i32>) {
        if let Some(resampler) = &mut self.resampler {
            self.resampled.clear();
            resampler.flush(&mut self.resampled);
            self.give(out);
        }
    }

    fn give(&mut self, out: &mut Vec<i32>) {
        if self.from_channels >= self.to_channels {
            to_ints(&self.resampled, out);
        } else {
            self.mixed.clear();
            self.mix.apply(self.from_channels, &self.resampled, &mut self.mixed);
            to_ints(&self.mixed, out);
        }
    }
}

impl Mix {
    fn new(from: usize, to: usize) -> Mix {
        match (from, to) {
            _ if from == to => Mix::Keep,
            // Mono goes to the left and the right.
            (1, _) => Mix::Pick((0..to).map(|c| (c < 2).then_some(0)).collect()),
            _ if from < to => Mix::Pick((0..to).map(|c| (c < from).then_some(c)).collect()),
            (_, 2) => Mix::Matrix(normalised(stereo(from))),
            (_, 1) => {
                let [left, right] = stereo(from);
                let mono = left.iter().zip(right).map(|(l, r)| l + r).collect();
                Mix::Matrix(normalised([mono]))
            }
            _ => Mix::Pick((0..to).map(Some).collect()),
        }
    }

    fn apply(&self, channels: usize, input: &[f32], out: &mut Vec<f32>) {
        match self {
            Mix::Keep => out.extend_from_slice(input),
            Mix::Pick(from) => pick(from, channels, input, out, 0.0),
            Mix::Matrix(rows) => mix(rows, channels, input, out),
        }
    }
}

/// What left and right take from `channels` channels in the order of WAVE. The LFE is left out.
fn stereo(channels: usize) -> [Vec<f32>; 2] {
    const D: f32 = MINUS_3_DB;
    let (left, right): (&[f32], &[f32]) = match channels {
        2 => (&[1.0, 0.0], &[0.0, 1.0]),
        3 => (&[1.0, 0.0, D], &[0.0, 1.0, D]),
        4 => (&[1.0, 0.0, D, 0.0], &[0.0, 1.0, 0.0, D]),
        5 => (&[1.0, 0.0, D, D, 0.0], &[0.0, 1.0, D, 0.0, D]),
        6 => (&[1.0, 0.0, D, 0.0, D, 0.0], &[0.0, 1.0, D, 0.0, 0.0, D]),
        // With one channel at the back centre.
        7 => (&[1.0, 0.0, D, 0.0, 0.5, D, 0.0], &[0.0, 1.0, D, 0.0, 0.5, 0.0, D]),
        _ => (&[1.0, 0.0, D, 0.0, D, 0.0, D, 0.0], &[0.0, 1.0, D, 0.0, 0.0, D, 0.0, D]),
    };
    [left, right].map(|row| {
        let mut row = row.to_vec();
        row.resize(channels, 0.0);
        row
    })
}

/// Scales all rows alike, so that full scale on all channels is not clipped.
fn normalised<const N: usize>(mut rows: [Vec<f32>; N]) -> Vec<Vec<f32>> {
    let loudest = rows.iter().map(|row| row.iter().sum::<f32>()).fold(1.0, f32::max);
    for factor in rows.iter_mut().flatten() {
        *factor /= loudest;
    }
    rows.into()
}

fn pick<T: Copy>(from: &[Option<usize>], channels: usize, input: &[T], out: &mut Vec<T>, silence: T) {
    for frame in input.chunks_exact(channels) {
        out.extend(from.iter().map(|c| c.map_or(silence, |c| frame[c])));
    }
}

fn mix(rows: &[Vec<f32>], channels: usize, input: &[f32], out: &mut Vec<f32>) {
    for frame in input.chunks_exact(channels) {
        out.extend(rows.iter().map(|row| row.iter().zip(frame).map(|(f, s)| f * s).sum::<f32>()));
    }
}

fn to_floats(input: &[i32], out: &mut Vec<f32>) {
    out.clear();
    out.extend(input.iter().map(|&s| (f64::from(s) / 2_147_483_648.0) as f32));
}

fn to_ints(input: &[f32], out: &mut Vec<i32>) {
    out.extend(input.iter().map(|&s| from_float(f64::from(s))));
}

/// A float sample as a left-justified integer. The cast saturates, and NaN becomes silence.
fn from_float(sample: f64) -> i32 {
    (sample * 2_147_483_648.0).round() as i32
}
