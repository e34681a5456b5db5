//! Jumps within a track.

use std::sync::atomic::Ordering;

use symphonia::core::formats::{SeekMode, SeekTo};
use symphonia::core::units::Timestamp;

use super::{Decoder, Landed};
use crate::decode::error::DecodeError;
use crate::decode::link::Link;
use crate::decode::quirks::ogg;
use crate::decode::registry::{self, Container, Reader};
use crate::decode::tags;

/// FLAC is searched by bisection, which takes at most 50 steps in the largest file there can be.
const MOST_SEEKS: u32 = 100;
/// The demuxers make packets of so many frames of bare samples.
const LONGEST_OF_PCM: i64 = 1152;

impl Decoder {
    /// Remembers where to go on if the input fails on the way.
    pub(super) fn seek_or_tear(&mut self, frame: u64) -> Result<Landed, DecodeError> {
        let landed = self.seek_unguarded(frame);
        match landed {
            Ok(_) => self.torn = None,
            Err(DecodeError::Input(_)) => self.torn = Some(frame),
            Err(_) => {}
        }
        landed
    }

    fn seek_unguarded(&mut self, frame: u64) -> Result<Landed, DecodeError> {
        let next = self.position();
        let rate = u64::from(self.link.format.rate);
        let is_near = frame >= next && frame - next < rate;
        if self.total_frames().is_some_and(|total| frame >= total) {
            self.pending.clear();
            self.ended = true;
            self.cursor = self.total_frames().unwrap_or(frame);
            self.want = self.cursor;
        } else if !self.ended
            && self.torn.is_none()
            && (is_near || frame >= next && !self.source.is_seekable())
        {
            self.drop_pending(frame, next);
        } else if !self.ended && frame >= next && !self.source.is_seekable() {
            self.find_the_way(frame)?;
        } else if !self.source.is_seekable() {
            return Err(DecodeError::ForwardOnly);
        } else {
            self.pending.clear();
            self.jump(frame)?;
        }
        self.fill()?;
        let frame = self.position();
        Ok(Landed { frame, exact: self.link.is_sure() && !self.guessed })
    }

    /// Reads on to a frame that lies ahead.
    fn drop_pending(&mut self, frame: u64, next: u64) {
        let ahead = usize::try_from(frame - next).unwrap_or(usize::MAX);
        let samples = ahead.saturating_mul(usize::from(self.link.format.channels));
        self.pending.drain(..samples.min(self.pending.len()));
        self.want = self.want.max(frame);
    }

    /// Reads on to a frame that lies ahead in what only runs forward, where the last reading broke off in the middle of a
    /// packet.
    fn find_the_way(&mut self, frame: u64) -> Result<(), DecodeError> {
        let raw_of = |frame: u64| self.link.start.saturating_add_unsigned(frame.saturating_sub(self.base));
        let raw = raw_of(frame);
        let mut targets = vec![raw.saturating_sub(self.link.warm_up()), raw];
        if self.link.is_pcm() {
            // Bare samples are only found by the demuxer's own arithmetic, from its next packet on. At the furthest it
            // has come to where it was sent.
            let sent = raw_of(self.torn.unwrap_or(frame));
            targets.extend([raw, sent].map(|raw| raw.saturating_add(2 * LONGEST_OF_PCM)));
        }
        for target in targets {
            if self.send_reader(self.link.to_timestamp(target))?.is_some() {
                break;
            }
        }
        // These only count, and a packet may be missing.
        self.guessed |= matches!(self.container, Container::Mpeg | Container::Adts);
        self.want = frame;
        Ok(())
    }

    /// Leaves the first wanted packet pending, or stands at the end.
    fn jump(&mut self, frame: u64) -> Result<(), DecodeError> {
        if self.jump_by_index(frame)? || self.jump_by_count(frame)? {
            return Ok(());
        }
        let must_build = self.ended
            || self.torn.is_some()
            || self.links_before > 0
            // It was built in the middle, and numbers what it gives from there.
            || self.link.shift != 0
            || self.container.stays_forward_only() && !self.built_seekable;
        if must_build {
            self.rebuild()?;
        }
        let mut at_start = must_build;
        self.want = frame;
        if let Some(total) = self.total_frames().filter(|&total| frame >= total) {
            (self.ended, self.cursor, self.want) = (true, total, total);
            return Ok(());
        }
        let raw = self.link.start.saturating_add_unsigned(frame);
        let floor = self.link.origin.unwrap_or(self.link.start);
        let (warm_up, rate) = (self.link.warm_up(), i64::from(self.link.format.rate));
        for early in [warm_up, 4 * warm_up + rate, 10 * rate] {
            let target = raw.saturating_sub(early);
            if self.entangled || target <= floor {
                break;
            }
            at_start = false;
            if !self.try_jump(frame, target)? {
                break;
            }
            let warm = raw.saturating_sub(warm_up / 2);
            if self.links_before == 0 && self.link.landed.is_some_and(|landed| landed <= warm) {
                return Ok(());
            }
        }
        if !at_start {
            // From the beginning it always works.
            self.rebuild()?;
            self.want = frame;
        }
        Ok(())
    }

