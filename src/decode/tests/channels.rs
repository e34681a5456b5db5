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
    vec![
        ("wav", vec!["cp", "IN", "OUT"], None),
        ("flac", flac(&[]), None),
        ("oga", flac(&["--ogg"]), None),
        ("aiff", ffmpeg(&[]), None),
        ("caf", ffmpeg(&["-c:a", "pcm_s16le"]), None),
        ("pcm.mka", ffmpeg(&["-c:a", "pcm_s16le"]), None),
        ("ogg", vec!["oggenc", "-Q", "-q6", "-o", "OUT", "IN"], Some(0.97)),
        ("opus", vec!["opusenc", "--quiet", "--bitrate", rate, "IN", "OUT"], Some(0.97)),
    ]
}

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
