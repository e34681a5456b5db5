//! The resampler, measured with sines: against what they should be at the other rate.

use super::measure::*;
use crate::dsp::Chain;
use crate::track::SourceFormat;

/// What a resampler must stay below.
const CLEAN_DB: f64 = -110.0;
const RATES: [(u32, u32); 14] = [
    (44_100, 48_000),
    (48_000, 44_100),
    (44_100, 96_000),
    (44_100, 192_000),
    (48_000, 96_000),
    (88_200, 48_000),
    (88_200, 44_100),
    (96_000, 48_000),
    (96_000, 44_100),
    (192_000, 48_000),
    (192_000, 44_100),
    (32_000, 48_000),
    (22_050, 48_000),
    (384_000, 192_000),
];

fn chain(from: u32, to: u32) -> Chain {
    Chain::new(SourceFormat { rate: from, channels: 1, bits: 32, lossy: false }, to, 1, false).unwrap()
}

/// In pieces of odd sizes, to the end.
fn resample(from: u32, to: u32, signal: &[f64]) -> Vec<f64> {
    let (mut chain, mut out) = (chain(from, to), Vec::new());
    for piece in to_ints(signal).chunks(1151) {
        chain.process(piece, &mut out);
    }
    chain.flush(&mut out);
    channel(&out, 1, 0)
}

/// Without the ends, where a sine starts and stops at once, which no band can carry.
fn inside(signal: &[f64], rate: u32) -> &[f64] {
    let margin = rate as usize / 10;
    &signal[margin..signal.len() - margin]
}

/// Up to where everything is heard as it was.
fn band(from: u32, to: u32) -> f64 {
    20_000f64.min(f64::from(from.min(to)) / 2.0 * 0.95)
}

#[test]
fn a_swept_sine_comes_out_as_if_made_at_the_other_rate() {
    for (from, to) in RATES {
        let ends = (20.0, band(from, to));
        let got = resample(from, to, &sweep(from, ends, 0.9, 3.0));
        let want = sweep(to, ends, 0.9, 3.0);
        assert_eq!(got.len(), want.len(), "{from} to {to}");
        let (mut got, want) = (inside(&got, to).to_vec(), inside(&want, to));
        // One factor for the whole is no distortion; that it is 1 is asserted by itself.
        let gain =
            got.iter().zip(want).map(|(g, w)| g * w).sum::<f64>() / want.iter().map(|w| w * w).sum::<f64>();
        assert!(db(gain).abs() < 1e-4, "{from} to {to}: {} dB", db(gain));
        got.iter_mut().for_each(|sample| *sample /= gain);
        let worst = worst_difference_db(&got, want, 2048);
        eprintln!(
            "{from:>6} to {to:>6} Hz: sweep up to {:.0} Hz: all errors {worst:.1} dB, gain {:+.6} dB",
            ends.1,
            db(gain)
        );
        assert!(worst < CLEAN_DB, "{from} to {to}: {worst:.1} dB");
    }
}

#[test]
fn stepped_tones_are_clean_flat_and_in_place() {
    for (from, to) in RATES {
        let top = band(from, to);
        let (mut worst, mut low, mut high, mut shift) = (f64::MIN, f64::MAX, f64::MIN, 0f64);
        for step in 1..=12 {
            let frequency = (top * f64::from(step) / 12.0).round() - 3.0;
            let got = resample(from, to, &tone(from, frequency, 0.9, from as usize / 2));
            let margin = to as usize / 10;
            let sine = Sine::of(inside(&got, to), to, frequency);
            let due = std::f64::consts::TAU * frequency * margin as f64 / f64::from(to);
            let turn = (sine.phase - due).sin();
            worst = worst.max(sine.thd_n_db());
            (low, high) = (low.min(db(sine.amplitude / 0.9)), high.max(db(sine.amplitude / 0.9)));
            shift = shift.max(turn.abs() / (std::f64::consts::TAU * frequency) * f64::from(to));
        }
        eprintln!(
            "{from:>6} to {to:>6} Hz: tones up to {top:.0} Hz: THD+N {worst:.1} dB, ripple {:.6} dB, \
             displaced by {shift:.1e} frames",
            high - low
        );
        assert!(worst < CLEAN_DB, "{from} to {to}: {worst:.1} dB");
        assert!(high - low < 0.001 && high.abs().max(low.abs()) < 0.001, "{low} to {high} dB");
        assert!(shift < 1e-3, "{shift}");
    }
}

/// What the lower rate cannot carry must not come back as something else.
#[test]
fn what_lies_above_the_band_does_not_come_back() {
    for (from, to) in RATES.into_iter().filter(|(from, to)| from > to) {
        let (half, top) = (f64::from(to) / 2.0, f64::from(from) / 2.0);
        let level = |frequency: f64| {
            let got = resample(from, to, &tone(from, frequency, 0.9, from as usize / 2));
            db(rms(inside(&got, to)) / (0.9 / 2f64.sqrt()))
        };
        let edge = level(half + 60.0);
        let steps = (0..10).map(|step| half + (top - half) * (f64::from(step) + 0.5) / 10.0);
        let worst = steps.map(level).fold(f64::MIN, f64::max);
        eprintln!("{from:>6} to {to:>6} Hz: from {half} Hz up {worst:.1} dB, 60 Hz above it {edge:.1} dB");
        assert!(worst < CLEAN_DB && edge < CLEAN_DB, "{from} to {to}: {worst:.1} dB, {edge:.1} dB");
    }
}
