//! Jumps in formats without an index of their own, by the one that was made while their bytes passed.

use std::io::Read;

use super::Decoder;
use crate::decode::error::DecodeError;
use crate::decode::input::Source;
use crate::decode::mpeg::{Entrance, Index};
use crate::decode::registry;

/// So many bytes are read through, where they are at hand, to be sure where a frame is.
const WALK_AT_MOST: u64 = 32 * 1024 * 1024;
/// In so many bytes there is a frame, wherever they begin, unless it is none of this recording.
const SEARCHED: u64 = 16 * 1024;
/// So much may stand between two frames: the tag of a piece that was put in, with its picture.
const BETWEEN: u64 = 2 * 1024 * 1024;

/// What an index says about a frame.
enum Found {
    At(Entrance),
    /// It is behind the last one; so many there are, if that is known.
    BehindTheEnd(Option<u64>),
    /// The index is of no use.
    Nowhere,
}

impl Decoder {
    /// Leaves the first wanted packet pending, or stands at the end; false where there is no index.
    pub(super) fn jump_by_index(&mut self, frame: u64) -> Result<bool, DecodeError> {
        let Some(mut index) = self.source.take_index() else { return Ok(false) };
        let doubling = self.link.doubling() as u64;
        let samples = index.samples().unwrap_or(0) * doubling;
        // The index leads to as much in front as codecs need, but for HE-AAC.
        let early = if doubling > 1 { self.link.warm_up().unsigned_abs() } else { 0 };
        let found = match samples {
            0 => Ok(Found::Nowhere),
            samples => {
                let wanted = (frame.saturating_sub(early) + self.link.delay) / samples;
                find(&self.source, &mut index, wanted)
            }
        };
        self.source.set_index(Some(index));
        match found.map_err(|told| self.source.cause(told))? {
            Found::Nowhere => Ok(false),
            Found::BehindTheEnd(end) => {
                let last = end.map(|frames| (frames * samples).saturating_sub(self.link.delay));
                let end = last.unwrap_or(frame).min(self.total_frames().unwrap_or(u64::MAX));
                (self.ended, self.cursor, self.want, self.guessed) = (true, end, end, last.is_none());
                Ok(true)
            }
            Found::At(entrance) => self.enter(entrance, samples, frame),
        }
    }

    fn enter(&mut self, entrance: Entrance, samples: u64, frame: u64) -> Result<bool, DecodeError> {
        let reader = registry::enter(self.container, self.source.handle_at(entrance.byte));
        if let Some(failure) = self.source.take_failure() {
            return Err(DecodeError::Input(failure));
        }
        let Ok(reader) = reader else { return Ok(false) };
        self.reader = reader;
        self.link.reset();
        let first = entrance.frame.saturating_mul(samples);
        self.link.shift = i64::try_from(first).unwrap_or(i64::MAX).saturating_sub_unsigned(self.link.delay);
        (self.held, self.torn) = (None, None);
        (self.jumped, self.guessed, self.ended, self.want) = (true, !entrance.exact, false, frame);
        self.pending.clear();
        self.fill()?;
        Ok(true)
    }
}

/// Where to read on for a frame of the format.
fn find(source: &Source, index: &mut Index, wanted: u64) -> std::io::Result<Found> {
    if !index.knows(wanted)
        && let (Some(from), Some(guess)) = (index.wants(), index.entrance(wanted))
    {
        let needed = guess.byte.saturating_add(SEARCHED).min(source.len().unwrap_or(u64::MAX));
        if needed.saturating_sub(from) <= WALK_AT_MOST && source.at_hand(from) >= needed {
            index.walk(&mut source.handle_at(from), wanted)?;
        }
    }
    if let Some(total) = index.total(source.len()).filter(|total| wanted >= *total) {
        return Ok(Found::BehindTheEnd(Some(total)));
    }
    let Some(entrance) = index.entrance(wanted) else { return Ok(Found::Nowhere) };
    if entrance.exact {
        return Ok(Found::At(entrance));
    }
    Ok(match search(source, index, entrance.byte)? {
        Searched::Frame(byte) => Found::At(Entrance { byte, ..entrance }),
        Searched::Nothing => Found::BehindTheEnd(None),
        Searched::Other => Found::Nowhere,
    })
}

enum Searched {
    /// It begins at this byte.
    Frame(u64),
    /// There are no bytes.
    Nothing,
    /// There are bytes, but none of a frame.
    Other,
}

/// Looks for a frame at or behind a byte.
fn search(source: &Source, index: &Index, from: u64) -> std::io::Result<Searched> {
    let mut handle = source.handle_at(from);
    let (mut bytes, mut at) = (Vec::new(), from);
    while at - from < BETWEEN {
        let n = handle.by_ref().take(SEARCHED).read_to_end(&mut bytes)?;
        if let Some(skip) = index.find(&bytes) {
            return Ok(Searched::Frame(at + skip as u64));
        }
        if n == 0 {
            break;
        }
        // A frame may have begun in what was there, and be seen only with the one behind it.
        let over = bytes.len().saturating_sub(SEARCHED as usize);
        bytes.drain(..over);
        at += over as u64;
    }
    Ok(if at == from && bytes.is_empty() { Searched::Nothing } else { Searched::Other })
}
