//! Every format gives back the recording: bit for bit, or aligned to the frame.

use std::path::Path;

use super::fixture::*;
use crate::track::SourceFormat;

fn check_lossless(pcm: &Pcm, path: &Path, codec: &str) {
    let mut decoder = open(path);
    assert_eq!(decoder.codec(), codec);
    let format = SourceFormat { rate: pcm.rate, channels: pcm.channels as u16, bits: pcm.bits, lossy: false };
    assert_eq!(decoder.format(), format);
    decoder.measure().unwrap();
    assert_eq!(decoder.total_frames(), Some(pcm.frames() as u64), "stated length");
    let got = rest(&mut decoder);
    assert_eq!(got.len(), pcm.samples.len(), "decoded length");
    assert!(
        got == pcm.samples,
        "samples differ from {:?}",
        got.iter().zip(&pcm.samples).position(|(a, b)| a != b)
    );
    assert_eq!(decoder.lost_packets(), 0);
}

/// Decodes a lossy file that states its length and compares.
fn check_lossy(pcm: &Pcm, path: &Path, codec: &str, least: f64) {
    let mut decoder = open(path);
    assert_eq!(decoder.codec(), codec);
    let format = decoder.format();
    assert_eq!((format.rate, usize::from(format.channels)), (pcm.rate, pcm.channels));
    assert!(format.lossy && format.bits == 32);
    decoder.measure().unwrap();
    let got = rest(&mut decoder);
    eprintln!(
        "{}: {} frames of {}, stated {:?}",
        path.file_name().unwrap().display(),
        got.len() / pcm.channels,
        pcm.frames(),
        decoder.total_frames()
    );
    assert_eq!(got.len(), pcm.samples.len(), "decoded length");
    assert_eq!(decoder.total_frames(), Some(pcm.frames() as u64), "stated length");
    assert_alike(&pcm.samples, &got, pcm.channels, least, codec);
}

#[test]
fn wav_of_every_depth_is_exact() {
    for bits in [8, 16, 24, 32] {
        let pcm = Pcm::music(44_100, 2, bits, 100_003);
        check_lossless(&pcm, &encoded(&pcm, &format!("depth{bits}.wav"), &["cp", "IN", "OUT"]), "PCM");
    }
}

#[test]
fn float_wav_becomes_integers() {
    let pcm = Pcm::music(48_000, 2, 24, 50_001);
    let path = ffmpeg(&pcm, "float.wav", &["-c:a", "pcm_f32le"]);
    let mut decoder = open(&path);
    assert_eq!(decoder.format(), SourceFormat { rate: 48_000, channels: 2, bits: 32, lossy: false });
    assert!(rest(&mut decoder) == pcm.samples, "24 bits fit into a float, so nothing may change");
}

#[test]
fn aiff_is_exact() {
    let pcm = recording();
    check_lossless(&pcm, &ffmpeg(&pcm, "plain.aiff", &[]), "PCM");
    let pcm = Pcm::music(96_000, 2, 24, 100_003);
    check_lossless(&pcm, &ffmpeg(&pcm, "deep.aiff", &["-c:a", "pcm_s24be"]), "PCM");
}

#[test]
fn flac_is_exact() {
    let pcm = recording();
    check_lossless(&pcm, &encoded(&pcm, "plain.flac", &["flac", "-f", "-o", "OUT", "IN"]), "FLAC");
    let pcm = Pcm::music(96_000, 2, 24, 200_003);
    check_lossless(&pcm, &encoded(&pcm, "deep.flac", &["flac", "-8", "-f", "-o", "OUT", "IN"]), "FLAC");
    let pcm = Pcm::music(44_100, 1, 16, 30_001);
    check_lossless(&pcm, &encoded(&pcm, "mono.flac", &["flac", "-f", "-o", "OUT", "IN"]), "FLAC");
}

#[test]
fn flac_in_ogg_is_exact() {
    let pcm = recording();
    check_lossless(&pcm, &encoded(&pcm, "flac.oga", &["flac", "--ogg", "-f", "-o", "OUT", "IN"]), "FLAC");
}

