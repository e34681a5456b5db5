//! Fraunhofer's decoder as one of symphonia's: HE-AAC, and AAC up to 7.1, in the order of WAVE.

use fdk_aac::dec::{Decoder, DecoderError, Transport};
use symphonia::core::audio::{
    AsGenericAudioBufferRef, AudioBuffer, AudioMut, AudioSpec, Channels, GenericAudioBufferRef,
};
use symphonia::core::codecs::CodecInfo;
use symphonia::core::codecs::audio::{AudioCodecParameters, AudioDecoder, FinalizeResult};
use symphonia::core::errors::{Error, Result};
use symphonia::core::packet::PacketRef;

use super::aac::{Lag, RATES};

/// The longest block, of twice 2,048 frames, of eight channels.
const MOST_SAMPLES: usize = 2 * 2048 * 8;
static INFO: CodecInfo = CodecInfo { short_name: "aac", long_name: "Advanced Audio Coding", profiles: &[] };

/// A decoder for one stream.
pub(in crate::decode) struct HeAacDecoder {
    params: AudioCodecParameters,
    /// `AudioSpecificConfig`.
    config: Vec<u8>,
    fdk: Decoder,
    lag: Lag,
    decoded: AudioBuffer<i16>,
    /// What `decoded` is made for: channels, rate, frames.
    shape: (usize, u32, usize),
    pcm: Vec<i16>,
    /// The packet before, which is heard again where nothing follows it.
    last: Vec<u8>,
}

impl HeAacDecoder {
    /// A decoder that tells in `lag` by how many frames its sound is late.
    pub(in crate::decode) fn new(params: &AudioCodecParameters, lag: &Lag) -> Result<HeAacDecoder> {
        let config = match &params.extra_data {
            Some(config) => config.to_vec(),
            None => plain_config(params).ok_or(Error::Unsupported("its rate or channels are not known"))?,
        };
        Ok(HeAacDecoder {
            params: params.clone(),
            fdk: opened(&config)?,
            config,
            lag: lag.clone(),
            decoded: AudioBuffer::new(AudioSpec::new(1, Channels::Discrete(1)), 0),
            shape: (0, 0, 0),
            pcm: vec![0; MOST_SAMPLES],
            last: Vec::new(),
        })
    }
}

/// The configuration of an AAC-LC stream that has none, as ADTS.
fn plain_config(params: &AudioCodecParameters) -> Option<Vec<u8>> {
    let rate = RATES.iter().position(|&rate| Some(rate) == params.sample_rate)?;
    let channels = match params.channels.as_ref()?.count() {
        channels @ 1..=6 => channels,
        8 => 7,
        _ => return None,
    };
    let config = 2 << 11 | rate << 7 | channels << 3;
    Some(vec![(config >> 8) as u8, config as u8])
}

fn opened(config: &[u8]) -> Result<Decoder> {
    let mut fdk = Decoder::new(Transport::Raw);
    fdk.config_raw(config).map_err(|_| Error::Unsupported("this kind of AAC is not decoded"))?;
    Ok(fdk)
}

fn damaged(e: DecoderError) -> Error {
    Error::DecodeError(e.message())
}

impl AudioDecoder for HeAacDecoder {
    fn reset(&mut self) {
        // There is no other way to make it forget. That it worked before means that it does again.
        if let Ok(fdk) = opened(&self.config) {
            self.fdk = fdk;
        }
    }

    fn codec_info(&self) -> &CodecInfo {
        &INFO
    }

    fn codec_params(&self) -> &AudioCodecParameters {
        &self.params
    }

    fn decode_ref(&mut self, packet: &PacketRef<'_>) -> Result<GenericAudioBufferRef<'_>> {
        self.decoded.clear();
        // What it keeps back comes out when something is put in. This goes on as smoothly as anything that is known.
        if !packet.data.is_empty() {
            self.last.clear();
            self.last.extend_from_slice(packet.data);
        }
        self.fdk.fill(&self.last).map_err(damaged)?;
        self.fdk.decode_frame(&mut self.pcm).map_err(damaged)?;
        let told = self.fdk.stream_info();
        let shape = (
            usize::try_from(told.numChannels).unwrap_or(0),
            u32::try_from(told.sampleRate).unwrap_or(0),
            usize::try_from(told.frameSize).unwrap_or(0),
        );
        self.lag.set(told.outputDelay);
        let (channels, rate, frames) = shape;
        if channels == 0 || rate == 0 || channels * frames > self.pcm.len() {
            return Err(Error::DecodeError("an AAC packet describes no sound"));
        }
        if shape != self.shape {
            let spec = AudioSpec::new(rate, Channels::Discrete(channels as u16));
            (self.decoded, self.shape) = (AudioBuffer::new(spec, frames), shape);
        }
        self.decoded.render_uninit(Some(frames));
        self.decoded.copy_from_slice_interleaved(&&self.pcm[..frames * channels]);
        Ok(self.decoded.as_generic_audio_buffer_ref())
    }

    fn finalize(&mut self) -> FinalizeResult {
        FinalizeResult::default()
    }

    fn last_decoded(&self) -> GenericAudioBufferRef<'_> {
        self.decoded.as_generic_audio_buffer_ref()
    }
}
