//! libopus as one of symphonia's decoders.

use std::ffi::{c_int, c_uchar};
use std::ptr::NonNull;

use opusic_sys as opus;
use symphonia::core::audio::{
    AsGenericAudioBufferRef, AudioBuffer, AudioMut, AudioSpec, Channels, GenericAudioBufferRef,
};
use symphonia::core::codecs::CodecInfo;
use symphonia::core::codecs::audio::{AudioCodecParameters, AudioDecoder, FinalizeResult};
use symphonia::core::errors::{Error, Result};
use symphonia::core::packet::PacketRef;

use super::head::Head;

/// Everything is decoded at this rate, whatever it was made from.
const RATE: u32 = 48_000;
/// The longest packet lasts 120 ms.
const MOST_FRAMES: usize = RATE as usize / 1000 * 120;

static INFO: CodecInfo = CodecInfo { short_name: "opus", long_name: "Opus", profiles: &[] };

/// A decoder for one stream.
pub(in crate::decode) struct OpusDecoder {
    params: AudioCodecParameters,
    libopus: Libopus,
    channels: usize,
    decoded: AudioBuffer<f32>,
    pcm: Vec<f32>,
}

impl OpusDecoder {
    /// A decoder for a stream with this head.
    pub(in crate::decode) fn new(params: &AudioCodecParameters, head: &Head) -> Result<OpusDecoder> {
        let channels = usize::from(head.channels);
        let spec = AudioSpec::new(RATE, Channels::Discrete(u16::from(head.channels)));
        Ok(OpusDecoder {
            params: params.clone(),
            libopus: Libopus::new(head)?,
            channels,
            decoded: AudioBuffer::new(spec, MOST_FRAMES),
            pcm: vec![0.0; MOST_FRAMES * channels],
        })
    }
}

impl AudioDecoder for OpusDecoder {
    fn reset(&mut self) {
        self.libopus.reset();
    }

    fn codec_info(&self) -> &CodecInfo {
        &INFO
    }

    fn codec_params(&self) -> &AudioCodecParameters {
        &self.params
    }

    fn decode_ref(&mut self, packet: &PacketRef<'_>) -> Result<GenericAudioBufferRef<'_>> {
        self.decoded.clear();
        let frames = self.libopus.decode(packet.data, &mut self.pcm, self.channels)?;
        self.decoded.render_uninit(Some(frames));
        self.decoded.copy_from_slice_interleaved(&&self.pcm[..frames * self.channels]);
        Ok(self.decoded.as_generic_audio_buffer_ref())
    }

    fn finalize(&mut self) -> FinalizeResult {
        FinalizeResult::default()
    }

    fn last_decoded(&self) -> GenericAudioBufferRef<'_> {
        self.decoded.as_generic_audio_buffer_ref()
    }
}

/// libopus's own decoder.
///
/// One for several streams could decode mono and stereo just as well. But with each packet it asks anew what kind of
/// processor this is, which takes longer than the decoding in virtual machines, and reads `/proc/cpuinfo` on some ARMs.
enum Libopus {
    One(NonNull<opus::OpusDecoder>),
    Several(NonNull<opus::OpusMSDecoder>),
}

// SAFETY: the decoder is memory of its own that nothing else refers to; libopus keeps no state of a thread.
#[allow(unsafe_code)]
unsafe impl Send for Libopus {}
// SAFETY: through a shared reference nothing of it can be reached.
#[allow(unsafe_code)]
unsafe impl Sync for Libopus {}

impl Libopus {
    #[allow(unsafe_code)]
    fn new(head: &Head) -> Result<Libopus> {
        let mut error: c_int = 0;
        let channels = c_int::from(head.channels);
        let made = if head.is_plain() {
            // SAFETY: libopus checks both numbers, and writes to `error` only.
            NonNull::new(unsafe { opus::opus_decoder_create(RATE as i32, channels, &mut error) })
                .map(Libopus::One)
        } else {
            let (streams, coupled) = (c_int::from(head.streams), c_int::from(head.coupled));
            let mapping = head.mapping.as_ptr();
            // SAFETY: `mapping` holds 8 entries and there are at most 8 channels; libopus checks all numbers, copies the
            // mapping, and writes to `error` only.
            let made = unsafe {
                opus::opus_multistream_decoder_create(
                    RATE as i32,
                    channels,
                    streams,
                    coupled,
                    mapping,
                    &mut error,
                )
            };
            NonNull::new(made).map(Libopus::Several)
        };
        made.filter(|_| error == opus::OPUS_OK)
            .ok_or(Error::DecodeError("its header describes no channels that there are"))
    }

    /// Decodes a packet into interleaved frames; returns how many.
    #[allow(unsafe_code)]
    fn decode(&mut self, packet: &[u8], pcm: &mut [f32], channels: usize) -> Result<usize> {
        // No bytes at all would mean a lost packet, for which libopus makes sound up.
        let len = i32::try_from(packet.len()).ok().filter(|len| *len > 0);
        let len = len.ok_or(Error::DecodeError("an Opus packet without a byte"))?;
        let room = c_int::try_from(pcm.len() / channels.max(1)).unwrap_or(c_int::MAX);
        let (packet, pcm) = (packet.as_ptr().cast::<c_uchar>(), pcm.as_mut_ptr());
        // SAFETY: the decoder lives; libopus reads `len` bytes of the packet, and writes at most `room` frames of as
        // many channels as the decoder was made with, which are those that `room` was divided by.
        let frames = unsafe {
            match self {
                Libopus::One(made) => opus::opus_decode_float(made.as_ptr(), packet, len, pcm, room, 0),
                Libopus::Several(made) => {
                    opus::opus_multistream_decode_float(made.as_ptr(), packet, len, pcm, room, 0)
                }
            }
        };
        usize::try_from(frames).map_err(|_| Error::DecodeError("an Opus packet is damaged"))
    }

    #[allow(unsafe_code)]
    fn reset(&mut self) {
        // SAFETY: the decoder lives, and this request takes no argument. It cannot fail.
        unsafe {
            match self {
                Libopus::One(made) => opus::opus_decoder_ctl(made.as_ptr(), opus::OPUS_RESET_STATE),
                Libopus::Several(made) => {
                    opus::opus_multistream_decoder_ctl(made.as_ptr(), opus::OPUS_RESET_STATE)
                }
            }
        };
    }
}

impl Drop for Libopus {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: it was made by libopus, and nobody uses it after this.
        unsafe {
            match self {
                Libopus::One(made) => opus::opus_decoder_destroy(made.as_ptr()),
                Libopus::Several(made) => opus::opus_multistream_decoder_destroy(made.as_ptr()),
            }
        }
    }
}