#[test]
fn alac_is_exact() {
    let pcm = recording();
    check_lossless(&pcm, &ffmpeg(&pcm, "alac.m4a", &["-c:a", "alac"]), "ALAC");
    let pcm = Pcm::music(96_000, 2, 24, 100_003);
    let options = ["-c:a", "alac", "-sample_fmt", "s32p", "-bits_per_raw_sample", "24"];
    check_lossless(&pcm, &ffmpeg(&pcm, "alac24.m4a", &options), "ALAC");
}

#[test]
fn surround_keeps_the_order_of_wave() {
    let pcm = Pcm::music(48_000, 6, 16, 60_001);
    check_lossless(&pcm, &ffmpeg(&pcm, "surround.flac", &["-c:a", "flac"]), "FLAC");
    // Vorbis orders its channels in another way. The LFE loses most of what this recording has in it.
    let path = ffmpeg(&pcm, "surround.ogg", &["-c:a", "libvorbis", "-q:a", "8"]);
    let got = rest(&mut open(&path));
    assert_eq!(got.len(), pcm.samples.len());
    for channel in 0..6 {
        let alike = |other: usize| correlation(&pcm.samples[other..], &got[channel..], 6, 0);
        let best = (0..6).max_by(|&a, &b| alike(a).total_cmp(&alike(b)));
        assert_eq!(best, Some(channel));
    }
}

#[test]
fn mp3_with_a_lame_tag_is_trimmed_to_the_frame() {
    let pcm = recording();
    for (name, options) in [("cbr.mp3", &["-b", "192"][..]), ("vbr.mp3", &["-V", "2"])] {
        let command = [&["lame", "--quiet"], options, &["IN", "OUT"]].concat();
        check_lossy(&pcm, &encoded(&pcm, name, &command), "MP3", 0.99);
    }
    check_lossy(&pcm, &ffmpeg(&pcm, "ffmpeg.mp3", &["-c:a", "libmp3lame", "-q:a", "2"]), "MP3", 0.99);
}

#[test]
fn mp3_without_a_tag_is_not_trimmed() {
    let pcm = recording();
    // A rate that varies much at the beginning makes a length estimated from it useless.
    let path = encoded(&pcm, "untagged.mp3", &["lame", "--quiet", "-t", "-V", "4", "IN", "OUT"]);
    let mut decoder = open(&path);
    assert_eq!(decoder.total_frames(), None);
    assert!(decoder.tags().duration.is_some());
    let frames = rest(&mut decoder).len() / 2;
    assert_eq!(frames % 1152, 0);
    // LAME's delay, the decoder's and padding: at least one block more.
    assert!(frames >= pcm.frames() + 1105 && frames < pcm.frames() + 4 * 1152, "{frames}");
}

#[test]
fn vorbis_is_exact_to_the_frame() {
    let pcm = recording();
    check_lossy(
        &pcm,
        &encoded(&pcm, "plain.ogg", &["oggenc", "-Q", "-q6", "-o", "OUT", "IN"]),
        "Vorbis",
        0.99,
    );
    let pcm = Pcm::music(44_100, 2, 16, 1501);
    let path = encoded(&pcm, "one-page.ogg", &["oggenc", "-Q", "-q6", "-o", "OUT", "IN"]);
    check_lossy(&pcm, &path, "Vorbis", 0.98);
}

#[test]
fn opus_is_exact_to_the_frame() {
    let pcm = Pcm::music(48_000, 2, 16, 254_321);
    for frame in ["2.5", "20", "60"] {
        let name = format!("frame{frame}.opus");
        let command = ["opusenc", "--quiet", "--bitrate", "160", "--framesize", frame, "IN", "OUT"];
        check_lossy(&pcm, &encoded(&pcm, &name, &command), "Opus", 0.985);
    }
    check_lossy(
        &pcm,
        &ffmpeg(&pcm, "opus.m4a", &["-c:a", "libopus", "-b:a", "160k", "-f", "mp4"]),
        "Opus",
        0.985,
    );
}

