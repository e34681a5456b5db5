//! A track as a run of frames: open, read on, jump.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use symphonia::core::errors::Error;
use symphonia::core::packet::Packet;

use super::error::DecodeError;
use super::input::{Hints, Input, Source};
use super::link::{Link, Outcome};
use super::quirks::{mkv, mp4};
use super::registry::{self, Container, Reader};
use super::samples;
use super::tags::Tags;
use crate::dsp::{Level, Loudness};
use crate::track::{SourceFormat, TrackInfo};

mod counted;
mod entrance;
mod jump;
pub(super) mod opening;

/// After so many unreadable packets in a row the track is given up.
const LOST_LIMIT: u32 = 100;
/// After so many of a station's, another decoder is tried.
const LOST_ANEW: u32 = 4;
/// A recording that ends earlier than it says by less than this is as good as whole.
const MISSED: Duration = Duration::from_millis(100);
/// So many frames in the head of a WAV file mean that its length was not known: 2 GiB of the widest frames that are
/// met there, of 8 bytes.
const ENDLESS: u64 = 0x7fff_0000 / 8;
/// No more samples are made up for what is missing; it is more than a second of any format that there is.
const MOST_SILENCE: usize = 16 * 1024 * 1024;
/// Where a seek ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landed {
    /// Number of the frame that [`Decoder::next`] gives next.
    pub frame: u64,
    /// False where nothing told the number of that frame for sure: the container gives only about a time, or none, and
    /// what is in front of it was not counted.
    pub exact: bool,
}

/// A track that is being decoded. Frames are numbered from 0 at the first one of the recording; what an
/// encoder added in front and behind is left out.
pub struct Decoder {
    source: Source,
    seekable: Arc<AtomicBool>,
    container: Container,
    layout: mp4::Layout,
    reader: Reader,
    /// The reader was told that it can seek when it was built.
    built_seekable: bool,
    link: Link,
    /// The file holds several streams, one after another or at once: the demuxer cannot jump in it.
    entangled: bool,
    /// It was found out while playing that one stream follows another.
    chained: bool,
    /// Links of a chained stream that are behind.
    links_before: u32,
    /// Number of the first frame of this link.
    base: u64,
    tags: Tags,
    estimate: Option<Duration>,
    /// Number of the frame that the next packet begins with, as far as frames follow each other.
    cursor: u64,
    /// Frames before this one are not wanted.
    want: u64,
    /// The next packet comes from elsewhere.
    jumped: bool,
    /// The numbers of frames are a guess, since the last jump.
    guessed: bool,
    /// The input failed in the middle of something, so that nobody knows where the reader stands: it is to go on at this
    /// frame.
    torn: Option<u64>,
    /// What follows the end of this recording in the same input.
    stretch: Option<Hints>,
    /// A packet that may be the last one, where only the last one's padding is known.
    held: Option<Packet>,
    /// Decoded and not yet given out.
    pending: Vec<i32>,
    ended: bool,
    broken: bool,
    lost_in_row: u32,
    lost: u64,
}

impl Decoder {
    /// Finds out what the track is and decodes its first frames.
    pub fn open(input: Box<dyn Input>, hints: &Hints) -> Result<Decoder, DecodeError> {
        let opened = catch_unwind(AssertUnwindSafe(|| Decoder::open_unguarded(input, hints)));
        opened.unwrap_or(Err(DecodeError::Panicked))
    }

    /// Of the frames that come next. It may change within a track, between two calls of [`Decoder::next`].
    pub fn format(&self) -> SourceFormat {
        self.link.format
    }

    /// The codec as people write it: "FLAC", "MP3", "AAC", "ALAC", "Vorbis", "Opus", "PCM".
    pub fn codec(&self) -> &str {
        &self.link.codec_name
    }

    /// Length of the recording in frames at its own rate, if it is known exactly. [`TrackInfo::duration`] may
    /// hold an estimate where this is `None`.
    pub fn total_frames(&self) -> Option<u64> {
        self.link.frames.filter(|_| self.links_before == 0)
    }

    /// What the container says about the track.
    pub fn tags(&self) -> TrackInfo {
        let mut info = self.tags.info.clone();
        let rate = self.link.format.rate;
        let exact = self.total_frames().filter(|_| rate > 0);
        let exact = exact.map(|frames| Duration::from_secs_f64(frames as f64 / f64::from(rate)));
        info.duration = exact.or(self.estimate);
        info
    }

    /// What its tags say about how loud it is.
    pub fn loudness(&self) -> Loudness {
        let told = self.tags.loudness();
        if told != Loudness::default() {
            return told;
        }
        let track = self.source.gain_db().map(|gain_db| Level { gain_db, peak: None });
        Loudness { track, ..told }
    }

    /// How many streams of a chain are behind. When it has changed after a call of [`Decoder::next`], tags and
    /// format may have too.
    pub fn links_before(&self) -> u32 {
        self.links_before
    }

