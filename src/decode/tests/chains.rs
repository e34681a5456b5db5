//! Ogg streams that follow each other in one file or connection.

use super::fixture::*;
use crate::decode::{Decoder, Hints};

const CUT: usize = 101_357;

#[test]
fn chained_ogg_plays_on() {
    let pcm = recording();
    for (extension, command) in [
        ("ogg", &["oggenc", "-Q", "-q6", "-o", "OUT", "IN"][..]),
        ("oga", &["flac", "--ogg", "-f", "-o", "OUT", "IN"]),
    ] {
        let half = |ab: &str, from, to| {
            let mut command = command.to_vec();
            if extension == "ogg" {
                // Links of a chain need serial numbers of their own.
                command.splice(1..1, ["-s", if ab == "a" { "1" } else { "2" }]);
            } else {
                command.splice(1..1, [if ab == "a" { "--serial-number=1" } else { "--serial-number=2" }]);
            }
            let path = encoded(&pcm.cut(from, to), &format!("link-{ab}.{extension}"), &command);
            (std::fs::read(&path).unwrap(), rest(&mut open(&path)))
        };
        let (mut bytes, mut want) = half("a", 0, CUT);
        let (more_bytes, more) = half("b", CUT, pcm.frames());
        bytes.extend(more_bytes);
        want.extend(more);
        let mut decoder = from_memory(bytes);
        assert!(rest(&mut decoder) == want, "{extension}");
        assert_eq!(decoder.links_before(), 1);
        assert_eq!(decoder.measure().unwrap(), None, "the first link's length is not the track's");
        // Over the joint and back.
        for frame in [CUT + 5000, CUT - 5000, 12] {
            assert_eq!(decoder.seek(frame as u64).unwrap().frame, frame as u64);
            let got = some(&mut decoder, 2000);
            assert!(got == want[frame * 2..][..got.len()], "{extension} at {frame}");
        }
    }
}

/// As `cat` makes them of files that were encoded alike.
#[test]
fn links_with_one_serial_number_are_told_apart() {
    let pcm = recording();
    let half = |ab: &str, from, to| {
        let command = ["oggenc", "-Q", "-q6", "-s", "1", "-o", "OUT", "IN"];
        let path = encoded(&pcm.cut(from, to), &format!("alike-{ab}.ogg"), &command);
        (std::fs::read(&path).unwrap(), rest(&mut open(&path)))
    };
    let ((first, mut want), (second, more)) = (half("a", 0, CUT), half("b", CUT, pcm.frames()));
    want.extend(more);
    let bytes = [first, second].concat();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let mut untouched = open(file.path());
    assert_eq!(untouched.measure().unwrap(), None, "the last link's length is not the track's");
    // Where not all is at hand, it is known once the second link has begun.
    let mut heard = from_memory(bytes);
    assert!(rest(&mut heard) == want);
    for (decoder, how) in [(&mut untouched, "untouched"), (&mut heard, "heard")] {
        for frame in [CUT + 5_000, CUT - 5_000, CUT + 60_000, 12] {
            let landed = decoder.seek(frame as u64).unwrap();
            assert_eq!((landed.frame, landed.exact), (frame as u64, true), "{how}");
            let got = some(decoder, 2_000);
            assert!(got == want[frame * 2..][..got.len()], "{how}, at {frame}");
        }
        assert_eq!(decoder.seek(10_000_000).unwrap().frame, pcm.frames() as u64, "{how}");
        assert_eq!(decoder.total_frames(), None, "{how}");
    }
}

/// As a recording of a station begins.
#[test]
fn ogg_behind_something_else_is_jumped_in_like_any_other() {
    let path = encoded(&recording(), "plain.ogg", &["oggenc", "-Q", "-q6", "-o", "OUT", "IN"]);
    let plain = std::fs::read(&path).unwrap();
    let whole = rest(&mut open(&path));
    for links in [1, 2] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [&[0x55; 5_000][..], &plain.repeat(links)].concat()).unwrap();
        let mut decoder = open(file.path());
        assert_eq!(decoder.total_frames(), None, "nobody has looked at the end yet");
        for frame in [150_000usize, 40_000] {
            let landed = decoder.seek(frame as u64).unwrap();
            assert_eq!((landed.frame, landed.exact), (frame as u64, true));
            let got = some(&mut decoder, 2_000);
            assert!(got == whole[frame * 2..][..got.len()], "{links} links, at {frame}");
        }
        let frames = (links * whole.len() / 2) as u64;
        assert_eq!(decoder.seek(10_000_000).unwrap().frame, frames, "{links} links");
    }
}

#[test]
fn each_link_of_a_radio_stream_has_its_own_title() {
    let pcm = Pcm::music(44_100, 2, 16, 50_000);
    let mut bytes = Vec::new();
    for title in ["One", "Two"] {
        let serial = if title == "One" { "1" } else { "2" };
        let command = ["oggenc", "-Q", "-s", serial, "-t", title, "-o", "OUT", "IN"];
        bytes.extend(std::fs::read(encoded(&pcm, &format!("title-{title}.ogg"), &command)).unwrap());
    }
    // As from a station: nothing but forward, and no length.
    let hints = Hints { content_type: Some("application/ogg".to_owned()), extension: None };
    let mut decoder = Decoder::open(Memory::boxed(bytes, false), &hints).unwrap();
    let (mut titles, mut out) = (vec![decoder.tags().title], Vec::new());
    while decoder.next(&mut out).unwrap().is_some() {
        if decoder.tags().title != titles[titles.len() - 1] {
            assert_eq!(out.len() / 2 / 50_000, 1, "the title changes with the sound");
            titles.push(decoder.tags().title);
        }
    }
    assert_eq!(titles, [Some("One".to_owned()), Some("Two".to_owned())]);
    assert_eq!(out.len() / 2, 100_000);
}
