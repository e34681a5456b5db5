//! Jumps in a stream of which a part is not there: not yet, or never.

use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::fixture::*;
use crate::decode::{DecodeError, Decoder, Hints, Input};

/// Bytes of which only so many have come; to wait for more is in vain.
struct Torn {
    bytes: Cursor<Vec<u8>>,
    there: Arc<AtomicUsize>,
}

impl Read for Torn {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let there = self.there.load(Ordering::Relaxed).saturating_sub(self.bytes.position() as usize);
        if there == 0 && (self.bytes.position() as usize) < self.bytes.get_ref().len() {
            return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "the server gives no more"));
        }
        let most = buf.len().min(there).min(4_096);
        self.bytes.read(&mut buf[..most])
    }
}

impl Seek for Torn {
    fn seek(&mut self, pos: SeekFrom) -> std::io::Result<u64> {
        self.bytes.seek(pos)
    }
}

impl Input for Torn {
    fn byte_len(&self) -> Option<u64> {
        Some(self.bytes.get_ref().len() as u64)
    }
    fn is_seekable(&self) -> bool {
        true
    }
    fn at_hand(&self, from: u64) -> u64 {
        from.max(self.there.load(Ordering::Relaxed) as u64)
    }
}

/// Files with the noise in dB that a jump may leave, and whether its reader looks at the end of the file first.
fn files() -> Vec<(PathBuf, Option<f64>, bool)> {
    let pcm = recording();
    let made = |name: &str, command: &[&str]| encoded(&pcm, name, command);
    let at_front = |name: &str, codec: &str| {
        ffmpeg(&pcm, name, &["-c:a", codec, "-b:a", "192k", "-movflags", "+faststart"])
    };
    let opus = Pcm::music(48_000, 2, 16, 254_321);
    vec![
        (made("plain.wav", &["cp", "IN", "OUT"]), None, false),
        (ffmpeg(&pcm, "plain.aiff", &[]), None, false),
        (ffmpeg(&pcm, "plain.caf", &[]), None, true),
        (ffmpeg(&pcm, "alac.caf", &["-c:a", "alac"]), None, true),
        (made("plain.flac", &["flac", "-f", "-o", "OUT", "IN"]), None, false),
        // It is searched by bisection, whose first step is in the middle of the file.
        (made("unindexed.flac", &["flac", "--no-seektable", "-f", "-o", "OUT", "IN"]), None, true),
        (made("cbr.mp3", &["lame", "--quiet", "-b", "192", "IN", "OUT"]), None, false),
        (made("vbr.mp3", &["lame", "--quiet", "-V", "2", "IN", "OUT"]), None, false),
        (ffmpeg(&pcm, "plain.mp2", &["-b:a", "192k"]), None, false),
        (at_front("faststart-alac.m4a", "alac"), None, false),
        (at_front("faststart.m4a", "aac"), Some(-45.0), false),
        (ffmpeg(&pcm, "plain.aac", &["-c:a", "aac", "-b:a", "192k"]), Some(-45.0), false),
        (made("plain.ogg", &["oggenc", "-Q", "-q6", "-o", "OUT", "IN"]), None, true),
        (made("flac.oga", &["flac", "--ogg", "-f", "-o", "OUT", "IN"]), None, true),
        (
            encoded(&opus, "seeks.opus", &["opusenc", "--quiet", "--bitrate", "160", "IN", "OUT"]),
            Some(-60.0),
            true,
        ),
        (ffmpeg(&pcm, "vorbis.webm", &["-c:a", "libvorbis", "-q:a", "6"]), None, true),
        (ffmpeg(&pcm, "flac.mka", &["-c:a", "flac"]), None, true),
        (ffmpeg(&opus, "opus.webm", &["-c:a", "libopus", "-b:a", "160k"]), Some(-60.0), true),
    ]
}

/// Places all over a recording, in no order.
fn places(frames: usize) -> impl Iterator<Item = usize> {
    (1..60usize).map(move |n| n * 7_919_317 % frames)
}

/// Plays on from `frame`, as far as there is something, and compares; how many frames were compared.
fn compare(decoder: &mut Decoder, whole: &[i32], frame: usize, noise: Option<f64>, name: &str) -> usize {
    let channels = usize::from(decoder.format().channels);
    let mut got = Vec::new();
    while got.len() < 500 * channels && matches!(decoder.next(&mut got), Ok(Some(_))) {}
    let want = &whole[(frame * channels).min(whole.len())..];
    let len = got.len().min(want.len());
    match noise {
        None => assert!(got[..len] == want[..len], "{name} after a jump to {frame}"),
        Some(most) if len > 0 => {
            let noise = difference_db(&got[..len], &want[..len]);
            assert!(noise < most, "{name} after a jump to {frame}: {noise:.1} dB");
        }
        Some(_) => {}
    }
    len / channels
}

