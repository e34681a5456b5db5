//! What is done to samples when somebody wants it, and that nothing is when nobody does.

use crate::support::audio;
use crate::support::prelude::*;

/// Half of the amplitude.
const HALF: &str = "-6.0206 dB";

/// A FLAC with such tags: `NAME=value`.
fn tagged(source: &Recording, tags: &[&str]) -> Encoded {
    let work = tempfile::tempdir().unwrap();
    let (from, to) = (work.path().join("in.wav"), work.path().join("out.flac"));
    std::fs::write(&from, source.to_wav()).unwrap();
    let mut flac = std::process::Command::new("flac");
    flac.args(["--silent", "-5", "-o"]).arg(&to);
    for tag in tags {
        flac.args(["-T", tag]);
    }
    assert!(flac.arg(&from).status().unwrap().success());
    Encoded { bytes: Arc::new(std::fs::read(&to).unwrap()), content_type: "audio/flac" }
}

fn gain(db: &str) -> String {
    format!("REPLAYGAIN_TRACK_GAIN={db}")
}

/// By how much the heard is louder, in dB.
fn louder(heard: &Recording, source: &Recording) -> f64 {
    let (mut both, mut own) = (0.0, 0.0);
    for (heard, source) in heard.samples.iter().zip(&source.samples) {
        both += f64::from(*heard) * f64::from(*source);
        own += f64::from(*source).powi(2);
    }
    20.0 * (both / own).log10()
}

fn peak(heard: &Recording) -> u32 {
    heard.samples.iter().map(|sample| sample.unsigned_abs()).max().unwrap()
}

/// The first frame at which they differ.
fn parting(heard: &Recording, source: &Recording) -> usize {
    let differs = |(heard, source): (&i32, &i32)| heard != source;
    heard.samples.iter().zip(&source.samples).position(differs).unwrap_or(source.samples.len()) / 2
}

/// Waits for what is heard to be bit-perfect, or not for a reason with these words.
async fn wait_reason(daemon: &Daemon, words: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let output = daemon.output().await;
        let (exact, reason) = (get::<bool>(&output, "bit_perfect"), get::<String>(&output, "reason"));
        if exact == words.is_empty() && reason.contains(words) {
            return;
        }
        assert!(Instant::now() < deadline, "waited in vain for “{words}”: {output:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_gain_begins_and_ends_with_its_track_to_the_frame() {
    for format in ["S32_LE", "S16_LE"] {
        let card = Card::new().formats(&[format]).clock(Clock::Times(4.0)).plug();
        let server = Server::start();
        let sources = [80, 81, 82].map(|seed| Recording::music(seed, 44_100, 16, 2.0));
        let plain = |n: usize| server.serve(&format!("/{n}.flac"), sources[n].encode(Codec::Flac));
        let loud = tagged(&sources[1], &[&gain(HALF), "REPLAYGAIN_TRACK_PEAK=0.9"]);
        let uris = [plain(0), server.serve("/loud.flac", loud), plain(2)];
        let sound = "[sound]\nreplay_gain = \"track\"";
        let mut daemon = Daemon::new().card(&card).config(sound).start().await;
        daemon.play_to_the_end(&uris).await;
        let (heard, frames) = (card.music(), sources[0].frames());
        assert_eq!(heard.frames(), 3 * frames, "{format}");
        assert_exact(&heard.cut(0..frames), &sources[0]);
        assert_exact(&heard.cut(2 * frames..3 * frames), &sources[2]);
        let half = heard.cut(frames..2 * frames);
        // With dither, a frame is off by up to one and a half steps of the card.
        let off = if format == "S16_LE" { 3 << 15 } else { 1 << 8 };
        let pairs = half.samples.iter().zip(&sources[1].samples);
        let most = pairs.map(|(heard, source)| (heard - source / 2).abs()).max().unwrap();
        assert!(most <= off, "{format}: up to {most} off");
        // Cut off, they would be off by half a step at most.
        let mut pairs = half.samples.iter().zip(&sources[1].samples);
        let is_dithered = pairs.any(|(heard, source)| (heard - source / 2).abs() > 3 << 14);
        assert_eq!(is_dithered, format == "S16_LE");
    }
}

#[tokio::test]
async fn what_is_said_about_it_follows_the_ear() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let sources = [83, 84].map(|seed| Recording::music(seed, 44_100, 16, 4.0));
    let first = server.serve("/0.flac", tagged(&sources[0], &[&gain(HALF)]));
    let second = server.serve("/1.flac", sources[1].encode(Codec::Flac));
    let sound = "[sound]\nreplay_gain = \"track\"";
    let mut daemon = Daemon::new().card(&card).config(sound).start().await;
    daemon.play_uris(&[first, second]).await;
    // By now the decoder is in the second track.
    daemon.wait_position(2_800_000).await;
    let output = daemon.output().await;
    assert!(!get::<bool>(&output, "bit_perfect"), "{output:?}");
    assert_eq!(get::<String>(&output, "reason"), "ReplayGain -6.02 dB");
    daemon.wait_event("joined").await;
    let output = daemon.output().await;
    assert!(get::<bool>(&output, "bit_perfect"), "{output:?}");
    daemon.wait_end(0).await;
    assert_exact(&card.music().cut(sources[0].frames()..2 * sources[0].frames()), &sources[1]);
}

