//! Several recordings one after another in one input, as a station's new connection gives them.

use std::collections::VecDeque;
use std::fs;
use std::io::{Cursor, Read, Seek, SeekFrom};

use super::fixture::*;
use crate::decode::{DecodeError, Decoder, Hints, Input};

/// Parts, at each of whose ends the reader is told so.
struct Parts {
    now: Cursor<Vec<u8>>,
    then: VecDeque<Vec<u8>>,
}

impl Parts {
    fn open(parts: &[&[u8]]) -> Result<Decoder, DecodeError> {
        let mut parts: VecDeque<_> = parts.iter().map(|part| part.to_vec()).collect();
        let now = Cursor::new(parts.pop_front().unwrap());
        Decoder::open(Box::new(Parts { now, then: parts }), &Hints::default())
    }
}

impl Read for Parts {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = buf.len().min(1500);
        self.now.read(&mut buf[..n])
    }
}

impl Seek for Parts {
    fn seek(&mut self, _: SeekFrom) -> std::io::Result<u64> {
        panic!("an input that cannot seek was asked to")
    }
}

impl Input for Parts {
    fn byte_len(&self) -> Option<u64> {
        None
    }
    fn is_seekable(&self) -> bool {
        false
    }
    fn is_endless(&self) -> bool {
        true
    }
    fn next_stretch(&mut self) -> Option<Hints> {
        assert_eq!(self.now.position(), self.now.get_ref().len() as u64, "bytes would be lost");
        self.now = Cursor::new(self.then.pop_front()?);
        Some(Hints::default())
    }
}

/// What each of them gives alone, from an input that cannot seek.
fn alone(bytes: &[u8]) -> Vec<i32> {
    rest(&mut Parts::open(&[bytes]).unwrap())
}

#[test]
fn recordings_in_any_container_follow_each_other() {
    let one = Pcm::music(44_100, 2, 16, 60_001);
    let two = Pcm::music(48_000, 1, 16, 50_003);
    let flac = |pcm, name| fs::read(ffmpeg(pcm, name, &[])).unwrap();
    let parts = [
        flac(&one, "stretch-1.flac"),
        flac(&two, "stretch-2.flac"),
        fs::read(ffmpeg(&one, "stretch-3.mp3", &["-b:a", "96k"])).unwrap(),
        fs::read(ffmpeg(&two, "stretch-4.ogg", &["-c:a", "libvorbis"])).unwrap(),
        fs::read(ffmpeg(&one, "stretch-5.webm", &["-c:a", "libopus"])).unwrap(),
        fs::read(ffmpeg(&one, "stretch-6.aac", &["-c:a", "aac"])).unwrap(),
        one.wav(),
    ];
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let mut decoder = Parts::open(&parts).unwrap();
    let (mut got, mut rates, mut frames) = (Vec::new(), vec![decoder.format().rate], 0);
    while let Some(more) = decoder.next(&mut got).unwrap() {
        frames += more as u64;
        if rates.last() != Some(&decoder.format().rate) {
            rates.push(decoder.format().rate);
        }
        assert!(decoder.position() >= frames, "frames are numbered on");
    }
    let want: Vec<i32> = parts.iter().flat_map(|part| alone(part)).collect();
    assert_eq!(got.len(), want.len());
    assert!(got == want, "the sound differs from that of the parts");
    assert_eq!(rates, [44_100, 48_000, 44_100, 48_000, 44_100]);
    assert_eq!(decoder.links_before(), 6);
}

#[test]
fn a_part_that_is_cut_gives_what_it_has() {
    let pcm = Pcm::music(44_100, 2, 16, 60_001);
    let flac = fs::read(ffmpeg(&pcm, "stretch-1.flac", &[])).unwrap();
    let (cut, whole) = (&flac[..flac.len() / 2], &flac[..]);
    let mut decoder = Parts::open(&[cut, whole]).unwrap();
    let got = rest(&mut decoder);
    let first = alone(cut);
    assert!(first.len() > pcm.samples.len() / 4);
    assert!(got[..first.len()] == first[..] && got[first.len()..] == pcm.samples[..]);
}

#[test]
fn a_part_too_short_to_be_known_is_passed_over() {
    let pcm = Pcm::music(44_100, 2, 16, 60_001);
    let flac = fs::read(ffmpeg(&pcm, "stretch-1.flac", &[])).unwrap();
    let mut decoder = Parts::open(&[&flac[..20], &flac[..3], &flac]).unwrap();
    assert!(rest(&mut decoder) == pcm.samples);
}

#[test]
fn an_mp3_station_may_change_its_rate_and_channels_in_mid_stream() {
    let one = Pcm::music(44_100, 2, 16, 60_001);
    let two = Pcm::music(48_000, 1, 16, 80_003);
    let plain = ["-b:a", "96k", "-write_xing", "0", "-id3v2_version", "0"];
    let first = fs::read(ffmpeg(&one, "stretch-rate-1.mp3", &plain)).unwrap();
    let second = fs::read(ffmpeg(&two, "stretch-rate-2.mp3", &plain)).unwrap();
    let mut decoder = Parts::open(&[&[first, second].concat()]).unwrap();
    let mut rates = Vec::new();
    let mut of_second = 0;
    let mut out = Vec::new();
    while let Some(frames) = decoder.next(&mut out).unwrap() {
        let format = decoder.format();
        if rates.last() != Some(&(format.rate, format.channels)) {
            rates.push((format.rate, format.channels));
        }
        of_second += if format.rate == 48_000 { frames } else { 0 };
    }
    assert_eq!(rates, [(44_100, 2), (48_000, 1)]);
    assert!(of_second > 60_000, "only {of_second} frames of the second were heard");
}

#[test]
fn a_station_that_sends_no_sound_any_more_is_left() {
    let pcm = Pcm::music(44_100, 2, 16, 60_001);
    let mut bytes = fs::read(ffmpeg(&pcm, "stretch-3.mp3", &["-b:a", "96k"])).unwrap();
    bytes.resize(bytes.len() + 40_000_000, 0);
    let mut decoder = Parts::open(&[&bytes]).unwrap();
    let mut out = Vec::new();
    let error = loop {
        match decoder.next(&mut out) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it was read to its end"),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("no sound in what comes"), "{error}");
    assert!(out.len() >= pcm.samples.len());
}
