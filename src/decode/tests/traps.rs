//! What symphonia does by itself and must not do here.

use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use symphonia::core::formats::FormatReader;

use super::fixture::*;
use super::loudness::{add_to_ilst, atom, insert_in_ilst};
use crate::decode::input::Source;
use crate::decode::source::opening::open_reader;
use crate::decode::{Decoder, Hints, Input};

/// Bytes that note which of them are read.
struct Watched {
    bytes: Cursor<Vec<u8>>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// Behind the last byte that was read.
    furthest: u64,
    bytes: u64,
    /// How often it was not read on where the last reading ended.
    leaps: u32,
    next: u64,
}

impl Watched {
    fn boxed(bytes: Vec<u8>) -> (Box<dyn Input>, Arc<Mutex<Seen>>) {
        let seen = Arc::new(Mutex::new(Seen::default()));
        (Box::new(Watched { bytes: Cursor::new(bytes), seen: seen.clone() }), seen)
    }
}

impl Read for Watched {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let at = self.bytes.position();
        let n = buf.len().min(4_096);
        let n = self.bytes.read(&mut buf[..n])?;
        let mut seen = self.seen.lock().unwrap();
        seen.leaps += u32::from(at != seen.next);
        seen.next = at + n as u64;
        seen.bytes += n as u64;
        seen.furthest = seen.furthest.max(seen.next);
        Ok(n)
    }
}

impl Seek for Watched {
    fn seek(&mut self, pos: SeekFrom) -> std::io::Result<u64> {
        self.bytes.seek(pos)
    }
}

impl Input for Watched {
    fn byte_len(&self) -> Option<u64> {
        Some(self.bytes.get_ref().len() as u64)
    }
    fn is_seekable(&self) -> bool {
        true
    }
}

fn long() -> Pcm {
    Pcm::music(44_100, 2, 16, 44_100 * 30)
}

#[test]
fn opening_looks_at_the_beginning_only() {
    let faststart = ["-c:a", "aac", "-b:a", "192k", "-movflags", "+faststart"];
    let ffmpeg = |options: &[&'static str]| {
        [&["ffmpeg", "-nostdin", "-y", "-i", "IN"][..], options, &["OUT"]].concat()
    };
    for (name, command) in [
        ("wav", vec!["cp", "IN", "OUT"]),
        ("aiff", ffmpeg(&[])),
        ("flac", vec!["flac", "-s", "-f", "-o", "OUT", "IN"]),
        ("mp3", vec!["lame", "--quiet", "-b", "192", "IN", "OUT"]),
        ("untagged.mp3", vec!["lame", "--quiet", "-t", "-V", "4", "IN", "OUT"]),
        ("mp2", ffmpeg(&["-b:a", "192k"])),
        ("aac", ffmpeg(&["-c:a", "aac", "-b:a", "192k"])),
        ("m4a", ffmpeg(&faststart)),
        ("ogg", vec!["oggenc", "-Q", "-q6", "-o", "OUT", "IN"]),
        ("oga", vec!["flac", "-s", "--ogg", "-f", "-o", "OUT", "IN"]),
        ("opus", vec!["opusenc", "--quiet", "IN", "OUT"]),
        ("webm", ffmpeg(&["-c:a", "libvorbis", "-q:a", "6"])),
    ] {
        let bytes = std::fs::read(encoded(&long(), &format!("opened.{name}"), &command)).unwrap();
        let len = bytes.len() as u64;
        let (input, seen) = Watched::boxed(bytes);
        Decoder::open(input, &Hints::default()).unwrap();
        let Seen { furthest, bytes, leaps, .. } = *seen.lock().unwrap();
        eprintln!("{name}: {bytes} bytes up to {furthest} of {len}, {leaps} leaps");
        assert!(furthest < 140_000 && furthest < len / 3, "{name}: it looked at byte {furthest} of {len}");
        assert!(bytes < 260_000 && leaps < 60, "{name}: {bytes} bytes, {leaps} leaps");
    }
}

#[test]
fn what_the_server_says_decides_where_the_first_bytes_do_not() {
    let pcm = recording();
    let mp3 =
        std::fs::read(encoded(&pcm, "cbr.mp3", &["lame", "--quiet", "-b", "192", "IN", "OUT"])).unwrap();
    // As a station begins: in the middle of a frame, in which something looks like the head of another format.
    let torn = [&[0x55; 300][..], &Pcm::music(44_100, 2, 16, 10).wav(), &[0x55; 300], &mp3].concat();
    let open = |content_type: Option<&str>, extension: Option<&str>| {
        let hints =
            Hints { content_type: content_type.map(str::to_owned), extension: extension.map(str::to_owned) };
        Decoder::open(Memory::boxed(torn.clone(), true), &hints).unwrap()
    };
    for (content_type, extension) in
        [(Some("audio/mpeg"), None), (Some("Audio/MPEG; charset=x"), Some("wav")), (None, Some("MP3"))]
    {
        let mut decoder = open(content_type, extension);
        assert_eq!(decoder.codec(), "MP3", "{content_type:?} {extension:?}");
        assert!(rest(&mut decoder).len() >= pcm.samples.len());
    }
    assert_eq!(open(None, None).codec(), "PCM", "what is found first is taken where nobody says anything");
    // First bytes that are sure count for more than what a server says.
    let hints = Hints { content_type: Some("audio/mpeg".to_owned()), extension: None };
    let decoder = Decoder::open(Memory::boxed(pcm.wav(), true), &hints).unwrap();
    assert_eq!(decoder.codec(), "PCM");
}

