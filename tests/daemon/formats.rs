//! Each format that people have plays from HTTP.

use crate::support::prelude::*;

/// What may be expected of a format.
struct Promise {
    codec: Codec,
    rate: u32,
    /// Of one packet, in frames. Lossless ones are compared bit for bit.
    packet: usize,
    /// Its container says where the music begins and ends.
    gapless: bool,
    /// How exactly its length is told, in frames.
    length: usize,
}

async fn plays(promise: Promise) {
    let Promise { codec, rate, packet, gapless, length: told_within } = promise;
    let (card, server) = (Card::new().clock(Clock::Times(4.0)).plug(), Server::start());
    let source = Recording::music(20, rate, 16, 4.0);
    let path = format!("/music.{}", codec.extension());
    let url = server.serve(&path, source.encode(codec));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_to_the_end(&[url]).await;
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    let heard = card.music();
    assert_eq!(heard.rate, rate);
    if matches!(codec, Codec::Flac | Codec::Alac | Codec::Wav) {
        assert_exact(&heard, &source);
    }
    let alike = likeness(&heard, &source);
    assert!(alike.correlation > 0.99, "{codec:?}: {alike:?}");
    let frames_off = heard.frames().abs_diff(source.frames());
    // Without gapless data the encoder's delay and the filling of its last packet are heard too.
    let allowed = if gapless { packet } else { 4 * packet };
    assert!(frames_off <= allowed, "{codec:?}: {frames_off} frames more or less than the source");
    if gapless {
        assert!(alike.lag.abs() <= 1, "{codec:?}: {alike:?}");
    }
    let length: i64 = get(&daemon.metadata().await, "mpris:length");
    let length_off = (length as f64 / 1e6 - source.seconds()).abs() * f64::from(rate);
    assert!(
        length_off <= told_within as f64,
        "{codec:?}: mpris:length is {length}, off by {length_off} frames"
    );
}

#[tokio::test]
async fn flac_plays() {
    plays(Promise { codec: Codec::Flac, rate: 44_100, packet: 4_096, gapless: true, length: 4_096 }).await;
}

#[tokio::test]
async fn wav_plays() {
    plays(Promise { codec: Codec::Wav, rate: 44_100, packet: 1, gapless: true, length: 1 }).await;
}

#[tokio::test]
async fn alac_plays() {
    plays(Promise { codec: Codec::Alac, rate: 44_100, packet: 4_096, gapless: true, length: 4_096 }).await;
}

#[tokio::test]
async fn mp3_plays() {
    plays(Promise { codec: Codec::Mp3, rate: 44_100, packet: 1_152, gapless: true, length: 1_152 }).await;
}

#[tokio::test]
async fn aac_in_mp4_plays() {
    plays(Promise { codec: Codec::AacMp4, rate: 44_100, packet: 1_024, gapless: true, length: 1_024 }).await;
}

#[tokio::test]
async fn aac_in_mp4_with_its_index_at_the_end_plays() {
    plays(Promise {
        codec: Codec::AacMp4IndexLast,
        rate: 44_100,
        packet: 1_024,
        gapless: true,
        length: 1_024,
    })
    .await;
}

#[tokio::test]
async fn aac_in_adts_plays() {
    plays(Promise { codec: Codec::AacAdts, rate: 44_100, packet: 1_024, gapless: false, length: 17_640 })
        .await;
}

#[tokio::test]
async fn vorbis_plays() {
    plays(Promise { codec: Codec::Vorbis, rate: 44_100, packet: 2_048, gapless: true, length: 2_048 }).await;
}

#[tokio::test]
async fn opus_plays() {
    plays(Promise { codec: Codec::Opus, rate: 48_000, packet: 960, gapless: true, length: 960 }).await;
}
