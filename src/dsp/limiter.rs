//! Keeps raised samples below full scale, without distorting what stays below it anyway.
//!
//! It looks ahead: the gain is already down when a peak comes, and goes down and up slowly. What is held back for
//! that comes out at the end, so that not a frame is added or lost.

use std::collections::VecDeque;

/// No sample is louder.
const CEILING: f32 = 0.9999;
/// How far it looks ahead, in which time the gain goes down.
const LOOK_AHEAD_MS: usize = 4;
/// In this time the gain comes up by two thirds of what it is down.
const RELEASE_MS: f64 = 120.0;
/// So near to 1 a gain is 1: the last of a release, which would never end, is 120 dB below the sound.
const ALMOST: f64 = 1.0 - 1e-6;

/// A look-ahead peak limiter for interleaved floats; one gain for all channels, so that the image stands still.
pub(super) struct Limiter {
    channels: usize,
    look_ahead: usize,
    /// Of what the gain is down, in a frame.
    release: f64,
    /// Frames that are held back.
    held: VecDeque<f32>,
    /// The least gain that the frames ahead allow: (number of the frame, gain), falling from back to front.
    least: VecDeque<(u64, f64)>,
    /// The last gains, over which the mean is taken.
    envelope: VecDeque<f64>,
    sum: f64,
    frame: u64,
    gain: f64,
    /// Frames for which the gain has been 1, up to as many as are looked ahead: then nothing is under way.
    steady: usize,
}

impl Limiter {
    pub(super) fn new(rate: u32, channels: usize) -> Limiter {
        let look_ahead = (rate as usize * LOOK_AHEAD_MS / 1000).max(1);
        Limiter {
            channels,
            look_ahead,
            release: 1.0 - (-1000.0 / (RELEASE_MS * f64::from(rate))).exp(),
            held: VecDeque::with_capacity((look_ahead + 1) * channels),
            least: VecDeque::with_capacity(look_ahead + 1),
            envelope: VecDeque::from(vec![1.0; look_ahead]),
            sum: look_ahead as f64,
            frame: 0,
            gain: 1.0,
            steady: look_ahead,
        }
    }

    /// Frames that are held back.
    pub(super) fn held(&self) -> usize {
        self.held.len() / self.channels
    }

    /// Takes frames and appends those that are ready.
    pub(super) fn process(&mut self, input: &[f32], out: &mut Vec<f32>) {
        let mut input = input;
        if self.steady >= self.look_ahead {
            let quiet = self.quiet(input);
            self.pass(&input[..quiet], out);
            input = &input[quiet..];
        }
        for frame in input.chunks_exact(self.channels) {
            self.held.extend(frame);
            let peak = frame.iter().fold(0f32, |peak, sample| peak.max(sample.abs()));
            self.step(peak, out);
        }
    }

    /// How many samples come before the first frame that is too loud.
    fn quiet(&self, input: &[f32]) -> usize {
        let loud = input.iter().position(|sample| sample.abs() > CEILING);
        let frames = loud.unwrap_or(input.len()) / self.channels;
        frames * self.channels
    }

    /// Frames of which none is too loud, while nothing is under way: they only wait their turn.
    fn pass(&mut self, input: &[f32], out: &mut Vec<f32>) {
        self.held.extend(input);
        let ready = self.held.len().saturating_sub(self.look_ahead * self.channels);
        out.extend(self.held.drain(..ready));
        self.frame += (input.len() / self.channels) as u64;
        self.least.clear();
        // What adding and taking away a million times left behind.
        self.sum = self.look_ahead as f64;
    }

    /// Appends what is held back.
    pub(super) fn flush(&mut self, out: &mut Vec<f32>) {
        while !self.held.is_empty() {
            self.step_with(1.0, true, out);
        }
    }

    fn step(&mut self, peak: f32, out: &mut Vec<f32>) {
        let allowed = if peak > CEILING { f64::from(CEILING / peak) } else { 1.0 };
        self.step_with(allowed, false, out);
    }