#[test]
fn the_header_gain_of_opus_is_applied() {
    let pcm = Pcm::music(48_000, 2, 16, 96_000);
    let command = ["opusenc", "--quiet", "--bitrate", "160", "IN", "OUT"];
    let path = encoded(&pcm, "gain.opus", &command);
    let mut bytes = std::fs::read(path).unwrap();
    let plain = rest(&mut from_memory(bytes.clone()));
    // -10 dB in Q7.8, and the page's checksum anew.
    let head = bytes.windows(8).position(|w| w == b"OpusHead").unwrap();
    bytes[head + 16..head + 18].copy_from_slice(&(-10i16 * 256).to_le_bytes());
    seal_first_page(&mut bytes);
    let soft = rest(&mut from_memory(bytes));
    let gain = difference_db(&soft, &vec![0; soft.len()]) - difference_db(&plain, &vec![0; plain.len()]);
    assert!((gain + 10.0).abs() < 0.01, "{gain} dB");
}

#[test]
fn aac_in_mp4_loses_its_priming_and_padding() {
    let pcm = recording();
    check_lossy(&pcm, &ffmpeg(&pcm, "aac.m4a", &["-c:a", "aac", "-b:a", "192k"]), "AAC", 0.99);
    let options = ["-c:a", "aac", "-b:a", "192k", "-movflags", "+faststart"];
    check_lossy(&pcm, &ffmpeg(&pcm, "faststart.m4a", &options), "AAC", 0.99);
}

#[test]
fn aac_in_mp4_without_an_edit_list_loses_one_block() {
    let pcm = recording();
    let options = ["-c:a", "aac", "-b:a", "192k", "-use_editlist", "0"];
    check_lossy(&pcm, &ffmpeg(&pcm, "unedited.m4a", &options), "AAC", 0.99);
}

/// As encoders of HE-AAC write it, of which not all decode more than the lower half.
#[test]
fn an_mp4_that_tells_twice_its_rate_is_whole() {
    let pcm = Pcm::music(22_050, 2, 16, 101_357);
    let mut bytes = std::fs::read(ffmpeg(&pcm, "half.m4a", &["-c:a", "aac", "-b:a", "96k"])).unwrap();
    let find = |name: &[u8]| bytes.windows(4).rposition(|four| four == name).unwrap() + 4;
    let (mdhd, stts, elst, mp4a) = (find(b"mdhd"), find(b"stts"), find(b"elst"), find(b"mp4a"));
    let entries = u32::from_be_bytes(bytes[stts + 4..stts + 8].try_into().unwrap()) as usize;
    let deltas = (0..entries).map(|n| stts + 8 + 8 * n + 4);
    // Timescale, length of the media, of each packet and of the priming; and the rate, in 16.16 bits.
    for at in [mdhd + 12, mdhd + 16, elst + 12].into_iter().chain(deltas.collect::<Vec<_>>()) {
        let value = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        bytes[at..at + 4].copy_from_slice(&(2 * value).to_be_bytes());
    }
    bytes[mp4a + 24..mp4a + 28].copy_from_slice(&(44_100u32 << 16).to_be_bytes());
    let mut decoder = from_memory(bytes);
    assert_eq!((decoder.format().rate, decoder.total_frames()), (22_050, Some(pcm.frames() as u64)));
    let got = rest(&mut decoder);
    assert_eq!(got.len(), pcm.samples.len());
    assert_alike(&pcm.samples, &got, 2, 0.98, "twice its rate");
    for frame in [50_000usize, 100_000, 3] {
        let landed = decoder.seek(frame as u64).unwrap();
        assert_eq!((landed.frame, landed.exact), (frame as u64, true));
        let got = some(&mut decoder, 1_000);
        let noise = difference_db(&got, &rest_from(&pcm, frame)[..got.len()]);
        assert!(noise < -25.0, "{frame}: {noise:.1} dB");
    }
}

fn rest_from(pcm: &Pcm, frame: usize) -> &[i32] {
    &pcm.samples[frame * pcm.channels..]
}

#[test]
fn adts_is_whole_and_claims_no_length() {
    let pcm = recording();
    let mut decoder = open(&ffmpeg(&pcm, "plain.aac", &["-c:a", "aac", "-b:a", "192k"]));
    assert_eq!((decoder.codec(), decoder.total_frames()), ("AAC", None));
    let got = rest(&mut decoder);
    assert!(got.len() / 2 >= pcm.frames() + 1024, "{}", got.len() / 2);
    assert_alike(&pcm.samples, &got[2048..], 2, 0.99, "ADTS");
}

