//! Which decoder a stream needs, what it is called, and in which format it comes.

use symphonia::core::codecs::audio::{
    AudioCodecId, AudioCodecParameters, AudioDecoder, AudioDecoderOptions, well_known as id,
};
use symphonia::core::errors::Error;

use super::error::DecodeError;
#[cfg(feature = "he-aac")]
use super::quirks::he_aac;
use super::quirks::{aac, opus};
use super::registry;
use crate::track::SourceFormat;

/// Makes a decoder, which tells in `lag` by how much its sound is late; `head` is an Opus stream's.
pub(super) fn make_codec(
    params: &AudioCodecParameters,
    head: Option<&opus::Head>,
    lag: &aac::Lag,
) -> Result<Box<dyn AudioDecoder>, DecodeError> {
    if params.codec == id::CODEC_ID_OPUS {
        let codec = || codec_name(params.codec);
        let unsupported = |reason: String| DecodeError::Unsupported { codec: codec(), reason };
        let head = head.ok_or_else(|| {
            let refusal = params.extra_data.as_deref().and_then(opus::refusal);
            unsupported(
                refusal.unwrap_or_else(|| "its header describes no channels that there are".to_owned()),
            )
        })?;
        let decoder = opus::OpusDecoder::new(params, head).map_err(|e| unsupported(e.to_string()))?;
        return Ok(Box::new(decoder));
    }

    #[cfg(feature = "he-aac")]
    if params.codec == id::CODEC_ID_AAC && aac::wants_high_efficiency(params) {
        let decoder = he_aac::HeAacDecoder::new(params, lag).map_err(|e| DecodeError::Unsupported {
            codec: codec_name(params.codec),
            reason: e.to_string(),
        })?;
        return Ok(Box::new(decoder));
    }
    // Only that decoder is late.
    lag.set(0);
    if params.codec == id::CODEC_ID_AAC
        && let Some(beyond) = aac::beyond(params)
    {
        return Err(DecodeError::Unsupported { codec: beyond.name, reason: beyond.reason });
    }
    // Vorbis leaves out its first, half block only when it may trim; for the others packets carry no trim.
    let options = AudioDecoderOptions::default().gapless(true);
    registry::codecs().make_audio_decoder(params, &options).map_err(|e| DecodeError::Unsupported {
        codec: codec_name(params.codec),
        reason: match (params.codec, e) {
            (_, Error::Unsupported(_)) => "there is no decoder for it".to_owned(),
            (_, e) => e.to_string(),
        },
    })
}

pub(super) fn format_of(params: &AudioCodecParameters) -> SourceFormat {
    let lossy = !matches!(params.codec, id::CODEC_ID_FLAC | id::CODEC_ID_ALAC) && !is_pcm(params.codec);
    let bits = match (params.codec, &params.extra_data) {
        _ if lossy => 32,
        // The depth in ALAC's own configuration, byte 5.
        (id::CODEC_ID_ALAC, Some(config)) => {
            // CAF puts two boxes around it.
            let config = if config.get(4..8) == Some(b"frma") { config.get(24..) } else { Some(&config[..]) };
            config.and_then(|config| config.get(5)).map_or(32, |&depth| u32::from(depth))
        }
        _ => params.bits_per_sample.or(params.bits_per_coded_sample).unwrap_or(32),
    };
    SourceFormat {
        rate: params.sample_rate.unwrap_or(0),
        channels: params.channels.as_ref().map_or(0, |c| u16::try_from(c.count()).unwrap_or(u16::MAX)),
        bits: if (1..=32).contains(&bits) { bits as u16 } else { 32 },
        lossy,
    }
}

pub(super) fn is_pcm(codec: AudioCodecId) -> bool {
    registry::codecs().get_audio_decoder(codec).is_some_and(|c| c.codec.info.short_name.starts_with("pcm"))
}

/// Those that are not decoded, and those whose short name is not what people write.
const NAMES: &[(AudioCodecId, &str)] = &[
    (id::CODEC_ID_VORBIS, "Vorbis"),
    (id::CODEC_ID_OPUS, "Opus"),
    (id::CODEC_ID_SPEEX, "Speex"),
    (id::CODEC_ID_MUSEPACK, "Musepack"),
    (id::CODEC_ID_AC3, "AC-3"),
    (id::CODEC_ID_EAC3, "E-AC-3"),
    (id::CODEC_ID_AC4, "AC-4"),
    (id::CODEC_ID_DCA, "DTS"),
    (id::CODEC_ID_TRUEHD, "TrueHD"),
    (id::CODEC_ID_WMA, "WMA"),
    (id::CODEC_ID_WAVPACK, "WavPack"),
    (id::CODEC_ID_MONKEYS_AUDIO, "Monkey's Audio"),
    (id::CODEC_ID_TTA, "True Audio"),
    (id::CODEC_ID_ATRAC1, "ATRAC"),
    (id::CODEC_ID_ATRAC3, "ATRAC3"),
    (id::CODEC_ID_ATRAC3PLUS, "ATRAC3plus"),
    (id::CODEC_ID_COOK, "RealAudio"),
    (id::CODEC_ID_SIPR, "RealAudio"),
    (id::CODEC_ID_RALF, "RealAudio"),
];

pub(super) fn codec_name(codec: AudioCodecId) -> String {
    if let Some((_, name)) = NAMES.iter().find(|(known, _)| *known == codec) {
        return (*name).to_owned();
    }
    if is_pcm(codec) {
        return "PCM".to_owned();
    }
    match registry::codecs().get_audio_decoder(codec) {
        Some(known) => known.codec.info.short_name.to_ascii_uppercase(),
        None => "this codec".to_owned(),
    }
}
