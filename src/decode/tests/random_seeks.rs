//! Five hundred jumps in a row, each right.

use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::fixture::*;
use crate::decode::{Decoder, Hints, Input};

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % most
    }
}

/// Files of a recording, each with the noise in dB that may differ after a jump; None where nothing may.
fn files() -> Vec<(PathBuf, Option<f64>)> {
    let pcm = recording();
    let made = |name: &str, command: &[&str]| encoded(&pcm, name, command);
    let lame = |name: &str, options: &[&str]| {
        made(name, &[&["lame", "--quiet"][..], options, &["IN", "OUT"]].concat())
    };
    let opus = Pcm::music(48_000, 2, 16, 254_321);
    vec![
        (made("plain.wav", &["cp", "IN", "OUT"]), None),
        (ffmpeg(&pcm, "plain.aiff", &[]), None),
        (ffmpeg(&pcm, "plain.caf", &[]), None),
        (made("plain.flac", &["flac", "-f", "-o", "OUT", "IN"]), None),
        (made("unindexed.flac", &["flac", "--no-seektable", "-f", "-o", "OUT", "IN"]), None),
        (made("flac.oga", &["flac", "--ogg", "-f", "-o", "OUT", "IN"]), None),
        (ffmpeg(&pcm, "alac.m4a", &["-c:a", "alac"]), None),
        (lame("cbr.mp3", &["-b", "192"]), None),
        (lame("low.mp3", &["-b", "32", "-m", "m"]), None),
        (lame("slow.mp3", &["-b", "8", "--resample", "16"]), None),
        (lame("vbr.mp3", &["-V", "2"]), None),
        (lame("abr.mp3", &["--abr", "160"]), None),
        (lame("untagged.mp3", &["-t", "-V", "4"]), None),
        (lame("titled.mp3", &["--tt", "A title", "-V", "5"]), None),
        (ffmpeg(&pcm, "plain.mp2", &["-b:a", "192k"]), None),
        (layer_1(), None),
        (made("plain.ogg", &["oggenc", "-Q", "-q6", "-o", "OUT", "IN"]), None),
        (ffmpeg(&pcm, "aac.m4a", &["-c:a", "aac", "-b:a", "192k"]), Some(-45.0)),
        (ffmpeg(&pcm, "plain.aac", &["-c:a", "aac", "-b:a", "192k"]), Some(-45.0)),
        (ffmpeg(&pcm, "alac.caf", &["-c:a", "alac"]), None),
        (ffmpeg(&pcm, "vorbis.webm", &["-c:a", "libvorbis", "-q:a", "6"]), None),
        (ffmpeg(&pcm, "flac.mka", &["-c:a", "flac"]), None),
        (ffmpeg(&pcm, "pcm.mka", &["-c:a", "pcm_s16le"]), None),
        (ffmpeg(&pcm, "alac.mka", &["-c:a", "alac"]), None),
        (ffmpeg(&pcm, "mp3.mka", &["-c:a", "libmp3lame", "-b:a", "192k"]), None),
        (ffmpeg(&pcm, "aac.mka", &["-c:a", "aac", "-b:a", "192k"]), Some(-45.0)),
        (ffmpeg(&opus, "opus.webm", &["-c:a", "libopus", "-b:a", "160k"]), Some(-60.0)),
        (with_pictures(&pcm, "pictures-vorbis.mkv", &["-c:a", "libvorbis", "-q:a", "6"]), None),
        (with_pictures(&opus, "pictures-opus.mkv", &["-c:a", "libopus", "-b:a", "160k"]), Some(-60.0)),
        (encoded(&opus, "seeks.opus", &["opusenc", "--quiet", "--bitrate", "160", "IN", "OUT"]), Some(-60.0)),
    ]
}

/// Beside a film, whose cues lead into the middle of clusters.
fn with_pictures(pcm: &Pcm, name: &str, options: &[&str]) -> PathBuf {
    let film = "testsrc=size=16x16:rate=5:duration=5.3";
    let front = ["ffmpeg", "-nostdin", "-y", "-i", "IN", "-f", "lavfi", "-i", film, "-c:v", "mjpeg"];
    encoded(pcm, name, &[&front[..], options, &["OUT"]].concat())
}

