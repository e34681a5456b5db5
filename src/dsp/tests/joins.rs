//! One track behind the other through the same chain.

use super::measure::*;
use crate::decode::tests::fixture::*;
use crate::dsp::Chain;
use crate::track::SourceFormat;

fn chain(from: u32, to: u32) -> Chain {
    Chain::new(SourceFormat { rate: from, channels: 2, bits: 32, lossy: false }, to, 2, false).unwrap()
}

/// Reproducible noise of 32 bits, as loud as can be.
fn noise(frames: usize, mut seed: u32) -> Vec<i32> {
    (0..frames * 2)
        .map(|_| {
            seed ^= seed << 13;
            seed ^= seed >> 17;
            seed ^= seed << 5;
            seed as i32
        })
        .collect()
}

fn feed(chain: &mut Chain, samples: &[i32], out: &mut Vec<i32>) {
    for piece in samples.chunks(2 * 1151) {
        chain.process(piece, out);
    }
}

#[test]
fn a_recording_cut_in_two_is_resampled_as_one() {
    for (from, to) in [(44_100, 48_000), (48_000, 44_100), (96_000, 44_100)] {
        let whole = Pcm::music(from, 2, 24, 100_003).samples;
        let mut wanted = Vec::new();
        let mut one = chain(from, to);
        feed(&mut one, &whole, &mut wanted);
        one.flush(&mut wanted);
        for cut in [1, 2, 777, 50_001, 99_990] {
            let (first, second) = whole.split_at(2 * cut);
            let (mut joined, mut out) = (chain(from, to), Vec::new());
            feed(&mut joined, first, &mut out);
            let begins = out.len() as u64 / 2 + joined.held();
            assert_eq!(begins, (cut as u64 * u64::from(to) + u64::from(from) / 2) / u64::from(from));
            feed(&mut joined, second, &mut out);
            joined.flush(&mut out);
            assert!(out == wanted, "{from} to {to}, cut at {cut}");
        }
        // With the rest given out in between, the seam is seen.
        let (first, second) = whole.split_at(2 * 50_001);
        let (mut seamed, mut out) = (chain(from, to), Vec::new());
        feed(&mut seamed, first, &mut out);
        seamed.flush(&mut out);
        feed(&mut seamed, second, &mut out);
        seamed.flush(&mut out);
        assert!(difference_db(&out, &wanted) > -90.0, "{}", difference_db(&out, &wanted));
    }
}

#[test]
fn a_track_s_gain_begins_and_ends_with_its_very_frame() {
    let (loud, plain) = (noise(5003, 1), noise(5003, 2));
    let quiet: Vec<i32> = loud.iter().map(|sample| sample / 4).collect();
    for (track, factor) in [(&loud, 0.5), (&quiet, 2.0)] {
        let (mut chain, mut out) = (chain(44_100, 44_100), Vec::new());
        chain.set_gain(factor);
        feed(&mut chain, track, &mut out);
        let begins = out.len() / 2 + chain.held() as usize;
        assert_eq!(begins, 5003);
        chain.set_gain(1.0);
        feed(&mut chain, &plain, &mut out);
        assert!(chain.is_identity(), "nothing is left to be done");
        chain.flush(&mut out);
        // A gain that needs no limiter keeps all 32 bits.
        let off = if factor > 1.0 { 256.0 } else { 0.5 };
        let mut pairs = out[..2 * 5003].iter().zip(track);
        let exact = |whole: &i32| f64::from(*whole) * f64::from(factor);
        assert!(pairs.all(|(out, whole)| (f64::from(*out) - exact(whole)).abs() <= off));
        assert!(out[2 * 5003..] == plain, "bit for bit from the first frame on, behind {factor}");
    }
}

#[test]
fn what_is_made_louder_is_never_above_full_scale() {
    let hot = |frames: usize| -> Vec<i32> {
        // Full scale on and off at a frequency that hits every place between two frames.
        let wave = |n: usize| if (n as f64 * 0.0937).sin() >= 0.0 { i32::MAX } else { i32::MIN };
        (0..frames).flat_map(|n| [wave(n), wave(n + 7)]).collect()
    };
    let tracks = [noise(20_000, 3), hot(20_011), noise(300, 4), vec![i32::MAX; 2 * 9000], hot(20_000)];
    let ceiling = (0.99995 * FULL) as i64;
    for to in [44_100, 48_000, 88_200] {
        let (mut chain, mut out) = (chain(44_100, to), Vec::new());
        let mut frames = 0;
        for (track, gain) in tracks.iter().zip([4.0, 1.3, 8.0, 2.0, 3.0]) {
            chain.set_gain(gain);
            feed(&mut chain, track, &mut out);
            frames += track.len() as u64 / 2;
            let begins = out.len() as u64 / 2 + chain.held();
            assert_eq!(begins, (frames * u64::from(to) + 22_050) / 44_100, "to {to} Hz");
        }
        chain.flush(&mut out);
        let peak = out.iter().map(|sample| i64::from(*sample).abs()).max().unwrap();
        assert!(peak <= ceiling, "to {to} Hz: {:.6}", peak as f64 / FULL);
        assert!(peak > ceiling / 10 * 9, "it is limited, not turned down");
        assert_eq!(out.len() as u64 / 2, (frames * u64::from(to) + 22_050) / 44_100);
    }
    // The meter sees what is not limited.
    assert!(tracks[0].iter().map(|sample| i64::from(*sample).abs()).max().unwrap() > ceiling);
}