    /// Lets the demuxer jump to raw frame `target` and reads up to `frame`; false if that is not possible.
    fn try_jump(&mut self, frame: u64, target: i64) -> Result<bool, DecodeError> {
        if self.send_reader(self.link.to_timestamp(target))?.is_none() {
            return Ok(false);
        }
        self.want = frame;
        self.fill()
    }

    /// Lets the demuxer jump to about this time, and forgets what was before. Returns where it says to have landed; `None`
    /// if that is not possible.
    pub(super) fn send_reader(&mut self, ts: Timestamp) -> Result<Option<i64>, DecodeError> {
        // In its table of packets the demuxer of CAF takes the place behind the present one for that from the beginning.
        let has_table = self.container == Container::Caf && !self.link.is_pcm();
        if self.source.is_seekable() && (self.layout.mkv.laced || has_table) {
            self.rebuild()?;
        }
        let to = SeekTo::Timestamp { ts, track_id: self.link.track_id };
        // By a damaged seek table symphonia looks between an end and a beginning behind it, for ever.
        self.source.limit_seeks((self.container == Container::Flac).then_some(MOST_SEEKS));
        let sought = self.reader.seek(SeekMode::Accurate, to);
        self.source.limit_seeks(None);
        if let Some(failure) = self.source.take_failure() {
            return Err(DecodeError::Input(failure));
        }
        let Ok(sought) = sought else { return Ok(None) };
        self.link.reset();
        self.held = None;
        (self.jumped, self.ended) = (true, false);
        self.pending.clear();
        Ok(Some(sought.actual_ts.get()))
    }

    /// Whether an Ogg file holds more than one stream.
    pub(super) fn is_entangled(&self, reader: &Reader) -> Result<bool, DecodeError> {
        if self.container != Container::Ogg {
            return Ok(false);
        }
        let serials: Vec<u32> = reader.tracks().iter().map(|track| track.id).collect();
        let Some(len) = self.source.len() else { return Ok(true) };
        if self.chained || serials.len() != 1 {
            return Ok(true);
        }
        let mut file = self.source.handle(&self.seekable);
        let chained = ogg::is_chained(&mut file, len, &serials, self.source.is_at_hand());
        chained.map_err(|told| self.source.cause(told))
    }

    /// Begins at the track's first byte with a new reader.
    pub(super) fn rebuild(&mut self) -> Result<(), DecodeError> {
        if self.container == Container::Mkv {
            self.source.mask_mkv();
        }
        // As at first, where it learns to seek afterwards: in a file that is cut short, some look for what is not there.
        let seekable = self.container.opens_seekable() || self.container.stays_forward_only();
        self.seekable.store(seekable, Ordering::Relaxed);
        let reader = registry::open_as(self.container, self.source.handle(&self.seekable));
        self.seekable.store(true, Ordering::Relaxed);
        if let Some(failure) = self.source.take_failure() {
            return Err(DecodeError::Input(failure));
        }
        self.reader = reader.map_err(|e| DecodeError::Damaged { lost: 0, reason: e.to_string() })?;
        self.tags = tags::read(self.reader.as_mut());
        let link = Link::new(self.reader.as_ref(), self.container, &self.layout, &self.tags)?;
        let known = std::mem::replace(&mut self.link, link);
        if self.links_before == 0 {
            self.link.remember(known);
        }
        self.entangled = self.is_entangled(&self.reader)?;
        self.link.frames = self.link.frames.filter(|_| !self.entangled);
        self.built_seekable = true;
        (self.links_before, self.base, self.cursor, self.want) = (0, 0, 0, 0);
        (self.jumped, self.guessed, self.ended, self.held) = (true, false, false, None);
        (self.torn, self.pending) = (None, Vec::new());
        Ok(())
    }
}
