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
    if with.shape.is_none() && is_part(heard, with) {
        let (rms, peak) = difference(heard, with, 0);
        if let Some(nearness) = nearness(heard, with, rms, peak) {
            return Ok(nearness);
        }
    }
    if heard.samples.len() != with.len() {
        let frames = with.len() / usize::from(channels.max(1));
        return Err(format!("{} frames; expected {frames}{}", heard.frames, rest(heard, with)));
    }
    if let Samples::Integers(samples) = &with.samples
        && *samples == heard.samples
    {
        return Ok(Nearness::Exact);
    }
    let (rms, peak) = difference(heard, with, 0);
    match nearness(heard, with, rms, peak) {
        Some(nearness) => Ok(nearness),
        None => Err(format!("the difference is {rms:.2e} rms, {peak:.2e} peak{}", rest(heard, with))),
    }
}

/// The samples of ISO/IEC 11172-4 are filled up to a multiple of 64 KiB, or lack the last frame.
fn is_part(heard: &Heard, with: &Pcm) -> bool {
    let padded = with.len().is_multiple_of(32 * 1024) && heard.samples.len() >= with.len() / 2;
    let frame = 1152 * usize::from(heard.format.channels);
    heard.samples.len() == with.len() + frame || (heard.samples.len() < with.len() && padded)
}

fn nearness(heard: &Heard, with: &Pcm, rms: f64, peak: f64) -> Option<Nearness> {
    if rms == 0.0 && !heard.format.lossy {
        return Some(Nearness::Exact);
    }
    if !heard.format.lossy && matches!(with.samples, Samples::Integers(_)) {
        return None;
    }
    match (rms < FULL_RMS && peak <= FULL_PEAK, rms < LIMITED_RMS) {
        (true, _) => Some(Nearness::Full),
        (_, true) => Some(Nearness::Limited),
        _ => None,
    }
}

/// Where both have sound, when ours begins `shift` frames later: root mean square and peak.
fn difference(heard: &Heard, with: &Pcm, shift: i64) -> (f64, f64) {
    let by = shift.unsigned_abs() as usize * usize::from(heard.format.channels);
    let (ours_from, theirs_from) = if shift > 0 { (by, 0) } else { (0, by) };
    let count = heard.samples.len().saturating_sub(ours_from).min(with.len().saturating_sub(theirs_from));
    let (mut sum, mut peak) = (0.0, 0f64);
    for at in 0..count {
        let difference = ours(heard, ours_from + at, with.bits) - theirs(with, theirs_from + at);
        sum += difference * difference;
        peak = peak.max(difference.abs());
    }
    ((sum / count.max(1) as f64).sqrt(), peak)
}

/// What can be said beyond "it is not the same": an end that is missing, a late beginning, channels in another order.
fn rest(heard: &Heard, with: &Pcm) -> String {
    let channels = usize::from(heard.format.channels.max(1));
    let same = |shift| {
        let (rms, peak) = difference(heard, with, shift);
        nearness(heard, with, rms, peak).is_some()
    };
    if heard.samples.len() != with.len() && same(0) {
        return "; the same as far as both go".to_owned();
    }
    if let Some(shift) = shift(heard, with) {
        let same = if same(shift) { ", the rest is the same" } else { "" };
        return format!("; its beginning is {shift} frames off{same}");
    }
    let order: Vec<usize> = (0..channels).map(|channel| nearest(heard, with, channel)).collect();
    if order.iter().enumerate().any(|(at, &channel)| at != channel) {
        return format!("; its channels are most like {order:?} of the expected");
    }
    String::new()
}

/// The channel of theirs that one of ours is most like.
fn nearest(heard: &Heard, with: &Pcm, channel: usize) -> usize {
    let channels = usize::from(heard.format.channels.max(1));
    let frames = heard.samples.len().min(with.len()) / channels;
    let error = |other: usize| {
        let frame =
            |at: usize| ours(heard, at * channels + channel, 32) - theirs(with, at * channels + other);
        (0..frames).map(|at| frame(at).powi(2)).sum::<f64>()
    };
    // Of two that are alike, its own.
    let order = (0..channels).map(|n| (channel + n) % channels);
    order.min_by(|&a, &b| error(a).total_cmp(&error(b))).unwrap_or(channel)
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
    fn swapped_channels_are_named() {
        let mut stereo = heard(noise(), true);
        stereo.format.channels = 2;
        stereo.frames /= 2;
        let swapped = noise().chunks_exact(2).flat_map(|frame| [frame[1], frame[0]]).collect();
        let told = compare(&stereo, &Pcm { shape: Some((48_000, 2)), ..published(swapped) }).unwrap_err();
        assert!(told.contains("most like [1, 0]"), "{told}");
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
