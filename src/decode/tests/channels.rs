//! From mono to 7.1 every channel comes out at its place in the order of WAVE, whatever the codec's own order is.

use std::path::PathBuf;

use super::fixture::*;

/// What one row is: the file's name, how it is made, and for lossy ones how alike it is at least.
type Row = (&'static str, Vec<&'static str>, Option<f64>);

fn rows(channels: usize) -> Vec<Row> {
    let ffmpeg = |options: &[&'static str]| {
        [&["ffmpeg", "-nostdin", "-y", "-i", "IN"][..], options, &["OUT"]].concat()
    };
    let flac = |options: &[&'static str]| {
        [&["flac", "-s", "--channel-map=none"][..], options, &["-f", "-o", "OUT", "IN"]].concat()
    };
    let rate = if channels > 2 { "512" } else { "160" };
    // ffmpeg would take three channels for 2.1, and five for others than WAVE has.
    let opus = |family: &'static str, format: &'static str| {
        let places = PLACES[channels - 1];
        let rate = if channels > 2 { "512k" } else { "160k" };
        let opus = ["-af", places, "-c:a", "libopus", "-mapping_family", family, "-b:a", rate, "-f", format];
        ffmpeg(&opus)
    };
    let plain = channels <= 2;
    vec![
        ("wav", vec!["cp", "IN", "OUT"], None),
        ("flac", flac(&[]), None),
        ("oga", flac(&["--ogg"]), None),
        ("aiff", ffmpeg(&[]), None),
        ("caf", ffmpeg(&["-c:a", "pcm_s16le"]), None),
        ("pcm.mka", ffmpeg(&["-c:a", "pcm_s16le"]), None),
        ("ogg", vec!["oggenc", "-Q", "-q6", "-o", "OUT", "IN"], Some(0.97)),
        ("opus", vec!["opusenc", "--quiet", "--bitrate", rate, "IN", "OUT"], Some(0.97)),
        ("opus.webm", opus(if plain { "0" } else { "1" }, "webm"), Some(0.97)),
        ("opus.mp4", opus(if plain { "0" } else { "1" }, "mp4"), Some(0.97)),
        ("bare.webm", opus("255", "webm"), Some(0.97)),
        ("bare.mp4", opus("255", "mp4"), Some(0.97)),
    ]
}

/// The layouts that WAVE's order means, each channel staying where it is.
const PLACES: [&str; 8] = [
    "channelmap=0:mono",
    "channelmap=0|1:stereo",
    "channelmap=0|1|2:3.0",
    "channelmap=0|1|2|3:quad",
    "channelmap=0|1|2|3|4:5.0",
    "channelmap=0|1|2|3|4|5:5.1",
    "channelmap=0|1|2|3|4|5|6:6.1",
    "channelmap=0|1|2|3|4|5|6|7:7.1",
];

fn made(pcm: &Pcm, name: &str, command: &[&str]) -> PathBuf {
    encoded(pcm, &format!("{}ch.{name}", pcm.channels), command)
}

#[test]
fn each_channel_is_at_its_place() {
    for channels in 1..=8 {
        let pcm = Pcm::music(48_000, channels, 16, 96_000);
        for (name, command, least) in rows(channels) {
            let path = made(&pcm, name, &command);
            let mut decoder = open(&path);
            assert_eq!(usize::from(decoder.format().channels), channels, "{}", path.display());
            let got = rest(&mut decoder);
            match least {
                None => assert!(got == pcm.samples, "{}", path.display()),
                Some(least) => {
                    assert_eq!(got.len(), pcm.samples.len(), "{}", path.display());
                    for channel in 0..channels {
                        let alike =
                            |other: usize| correlation(&pcm.samples[other..], &got[channel..], channels, 0);
                        let here = alike(channel);
                        let there = (0..channels).filter(|c| *c != channel).map(alike).fold(-1.0, f64::max);
                        // Encoders leave only the lowest tones of the LFE.
                        let least = if channels >= 6 && channel == 3 { 0.1 } else { least };
                        assert!(
                            here > least && here > there,
                            "{}: channel {channel} is alike by {here:.3}, another one by {there:.3}",
                            path.display()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn opus_of_more_channels_than_a_room_has_is_refused_with_its_reason() {
    let pcm = Pcm::music(48_000, 8, 16, 48_000);
    let sixteen = "pan=hexadecagonal|c0=c0|c7=c7|c15=c1";
    for format in ["opus", "webm", "mp4"] {
        let options = ["-af", sixteen, "-c:a", "libopus", "-mapping_family", "255", "-f", format];
        let path = ffmpeg(&pcm, &format!("sixteen.{format}"), &options);
        let told = refused(&std::fs::read(path).unwrap(), true).to_string();
        assert!(told.starts_with("Opus cannot be played (it has 16 channels"), "{format}: {told}");
    }
}

#[test]
fn ambisonics_are_refused_by_name() {
    let pcm = Pcm::music(48_000, 4, 16, 48_000);
    for format in ["opus", "webm", "mp4"] {
        let options = ["-af", PLACES[3], "-c:a", "libopus", "-mapping_family", "255", "-f", format];
        let path = ffmpeg(&pcm, &format!("field.{format}"), &options);
        let mut bytes = std::fs::read(path).unwrap();
        // Nothing here writes it: the family alone is changed.
        let (mark, at) = if format == "mp4" { (&b"dOps"[..], 14) } else { (&b"OpusHead"[..], 18) };
        let head = bytes.windows(mark.len()).position(|bytes| bytes == mark).unwrap();
        assert_eq!(std::mem::replace(&mut bytes[head + at], 2), 255, "{format}");
        if format == "opus" {
            seal_first_page(&mut bytes);
        }
        let told = refused(&bytes, true).to_string();
        assert!(told.starts_with("Opus cannot be played (it is Ambisonics"), "{format}: {told}");
    }
}

#[test]
fn channels_without_a_meaning_are_refused_in_ogg() {
    let pcm = Pcm::music(48_000, 4, 16, 48_000);
    let options = ["-af", PLACES[3], "-c:a", "libopus", "-mapping_family", "255"];
    let told = refused(&std::fs::read(ffmpeg(&pcm, "bare.opus", &options)).unwrap(), true).to_string();
    assert!(told.starts_with("Opus cannot be played (which loudspeaker"), "{told}");
}
