//! HTTP Live Streaming as ffmpeg makes it, through the whole daemon.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use tempfile::TempDir;

use crate::support::prelude::*;

/// A kind of segment.
#[derive(Clone, Copy)]
struct Kind {
    arguments: &'static [&'static str],
    rate: u32,
}

const ADTS: Kind = Kind {
    arguments: &["-c:a", "aac", "-b:a", "192k", "-map", "0:a", "-f", "segment", "piece%d.aac"],
    rate: 44_100,
};
const MP3: Kind = Kind {
    arguments: &[
        "-c:a",
        "libmp3lame",
        "-b:a",
        "192k",
        "-map",
        "0:a",
        "-f",
        "segment",
        "-segment_format_options",
        "write_xing=0:id3v2_version=0",
        "piece%d.mp3",
    ],
    ..ADTS
};
/// As MP3 encoders write them: each segment begins with a head that tells its own length alone.
const MP3_WITH_HEADS: Kind = Kind {
    arguments: &["-c:a", "libmp3lame", "-b:a", "192k", "-map", "0:a", "-f", "segment", "piece%d.mp3"],
    ..ADTS
};
const TS: Kind =
    Kind { arguments: &["-c:a", "aac", "-b:a", "192k", "-f", "hls", "-hls_segment_type", "mpegts"], ..ADTS };
const MP3_IN_TS: Kind = Kind {
    arguments: &["-c:a", "libmp3lame", "-b:a", "192k", "-f", "hls", "-hls_segment_type", "mpegts"],
    ..ADTS
};
const FMP4: Kind =
    Kind { arguments: &["-c:a", "aac", "-b:a", "192k", "-f", "hls", "-hls_segment_type", "fmp4"], ..ADTS };
const FMP4_IN_ONE_FILE: Kind = Kind {
    arguments: &[
        "-c:a",
        "aac",
        "-b:a",
        "192k",
        "-f",
        "hls",
        "-hls_segment_type",
        "fmp4",
        "-hls_flags",
        "single_file",
    ],
    ..ADTS
};
const FLAC_IN_FMP4: Kind =
    Kind { arguments: &["-c:a", "flac", "-strict", "-2", "-f", "hls", "-hls_segment_type", "fmp4"], ..ADTS };
const OPUS_IN_FMP4: Kind = Kind {
    arguments: &[
        "-c:a",
        "libopus",
        "-b:a",
        "160k",
        "-strict",
        "-2",
        "-f",
        "hls",
        "-hls_segment_type",
        "fmp4",
    ],
    rate: 48_000,
};

