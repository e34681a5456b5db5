//! A container's metadata as [`TrackInfo`].

use symphonia::core::formats::FormatReader;
use symphonia::core::meta::{MetadataRevision, RawValue, StandardTag, Tag};

use crate::dsp::Loudness;
use crate::track::TrackInfo;

mod loudness;

/// What a reader's metadata says: about the track, and about silence that the encoder added.
#[derive(Debug, Default)]
pub(super) struct Tags {
    pub(super) info: TrackInfo,
    pub(super) itunes_gapless: Option<ItunesGapless>,
    loudness: loudness::Found,
}

/// Apple's `iTunSMPB`: frames to drop at the beginning, and the length of the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ItunesGapless {
    pub(super) delay: u64,
    pub(super) frames: u64,
}

impl ItunesGapless {
    fn parse(text: &str) -> Option<ItunesGapless> {
        let mut fields = text.split_ascii_whitespace().skip(1);
        let mut next = || u64::from_str_radix(fields.next()?, 16).ok();
        let (delay, _padding, frames) = (next()?, next()?, next()?);
        (frames > 0 && delay < 1 << 20).then_some(ItunesGapless { delay, frames })
    }
}

/// Reads what has come since the last time. One revision always stays in the log.
pub(super) fn read_new(reader: &mut dyn FormatReader) -> Tags {
    if reader.metadata().pop().is_some() { read(reader) } else { Tags::default() }
}

/// Reads all revisions that the reader has so far.
pub(super) fn read(reader: &mut dyn FormatReader) -> Tags {
    let mut tags = Tags::default();
    let mut log = reader.metadata();
    while let Some(revision) = log.current() {
        tags.add(revision);
        if log.pop().is_none() {
            break;
        }
    }
    tags
}

impl Tags {
    pub(super) fn loudness(&self) -> Loudness {
        self.loudness.loudness()
    }

    fn add(&mut self, revision: &MetadataRevision) {
        let mut info = TrackInfo::default();
        let per_track = revision.per_track.iter().flat_map(|track| &track.metadata.tags);
        for tag in revision.media.tags.iter().chain(per_track) {
            if tag.raw.key.ends_with("iTunSMPB")
                && let RawValue::String(text) = &tag.raw.value
            {
                self.itunes_gapless = ItunesGapless::parse(text);
            }
            self.loudness.add(tag);
            add_tag(&mut info, tag);
        }
        // What comes later is closer to the sound.
        info.fill_from(&self.info);
        self.info = info;
    }
}

fn add_tag(info: &mut TrackInfo, tag: &Tag) {
    use StandardTag as T;
    let Some(std) = &tag.std else { return };
    match std {
        T::TrackTitle(text) => set(&mut info.title, text),
        T::Artist(text) => push(&mut info.artists, text),
        T::Album(text) => set(&mut info.album, text),
        T::AlbumArtist(text) => push(&mut info.album_artists, text),
        T::TrackNumber(number) => info.track_no = u32::try_from(*number).ok(),
        T::DiscNumber(number) => info.disc_no = u32::try_from(*number).ok(),
        T::Genre(text) => push(&mut info.genres, text),
        T::ReleaseDate(text) | T::RecordingDate(text) => set_date(&mut info.date, text),
        T::ReleaseYear(year) | T::RecordingYear(year) => set_date(&mut info.date, &format!("{year:04}")),
        _ => {}
    }
}

fn set(field: &mut Option<String>, text: &str) {
    if field.is_none() && !text.trim().is_empty() {
        *field = Some(text.trim().to_owned());
    }
}

fn push(list: &mut Vec<String>, text: &str) {
    // A hostile file may repeat a field without end.
    let text = text.trim();
    if !text.is_empty() && list.len() < 32 && !list.iter().any(|known| known == text) {
        list.push(text.to_owned());
    }
}

/// Keeps `YYYY` or `YYYY-MM-DD`, the longer of two.
fn set_date(field: &mut Option<String>, text: &str) {
    let date = match text.get(..10) {
        Some(day) if is_day(day) => day,
        _ => match text.get(..4) {
            Some(year) if year.bytes().all(|b| b.is_ascii_digit()) => year,
            _ => return,
        },
    };
    if field.as_ref().is_none_or(|known| known.len() < date.len()) {
        *field = Some(date.to_owned());
    }
}

fn is_day(text: &str) -> bool {
    text.bytes().enumerate().all(|(i, b)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apples_gapless_note_is_read() {
        let note = " 00000000 00000840 000001CA 00000000003F31F6 00000000 00000000";
        assert_eq!(ItunesGapless::parse(note), Some(ItunesGapless { delay: 2112, frames: 4_141_558 }));
        assert_eq!(ItunesGapless::parse("junk"), None);
    }

    #[test]
    fn of_two_dates_the_fuller_one_stays() {
        let mut date = None;
        for text in ["1999", "1999-10-02T00:00:00Z", "2001", "junk", "é"] {
            set_date(&mut date, text);
        }
        assert_eq!(date.as_deref(), Some("1999-10-02"));
    }
}