#[tokio::test]
async fn the_album_s_gain_is_taken_where_the_queue_holds_an_album() {
    let sources = [85, 86, 87].map(|seed| Recording::music(seed, 44_100, 16, 1.0));
    let album = |n: usize, name: &str, album_gain: &str| {
        let tags = [&format!("ALBUM={name}"), &gain(HALF), &format!("REPLAYGAIN_ALBUM_GAIN={album_gain}")];
        tagged(&sources[n], &tags.map(String::as_str))
    };
    for (mode, wanted) in
        [("album", [-3.0, -3.0, -9.0]), ("auto", [-3.0, -3.0, -6.02]), ("track", [-6.02; 3])]
    {
        let (card, server) = (Card::new().plug(), Server::start());
        let uris = [
            server.serve("/0.flac", album(0, "One", "-3 dB")),
            server.serve("/1.flac", album(1, "One", "-3 dB")),
            server.serve("/2.flac", album(2, "Two", "-9 dB")),
        ];
        let sound = format!("[sound]\nreplay_gain = \"{mode}\"");
        let mut daemon = Daemon::new().card(&card).config(&sound).start().await;
        daemon.play_to_the_end(&uris).await;
        let (heard, frames) = (card.music(), sources[0].frames());
        for (n, wanted) in wanted.into_iter().enumerate() {
            let got = louder(&heard.cut(n * frames..(n + 1) * frames), &sources[n]);
            assert!((got - wanted).abs() < 0.01, "{mode}, track {n}: {got:.2} dB");
        }
    }
}

#[tokio::test]
async fn both_ears_hear_both_channels() {
    let (card, server) = (Card::new().plug(), Server::start());
    let source = Recording::music(88, 44_100, 16, 1.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).config("[sound]\nmono = true").start().await;
    daemon.add(&[url]).await;
    daemon.play().await;
    wait_reason(&daemon, "mixed to mono").await;
    daemon.wait_end(0).await;
    let heard = card.music();
    assert_eq!(heard.frames(), source.frames());
    for (heard, source) in heard.samples.chunks(2).zip(source.samples.chunks(2)) {
        assert_eq!(heard[0], heard[1]);
        assert!((heard[0] - (source[0] / 2 + source[1] / 2)).abs() <= 256);
    }
}

#[tokio::test]
async fn what_was_set_over_the_bus_is_there_after_a_restart() {
    let mut daemon = Daemon::new().card(&Card::new().plug()).start().await;
    daemon.player.set_property("Mono", true).await.unwrap();
    daemon.player.set_property("ReplayGain", "auto").await.unwrap();
    daemon.term().await;
    daemon.start_again().await;
    assert!(daemon.player.get_property::<bool>("Mono").await.unwrap());
    assert_eq!(daemon.player.get_property::<String>("ReplayGain").await.unwrap(), "auto");
}

