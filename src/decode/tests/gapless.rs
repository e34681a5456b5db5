//! One recording cut in two plays as one.

use super::fixture::*;
use crate::decode::{Decoder, Hints};

const CUT: usize = 101_357;

fn joined(pcm: &Pcm, cut: usize, make: impl Fn(&Pcm, &str) -> std::path::PathBuf) -> Vec<i32> {
    let (first, second) = (make(&pcm.cut(0, cut), "a"), make(&pcm.cut(cut, pcm.frames()), "b"));
    let mut out = rest(&mut open(&first));
    assert_eq!(out.len() / pcm.channels, cut, "length of the first half");
    out.append(&mut rest(&mut open(&second)));
    out
}

#[test]
fn two_lossless_halves_are_the_whole() {
    let pcm = recording();
    let flac = joined(&pcm, CUT, |half, ab| {
        encoded(half, &format!("half-{ab}.flac"), &["flac", "-f", "-o", "OUT", "IN"])
    });
    assert!(flac == pcm.samples);
    let alac = joined(&pcm, CUT, |half, ab| ffmpeg(half, &format!("half-{ab}-alac.m4a"), &["-c:a", "alac"]));
    assert!(alac == pcm.samples);
}

#[test]
fn two_lossy_halves_join_without_a_frame_between() {
    let pcm = recording();
    let formats: [(&str, &[&str]); 4] = [
        ("mp3", &["lame", "--quiet", "-b", "192", "IN", "OUT"]),
        ("ogg", &["oggenc", "-Q", "-q6", "-o", "OUT", "IN"]),
        ("m4a", &["ffmpeg", "-nostdin", "-i", "IN", "-c:a", "aac", "-b:a", "192k", "OUT"]),
        ("vbr.mp3", &["lame", "--quiet", "-V", "2", "IN", "OUT"]),
    ];
    for (extension, command) in formats {
        let got = joined(&pcm, CUT, |half, ab| encoded(half, &format!("half-{ab}.{extension}"), command));
        assert_eq!(got.len(), pcm.samples.len(), "{extension}");
        // Around the joint, where a wrong trim shows.
        let around = (CUT - 8000) * 2..(CUT + 8000) * 2;
        assert_alike(&pcm.samples[around.clone()], &got[around], 2, 0.985, extension);
    }
}

#[test]
fn two_halves_in_opus_join_without_a_frame_between() {
    let pcm = Pcm::music(48_000, 2, 16, 254_321);
    let command = ["opusenc", "--quiet", "--bitrate", "160", "IN", "OUT"];
    let got = joined(&pcm, CUT, |half, ab| encoded(half, &format!("half-{ab}.opus"), &command));
    assert_eq!(got.len(), pcm.samples.len());
    let around = (CUT - 8000) * 2..(CUT + 8000) * 2;
    assert_alike(&pcm.samples[around.clone()], &got[around], 2, 0.98, "Opus");
}

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
