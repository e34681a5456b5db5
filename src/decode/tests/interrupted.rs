//! Reading that breaks off, as when a newer jump is asked for while one waits for bytes; and what comes after.

use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::fixture::*;
use crate::decode::{DecodeError, Decoder, Hints, Input};

/// Bytes of which so many more can be read before reading breaks off.
struct Interrupted {
    bytes: Cursor<Vec<u8>>,
    left: Arc<AtomicUsize>,
    seekable: bool,
}

impl Read for Interrupted {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return Err(std::io::Error::other("another jump comes"));
        }
        let n = buf.len().min(1_500).min(left);
        let n = self.bytes.read(&mut buf[..n])?;
        self.left.store(left - n, Ordering::Relaxed);
        Ok(n)
    }
}

impl Seek for Interrupted {
    fn seek(&mut self, pos: SeekFrom) -> std::io::Result<u64> {
        self.bytes.seek(pos)
    }
}

impl Input for Interrupted {
    fn byte_len(&self) -> Option<u64> {
        Some(self.bytes.get_ref().len() as u64)
    }
    fn is_seekable(&self) -> bool {
        self.seekable
    }
    fn at_hand(&self, from: u64) -> u64 {
        from.max(if self.seekable { u64::MAX } else { 0 })
    }
}

/// Files with the noise in dB that a jump may leave.
fn files() -> Vec<(PathBuf, Option<f64>)> {
    let pcm = recording();
    let made = |name: &str, command: &[&str]| encoded(&pcm, name, command);
    let opus = Pcm::music(48_000, 2, 16, 254_321);
    vec![
        (made("plain.wav", &["cp", "IN", "OUT"]), None),
        (ffmpeg(&pcm, "plain.aiff", &[]), None),
        (ffmpeg(&pcm, "s24le.caf", &["-c:a", "pcm_s24le"]), None),
        (ffmpeg(&pcm, "alac.caf", &["-c:a", "alac"]), None),
        (made("plain.flac", &["flac", "-f", "-o", "OUT", "IN"]), None),
        (made("cbr.mp3", &["lame", "--quiet", "-b", "192", "IN", "OUT"]), None),
        (made("untagged.mp3", &["lame", "--quiet", "-t", "-V", "4", "IN", "OUT"]), None),
        (ffmpeg(&pcm, "alac.m4a", &["-c:a", "alac"]), None),
        (ffmpeg(&pcm, "aac.m4a", &["-c:a", "aac", "-b:a", "192k"]), Some(-45.0)),
        (ffmpeg(&pcm, "plain.aac", &["-c:a", "aac", "-b:a", "192k"]), Some(-45.0)),
        (made("plain.ogg", &["oggenc", "-Q", "-q6", "-o", "OUT", "IN"]), None),
        (made("flac.oga", &["flac", "--ogg", "-f", "-o", "OUT", "IN"]), None),
        (ffmpeg(&pcm, "vorbis.webm", &["-c:a", "libvorbis", "-q:a", "6"]), None),
        (ffmpeg(&pcm, "pcm.mka", &["-c:a", "pcm_s16le"]), None),
        (ffmpeg(&opus, "opus.webm", &["-c:a", "libopus", "-b:a", "160k"]), Some(-60.0)),
    ]
}

struct Case {
    name: String,
    whole: Vec<i32>,
    noise: Option<f64>,
    decoder: Decoder,
    left: Arc<AtomicUsize>,
}

impl Case {
    fn new(path: &PathBuf, noise: Option<f64>, seekable: bool) -> Case {
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        let bytes = Cursor::new(std::fs::read(path).unwrap());
        let input = Interrupted { bytes, left: left.clone(), seekable };
        let decoder = Decoder::open(Box::new(input), &Hints::default()).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        Case { name, whole: rest(&mut open(path)), noise, decoder, left }
    }

    fn allow(&self, bytes: usize) {
        self.left.store(bytes, Ordering::Relaxed);
    }