    fn step_with(&mut self, allowed: f64, ends: bool, out: &mut Vec<f32>) {
        // The least of what this frame and those behind it, as many as are looked ahead, allow.
        while self.least.back().is_some_and(|(_, gain)| *gain >= allowed) {
            self.least.pop_back();
        }
        self.least.push_back((self.frame, allowed));
        while self.least.front().is_some_and(|(frame, _)| frame + (self.look_ahead as u64) < self.frame) {
            self.least.pop_front();
        }
        self.frame += 1;
        let least = self.least.front().map_or(1.0, |(_, gain)| *gain);
        self.gain = least.min(self.gain + (1.0 - self.gain) * self.release);
        if self.gain > ALMOST {
            self.gain = 1.0;
        }
        self.steady = if self.gain == 1.0 { (self.steady + 1).min(self.look_ahead) } else { 0 };
        // The mean of gains, none of which is above what the oldest held frame allows, is not above it either.
        let oldest = self.envelope.pop_front().unwrap_or(1.0);
        self.envelope.push_back(self.gain);
        self.sum += self.gain - oldest;
        if self.held.len() > self.look_ahead * self.channels || ends {
            let gain = (self.sum / self.look_ahead as f64).min(1.0) as f32;
            out.extend(self.held.drain(..self.channels).map(|sample| sample * gain));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(input: &[f32], channels: usize) -> Vec<f32> {
        let (mut limiter, mut out) = (Limiter::new(48_000, channels), Vec::new());
        for piece in input.chunks(channels * 37) {
            limiter.process(piece, &mut out);
        }
        limiter.flush(&mut out);
        out
    }

    #[test]
    fn what_is_below_full_scale_passes_unchanged() {
        let quiet: Vec<f32> = (0..10_000).map(|n| (n as f32 * 0.01).sin() * 0.99).collect();
        assert_eq!(limit(&quiet, 2), quiet);
    }

    #[test]
    fn waiting_their_turn_is_no_different_from_being_looked_at() {
        let loud = |n: usize| n % 9_000 < 20 || (20_000..26_000).contains(&n);
        let input: Vec<f32> =
            (0..60_000).map(|n| (n as f32 * 0.3).sin() * if loud(n) { 1.7 } else { 0.9 }).collect();
        let (mut one, mut out) = (Limiter::new(2_000, 2), Vec::new());
        for frame in input.chunks(2) {
            one.process(frame, &mut out);
            // As if something were always under way.
            one.steady = 0;
        }
        one.flush(&mut out);
        let (mut other, mut quick) = (Limiter::new(2_000, 2), Vec::new());
        let mut rested = 0;
        for piece in input.chunks(74) {
            rested += usize::from(other.steady >= other.look_ahead);
            other.process(piece, &mut quick);
        }
        other.flush(&mut quick);
        assert!(rested > 100, "it came to rest {rested} times");
        assert_eq!(out.len(), quick.len());
        assert!(out.iter().zip(&quick).all(|(a, b)| (a - b).abs() < 1e-6));
    }

    #[test]
    fn no_peak_is_above_full_scale_and_none_is_moved() {
        let mut noise = 1u32;
        let mut loud: Vec<f32> = (0..48_000)
            .map(|n| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let burst = if n / 4_000 % 3 == 1 { 3.0 } else { 0.4 };
                (noise >> 8) as f32 / (1 << 23) as f32 * burst - burst
            })
            .collect();
        loud[0] = 5.0;
        *loud.last_mut().unwrap() = -7.0;
        let out = limit(&loud, 2);
        assert_eq!(out.len(), loud.len());
        let peak = out.iter().fold(0f32, |peak, sample| peak.max(sample.abs()));
        assert!(peak <= 1.0, "{peak}");
        assert!(out.iter().zip(&loud).all(|(out, loud)| out * loud >= 0.0 && out.abs() <= loud.abs()));
    }

    #[test]
    fn a_peak_turns_the_sound_down_before_it_comes_and_lets_it_up_again() {
        let mut input = vec![0.5f32; 48_000];
        input[10_000] = 2.0;
        let out = limit(&input, 1);
        assert_eq!(out[9_000], 0.5, "nothing is ahead");
        assert!(out[9_990] < 0.3, "{}", out[9_990]);
        assert!(out[10_500] < out[20_000]);
        assert!(out[47_000] > 0.499);
        // Slowly: no step from one frame to the next, but for the peak itself.
        let steps = out.windows(2).map(|w| (w[1] - w[0]).abs());
        let largest = steps.enumerate().filter(|(n, _)| !(9_999..=10_000).contains(n));
        assert!(largest.map(|(_, step)| step).fold(0.0, f32::max) < 0.005);
    }
}