/// Runs ffmpeg in a folder.
fn ffmpeg(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("ffmpeg");
    command.current_dir(folder).args(["-v", "error", "-y"]).args(arguments);
    let done = command.output().unwrap_or_else(|error| panic!("{error}; ./dev test installs ffmpeg"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A recording in segments of so many seconds, in a folder of its own: `list.m3u8` and what it lists.
fn cut_up(source: &Recording, kind: &Kind, seconds: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.wav"), source.to_wav()).unwrap();
    let (options, pattern) = match kind.arguments.split_last() {
        Some((pattern, options)) if pattern.starts_with("piece") => (options, Some(*pattern)),
        _ => (kind.arguments, None),
    };
    let mut arguments = [&["-i", "in.wav"], options].concat();
    match pattern {
        Some(pattern) => arguments.extend(["-segment_time", seconds, "-segment_list", "list.m3u8", pattern]),
        None => arguments.extend(["-hls_time", seconds, "-hls_playlist_type", "vod", "list.m3u8"]),
    }
    ffmpeg(folder.path(), &arguments);
    fs::remove_file(folder.path().join("in.wav")).unwrap();
    folder
}

/// What ffmpeg hears of a file in a folder.
fn decoded(folder: &Path, file: &str) -> Recording {
    ffmpeg(folder, &["-i", file, "-c:a", "pcm_s16le", "out.wav"]);
    let wav = fs::read(folder.join("out.wav")).unwrap();
    fs::remove_file(folder.join("out.wav")).unwrap();
    Recording::from_wav(&wav).trimmed()
}

/// Offers what is in a folder; these files with trouble.
fn offer(server: &Server, folder: &Path, troubles: &[(&str, Trouble)]) -> String {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let content_type = match path.extension().and_then(|extension| extension.to_str()) {
            Some("m3u8") => "application/vnd.apple.mpegurl",
            Some("ts") => "video/mp2t",
            Some("m4s" | "mp4") => "video/mp4",
            _ => "application/octet-stream",
        };
        let file = Encoded { bytes: Arc::new(fs::read(&path).unwrap()), content_type };
        let troubles: Vec<Trouble> =
            troubles.iter().filter(|(of, _)| *of == name).map(|(_, trouble)| trouble.clone()).collect();
        server.serve_with(&format!("/hls/{name}"), file, &troubles);
    }
    server.url("/hls/list.m3u8")
}

/// What is heard is the source, and as long as what ffmpeg hears of the segments: no frame is lost or doubled where
/// they meet, nor by what `troubles` do.
async fn plays_with(kind: Kind, seed: u64, troubles: &[(&str, Trouble)]) -> Server {
    let (card, server) = (Card::new().clock(Clock::Times(4.0)).plug(), Server::start());
    let source = Recording::music(seed, kind.rate, 16, 7.0);
    let folder = cut_up(&source, &kind, "1");
    let url = offer(&server, folder.path(), troubles);
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_to_the_end(&[url]).await;
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    let heard = card.music();
    assert_eq!(heard.rate, kind.rate);
    if kind.arguments.contains(&"flac") {
        assert_exact(&heard, &source);
        return server;
    }
    let alike = likeness(&heard, &source);
    assert!(alike.correlation > 0.99, "{alike:?}");
    let expected = decoded(folder.path(), "list.m3u8");
    let (had, wanted) = (heard.frames(), expected.frames());
    let alike = likeness(&heard, &expected);
    assert!(alike.correlation > 0.999, "{alike:?}");
    // Both begin and end with what an encoder filled in, which decoders may make silent.
    assert!(had.abs_diff(wanted) < 1_000 && alike.lag.abs() < 1_000, "{had} frames of {wanted}, {alike:?}");
    server
}

#[tokio::test]
async fn aac_in_adts_is_heard_without_a_seam() {
    let server = plays_with(ADTS, 401, &[]).await;
    assert_eq!(server.requests("/hls/list.m3u8").len(), 1);
    assert_eq!(server.requests("/hls/piece3.aac").len(), 1);
}

#[tokio::test]
async fn aac_in_a_transport_stream_is_heard_without_a_seam() {
    plays_with(TS, 402, &[]).await;
}

#[tokio::test]
async fn mp3_in_a_transport_stream_is_heard_without_a_seam() {
    plays_with(MP3_IN_TS, 403, &[]).await;
}

#[tokio::test]
async fn mp3_is_heard_without_a_seam() {
    plays_with(MP3, 404, &[]).await;
}

#[tokio::test]
async fn mp3_whose_segments_tell_their_own_length_is_heard_whole() {
    plays_with(MP3_WITH_HEADS, 415, &[]).await;
}

#[tokio::test]
async fn what_follows_a_discontinuity_is_heard_also_where_what_was_before_told_its_length() {
    let (card, server) = (Card::new().clock(Clock::Times(4.0)).plug(), Server::start());
    let kinds = [(416, MP3_WITH_HEADS), (417, ADTS), (418, MP3_WITH_HEADS), (419, ADTS)];
    let mut text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n".to_owned();
    let mut sources = Vec::new();
    for (seed, kind) in kinds {
        let source = Recording::music(seed, kind.rate, 16, 2.0);
        let folder = cut_up(&source, &kind, "4");
        let name = if kind.arguments.contains(&"libmp3lame") { "piece0.mp3" } else { "piece0.aac" };
        let bytes = Arc::new(fs::read(folder.path().join(name)).unwrap());
        server.serve(&format!("/{seed}-{name}"), Encoded { bytes, content_type: "application/octet-stream" });
        text += &format!("#EXTINF:2,\n{seed}-{name}\n#EXT-X-DISCONTINUITY\n");
        sources.push((source, decoded(folder.path(), name)));
    }
    text += "#EXT-X-ENDLIST\n";
    let url = server.serve_text("/four.m3u8", "application/x-mpegurl", &text);
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_to_the_end(&[url]).await;
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    let heard = card.music();
    let expected: Vec<usize> = sources.iter().map(|(_, decoded)| decoded.frames()).collect();
    let (had, wanted) = (heard.frames(), expected.iter().sum::<usize>());
    // What an encoder filled in behind its MP3 is heard: where several segments follow, its length is not theirs.
    assert!(had + 1_000 > wanted && had < wanted + 2 * 2 * 1_152, "{had} frames of {wanted}: {expected:?}");
    let mut from = 0;
    for (n, (source, _)) in sources.iter().enumerate() {
        // Each lies where the ones before it end, but for what their encoders filled in.
        let alike = likeness(&heard.cut(from..(from + source.frames()).min(heard.frames())), source);
        assert!(alike.correlation > 0.95, "{n}: {alike:?}");
        from += expected[n];
    }
}

#[tokio::test]
async fn aac_in_fragments_is_heard_without_a_seam() {
    plays_with(FMP4, 405, &[]).await;
}

#[tokio::test]
async fn fragments_in_one_file_are_fetched_by_their_ranges() {
    let server = plays_with(FMP4_IN_ONE_FILE, 406, &[]).await;
    let asked: Vec<_> = server.requests("/hls/list.m4s").into_iter().map(|request| request.range).collect();
    assert!(asked.len() > 6 && asked.iter().all(Option::is_some), "{asked:?}");
}

#[tokio::test]
async fn flac_in_fragments_is_heard_bit_for_bit() {
    plays_with(FLAC_IN_FMP4, 407, &[]).await;
}

#[tokio::test]
async fn opus_in_fragments_is_heard_without_a_seam() {
    plays_with(OPUS_IN_FMP4, 408, &[]).await;
}

#[tokio::test]
async fn a_segment_that_is_refused_twice_and_one_that_is_cut_are_not_heard() {
    let busy = Trouble::RefuseRequests { from: 0, count: 2, status: 503 };
    let cut = Trouble::CutAfter { bytes: 9_999, times: 2 };
    let server = plays_with(FLAC_IN_FMP4, 409, &[("list2.m4s", busy), ("list4.m4s", cut)]).await;
    assert_eq!(server.requests("/hls/list2.m4s").len(), 3);
    let asked: Vec<_> = server.requests("/hls/list4.m4s").into_iter().map(|request| request.range).collect();
    let ranges = [None, Some("bytes=9999-".to_owned()), Some("bytes=19998-".to_owned())];
    assert_eq!(asked, ranges);
}

#[tokio::test]
async fn a_discontinuity_with_another_rate_is_heard_at_its_own() {
    let (card, server) = (Card::new().clock(Clock::Times(4.0)).plug(), Server::start());
    let sources = [(410, 44_100), (411, 48_000)].map(|(seed, rate)| Recording::music(seed, rate, 16, 3.0));
    let mut text = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n".to_owned();
    for (n, (source, kind)) in sources.iter().zip([&ADTS, &FMP4]).enumerate() {
        let folder = cut_up(source, kind, "1");
        let list = fs::read_to_string(folder.path().join("list.m3u8")).unwrap();
        let tags = ["#EXT-X-MAP", "#EXTINF"];
        let lines = list
            .lines()
            .filter(|line| !line.starts_with('#') || tags.iter().any(|tag| line.starts_with(tag)));
        let lines: Vec<_> = lines.map(|line| line.replace("init.mp4", "second/init.mp4")).collect();
        let place = ["", "second/"][n];
        for line in &lines {
            text += &if line.starts_with('#') { format!("{line}\n") } else { format!("{place}{line}\n") };
        }
        text += ["#EXT-X-DISCONTINUITY\n", "#EXT-X-ENDLIST\n"][n];
        for entry in fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let bytes = Arc::new(fs::read(&path).unwrap());
            server.serve(
                &format!("/{place}{name}"),
                Encoded { bytes, content_type: "application/octet-stream" },
            );
        }
    }
    let url = server.serve_text("/both.m3u8", "application/x-mpegurl", &text);
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_to_the_end(&[url]).await;
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    let heard: Vec<Recording> = card.sessions().iter().map(|session| session.heard.trimmed()).collect();
    let rates: Vec<u32> = heard.iter().map(|heard| heard.rate).collect();
    assert_eq!(rates, [44_100, 48_000]);
    for (heard, source) in heard.iter().zip(&sources) {
        let alike = likeness(heard, source);
        assert!(alike.correlation > 0.99, "{alike:?}");
        assert!(heard.frames() >= source.frames(), "{} of {}", heard.frames(), source.frames());
    }
}

#[tokio::test]
async fn an_encrypted_stream_is_refused_with_a_sentence() {
    let (card, server) = (Card::new().plug(), Server::start());
    let source = Recording::music(412, 44_100, 16, 2.0);
    let encrypted = Kind {
        arguments: &[
            "-c:a",
            "aac",
            "-f",
            "hls",
            "-hls_enc",
            "1",
            "-hls_enc_key",
            "00112233445566778899aabbccddeeff",
            "-hls_enc_key_url",
            "the.key",
        ],
        ..TS
    };
    let folder = cut_up(&source, &encrypted, "1");
    let url = offer(&server, folder.path(), &[]);
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    daemon.wait_error("list.m3u8").await;
    let errors = daemon.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("it is encrypted"), "{errors:?}");
    assert!(server.requests("/hls/the.key").is_empty() && server.requests("/hls/list0.ts").is_empty());
}