/// A tag says how loud the samples are, but what lies between two of them may be louder.
#[test]
fn a_known_peak_is_kept_below_full_scale_at_another_rate_too() {
    // At a quarter of the rate and between the crests: 3 dB louder than its samples.
    let wave: Vec<f64> = (0..30_000).map(|n| (0.25 * n as f64 + 0.125) * std::f64::consts::TAU).collect();
    let wave: Vec<i32> = wave.iter().flat_map(|p| [(p.sin() * 0.6 * FULL) as i32; 2]).collect();
    let (mut chain, mut out) = (chain(44_100, 48_000), Vec::new());
    chain.set_gain(2.35);
    feed(&mut chain, &wave, &mut out);
    chain.flush(&mut out);
    let left = channel(&out, 2, 0);
    let sine = Sine::of(&left[10_000..20_000], 48_000, 11_025.0);
    assert!(left.iter().all(|sample| sample.abs() < 0.99995));
    assert!(sine.thd_n_db() < -60.0, "clipping would be heard: {:.1} dB", sine.thd_n_db());
}

#[test]
fn a_change_while_music_plays_comes_in_over_20_ms_without_a_step() {
    let sound: Vec<i32> = to_ints(&tone(48_000, 1000.0, 0.4, 24_000)).iter().flat_map(|s| [*s; 2]).collect();
    let far_from_it = |out: &[i32]| {
        let powers = spectrum(&channel(out, 2, 0)[10_000..14_096], 4096);
        10.0 * powers[4 * 4096 / 48..].iter().sum::<f64>().log10()
    };
    let change = |slowly: bool| {
        let (mut chain, mut out) = (chain(48_000, 48_000), Vec::new());
        chain.process(&sound[..24_000], &mut out);
        if slowly {
            chain.ramp_gain(2.0)
        } else {
            chain.set_gain(2.0)
        }
        feed(&mut chain, &sound[24_000..], &mut out);
        chain.flush(&mut out);
        assert_eq!(out.len(), sound.len());
        assert!(out[..24_000] == sound[..24_000], "not one frame before");
        let after = (out[25_920 + 10], sound[25_920 + 10]);
        assert!((i64::from(after.0) - 2 * i64::from(after.1)).abs() < 1024, "all of it after 20 ms");
        out
    };
    let (slow, quick) = (far_from_it(&change(true)), far_from_it(&change(false)));
    eprintln!("above 4 kHz: {slow:.1} dB with a ramp, {quick:.1} dB with a step");
    assert!(slow < -85.0 && quick > -70.0);
}

#[test]
fn off_again_while_music_plays_ends_in_exactness() {
    let sound = noise(150_000, 5);
    let quiet: Vec<i32> = sound.iter().map(|sample| sample / 2).collect();
    let (mut chain, mut out) = (chain(48_000, 48_000), Vec::new());
    chain.set_gain(3.0);
    chain.process(&quiet[..20_000], &mut out);
    chain.ramp_gain(1.0);
    assert_eq!(chain.until_steady(), 960);
    feed(&mut chain, &quiet[20_000..], &mut out);
    assert!(chain.is_identity());
    chain.flush(&mut out);
    assert_eq!(out.len(), quiet.len());
    assert!(out[200_000..] == quiet[200_000..]);
}

/// Switched back before it is through: it turns from where it is.
#[test]
fn mono_comes_and_goes_without_a_step() {
    let left = tone(48_000, 200.0, 0.8, 12_000);
    let sound: Vec<i32> = to_ints(&left).iter().flat_map(|sample| [*sample, 0]).collect();
    let (mut chain, mut out) = (chain(48_000, 48_000), Vec::new());
    for (frames, mono) in [(3000, true), (500, false), (300, true), (3000, false), (5200, false)] {
        let from = out.len();
        chain.process(&sound[from..from + 2 * frames], &mut out);
        chain.set_mono(mono);
    }
    assert_eq!(out.len(), sound.len());
    assert!(out[..6000] == sound[..6000]);
    assert!(out[20_000..] == sound[20_000..], "each ear has its own again, bit for bit");
    for ear in 0..2 {
        let steps =
            channel(&out, 2, ear).windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f64::max);
        // The tone's own steepness, and the little that the ramp adds.
        assert!(steps < 0.8 * std::f64::consts::TAU * 200.0 / 48_000.0 + 0.001, "{steps}");
    }
}
