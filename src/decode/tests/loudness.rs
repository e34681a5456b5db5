//! Loudness tags in files as the tools write them.

use super::fixture::*;
use crate::dsp::{Level, Loudness};

const WANT: Loudness = Loudness {
    track: Some(Level { gain_db: -6.2, peak: Some(0.988) }),
    album: Some(Level { gain_db: -7.45, peak: Some(0.999) }),
};

const TAGS: [&str; 8] = [
    "-metadata",
    "REPLAYGAIN_TRACK_GAIN=-6.20 dB",
    "-metadata",
    "REPLAYGAIN_TRACK_PEAK=0.988",
    "-metadata",
    "REPLAYGAIN_ALBUM_GAIN=-7.45 dB",
    "-metadata",
    "REPLAYGAIN_ALBUM_PEAK=0.999",
];

fn short() -> Pcm {
    Pcm::music(48_000, 2, 16, 30_000)
}

#[test]
fn replaygain_is_read_from_every_container_that_carries_it() {
    for (name, codec) in [
        ("loud.flac", "flac"),
        ("loud.ogg", "libvorbis"),
        ("loud.mp3", "libmp3lame"),
        ("loud.mka", "flac"),
        ("loud.webm", "libopus"),
        ("loud.opus", "libopus"),
    ] {
        let mut options = TAGS.to_vec();
        options.extend_from_slice(&["-c:a", codec]);
        let mut decoder = open(&ffmpeg(&short(), name, &options));
        // Some come behind the first frames.
        rest(&mut decoder);
        assert_eq!(decoder.loudness(), WANT, "{name}");
    }
    assert_eq!(open(&ffmpeg(&short(), "plain.flac", &[])).loudness(), Loudness::default());
}

#[test]
fn opus_has_its_own_and_another_aim() {
    let command = ["opusenc", "--quiet", "--comment", "R128_TRACK_GAIN=-1280", "--comment"];
    let command = [&command[..], &["R128_ALBUM_GAIN=-2816", "IN", "OUT"]].concat();
    let loudness = open(&encoded(&short(), "r128.opus", &command)).loudness();
    assert_eq!(loudness.track, Some(Level { gain_db: 0.0, peak: None }), "-5 dB to -23 LUFS is 0 to -18");
    assert_eq!(loudness.album, Some(Level { gain_db: -6.0, peak: None }));
}

#[test]
fn mp4_has_them_in_atoms_of_their_own() {
    let path = ffmpeg(&short(), "untagged.m4a", &["-c:a", "alac", "-metadata", "title=x"]);
    let mut bytes = std::fs::read(path).unwrap();
    let fields = ["replaygain_track_gain", "-6.20 dB", "replaygain_track_peak", "0.988"];
    let fields = [&fields[..], &["REPLAYGAIN_ALBUM_GAIN", "-7.45 dB", "REPLAYGAIN_ALBUM_PEAK", "0.999"]];
    for pair in fields.concat().chunks(2) {
        add_to_ilst(&mut bytes, pair[0], pair[1]);
    }
    assert_eq!(from_memory(bytes).loudness(), WANT);
}

#[test]
fn id3v2_has_one_of_its_own() {
    let path = ffmpeg(&short(), "untagged.mp3", &["-c:a", "libmp3lame", "-id3v2_version", "0"]);
    let frame = b"RVA2\0\0\0\x0c\0\0track\0\x01\xf3\x00\x10\x60\x00";
    let mut bytes = [b"ID3\x04\0\0\0\0\0".as_slice(), &[frame.len() as u8], frame].concat();
    bytes.extend(std::fs::read(path).unwrap());
    let loudness = from_memory(bytes).loudness();
    assert_eq!(loudness.track, Some(Level { gain_db: -6.5, peak: Some(0.75) }));
}

/// LAME measures what it encodes and writes that into the first frame.
#[test]
fn what_lame_measured_is_taken_where_no_tag_is() {
    let loud = Pcm::music(44_100, 2, 16, 441_000);
    let quiet = Pcm { samples: loud.samples.iter().map(|s| (s / 4) & !0xffff).collect(), ..loud.clone() };
    let gain = |pcm: &Pcm, name: &str| {
        let path = encoded(pcm, name, &["lame", "--quiet", "-b", "192", "IN", "OUT"]);
        let mut tagged =
            b"ID3\x04\0\0\0\0\0\x29TXXX\0\0\0\x1f\0\0\0REPLAYGAIN_TRACK_GAIN\0-2.5 dB\0".to_vec();
        let measured = open(&path).loudness();
        assert_eq!((measured.album, measured.track.unwrap().peak), (None, None));
        tagged.extend(std::fs::read(path).unwrap());
        assert_eq!(from_memory(tagged).loudness().track.unwrap().gain_db, -2.5, "a tag says more");
        measured.track.unwrap().gain_db
    };
    let (loud, quiet) = (gain(&loud, "lame-loud.mp3"), gain(&quiet, "lame-quiet.mp3"));
    assert!((quiet - loud - 12.0).abs() < 0.3, "{loud} and {quiet} dB");
}

/// An atom with its length in front.
pub(super) fn atom(name: &[u8], body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 + 8).to_be_bytes(), name, body].concat()
}

/// `moov` lies behind the sound, so that nothing points behind what is put in.
pub(super) fn add_to_ilst(bytes: &mut Vec<u8>, name: &str, value: &str) {
    let mean = atom(b"mean", b"\0\0\0\0com.apple.iTunes");
    let name = atom(b"name", &[b"\0\0\0\0", name.as_bytes()].concat());
    let data = atom(b"data", &[b"\0\0\0\x01\0\0\0\0", value.as_bytes()].concat());
    insert_in_ilst(bytes, &atom(b"----", &[mean, name, data].concat()));
}

pub(super) fn insert_in_ilst(bytes: &mut Vec<u8>, field: &[u8]) {
    let find = |bytes: &[u8], name: &[u8]| bytes.windows(4).rposition(|four| four == name).unwrap();
    for parent in [b"moov", b"udta", b"meta", b"ilst"] {
        let at = find(bytes, parent) - 4;
        let size = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) + field.len() as u32;
        bytes[at..at + 4].copy_from_slice(&size.to_be_bytes());
    }
    let at = find(bytes, b"ilst") + 4;
    bytes.splice(at..at, field.iter().copied());
}
