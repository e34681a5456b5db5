//! What the first frame of an MP3 may tell about all of it: `Xing`, `Info` and `VBRI`.

use super::header::Frame;

/// Where in the file which part of the time is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Toc {
    /// Frames behind this one.
    pub(super) frames: Option<u64>,
    /// Bytes from this frame's beginning to the end.
    pub(super) bytes: Option<u64>,
    /// All frames have one bit rate.
    pub(super) is_constant: bool,
    /// What LAME found out about the loudness: what brings it to ReplayGain's aim, in dB.
    pub(super) gain_db: Option<f32>,
    /// At so many equal steps of the time: the part of the bytes before it, from 0 to 1.
    points: Vec<f64>,
}

impl Toc {
    /// Reads the body of a first frame; None where it is a frame of sound.
    pub(super) fn read(frame: &Frame, body: &[u8]) -> Option<Toc> {
        let tag = body.get(frame.tag(body)?..)?;
        if tag.starts_with(b"VBRI") { vbri(tag) } else { Some(xing(tag)) }
    }

    /// The byte, from this frame's beginning, at which a part of the time (0 to 1) begins, about.
    pub(super) fn byte_at(&self, part: f64) -> Option<u64> {
        let bytes = self.bytes? as f64;
        let last = self.points.len().checked_sub(1)?;
        let place = part.clamp(0.0, 1.0) * (last + 1) as f64;
        let step = (place as usize).min(last);
        let from = self.points[step];
        let to = self.points.get(step + 1).copied().unwrap_or(1.0);
        Some(((from + (to - from) * (place - step as f64)) * bytes) as u64)
    }
}

fn xing(tag: &[u8]) -> Toc {
    let word = |at: usize| Some(u32::from_be_bytes(*tag.get(at..)?.first_chunk()?));
    let flags = word(4).unwrap_or(0);
    let mut at = 8;
    let mut field = |flag: u32, len: usize| {
        let here = at;
        at += if flags & flag != 0 { len } else { 0 };
        (flags & flag != 0).then_some(here)
    };
    let frames = field(1, 4).and_then(word).map(u64::from).filter(|n| *n > 0);
    let bytes = field(2, 4).and_then(word).map(u64::from).filter(|n| *n > 0);
    let points = field(4, 100).and_then(|at| tag.get(at..at + 100)).unwrap_or_default();
    let rises = points.is_sorted();
    let points = if rises { points.iter().map(|&b| f64::from(b) / 256.0).collect() } else { Vec::new() };
    let _quality = field(8, 4);
    let gain_db = tag.get(at..).and_then(lame_gain);
    Toc { frames, bytes, is_constant: tag.starts_with(b"Info"), gain_db, points }
}

/// Behind the encoder's name (nine bytes), its settings (two) and a peak (four), which few versions write: the gain of
/// the track, in three bits that say so, three that say by whom, a sign, and tenths of a dB.
fn lame_gain(lame: &[u8]) -> Option<f32> {
    const OF_TRACK: u16 = 1;
    if !lame.starts_with(b"LAME") {
        return None;
    }
    let word = u16::from_be_bytes(*lame.get(15..)?.first_chunk()?);
    let (kind, by, size) = (word >> 13, word >> 10 & 7, f32::from(word & 0x1ff) / 10.0);
    (kind == OF_TRACK && by != 0).then_some(if word & 0x200 != 0 { -size } else { size })
}

fn vbri(tag: &[u8]) -> Option<Toc> {
    let tag = tag.strip_prefix(b"VBRI")?;
    let half = |at: usize| Some(u16::from_be_bytes(*tag.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_be_bytes(*tag.get(at..)?.first_chunk()?));
    let (bytes, frames) = (u64::from(word(6)?), u64::from(word(10)?));
    let (entries, scale, width) = (usize::from(half(14)?), u64::from(half(16)?), usize::from(half(18)?));
    let mut points = Vec::new();
    if (1..=4).contains(&width) && bytes > 0 {
        let mut sum = 0u64;
        for entry in tag.get(22..).unwrap_or_default().chunks_exact(width).take(entries) {
            points.push(sum as f64 / bytes as f64);
            sum += scale * entry.iter().fold(0u64, |sum, &b| sum << 8 | u64::from(b));
        }
    }
    Some(Toc {
        frames: Some(frames).filter(|n| *n > 0),
        bytes: Some(bytes),
        is_constant: false,
        gain_db: None,
        points,
    })
}

#[cfg(test)]
mod tests {
    use super::super::header::Kind;
    use super::*;

    fn first_frame() -> (Frame, Vec<u8>) {
        let mut body = vec![0xff, 0xfb, 0x90, 0x44];
        body.resize(417, 0);
        (Kind::Mpeg.parse(&body).unwrap(), body)
    }

    #[test]
    fn lame_says_how_loud_it_is() {
        let tag = |word: u16, name: &[u8; 9]| [&name[..], &[0; 6], &word.to_be_bytes()].concat();
        assert_eq!(lame_gain(&tag(0x2e3e, b"LAME3.100")), Some(-6.2));
        assert_eq!(lame_gain(&tag(0x2c0a, b"LAME3.100")), Some(1.0));
        // Of the album, by nobody, by another encoder, cut off.
        assert_eq!(lame_gain(&tag(0x4e3e, b"LAME3.100")), None);
        assert_eq!(lame_gain(&tag(0x223e, b"LAME3.100")), None);
        assert_eq!(lame_gain(&tag(0x2e3e, b"Lavc61.19")), None);
        assert_eq!(lame_gain(&tag(0x2e3e, b"LAME3.100")[..16]), None);
    }

    #[test]
    fn a_xing_table_leads_to_the_bytes() {
        let (frame, mut body) = first_frame();
        body[36..44].copy_from_slice(b"Xing\0\0\0\x07");
        body[44..48].copy_from_slice(&1_000u32.to_be_bytes());
        body[48..52].copy_from_slice(&256_000u32.to_be_bytes());
        for (step, byte) in body[52..152].iter_mut().enumerate() {
            *byte = (step * step * 255 / 9_801) as u8;
        }
        let toc = Toc::read(&frame, &body).unwrap();
        assert_eq!((toc.frames, toc.bytes, toc.is_constant), (Some(1_000), Some(256_000), false));
        assert_eq!(toc.byte_at(0.0), Some(0));
        let half = toc.byte_at(0.5).unwrap();
        assert!((60_000..=68_000).contains(&half), "{half}");
        assert_eq!(toc.byte_at(1.0), Some(256_000));
    }

    #[test]
    fn sound_is_no_table_and_a_short_one_harms_nobody() {
        let (frame, mut body) = first_frame();
        assert_eq!(Toc::read(&frame, &body), None);
        body[36..44].copy_from_slice(b"Info\0\0\0\x0f");
        for len in 36..body.len() {
            let toc = Toc::read(&frame, &body[..len]);
            assert_eq!(toc.is_some(), len >= 40, "{len}");
            assert_eq!(toc.unwrap_or_default().byte_at(0.3), None);
        }
        let mut vbri = vec![0; 36];
        vbri.extend(b"VBRI\0\x01\0\0\0\0\0\0\x10\0\0\0\0\x0a\0\x03\0\x01\0\x02\0\x01\x04\0\x04\0\x04\0");
        let toc = Toc::read(&frame, &vbri).unwrap();
        assert_eq!((toc.frames, toc.bytes), (Some(10), Some(4_096)));
        assert_eq!(toc.points, [0.0, 0.25, 0.5]);
    }
}