/// Over the bus, on and off again while the track plays: two ramps, and not one frame more or less.
#[tokio::test]
async fn a_change_while_music_plays_ramps_and_ends_in_exactness() {
    let (card, server) = (Card::new().clock(Clock::Times(4.0)).plug(), Server::start());
    let source = Recording::music(89, 44_100, 16, 30.0);
    let url = server.serve("/a.flac", tagged(&source, &[&gain(HALF)]));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    wait_reason(&daemon, "").await;
    daemon.player.set_property("ReplayGain", "track").await.unwrap();
    wait_reason(&daemon, "ReplayGain -6.02 dB").await;
    daemon.player.set_property("ReplayGain", "off").await.unwrap();
    wait_reason(&daemon, "").await;
    daemon.wait_end(0).await;
    let heard = card.music();
    assert_eq!(heard.frames(), source.frames());
    let (begins, turn) = (parting(&heard, &source), |of: &Recording| Recording {
        samples: of.samples.rchunks(2).flatten().copied().collect(),
        ..of.clone()
    });
    let ends = source.frames() - parting(&turn(&heard), &turn(&source));
    assert!(begins > 0 && ends < source.frames(), "{begins} to {ends}");
    let ramp = 882;
    let pairs = heard.samples[2 * (begins + ramp)..2 * (ends - ramp)]
        .iter()
        .zip(&source.samples[2 * (begins + ramp)..]);
    let most = pairs.map(|(heard, source)| (heard - source / 2).abs()).max().unwrap();
    assert!(most <= 256, "between the ramps it is half: up to {most} off");
    // The samples' ratio on the way, where they are loud enough to tell.
    let ratios: Vec<f64> = (2 * begins..2 * (begins + ramp))
        .filter(|at| source.samples[*at].unsigned_abs() > 1 << 24)
        .map(|at| f64::from(heard.samples[at]) / f64::from(source.samples[at]))
        .collect();
    assert!(ratios.windows(2).all(|pair| pair[1] < pair[0] + 1e-4 && pair[0] - pair[1] < 0.1), "{ratios:?}");
}

#[tokio::test]
async fn opus_is_turned_by_its_own_tags() {
    let source = Recording::music(90, 48_000, 16, 2.0);
    let work = tempfile::tempdir().unwrap();
    let (from, to) = (work.path().join("in.wav"), work.path().join("out.opus"));
    std::fs::write(&from, source.to_wav()).unwrap();
    let mut opusenc = std::process::Command::new("opusenc");
    // 6 dB below ReplayGain's aim is 11 below that of R 128.
    opusenc.args(["--quiet", "--comment", "R128_TRACK_GAIN=-2816"]).arg(&from).arg(&to);
    assert!(opusenc.status().unwrap().success());
    let file = Encoded { bytes: Arc::new(std::fs::read(&to).unwrap()), content_type: "audio/ogg" };
    let mut heard = Vec::new();
    for mode in ["off", "track"] {
        let (card, server) = (Card::new().plug(), Server::start());
        let url = server.serve("/a.opus", file.clone());
        let sound = format!("[sound]\nreplay_gain = \"{mode}\"");
        let mut daemon = Daemon::new().card(&card).config(&sound).start().await;
        daemon.play_to_the_end(&[url]).await;
        heard.push(card.music());
    }
    assert_eq!(heard[0].frames(), heard[1].frames());
    let got = louder(&heard[1], &heard[0]);
    assert!((got + 6.0).abs() < 0.001, "{got:.3} dB");
}

