//! After a seek the first frame is the one that was asked for.

use std::path::{Path, PathBuf};

use super::fixture::*;
use crate::decode::{DecodeError, Decoder, Hints, Landed};

const PLACES: [usize; 9] = [100_000, 3, 0, 200_000, 199_000, 199_500, 44_100, 1, 233_000];

/// What may differ after a jump: nothing, or noise of the codec in dB of full scale.
enum Limit {
    Exact,
    Noise(f64),
}

fn files() -> Vec<(PathBuf, Limit)> {
    let pcm = recording();
    let fixed = |name: &str, command: &[&str]| encoded(&pcm, name, command);
    let at_48k = Pcm::music(48_000, 2, 16, 254_321);
    let fragmented = ["-c:a", "aac", "-b:a", "192k", "-movflags", "+frag_keyframe+empty_moov"];
    vec![
        (fixed("plain.wav", &["cp", "IN", "OUT"]), Limit::Exact),
        (fixed("plain.flac", &["flac", "-f", "-o", "OUT", "IN"]), Limit::Exact),
        (fixed("unindexed.flac", &["flac", "--no-seektable", "-f", "-o", "OUT", "IN"]), Limit::Exact),
        (fixed("flac.oga", &["flac", "--ogg", "-f", "-o", "OUT", "IN"]), Limit::Exact),
        (ffmpeg(&pcm, "plain.aiff", &[]), Limit::Exact),
        (ffmpeg(&pcm, "alac.m4a", &["-c:a", "alac"]), Limit::Exact),
        (fixed("cbr.mp3", &["lame", "--quiet", "-b", "192", "IN", "OUT"]), Limit::Exact),
        (fixed("vbr.mp3", &["lame", "--quiet", "-V", "2", "IN", "OUT"]), Limit::Exact),
        (fixed("untagged.mp3", &["lame", "--quiet", "-t", "-V", "4", "IN", "OUT"]), Limit::Exact),
        (fixed("plain.ogg", &["oggenc", "-Q", "-q6", "-o", "OUT", "IN"]), Limit::Exact),
        (ffmpeg(&pcm, "aac.m4a", &["-c:a", "aac", "-b:a", "192k"]), Limit::Noise(-55.0)),
        (ffmpeg(&pcm, "plain.aac", &["-c:a", "aac", "-b:a", "192k"]), Limit::Noise(-55.0)),
        (opus(), Limit::Noise(-70.0)),
        (fixed("abr.mp3", &["lame", "--quiet", "--abr", "160", "IN", "OUT"]), Limit::Exact),
        (ffmpeg(&pcm, "plain.mp2", &["-b:a", "192k"]), Limit::Exact),
        (ffmpeg(&pcm, "plain.caf", &[]), Limit::Exact),
        (ffmpeg(&pcm, "alac.caf", &["-c:a", "alac"]), Limit::Exact),
        (ffmpeg(&pcm, "vorbis.webm", &["-c:a", "libvorbis", "-q:a", "6"]), Limit::Exact),
        (ffmpeg(&pcm, "flac.mka", &["-c:a", "flac"]), Limit::Exact),
        (ffmpeg(&pcm, "mp3.mka", &["-c:a", "libmp3lame", "-b:a", "192k"]), Limit::Exact),
        (ffmpeg(&pcm, "aac.mka", &["-c:a", "aac", "-b:a", "192k"]), Limit::Noise(-45.0)),
        (ffmpeg(&pcm, "flac.mp4", &["-c:a", "flac", "-strict", "-2"]), Limit::Exact),
        (ffmpeg(&pcm, "fragmented.mp4", &fragmented), Limit::Noise(-55.0)),
        (ffmpeg(&pcm, "uncued.mka", &["-c:a", "flac", "-live", "1"]), Limit::Exact),
        (ffmpeg(&pcm, "uncued.webm", &["-c:a", "libvorbis", "-q:a", "6", "-live", "1"]), Limit::Exact),
        (ffmpeg(&at_48k, "opus.mp4", &["-c:a", "libopus", "-b:a", "160k"]), Limit::Noise(-70.0)),
        (ffmpeg(&at_48k, "opus.caf", &["-c:a", "libopus", "-b:a", "160k"]), Limit::Noise(-70.0)),
    ]
}

