//! A track's samples on their way from the decoder to the ring: what is done to them, and how that is told.

use super::work::{Stage, Work};
use crate::dsp::{Amplification, Chain, ConvertError, Settings};
use crate::output::{CardFormat, Treatment};
use crate::track::SourceFormat;

/// A chain and what it was made for.
pub(super) struct Conversion {
    pub(super) from: SourceFormat,
    pub(super) to: CardFormat,
    pub(super) chain: Chain,
}

impl Work {
    /// Brings what was decoded to the card's rate and channels, with what is to be done to it.
    pub(super) fn process(
        &mut self,
        from: SourceFormat,
        to: CardFormat,
        sound: &Settings,
    ) -> Result<(), ConvertError> {
        let fits = |conversion: &Conversion| conversion.from == from && conversion.to == to;
        if !self.conversion.as_ref().is_some_and(fits) {
            let mut chain = Chain::new(from, to.rate, to.channels, sound.mono)?;
            let Amplification { factor, .. } = self.amplification(sound);
            chain.set_gain(factor);
            self.conversion = Some(Conversion { from, to, chain });
        }
        self.sounded = true;
        self.keep_ready();
        if let Some(Conversion { chain, .. }) = &mut self.conversion {
            if chain.is_identity() {
                std::mem::swap(&mut self.ready, &mut self.pcm);
            } else {
                chain.process(&self.pcm, &mut self.ready);
            }
        }
        self.pcm.clear();
        self.cross_fade(to);
        self.hold_back(sound);
        Ok(())
    }

    /// Goes on with the chain of the track before, in the same format: what that holds back comes first.
    pub(super) fn join(&mut self, conversion: Conversion, sound: &Settings) {
        self.conversion = Some(conversion);
        self.begin_part(sound);
    }

    /// What comes from the decoder next is another recording, with loudness tags of its own.
    pub(super) fn begin_part(&mut self, sound: &Settings) {
        let Amplification { factor, .. } = self.amplification(sound);
        if let Some(Conversion { chain, .. }) = &mut self.conversion {
            chain.set_gain(factor);
            let held = chain.held();
            self.before_mark = self.waiting_frames() + held;
        }
    }

    /// Somebody wants it otherwise, from the next decoded frame on.
    pub(super) fn change_sound(&mut self, sound: &Settings) {
        let Amplification { factor, .. } = self.amplification(sound);
        let Some(Conversion { chain, from, to }) = &mut self.conversion else { return };
        if (chain.gain(), chain.is_mono()) == (factor, sound.mono) {
            return;
        }
        chain.ramp_gain(factor);
        chain.set_mono(sound.mono);
        let (from, to, held, ramp) = (*from, *to, chain.held(), chain.until_steady());
        if self.unmarked.is_none() {
            // Samples are not the source's own before the change is through.
            let ramp = if self.treatment(sound) == Treatment::NONE { ramp } else { 0 };
            let waiting = self.pcm.len() / usize::from(from.channels).max(1);
            self.unmarked = Some(self.track.decoder.position().saturating_sub(waiting as u64) + ramp);
            let ramp = ramp * u64::from(to.rate) / u64::from(from.rate).max(1);
            self.before_mark = self.waiting_frames() + held + ramp;
        }
    }

    /// It is at its end, and some of its sound is not in the ring yet.
    pub(super) fn is_unwritten_at_end(&self) -> bool {
        let at_end = matches!(self.stage, Stage::Ending | Stage::AtEnd);
        at_end && (self.holds_back() || self.waiting() > 0)
    }

    /// Frames of its sound are neither in the ring nor ready for it, and nothing more comes from its decoder.
    pub(super) fn holds_back(&self) -> bool {
        self.conversion.as_ref().is_some_and(|conversion| conversion.chain.held() > 0)
    }

    /// Nothing in the same format follows: gives out what the chain holds back.
    pub(super) fn finish(&mut self, sound: &Settings) {
        self.keep_ready();
        if let Some(Conversion { chain, to, .. }) = &mut self.conversion {
            chain.flush(&mut self.ready);
            let to = *to;
            self.cross_fade(to);
            self.hold_back(sound);
        }
    }

    /// What is done to the samples, for those who ask whether they are the source's own.
    pub(super) fn treatment(&self, sound: &Settings) -> Treatment {
        let Amplification { factor, db, .. } = self.amplification(sound);
        let cdb = (db * 100.0).round() as i16;
        let gain_cdb = if factor != 1.0 && cdb == 0 { 1 } else { cdb };
        let several = |channels: u16| channels > 1;
        let mixed = |conversion: &Conversion| {
            several(conversion.from.channels) && several(conversion.to.channels) && conversion.chain.is_mono()
        };
        Treatment {
            gain_cdb,
            mono: self.conversion.as_ref().is_some_and(mixed),
            crossfade: self.is_mixing() || self.fade_end.is_some(),
        }
    }

    fn amplification(&self, sound: &Settings) -> Amplification {
        sound.amplification(&self.track.decoder.loudness(), self.track.place.in_album)
    }
}
