//! A track's end, held back so that the next one can be faded into it, if a person wants that.
//!
//! Nothing else tells so early that an end is near: what is held back goes to the ring as soon as that has little left,
//! so that no sound waits for a fade. The fade is then as long as what is still here.

use std::time::Duration;

use super::processing::Conversion;
use super::work::{Stage, Work};
use crate::dsp::{Crossfade, Settings, fade_frames};
use crate::output::{CardFormat, PcmWriter};
use crate::playback::open::OpenTrack;
use crate::track::SourceFormat;

/// A fade from the track before, and what the card runs at.
pub(super) struct Fade {
    mix: Crossfade,
    to: CardFormat,
}

impl Fade {
    /// All of it is mixed.
    pub(super) fn is_done(&self) -> bool {
        self.mix.is_done()
    }
}

impl Work {
    /// Samples that are ready for the ring and not in it.
    pub(super) fn waiting(&self) -> usize {
        self.tail.len() + self.ready.len() - self.written
    }

    /// The same in frames.
    pub(super) fn waiting_frames(&self) -> u64 {
        let channels = self.conversion.as_ref().map_or(1, |made| usize::from(made.to.channels).max(1));
        (self.waiting() / channels) as u64
    }

    /// So many of these samples are to be held back, at most.
    pub(super) fn hold(&self, sound: &Settings) -> usize {
        if sound.crossfade.is_zero() || self.released || self.track.stream.is_live() {
            return 0;
        }
        let Some(Conversion { from, to, .. }) = &self.conversion else { return 0 };
        // Where the length is known, only its end is held back.
        let source = fade_frames(sound.crossfade, from.rate, 1) as u64;
        let far = |total: u64| self.track.decoder.position().saturating_add(source) < total;
        if self.track.decoder.total_frames().is_some_and(far) {
            return 0;
        }
        fade_frames(sound.crossfade, to.rate, to.channels) * usize::from(to.channels)
    }

    /// So many samples are to go to the ring now.
    pub(super) fn is_due(&self, sound: &Settings, writer: &PcmWriter) -> usize {
        let (waiting, hold) = (self.waiting(), self.hold(sound));
        if waiting > hold || waiting == 0 {
            return waiting.saturating_sub(hold);
        }
        let (room, capacity) = (writer.room(), writer.capacity());
        let frames = match self.stage {
            // No format is ready: it is asked for.
            _ if capacity == 0 => return waiting,
            Stage::AtEnd if room * 2 >= capacity => room,
            Stage::AtEnd => 0,
            _ if room * 4 > capacity * 3 => room - capacity / 2,
            _ => 0,
        };
        let channels = self.conversion.as_ref().map_or(1, |made| usize::from(made.to.channels).max(1));
        waiting.min(frames * channels)
    }

    /// Moves what has become ready behind what is held back, if anything is or is to be.
    pub(super) fn hold_back(&mut self, sound: &Settings) {
        let hold = self.hold(sound);
        if hold > 0 || !self.tail.is_empty() {
            self.tail.reserve_exact((hold + self.ready.len()).saturating_sub(self.tail.len()));
            self.keep_ready();
        }
    }

    /// Makes room for what becomes ready now. All is in the ring by now but where some has just begun to be held back.
    pub(super) fn keep_ready(&mut self) {
        self.tail.extend(&self.ready[self.written..]);
        self.ready.clear();
        self.written = 0;
    }

    /// What goes to the ring next, in whole frames.
    pub(super) fn front(&mut self, channels: usize) -> &[i32] {
        if self.tail.is_empty() {
            return &self.ready[self.written..];
        }
        if self.tail.as_slices().0.len() < channels {
            self.tail.make_contiguous();
        }
        let front = self.tail.as_slices().0;
        &front[..front.len() / channels * channels]
    }

