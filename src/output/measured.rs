//! Dither and ramps of the volume, measured.

use super::convert::{Noise, convert};
use super::format::SampleFormat;
use super::volume::Gain;
use crate::dsp::tests::measure::*;

const RATE: u32 = 48_000;

/// Samples as a card of so many bits gets them, in its steps; in pieces, as they are given to it.
fn given(samples: &[i32], format: SampleFormat, mut noise: Option<&mut Noise>) -> Vec<f64> {
    let mut bytes = vec![0; samples.len() * format.bytes()];
    let width = format.bytes();
    for (samples, bytes) in samples.chunks(1000).zip(bytes.chunks_mut(1000 * width)) {
        assert_eq!(convert(samples, format, noise.as_deref_mut(), bytes), bytes.len());
    }
    let value = |bytes: &[u8]| {
        let mut four = [0; 4];
        four[4 - width..].copy_from_slice(bytes);
        f64::from(i32::from_le_bytes(four) >> (32 - 8 * width as u32))
    };
    bytes.chunks(width).map(value).collect()
}

/// The same sample again and again: what the card gets beside it, in its steps.
fn error_of(level: f64, format: SampleFormat, frames: usize) -> Vec<f64> {
    let step = f64::from(1u32 << (32 - format.bits()));
    let samples = vec![(level * step).round() as i32; frames];
    let got = given(&samples, format, Some(&mut Noise::new()));
    got.iter().map(|value| value - (level * step).round() / step).collect()
}

fn mean(signal: &[f64]) -> f64 {
    signal.iter().sum::<f64>() / signal.len() as f64
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / (rms(a) * rms(b) * a.len().min(b.len()) as f64)
}

/// Half a step of noise, whatever the sound is: no breathing with the music, and no step's place is favoured.
#[test]
fn dither_is_as_loud_for_every_sample() {
    for format in [SampleFormat::S16, SampleFormat::S24_3] {
        let (mut least, mut most) = (f64::MAX, 0f64);
        for level in [0.0, 0.125, 0.25, 0.5, 0.75, 0.9, -0.5, -1000.3, 30_000.6] {
            let error = error_of(level, format, 200_000);
            let (mean, rms) = (mean(&error), rms(&error));
            assert!(mean.abs() < 0.006, "{}: mean {mean:.4} at {level}", format.name());
            (least, most) = (least.min(rms), most.max(rms));
        }
        let dbfs = db(most * 2.0 / 2f64.powi(i32::from(format.bits())) * 2f64.sqrt());
        eprintln!(
            "{}: {least:.4} to {most:.4} steps, {dbfs:.1} dB below a sine at full scale",
            format.name()
        );
        assert!((0.495..0.505).contains(&least) && (0.495..0.505).contains(&most), "{least} to {most}");
    }
    // Without it, a sample between two steps is wrong by as much as it is off.
    assert_eq!(rms(&given(&[0x4000; 100], SampleFormat::S16, None)), 0.0);
}

#[test]
fn dither_is_white_and_its_channels_are_independent() {
    let error = error_of(0.3, SampleFormat::S16, 1 << 19);
    let (left, right): (Vec<f64>, Vec<f64>) = error.chunks(2).map(|frame| (frame[0], frame[1])).unzip();
    let mut worst = correlation(&left, &right).abs();
    for lag in 1..200 {
        worst = worst.max(correlation(&left, &left[lag..]).abs());
        worst = worst.max(correlation(&left, &right[lag..]).abs());
        worst = worst.max(correlation(&right, &left[lag..]).abs());
    }
    let powers = spectrum(&left, 512);
    let level = mean(&powers[8..]);
    let bins = powers[8..].iter().map(|power| 10.0 * (power / level).log10());
    let (least, most) = bins.fold((0f64, 0f64), |(least, most), bin| (least.min(bin), most.max(bin)));
    eprintln!("correlation at most {worst:.4}, spectrum {least:+.2} to {most:+.2} dB");
    // Five deviations of what 2^18 independent numbers show.
    assert!(worst < 5.0 / 512.0, "{worst}");
    assert!(least > -1.5 && most < 1.5, "{least} to {most} dB");
    // The meter sees one stream that is used twice.
    assert!(correlation(&left[1..], &left[1..]) > 0.99);
}