#[tokio::test]
async fn what_is_made_louder_is_limited_and_joined_to_the_frame() {
    // As loud as 16 bits go, and as abrupt.
    let mut whole = Recording::music(91, 44_100, 16, 3.0);
    for (n, sample) in whole.samples.iter_mut().enumerate() {
        if n / 30_000 % 2 == 0 {
            *sample = if (n / 2 * 37) % 401 < 200 { 32_767 << 16 } else { -32_768 << 16 };
        }
    }
    let cut = 60_001;
    for rates in [[44_100, 48_000].as_slice(), &[48_000]] {
        let card = Card::new().clock(Clock::Times(4.0)).rates(rates).formats(&["S32_LE"]).plug();
        let server = Server::start();
        let part = |path, part| server.serve(path, whole.cut(part).encode(Codec::Flac));
        let uris = [part("/0.flac", 0..cut), part("/1.flac", cut..whole.frames())];
        let sound = "[sound]\nreplay_gain = \"track\"\nuntagged_db = 9.0";
        let mut daemon = Daemon::new().card(&card).config(sound).start().await;
        daemon.play_to_the_end(&uris).await;
        let heard = card.music();
        let due = whole.frames() as u64 * u64::from(heard.rate) / 44_100;
        assert_eq!(heard.frames() as u64, due, "{rates:?}");
        assert!(peak(&heard) < 0x7fff_8000 && peak(&heard) > 0x7000_0000, "{:x}", peak(&heard));
    }
}

/// Parts of a recording in a row, on a card that cannot run at its rate.
async fn resampled(whole: &Recording, clock: Clock, cuts: &[usize]) -> Recording {
    let card = Card::new().clock(clock).rates(&[48_000]).formats(&["S32_LE"]).plug();
    let server = Server::start();
    let part = |part: &[usize]| {
        server.serve(&format!("/{}.flac", part[0]), whole.cut(part[0]..part[1]).encode(Codec::Flac))
    };
    let uris: Vec<String> = cuts.windows(2).map(part).collect();
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&uris).await;
    wait_reason(&daemon, "the card runs at 48000 Hz").await;
    daemon.wait_end(0).await;
    card.music()
}

#[tokio::test]
async fn tracks_of_one_recording_are_resampled_as_one() {
    let whole = Recording::music(92, 44_100, 16, 20.0);
    let end = whole.frames();
    let wanted = resampled(&whole, Clock::Times(8.0), &[0, end]).await;
    assert_eq!(wanted.frames(), end * 480 / 441);
    let heard = resampled(&whole, Clock::Times(2.0), &[0, 211_111, 611_111, end]).await;
    assert!(heard.samples == wanted.samples, "{}", difference(&heard, &wanted));
}

/// The second is shorter than the ring, and decoded to its end before the third is looked for.
#[tokio::test]
async fn a_short_track_waits_for_what_may_be_joined_to_it() {
    let whole = Recording::music(93, 44_100, 16, 6.3);
    let end = whole.frames();
    let wanted = resampled(&whole, Clock::Times(8.0), &[0, end]).await;
    // Half a second is left to open the third, which a busy machine may not make; without waiting none does.
    for attempt in 1.. {
        let heard = resampled(&whole, Clock::Real, &[0, 105_841, 183_017, end]).await;
        assert!(heard.frames().abs_diff(wanted.frames()) <= 1, "{} frames", heard.frames());
        if heard.samples == wanted.samples {
            break;
        }
        assert!(attempt < 5, "{}", difference(&heard, &wanted));
    }
}

/// Frames have the order of WAVE, and most of the kernel's drivers another one.
#[tokio::test]
async fn each_loudspeaker_gets_the_channel_that_is_meant_for_it() {
    let card = Card::new().channels(&[2, 6]).places("FL FR RL RR FC LFE").plug();
    let server = Server::start();
    let mut random = audio::Random::new(94);
    let samples = (0..6 * 30_000).map(|_| (1 + random.below(20_000) as i32) << 16).collect();
    let source = Recording { rate: 48_000, channels: 6, bits: 16, samples };
    let stereo = Recording::music(95, 48_000, 16, 1.0);
    let uris = [
        server.serve("/six.wav", source.encode(Codec::Wav)),
        server.serve("/two.flac", stereo.encode(Codec::Flac)),
    ];
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&uris).await;
    wait_reason(&daemon, "").await;
    daemon.wait_end(0).await;
    let frames = source.samples.chunks(6);
    let wanted = frames.flat_map(|f| [f[0], f[1], f[4], f[5], f[2], f[3]]).collect();
    let sessions = card.sessions();
    assert_exact(&sessions[0].heard, &Recording { samples: wanted, ..source });
    assert_exact(&sessions[1].heard, &stereo);
}
