//! What is no audio is told apart, what is damaged does no harm.

use std::sync::{Mutex, Once};

use proptest::prelude::*;

use super::fixture::*;
use crate::decode::{DecodeError, Decoder, Hints};

#[test]
fn junk_is_not_read_to_its_end() {
    let junk = vec![0x20; 4_000_000];
    let input = CountedInput { bytes: std::io::Cursor::new(junk), read: Default::default() };
    let read = input.read.clone();
    assert!(Decoder::open(Box::new(input), &Hints::default()).is_err());
    let read = read.load(std::sync::atomic::Ordering::Relaxed);
    assert!(read < 400_000, "{read} bytes");
}

struct CountedInput {
    bytes: std::io::Cursor<Vec<u8>>,
    read: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl std::io::Read for CountedInput {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.bytes.read(buf)?;
        self.read.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
        Ok(n)
    }
}

impl std::io::Seek for CountedInput {
    fn seek(&mut self, pos: std::io::SeekFrom) -> std::io::Result<u64> {
        self.bytes.seek(pos)
    }
}

impl crate::decode::Input for CountedInput {
    fn byte_len(&self) -> Option<u64> {
        Some(self.bytes.get_ref().len() as u64)
    }
    fn is_seekable(&self) -> bool {
        true
    }
}

#[test]
fn opening_reads_little() {
    for (name, command) in [
        ("plain.flac", &["flac", "-f", "-o", "OUT", "IN"][..]),
        ("cbr.mp3", &["lame", "--quiet", "-b", "192", "IN", "OUT"]),
        ("plain.ogg", &["oggenc", "-Q", "-q6", "-o", "OUT", "IN"]),
        ("plain.aac", &["ffmpeg", "-nostdin", "-i", "IN", "-c:a", "aac", "-b:a", "192k", "OUT"]),
    ] {
        let bytes = std::fs::read(encoded(&recording(), name, command)).unwrap();
        let input = CountedInput { bytes: std::io::Cursor::new(bytes), read: Default::default() };
        let read = input.read.clone();
        Decoder::open(Box::new(input), &Hints::default()).unwrap();
        let read = read.load(std::sync::atomic::Ordering::Relaxed);
        eprintln!("{name}: opened after {read} bytes");
        assert!(read < 48_000, "{name}: {read} bytes");
    }
}

#[test]
fn a_caf_is_not_read_to_its_end_before_it_sounds() {
    for (name, codec) in [("table-behind.caf", "alac"), ("bare.caf", "pcm_s16le")] {
        let bytes = std::fs::read(ffmpeg(&recording(), name, &["-c:a", codec])).unwrap();
        let len = bytes.len();
        let input = CountedInput { bytes: std::io::Cursor::new(bytes), read: Default::default() };
        let read = input.read.clone();
        let mut decoder = Decoder::open(Box::new(input), &Hints::default()).unwrap();
        let opened = read.load(std::sync::atomic::Ordering::Relaxed);
        assert!(opened < len / 4, "{name}: {opened} of {len} bytes");
        for frame in [100_000, 200_000] {
            assert_eq!(decoder.seek(frame).unwrap().frame, frame);
        }
        let sought = read.load(std::sync::atomic::Ordering::Relaxed) - opened;
        assert!(sought < len / 2, "{name}: {sought} of {len} bytes for two jumps ahead");
    }
}

