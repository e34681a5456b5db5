//! AAC whose container tells another rate than its decoder gives: of HE-AAC, which has a lower half that is AAC-LC at
//! half the rate, some tell that of the whole and some that of the half.

use symphonia::core::codecs::audio::well_known as id;
use symphonia::core::packet::Packet;
use symphonia::core::units::Duration;

use super::{Link, Outcome};
use crate::decode::registry::Container;

impl Link {
    /// The decoder gives this rate. Returns the packet's label at it.
    pub(super) fn be_at(&mut self, rate: u32, packet: &Packet) -> i64 {
        let old = u64::from(self.format.rate.max(1));
        self.format.rate = rate;
        if self.origin.is_none() && self.codec_id == id::CODEC_ID_AAC {
            match self.container {
                Container::Mp4 => self.place_mp4(),
                _ => {
                    let anew = |frames: u64| frames.saturating_mul(u64::from(rate)) / old;
                    self.start = anew(self.start.max(0) as u64) as i64;
                    self.end = self.end.map(|end| anew(end.max(0) as u64) as i64);
                    self.frames = self.frames.map(anew);
                }
            }
        }
        self.label(packet)
    }

    /// Takes what an earlier link of the same recording found out by its first packet, since the next one may be
    /// another.
    pub(in crate::decode) fn remember(&mut self, known: Link) {
        (self.start, self.origin, self.blocks) = (known.start, known.origin, known.blocks);
        self.packet_frames = known.packet_frames;
        if self.format.rate == known.format.rate {
            self.frames = self.frames.or(known.frames);
        } else {
            (self.format.rate, self.end, self.frames) = (known.format.rate, known.end, known.frames);
        }
    }

    /// How many frames there are for each that the stream says to have: two where a decoder makes the upper half of
    /// HE-AAC.
    pub(in crate::decode) fn doubling(&self) -> i64 {
        if self.codec_id == id::CODEC_ID_AAC && self.packet_frames > 1024 { 2 } else { 1 }
    }

    /// Frames that the decoder keeps back until more comes.
    pub(in crate::decode) fn kept_back(&self) -> usize {
        usize::try_from(self.lag.frames()).unwrap_or(0)
    }

    /// After the last packet: at most `left` of the frames that were kept back.
    pub(in crate::decode) fn drain(&mut self, left: usize) -> Outcome {
        let Some(raw) = self.raw_next else { return Outcome::Nothing };
        let empty = Packet::new(self.track_id, self.to_timestamp(raw), Duration::ZERO, Vec::new());
        let Ok(decoded) = self.codec.decode(&empty) else { return Outcome::Nothing };
        let frames = decoded.frames();
        self.raw_next = Some(raw.saturating_add(frames as i64));
        Outcome::Sound { raw, frames, trim_end: frames.saturating_sub(left) as u64 }
    }
}