/// What the demuxer keeps of pictures.
fn pictures(bytes: &[u8], seekable: bool) -> usize {
    let source = Source::new(Memory::boxed(bytes.to_vec(), seekable));
    let (mut reader, ..) =
        open_reader(&source, &Hints::default(), &Arc::new(AtomicBool::new(false))).unwrap();
    let mut sum = 0;
    let mut log = FormatReader::metadata(reader.as_mut());
    while let Some(revision) = log.current() {
        sum += revision.media.visuals.iter().map(|picture| picture.data.len()).sum::<usize>();
        if log.pop().is_none() {
            break;
        }
    }
    sum
}

#[test]
fn large_cover_art_in_front_is_passed_over() {
    const PICTURE: usize = 3_000_000;
    let pcm = recording();
    let mut state = 1u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 25) as u8
    };
    let picture: Vec<u8> = (0..PICTURE).map(|_| noise()).collect();
    let mp3 =
        std::fs::read(encoded(&pcm, "cbr.mp3", &["lame", "--quiet", "-b", "192", "IN", "OUT"])).unwrap();
    let frame = [b"\0image/png\0\x03\0", &picture[..]].concat();
    let synchsafe = |n: usize| [21, 14, 7, 0].map(|by| (n >> by) as u8 & 0x7f);
    let apic = [b"APIC", &synchsafe(frame.len())[..], b"\0\0", &frame].concat();
    let tagged = [b"ID3\x04\0\0", &synchsafe(apic.len())[..], &apic, &mp3].concat();

    let flac = std::fs::read(encoded(&pcm, "plain.flac", &["flac", "-f", "-o", "OUT", "IN"])).unwrap();
    let big = |n: usize| (n as u32).to_be_bytes();
    let fields = [&big(3)[..], &big(9), b"image/png", &big(0), &[0; 16], &big(PICTURE), &picture].concat();
    let block = [&[6][..], &big(fields.len())[1..], &fields].concat();
    // Behind STREAMINFO, which is always first and 34 bytes long.
    let pictured = [&flac[..42], &block, &flac[42..]].concat();

    let m4a = std::fs::read(ffmpeg(&pcm, "alac.m4a", &["-c:a", "alac"])).unwrap();
    let mut covered = m4a.clone();
    insert_in_ilst(
        &mut covered,
        &atom(b"covr", &atom(b"data", &[&[0, 0, 0, 14, 0, 0, 0, 0], &picture[..]].concat())),
    );
    for (name, bytes, plain) in [("MP3", tagged, mp3), ("FLAC", pictured, flac), ("MP4", covered, m4a)] {
        // An MP4 with its index behind is not read forward only.
        for seekable in [true, false].into_iter().filter(|seekable| *seekable || name != "MP4") {
            assert_eq!(pictures(&bytes, seekable), 0, "{name}: the picture is kept");
            let open = |bytes: &[u8]| {
                Decoder::open(Memory::boxed(bytes.to_vec(), seekable), &Hints::default()).unwrap()
            };
            assert!(rest(&mut open(&bytes)) == rest(&mut open(&plain)), "{name}");
        }
    }
}

#[test]
fn itunes_says_where_the_sound_begins_and_ends() {
    let pcm = recording();
    let path = ffmpeg(&pcm, "noted.m4a", &["-c:a", "aac", "-b:a", "192k", "-use_editlist", "0"]);
    let mut bytes = std::fs::read(path).unwrap();
    let whole = rest(&mut from_memory(bytes.clone()));
    // Neither ffmpeg's priming nor its length.
    let (delay, frames) = (2112, 200_001);
    let note = format!(" 00000000 {delay:08X} 00000190 {frames:016X} 00000000 00000000");
    add_to_ilst(&mut bytes, "iTunSMPB", &note);
    let mut decoder = from_memory(bytes);
    assert_eq!(decoder.total_frames(), Some(frames));
    let got = rest(&mut decoder);
    assert_eq!(got.len() as u64, 2 * frames);
    let from = 2 * (delay - 1024);
    assert!(got == whole[from..from + got.len()], "it begins elsewhere");
}

#[test]
fn a_search_by_bisection_reads_little() {
    let path =
        encoded(&long(), "opened-unindexed.flac", &["flac", "-s", "--no-seektable", "-f", "-o", "OUT", "IN"]);
    let bytes = std::fs::read(Path::new(&path)).unwrap();
    let len = bytes.len() as u64;
    let (input, seen) = Watched::boxed(bytes);
    let mut decoder = Decoder::open(input, &Hints::default()).unwrap();
    for frame in [1_000_003, 44_111, 1_300_000] {
        *seen.lock().unwrap() = Seen::default();
        assert_eq!(decoder.seek(frame).unwrap().frame, frame);
        let Seen { bytes, leaps, .. } = *seen.lock().unwrap();
        eprintln!("{frame}: {bytes} bytes of {len}, {leaps} leaps");
        assert!(bytes < len / 4 && leaps < 40, "{frame}: {bytes} bytes of {len}, {leaps} leaps");
    }
}
