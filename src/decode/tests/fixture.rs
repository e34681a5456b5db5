//! Recordings made here, encoded by the installed tools and kept in the build folder.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::decode::{DecodeError, Decoder, FileInput, Hints, Input};

/// Interleaved PCM, left-justified.
#[derive(Clone, Hash)]
pub struct Pcm {
    pub rate: u32,
    pub channels: usize,
    pub bits: u16,
    pub samples: Vec<i32>,
}

impl Pcm {
    /// A sweep, chords and a little noise, different on each channel.
    pub fn music(rate: u32, channels: usize, bits: u16, frames: usize) -> Pcm {
        let mut noise = 0x2545_f491_4f6c_dd1du64;
        let mut samples = Vec::with_capacity(frames * channels);
        for n in 0..frames {
            let t = n as f64 / f64::from(rate);
            for c in 0..channels {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                let side = c as f64;
                let sweep = (std::f64::consts::TAU * (110.0 + 40.0 * side) * (1.0 + 0.9 * t) * t).sin();
                let chord = (std::f64::consts::TAU * (261.6 + 11.0 * side) * t).sin()
                    + (std::f64::consts::TAU * 392.0 * t + side).sin();
                let tremolo = 0.6 + 0.4 * (std::f64::consts::TAU * (3.0 + side) * t).sin();
                let hiss = (noise >> 40) as f64 / f64::from(1u32 << 24) - 0.5;
                let value = tremolo * (0.35 * sweep + 0.15 * chord) + 0.004 * hiss;
                let step = 2f64.powi(31);
                let mask = if bits == 32 { -1 } else { !((1i32 << (32 - bits)) - 1) };
                samples.push((value * step) as i32 & mask);
            }
        }
        Pcm { rate, channels, bits, samples }
    }

    pub fn frames(&self) -> usize {
        self.samples.len() / self.channels
    }

    pub fn cut(&self, from: usize, to: usize) -> Pcm {
        Pcm { samples: self.samples[from * self.channels..to * self.channels].to_vec(), ..self.clone() }
    }

    /// A RIFF WAVE file of integers, 8 bits unsigned.
    pub fn wav(&self) -> Vec<u8> {
        let bytes = usize::from(self.bits / 8);
        let data = self.samples.len() * bytes;
        let block = self.channels * bytes;
        let mut wav = Vec::with_capacity(data + 44);
        wav.extend_from_slice(b"RIFF");
        wav.extend_from_slice(&(36 + data as u32).to_le_bytes());
        wav.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0");
        wav.extend_from_slice(&(self.channels as u16).to_le_bytes());
        wav.extend_from_slice(&self.rate.to_le_bytes());
        wav.extend_from_slice(&(self.rate * block as u32).to_le_bytes());
        wav.extend_from_slice(&(block as u16).to_le_bytes());
        wav.extend_from_slice(&self.bits.to_le_bytes());
        wav.extend_from_slice(b"data");
        wav.extend_from_slice(&(data as u32).to_le_bytes());
        for sample in &self.samples {
            if self.bits == 8 {
                wav.push(((sample >> 24) + 0x80) as u8);
            } else {
                wav.extend_from_slice(&sample.to_le_bytes()[4 - bytes..]);
            }
        }
        wav
    }
}

/// The recording that most tests use: 5.3 seconds of no round number of anything.
pub fn recording() -> Pcm {
    Pcm::music(44_100, 2, 16, 233_731)
}

/// Encodes `pcm` into a file of this name by running `command`, in which `IN` and `OUT` stand for the files. What was
/// made of the same recording by the same command is used again.
pub fn encoded(pcm: &Pcm, name: &str, command: &[&str]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (pcm, name, command).hash(&mut hasher);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/decode-fixtures");
    let folder = folder.join(format!("{:016x}", hasher.finish()));
    let path = folder.join(name);
    if path.exists() {
        return path;
    }
    fs::create_dir_all(&folder).unwrap();
    // Tests run side by side: each encodes in its own folder, and the last one wins.
    let work = tempfile::tempdir_in(&folder).unwrap();
    let (input, output) = (work.path().join("in.wav"), work.path().join(name));
    fs::write(&input, pcm.wav()).unwrap();
    let arguments = command[1..].iter().map(|&argument| match argument {
        "IN" => input.as_os_str().to_owned(),
        "OUT" => output.as_os_str().to_owned(),
        other => other.into(),
    });
    let status = Command::new(command[0])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap_or_else(|e| panic!("{} must be installed for the decoder's tests: {e}", command[0]));
    assert!(status.success(), "{command:?} failed: {status}");
    fs::rename(&output, &path).unwrap();
    path
}

