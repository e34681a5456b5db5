//! Loudness tags, as the many containers write them.

use symphonia::core::meta::{RawValue, StandardTag, Tag};

use crate::dsp::{Level, Loudness};

/// EBU R 128 aims at -23 LUFS, ReplayGain 2 at -18.
const R128_TO_REPLAYGAIN_DB: f32 = 5.0;
/// No recording needs more; what says more is damaged.
const MOST_GAIN_DB: f32 = 60.0;
const MOST_PEAK: f32 = 100.0;

/// The fields, while they are gathered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Found {
    track: Fields,
    album: Fields,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Fields {
    gain: Option<f32>,
    /// As Opus files have it.
    r128: Option<f32>,
    peak: Option<f32>,
    rva2: Option<f32>,
    rva2_peak: Option<f32>,
}

impl Found {
    pub(super) fn add(&mut self, tag: &Tag) {
        let text = match (&tag.std, &tag.raw.value) {
            // Matroska has names of its own, which are known as these.
            (Some(StandardTag::ReplayGainTrackGain(text)), _) => {
                return keep(&mut self.track.gain, gain(text));
            }
            (Some(StandardTag::ReplayGainTrackPeak(text)), _) => {
                return keep(&mut self.track.peak, peak(text));
            }
            (Some(StandardTag::ReplayGainAlbumGain(text)), _) => {
                return keep(&mut self.album.gain, gain(text));
            }
            (Some(StandardTag::ReplayGainAlbumPeak(text)), _) => {
                return keep(&mut self.album.peak, peak(text));
            }
            (_, RawValue::String(text)) => text,
            (_, RawValue::Binary(bytes)) if tag.raw.key == "RVA2" => return self.add_rva2(bytes),
            _ => return,
        };
        // ID3v2, MP4 and Matroska put something in front: `TXXX:`, `com.apple.iTunes:`, `TRACK@`.
        let name = tag.raw.key.rsplit([':', '@']).next().unwrap_or_default().to_ascii_uppercase();
        match name.as_str() {
            "REPLAYGAIN_TRACK_GAIN" => keep(&mut self.track.gain, gain(text)),
            "REPLAYGAIN_TRACK_PEAK" => keep(&mut self.track.peak, peak(text)),
            "REPLAYGAIN_ALBUM_GAIN" => keep(&mut self.album.gain, gain(text)),
            "REPLAYGAIN_ALBUM_PEAK" => keep(&mut self.album.peak, peak(text)),
            "R128_TRACK_GAIN" => keep(&mut self.track.r128, r128(text)),
            "R128_ALBUM_GAIN" => keep(&mut self.album.r128, r128(text)),
            _ => {}
        }
    }

    /// ID3v2.4's own: a name, then for each kind of channel its number, 512ths of a dB, and a peak of so many bits.
    /// It yields to text, which is written by more programs and with more care.
    fn add_rva2(&mut self, bytes: &[u8]) {
        const MASTER: u8 = 1;
        let Some(end) = bytes.iter().position(|byte| *byte == 0) else { return };
        let fields = match bytes[..end].to_ascii_lowercase().as_slice() {
            b"track" => &mut self.track,
            b"album" => &mut self.album,
            _ => return,
        };
        let mut rest = &bytes[end + 1..];
        while let [kind, high, low, bits, after @ ..] = rest {
            let size = usize::from(*bits).div_ceil(8);
            let Some((peak, after)) = after.split_at_checked(size) else { return };
            if *kind == MASTER {
                fields.rva2 = sensible_gain(f32::from(i16::from_be_bytes([*high, *low])) / 512.0);
                fields.rva2_peak = (1..=32).contains(bits).then(|| {
                    let peak = peak.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
                    peak as f32 / (1u64 << (bits - 1)) as f32
                });
            }
            rest = after;
        }
    }

    pub(super) fn loudness(&self) -> Loudness {
        Loudness { track: self.track.level(), album: self.album.level() }
    }
}

impl Fields {
    fn level(&self) -> Option<Level> {
        match self.r128.or(self.gain) {
            Some(gain_db) => Some(Level { gain_db, peak: self.peak }),
            None => Some(Level { gain_db: self.rva2?, peak: self.rva2_peak.and_then(sensible_peak) }),
        }
    }
}

/// What makes no sense takes nothing back.
fn keep(field: &mut Option<f32>, found: Option<f32>) {
    *field = found.or(*field);
}

fn sensible_gain(db: f32) -> Option<f32> {
    (db.abs() <= MOST_GAIN_DB).then_some(db)
}

