//! Jumps in MP3 and ADTS in which something else stands between the frames.

use super::fixture::*;
use super::random_seeks::place_of;
use crate::decode::Decoder;

/// A minute, of which places are told apart to the millisecond.
fn long() -> Pcm {
    Pcm::music(44_100, 2, 16, 44_100 * 60)
}

fn lame(pcm: &Pcm, name: &str, options: &[&str]) -> Vec<u8> {
    let command = [&["lame", "--quiet"][..], options, &["IN", "OUT"]].concat();
    std::fs::read(encoded(pcm, name, &command)).unwrap()
}

/// Where the frames of an MPEG-1 layer 3 file begin, at 44.1 kHz and without a tag in front.
fn starts(bytes: &[u8]) -> Vec<usize> {
    const RATES: [usize; 15] = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
    let (mut at, mut found) = (0, Vec::new());
    while at + 4 <= bytes.len() && bytes[at] == 0xff {
        found.push(at);
        let head = usize::from(bytes[at + 2]);
        at += 144_000 * RATES[head >> 4] / 44_100 + (head >> 1 & 1);
    }
    found
}

/// Opens a file, all of which is at hand.
fn on_disk(bytes: &[u8]) -> (tempfile::NamedTempFile, Decoder) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let decoder = open(file.path());
    (file, decoder)
}

fn synchsafe(n: usize) -> [u8; 4] {
    [21, 14, 7, 0].map(|by| (n >> by) as u8 & 0x7f)
}

#[test]
fn a_jump_behind_damage_sounds_about_there_and_one_before_it_is_exact() {
    let (vbr, cbr) =
        (lame(&long(), "long-vbr.mp3", &["-V", "2"]), lame(&long(), "long-cbr.mp3", &["-b", "128"]));
    let untagged = lame(&long(), "long-untagged.mp3", &["-t", "-b", "128"]);
    // At twenty seconds.
    let middle = |bytes: &[u8]| starts(bytes)[20 * 44_100 / 1152];
    let broken = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let at = middle(&bytes);
        bytes[at..at + 2].fill(0x55);
        bytes
    };
    let between = |bytes: &[u8], other: &[u8]| {
        let at = middle(bytes);
        [&bytes[..at], other, &bytes[at..]].concat()
    };
    let picture: Vec<u8> =
        (0..300_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 & 0x7f).collect();
    let id3v2 = [b"ID3\x04\0\0", &synchsafe(picture.len())[..], &picture].concat();
    let id3v1 = [b"TAG", &[b' '; 125][..]].concat();
    for (bytes, whole, most, what) in [
        (broken(&vbr), &vbr, 1.5, "VBR, a broken header"),
        (broken(&cbr), &cbr, 0.2, "CBR, a broken header"),
        (broken(&untagged), &untagged, 0.2, "without a tag, a broken header"),
        (between(&cbr, &id3v2), &cbr, 0.2, "CBR, a tag with a picture"),
        (between(&vbr, &id3v2), &vbr, 1.5, "VBR, a tag with a picture"),
        (between(&untagged, &id3v1), &untagged, 0.2, "a tag of ID3v1 between two"),
        (between(&untagged, &picture), &untagged, 20.0, "something that is not known"),
    ] {
        let whole = rest(&mut from_memory(whole.clone()));
        let (_file, mut decoder) = on_disk(&bytes);
        for seconds in [40, 45] {
            let frame = 44_100 * seconds;
            let landed = decoder.seek(frame as u64).unwrap();
            assert_eq!((landed.frame, landed.exact), (frame as u64, false), "{what}");
            let got = some(&mut decoder, 8_000);
            assert!(got.len() >= 16_000, "{what}: it ends at {seconds} s");
            if most < 3.0 && seconds == 40 {
                let off = place_of(&got, &whole, frame) as f64 / 44_100.0;
                eprintln!("{what}: {off:.3} s off");
                assert!(off.abs() < most, "{what}: {off} s off");
            }
            let frame = 44_100 * 10 + 7;
            let landed = decoder.seek(frame as u64).unwrap();
            assert_eq!((landed.frame, landed.exact), (frame as u64, true), "{what}");
            let got = some(&mut decoder, 2_000);
            assert!(got == whole[frame * 2..][..got.len()], "{what}");
        }
    }
}