    /// The decoder gives what is at this frame.
    fn assert_at(&mut self, frame: u64, what: &str) {
        let got = some(&mut self.decoder, 3_000);
        let want = &self.whole[frame as usize * 2..][..got.len()];
        match self.noise {
            None => assert!(got == want, "{}, {what}: at {frame}", self.name),
            Some(most) => {
                let noise = difference_db(&got, want);
                assert!(noise < most, "{}, {what}: at {frame}, {noise:.1} dB", self.name);
            }
        }
    }

    fn assert_lands(&mut self, frame: u64, what: &str) {
        let landed = self.decoder.seek(frame).unwrap_or_else(|e| panic!("{}, {what}: {e}", self.name));
        assert_eq!((landed.frame, landed.exact), (frame, true), "{}, {what}", self.name);
        self.assert_at(frame, what);
    }
}

#[test]
fn after_a_jump_that_broke_off_the_next_one_is_right() {
    for (path, noise) in files() {
        for bytes in [0, 701, 2_999, 9_001] {
            let mut case = Case::new(&path, noise, true);
            case.assert_lands(30_000, "before");
            let at = case.decoder.position();
            let mut broke_off = 0;
            for (target, then) in [(180_000, at + 500), (200_000, 200_100), (5_000, 150_000), (90_000, 4_000)]
            {
                case.allow(bytes);
                let sought = case.decoder.seek(target);
                case.allow(usize::MAX);
                broke_off += u32::from(matches!(sought, Err(DecodeError::Input(_))));
                case.assert_lands(then, &format!("after one to {target} that broke off at {bytes} bytes"));
            }
            assert!(broke_off > 0 || bytes > 1_000, "{}: nothing broke off after {bytes} bytes", case.name);
            // What follows at once is what was asked for.
            case.allow(0);
            let sought = case.decoder.seek(210_000);
            case.allow(usize::MAX);
            if sought.is_err() {
                case.assert_at(210_000, "after one that broke off");
            }
        }
    }
}

#[test]
fn what_broke_off_between_two_jumps_goes_on_or_jumps_rightly() {
    for (path, noise) in files() {
        for bytes in [1, 703, 1_999] {
            for ahead in [None, Some(0), Some(7_000), Some(100_000)] {
                let mut case = Case::new(&path, noise, true);
                case.assert_lands(40_000, "before");
                case.allow(bytes);
                let mut out = Vec::new();
                while let Ok(Some(_)) = case.decoder.next(&mut out) {}
                case.allow(usize::MAX);
                let at = 43_000.max(case.decoder.position());
                let what = format!("{bytes} bytes, then {ahead:?}");
                match ahead {
                    None => case.assert_at(case.decoder.position(), &what),
                    Some(ahead) => case.assert_lands(at + ahead, &what),
                }
            }
        }
    }
}

#[test]
fn what_only_runs_forward_goes_on_after_it_broke_off() {
    let forward = ["wav", "aiff", "flac", "ogg", "mp3"];
    for (path, noise) in files() {
        let extension = path.extension().unwrap().to_str().unwrap().to_owned();
        if !forward.contains(&extension.as_str()) {
            continue;
        }
        for bytes in [1, 703, 1_999] {
            let mut case = Case::new(&path, noise, false);
            some(&mut case.decoder, 40_000);
            case.allow(bytes);
            while let Ok(Some(_)) = case.decoder.next(&mut Vec::new()) {}
            case.allow(usize::MAX);
            let at = case.decoder.position() + 30_000;
            let landed = case.decoder.seek(at).unwrap();
            assert_eq!(landed.frame, at, "{}", case.name);
            assert_eq!(landed.exact, extension != "mp3", "{}: a frame may be missing", case.name);
            if landed.exact {
                case.assert_at(at, &format!("{bytes} bytes, forward only"));
            }
            // And again, in the middle of a jump.
            case.allow(bytes);
            let sought = case.decoder.seek(at + 100_000);
            case.allow(usize::MAX);
            assert!(matches!(sought, Err(DecodeError::Input(_))), "{}", case.name);
            let landed = case.decoder.seek(at + 80_000).unwrap();
            assert!(landed.frame >= at + 80_000, "{}", case.name);
            if landed.exact {
                case.assert_at(landed.frame, &format!("{bytes} bytes, forward only, again"));
            }
        }
    }
}