/// An MP1, which nothing here encodes: in ten bands of each frame whatever comes, in 5 bits.
fn layer_1() -> PathBuf {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/decode-fixtures");
    let path = folder.join("random.mp1");
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut bytes = Vec::new();
    for _ in 0..400 {
        // 192 kbit/s at 44.1 kHz, mono.
        let mut frame = vec![0xff, 0xff, 0x60, 0xc0];
        let mut bits = Vec::new();
        let mut put = |value: usize, len: usize| bits.extend((0..len).rev().map(|n| value >> n & 1));
        (0..32).for_each(|band| put(if band < 10 { 4 } else { 0 }, 4));
        (0..10).for_each(|_| put(10 + random.below(20), 6));
        // All ones is no sample.
        (0..12 * 10).for_each(|_| put(random.below(31), 5));
        frame.extend(bits.chunks(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | *bit as u8)));
        frame.resize(208, 0);
        bytes.extend(frame);
    }
    let work = tempfile::NamedTempFile::new_in(&folder).unwrap();
    std::fs::write(work.path(), bytes).unwrap();
    work.persist(&path).unwrap();
    path
}

#[test]
fn each_of_five_hundred_jumps_lands_on_its_frame() {
    for (path, limit) in files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut decoder = open(&path);
        let whole = rest(&mut decoder);
        let channels = usize::from(decoder.format().channels);
        let frames = whole.len() / channels;
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut loudest = f64::NEG_INFINITY;
        for jump in 0..500 {
            // Everywhere, near the end, and a little ahead.
            let frame = match jump % 5 {
                0 => frames - 1 - random.below(3_000),
                1 => random.below(2_000),
                _ => random.below(frames),
            };
            let landed = decoder.seek(frame as u64).unwrap();
            assert_eq!((landed.frame, landed.exact), (frame as u64, true), "{name}, jump {jump}");
            let got = some(&mut decoder, 500);
            let want = &whole[frame * channels..];
            assert!(got.len() >= want.len().min(500 * channels), "{name}: {} samples at {frame}", got.len());
            let want = &want[..got.len()];
            match limit {
                None => assert!(got == want, "{name}, jump {jump} to {frame}"),
                Some(_) => loudest = loudest.max(difference_db(want, &got)),
            }
        }
        if let Some(limit) = limit {
            eprintln!("{name}: at most {loudest:.1} dB");
            assert!(loudest < limit, "{name}: {loudest:.1} dB");
        }
        assert_eq!(decoder.lost_packets(), 0, "{name}: what is decoded to warm up is not lost");
    }
}

/// Bytes behind a network: those at hand are the ones read so far and a little more.
struct Distant {
    bytes: Cursor<Vec<u8>>,
    ahead: u64,
    read: Arc<AtomicU64>,
}