#[test]
fn tags_behind_the_sound_are_its_end() {
    let plain = lame(&recording(), "untagged.mp3", &["-t", "-V", "4"]);
    let id3v1 = [b"TAG", &[b' '; 125][..]].concat();
    let ape = [b"APETAGEX\xd0\x07\0\0", &[0; 2_020][..]].concat();
    for behind in [id3v1.clone(), ape.clone(), [ape, id3v1].concat()] {
        let (_file, mut decoder) = on_disk(&[&plain[..], &behind].concat());
        let whole = rest(&mut from_memory(plain.clone())).len() as u64 / 2;
        let landed = decoder.seek(10_000_000).unwrap();
        assert_eq!((landed.frame, landed.exact), (whole, true));
        assert_eq!(decoder.next(&mut Vec::new()).unwrap(), None);
    }
}

#[test]
fn frames_are_numbered_as_they_are_played() {
    let pcm = recording();
    let half = |name: &str, options: &[&str]| lame(&pcm, name, options);
    let untagged = half("untagged.mp3", &["-t", "-V", "4"]);
    let silent = |mut bytes: Vec<u8>| {
        // LAME's own part of the tag: without it the demuxer takes no length from the tag.
        let name = bytes.windows(4).position(|name| name == b"LAME").unwrap();
        bytes[name..name + 4].copy_from_slice(b"GAME");
        bytes
    };
    for (bytes, what) in [
        ([&untagged[..], &half("vbr4.mp3", &["-V", "4"])].concat(), "a tag of the encoder's in the middle"),
        (half("protected.mp3", &["-p", "-b", "192"]), "with checksums"),
        (half("protected-vbr.mp3", &["-p", "-V", "4"]), "VBR with checksums"),
        (half("protected-mono.mp3", &["-p", "-m", "m", "-b", "64"]), "mono with checksums"),
        (silent(half("vbr4.mp3", &["-V", "4"])), "a tag that is not LAME's"),
    ] {
        let (_file, mut decoder) = on_disk(&bytes);
        let channels = usize::from(decoder.format().channels);
        let whole = rest(&mut from_memory(bytes));
        let frames = whole.len() / channels;
        for frame in [frames - 3_000, 1_000, frames / 2 + 500, frames * 9 / 10] {
            let landed = decoder.seek(frame as u64).unwrap();
            assert_eq!((landed.frame, landed.exact), (frame as u64, true), "{what}");
            let got = some(&mut decoder, 2_000);
            assert!(got == whole[frame * channels..][..got.len()], "{what} at {frame}");
        }
        let landed = decoder.seek(10_000_000).unwrap();
        assert_eq!((landed.frame, landed.exact), (frames as u64, true), "{what}");
    }
}

/// Which no hint and no first byte tells from an MP3.
#[test]
fn adts_behind_a_tag_is_jumped_in_by_its_own_index() {
    let adts = ffmpeg(&recording(), "plain.aac", &["-c:a", "aac", "-b:a", "192k"]);
    let plain = std::fs::read(adts).unwrap();
    let bytes = [b"ID3\x04\0\0", &synchsafe(3_000)[..], &[0; 3_000], &plain].concat();
    let whole = rest(&mut from_memory(plain));
    let mut decoder = from_memory(bytes);
    assert_eq!(decoder.codec(), "AAC");
    some(&mut decoder, 150_000);
    for frame in [100_000usize, 30_000] {
        let landed = decoder.seek(frame as u64).unwrap();
        assert_eq!((landed.frame, landed.exact), (frame as u64, true));
        let got = some(&mut decoder, 2_000);
        let noise = difference_db(&got, &whole[frame * 2..][..got.len()]);
        assert!(noise < -45.0, "{noise:.1} dB");
    }
    // What has not passed is a guess, as it is without the tag.
    assert!(!decoder.seek(220_000).unwrap().exact);
}
