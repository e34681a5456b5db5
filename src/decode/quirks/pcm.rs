//! PCM: widths that demuxers tell wrongly.

use symphonia::core::codecs::audio::{AudioCodecParameters, well_known as id};

/// Puts right what a demuxer says about the width of samples, by which the decoder refuses them or moves their bits.
///
/// All containers keep what is narrower than its bytes at their upper end, so nothing is ever to be moved. CAF gives
/// the width of a companded sample as it is stored, 8 bits, where the decoder expects that of what it makes of it.
pub(in crate::decode) fn put_right(params: &mut AudioCodecParameters) {
    params.bits_per_coded_sample = None;
    match params.codec {
        id::CODEC_ID_PCM_ALAW | id::CODEC_ID_PCM_MULAW => params.bits_per_sample = Some(16),
        id::CODEC_ID_PCM_F32LE | id::CODEC_ID_PCM_F32BE => params.bits_per_sample = Some(32),
        id::CODEC_ID_PCM_F64LE | id::CODEC_ID_PCM_F64BE => params.bits_per_sample = Some(64),
        _ => {}
    }
}

/// Turns what a demuxer took for little-endian into what it is.
pub(in crate::decode) fn be_big_endian(params: &mut AudioCodecParameters) {
    params.codec = match params.codec {
        id::CODEC_ID_PCM_S24LE => id::CODEC_ID_PCM_S24BE,
        id::CODEC_ID_PCM_S32LE => id::CODEC_ID_PCM_S32BE,
        id::CODEC_ID_PCM_F32LE => id::CODEC_ID_PCM_F32BE,
        id::CODEC_ID_PCM_F64LE => id::CODEC_ID_PCM_F64BE,
        other => other,
    };
}