/// As it is written into a pipe, or left behind by a program that was killed.
#[test]
fn a_caf_whose_sound_has_no_written_end_is_played_to_that_of_the_file() {
    let pcm = recording();
    let whole = std::fs::read(ffmpeg(&pcm, "plain.caf", &["-c:a", "pcm_s16le"])).unwrap();
    let at = whole.windows(4).position(|name| name == b"data").unwrap() + 4;
    let mut endless = whole.clone();
    endless[at..at + 8].fill(0xff);
    let mut decoder = from_memory(endless);
    assert_eq!(decoder.total_frames(), Some(pcm.frames() as u64));
    assert!(rest(&mut decoder) == pcm.samples);
    // Of one that says how long it is, a part.
    let mut decoder = from_memory(whole[..whole.len() / 2].to_vec());
    assert_eq!(decoder.total_frames(), Some(pcm.frames() as u64));
    let mut got = Vec::new();
    let end = loop {
        match decoder.next(&mut got) {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert!(matches!(end, Err(DecodeError::CutShort { .. })), "{end:?}");
    assert!(got.len() > pcm.samples.len() / 3 && got[..] == pcm.samples[..got.len()]);
    for bytes in [&whole[..], &whole[..whole.len() / 2]] {
        assert!(matches!(refused(bytes, false), DecodeError::NeedsSeeking));
    }
}

#[test]
fn an_mp4_with_its_index_behind_needs_ranges() {
    let pcm = recording();
    let path = ffmpeg(&pcm, "aac.m4a", &["-c:a", "aac", "-b:a", "192k"]);
    let bytes = std::fs::read(path).unwrap();
    assert!(matches!(refused(&bytes, false), DecodeError::NeedsSeeking));
    // Also where something long stands in front, behind which nobody looks who has to read it again.
    let kept = [&bytes[..28], &200_000u32.to_be_bytes(), b"free", &[0; 199_992], &bytes[28..]].concat();
    assert!(matches!(refused(&kept, false), DecodeError::NeedsSeeking));
    let options = ["-c:a", "aac", "-b:a", "192k", "-movflags", "+faststart"];
    let bytes = std::fs::read(ffmpeg(&pcm, "faststart.m4a", &options)).unwrap();
    let mut decoder = Decoder::open(Memory::boxed(bytes, false), &Hints::default()).unwrap();
    assert_eq!(rest(&mut decoder).len(), pcm.samples.len());
}

#[test]
fn an_input_that_fails_is_not_the_end_of_the_track() {
    struct Failing(std::io::Cursor<Vec<u8>>);
    impl std::io::Read for Failing {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            if self.0.position() > 100_000 {
                return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the network is gone"));
            }
            let most = buf.len().min(1500);
            self.0.read(&mut buf[..most])
        }
    }
    impl std::io::Seek for Failing {
        fn seek(&mut self, pos: std::io::SeekFrom) -> std::io::Result<u64> {
            self.0.seek(pos)
        }
    }
    impl crate::decode::Input for Failing {
        fn byte_len(&self) -> Option<u64> {
            Some(self.0.get_ref().len() as u64)
        }
        fn is_seekable(&self) -> bool {
            true
        }
    }
    for (name, command) in [
        ("plain.wav", &["cp", "IN", "OUT"][..]),
        ("plain.flac", &["flac", "-f", "-o", "OUT", "IN"]),
        ("cbr.mp3", &["lame", "--quiet", "-b", "192", "IN", "OUT"]),
        ("plain.ogg", &["oggenc", "-Q", "-q6", "-o", "OUT", "IN"]),
    ] {
        let bytes = std::fs::read(encoded(&recording(), name, command)).unwrap();
        let mut decoder =
            Decoder::open(Box::new(Failing(std::io::Cursor::new(bytes))), &Hints::default()).unwrap();
        let mut out = Vec::new();
        let e = loop {
            match decoder.next(&mut out) {
                Ok(Some(_)) => {}
                Ok(None) => panic!("{name} ended"),
                Err(e) => break e,
            }
        };
        assert!(e.to_string().contains("the network is gone"), "{name}: {e}");
    }
}

#[test]
fn a_panic_in_the_input_costs_the_track_only() {
    struct Panicking;
    impl std::io::Read for Panicking {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            panic!("as a decoder might")
        }
    }
    impl std::io::Seek for Panicking {
        fn seek(&mut self, _: std::io::SeekFrom) -> std::io::Result<u64> {
            Ok(0)
        }
    }
    impl crate::decode::Input for Panicking {
        fn byte_len(&self) -> Option<u64> {
            None
        }
        fn is_seekable(&self) -> bool {
            true
        }
    }
    let opened = Decoder::open(Box::new(Panicking), &Hints::default());
    assert!(matches!(opened, Err(DecodeError::Panicked)));
}

#[test]
fn a_damaged_stretch_keeps_the_time() {
    let pcm = recording();
    let path = encoded(&pcm, "plain.flac", &["flac", "-f", "-o", "OUT", "IN"]);
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 200].fill(0x55);
    let got = rest(&mut from_memory(bytes));
    assert_eq!(got.len(), pcm.samples.len());
    let same = got.iter().zip(&pcm.samples).filter(|(a, b)| a == b).count();
    assert!(same > pcm.samples.len() * 9 / 10, "{same} of {}", pcm.samples.len());
    assert!(got[got.len() - 20_000..] == pcm.samples[got.len() - 20_000..]);
}

#[test]
fn a_file_that_is_not_whole_is_told_after_what_there_is_was_heard() {
    let pcm = recording();
    let flac = std::fs::read(encoded(&pcm, "plain.flac", &["flac", "-f", "-o", "OUT", "IN"])).unwrap();
    for (bytes, name) in [(pcm.wav(), "WAV"), (flac, "FLAC")] {
        let half = bytes.len() / 2;
        let mut decoder = from_memory(bytes[..half].to_vec());
        let mut got = Vec::new();
        let end = loop {
            match decoder.next(&mut got) {
                Ok(Some(_)) => {}
                Ok(None) => panic!("a half of a {name} is no whole"),
                Err(error) => break error,
            }
        };
        assert!(got.len() > pcm.samples.len() / 3, "{name}");
        assert!(got[..] == pcm.samples[..got.len()], "{name}");
        let frames = pcm.frames() - got.len() / pcm.channels;
        let DecodeError::CutShort { missing } = end else { panic!("{name}: {end}") };
        let seconds = frames as f64 / f64::from(pcm.rate);
        assert!((missing.as_secs_f64() - seconds).abs() < 0.002, "{name}: {missing:?} but {seconds} s");
    }
    // The lengths that programs write when they cannot know them.
    for length in [u32::MAX, 0x7fff_0000, 0x7fff_ffff] {
        let mut wav = pcm.wav();
        wav[4..8].copy_from_slice(&length.to_le_bytes());
        let data = wav.windows(4).position(|name| name == b"data").unwrap() + 4;
        let inner = if length == u32::MAX { length } else { length - data as u32 };
        wav[data..data + 4].copy_from_slice(&inner.to_le_bytes());
        assert_eq!(rest(&mut from_memory(wav)).len(), pcm.samples.len(), "{length:x}");
    }
}