#[test]
fn tags_are_read() {
    let pcm = Pcm::music(44_100, 2, 16, 50_000);
    let tags = [
        "-metadata",
        "title=Segue",
        "-metadata",
        "artist=Ann",
        "-metadata",
        "album=On",
        "-metadata",
        "track=3/9",
        "-metadata",
        "date=1999",
    ];
    for name in ["tagged.mp3", "tagged.flac", "tagged.ogg", "tagged.m4a", "tagged.opus"] {
        let info = open(&ffmpeg(&pcm, name, &tags)).tags();
        assert_eq!(info.title.as_deref(), Some("Segue"), "{name}");
        assert_eq!(info.artists, ["Ann"], "{name}");
        assert_eq!(info.album.as_deref(), Some("On"), "{name}");
        assert_eq!(info.track_no, Some(3), "{name}");
        assert_eq!(info.date.as_deref(), Some("1999"), "{name}");
    }
}

#[test]
fn matroska_plays_and_seeks() {
    let pcm = Pcm::music(48_000, 2, 16, 254_321);
    for (name, options, codec) in [
        ("opus.webm", &["-c:a", "libopus", "-b:a", "160k"][..], "Opus"),
        ("vorbis.webm", &["-c:a", "libvorbis", "-q:a", "6"], "Vorbis"),
        ("flac.mka", &["-c:a", "flac"], "FLAC"),
    ] {
        let mut decoder = open(&ffmpeg(&pcm, name, options));
        assert_eq!(decoder.codec(), codec);
        let got = rest(&mut decoder);
        let frames = got.len() / 2;
        eprintln!("{name}: {frames} frames of {}", pcm.frames());
        // ffmpeg writes no padding for Vorbis: what the last block has too much, nothing tells.
        let most = pcm.frames() + if codec == "Vorbis" { 1024 } else { 0 };
        assert!((pcm.frames()..=most).contains(&frames), "{name}: {frames}");
        assert_alike(&pcm.samples, &got, 2, 0.985, name);
        let landed = decoder.seek(150_000).unwrap();
        assert!(landed.exact && landed.frame == 150_000, "{name}: {landed:?}");
        assert_eq!(rest(&mut decoder).len() / 2, frames - 150_000, "{name}");
    }
}

#[test]
fn caf_is_exact() {
    let pcm = recording();
    check_lossless(&pcm, &ffmpeg(&pcm, "plain.caf", &["-c:a", "pcm_s16le"]), "PCM");
    // ffmpeg states the length in whole packets only.
    let mut decoder = open(&ffmpeg(&pcm, "alac.caf", &["-c:a", "alac"]));
    assert_eq!((decoder.codec(), decoder.format().bits, decoder.total_frames()), ("ALAC", 16, None));
    assert!(rest(&mut decoder) == pcm.samples);
}

#[test]
fn fragmented_mp4_is_whole() {
    let pcm = recording();
    let options = ["-c:a", "aac", "-b:a", "192k", "-movflags", "+frag_keyframe+empty_moov"];
    let path = ffmpeg(&pcm, "fragmented.mp4", &options);
    for seekable in [true, false] {
        let bytes = std::fs::read(&path).unwrap();
        let mut decoder =
            crate::decode::Decoder::open(Memory::boxed(bytes, seekable), &Default::default()).unwrap();
        let got = rest(&mut decoder);
        eprintln!("fragmented.mp4: {} frames of {}", got.len() / 2, pcm.frames());
        assert!((pcm.frames()..pcm.frames() + 1024).contains(&(got.len() / 2)));
        assert_alike(&pcm.samples, &got, 2, 0.99, "fragmented");
    }
}

#[test]
fn mp2_plays() {
    let pcm = recording();
    let mut decoder = open(&ffmpeg(&pcm, "plain.mp2", &["-c:a", "mp2", "-b:a", "256k"]));
    assert_eq!(decoder.codec(), "MP2");
    assert!(rest(&mut decoder).len() / 2 >= pcm.frames());
}
