//! The fixtures do what they say.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::support::audio::Recording;
use crate::support::bus::Bus;
use crate::support::card::{Card, Fault};
use crate::support::compare::{assert_exact, difference, likeness};
use crate::support::encode::Codec;
use crate::support::server::{Server, Trouble};

fn fetch(url: &str, range: Option<&str>) -> (u16, Vec<u8>) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut connection = TcpStream::connect(host).unwrap();
    let range = range.map(|range| format!("Range: bytes={range}\r\n")).unwrap_or_default();
    write!(connection, "GET /{path} HTTP/1.1\r\nHost: {host}\r\n{range}\r\n").unwrap();
    let mut answer = Vec::new();
    // A connection that the server breaks off is what some of these are about.
    let _ = connection.read_to_end(&mut answer);
    let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
    (status, answer[head + 4..].to_vec())
}

#[test]
fn what_aplay_plays_on_the_card_is_read_back_bit_for_bit() {
    for (bits, format) in [(16, "S16_LE"), (24, "S24_3LE"), (32, "S32_LE")] {
        let card = Card::new().formats(&[format]).plug();
        let source = Recording::music(3, 48_000, bits, 0.5);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), source.to_wav()).unwrap();
        let mut aplay = Command::new("aplay");
        aplay.args(["-q", "-D", "dac"]).arg(file.path()).env("ALSA_CONFIG_PATH", card.alsa_config());
        assert!(aplay.status().unwrap().success());
        assert_eq!(card.sessions()[0].format, format);
        assert_exact(&card.music(), &source);
    }
}

#[test]
fn a_card_that_is_unplugged_cannot_be_opened_until_it_is_healed() {
    let card = Card::new().fault(Fault::Unplug).plug();
    let play = || {
        let mut aplay = Command::new("aplay");
        aplay.args(["-q", "-D", "dac", "-f", "dat", "-d", "1", "/dev/zero"]);
        aplay.env("ALSA_CONFIG_PATH", card.alsa_config()).output().unwrap().status.success()
    };
    assert!(!play());
    card.heal();
    assert!(play());
    assert_eq!(card.events_of("open_failed").len(), 1);
}

#[test]
fn each_encoder_makes_a_file_that_differs_from_the_others() {
    let source = Recording::music(4, 48_000, 16, 0.5);
    let kinds = [
        (Codec::Flac, &b"fLaC"[..]),
        (Codec::Vorbis, b"OggS"),
        (Codec::Opus, b"OggS"),
        (Codec::Wav, b"RIFF"),
        (Codec::AacAdts, b"\xff\xf1"),
    ];
    for (codec, magic) in kinds {
        assert!(source.encode(codec).bytes.starts_with(magic), "{codec:?}");
    }
    let place = |codec, name: &[u8]| {
        let bytes = source.encode(codec).bytes;
        bytes.windows(4).position(|bytes| bytes == name).unwrap()
    };
    assert!(place(Codec::AacMp4, b"moov") < place(Codec::AacMp4, b"mdat"));
    assert!(place(Codec::AacMp4IndexLast, b"moov") > place(Codec::AacMp4IndexLast, b"mdat"));
}

#[test]
fn a_difference_is_told_as_lost_repeated_foreign_or_altered_frames() {
    let source = Recording::music(5, 44_100, 16, 0.2);
    let say = |heard: &Recording| difference(heard, &source);
    let end = source.frames();
    let lost = source.cut(0..1_000).then(&source.cut(1_100..end));
    assert!(say(&lost).contains("100 frames are missing"), "{}", say(&lost));
    let repeated = source.cut(0..1_000).then(&source.cut(960..end));
    assert!(say(&repeated).contains("it went back 40 frames"), "{}", say(&repeated));
    let mut altered = source.clone();
    altered.samples.iter_mut().skip(2_000).for_each(|sample| *sample /= 2);
    assert!(say(&altered).contains("goes on altered"), "{}", say(&altered));
    let silence = Recording { samples: vec![0; 60], ..source.clone() };
    let put_in = source.cut(0..1_000).then(&silence).then(&source.cut(1_000..end));
    assert!(say(&put_in).contains("30 foreign frames"), "{}", say(&put_in));
}

#[test]
fn likeness_finds_the_lag() {
    let source = Recording::music(6, 44_100, 16, 1.0);
    let late = source.cut(0..500).then(&source);
    let alike = likeness(&late, &source);
    assert_eq!(alike.lag, 500);
    assert!(alike.correlation > 0.9999);
    let other = likeness(&Recording::music(7, 44_100, 16, 1.0), &source);
    assert!(other.correlation < 0.5, "{other:?}");
}

#[test]
fn the_server_answers_ranges_and_has_its_troubles() {
    let server = Server::start();
    let file = Recording::music(8, 44_100, 16, 0.5).encode(Codec::Wav);
    let total = file.bytes.len();
    let plain = server.serve("/plain", file.clone());
    assert_eq!(fetch(&plain, None), (200, file.bytes.to_vec()));
    assert_eq!(fetch(&plain, Some("1000-1999")), (206, file.bytes[1000..2000].to_vec()));
    assert_eq!(fetch(&plain, Some(&format!("{total}-"))).0, 416);
    assert_eq!(fetch(&server.url("/nothing"), None).0, 404);
    let cut = server.serve_with("/cut", file.clone(), &[Trouble::CutAfter { bytes: 5_000, times: 1 }]);
    assert_eq!(fetch(&cut, None).1.len(), 5_000);
    assert_eq!(fetch(&cut, Some("5000-")).1.len(), total - 5_000);
    let whole = server.serve_with("/whole", file.clone(), &[Trouble::NoRanges]);
    assert_eq!(fetch(&whole, Some("1000-")), (200, file.bytes.to_vec()));
    let once = [Trouble::RefuseRequests { from: 1, count: 1, status: 403 }];
    let refused = server.serve_with("/refused", file.clone(), &once);
    assert_eq!([(); 3].map(|()| fetch(&refused, None).0), [200, 403, 200]);
    server.serve("/token", file.clone());
    let token = server.fresh_url("/token", Duration::from_millis(300));
    assert_eq!(fetch(&token, None).0, 200);
    std::thread::sleep(Duration::from_millis(310));
    assert_eq!(fetch(&token, None).0, 403);
    let ranges: Vec<_> =
        server.requests("/cut").into_iter().map(|served| (served.range, served.sent)).collect();
    assert_eq!(ranges, [(None, 5_000), (Some("bytes=5000-".to_owned()), total - 5_000)]);
}

#[test]
fn a_throttled_body_takes_its_time() {
    let server = Server::start();
    let file = Recording::music(9, 44_100, 16, 0.5).encode(Codec::Wav);
    let began = std::time::Instant::now();
    let slow = server.serve_with("/slow", file.clone(), &[Trouble::Throttle(file.bytes.len() * 2)]);
    assert_eq!(fetch(&slow, None).1.len(), file.bytes.len());
    assert!(began.elapsed() > Duration::from_millis(400), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_bus_comes_back_at_the_same_address() {
    let mut bus = Bus::start();
    let connection = bus.connect().await;
    bus.stop();
    connection.closed().await;
    bus.restart();
    assert!(bus.connect().await.unique_name().is_some());
}
