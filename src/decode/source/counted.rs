//! Jumps in containers that tell only about when a packet begins, by counting.

use symphonia::core::units::Timestamp;

use super::Decoder;
use crate::decode::blocks::{Lengths, Note};
use crate::decode::error::DecodeError;

/// So many bytes of packets are read through, where they are at hand, to count what they hold.
const WALK_AT_MOST: usize = 32 * 1024 * 1024;

impl Decoder {
    /// Leaves the first wanted packet pending, or stands at the end; false where counting does not reach.
    pub(super) fn jump_by_count(&mut self, frame: u64) -> Result<bool, DecodeError> {
        if self.link.blocks.is_none() || self.links_before > 0 {
            return Ok(false);
        }
        // After its end this demuxer fails or hangs, and one that was built to run forward never learns to seek.
        if self.ended || self.torn.is_some() || !self.built_seekable {
            self.rebuild()?;
        }
        let raw = self.link.start.saturating_add_unsigned(frame);
        self.count_up_to(raw)?;
        let Some(blocks) = self.link.blocks.as_ref().filter(|blocks| blocks.know(raw)) else {
            return Ok(false);
        };
        // Behind the end the last packet is played, since only that tells how much of it is sound.
        let wanted = blocks.end().map_or(raw, |end| raw.min(end - 1));
        match blocks.before(wanted.saturating_sub(self.link.warm_up())) {
            Some(note) if self.send_to(note)? => {}
            _ => self.rebuild()?,
        }
        self.want = frame;
        self.fill()?;
        Ok(true)
    }

    /// Lets the demuxer jump to a block that was noted; those before it are passed over.
    fn send_to(&mut self, note: Note) -> Result<bool, DecodeError> {
        let sent = self.send_to_block(note.ts)?;
        if let Some(blocks) = self.link.blocks.as_mut().filter(|_| sent) {
            blocks.wait_for(Some(note));
        }
        Ok(sent)
    }

    /// Lets the demuxer jump to the block of this time. Without cues it knows no way back, but says that it went.
    fn send_to_block(&mut self, ts: i64) -> Result<bool, DecodeError> {
        if self.send_reader(Timestamp::new(ts))?.is_some_and(|landed| landed <= ts) {
            return Ok(true);
        }
        self.rebuild()?;
        Ok(self.send_reader(Timestamp::new(ts))?.is_some())
    }

    /// Counts on over packets that are at hand, without decoding them, until a raw frame is behind.
    fn count_up_to(&mut self, raw: i64) -> Result<(), DecodeError> {
        let Some(blocks) = self.link.blocks.as_ref().filter(|b| b.may_grow() && !b.know(raw)) else {
            return Ok(());
        };
        let (Some(from), Some(lengths)) = (blocks.before(i64::MAX), self.link.lengths()) else {
            return Ok(());
        };
        if !self.source.is_at_hand() || !self.send_to_block(from.ts)? {
            return Ok(());
        }
        let counted = self.count(from, lengths, raw);
        if let Some(failure) = self.source.take_failure() {
            return Err(DecodeError::Input(failure));
        }
        // After the end the demuxer would hang.
        if counted.is_none() { self.rebuild() } else { Ok(()) }
    }

    /// None if there are no more packets.
    fn count(&mut self, from: Note, mut lengths: Lengths, raw: i64) -> Option<()> {
        let (mut end, mut read) = (None, 0);
        while read < WALK_AT_MOST && end.is_none_or(|end| end <= raw) {
            let packet = match self.reader.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => {
                    self.link.blocks.as_mut().filter(|_| end.is_some())?.finish();
                    return None;
                }
                Err(_) => return None,
            };
            // Pictures count, too: they are read like the rest.
            read += packet.data.len();
            if packet.track_id != self.link.track_id {
                continue;
            }
            let ts = packet.pts.get();
            let frames = lengths.next(&packet.data);
            end = match (end, frames) {
                (None, _) if ts < from.ts => None,
                (None, _) if ts == from.ts => Some(from.end),
                (Some(end), Some(frames)) if !self.link.is_gap(ts, end) => {
                    let end = end + i64::from(frames);
                    self.link.blocks.as_mut()?.pass(Note { ts, end }, frames);
                    Some(end)
                }
                // It landed behind its target, or what comes cannot be counted.
                (None, _) => return Some(()),
                (Some(_), _) => {
                    self.link.blocks.as_mut()?.tear();
                    return Some(());
                }
            };
        }
        Some(())
    }
}
