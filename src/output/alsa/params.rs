//! Agreeing on a format and on sizes with a card.

use std::time::Duration;

use alsa::pcm::{Access, Format, Frames, HwParams, PCM};
use alsa::{Result, ValueOr};

use crate::output::devices::DeviceAbilities;
use crate::output::format::{Abilities, CardFormat, RATES, SampleFormat, SourceFormat};
use crate::output::start_frames;

/// What was agreed.
pub(super) struct SetUp {
    pub card: CardFormat,
    pub abilities: Abilities,
    pub buffer: usize,
    pub period: usize,
}

/// Periods in a buffer. The thread sleeps over two of them; finer periods only make a lost device's position sharper.
const PERIODS: u32 = 4;

pub(super) fn set_up(pcm: &PCM, source: &SourceFormat, buffer: Duration) -> Result<SetUp> {
    let (card, abilities, buffer, period) = hardware(pcm, source, buffer)?;
    software(pcm, &card, buffer)?;
    Ok(SetUp { card, abilities, buffer: buffer as usize, period: period as usize })
}

fn hardware(
    pcm: &PCM,
    source: &SourceFormat,
    buffer: Duration,
) -> Result<(CardFormat, Abilities, Frames, Frames)> {
    let hw = HwParams::any(pcm)?;
    // Where ALSA would resample by itself it must not: ours is better, and the real rate is reported.
    hw.set_rate_resample(false)?;
    hw.set_access(Access::RWInterleaved)?;
    let abilities = abilities(&hw)?;
    hw.set_format(format_of(abilities.sample))?;
    let wanted = abilities.choose(source);
    hw.set_channels_near(u32::from(wanted.map_or(source.channels, |w| w.channels)))?;
    let rate = match wanted {
        Some(wanted) => wanted.rate,
        None if hw.test_rate(source.rate).is_ok() => source.rate,
        None => abilities.near(source.rate).unwrap_or(48_000),
    };
    hw.set_rate_near(rate, ValueOr::Nearest)?;
    let micros = u32::try_from(buffer.as_micros()).unwrap_or(250_000).clamp(20_000, 2_000_000);
    hw.set_buffer_time_near(micros, ValueOr::Nearest)?;
    hw.set_period_time_near(micros / PERIODS, ValueOr::Nearest)?;
    pcm.hw_params(&hw)?;
    let card = CardFormat {
        rate: hw.get_rate()?,
        channels: u16::try_from(hw.get_channels()?).unwrap_or(2),
        sample: abilities.sample,
    };
    Ok((card, abilities, hw.get_buffer_size()?, hw.get_period_size()?))
}

/// What a device can do by itself.
pub(super) fn offered(pcm: &PCM) -> Result<DeviceAbilities> {
    let hw = HwParams::any(pcm)?;
    hw.set_rate_resample(false)?;
    hw.set_access(Access::RWInterleaved)?;
    let Abilities { rates, channels, .. } = abilities(&hw)?;
    let known = SampleFormat::PREFERRED.into_iter().filter(|f| hw.test_format(format_of(*f)).is_ok());
    let formats = known.map(SampleFormat::name).collect();
    let rates = RATES.into_iter().enumerate().filter(|(bit, _)| rates & (1 << bit) != 0);
    Ok(DeviceAbilities { rates: rates.map(|(_, rate)| rate).collect(), formats, channels })
}

fn software(pcm: &PCM, card: &CardFormat, buffer: Frames) -> Result<()> {
    let sw = pcm.sw_params_current()?;
    // Half a buffer at a time: about 8 wake-ups a second at 250 ms.
    sw.set_avail_min((buffer / 2).max(1))?;
    // The library's default of 1 gives an underrun at once on some plugins.
    sw.set_start_threshold(start_frames(card.rate, buffer as usize) as Frames)?;
    pcm.sw_params(&sw)
}

fn abilities(hw: &HwParams) -> Result<Abilities> {
    let sample = SampleFormat::PREFERRED
        .into_iter()
        .find(|f| hw.test_format(format_of(*f)).is_ok())
        .ok_or(alsa::Error::unsupported("no linear format"))?;
    let rates = RATES
        .iter()
        .enumerate()
        .filter(|(_, rate)| hw.test_rate(**rate).is_ok())
        .fold(0, |bits, (bit, _)| bits | 1 << bit);
    let count = |c: Result<u32>| c.map(|c| u16::try_from(c).unwrap_or(u16::MAX));
    let least = count(hw.get_channels_min())?.max(1);
    let most = count(hw.get_channels_max())?.max(least);
    Ok(Abilities { rates, channels: (least, most), sample })
}

fn format_of(sample: SampleFormat) -> Format {
    match sample {
        SampleFormat::S32 => Format::S32LE,
        SampleFormat::S24_3 => Format::S243LE,
        SampleFormat::S24 => Format::S24LE,
        SampleFormat::S16 => Format::S16LE,
    }
}