fn sensible_peak(peak: f32) -> Option<f32> {
    (peak > 0.0 && peak <= MOST_PEAK).then_some(peak)
}

/// `-6.20 dB`, in any of the ways in which that is written.
fn gain(text: &str) -> Option<f32> {
    let number = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic() || c.is_whitespace());
    sensible_gain(number.replace(',', ".").parse::<f32>().ok()?)
}

fn peak(text: &str) -> Option<f32> {
    sensible_peak(text.trim().replace(',', ".").parse::<f32>().ok()?)
}

/// A whole number of 256ths of a dB.
fn r128(text: &str) -> Option<f32> {
    let number = text.trim().parse::<i16>().ok()?;
    sensible_gain(f32::from(number) / 256.0 + R128_TO_REPLAYGAIN_DB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use symphonia::core::meta::RawTag;

    fn read(tags: &[(&str, &str)]) -> Loudness {
        let mut found = Found::default();
        for (key, value) in tags {
            found.add(&Tag::new(RawTag::new(*key, *value)));
        }
        found.loudness()
    }

    #[test]
    fn every_container_s_way_of_writing_is_read() {
        let level = |gain_db, peak| Some(Level { gain_db, peak });
        for tags in [
            [("REPLAYGAIN_TRACK_GAIN", "-6.20 dB"), ("REPLAYGAIN_TRACK_PEAK", "0.988")],
            [("TXXX:replaygain_track_gain", "-6,20dB"), ("TXXX:replaygain_track_peak", " 0,988 ")],
            [("----:com.apple.iTunes:replaygain_track_gain", "-6.2"), ("REPLAYGAIN_TRACK_PEAK", "0.988")],
        ] {
            assert_eq!(read(&tags).track, level(-6.2, Some(0.988)), "{tags:?}");
        }
        assert_eq!(read(&[("REPLAYGAIN_ALBUM_GAIN", "+1.5 dB")]).album, level(1.5, None));
        assert_eq!(read(&[("R128_TRACK_GAIN", "-1280")]).track, level(0.0, None), "-5 dB to -23 LUFS");
        assert_eq!(
            read(&[("R128_TRACK_GAIN", "256"), ("REPLAYGAIN_TRACK_GAIN", "3")]).track,
            level(6.0, None)
        );
    }

    #[test]
    fn what_makes_no_sense_is_not_there() {
        for value in ["", "dB", "loud", "nan", "inf dB", "-900 dB", "1e40", "--3"] {
            assert_eq!(read(&[("REPLAYGAIN_TRACK_GAIN", value)]).track, None, "{value}");
        }
        for value in ["0", "-1", "nan", "inf", "1000", "x"] {
            let tags = [("REPLAYGAIN_TRACK_GAIN", "-3 dB"), ("REPLAYGAIN_TRACK_PEAK", value)];
            assert_eq!(read(&tags).track, Some(Level { gain_db: -3.0, peak: None }), "{value}");
        }
        assert_eq!(read(&[("R128_TRACK_GAIN", "40000")]).track, None);
        let twice = [("REPLAYGAIN_TRACK_GAIN", "-3 dB"), ("replaygain_track_gain", "?")];
        assert_eq!(read(&twice).track, Some(Level { gain_db: -3.0, peak: None }), "what was good stays");
        assert_eq!(read(&[("REPLAYGAIN_TRACK_PEAK", "0.5")]).track, None, "a peak alone says nothing");
    }

    #[test]
    fn rva2_is_read_where_no_text_is_there() {
        let mut found = Found::default();
        let rva2 = |bytes: &[u8]| Tag::new(RawTag::new("RVA2", bytes.to_vec().into_boxed_slice()));
        // A subwoofer's first, then the master volume: -6.5 dB with a peak of 0.75.
        found.add(&rva2(b"Track\0\x08\0\0\0\x01\xf3\x00\x10\x60\x00"));
        found.add(&rva2(b"album\0\x01\x02\x00\x00"));
        let want = Loudness {
            track: Some(Level { gain_db: -6.5, peak: Some(0.75) }),
            album: Some(Level { gain_db: 1.0, peak: None }),
        };
        assert_eq!(found.loudness(), want);
        for broken in [&b""[..], b"track", b"track\0", b"track\0\x01\xf3", b"track\0\x01\x80\x00\xff"] {
            found.add(&rva2(broken));
            assert_eq!(found.loudness(), want, "{broken:?}");
        }
        found.add(&Tag::new(RawTag::new("TXXX:REPLAYGAIN_TRACK_GAIN", "-7 dB")));
        assert_eq!(found.loudness().track, Some(Level { gain_db: -7.0, peak: None }));
    }
}
