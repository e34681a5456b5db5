//! HE-AAC, made by Fraunhofer's encoder, since ffmpeg has none.

use std::path::{Path, PathBuf};

use fdk_aac::enc::{AudioObjectType, BitRate, ChannelMode, Encoder, EncoderParams, Transport};

use super::fixture::*;
use super::loudness::add_to_ilst;
use crate::decode::Decoder;

/// A recording, and what the encoder made of it.
struct Made {
    pcm: Pcm,
    adts: PathBuf,
    /// Frames in front that are none of the recording's.
    delay: usize,
    packets: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// HE-AAC.
    V1,
    V1Mono,
    /// HE-AAC v2: a mono stream with a description of its stereo.
    V2,
}

use Kind::*;

impl Kind {
    fn pcm(self) -> Pcm {
        let mut pcm = Pcm::music(44_100, if self == V1Mono { 1 } else { 2 }, 16, 233_731);
        if self == V2 {
            // The encoder describes loudness and likeness by bands: what the sides have in common keeps its place.
            for frame in pcm.samples.chunks_exact_mut(2) {
                frame[1] = frame[0] / 2;
            }
        }
        pcm
    }

    fn make(self) -> Made {
        let pcm = self.pcm();
        let (object, rate) = match self {
            V1 => (AudioObjectType::Mpeg4HeAac, 64_000),
            V1Mono => (AudioObjectType::Mpeg4HeAac, 40_000),
            V2 => (AudioObjectType::Mpeg4HeAacV2, 40_000),
        };
        let encoder = Encoder::new(EncoderParams {
            bit_rate: BitRate::Cbr(rate),
            sample_rate: pcm.rate,
            transport: Transport::Adts,
            channels: if pcm.channels == 1 { ChannelMode::Mono } else { ChannelMode::Stereo },
            audio_object_type: object,
        })
        .unwrap();
        let info = encoder.info().unwrap();
        assert_eq!(info.frameLength, 2048, "{self:?}");
        let delay = info.nDelayCore as usize;
        let mut input: Vec<i16> = pcm.samples.iter().map(|sample| (sample >> 16) as i16).collect();
        // So many packets hold all of it; only silence behind makes the encoder give the last ones.
        let packets = (pcm.frames() + delay).div_ceil(2048);
        input.resize((packets + 4) * 2048 * pcm.channels, 0);
        let (mut adts, mut buf, mut at, mut count) = (Vec::new(), [0; 8192], 0, 0);
        while count < packets {
            let step =
                encoder.encode(&input[at..(at + 2048 * pcm.channels).min(input.len())], &mut buf).unwrap();
            at += step.input_consumed;
            count += usize::from(step.output_size > 0);
            adts.extend_from_slice(&buf[..step.output_size]);
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/decode-fixtures");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{self:?}.aac"));
        let work = tempfile::NamedTempFile::new_in(&folder).unwrap();
        std::fs::write(work.path(), adts).unwrap();
        work.persist(&path).unwrap();
        Made { pcm, adts: path, delay, packets }
    }
}

impl Made {
    /// The same packets in an MP4, as ffmpeg puts them there: the configuration is that of the lower half.
    fn mp4(&self, name: &str) -> Vec<u8> {
        let input = self.adts.to_str().unwrap();
        let stem = self.adts.file_stem().unwrap().to_str().unwrap();
        let command = ["ffmpeg", "-nostdin", "-y", "-i", input, "-c", "copy", "OUT"];
        std::fs::read(encoded(&self.pcm, &format!("{stem}-{name}"), &command)).unwrap()
    }

    fn check(&self, decoder: &mut Decoder, from: usize, frames: usize, what: &str) {
        assert_eq!((decoder.codec(), decoder.format().rate), ("AAC", 44_100), "{what}");
        let channels = usize::from(decoder.format().channels);
        // A mono stream may turn out to be stereo later, so it is given as two channels that are the same.
        assert!(channels == self.pcm.channels || channels == 2, "{what}: {channels} channels");
        assert!(decoder.total_frames().is_none_or(|told| told == frames as u64), "{what}");
        let got = rest(decoder);
        assert_eq!(got.len(), frames * channels, "{what}");
        assert_eq!(decoder.lost_packets(), 0, "{what}");
        let sound = &got[from * channels..(from + self.pcm.frames()) * channels];
        for channel in 0..channels {
            let want: Vec<i32> = self.pcm.samples[channel % self.pcm.channels..]
                .iter()
                .step_by(self.pcm.channels)
                .copied()
                .collect();
            let got: Vec<i32> = sound[channel..].iter().step_by(channels).copied().collect();
            let alike = |lag: isize| correlation(&want, &got, 1, lag);
            let best = (-64..=64).max_by(|a, b| alike(*a).total_cmp(&alike(*b))).unwrap();
            eprintln!("{what}: channel {channel} is most alike {best} frames off, by {:.4}", alike(best));
            // The encoder halves the rate by a filter that delays low tones by a little less than high ones.
            assert!(best.abs() <= 2 && alike(best) > 0.97, "{what}: {best} frames off, {:.4}", alike(best));
        }
    }
}

