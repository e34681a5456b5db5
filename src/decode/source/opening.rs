//! What is at the beginning of a track, and of each recording that follows in the same input.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Decoder;
use crate::decode::error::DecodeError;
use crate::decode::input::{Hints, Input, Source};
use crate::decode::link::Link;
use crate::decode::quirks::{caf, mkv, mp4, pictures};
use crate::decode::registry::{self, Container, Reader};
use crate::decode::tags::{self, Tags};

/// An input that cannot seek is searched for its MP4 index so far, in bytes; it must be read again after.
const FORWARD_SCAN: u64 = 128 * 1024;

impl Decoder {
    pub(super) fn open_unguarded(input: Box<dyn Input>, hints: &Hints) -> Result<Decoder, DecodeError> {
        let source = Source::new(input);
        let seekable = Arc::new(AtomicBool::new(false));
        let (mut reader, container, layout) = open_reader(&source, hints, &seekable)?;
        let tags = tags::read(reader.as_mut());
        let mut link = Link::new(reader.as_ref(), container, &layout, &tags)?;
        let mut estimate = estimate(&reader, &link);
        if source.is_endless() {
            link.forget_end();
            estimate = None;
        }
        let mut decoder = Decoder {
            built_seekable: seekable.load(Ordering::Relaxed),
            source,
            seekable,
            container,
            layout,
            reader,
            link,
            entangled: false,
            chained: false,
            links_before: 0,
            base: 0,
            tags,
            estimate,
            cursor: 0,
            want: 0,
            jumped: true,
            guessed: false,
            torn: None,
            stretch: None,
            held: None,
            pending: Vec::new(),
            ended: false,
            broken: false,
            lost_in_row: 0,
            lost: 0,
        };
        if container == Container::Mkv {
            decoder.source.keep_window();
        }
        if !decoder.fill()? {
            if decoder.lost > 0 {
                let reason = "nothing of it could be decoded".to_owned();
                return Err(DecodeError::Damaged { lost: decoder.lost_in_row, reason });
            }
            let found = if decoder.layout.caf.is_open {
                "it is cut short: where its packets are is told behind them"
            } else {
                "it holds no sound"
            };
            return Err(DecodeError::NotAudio { found: found.to_owned() });
        }
        decoder.seekable.store(true, Ordering::Relaxed);
        Ok(decoder)
    }

    /// Another stream follows in the same file or radio connection.
    pub(super) fn next_link(&mut self) -> Result<(), DecodeError> {
        let tags = tags::read_new(self.reader.as_mut());
        self.chained = true;
        self.go_on_in_link(tags)
    }

    /// Another recording follows in the same input, perhaps in another container.
    pub(super) fn begin_stretch(&mut self, hints: &Hints) -> Result<(), DecodeError> {
        self.seekable.store(false, Ordering::Relaxed);
        (self.reader, self.container, self.layout) = open_reader(&self.source, hints, &self.seekable)?;
        if self.container == Container::Mkv {
            self.source.keep_window();
        }
        self.lost_in_row = 0;
        let tags = tags::read(self.reader.as_mut());
        self.go_on_in_link(tags)
    }

    fn go_on_in_link(&mut self, tags: Tags) -> Result<(), DecodeError> {
        self.link = Link::new(self.reader.as_ref(), self.container, &self.layout, &tags)?;
        if self.source.is_endless() {
            self.link.forget_end();
        }
        self.tags = tags;
        self.base = self.cursor;
        self.links_before += 1;
        self.estimate = None;
        self.jumped = true;
        Ok(())
    }
}

/// Finds out what the bytes are. Where they end before that is known and others follow, those are looked at.
pub(in crate::decode) fn open_reader(
    source: &Source,
    hints: &Hints,
    seekable: &Arc<AtomicBool>,
) -> Result<(Reader, Container, mp4::Layout), DecodeError> {
    let mut hints = hints.clone();
    loop {
        let opened =
            scan_head(source, seekable).and_then(|layout| match registry::open(source, &hints, seekable) {
                Ok(opened) => Ok((opened, layout)),
                Err(DecodeError::Unsupported { .. }) if layout.index_unseen && !source.is_seekable() => {
                    Err(DecodeError::NeedsSeeking)
                }
                Err(error) => Err(error),
            });
        match opened {
            Ok(((reader, container), layout)) => {
                source.stop_recording();
                return Ok((reader, container, layout));
            }
            Err(error @ DecodeError::Input(_)) => return Err(error),
            Err(error) => hints = source.next_stretch().ok_or(error)?,
        }
    }
}

/// Looks into an MP4 or Matroska file before the demuxer does; anything else gives an empty layout.
fn scan_head(source: &Source, seekable: &Arc<AtomicBool>) -> Result<mp4::Layout, DecodeError> {
    let limit = (!source.is_seekable()).then_some(FORWARD_SCAN);
    let mut layout = mp4::scan(&mut source.handle(seekable), limit).map_err(|told| source.cause(told))?;
    layout.mkv = mkv::scan(&mut source.handle(seekable), limit).map_err(|told| source.cause(told))?;
    let mut masks =
        pictures::masks(&mut source.handle(seekable), limit).map_err(|told| source.cause(told))?;
    let is_caf = caf::is_caf(&mut source.handle(seekable)).map_err(|told| source.cause(told))?;
    if let Some(len) = source.len().filter(|_| is_caf) {
        (layout.caf, masks) =
            caf::scan(&mut source.handle(seekable), len).map_err(|told| source.cause(told))?;
    }
    source.mask(masks);
    source.claim(layout.media_end.or(layout.mkv.end));
    // A CAF is looked through to its end before it sounds.
    if (layout.index_behind || is_caf) && !source.is_seekable() {
        return Err(DecodeError::NeedsSeeking);
    }
    Ok(layout)
}

fn estimate(reader: &Reader, link: &Link) -> Option<Duration> {
    let track = reader.tracks().iter().find(|track| track.id == link.track_id);
    let timed = |tb: Option<symphonia::core::units::TimeBase>, ticks: Option<u64>| {
        let (tb, ticks) = (tb?, ticks.filter(|&ticks| ticks > 0)?);
        let seconds = ticks as f64 * f64::from(tb.numer.get()) / f64::from(tb.denom.get());
        Duration::try_from_secs_f64(seconds).ok()
    };
    let media = reader.media_info();
    track
        .and_then(|track| timed(track.time_base, track.duration.map(|d| d.get())))
        .or_else(|| timed(media.time_base, media.duration.map(|d| d.get())))
}
