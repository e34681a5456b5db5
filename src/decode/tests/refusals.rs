//! What is not played is told by its name.

use super::fixture::*;
use crate::decode::{DecodeError, Decoder, Hints};

#[test]
fn what_is_no_audio_is_named() {
    let junk: Vec<u8> = (0..300_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8 & 0x7f).collect();
    for seekable in [true, false] {
        let cases: [(&[u8], &str); 5] = [
            (b"", "empty"),
            (b"<!DOCTYPE html><html><body>Please log in</body></html>", "web page"),
            (b"  <html>", "web page"),
            (br#"{"error":"expired"}"#, "JSON"),
            (&junk, "not known"),
        ];
        for (bytes, word) in cases {
            let e = refused(bytes, seekable);
            assert!(matches!(e, DecodeError::NotAudio { .. }), "{e:?}");
            assert!(e.to_string().contains(word), "{e}");
        }
    }
}

#[test]
fn a_name_that_promises_music_does_not_hide_that_there_is_none() {
    let hints = Hints { content_type: None, extension: Some("mp3".to_owned()) };
    for (bytes, word) in [(&b""[..], "it is empty"), (&b"\xff\xfb\x90\x44 cut"[..], "cut short or damaged")] {
        let e = Decoder::open(Memory::boxed(bytes.to_vec(), true), &hints).err().unwrap();
        assert!(matches!(e, DecodeError::NotAudio { .. }) && e.to_string().contains(word), "{e}");
    }
}

#[test]
fn a_codec_that_is_not_there_is_named() {
    let pcm = Pcm::music(48_000, 2, 16, 48_000);
    let bytes = std::fs::read(ffmpeg(&pcm, "ac3.mp4", &["-c:a", "ac3"])).unwrap();
    let e = refused(&bytes, true);
    assert!(matches!(&e, DecodeError::Unsupported { codec, .. } if codec == "AC-3"), "{e:?}");
}

#[cfg(not(feature = "he-aac"))]
#[test]
fn a_kind_of_aac_that_is_not_decoded_is_named() {
    let pcm = Pcm::music(48_000, 6, 16, 48_000);
    let bytes = std::fs::read(ffmpeg(&pcm, "surround.m4a", &["-c:a", "aac"])).unwrap();
    let e = refused(&bytes, true);
    let text = e.to_string();
    assert!(text.starts_with("AAC-LC cannot be played") && text.contains("it has 6 channels"), "{text}");
    // An AAC-LC file whose configuration says that it is more than that.
    let pcm = Pcm::music(44_100, 2, 16, 48_000);
    let plain = std::fs::read(ffmpeg(&pcm, "configured.m4a", &["-c:a", "aac"])).unwrap();
    let at = plain.windows(5).position(|bytes| bytes == [0x12, 0x10, 0x56, 0xe5, 0x00]).unwrap();
    for (config, name) in [
        ([0x2b, 0x92, 0x08, 0, 0], "HE-AAC"),
        ([0xeb, 0x8a, 0x08, 0, 0], "HE-AAC v2"),
        ([0x13, 0x90, 0x56, 0xe5, 0xa0], "HE-AAC"),
        ([0x0a, 0x10, 0, 0, 0], "AAC Main"),
    ] {
        let mut bytes = plain.clone();
        bytes[at..at + 5].copy_from_slice(&config);
        let text = refused(&bytes, true).to_string();
        assert!(text.starts_with(&format!("{name} cannot be played")), "{text}");
        assert_eq!(text.contains("he-aac"), name.starts_with("HE"), "{text}");
    }
}

#[test]
fn formats_that_are_not_played_are_named_at_once() {
    let pcm = Pcm::music(48_000, 2, 16, 48_000);
    for (name, options, said) in [
        ("foreign.wv", &["-c:a", "wavpack"][..], "WavPack cannot be played"),
        ("foreign.tta", &["-c:a", "tta"], "True Audio cannot be played"),
        ("foreign.wma", &["-c:a", "wmav2"], "Windows Media cannot be played"),
        ("foreign.w64", &[], "Wave64 cannot be played"),
        ("rf64.wav", &["-rf64", "always"], "RF64 (WAV beyond 4 GiB) cannot be played"),
        ("foreign.ac3", &["-c:a", "ac3"], "AC-3 cannot be played"),
        ("foreign.eac3", &["-c:a", "eac3"], "E-AC-3 cannot be played"),
        ("foreign.dts", &["-c:a", "dca", "-strict", "-2"], "DTS cannot be played"),
        ("foreign.thd", &["-c:a", "truehd", "-strict", "-2", "-f", "truehd"], "TrueHD cannot be played"),
        ("foreign.mlp", &["-c:a", "mlp", "-strict", "-2"], "MLP cannot be played"),
        ("foreign.au", &[], "Sun audio cannot be played"),
        ("foreign.spx", &["-c:a", "libspeex", "-f", "ogg"], "Speex cannot be played"),
        ("foreign.rm", &["-c:a", "ac3", "-f", "rm"], "RealAudio cannot be played"),
        ("eac3-front.mp4", &["-c:a", "eac3", "-movflags", "+faststart"], "E-AC-3 cannot be played"),
        (
            "alac.mov",
            &["-c:a", "alac", "-movflags", "+faststart"],
            "ALAC in QuickTime's manner cannot be played",
        ),
        (
            "vorbis.mp4",
            &["-c:a", "libvorbis", "-movflags", "+faststart"],
            "this kind of MPEG-4 sound cannot be played",
        ),
        ("dts.mp4", &["-c:a", "dca", "-strict", "-2", "-movflags", "+faststart"], "DTS cannot be played"),
        (
            "truehd.mp4",
            &["-c:a", "truehd", "-strict", "-2", "-movflags", "+faststart"],
            "TrueHD cannot be played",
        ),
        ("eac3.mka", &["-c:a", "eac3"], "E-AC-3 cannot be played"),
        ("dts.mka", &["-c:a", "dca", "-strict", "-2"], "DTS cannot be played"),
        ("truehd.mka", &["-c:a", "truehd", "-strict", "-2"], "TrueHD cannot be played"),
        ("wavpack.mka", &["-c:a", "wavpack"], "WavPack cannot be played"),
        ("tta.mka", &["-c:a", "tta"], "True Audio cannot be played"),
        ("narrow.caf", &["-c:a", "pcm_s8"], "this CAF cannot be played (unsupported bits per channel)"),
    ] {
        let bytes = std::fs::read(ffmpeg(&pcm, name, options)).unwrap();
        // A CAF is not even looked at where there are no ranges.
        for seekable in [true, false].into_iter().filter(|&seekable| seekable || !name.ends_with(".caf")) {
            let text = refused(&bytes, seekable).to_string();
            assert!(text.starts_with(said) && text.contains("choose another format"), "{name}: {text}");
        }
    }
}

/// What a file says of itself decides how much memory is asked for.
#[test]
fn numbers_that_make_no_sense_are_refused() {
    let pcm = Pcm::music(48_000, 2, 16, 4_800);
    let replaced = |bytes: &[u8], what: &[u8], by: &[u8]| {
        let at = bytes.windows(what.len()).position(|bytes| bytes == what).unwrap();
        [&bytes[..at], by, &bytes[at + what.len()..]].concat()
    };
    let mut wav = pcm.wav();
    wav[24..28].copy_from_slice(&4_000_000_000u32.to_le_bytes());
    let mka = std::fs::read(ffmpeg(&pcm, "sizes.mka", &["-c:a", "pcm_s16le"])).unwrap();
    let rate = |rate: f64| [&[0xb5, 0x88][..], &rate.to_be_bytes()].concat();
    let mka = replaced(&mka, &rate(48_000.0), &rate(4.0e9));
    let caf = std::fs::read(ffmpeg(&pcm, "sizes.caf", &["-c:a", "pcm_s16le"])).unwrap();
    let caf_rate = replaced(&caf, &48_000f64.to_be_bytes(), &4.0e9f64.to_be_bytes());
    // Bytes and frames in a packet.
    let caf_packet = replaced(&caf, &[0, 0, 0, 4, 0, 0, 0, 1], &[0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff]);
    for (bytes, said) in [
        (wav, "PCM cannot be played (a sample rate of 4000000000 Hz makes no sense)"),
        (mka, "PCM cannot be played (a sample rate of 4000000000 Hz makes no sense)"),
        (caf_rate, "PCM cannot be played (a sample rate of 4000000000 Hz makes no sense)"),
        (caf_packet, "PCM cannot be played (a packet of 4294967295 frames makes no sense)"),
    ] {
        let text = refused(&bytes, true).to_string();
        assert!(text.starts_with(said), "{text}");
    }
}

#[test]
fn pictures_are_told_for_what_they_are() {
    let pcm = Pcm::music(48_000, 2, 16, 48_000);
    for name in ["cover.png", "cover.jpg", "cover.gif", "cover.bmp", "cover.tiff", "cover.webp"] {
        let path = ffmpeg(&pcm, name, &["-lavfi", "showwavespic", "-frames:v", "1"]);
        let bytes = std::fs::read(path).unwrap();
        for seekable in [true, false] {
            let text = refused(&bytes, seekable).to_string();
            assert!(text.contains("it is an image"), "{name}: {text}");
        }
    }
}
