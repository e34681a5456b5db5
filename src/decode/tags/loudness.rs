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
}

impl Found {
    pub(super) fn add(&mut self, tag: &Tag) {
        let text = match (&tag.std, &tag.raw.value) {
            // Matroska has names of its own, which are known as these.
            (Some(StandardTag::ReplayGainTrackGain(text)), _) => return self.track.gain = gain(text),
            (Some(StandardTag::ReplayGainTrackPeak(text)), _) => return self.track.peak = peak(text),
            (Some(StandardTag::ReplayGainAlbumGain(text)), _) => return self.album.gain = gain(text),
            (Some(StandardTag::ReplayGainAlbumPeak(text)), _) => return self.album.peak = peak(text),
            (_, RawValue::String(text)) => text,
            _ => return,
        };
        // ID3v2 and MP4 put something in front: `TXXX:`, `----:com.apple.iTunes:`.
        let name = tag.raw.key.rsplit(':').next().unwrap_or_default().to_ascii_uppercase();
        match name.as_str() {
            "REPLAYGAIN_TRACK_GAIN" => self.track.gain = gain(text),
            "REPLAYGAIN_TRACK_PEAK" => self.track.peak = peak(text),
            "REPLAYGAIN_ALBUM_GAIN" => self.album.gain = gain(text),
            "REPLAYGAIN_ALBUM_PEAK" => self.album.peak = peak(text),
            "R128_TRACK_GAIN" => self.track.r128 = r128(text),
            "R128_ALBUM_GAIN" => self.album.r128 = r128(text),
            _ => {}
        }
    }

    pub(super) fn loudness(&self) -> Loudness {
        Loudness { track: self.track.level(), album: self.album.level() }
    }
}

impl Fields {
    fn level(&self) -> Option<Level> {
        let gain_db = self.r128.or(self.gain)?;
        Some(Level { gain_db, peak: self.peak })
    }
}

/// `-6.20 dB`, in any of the ways in which that is written.
fn gain(text: &str) -> Option<f32> {
    let number = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic() || c.is_whitespace());
    let number = number.replace(',', ".").parse::<f32>().ok()?;
    (number.abs() <= MOST_GAIN_DB).then_some(number)
}

fn peak(text: &str) -> Option<f32> {
    let number = text.trim().replace(',', ".").parse::<f32>().ok()?;
    (number > 0.0 && number <= MOST_PEAK).then_some(number)
}

/// A whole number of 256ths of a dB.
fn r128(text: &str) -> Option<f32> {
    let number = text.trim().parse::<i16>().ok()?;
    Some(f32::from(number) / 256.0 + R128_TO_REPLAYGAIN_DB).filter(|gain| gain.abs() <= MOST_GAIN_DB)
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
        assert_eq!(read(&[("REPLAYGAIN_TRACK_PEAK", "0.5")]).track, None, "a peak alone says nothing");
    }
}
