//! From left-justified i32 to the bytes that the card takes.

use super::format::SampleFormat;

/// White noise for dither: xorshift32, since nothing here needs better.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise(u32);

impl Noise {
    pub fn new() -> Noise {
        Noise(0x2545_f491)
    }

    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    /// The difference of two equal distributions below `step`: triangular, mean 0.
    fn triangular(&mut self, step: u32) -> i64 {
        i64::from(self.next() % step) - i64::from(self.next() % step)
    }
}

/// Writes `samples` as `format` into `out` (at least `samples.len() * format.bytes()` long); returns the bytes written.
/// With `dither`, dropped bits become noise instead of distortion; without, they are cut off and must be zero.
pub(super) fn convert(
    samples: &[i32],
    format: SampleFormat,
    dither: Option<&mut Noise>,
    out: &mut [u8],
) -> usize {
    let shift = 32 - u32::from(format.bits());
    let mut noise = if shift > 0 { dither } else { None };
    let value = |sample| match &mut noise {
        Some(noise) => dropped(sample, shift, noise),
        None => sample >> shift,
    };
    match format.bytes() {
        4 => put::<4>(samples, out, value),
        3 => put::<3>(samples, out, value),
        _ => put::<2>(samples, out, value),
    }
}

/// The width is a constant here: a copy of unknown length is a call for each sample.
fn put<const WIDTH: usize>(samples: &[i32], out: &mut [u8], mut value: impl FnMut(i32) -> i32) -> usize {
    for (sample, bytes) in samples.iter().zip(out.chunks_exact_mut(WIDTH)) {
        bytes.copy_from_slice(&value(*sample).to_le_bytes()[..WIDTH]);
    }
    samples.len() * WIDTH
}

/// Rounds to the card's step with triangular dither, without wrapping at full scale.
fn dropped(sample: i32, shift: u32, noise: &mut Noise) -> i32 {
    let step = 1u32 << shift;
    let value = (i64::from(sample) + noise.triangular(step) + i64::from(step / 2)) >> shift;
    value.clamp(i64::from(i32::MIN >> shift), i64::from(i32::MAX >> shift)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(samples: &[i32], format: SampleFormat) -> Vec<u8> {
        let mut out = vec![0; samples.len() * format.bytes()];
        assert_eq!(convert(samples, format, None, &mut out), out.len());
        out
    }

    #[test]
    fn sixteen_bits_pass_every_format_unchanged() {
        let samples = [i32::from(i16::MIN) << 16, -(1 << 16), 0, 1 << 16, i32::from(i16::MAX) << 16];
        for format in SampleFormat::PREFERRED {
            let out = bytes(&samples, format);
            let back: Vec<i32> = out
                .chunks_exact(format.bytes())
                .map(|b| {
                    let mut le = [0; 4];
                    le[..b.len()].copy_from_slice(b);
                    i32::from_le_bytes(le) << (32 - format.bits())
                })
                .collect();
            assert_eq!(back, samples, "{}", format.name());
        }
    }

    #[test]
    fn samples_lie_little_endian_and_sign_extended() {
        assert_eq!(bytes(&[0x0102_0300], SampleFormat::S24_3), [3, 2, 1]);
        assert_eq!(bytes(&[-0x100], SampleFormat::S24), [0xff, 0xff, 0xff, 0xff]);
        assert_eq!(bytes(&[0x0102_0304], SampleFormat::S32), [4, 3, 2, 1]);
    }

    #[test]
    fn dither_keeps_the_mean_and_never_wraps() {
        let mut noise = Noise::new();
        let sample = (1000 << 16) + 0x4000; // a quarter of a step above 1000
        let sum: i64 = (0..20_000).map(|_| i64::from(dropped(sample, 16, &mut noise))).sum();
        let mean = sum as f64 / 20_000.0;
        assert!((mean - 1000.25).abs() < 0.03, "{mean}");
        for _ in 0..1000 {
            assert!(dropped(i32::MAX, 16, &mut noise) <= i32::from(i16::MAX));
            assert!(dropped(i32::MAX, 16, &mut noise) > 32_000);
            assert!(dropped(i32::MIN, 16, &mut noise) < -32_000);
        }
    }
}