/// Makes an MP4's configuration tell that there is an upper half, and perhaps stereo, or a lower one alone.
fn tell(bytes: &mut Vec<u8>, config: &[u8]) {
    // The configuration is the last but one in `esds`; each of the three around it tells its length in 4 bytes.
    let esds = bytes.windows(4).rposition(|four| four == b"esds").unwrap();
    let tag = |bytes: &[u8], from: usize, tag: u8| {
        from + bytes[from..].windows(4).position(|four| four == [tag, 0x80, 0x80, 0x80]).unwrap()
    };
    let whole = tag(bytes, esds, 3);
    let decoder = tag(bytes, whole, 4);
    let specific = tag(bytes, decoder, 5);
    let old = usize::from(bytes[specific + 4]);
    let longer = config.len() as i32 - old as i32;
    for at in [whole, decoder, specific] {
        bytes[at + 4] = (i32::from(bytes[at + 4]) + longer) as u8;
    }
    for name in [b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", b"mp4a", b"esds"] {
        let at = bytes.windows(4).rposition(|four| four == name).unwrap() - 4;
        let size = i32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) + longer;
        bytes[at..at + 4].copy_from_slice(&size.to_be_bytes());
    }
    bytes.splice(specific + 5..specific + 5 + old, config.iter().copied());
}

#[test]
fn adts_plays_at_the_rate_of_the_whole() {
    for kind in [V1, V1Mono, V2] {
        let made = kind.make();
        made.check(&mut open(&made.adts), made.delay, made.packets * 2048, &format!("{kind:?} in ADTS"));
    }
}

#[test]
fn mp4_plays_to_the_frame_whatever_its_configuration_tells() {
    for (kind, configs) in [
        (V1, [&[0x13, 0x90][..], &[0x2b, 0x92, 0x08, 0], &[0x13, 0x90, 0x56, 0xe5, 0xa0]]),
        (V1Mono, [&[0x13, 0x88][..], &[0x2b, 0x8a, 0x08, 0], &[0x13, 0x88, 0x56, 0xe5, 0xa0]]),
        (V2, [&[0x13, 0x88][..], &[0xeb, 0x8a, 0x08, 0], &[0x13, 0x88, 0x56, 0xe5, 0xa5, 0x48, 0x80]]),
    ] {
        let made = kind.make();
        for config in configs {
            let mut bytes = made.mp4("plain.m4a");
            tell(&mut bytes, config);
            let frames = made.pcm.frames();
            let note = format!(" 00000000 {:08X} 00000000 {frames:016X}", made.delay);
            add_to_ilst(&mut bytes, "iTunSMPB", &note);
            let what = format!("{kind:?} as {config:02x?}");
            made.check(&mut from_memory(bytes), 0, frames, &what);
        }
    }
}

#[test]
fn a_jump_lands_on_its_frame() {
    for kind in [V1, V1Mono, V2] {
        let made = kind.make();
        let adts = std::fs::read(&made.adts).unwrap();
        for (name, bytes) in [("aac", adts), ("m4a", made.mp4("plain.m4a")), ("mka", made.mp4("plain.mka"))] {
            let mut decoder = from_memory(bytes);
            let channels = usize::from(decoder.format().channels);
            let whole = rest(&mut decoder);
            let frames = whole.len() / channels;
            let mut loudest = f64::NEG_INFINITY;
            for jump in 0..60usize {
                let frame = jump * 7_919_317 % (frames - 600);
                let landed = decoder.seek(frame as u64).unwrap();
                assert_eq!((landed.frame, landed.exact), (frame as u64, true), "{kind:?} in {name}");
                let got = some(&mut decoder, 500);
                let want = &whole[frame * channels..][..got.len()];
                loudest = loudest.max(difference_db(want, &got));
            }
            eprintln!("{kind:?} in {name}: at most {loudest:.1} dB");
            assert!(loudest < -45.0, "{kind:?} in {name}: {loudest:.1} dB");
            for frame in [frames - 1, frames - 5_000, 77_777] {
                assert_eq!(decoder.seek(frame as u64).unwrap().frame, frame as u64, "{kind:?} in {name}");
                assert_eq!(rest(&mut decoder).len() / channels, frames - frame, "{kind:?} in {name}");
            }
        }
    }
}

#[test]
fn aac_lc_of_more_than_two_channels_keeps_the_order_of_wave() {
    let pcm = Pcm::music(48_000, 6, 16, 96_000);
    let mut decoder = open(&ffmpeg(&pcm, "5.1.m4a", &["-c:a", "aac", "-b:a", "512k"]));
    assert_eq!((decoder.format().rate, decoder.format().channels), (48_000, 6));
    let got = rest(&mut decoder);
    assert_eq!(got.len(), pcm.samples.len());
    for channel in 0..6 {
        let alike = |other: usize| correlation(&pcm.samples[other..], &got[channel..], 6, 0);
        let best = (0..6).max_by(|&a, &b| alike(a).total_cmp(&alike(b)));
        assert_eq!(best, Some(channel));
    }
}