#[test]
fn what_has_come_is_jumped_to_exactly_and_the_rest_when_it_is_there() {
    for (path, noise, needs_end) in files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let whole = rest(&mut open(&path));
        let frames = whole.len() / 2;
        let bytes = std::fs::read(&path).unwrap();
        let all = bytes.len();
        let there = Arc::new(AtomicUsize::new(all * 6 / 10));
        let open = || {
            let input = Torn { bytes: Cursor::new(bytes.clone()), there: there.clone() };
            let extension = path.extension().map(|e| e.to_string_lossy().into_owned());
            Decoder::open(Box::new(input), &Hints { content_type: None, extension })
        };
        let mut decoder = match open() {
            Ok(decoder) => decoder,
            // CAF may have its table of packets behind the sound.
            Err(DecodeError::Input(_)) if name.ends_with("caf") => {
                there.store(all, Ordering::Relaxed);
                open().unwrap()
            }
            Err(error) => panic!("{name}: {error}"),
        };
        let (mut right, mut refused) = (0, 0);
        for frame in places(frames) {
            match decoder.seek(frame as u64) {
                Ok(landed) if landed.exact => {
                    assert_eq!(landed.frame, frame as u64, "{name}");
                    right += usize::from(compare(&mut decoder, &whole, frame, noise, &name) > 0);
                }
                // A guess is compared with nothing.
                Ok(_) => {}
                Err(DecodeError::Input(_)) => {
                    assert!(needs_end || frame > frames * 2 / 5, "{name}: {frame} of {frames} is there");
                    refused += 1;
                }
                Err(error) => panic!("{name} at {frame}: {error}"),
            }
        }
        eprintln!("{name}: {right} right, {refused} refused");
        assert!(needs_end || right > 15, "{name}: only {right} of those that are there");
        // Now the rest comes.
        there.store(all, Ordering::Relaxed);
        for frame in places(frames) {
            let landed = decoder.seek(frame as u64).unwrap_or_else(|e| panic!("{name} at {frame}: {e}"));
            if landed.exact {
                assert_eq!(landed.frame, frame as u64, "{name}");
                let compared = compare(&mut decoder, &whole, frame, noise, &name);
                assert!(compared >= 500.min(frames - frame), "{name}: {compared} frames at {frame}");
            }
            assert!(landed.exact, "{name}: all of it is at hand, {frame}");
        }
    }
}

#[test]
fn in_a_file_that_was_cut_what_is_there_is_jumped_to_exactly_and_the_rest_is_behind_the_end() {
    for (path, noise, _) in files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let whole = rest(&mut open(&path));
        let frames = whole.len() / 2;
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.truncate(bytes.len() * 6 / 10);
        let folder = tempfile::tempdir().unwrap();
        let cut = folder.path().join(&name);
        std::fs::write(&cut, bytes).unwrap();
        if name == "alac.caf" {
            // Its table of packets is what is missing.
            let told = refused(&std::fs::read(&cut).unwrap(), true).to_string();
            assert!(told.contains("cut short"), "{told}");
            continue;
        }
        let mut decoder = open(&cut);
        let mut right = 0;
        for frame in places(frames).chain([frames, frames + 100_000, 1_000, 0]) {
            let landed = match decoder.seek(frame as u64) {
                Ok(landed) => landed,
                Err(DecodeError::CutShort { .. }) if frame > frames / 2 => continue,
                Err(error) => panic!("{name} at {frame}: {error}"),
            };
            assert!(landed.frame <= frames as u64, "{name}: {landed:?}");
            if landed.frame == frame as u64 && landed.exact {
                right += usize::from(compare(&mut decoder, &whole, frame, noise, &name) >= 500);
            } else {
                assert!(frame > frames / 2, "{name}: {landed:?} for {frame}");
                assert!(!matches!(decoder.next(&mut Vec::new()), Ok(Some(_))), "{name}: {landed:?}, {frame}");
            }
        }
        eprintln!("{name}: {right} right");
        assert!(right > 25, "{name}: only {right} of those that are there");
        let landed = decoder.seek(0).unwrap();
        assert_eq!((landed.frame, landed.exact), (0, true), "{name}");
    }
}