/// Listens for 8 s to a window of six segments that moves on by one each second. `name` is that of a segment.
async fn is_heard_live(kind: Kind, seed: u64, head: Option<&str>, name: fn(usize) -> String) {
    const WINDOW: usize = 6;
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let source = Recording::music(seed, kind.rate, 16, 60.0);
    let folder = cut_up(&source, &kind, "1");
    offer(&server, folder.path(), &[]);
    let count = (0..).take_while(|n| folder.path().join(name(*n)).exists()).count();
    let map = head.map_or_else(String::new, |head| format!("#EXT-X-MAP:URI=\"hls/{head}\"\n"));
    let began = Mutex::new(None);
    server.answer(
        "/live.m3u8",
        Arc::new(move |_| {
            let began = *began.lock().unwrap().get_or_insert_with(Instant::now);
            let end = (WINDOW + began.elapsed().as_secs() as usize).min(count);
            let first = end - WINDOW;
            let mut text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:{first}\n{map}");
            for n in first..end {
                text += &format!("#EXTINF:1,\nhls/{}\n", name(n));
            }
            (200, "application/vnd.apple.mpegurl", text.into_bytes())
        }),
    );
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[server.url("/live.m3u8")]).await;
    daemon.wait_state("playing").await;
    daemon.wait_position(8_000_000).await;
    daemon.stop().await;
    daemon.wait_state("stopped").await;
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    // What ffmpeg hears of the segments from the third before the first window's end on.
    let pieces = head.map(str::to_owned).into_iter().chain((WINDOW - 3..count).map(name));
    let pieces: Vec<_> = pieces.map(|piece| fs::read(folder.path().join(piece)).unwrap()).collect();
    let all = if head.is_some() { "all.mp4" } else { "all.aac" };
    fs::write(folder.path().join(all), pieces.concat()).unwrap();
    let expected = decoded(folder.path(), all);
    let heard = card.music();
    assert!(heard.seconds() > 7.0, "{} s", heard.seconds());
    let alike = likeness(&heard, &expected.cut(0..heard.frames()));
    assert!(alike.correlation > 0.99, "{alike:?}");
}

#[tokio::test]
async fn a_live_window_that_moves_on_is_heard_without_a_seam() {
    is_heard_live(ADTS, 413, None, |n| format!("piece{n}.aac")).await;
}

#[tokio::test]
async fn a_live_window_of_fragments_is_heard_without_a_seam() {
    is_heard_live(FMP4, 414, Some("init.mp4"), |n| format!("list{n}.m4s")).await;
}