/// A sine of about one step: cut off, its harmonics are 20 dB below it; with dither they are not there.
#[test]
fn a_sine_at_minus_90_db_has_no_harmonics() {
    const FRAMES: usize = 1 << 18;
    let frequency = f64::from(RATE) * 5461.0 / FRAMES as f64;
    let quiet = to_ints(&tone(RATE, frequency, 10f64.powf(-90.0 / 20.0), FRAMES));
    let harmonics = |got: &[f64]| {
        let sine = Sine::of(got, RATE, frequency);
        let levels = (2..=9).map(|k| Sine::of(got, RATE, frequency * f64::from(k)).amplitude);
        (sine, db(levels.fold(0.0, f64::max) / sine.amplitude))
    };
    let (sine, with) = harmonics(&given(&quiet, SampleFormat::S16, Some(&mut Noise::new())));
    let (_, without) = harmonics(&given(&quiet, SampleFormat::S16, None));
    eprintln!(
        "-90 dB: the loudest harmonic {with:.1} dB, cut off {without:.1} dB; noise {:.2} steps, level {:+.3} dB",
        sine.rest,
        db(sine.amplitude / (10f64.powf(-90.0 / 20.0) * 32_768.0))
    );
    assert!(with < -45.0, "{with:.1} dB");
    assert!(without > -25.0, "the meter sees what is cut off: {without:.1} dB");
    assert!((sine.rest - 0.5).abs() < 0.01, "{} steps of noise", sine.rest);
    assert!(db(sine.amplitude / (10f64.powf(-90.0 / 20.0) * 32_768.0)).abs() < 0.05);
}

/// The volume changes from 1 to `to`, in pieces as the card takes them.
fn turned(samples: &[i32], to: f32, at: usize) -> Vec<i32> {
    let mut samples = samples.to_vec();
    let mut gain = Gain::new(RATE, 1.0);
    for (n, piece) in samples.chunks_mut(at).enumerate() {
        if n == 1 {
            gain.set_volume(to, false);
        }
        for piece in piece.chunks_mut(311) {
            gain.apply(piece, 1);
            gain.advance(piece.len() as u64);
        }
    }
    samples
}

#[test]
fn a_turn_of_the_volume_is_heard_as_nothing_but_that() {
    const AT: usize = 12_000;
    let length = RATE as usize / 50;
    let sound = tone(RATE, 1000.0, 0.9, 2 * AT);
    let ramp = |n: usize, to: f64| 1.0 + (to - 1.0) * (n.saturating_sub(AT) as f64 / length as f64).min(1.0);
    // What lies more than three octaves above the sound was not in it.
    let far = |signal: &[f64]| {
        let powers = spectrum(&signal[AT - 1568..AT + 2528], 4096);
        10.0 * powers[8 * 4096 / 48..].iter().sum::<f64>().log10()
    };
    for to in [0.0, 0.3, 0.98] {
        let got = channel(&turned(&to_ints(&sound), to as f32, AT), 1, 0);
        let want: Vec<f64> = sound.iter().enumerate().map(|(n, s)| s * ramp(n, to)).collect();
        let error = worst_difference_db(&got, &want, 64);
        // For comparison, as if it were changed once for each 64 frames.
        let stepped: Vec<f64> = sound.iter().enumerate().map(|(n, s)| s * ramp(n / 64 * 64, to)).collect();
        let (smooth, steps) = (far(&got), far(&stepped));
        eprintln!(
            "to {to}: {error:.1} dB beside an exact ramp; above 8 kHz {smooth:.1} dB, in steps {steps:.1} dB"
        );
        assert!(error < -140.0, "{error:.1} dB");
        assert!(smooth < -95.0, "{smooth:.1} dB");
        assert!(steps > smooth + 20.0, "the meter sees steps: {steps:.1} dB");
    }
}
