//! Gapless pairs: a recording is cut in two, both halves are encoded on their own, decoded and put together, and the
//! result is laid beside the uncut recording. A row for every codec in every container that an encoder here writes.

use std::path::{Path, PathBuf};

use super::fixture::*;

/// Where the recording is cut, in frames: no multiple of any block.
const CUT: usize = 101_357;
/// How much louder than elsewhere the error may be around the join, in dB.
const LOUDER: f64 = 6.0;

/// What a format promises.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Promise {
    /// Every sample of the recording.
    Exact,
    /// As many frames as the recording has, each at its place.
    Frames,
    /// Where the recording begins. Nothing tells where it ends inside the last block, of so many frames.
    Beginning(usize),
    /// Nothing: all that is in the blocks of so many frames is played, one after the other.
    Nothing(usize),
}

use Promise::*;

type Row = (&'static str, u32, Promise, &'static [&'static str]);

const FRAGMENTED: [&str; 6] = ["-c:a", "aac", "-b:a", "192k", "-movflags", "+frag_keyframe+empty_moov"];
const FF: [&str; 4] = ["ffmpeg", "-nostdin", "-y", "-i"];

/// The name that the file ends with, its rate, its promise, and how it is made; what does not begin with a program are
/// ffmpeg's options.
const TABLE: &[Row] = &[
    ("wav", 44_100, Exact, &["-c:a", "pcm_s16le"]),
    ("aiff", 44_100, Exact, &["-c:a", "pcm_s16be"]),
    ("pcm.caf", 44_100, Exact, &["-c:a", "pcm_s16le"]),
    ("pcm.mka", 44_100, Exact, &["-c:a", "pcm_s16le"]),
    ("pcm.mov", 44_100, Exact, &["-c:a", "pcm_s16le"]),
    ("flac", 44_100, Exact, &["flac", "-s", "-f", "-o", "OUT", "IN"]),
    ("oga", 44_100, Exact, &["flac", "-s", "--ogg", "-f", "-o", "OUT", "IN"]),
    ("flac.mka", 44_100, Exact, &["-c:a", "flac"]),
    ("flac.mp4", 44_100, Exact, &["-c:a", "flac", "-strict", "-2"]),
    ("lavc.oga", 44_100, Exact, &["-c:a", "flac"]),
    ("alac.m4a", 44_100, Exact, &["-c:a", "alac"]),
    ("alac.caf", 44_100, Exact, &["-c:a", "alac"]),
    ("alac.mka", 44_100, Exact, &["-c:a", "alac"]),
    ("lame.mp3", 44_100, Frames, &["lame", "--quiet", "-b", "192", "IN", "OUT"]),
    ("lame-vbr.mp3", 44_100, Frames, &["lame", "--quiet", "-V", "2", "IN", "OUT"]),
    ("lavc.mp3", 44_100, Frames, &["-c:a", "libmp3lame", "-b:a", "192k"]),
    ("lavc-vbr.mp3", 44_100, Frames, &["-c:a", "libmp3lame", "-q:a", "2"]),
    ("low.mp3", 22_050, Frames, &["lame", "--quiet", "-b", "128", "IN", "OUT"]),
    ("aac.m4a", 44_100, Frames, &["-c:a", "aac", "-b:a", "192k"]),
    ("faststart.m4a", 44_100, Frames, &["-c:a", "aac", "-b:a", "192k", "-movflags", "+faststart"]),
    ("unedited.m4a", 44_100, Frames, &["-c:a", "aac", "-b:a", "192k", "-use_editlist", "0"]),
    ("fragmented.mp4", 44_100, Beginning(1024), &FRAGMENTED),
    ("aac.mov", 44_100, Frames, &["-c:a", "aac", "-b:a", "192k"]),
    ("aac.mka", 44_100, Beginning(1024), &["-c:a", "aac", "-b:a", "192k"]),
    ("oggenc.ogg", 44_100, Frames, &["oggenc", "-Q", "-q6", "-o", "OUT", "IN"]),
    ("lavc.ogg", 44_100, Frames, &["-c:a", "libvorbis", "-q:a", "6"]),
    ("vorbis.mka", 44_100, Beginning(1024), &["-c:a", "libvorbis", "-q:a", "6"]),
    ("vorbis.webm", 44_100, Beginning(1024), &["-c:a", "libvorbis", "-q:a", "6"]),
    ("opus", 48_000, Frames, &["opusenc", "--quiet", "--bitrate", "160", "IN", "OUT"]),
    ("lavc.opus", 48_000, Frames, &["-c:a", "libopus", "-b:a", "160k"]),
    ("opus.webm", 48_000, Frames, &["-c:a", "libopus", "-b:a", "160k"]),
    ("opus.mka", 48_000, Frames, &["-c:a", "libopus", "-b:a", "160k"]),
    // ffmpeg leaves out what Opus begins with.
    ("opus.caf", 48_000, Nothing(960), &["-c:a", "libopus", "-b:a", "160k"]),
    ("opus.mp4", 48_000, Frames, &["-c:a", "libopus", "-b:a", "160k", "-f", "mp4"]),
    ("mp3.mp4", 44_100, Frames, &["-c:a", "libmp3lame", "-b:a", "192k"]),
    ("mp2.mka", 44_100, Nothing(1152), &["-c:a", "mp2", "-b:a", "256k"]),
    // Of its priming nothing is written down; it is LAME's own, but nothing tells that either.
    ("mp3.mka", 44_100, Nothing(1152), &["-c:a", "libmp3lame", "-b:a", "192k"]),
    ("aac", 44_100, Nothing(1024), &["-c:a", "aac", "-b:a", "192k"]),
    ("bare.mp3", 44_100, Nothing(1152), &["lame", "--quiet", "-t", "-b", "192", "IN", "OUT"]),
    ("mp2", 44_100, Nothing(1152), &["-c:a", "mp2", "-b:a", "256k"]),
];

fn made(half: &Pcm, name: &str, command: &[&str]) -> PathBuf {
    let own = ["flac", "lame", "oggenc", "opusenc"].contains(&command[0]);
    let line = if own { command.to_vec() } else { [&FF[..], &["IN"], command, &["OUT"]].concat() };
    encoded(half, name, &line)
}

/// Music with as much noise in it as music has. Of pure tones codecs leave so little error that every beginning, where
/// they have nothing before to go by, stands out.
fn dense(rate: u32) -> Pcm {
    let mut pcm = Pcm::music(rate, 2, 16, 233_731);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for sample in &mut pcm.samples {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let noise = (state >> 33) as i32 - (1 << 30);
        *sample = (*sample / 4 * 3 + noise / 20) & !0xffff;
    }
    pcm
}

/// The recording, and both halves as they are encoded.
fn halves(name: &str, rate: u32, command: &[&str]) -> (Pcm, [PathBuf; 2]) {
    let pcm = dense(rate);
    let first = made(&pcm.cut(0, CUT), &format!("dense-a.{name}"), command);
    let second = made(&pcm.cut(CUT, pcm.frames()), &format!("dense-b.{name}"), command);
    (pcm, [first, second])
}

fn decoded(path: &Path) -> (Option<u64>, Vec<i32>) {
    let mut decoder = open(path);
    decoder.measure().unwrap();
    let out = rest(&mut decoder);
    assert_eq!(decoder.lost_packets(), 0, "{}", path.display());
    (decoder.total_frames(), out)
}

fn rms(want: &[i32], got: &[i32]) -> f64 {
    10f64.powf(difference_db(want, got) / 20.0)
}

/// How much louder the error is within 10 ms of the join than in the median of all pieces of 20 ms, in dB.
fn louder_at_the_join(pcm: &Pcm, got: &[i32]) -> f64 {
    let piece = pcm.rate as usize / 50 * pcm.channels;
    let mut all: Vec<f64> = pcm
        .samples
        .chunks_exact(piece)
        .zip(got.chunks_exact(piece))
        .map(|(want, got)| rms(want, got))
        .collect();
    all.sort_by(f64::total_cmp);
    let around = CUT * pcm.channels - piece / 2..CUT * pcm.channels + piece / 2;
    20.0 * (rms(&pcm.samples[around.clone()], &got[around]) / all[all.len() / 2]).log10()
}

/// The frames of a half as far as the recording goes, and how many follow that nothing tells apart.
fn check_half(name: &str, promise: Promise, want: usize, path: &Path) -> (Vec<i32>, usize) {
    let (told, mut out) = decoded(path);
    let frames = out.len() / 2;
    match promise {
        Exact | Frames => {
            assert_eq!(frames, want, "{name}");
            assert!(told.is_none_or(|told| told == want as u64), "{name} says {told:?}");
        }
        Beginning(block) => assert!((want..want + block).contains(&frames), "{name}: {frames} of {want}"),
        Nothing(block) => {
            assert_eq!(told, None, "{name} claims a length");
            assert!((want..want + 4 * block).contains(&frames), "{name}: {frames} of {want}");
        }
    }
    out.truncate(2 * want);
    (out, frames - want)
}

#[test]
fn halves_join_as_the_format_promises() {
    let mut failed = Vec::new();
    for &(name, rate, promise, command) in TABLE {
        let row = std::panic::catch_unwind(|| check_row(name, rate, promise, command));
        if row.is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

fn check_row(name: &str, rate: u32, promise: Promise, command: &[&str]) {
    let (pcm, [first, second]) = halves(name, rate, command);
    let (mut out, more) = check_half(name, promise, CUT, &first);
    let (mut rest, _) = check_half(name, promise, pcm.frames() - CUT, &second);
    if let Nothing(_) = promise {
        eprintln!("{name:14} {promise:?}: {more} frames of blocks between the halves");
        return;
    }
    out.append(&mut rest);
    match promise {
        Exact => {
            assert!(out == pcm.samples, "{name}: samples differ");
            eprintln!("{name:14} {promise:?}: bit for bit");
        }
        _ => {
            let louder = louder_at_the_join(&pcm, &out);
            eprintln!("{name:14} {promise:?}: {more} frames too many, error {louder:+.1} dB at the join");
            assert!(louder <= LOUDER, "{name}: the error is {louder:.1} dB louder at the join");
        }
    }
}

#[test]
fn a_frame_too_many_or_too_few_is_noticed() {
    let (pcm, [first, second]) = halves("lame.mp3", 44_100, &["lame", "--quiet", "-b", "192", "IN", "OUT"]);
    let (whole, rest) = (decoded(&first).1, decoded(&second).1);
    for slip in [-1isize, 1] {
        // The second half comes a frame early or late, as it does where one is cut off or left in too much.
        let mut out = whole.clone();
        if slip < 0 {
            out.truncate(out.len() - 2);
        } else {
            out.extend([0, 0]);
        }
        out.extend_from_slice(&rest);
        let piece = 882;
        let behind = 2 * CUT + piece..2 * CUT + 40 * piece;
        let wrong = rms(&pcm.samples[behind.clone()], &out[behind.clone()]);
        let right = rms(&pcm.samples[behind.clone()], &[&whole[..], &rest[..]].concat()[behind]);
        assert!(wrong > 2.0 * right, "{wrong} and {right}");
    }
}
