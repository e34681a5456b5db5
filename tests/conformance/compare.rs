//! How near samples come to what they should be, by the measures of ISO/IEC 11172-4 and 14496-4.

use crate::pcm::{Pcm, Samples};
use crate::run::Heard;

/// Root mean square of the difference that "full accuracy" allows, of a full scale of 1: 2^-15 / √12.
const FULL_RMS: f64 = 8.81e-6;
/// And its highest single value: 2^-14.
const FULL_PEAK: f64 = 6.11e-5;
/// What "limited accuracy" allows: 2^-11 / √12.
const LIMITED_RMS: f64 = 1.41e-4;
/// So far apart two decoders' beginnings are looked for, in frames.
const REACH: usize = 4096;
/// Over so many frames.
const WINDOW: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nearness {
    Exact,
    Full,
    Limited,
}

/// An error tells what is wrong, lengths first.
pub fn compare(heard: &Heard, with: &Pcm) -> Result<Nearness, String> {
    let channels = heard.format.channels;
    if let Some((rate, others)) = with.shape
        && (rate, others) != (heard.format.rate, channels)
    {
        return Err(format!(
            "{} Hz, {channels} channels; expected {rate} Hz, {others} channels",
            heard.format.rate
        ));
    }
    if heard.samples.len() != with.len() {
        let frames = with.len() / usize::from(channels.max(1));
        let shift = shift(heard, with)
            .map_or_else(String::new, |shift| format!("; its beginning is {shift} frames off"));
        return Err(format!("{} frames; expected {frames}{shift}", heard.frames));
    }
    if let Samples::Integers(samples) = &with.samples
        && *samples == heard.samples
    {
        return Ok(Nearness::Exact);
    }
    let mut sum = 0.0;
    let mut peak = 0f64;
    for at in 0..heard.samples.len() {
        let difference = ours(heard, at, with.bits) - theirs(with, at);
        sum += difference * difference;
        peak = peak.max(difference.abs());
    }
    let rms = (sum / heard.samples.len().max(1) as f64).sqrt();
    if heard.format.lossy || matches!(with.samples, Samples::Floats(_)) {
        if rms == 0.0 && !heard.format.lossy {
            return Ok(Nearness::Exact);
        }
        if rms < FULL_RMS && peak <= FULL_PEAK {
            return Ok(Nearness::Full);
        }
        if rms < LIMITED_RMS {
            return Ok(Nearness::Limited);
        }
    }
    let shift =
        shift(heard, with).map_or_else(String::new, |shift| format!("; its beginning is {shift} frames off"));
    Err(format!("the difference is {rms:.2e} rms, {peak:.2e} peak{shift}"))
}

/// A sample of full scale 1, rounded to the width that it is compared at.
fn ours(heard: &Heard, at: usize, bits: u16) -> f64 {
    let sample = heard.samples[at];
    let sample = match bits {
        32.. => f64::from(sample),
        _ => {
            let step = f64::from(1u32 << (32 - bits));
            // Rounded up to full scale, it is clipped as theirs is.
            ((f64::from(sample) / step).round() * step).min(f64::from(i32::MAX) + 1.0 - step)
        }
    };
    sample / 2_147_483_648.0
}

fn theirs(with: &Pcm, at: usize) -> f64 {
    match &with.samples {
        Samples::Integers(samples) => f64::from(samples[at]) / 2_147_483_648.0,
        Samples::Floats(samples) => f64::from(samples[at]).clamp(-1.0, 1.0),
    }
}

/// How many frames later (or, negative, earlier) than theirs our sound begins, if some number fits well and is not 0.
fn shift(heard: &Heard, with: &Pcm) -> Option<i64> {
    let channels = usize::from(heard.format.channels.max(1));
    let (ours_len, theirs_len) = (heard.samples.len() / channels, with.len() / channels);
    let room = ours_len.min(theirs_len).checked_sub(WINDOW + 2 * REACH)?;
    let from = REACH + room / 2;
    let window: Vec<f64> = (from..from + WINDOW).map(|frame| ours(heard, frame * channels, 32)).collect();
    let energy: f64 = window.iter().map(|sample| sample * sample).sum();
    let error = |shift: i64| {
        let begin = (from as i64 - shift) as usize;
        let pairs = window.iter().zip(begin..);
        pairs.map(|(sample, frame)| (sample - theirs(with, frame * channels)).powi(2)).sum::<f64>()
    };
    let best = (-(REACH as i64)..=REACH as i64).min_by(|&a, &b| error(a).total_cmp(&error(b)))?;
    (energy > 0.0 && best != 0 && error(best) < energy / 100.0).then_some(best)
}

#[cfg(test)]
mod tests {
    use segue::track::SourceFormat;

    use super::*;

    fn heard(samples: Vec<i32>, lossy: bool) -> Heard {
        Heard {
            codec: "test".to_owned(),
            format: SourceFormat { rate: 48_000, channels: 1, bits: 16, lossy },
            changed: false,
            frames: samples.len() as u64,
            samples,
            told: None,
            lost_packets: 0,
            failure: None,
            jump: None,
        }
    }

    fn noise() -> Vec<i32> {
        (0..20_000u32).map(|n| (n.wrapping_mul(n).wrapping_mul(2_654_435_761) as i32 >> 17) << 16).collect()
    }

    fn published(samples: Vec<i32>) -> Pcm {
        Pcm { shape: Some((48_000, 1)), bits: 16, samples: Samples::Integers(samples) }
    }

    #[test]
    fn one_wrong_bit_in_a_lossless_file_is_found() {
        let right = published(noise());
        assert_eq!(compare(&heard(noise(), false), &right), Ok(Nearness::Exact));
        let mut wrong = noise();
        wrong[777] ^= 1 << 16;
        assert!(compare(&heard(wrong, false), &right).is_err());
    }

    #[test]
    fn noise_above_the_standards_limits_is_found() {
        let right = published(noise());
        let with_noise = |step: i32| {
            let noisy = noise()
                .into_iter()
                .enumerate()
                .map(|(n, s)| s.saturating_add(if n % 2 == 0 { step } else { -step }));
            compare(&heard(noisy.collect(), true), &right)
        };
        assert_eq!(with_noise(1 << 14), Ok(Nearness::Full));
        assert_eq!(with_noise(1 << 17), Ok(Nearness::Limited));
        assert!(with_noise(1 << 20).is_err());
    }

    #[test]
    fn a_shifted_beginning_and_another_rate_are_found() {
        let right = published(noise());
        let mut late = noise();
        late.rotate_right(529);
        let told = compare(&heard(late.clone(), true), &right).unwrap_err();
        assert!(told.contains("529 frames off"), "{told}");
        late.pop();
        let told = compare(&heard(late, true), &right).unwrap_err();
        assert!(told.contains("19999 frames; expected 20000"), "{told}");
        let mut other = heard(noise(), true);
        other.format.rate = 24_000;
        assert!(compare(&other, &right).is_err());
    }
}
