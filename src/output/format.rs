//! Formats of sources and cards, and what stands between them.

use crate::dsp;
pub use crate::track::SourceFormat;

/// How one sample lies in the card's buffer. All little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleFormat {
    /// 32 bits in 4 bytes.
    S32,
    /// 24 bits in 3 bytes.
    S24_3,
    /// 24 bits in the low three bytes of 4.
    S24,
    /// 16 bits in 2 bytes.
    S16,
}

impl SampleFormat {
    /// In order of preference. No format has one before it that carries fewer bits, so the first that a card knows
    /// loses nothing whenever any does.
    pub const PREFERRED: [SampleFormat; 4] =
        [SampleFormat::S32, SampleFormat::S24_3, SampleFormat::S24, SampleFormat::S16];

    /// Bits that carry sound.
    pub fn bits(self) -> u16 {
        match self {
            SampleFormat::S32 => 32,
            SampleFormat::S24_3 | SampleFormat::S24 => 24,
            SampleFormat::S16 => 16,
        }
    }

    /// Bytes of one sample in the card's buffer.
    pub fn bytes(self) -> usize {
        match self {
            SampleFormat::S32 | SampleFormat::S24 => 4,
            SampleFormat::S24_3 => 3,
            SampleFormat::S16 => 2,
        }
    }

    /// ALSA's name, such as `S24_3LE`.
    pub fn name(self) -> &'static str {
        match self {
            SampleFormat::S32 => "S32_LE",
            SampleFormat::S24_3 => "S24_3LE",
            SampleFormat::S24 => "S24_LE",
            SampleFormat::S16 => "S16_LE",
        }
    }
}

/// What the card really runs at. Frames in the ring have this rate and these channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardFormat {
    /// Frames per second.
    pub rate: u32,
    /// Channels of the card's stream.
    pub channels: u16,
    /// How samples are written.
    pub sample: SampleFormat,
}

impl CardFormat {
    /// Frames of so many channels get there without being mixed: mono is doubled, stereo goes to the front.
    pub(super) fn keeps(&self, channels: u16) -> bool {
        dsp::keeps_samples(usize::from(channels), usize::from(self.channels))
    }
}

/// Rates that are asked of a card when it is opened.
pub(super) const RATES: [u32; 17] = [
    8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000, 176_400,
    192_000, 352_800, 384_000, 768_000,
];

/// What an open card can do, so that a format that needs no new set-up is recognised without asking it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abilities {
    /// One bit for each of `RATES`.
    pub rates: u32,
    pub channels: (u16, u16),
    pub sample: SampleFormat,
}

impl Abilities {
    fn has(&self, rate: u32) -> bool {
        RATES.iter().position(|r| *r == rate).is_some_and(|bit| self.rates & (1 << bit) != 0)
    }

    /// The format in which this card should run for `source`; None where only the card itself can say.
    pub fn choose(&self, source: &SourceFormat) -> Option<CardFormat> {
        let rate = if self.has(source.rate) {
            source.rate
        } else if !RATES.contains(&source.rate) || self.rates == 0 {
            return None;
        } else {
            self.near(source.rate)?
        };
        let channels = source.channels.clamp(self.channels.0, self.channels.1);
        Some(CardFormat { rate, channels, sample: self.sample })
    }

    /// The rate to use when the source's own is refused: the smallest multiple of it, then 48 kHz, then the highest
    /// below it, then the lowest of all.
    pub fn near(&self, rate: u32) -> Option<u32> {
        let can = || RATES.iter().copied().filter(|r| self.has(*r));
        can()
            .find(|r| *r > rate && r.is_multiple_of(rate))
            .or_else(|| self.has(48_000).then_some(48_000))
            .or_else(|| can().filter(|r| *r < rate).max())
            .or_else(|| can().min())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(rates: &[u32], sample: SampleFormat) -> Abilities {
        let bits = rates.iter().map(|r| 1 << RATES.iter().position(|x| x == r).unwrap()).sum();
        Abilities { rates: bits, channels: (2, 2), sample }
    }

    fn source(rate: u32, channels: u16) -> SourceFormat {
        SourceFormat { rate, channels, bits: 16, lossy: false }
    }

    #[test]
    fn the_sources_own_rate_is_taken_where_the_card_can() {
        let card = card(&[44_100, 48_000], SampleFormat::S32);
        assert_eq!(card.choose(&source(44_100, 2)).unwrap().rate, 44_100);
    }

    #[test]
    fn a_refused_rate_is_replaced_by_its_multiple_then_by_48_khz() {
        assert_eq!(
            card(&[48_000, 88_200], SampleFormat::S32).choose(&source(44_100, 2)).unwrap().rate,
            88_200
        );
        assert_eq!(
            card(&[32_000, 48_000], SampleFormat::S32).choose(&source(44_100, 2)).unwrap().rate,
            48_000
        );
        assert_eq!(
            card(&[32_000, 44_100], SampleFormat::S32).choose(&source(96_000, 2)).unwrap().rate,
            44_100
        );
    }

    #[test]
    fn mono_on_a_stereo_card_runs_with_two_channels() {
        assert_eq!(card(&[48_000], SampleFormat::S16).choose(&source(48_000, 1)).unwrap().channels, 2);
    }

    #[test]
    fn what_is_mixed_is_not_the_source_s_own() {
        let card = CardFormat { rate: 48_000, channels: 8, sample: SampleFormat::S16 };
        let kept: Vec<u16> = (1..10).filter(|channels| card.keeps(*channels)).collect();
        assert_eq!(kept, [1, 2, 3, 4, 5, 6, 8, 9]);
    }

    #[test]
    fn an_unusual_rate_is_left_to_the_card() {
        assert_eq!(card(&[48_000], SampleFormat::S16).choose(&source(37_800, 2)), None);
    }
}