    /// Number of the frame that [`Decoder::next`] gives next.
    pub fn position(&self) -> u64 {
        self.cursor - (self.pending_frames() as u64).min(self.cursor)
    }

    /// Packets that could not be decoded so far. They are replaced by silence of their length.
    pub fn lost_packets(&self) -> u64 {
        self.lost
    }

    /// Appends the next frames to `out`, interleaved and left-justified, and returns how many. `None` at the
    /// end of the track. All frames of one call are in one [`Decoder::format`].
    ///
    /// Not an [`Iterator`], since frames go to a buffer that is used again.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self, out: &mut Vec<i32>) -> Result<Option<usize>, DecodeError> {
        self.guarded(|decoder| {
            if let Some(frame) = decoder.torn {
                decoder.seek_or_tear(frame)?;
            }
            if decoder.pending.is_empty() {
                let filled = decoder.fill();
                if let Err(DecodeError::Input(_)) = filled {
                    decoder.torn = Some(decoder.wanted());
                }
                if !filled? {
                    return Ok(None);
                }
            }
            let frames = decoder.pending_frames();
            if out.is_empty() {
                std::mem::swap(out, &mut decoder.pending);
            } else {
                out.append(&mut decoder.pending);
            }
            Ok(Some(frames))
        })
    }

    /// Goes to a frame; behind the end it goes to the end. The next frame that [`Decoder::next`] gives is
    /// `Landed::frame`. Where the input fails, it is the one that was asked for, once the input is well again.
    ///
    /// In MP3 and ADTS, which have no index, it is exact for what has passed or can be read through at once; elsewhere
    /// it is a guess by bit rate or table, and `Landed::exact` is false.
    pub fn seek(&mut self, frame: u64) -> Result<Landed, DecodeError> {
        self.guarded(|decoder| decoder.seek_or_tear(frame))
    }

    /// Reads the track's end, where that is needed to know its length (Ogg), and returns the length.
    ///
    /// Worth calling when the whole track is at hand, since it costs three jumps over the network else.
    pub fn measure(&mut self) -> Result<Option<u64>, DecodeError> {
        self.guarded(|decoder| {
            if decoder.container == Container::Ogg
                && decoder.links_before == 0
                && decoder.link.frames.is_none()
                && decoder.source.is_seekable()
            {
                let seekable = Arc::new(AtomicBool::new(true));
                let measured = registry::open_as(Container::Ogg, decoder.source.handle(&seekable));
                if let Some(failure) = decoder.source.take_failure() {
                    return Err(DecodeError::Input(failure));
                }
                if let Ok(reader) = measured {
                    let link = Link::new(reader.as_ref(), decoder.container, &decoder.layout, &decoder.tags)?;
                    let shift = decoder.link.start.saturating_sub(link.start).max(0) as u64;
                    if !decoder.is_entangled(&reader)? {
                        decoder.link.frames = link.frames.map(|frames| frames.saturating_sub(shift));
                    }
                }
            }
            Ok(decoder.total_frames())
        })
    }

    fn guarded<T>(
        &mut self,
        run: impl FnOnce(&mut Decoder) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.broken {
            return Err(DecodeError::Panicked);
        }
        let result = catch_unwind(AssertUnwindSafe(|| run(self)));
        result.unwrap_or_else(|_| {
            self.broken = true;
            Err(DecodeError::Panicked)
        })
    }

    /// The frame that is wanted next, where nothing is pending.
    fn wanted(&self) -> u64 {
        if self.jumped { self.want } else { self.want.max(self.cursor) }
    }

    /// Decodes until something is pending; false at the end of the track.
    fn fill(&mut self) -> Result<bool, DecodeError> {
        while self.pending.is_empty() && !self.ended {
            self.step()?;
        }
        if self.pending.is_empty()
            && let Some(missing) = self.missing()
        {
            return Err(DecodeError::CutShort { missing });
        }
        Ok(!self.pending.is_empty())
    }

    fn step(&mut self) -> Result<(), DecodeError> {
        if let Some(hints) = self.stretch.take() {
            return self.begin_stretch(&hints);
        }
        if self.container != Container::Ogg && self.is_behind_end() {
            self.ended = true;
            return Ok(());
        }
        let packet = self.reader.next_packet();
        if let Some(failure) = self.source.take_failure() {
            return Err(DecodeError::Input(failure));
        }
        let packet = match packet {
            Ok(Some(packet)) if packet.track_id != self.link.track_id => return Ok(()),
            Ok(Some(packet)) if self.container == Container::Mkv => match self.held.replace(packet) {
                Some(packet) => packet,
                None => return Ok(()),
            },
            Ok(Some(packet)) => packet,
            Ok(None) => return self.end(),
            Err(Error::ResetRequired) => return self.next_link(),
            // Cut short: what there was has been played.
            Err(Error::IoError(_)) => return self.end(),
            Err(e) => return self.note_loss(e.to_string()),
        };
        self.decode(packet, 0)
    }

    /// The reader has no more packets.
    fn end(&mut self) -> Result<(), DecodeError> {
        self.stretch = self.source.next_stretch();
        self.ended = self.stretch.is_none();
        let Some(packet) = self.held.take() else { return self.drain() };
        let ns = mkv::discard_padding(&self.source.window(), &packet.data).unwrap_or(0);
        let rate = u128::from(self.link.format.rate);
        let padding = (u128::from(ns) * rate + 500_000_000) / 1_000_000_000;
        self.decode(packet, u64::try_from(padding).unwrap_or(u64::MAX))?;
        self.drain()
    }

    fn decode(&mut self, packet: Packet, padding: u64) -> Result<(), DecodeError> {
        let outcome = self.link.decode(packet, padding)?;
        self.note(outcome)
    }

    /// Nothing follows: the decoder gives what it has kept back.
    fn drain(&mut self) -> Result<(), DecodeError> {
        let mut left = self.link.kept_back();
        while left > 0 && !self.is_behind_end() {
            let outcome = self.link.drain(left);
            let Outcome::Sound { frames, .. } = outcome else { break };
            left = left.saturating_sub(frames.max(1));
            self.note(outcome)?;
        }
        Ok(())
    }

    fn note(&mut self, outcome: Outcome) -> Result<(), DecodeError> {
        match outcome {
            Outcome::Sound { raw, frames, trim_end } => {
                self.lost_in_row = 0;
                self.source.sounds();
                self.take(raw, frames, trim_end);
                Ok(())
            }
            Outcome::Nothing => Ok(()),
            Outcome::Lost(reason) => self.note_loss(reason),
        }
    }

    fn is_behind_end(&self) -> bool {
        let frames = self.link.end.map(|end| end.saturating_sub(self.link.start).max(0) as u64);
        !self.jumped && frames.is_some_and(|frames| self.cursor - self.base >= frames)
    }

    /// How much of the recording is not there, where the container says reliably how long that is.
    fn missing(&self) -> Option<Duration> {
        // Those who cut MP3 and ADTS leave the length as it was; Ogg and Matroska tell none that is exact.
        let tells = matches!(
            self.container,
            Container::Flac | Container::Wav | Container::Aiff | Container::Caf | Container::Mp4
        );
        let rate = u64::from(self.link.format.rate);
        if !tells || self.jumped || rate == 0 {
            return None;
        }
        let said = self.link.frames?;
        let missing = said.saturating_sub(self.cursor.saturating_sub(self.base));
        // Who writes into a pipe cannot know the length and writes the largest that fits; half of it in some programs.
        let endless = said >= ENDLESS && !matches!(self.container, Container::Flac | Container::Mp4);
        let missing = Duration::from_millis(missing.saturating_mul(1_000) / rate);
        (missing >= MISSED && !endless).then_some(missing)
    }

    fn note_loss(&mut self, reason: String) -> Result<(), DecodeError> {
        self.lost += 1;
        self.lost_in_row += 1;
        if self.lost_in_row.is_multiple_of(LOST_ANEW) && self.source.is_endless() {
            // A station may change its rate in mid-stream, which a decoder does not follow.
            self.link.begin_codec_anew()?;
        }
        if self.lost_in_row >= LOST_LIMIT {
            return Err(DecodeError::Damaged { lost: self.lost_in_row, reason });
        }
        Ok(())
    }

    /// Makes pending what is wanted of the frames just decoded.
    fn take(&mut self, raw: i64, frames: usize, trim_end: u64) {
        let link = &self.link;
        let raw_end = raw.saturating_add(frames as i64).saturating_sub_unsigned(trim_end);
        let raw_end = link.end.map_or(raw_end, |end| end.min(raw_end));
        // As numbers of frames of the track; negative for priming.
        let number = |raw: i64| raw.saturating_sub(link.start).saturating_add_unsigned(self.base);
        let (first, end) = (number(raw), number(raw_end));
        let wanted = i64::try_from(self.want.max(self.base)).unwrap_or(i64::MAX);

        if !self.jumped && first > self.cursor as i64 && first > wanted {
            let gap = first - (self.cursor as i64).max(wanted);
            let samples = (gap as usize).saturating_mul(link.format.channels.into());
            if gap <= i64::from(link.format.rate) && samples <= MOST_SILENCE {
                self.pending.resize(self.pending.len() + samples, 0);
            }
        }
        self.jumped = false;
        let from = first.max(wanted);
        if from < end {
            let (from, to) = ((from - first) as usize, (end - first) as usize);
            samples::append(&link.decoded(), from, to, link.gain, &mut self.pending);
        }
        self.cursor = end.max(0) as u64;
        self.want = self.want.max(self.cursor);
    }

    fn pending_frames(&self) -> usize {
        self.pending.len() / usize::from(self.link.format.channels).max(1)
    }
}
