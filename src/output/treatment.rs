//! What was done to samples before they came into the ring, and why the card does not get the source's own.

use super::format::{CardFormat, SourceFormat};

/// What was done to a track's samples, beside bringing them to the card's rate and channels. It travels with the
/// marks: what is said about it is about what is heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Treatment {
    /// ReplayGain, in hundredths of a dB.
    pub gain_cdb: i16,
    /// Both ears hear both channels.
    pub mono: bool,
    /// It fades into the next track, or out of the one before.
    pub crossfade: bool,
}

impl Treatment {
    /// Samples are as the decoder made them.
    pub const NONE: Treatment = Treatment { gain_cdb: 0, mono: false, crossfade: false };

    /// Packed into one word that others may read at any time.
    pub(super) fn word(self) -> u64 {
        u64::from(self.gain_cdb as u16) | u64::from(self.mono) << 16 | u64::from(self.crossfade) << 17
    }

    pub(super) fn from_word(word: u64) -> Treatment {
        Treatment { gain_cdb: word as u16 as i16, mono: word >> 16 & 1 != 0, crossfade: word >> 17 & 1 != 0 }
    }

    fn alteration(self) -> Option<String> {
        if self.crossfade {
            return Some("crossfade".into());
        }
        if self.gain_cdb != 0 {
            return Some(format!("ReplayGain {:+.2} dB", f32::from(self.gain_cdb) / 100.0));
        }
        self.mono.then(|| "mixed to mono".into())
    }
}

/// All that stands between a source's samples and the card.
pub(super) struct SoundPath<'a> {
    pub source: SourceFormat,
    pub treatment: Treatment,
    /// Of the software, as a factor.
    pub volume: f32,
    pub muted: bool,
    pub card: CardFormat,
    /// ALSA's name of it.
    pub device: &'a str,
    /// ALSA itself may convert.
    pub converts: bool,
}

impl SoundPath<'_> {
    /// Why what is heard is not what the decoder made, or None when it is bit for bit. (What a lossy codec left out
    /// was lost before; its decoder makes 32 bits.)
    pub fn alteration(&self) -> Option<String> {
        let (source, card) = (&self.source, &self.card);
        if self.muted {
            return Some("muted".into());
        }
        if self.volume != 1.0 {
            return Some(format!("software volume at {:.0} %", self.volume * 100.0));
        }
        if let Some(reason) = self.treatment.alteration() {
            return Some(reason);
        }
        if source.rate != card.rate {
            return Some(format!("the card runs at {} Hz", card.rate));
        }
        if source.channels != card.channels {
            return Some(format!("the card runs with {} channels", card.channels));
        }
        if source.bits > card.sample.bits() {
            return Some(format!("the card takes {} bits", card.sample.bits()));
        }
        self.converts.then(|| format!("the ALSA device “{}” may convert", self.device))
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::SampleFormat;
    use super::*;

    #[test]
    fn the_reason_names_what_alters_the_samples() {
        let source = SourceFormat { rate: 48_000, channels: 2, bits: 16, lossy: false };
        let card = CardFormat { rate: 48_000, channels: 2, sample: SampleFormat::S16 };
        let treatment = Treatment::NONE;
        let path = || SoundPath {
            source,
            treatment,
            volume: 1.0,
            muted: false,
            card,
            device: "hw:0",
            converts: false,
        };
        let why = |path: SoundPath<'_>| path.alteration().unwrap_or_default();
        assert_eq!(path().alteration(), None);
        assert_eq!(why(SoundPath { volume: 0.4, ..path() }), "software volume at 40 %");
        let slow = SourceFormat { rate: 44_100, ..source };
        assert_eq!(why(SoundPath { source: slow, ..path() }), "the card runs at 48000 Hz");
        let lossy = SourceFormat { bits: 32, lossy: true, ..source };
        assert_eq!(why(SoundPath { source: lossy, ..path() }), "the card takes 16 bits");
        let wide = CardFormat { sample: SampleFormat::S32, ..card };
        assert_eq!(SoundPath { source: lossy, card: wide, ..path() }.alteration(), None);
        let deep = SourceFormat { bits: 24, ..source };
        assert_eq!(why(SoundPath { source: deep, ..path() }), "the card takes 16 bits");
        let default = SoundPath { device: "default", converts: true, ..path() };
        assert_eq!(why(default), "the ALSA device “default” may convert");
        let quiet = Treatment { gain_cdb: -620, ..treatment };
        assert_eq!(why(SoundPath { treatment: quiet, ..path() }), "ReplayGain -6.20 dB");
        let mono = Treatment { mono: true, ..treatment };
        assert_eq!(why(SoundPath { treatment: mono, ..path() }), "mixed to mono");
    }

    #[test]
    fn a_treatment_fits_into_a_word() {
        for gain_cdb in [i16::MIN, -620, 0, 1, i16::MAX] {
            for (mono, crossfade) in [(false, true), (true, false)] {
                let treatment = Treatment { gain_cdb, mono, crossfade };
                assert_eq!(Treatment::from_word(treatment.word()), treatment);
            }
        }
    }
}
