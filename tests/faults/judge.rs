//! Goes through what was heard, frame by frame.

use crate::signal::{Heard, read};

/// Sound comes back over 5 ms.
const FADE: u32 = 48_000 / 1000 * 5;
/// So many frames of silence follow only what was heard to its end.
const LONG: u32 = 480;
/// A gain that stays for so many frames is a volume, not a ramp.
const STEADY: u32 = 100;

/// What may be heard.
pub struct Expected<'a> {
    pub frames: u32,
    /// Frames that may be heard twice after a lost device.
    pub period: u32,
    /// Where sound was asked to go on, in their order.
    pub seeks: &'a [u32],
    /// All volumes that were set.
    pub volumes: &'a [f64],
    /// Times that the player was too late, and the sound had ended before it went on elsewhere.
    pub starved: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Times that sound came back after a cut.
    pub returns: u32,
    pub seeks: u32,
    /// Frames that were heard twice.
    pub repeated: u32,
}

/// One recording of the card.
pub struct Session {
    pub channels: usize,
    pub samples: Vec<i32>,
}

struct Judge<'a> {
    expected: &'a Expected<'a>,
    seeks: std::slice::Iter<'a, u32>,
    verdict: Verdict,
    due: u32,
    dim: u32,
    gain: f64,
    steady: u32,
    silent: bool,
    /// Frames of silence since the last sound.
    silence: u32,
    /// Ends of the sound, for want of more, that are still to be found.
    starved: u32,
}

/// Whether all that was expected was heard, and nothing else.
pub fn judge(sessions: &[Session], expected: &Expected) -> Result<Verdict, String> {
    let mut judge = Judge {
        expected,
        seeks: expected.seeks.iter(),
        verdict: Verdict::default(),
        due: 0,
        dim: 0,
        gain: 0.0,
        steady: 0,
        silent: true,
        silence: 0,
        starved: expected.starved,
    };
    for (number, session) in sessions.iter().enumerate() {
        for (at, samples) in session.samples.chunks_exact(session.channels).enumerate() {
            let told = |what: String| format!("at frame {at} of session {number}: {what}");
            if samples[2..].iter().any(|sample| *sample != 0) {
                return Err(told("sound on a channel without music".into()));
            }
            judge.hear(read(samples).map_err(told)?).map_err(told)?;
        }
        judge.silent = true;
    }
    match judge {
        Judge { due, .. } if due != expected.frames => {
            Err(format!("it ends at {due} of {}", expected.frames))
        }
        judge => Ok(judge.verdict),
    }
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-5
}

impl Judge<'_> {
    fn hear(&mut self, heard: Heard) -> Result<(), String> {
        match heard {
            Heard::Silence => {
                self.silent = true;
                self.silence += 1;
                Ok(())
            }
            Heard::Dim => {
                self.dim += 1;
                Ok(())
            }
            Heard::Frame { number, gain } => {
                if number == self.due && !self.silent {
                    self.ramp(gain)?;
                } else {
                    self.start(number, gain)?;
                }
                (self.due, self.dim, self.gain) = (number + 1, 0, gain);
                (self.silent, self.silence) = (false, 0);
                Ok(())
            }
        }
    }

    /// Within the sound, its volume changes by ramps only, and stays at what was set.
    fn ramp(&mut self, gain: f64) -> Result<(), String> {
        let step = (gain - self.gain).abs();
        if step > 1.05 / f64::from(FADE) {
            return Err(format!("the volume jumps from {} to {gain} at {}", self.gain, self.due));
        }
        self.steady = if step < 1e-6 { self.steady + 1 } else { 0 };
        if self.steady > STEADY && !self.expected.volumes.iter().any(|volume| same(*volume, gain)) {
            return Err(format!("at {} the volume is {gain}, which nobody asked for", self.due));
        }
        Ok(())
    }

    /// After silence, or in the middle of it.
    fn start(&mut self, number: u32, gain: f64) -> Result<(), String> {
        self.steady = 0;
        // The first frames of a fade cannot be read; the very first has no sound at all, but for dither.
        let fades = gain <= f64::from(self.dim + 2) / f64::from(FADE);
        let late = number.saturating_sub(self.dim);
        let early = late.saturating_sub(u32::from(fades));
        let begins = self.due == 0 && number == 0;
        if !begins && (early..=late).contains(&self.due) {
            self.verdict.returns += u32::from(fades);
            return Ok(());
        }
        if begins {
            return Ok(());
        }
        // Only a seek leads forth; those that were overtaken by the next were never heard.
        let mut rest = self.seeks.clone();
        if rest.any(|target| (early..=late).contains(target)) {
            self.seeks = rest;
            self.verdict.seeks += 1;
        } else if early > self.due {
            return Err(format!("{} frames were skipped at {}", early - self.due, self.due));
        } else if self.due - early > self.expected.period + 1 {
            return Err(format!(
                "{} frames were heard twice at {}; a period has {}",
                self.due - early,
                self.due,
                self.expected.period
            ));
        } else {
            self.verdict.repeated += self.due - early;
        }
        // What begins in silence, with nothing cut off, needs no fade.
        let from_silence = self.due == 0 || self.due == self.expected.frames || self.silence > LONG;
        if !fades && number != 0 && !from_silence {
            // A card that stood still since its last frame recorded hardly any of the silence.
            if self.starved > 0 && self.silent {
                self.starved -= 1;
                self.verdict.returns += 1;
                return Ok(());
            }
            return Err(format!("a return to {number} after {} did not fade in", self.due));
        }
        self.verdict.returns += 1;
        Ok(())
    }
}