fn small_files() -> Vec<Vec<u8>> {
    let pcm = Pcm::music(44_100, 2, 16, 22_050);
    let files: [(&str, &[&str]); 9] = [
        ("small.wav", &["cp", "IN", "OUT"]),
        ("small.flac", &["flac", "-f", "-o", "OUT", "IN"]),
        ("small.mp3", &["lame", "--quiet", "-b", "128", "IN", "OUT"]),
        ("small.ogg", &["oggenc", "-Q", "-q3", "-o", "OUT", "IN"]),
        ("small.opus", &["opusenc", "--quiet", "IN", "OUT"]),
        ("small.m4a", &["ffmpeg", "-nostdin", "-i", "IN", "-c:a", "aac", "OUT"]),
        ("small.webm", &["ffmpeg", "-nostdin", "-i", "IN", "-c:a", "libopus", "OUT"]),
        ("small-alac.m4a", &["ffmpeg", "-nostdin", "-i", "IN", "-c:a", "alac", "OUT"]),
        ("small.aac", &["ffmpeg", "-nostdin", "-i", "IN", "-c:a", "aac", "OUT"]),
    ];
    files.iter().map(|(name, command)| std::fs::read(encoded(&pcm, name, command)).unwrap()).collect()
}

static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Of the last seek point of this FLAC file the frame is damaged: what is said to be early in the track lies at its end.
fn with_damaged_seek_table(early: u64) -> Vec<u8> {
    let command = ["flac", "-s", "-f", "-S", "0.5s", "-o", "OUT", "IN"];
    let mut bytes = std::fs::read(encoded(&recording(), "indexed.flac", &command)).unwrap();
    let length = |bytes: &[u8], at: usize| {
        u32::from_be_bytes([0, bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
    };
    let mut at = 4;
    while bytes[at] & 0x7f != 3 {
        at += 4 + length(&bytes, at);
    }
    let last = at + 4 + length(&bytes, at) - 18;
    bytes[last..last + 8].copy_from_slice(&early.to_be_bytes());
    bytes
}

#[test]
fn a_damaged_seek_table_costs_a_search_and_not_the_track() {
    let bytes = with_damaged_seek_table(40_000);
    let open = || Decoder::open(Memory::boxed(bytes.clone(), true), &Hints::default()).unwrap();
    let whole = rest(&mut open());
    let mut decoder = open();
    // The second lies behind the false point and before the next: the search for it would never end.
    for frame in [200_000, 40_500, 100_000] {
        let landed = decoder.seek(frame).unwrap();
        assert_eq!((landed.frame, landed.exact), (frame, true));
        let got = some(&mut decoder, 3000);
        assert!(got == whole[frame as usize * 2..][..got.len()], "after a seek to {frame}");
    }
}

/// Notes where symphonia or this folder's own code panics on this test's threads, without a word about it.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map(|place| place.file().to_owned()).unwrap_or_default();
            if place.contains("/src/decode/tests/") || !place.contains("symphonia") {
                before(panic);
            }
            if !place.contains("/tests/") {
                PANICS.lock().unwrap().push(place);
            }
        }));
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_file_ends_or_is_refused(
        which in 0usize..9,
        seekable: bool,
        cut in proptest::option::of(0.0f64..1.0),
        changes in proptest::collection::vec((0.0f64..1.0, any::<u8>(), any::<bool>()), 0..12),
        jump in 0u64..50_000,
    ) {
        thread_local!(static FILES: Vec<Vec<u8>> = small_files());
        note_panics();
        let mut bytes = FILES.with(|files| files[which].clone());
        for (place, value, at_head) in changes {
            let range = if at_head { bytes.len().min(1000) } else { bytes.len() };
            bytes[(place * range as f64) as usize] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate((cut * bytes.len() as f64) as usize);
        }
        if let Ok(mut decoder) = Decoder::open(Memory::boxed(bytes, seekable), &Hints::default()) {
            let mut out = Vec::new();
            let mut run = |decoder: &mut Decoder| {
                for _ in 0..5000 {
                    out.clear();
                    match decoder.next(&mut out) {
                        Ok(Some(_)) => {}
                        Ok(None) => return Ok(()),
                        Err(_) => return Ok(()),
                    }
                }
                Err(TestCaseError::fail("half a second does not take so many packets"))
            };
            run(&mut decoder)?;
            let _ = decoder.seek(jump);
            run(&mut decoder)?;
        }
        // The demuxers' own panics are caught; ours are faults.
        let ours = PANICS.lock().unwrap().iter().find(|place| place.contains("src/decode")).cloned();
        prop_assert_eq!(ours, None);
    }
}
