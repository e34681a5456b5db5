//! Software volume, mute and fades, in whole numbers.
//!
//! A gain is a fraction of 2^30. At exactly 1.0 with no ramp under way the samples are not touched at all.

/// 1.0.
const UNITY: i64 = 1 << 30;
/// How long a change of volume takes. Short enough to feel immediate, long enough not to click.
const VOLUME_RAMP_MS: u64 = 20;
/// How long the sound takes to come in after a cut, a pause or a lost device.
pub(super) const FADE_IN_MS: u64 = 5;

/// A gain on its way from one value to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ramp {
    from: i64,
    to: i64,
    done: u64,
    length: u64,
}

impl Ramp {
    fn still(at: i64) -> Ramp {
        Ramp { from: at, to: at, done: 0, length: 0 }
    }

    fn now(&self) -> i64 {
        if self.done >= self.length {
            return self.to;
        }
        self.from + (self.to - self.from) * self.done as i64 / self.length as i64
    }

    fn towards(&mut self, to: i64, length: u64) {
        *self = Ramp { from: self.now(), to, done: 0, length };
    }

    fn is_unity(&self) -> bool {
        self.to == UNITY && self.done >= self.length
    }
}

/// All that scales samples on their way to the card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gain {
    volume: Ramp,
    fade: Ramp,
    rate: u64,
}

impl Gain {
    pub fn new(rate: u32, volume: f32) -> Gain {
        Gain { volume: Ramp::still(fixed(volume)), fade: Ramp::still(UNITY), rate: u64::from(rate) }
    }

    /// Keeps the volume for a card at another rate.
    pub fn set_rate(&mut self, rate: u32) {
        self.rate = u64::from(rate);
    }

    /// Goes to `volume` (0.0 to 1.0) by a ramp, or at once where nothing sounds.
    pub fn set_volume(&mut self, volume: f32, at_once: bool) {
        let to = fixed(volume);
        if at_once {
            self.volume = Ramp::still(to);
        } else if self.volume.to != to {
            self.volume.towards(to, self.rate * VOLUME_RAMP_MS / 1000);
        }
    }

    /// The next frames come in from silence.
    pub fn fade_in(&mut self) {
        self.fade = Ramp { from: 0, to: UNITY, done: 0, length: self.rate * FADE_IN_MS / 1000 };
    }

    /// The next frames go out to silence within `frames`.
    pub fn fade_out(&mut self, frames: u64) {
        self.fade = Ramp { from: UNITY, to: 0, done: 0, length: frames };
    }

    /// True where samples pass untouched.
    pub fn is_unity(&self) -> bool {
        self.volume.is_unity() && self.fade.is_unity()
    }

    /// Frames until no ramp is under way. No more are scaled at once, so that exactness begins with the very frame
    /// at which a ramp ends.
    pub fn until_steady(&self) -> Option<u64> {
        let left = |ramp: &Ramp| ramp.length.saturating_sub(ramp.done);
        let frames = left(&self.volume).max(left(&self.fade));
        (frames > 0).then_some(frames)
    }

    /// Goes on by `frames` without scaling any: `apply` on a copy, then this for what the card took.
    pub fn advance(&mut self, frames: u64) {
        self.volume.done = (self.volume.done + frames).min(self.volume.length);
        self.fade.done = (self.fade.done + frames).min(self.fade.length);
    }

    /// Scales whole frames in place.
    pub fn apply(mut self, samples: &mut [i32], channels: usize) {
        if self.is_unity() {
            return;
        }
        for frame in samples.chunks_exact_mut(channels.max(1)) {
            let gain = (self.volume.now() * self.fade.now()) >> 30;
            if gain != UNITY {
                for sample in frame {
                    *sample = ((i64::from(*sample) * gain + (UNITY / 2)) >> 30) as i32;
                }
            }
            self.advance(1);
        }
    }
}

fn fixed(volume: f32) -> i64 {
    // NaN becomes 0: silence is the safe reading of nonsense.
    (f64::from(volume.clamp(0.0, 1.0)) * UNITY as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_volume_leaves_every_sample_as_it_is() {
        let mut samples = [i32::MIN, i32::MAX, -1, 1, 0, 12_345];
        let before = samples;
        Gain::new(44_100, 1.0).apply(&mut samples, 2);
        assert_eq!(samples, before);
    }

    #[test]
    fn a_change_of_volume_ramps_over_20_ms_and_arrives() {
        let mut gain = Gain::new(1000, 1.0);
        gain.set_volume(0.5, false);
        let mut samples = [1 << 30; 40];
        gain.apply(&mut samples, 1);
        assert_eq!(samples[0], 1 << 30);
        assert!(samples.windows(2).all(|w| w[1] <= w[0]));
        assert_eq!(samples[20], 1 << 29);
        assert_eq!(samples[39], 1 << 29);
    }

    #[test]
    fn coming_back_to_full_volume_is_exact_again() {
        let mut gain = Gain::new(1000, 0.3);
        gain.set_volume(1.0, false);
        assert!(!gain.is_unity());
        gain.advance(20);
        assert!(gain.is_unity());
    }

    #[test]
    fn a_fade_in_touches_five_milliseconds_only() {
        let mut gain = Gain::new(1000, 1.0);
        gain.fade_in();
        let mut samples = [1000; 10];
        gain.apply(&mut samples, 1);
        assert_eq!(samples, [0, 200, 400, 600, 800, 1000, 1000, 1000, 1000, 1000]);
    }

    #[test]
    fn splitting_the_frames_differently_gives_the_same_sound() {
        let mut whole = [70_000; 64];
        let mut parts = whole;
        let mut gain = Gain::new(1000, 1.0);
        gain.set_volume(0.2, false);
        gain.fade_in();
        gain.apply(&mut whole, 2);
        for part in parts.chunks_mut(6) {
            gain.apply(part, 2);
            gain.advance(3);
        }
        assert_eq!(whole, parts);
    }

    #[test]
    fn nonsense_is_silence() {
        let mut samples = [5000; 2];
        Gain::new(1000, f32::NAN).apply(&mut samples, 1);
        assert_eq!(samples, [0, 0]);
    }
}