impl Read for Distant {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = buf.len().min(4_096);
        let n = self.bytes.read(&mut buf[..n])?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl Seek for Distant {
    fn seek(&mut self, pos: SeekFrom) -> std::io::Result<u64> {
        self.bytes.seek(pos)
    }
}

impl Input for Distant {
    fn byte_len(&self) -> Option<u64> {
        Some(self.bytes.get_ref().len() as u64)
    }
    fn is_seekable(&self) -> bool {
        true
    }
    fn at_hand(&self, from: u64) -> u64 {
        from + self.ahead
    }
}

#[test]
fn what_has_not_come_yet_is_jumped_to_by_arithmetic_or_table_and_told_as_a_guess() {
    let long = Pcm::music(44_100, 2, 16, 44_100 * 60);
    let lame = |name: &str, options: &[&str]| {
        encoded(&long, name, &[&["lame", "--quiet"][..], options, &["IN", "OUT"]].concat())
    };
    // Off by so many seconds at the most.
    for (path, most) in [
        (lame("long-cbr.mp3", &["-b", "128"]), 0.06),
        (lame("long-vbr.mp3", &["-V", "2"]), 1.5),
        (lame("long-untagged.mp3", &["-t", "-b", "128"]), 0.06),
        (ffmpeg(&long, "long.aac", &["-c:a", "aac", "-b:a", "128k"]), 3.0),
    ] {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        let len = bytes.len() as u64;
        let whole = rest(&mut open(&path));
        let read = Arc::new(AtomicU64::new(0));
        let input = Distant { bytes: Cursor::new(bytes), ahead: 20_000, read: read.clone() };
        let hints =
            Hints { content_type: None, extension: path.extension().map(|e| e.to_string_lossy().into()) };
        let mut decoder = Decoder::open(Box::new(input), &hints).unwrap();
        let before = read.load(Ordering::Relaxed);
        let landed = decoder.seek(44_100 * 40).unwrap();
        assert_eq!((landed.frame, landed.exact), (44_100 * 40, false), "{name}");
        let cost = read.load(Ordering::Relaxed) - before;
        assert!(cost < 150_000 && cost < len / 4, "{name}: {cost} bytes of {len} were read");
        let got = some(&mut decoder, 8_000);
        let off = place_of(&got, &whole, 44_100 * 40);
        eprintln!("{name}: {:.3} s off, {cost} bytes read", off as f64 / 44_100.0);
        assert!((off as f64 / 44_100.0).abs() < most, "{name}: {off} frames off");
        // What has passed by then is known again, to the frame.
        let landed = decoder.seek(5_000).unwrap();
        assert_eq!((landed.frame, landed.exact), (5_000, true), "{name}");
        if !name.ends_with("aac") {
            let got = some(&mut decoder, 2_000);
            assert!(got == whole[10_000..][..got.len()], "{name}");
        }
    }
}

#[test]
fn matroska_over_a_network_says_what_it_knows() {
    let long = Pcm::music(48_000, 2, 16, 48_000 * 60);
    // Blocks of Vorbis are of several lengths: which frame one begins with is counted, or told by its time.
    for (name, options, is_sure) in [
        ("long.webm", &["-c:a", "libopus", "-b:a", "160k"][..], true),
        ("long-vorbis.webm", &["-c:a", "libvorbis", "-q:a", "6"], false),
        ("long-flac.mka", &["-c:a", "flac"], true),
        ("long-aac.mka", &["-c:a", "aac", "-b:a", "192k"], true),
    ] {
        let path = ffmpeg(&long, name, options);
        let whole = rest(&mut open(&path));
        let bytes = std::fs::read(&path).unwrap();
        let len = bytes.len() as u64;
        let read = Arc::new(AtomicU64::new(0));
        let input = Distant { bytes: Cursor::new(bytes), ahead: 20_000, read: read.clone() };
        let mut decoder = Decoder::open(Box::new(input), &Hints::default()).unwrap();
        let before = read.load(Ordering::Relaxed);
        for frame in [48_000 * 40 + 123, 48_000 * 20 + 7] {
            let landed = decoder.seek(frame as u64).unwrap();
            assert_eq!((landed.frame, landed.exact), (frame as u64, is_sure), "{name}");
            let got = some(&mut decoder, 4_100);
            let off = (-200..=200i64).min_by(|a, b| {
                let noise = |by: i64| {
                    let at = (frame as i64 + by) as usize * 2;
                    difference_db(&got[4_000..8_000], &whole[at + 4_000..at + 8_000])
                };
                noise(*a).total_cmp(&noise(*b))
            });
            let off = off.unwrap().abs();
            eprintln!("{name}: {off} frames off");
            // A millisecond, and what rounding adds.
            assert!(if is_sure { off == 0 } else { off < 50 }, "{name}: {off} frames off");
        }
        let cost = read.load(Ordering::Relaxed) - before;
        assert!(cost < len / 2, "{name}: {cost} bytes of {len} were read");
        // What was heard from the beginning is counted.
        decoder.seek(0).unwrap();
        some(&mut decoder, 100_000);
        for frame in [48_000 * 50, 70_000] {
            decoder.seek(frame).unwrap();
        }
        let landed = decoder.seek(50_000).unwrap();
        assert_eq!((landed.frame, landed.exact), (50_000, true), "{name}");
        let got = some(&mut decoder, 2_000);
        let noise = difference_db(&got, &whole[100_000..][..got.len()]);
        assert!(noise < -45.0, "{name}: {noise:.1} dB");
    }
}

#[test]
fn a_film_is_not_read_through_for_its_sound() {
    let film = "testsrc=size=640x480:rate=25:duration=5.3";
    let front = ["ffmpeg", "-nostdin", "-y", "-i", "IN", "-f", "lavfi", "-i", film, "-pix_fmt", "yuv420p"];
    let options = ["-c:v", "rawvideo", "-c:a", "libvorbis", "-q:a", "6", "OUT"];
    let bytes = std::fs::read(encoded(&recording(), "film.mkv", &[&front[..], &options].concat())).unwrap();
    let len = bytes.len() as u64;
    let read = Arc::new(AtomicU64::new(0));
    let input = Distant { bytes: Cursor::new(bytes), ahead: u64::MAX / 2, read: read.clone() };
    let mut decoder = Decoder::open(Box::new(input), &Hints::default()).unwrap();
    let before = read.load(Ordering::Relaxed);
    assert_eq!(decoder.seek(220_000).unwrap().frame, 220_000);
    let cost = read.load(Ordering::Relaxed) - before;
    assert!(len > 60_000_000 && cost < 52_000_000, "{cost} bytes of {len} were read");
}

/// By how many frames `got` lies behind `frame` in `whole`.
pub(super) fn place_of(got: &[i32], whole: &[i32], frame: usize) -> i64 {
    let left = |samples: &[i32], n: usize| f64::from(samples[n * 2] >> 8);
    let energy = |at: usize| {
        (0..4_000)
            .step_by(17)
            .map(|n| (left(got, n + 2_000) - left(whole, at + n + 2_000)).powi(2))
            .sum::<f64>()
    };
    let range = 44_100 * 3;
    let best = (frame - range..frame + range).min_by(|a, b| energy(*a).total_cmp(&energy(*b)));
    best.unwrap() as i64 - frame as i64
}
