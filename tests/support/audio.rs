//! Recordings: made of numbers, the same at each run.

use std::ops::Range;

/// Sound as left-justified 32-bit samples, interleaved.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Frames per second.
    pub rate: u32,
    /// Samples per frame.
    pub channels: usize,
    /// Bits per sample that may differ from 0: 8 to 32.
    pub bits: u32,
    /// The samples.
    pub samples: Vec<i32>,
}

impl Recording {
    /// Stereo that resembles music: notes with an attack and a decay that differ left and right, over a little noise.
    /// No frame is silent, so that silence around it is recognised.
    pub fn music(seed: u64, rate: u32, bits: u32, seconds: f64) -> Recording {
        let frames = (f64::from(rate) * seconds).round() as usize;
        let mut mix = vec![0f64; frames * 2];
        let mut random = Random::new(seed);
        let notes = (seconds * 6.0).ceil() as usize + 2;
        for note in 0..notes {
            let start = note * frames / notes;
            let pitch = 110.0 * 2f64.powf(f64::from(random.below(36)) / 12.0);
            let pan = 0.2 + 0.6 * random.unit();
            let length = ((0.3 + random.unit()) * f64::from(rate)) as usize;
            for at in start..(start + length).min(frames) {
                let time = (at - start) as f64 / f64::from(rate);
                let envelope = (time * 60.0).min(1.0) * (-3.0 * time).exp() * 0.18;
                let phase = std::f64::consts::TAU * pitch * time;
                let tone = envelope * (phase.sin() + 0.4 * (2.0 * phase).sin() + 0.2 * (3.0 * phase).sin());
                mix[2 * at] += tone * pan;
                mix[2 * at + 1] += tone * (1.0 - pan);
            }
        }
        let step = 1i64 << (32 - bits);
        let samples = mix.iter().map(|value| {
            let noisy = value + (random.unit() - 0.5) * 0.002;
            let scaled = (noisy * f64::from(i32::MAX)) as i64 / step * step;
            // Never 0, nor so loud that a lossy codec would clip.
            let sounding = if scaled == 0 { step } else { scaled };
            sounding as i32
        });
        Recording { rate, channels: 2, bits, samples: samples.collect() }
    }

    /// Reads a WAV file of 16 or 24 bits whose samples come last.
    pub fn from_wav(wav: &[u8]) -> Recording {
        let number =
            |at: usize, bytes: usize| wav[at..at + bytes].iter().rev().fold(0, |n, b| n << 8 | u32::from(*b));
        let data = wav.windows(4).position(|name| name == b"data").unwrap() + 8;
        let bits = number(34, 2);
        let width = bits as usize / 8;
        let sample = |bytes: &[u8]| {
            let mut wide = [0; 4];
            wide[4 - width..].copy_from_slice(bytes);
            i32::from_le_bytes(wide)
        };
        let samples = wav[data..].chunks_exact(width).map(sample).collect();
        Recording { rate: number(24, 4), channels: number(22, 2) as usize, bits, samples }
    }

    /// How many frames.
    pub fn frames(&self) -> usize {
        self.samples.len() / self.channels
    }

    /// How long, in seconds.
    pub fn seconds(&self) -> f64 {
        self.frames() as f64 / f64::from(self.rate)
    }

    /// A part of it, by frames.
    pub fn cut(&self, frames: Range<usize>) -> Recording {
        let samples = self.samples[frames.start * self.channels..frames.end * self.channels].to_vec();
        Recording { samples, ..self.clone() }
    }

    /// This, then the other.
    pub fn then(mut self, other: &Recording) -> Recording {
        assert_eq!((self.rate, self.channels), (other.rate, other.channels));
        self.samples.extend_from_slice(&other.samples);
        self
    }

    /// Without the silent frames at both ends.
    pub fn trimmed(&self) -> Recording {
        let sounding = |frame: &[i32]| frame.iter().any(|sample| *sample != 0);
        let frames: Vec<&[i32]> = self.samples.chunks(self.channels).collect();
        let start = frames.iter().position(|frame| sounding(frame)).unwrap_or(0);
        let end = frames.iter().rposition(|frame| sounding(frame)).map_or(start, |last| last + 1);
        self.cut(start..end)
    }

    /// A WAV file of it, with 16, 24 or 32 bits.
    pub fn to_wav(&self) -> Vec<u8> {
        let bytes = self.bits.div_ceil(8) as usize;
        let block = bytes * self.channels;
        let data = self.frames() * block;
        let mut wav = Vec::with_capacity(44 + data);
        wav.extend_from_slice(b"RIFF");
        wav.extend_from_slice(&(36 + data as u32).to_le_bytes());
        wav.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0");
        wav.extend_from_slice(&(self.channels as u16).to_le_bytes());
        wav.extend_from_slice(&self.rate.to_le_bytes());
        wav.extend_from_slice(&(self.rate * block as u32).to_le_bytes());
        wav.extend_from_slice(&(block as u16).to_le_bytes());
        wav.extend_from_slice(&(8 * bytes as u16).to_le_bytes());
        wav.extend_from_slice(b"data");
        wav.extend_from_slice(&(data as u32).to_le_bytes());
        for sample in &self.samples {
            wav.extend_from_slice(&sample.to_le_bytes()[4 - bytes..]);
        }
        wav
    }
}

/// Numbers that look random and are the same at each run (xorshift64*).
pub struct Random(u64);

impl Random {
    /// Numbers of their own for each seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// From 0 to `limit - 1`.
    pub fn below(&mut self, limit: u32) -> u32 {
        (self.unit() * f64::from(limit)) as u32
    }

    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }
}