    /// So many samples of that, of these channels, are in the ring now.
    pub(super) fn gave(&mut self, samples: usize, channels: usize) {
        if self.tail.is_empty() {
            self.written += samples;
        } else {
            self.tail.drain(..samples);
        }
        let frames = (samples / channels) as u64;
        self.before_mark = self.before_mark.saturating_sub(frames);
        if let Some((before, _)) = &mut self.fade_end {
            *before = before.saturating_sub(frames);
        }
    }

    /// Mixes what has become ready with the end of the track before.
    pub(super) fn cross_fade(&mut self, to: CardFormat) {
        // The card was set up anew: the end of the track before is of no use any more.
        self.fade.take_if(|fade| fade.to != to);
        let Some(Fade { mix, .. }) = self.fade.as_mut().filter(|fade| !fade.mix.is_done()) else { return };
        let mixed = mix.mix(&mut self.ready) + self.tail.len() / usize::from(to.channels).max(1);
        if mix.is_done() {
            self.fade_ends_behind(mixed as u64);
        }
    }

    /// So many frames go to the ring before the fade is over.
    fn fade_ends_behind(&mut self, frames: u64) {
        let Some(Fade { mix, to }) = &self.fade else { return };
        let (length, rate) = (mix.length() as u64, u64::from(self.track.decoder.format().rate));
        let frame = self.track.start_frame + length * rate / u64::from(to.rate).max(1);
        self.fade_end = Some((frames, frame));
    }

    /// Sound of the track before is still to be mixed.
    pub(super) fn is_mixing(&self) -> bool {
        self.fade.as_ref().is_some_and(|fade| !fade.mix.is_done())
    }

    /// Nothing more comes to be mixed: the track before fades out alone.
    pub(super) fn fade_out(&mut self, sound: &Settings) {
        self.keep_ready();
        if let Some(fade) = &mut self.fade {
            fade.mix.finish(&mut self.ready);
        }
        self.hold_back(sound);
        // Its own mark may not be set yet, and tells what is done to it.
        self.fade_ends_behind(self.waiting_frames());
    }

    /// Whether the next track is to be faded into what is held back of this one, and not joined.
    pub(super) fn fades_into(&self, next: &OpenTrack, sound: &Settings, writer: &PcmWriter) -> bool {
        let Some(Conversion { from, to, .. }) = &self.conversion else { return false };
        let twice = 2 * sound.crossfade;
        let long_enough = |frames: u64, format: &SourceFormat| format.time_of(frames) >= twice;
        let decoder = &next.decoder;
        let next_is = decoder.total_frames().map(|frames| decoder.format().time_of(frames));
        let next_is = next_is.or(decoder.tags().duration);
        !sound.crossfade.is_zero()
            && !self.tail.is_empty()
            && !self.released
            && !self.track.stream.is_live()
            && !next.stream.is_live()
            && !next.place.continues_album
            // It goes on where another opening broke off.
            && next.start_frame == 0
            && long_enough(self.track.decoder.position(), from)
            && next_is.is_none_or(|length: Duration| length >= twice)
            && writer.card() == Some(*to)
            && writer.joins(&decoder.format())
    }

    /// Begins to fade it into the end of the track before, which is taken from that.
    pub(super) fn fade_from(&mut self, before: &mut Work) {
        let Some(Conversion { to, .. }) = &before.conversion else { return };
        let tail = Vec::from(std::mem::take(&mut before.tail));
        self.fade = Some(Fade { mix: Crossfade::new(tail, to.channels), to: *to });
    }

    /// It is to be heard to its end again after this one, which was faded into it, is not to be heard.
    pub(super) fn restore(&mut self, instead_of: Work) {
        let Some(fade) = instead_of.fade else { return };
        let (from, frames) = (self.track.decoder.format(), fade.mix.length() as u64);
        let held = frames * u64::from(from.rate) / u64::from(fade.to.rate).max(1);
        self.unmarked = Some(self.track.decoder.position().saturating_sub(held));
        self.before_mark = 0;
        self.tail = fade.mix.into_tail().into();
    }
}
