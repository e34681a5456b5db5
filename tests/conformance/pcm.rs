//! What a file has to sound like: from published samples, or from another decoder.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::Heard;

#[derive(Debug)]
pub enum Samples {
    /// Left-justified.
    Integers(Vec<i32>),
    Floats(Vec<f32>),
}

#[derive(Debug)]
pub struct Pcm {
    /// `None`: the same as what it is compared with.
    pub shape: Option<(u32, u16)>,
    /// Significant bits of a sample; 32 for floats.
    pub bits: u16,
    pub samples: Samples,
}

impl Pcm {
    /// Raw 16-bit samples, as the MPEG suites have them.
    pub fn raw16(path: &Path) -> Pcm {
        let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Pcm { shape: None, bits: 16, samples: Samples::Integers(integers(&bytes, 2)) }
    }

    /// Raw floats.
    pub fn floats(path: &Path) -> Pcm {
        let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Pcm { shape: None, bits: 32, samples: Samples::Floats(floats(&bytes)) }
    }

    /// Integers or floats in a WAV file whose header may not know its length.
    pub fn wav(bytes: &[u8]) -> Option<Pcm> {
        let (mut at, mut format) = (12, None);
        loop {
            let head = bytes.get(at..at + 8)?;
            let size = u32::from_le_bytes(head[4..].try_into().ok()?) as usize;
            let body = &bytes[at + 8..];
            let body = &body[..size.min(body.len())];
            match &head[..4] {
                b"fmt " => {
                    let word = |at: usize| Some(u16::from_le_bytes(body.get(at..at + 2)?.try_into().ok()?));
                    let rate = u32::from_le_bytes(body.get(4..8)?.try_into().ok()?);
                    let kind = if word(0)? == 0xfffe { word(24)? } else { word(0)? };
                    format = Some((kind, word(2)?, rate, word(14)?));
                }
                b"data" => {
                    let (kind, channels, rate, bits) = format?;
                    let samples = match (kind, bits) {
                        (1, 16 | 24 | 32) => Samples::Integers(integers(body, usize::from(bits) / 8)),
                        (3, 32) => Samples::Floats(floats(body)),
                        _ => return None,
                    };
                    return Some(Pcm { shape: Some((rate, channels)), bits, samples });
                }
                _ => {}
            }
            at += 8 + size.next_multiple_of(2);
        }
    }

    /// What ffmpeg makes of a file; `None` if it makes nothing of it. Its own Opus decoder is audibly the same, but not
    /// the reference's to the last bits.
    pub fn by_ffmpeg(path: &Path, heard: &Heard) -> Option<Pcm> {
        let codec = if heard.format.lossy { "pcm_f32le" } else { "pcm_s32le" };
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "quiet", "-nostdin"]);
        if heard.codec == "Opus" {
            command.args(["-c:a", "libopus"]);
        }
        command.arg("-i").arg(path);
        command.args(["-map", "0:a:0", "-c:a", codec, "-f", "wav", "-"]);
        let output = command.stderr(Stdio::null()).output().expect("ffmpeg");
        Pcm::wav(&output.stdout).filter(|pcm| pcm.len() > 0)
    }

    pub fn len(&self) -> usize {
        match &self.samples {
            Samples::Integers(samples) => samples.len(),
            Samples::Floats(samples) => samples.len(),
        }
    }
}

fn integers(bytes: &[u8], width: usize) -> Vec<i32> {
    let sample = |bytes: &[u8]| {
        let mut wide = [0; 4];
        wide[4 - width..].copy_from_slice(bytes);
        i32::from_le_bytes(wide)
    };
    bytes.chunks_exact(width).map(sample).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect()
}

/// The checksum of its samples that a FLAC file carries, and how wide those are.
pub struct FlacSum {
    pub bits: u32,
    pub md5: String,
}

impl FlacSum {
    /// `None` where there is none.
    pub fn of(bytes: &[u8]) -> Option<FlacSum> {
        let at = bytes
            .windows(8)
            .take(1 << 16)
            .position(|w| w == *b"fLaC\x00\x00\x00\x22" || w == *b"fLaC\x80\x00\x00\x22")?;
        let info = bytes.get(at + 8..at + 42)?;
        let bits = (u32::from(info[12] & 1) << 4 | u32::from(info[13] >> 4)) + 1;
        let md5: String = info[18..].iter().map(|byte| format!("{byte:02x}")).collect();
        info[18..].iter().any(|&byte| byte != 0).then_some(FlacSum { bits, md5 })
    }

    /// Of left-justified samples, by `md5sum`.
    pub fn fits(&self, samples: &[i32]) -> bool {
        let width = self.bits.div_ceil(8) as usize;
        let packed: Vec<u8> = samples
            .iter()
            .flat_map(|sample| (sample >> (32 - self.bits)).to_le_bytes().into_iter().take(width))
            .collect();
        let mut child =
            Command::new("md5sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("md5sum");
        child.stdin.take().expect("a pipe").write_all(&packed).expect("md5sum reads");
        let output = child.wait_with_output().expect("md5sum");
        output.stdout.starts_with(self.md5.as_bytes())
    }
}
