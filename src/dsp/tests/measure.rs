//! What a signal differs from what it should be, in dB. Each meter has a test that shows what it can see.

use std::f64::consts::TAU;

use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

/// Full scale.
pub(crate) const FULL: f64 = 2_147_483_648.0;

/// A ratio of amplitudes in dB, with a floor for nothing at all.
pub(crate) fn db(ratio: f64) -> f64 {
    20.0 * ratio.abs().max(1e-15).log10()
}

pub(crate) fn rms(signal: &[f64]) -> f64 {
    (signal.iter().map(|s| s * s).sum::<f64>() / signal.len().max(1) as f64).sqrt()
}

pub(crate) fn to_ints(signal: &[f64]) -> Vec<i32> {
    signal.iter().map(|s| (s * FULL).round() as i32).collect()
}

/// One of the interleaved channels, 1 being full scale.
pub(crate) fn channel(samples: &[i32], channels: usize, which: usize) -> Vec<f64> {
    samples.iter().skip(which).step_by(channels).map(|&s| f64::from(s) / FULL).collect()
}

/// A sine that begins with phase 0.
pub(crate) fn tone(rate: u32, frequency: f64, amplitude: f64, frames: usize) -> Vec<f64> {
    let step = TAU * frequency / f64::from(rate);
    (0..frames).map(|n| amplitude * (step * n as f64).sin()).collect()
}

/// A sine whose frequency grows by the same factor in each second, from `low` to `high`.
pub(crate) fn sweep(rate: u32, (low, high): (f64, f64), amplitude: f64, seconds: f64) -> Vec<f64> {
    let growth = (high / low).ln() / seconds;
    let frames = (seconds * f64::from(rate)) as usize;
    let phase = |t: f64| TAU * low * ((growth * t).exp() - 1.0) / growth;
    (0..frames).map(|n| amplitude * phase(n as f64 / f64::from(rate)).sin()).collect()
}

/// The sine of a known frequency in a signal, by least squares, and what else is in there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sine {
    pub amplitude: f64,
    /// At the signal's first frame, in radians.
    pub phase: f64,
    /// Root of the mean square of all that is not this sine.
    pub rest: f64,
}

impl Sine {
    pub fn of(signal: &[f64], rate: u32, frequency: f64) -> Sine {
        let step = TAU * frequency / f64::from(rate);
        let waves = |n: usize| (step * n as f64).sin_cos();
        let (mut ss, mut cc, mut sc, mut xs, mut xc) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (n, x) in signal.iter().enumerate() {
            let (s, c) = waves(n);
            ss += s * s;
            cc += c * c;
            sc += s * c;
            xs += x * s;
            xc += x * c;
        }
        let det = ss * cc - sc * sc;
        let (a, b) = ((xs * cc - xc * sc) / det, (xc * ss - xs * sc) / det);
        let rest: f64 = signal
            .iter()
            .enumerate()
            .map(|(n, x)| {
                let (s, c) = waves(n);
                (x - a * s - b * c).powi(2)
            })
            .sum();
        Sine { amplitude: a.hypot(b), phase: b.atan2(a), rest: (rest / signal.len() as f64).sqrt() }
    }

    /// Distortion, noise and aliases relative to the sine.
    pub fn thd_n_db(&self) -> f64 {
        db(self.rest / (self.amplitude / 2f64.sqrt()))
    }
}

/// The powers of a signal's frequencies, averaged over windows that overlap by half; a full-scale sine has 1 in its
/// highest bin.
pub(crate) fn spectrum(signal: &[f64], size: usize) -> Vec<f64> {
    let fft = FftPlanner::new().plan_fft_forward(size);
    // Side lobes fall so fast that a few dozen bins away nothing of them is left.
    let window: Vec<f64> = (0..size).map(|n| (TAU / 2.0 * n as f64 / size as f64).sin().powi(8)).collect();
    let scale = (2.0 / window.iter().sum::<f64>()).powi(2);
    let mut powers = vec![0.0; size / 2];
    let starts: Vec<usize> = (0..=signal.len().saturating_sub(size)).step_by(size / 2).collect();
    let count = starts.len() as f64;
    for start in starts {
        let mut bins: Vec<Complex<f64>> =
            signal[start..start + size].iter().zip(&window).map(|(s, w)| Complex::new(s * w, 0.0)).collect();
        fft.process(&mut bins);
        for (power, bin) in powers.iter_mut().zip(&bins) {
            *power += bin.norm_sqr() * scale / count;
        }
    }
    powers
}

/// The loudest difference of two signals in any piece of `piece` frames, relative to the second one's whole, in dB.
pub(crate) fn worst_difference_db(got: &[f64], want: &[f64], piece: usize) -> f64 {
    let level = rms(want);
    let pieces = got.chunks(piece).zip(want.chunks(piece));
    let worst = pieces.map(|(got, want)| {
        let difference: Vec<f64> = got.iter().zip(want).map(|(g, w)| g - w).collect();
        rms(&difference) / level
    });
    db(worst.fold(0.0, f64::max))
}

#[test]
fn the_sine_meter_sees_an_error_of_minus_100_db() {
    let clean = tone(48_000, 997.0, 0.9, 48_000);
    assert!(Sine::of(&clean, 48_000, 997.0).thd_n_db() < -200.0);
    for (kind, frequency) in [("a harmonic", 1994.0), ("an alias", 21_003.0)] {
        let error = tone(48_000, frequency, 0.9e-5, 48_000);
        let both: Vec<f64> = clean.iter().zip(&error).map(|(c, e)| c + e).collect();
        let seen = Sine::of(&both, 48_000, 997.0);
        assert!((seen.thd_n_db() + 100.0).abs() < 0.1, "{kind}: {:.2} dB", seen.thd_n_db());
        assert!((seen.amplitude - 0.9).abs() < 1e-6);
    }
    // Sixteen bits without dither are 98 dB.
    let coarse: Vec<f64> = clean.iter().map(|s| (s * 32_768.0).round() / 32_768.0).collect();
    let seen = Sine::of(&coarse, 48_000, 997.0).thd_n_db();
    assert!((-99.0..-95.0).contains(&seen), "{seen:.2} dB");
}

#[test]
fn the_sweep_meter_sees_an_error_of_minus_100_db_anywhere() {
    let want = sweep(48_000, (20.0, 20_000.0), 0.9, 2.0);
    assert!(worst_difference_db(&want, &want, 2048) < -200.0);
    // In one piece only, and a single frame's shift of a thousandth of a frame.
    let mut got = want.clone();
    for (n, sample) in got[50_000..52_048].iter_mut().enumerate() {
        *sample += 0.9e-5 * (n as f64).sin();
    }
    let seen = worst_difference_db(&got, &want, 2048);
    assert!((seen + 100.0).abs() < 3.0, "{seen:.2} dB");
}

#[test]
fn the_spectrum_shows_levels() {
    let signal: Vec<f64> = tone(48_000, 6000.0, 1.0, 1 << 15)
        .iter()
        .zip(tone(48_000, 12_000.0, 1e-4, 1 << 15))
        .map(|(a, b)| a + b)
        .collect();
    let powers = spectrum(&signal, 4096);
    assert!((10.0 * powers[512].log10()).abs() < 0.01);
    assert!((10.0 * powers[1024].log10() + 80.0).abs() < 0.1);
    assert!(10.0 * powers[1536].log10() < -200.0);
}