/// ffmpeg with the options between input and output.
pub fn ffmpeg(pcm: &Pcm, name: &str, options: &[&str]) -> PathBuf {
    let mut command = vec!["ffmpeg", "-nostdin", "-y", "-i", "IN"];
    command.extend_from_slice(options);
    command.push("OUT");
    encoded(pcm, name, &command)
}

pub fn open(path: &Path) -> Decoder {
    let input = FileInput::new(File::open(path).unwrap()).unwrap();
    Decoder::open(Box::new(input), &Hints::default()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Decodes from where the decoder stands to the end.
pub fn rest(decoder: &mut Decoder) -> Vec<i32> {
    let mut out = Vec::new();
    while let Some(frames) = decoder.next(&mut out).unwrap() {
        assert!(frames > 0, "a call that gives no frame says nothing");
    }
    out
}

/// Decodes at least so many frames, fewer at the end.
pub fn some(decoder: &mut Decoder, frames: usize) -> Vec<i32> {
    let mut out = Vec::new();
    let channels = usize::from(decoder.format().channels);
    while out.len() < frames * channels && decoder.next(&mut out).unwrap().is_some() {}
    out
}

/// Bytes in memory, which count what is read, and seek only if they may.
pub struct Memory {
    pub bytes: Cursor<Vec<u8>>,
    pub seekable: bool,
}

impl Memory {
    pub fn boxed(bytes: Vec<u8>, seekable: bool) -> Box<dyn Input> {
        Box::new(Memory { bytes: Cursor::new(bytes), seekable })
    }
}

impl Read for Memory {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        // As from a network: in pieces.
        let n = buf.len().min(1500);
        self.bytes.read(&mut buf[..n])
    }
}

impl Seek for Memory {
    fn seek(&mut self, pos: SeekFrom) -> std::io::Result<u64> {
        assert!(self.seekable, "an input that cannot seek was asked to");
        self.bytes.seek(pos)
    }
}

impl Input for Memory {
    fn byte_len(&self) -> Option<u64> {
        self.seekable.then(|| self.bytes.get_ref().len() as u64)
    }
    fn is_seekable(&self) -> bool {
        self.seekable
    }
}

/// How alike two signals are when `b` is moved by `lag` frames: 1 for equal but for loudness. First channel.
pub fn correlation(a: &[i32], b: &[i32], channels: usize, lag: isize) -> f64 {
    let frames = (a.len().min(b.len()) / channels) as isize;
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for n in lag.abs()..frames - lag.abs() {
        let x = f64::from(a[n as usize * channels]);
        let y = f64::from(b[(n + lag) as usize * channels]);
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    ab / (aa * bb).sqrt().max(1.0)
}

/// Asserts that `got` is `want` as a lossy codec would give it: aligned to the frame, on every channel.
pub fn assert_alike(want: &[i32], got: &[i32], channels: usize, least: f64, what: &str) {
    for channel in 0..channels {
        let (want, got) = (&want[channel..], &got[channel..]);
        let here = correlation(want, got, channels, 0);
        assert!(here > least, "{what}: channel {channel} is alike by only {here:.4}");
        for lag in [-2112, -1105, -1024, -576, -529, -312, -64, -8, -2, -1, 1, 2, 8, 64, 312, 576, 1024] {
            let there = correlation(want, got, channels, lag);
            assert!(there < here, "{what}: channel {channel} is more alike {lag} frames off ({there:.6})");
        }
    }
}

/// Root of the mean square of the difference, relative to full scale, in dB.
pub fn difference_db(a: &[i32], b: &[i32]) -> f64 {
    let n = a.len().min(b.len());
    let sum: f64 = a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum();
    10.0 * (sum / n as f64 / 2f64.powi(62)).max(1e-30).log10()
}

/// A decoder on bytes that can be read from anywhere.
pub fn from_memory(bytes: Vec<u8>) -> Decoder {
    Decoder::open(Memory::boxed(bytes, true), &Hints::default()).unwrap()
}

/// Why these bytes are not played.
pub fn refused(bytes: &[u8], seekable: bool) -> DecodeError {
    match Decoder::open(Memory::boxed(bytes.to_vec(), seekable), &Hints::default()) {
        Ok(decoder) => panic!("{} was found in it", decoder.codec()),
        Err(e) => e,
    }
}

/// Writes the checksum of an Ogg file's first page again.
pub fn seal_first_page(bytes: &mut [u8]) {
    let segments = usize::from(bytes[26]);
    let body: usize = bytes[27..27 + segments].iter().map(|&n| usize::from(n)).sum();
    let page = &mut bytes[..27 + segments + body];
    page[22..26].fill(0);
    let crc = page.iter().fold(0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte) << 24, |crc, _| {
            if crc >> 31 == 1 { crc << 1 ^ 0x04c1_1db7 } else { crc << 1 }
        })
    });
    page[22..26].copy_from_slice(&crc.to_le_bytes());
}