fn opus() -> PathBuf {
    let pcm = Pcm::music(48_000, 2, 16, 254_321);
    encoded(
        &pcm,
        "frame20.opus",
        &["opusenc", "--quiet", "--bitrate", "160", "--framesize", "20", "IN", "OUT"],
    )
}

fn check(whole: &[i32], decoder: &mut Decoder, frame: usize, limit: &Limit, path: &Path) {
    let name = path.file_name().unwrap().display();
    let landed = decoder.seek(frame as u64).unwrap();
    assert_eq!(landed, Landed { frame: frame as u64, exact: true }, "{name}");
    let got = some(decoder, 3000);
    let want = &whole[frame * 2..];
    assert!(got.len() >= want.len().min(6000), "{name}: {} samples after {frame}", got.len());
    let want = &want[..got.len()];
    match limit {
        Limit::Exact => assert!(got == want, "{name} after a seek to {frame}"),
        Limit::Noise(most) => {
            let noise = difference_db(want, &got);
            assert!(noise < *most, "{name} after a seek to {frame}: {noise:.1} dB");
        }
    }
}

#[test]
fn a_seek_lands_on_the_frame() {
    for (path, limit) in files() {
        let whole = rest(&mut open(&path));
        let mut decoder = open(&path);
        for frame in PLACES {
            check(&whole, &mut decoder, frame, &limit, &path);
        }
    }
}

#[test]
fn a_seek_after_the_end_works() {
    for (path, limit) in files() {
        let whole = rest(&mut open(&path));
        let mut decoder = open(&path);
        rest(&mut decoder);
        for frame in [150_000, 0] {
            check(&whole, &mut decoder, frame, &limit, &path);
            rest(&mut decoder);
        }
    }
}

#[test]
fn what_follows_a_seek_is_all_of_the_rest() {
    for (path, _) in files() {
        let whole = rest(&mut open(&path)).len() / 2;
        let mut decoder = open(&path);
        for frame in [whole - 1, whole - 5000, 77_777] {
            assert_eq!(decoder.seek(frame as u64).unwrap().frame, frame as u64, "{}", path.display());
            assert_eq!(rest(&mut decoder).len() / 2, whole - frame, "{}", path.display());
        }
    }
}

#[test]
fn a_seek_behind_the_end_goes_to_the_end() {
    for (path, _) in files() {
        let whole = rest(&mut open(&path)).len() as u64 / 2;
        let mut decoder = open(&path);
        for frame in [whole, whole + 1_000_000] {
            assert_eq!(decoder.seek(frame).unwrap().frame, whole, "{}", path.display());
            assert_eq!(decoder.next(&mut Vec::new()).unwrap(), None);
        }
        assert_eq!(decoder.seek(10).unwrap().frame, 10);
    }
}

#[test]
fn a_source_that_only_runs_forward_seeks_forward() {
    for name in ["plain.wav", "plain.flac", "cbr.mp3", "plain.ogg", "faststart.m4a"] {
        let path = match files().into_iter().find(|(path, _)| path.ends_with(name)) {
            Some((path, _)) => path,
            None => ffmpeg(&recording(), name, &["-c:a", "aac", "-b:a", "192k", "-movflags", "+faststart"]),
        };
        let whole = rest(&mut open(&path));
        let bytes = std::fs::read(&path).unwrap();
        let mut decoder = Decoder::open(Memory::boxed(bytes, false), &Hints::default()).unwrap();
        assert_eq!(decoder.seek(150_001).unwrap().frame, 150_001, "{name}");
        let got = some(&mut decoder, 2000);
        assert!(got == whole[300_002..][..got.len()], "{name}");
        assert!(matches!(decoder.seek(100), Err(DecodeError::ForwardOnly)), "{name}");
        // It goes on where it was.
        let more = some(&mut decoder, 1000);
        assert!(more == whole[300_002 + got.len()..][..more.len()], "{name}");
    }
}
