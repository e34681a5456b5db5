//! PCM: widths that demuxers tell wrongly.

use symphonia::core::codecs::audio::{AudioCodecParameters, well_known as id};

use super::mp4;

/// Puts right what a demuxer says about the width of samples, by which the decoder refuses them or moves their bits.
///
/// All containers keep what is narrower than its bytes at their upper end, so nothing is ever to be moved. CAF gives
/// the width of a companded sample as it is stored, 8 bits, where the decoder expects that of what it makes of it.
/// QuickTime's samples have their first byte first unless it says otherwise, which the demuxer does not look at.
pub(in crate::decode) fn put_right(params: &mut AudioCodecParameters, entry: Option<mp4::Entry>) {
    if entry.is_some_and(|entry| entry.is_big_endian()) {
        params.codec = match params.codec {
            id::CODEC_ID_PCM_S24LE => id::CODEC_ID_PCM_S24BE,
            id::CODEC_ID_PCM_S32LE => id::CODEC_ID_PCM_S32BE,
            id::CODEC_ID_PCM_F32LE => id::CODEC_ID_PCM_F32BE,
            id::CODEC_ID_PCM_F64LE => id::CODEC_ID_PCM_F64BE,
            other => other,
        };
    }
    params.bits_per_coded_sample = None;
    match params.codec {
        id::CODEC_ID_PCM_ALAW | id::CODEC_ID_PCM_MULAW => params.bits_per_sample = Some(16),
        id::CODEC_ID_PCM_F32LE | id::CODEC_ID_PCM_F32BE => params.bits_per_sample = Some(32),
        id::CODEC_ID_PCM_F64LE | id::CODEC_ID_PCM_F64BE => params.bits_per_sample = Some(64),
        _ => {}
    }
}
