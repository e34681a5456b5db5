//! Rates and channels.

use crate::decode::tests::fixture::*;
use crate::dsp::Chain;
use crate::track::SourceFormat;

fn format(rate: u32, channels: u16) -> SourceFormat {
    SourceFormat { rate, channels, bits: 16, lossy: false }
}

/// Converts in pieces of odd sizes.
fn convert(chain: &mut Chain, input: &[i32], channels: usize) -> Vec<i32> {
    let mut out = Vec::new();
    for piece in input.chunks(channels * 777) {
        chain.process(piece, &mut out);
    }
    chain.flush(&mut out);
    out
}

#[test]
fn what_need_not_change_is_copied() {
    let pcm = Pcm::music(44_100, 2, 24, 10_000);
    let mut chain = Chain::new(format(44_100, 2), 44_100, 2, false).unwrap();
    assert!(chain.is_identity());
    assert!(convert(&mut chain, &pcm.samples, 2) == pcm.samples);
}

#[test]
fn mono_is_doubled_exactly() {
    let pcm = Pcm::music(44_100, 1, 24, 10_000);
    let mut chain = Chain::new(format(44_100, 1), 44_100, 2, false).unwrap();
    assert!(!chain.is_identity());
    let doubled: Vec<i32> = pcm.samples.iter().flat_map(|&s| [s, s]).collect();
    assert!(convert(&mut chain, &pcm.samples, 1) == doubled);
}

#[test]
fn stereo_to_mono_is_the_mean() {
    let mut chain = Chain::new(format(44_100, 2), 44_100, 1, false).unwrap();
    let mono = convert(&mut chain, &[1 << 30, 1 << 28, i32::MAX, i32::MAX, -(1 << 30), 1 << 30], 2);
    assert_eq!(mono, [(1 << 29) + (1 << 27), i32::MAX, 0]);
}

#[test]
fn surround_to_stereo_never_clips() {
    let mut chain = Chain::new(format(48_000, 6), 48_000, 2, false).unwrap();
    let out = convert(&mut chain, &[i32::MIN; 6], 6);
    assert!(out.iter().all(|&s| s < i32::MIN / 100 * 99), "{out:?}");
    // The centre is in both, 3 dB below the left, and the LFE in none.
    let centre = convert(&mut chain, &[0, 0, 1 << 30, 0, 0, 0], 6);
    let left = convert(&mut chain, &[1 << 30, 0, 0, 0, 0, 0], 6);
    assert_eq!(centre[0], centre[1]);
    assert_eq!(left[1], 0);
    let ratio = f64::from(centre[0]) / f64::from(left[0]);
    assert!((ratio - 0.5f64.sqrt()).abs() < 1e-6, "{ratio}");
    assert_eq!(convert(&mut chain, &[0, 0, 0, 1 << 30, 0, 0], 6), [0, 0]);
}

#[test]
fn a_resampled_recording_keeps_its_length_and_its_place() {
    for (from, to) in
        [(44_100, 48_000), (44_099, 48_000), (192_000, 48_000), (22_050, 96_000), (8_000, 48_000)]
    {
        let frames = from as usize * 2 + 131;
        let pcm = Pcm::music(from, 2, 24, frames);
        let want = Pcm::music(to, 2, 24, (frames as u64 * u64::from(to)).div_ceil(u64::from(from)) as usize);
        let mut chain = Chain::new(format(from, 2), to, 2, false).unwrap();
        for pass in 0..2 {
            let got = convert(&mut chain, &pcm.samples, 2);
            let due = (frames as f64 * f64::from(to) / f64::from(from)).round() as usize;
            assert_eq!(got.len() / 2, due, "{from} to {to}, pass {pass}");
            assert_alike(&want.samples, &got, 2, 0.999, &format!("{from} to {to}"));
        }
    }
}

#[test]
fn a_resampled_tone_is_clean() {
    let tone = |rate: f64, n: usize| 0.5 * (std::f64::consts::TAU * 997.0 * n as f64 / rate).sin();
    let input: Vec<i32> = (0..44_100).map(|n| (tone(44_100.0, n) * 2f64.powi(31)) as i32).collect();
    let want: Vec<i32> = (0..48_000).map(|n| (tone(48_000.0, n) * 2f64.powi(31)) as i32).collect();
    let mut chain = Chain::new(format(44_100, 1), 48_000, 1, false).unwrap();
    let got = convert(&mut chain, &input, 1);
    // Away from the ends, where the tone starts and stops at once.
    let error = difference_db(&want[5000..43_000], &got[5000..43_000]);
    assert!(error < -110.0, "{error:.1} dB");
}

#[test]
fn mono_is_resampled_and_doubled() {
    let pcm = Pcm::music(44_100, 1, 16, 44_100);
    let mut chain = Chain::new(format(44_100, 1), 48_000, 2, false).unwrap();
    let out = convert(&mut chain, &pcm.samples, 1);
    assert_eq!(out.len(), 96_000);
    assert!(out.chunks(2).all(|frame| frame[0] == frame[1]));
}

#[test]
fn nonsense_is_refused() {
    let absurd = format(767_999, 2);
    for (from, to) in [
        (format(0, 2), (48_000, 2)),
        (format(44_100, 0), (48_000, 2)),
        (format(44_100, 2), (0, 2)),
        (absurd, (48_000, 2)),
    ] {
        assert!(Chain::new(from, to.0, to.1, false).is_err());
    }
}
