//! One track fades into the next, at equal power.

use std::f64::consts::FRAC_PI_2;
use std::time::Duration;

use super::settings::LONGEST_CROSSFADE;

/// The end of a track that is held back for its fade takes no more memory than this; at high rates with many channels
/// the fade is shorter for it. (12 s of 48 kHz stereo are 4.4 MiB.)
const MOST_BYTES: usize = 8 << 20;

/// How many frames at this rate, with these channels, a fade of this length has.
pub fn fade_frames(length: Duration, rate: u32, channels: u16) -> usize {
    let length = length.min(LONGEST_CROSSFADE);
    let frames = length.as_millis() as usize * rate as usize / 1000;
    frames.min(MOST_BYTES / size_of::<i32>() / usize::from(channels).max(1))
}

/// A fade from the end of one track, all of which is here, to the beginning of the next, which comes bit by bit.
///
/// Frame *n* of *N* is the sum of both, the one times cos(πx/2), the other times sin(πx/2), with x = (n + ½) / N. What
/// that brings above full scale is cut off there.
pub struct Crossfade {
    tail: Vec<i32>,
    channels: usize,
    /// Frames that are mixed.
    at: usize,
}

impl Crossfade {
    /// A fade as long as `tail`, in interleaved frames, is.
    pub fn new(tail: Vec<i32>, channels: u16) -> Crossfade {
        Crossfade { tail, channels: usize::from(channels).max(1), at: 0 }
    }

    /// In frames.
    pub fn length(&self) -> usize {
        self.tail.len() / self.channels
    }

    /// Nothing is left to be mixed.
    pub fn is_done(&self) -> bool {
        self.at >= self.length()
    }

    /// Mixes the next frames of the track that comes into the fade, in place, and returns how many there were to mix.
    pub fn mix(&mut self, incoming: &mut [i32]) -> usize {
        let frames = (incoming.len() / self.channels).min(self.length() - self.at);
        let tail = &self.tail[self.at * self.channels..];
        let both = incoming.chunks_exact_mut(self.channels).zip(tail.chunks_exact(self.channels));
        for (n, (incoming, outgoing)) in both.enumerate() {
            let (rise, fall) = gains(self.at + n, self.length());
            for (incoming, outgoing) in incoming.iter_mut().zip(outgoing) {
                // The cast saturates.
                *incoming = (f64::from(*incoming) * rise + f64::from(*outgoing) * fall).round() as i32;
            }
        }
        self.at += frames;
        frames
    }

    /// The track that comes is at its end already: appends what is left of the other one, fading out.
    pub fn finish(&mut self, out: &mut Vec<i32>) {
        let begin = out.len();
        out.resize(begin + (self.length() - self.at) * self.channels, 0);
        self.mix(&mut out[begin..]);
    }

    /// The end of the first track as it was.
    pub fn into_tail(self) -> Vec<i32> {
        self.tail
    }
}

/// What the samples of the track that comes, and of the one that goes, are multiplied by.
fn gains(frame: usize, length: usize) -> (f64, f64) {
    ((frame as f64 + 0.5) / length as f64 * FRAC_PI_2).sin_cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_follows_the_curve_however_the_next_track_arrives() {
        let (tail, next): (Vec<i32>, Vec<i32>) =
            (0..200).map(|n| (1_000_000_000 - n * 7_000_000, n * 9_000_000 - 900_000_000)).unzip();
        for piece in [1, 7, 100] {
            let mut fade = Crossfade::new(tail.clone(), 2);
            let mut out = next.clone();
            let mixed: usize = out.chunks_mut(piece * 2).map(|piece| fade.mix(piece)).sum();
            assert!(mixed == 100 && fade.is_done());
            for (n, &sample) in out.iter().enumerate() {
                let x = (f64::from(n as u32 / 2) + 0.5) / 100.0 * FRAC_PI_2;
                let sum = f64::from(tail[n]) * x.cos() + f64::from(next[n]) * x.sin();
                assert!((f64::from(sample) - sum).abs() <= 1.0, "frame {}", n / 2);
            }
            assert_eq!(fade.into_tail(), tail);
        }
    }

    #[test]
    fn a_next_track_that_ends_early_lets_the_first_fade_out_alone_and_nothing_wraps() {
        let mut fade = Crossfade::new(vec![i32::MAX; 10], 1);
        let mut out = vec![i32::MAX; 6];
        fade.mix(&mut out);
        assert!(out.iter().all(|&sample| sample == i32::MAX), "more than full scale is full scale");
        fade.finish(&mut out);
        assert_eq!(out.len(), 10);
        assert!(out[6..].is_sorted_by(|a, b| a > b) && out[9] > 0);
    }

    #[test]
    fn what_is_held_back_has_a_cap() {
        let seconds = Duration::from_secs;
        assert_eq!(fade_frames(seconds(12), 48_000, 2), 576_000);
        assert_eq!(fade_frames(seconds(99), 48_000, 2), 576_000);
        assert_eq!(fade_frames(seconds(12), 384_000, 8), 262_144);
    }
}
