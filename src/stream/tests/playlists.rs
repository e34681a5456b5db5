//! From the address of a playlist to a station.

use std::sync::atomic::AtomicBool;

use super::*;

const PLS: (&str, &str) = ("Content-Type", "audio/x-scpls");
const M3U: (&str, &str) = ("Content-Type", "audio/x-mpegurl");

/// Answers with a text.
fn text(reply: &mut Reply, headers: &[(&str, &str)], text: &str) {
    let mut all = headers.to_vec();
    let length = text.len().to_string();
    all.push(("Content-Length", &length));
    reply.head(200, &all);
    reply.body(text.as_bytes());
}

/// A station that goes on silently after what it has.
fn station(reply: &mut Reply, audio: &[u8]) {
    reply.head(200, &[("icy-name", "Example"), ("Content-Type", "audio/mpeg")]);
    reply.body(audio);
    reply.stall();
}

/// The paths that were asked for, in order.
fn paths(server: &Server) -> Vec<String> {
    server.requests().into_iter().map(|request| request.path).collect()
}

async fn opened(server: &Server, path: &str) -> (Reader, StreamHandle) {
    let url = server.url(path);
    let resolver = Resolver::new({
        let url = url.clone();
        move |_| Ok(ResolvedStream::plain(url.clone()))
    });
    open_with(settings(), ResolvedStream::plain(url), &resolver)
}

async fn refused(server: &Server, path: &str) -> String {
    let (reader, _handle) = opened(server, path).await;
    let error = failure(reader).await;
    assert!(matches!(error, StreamError::Playlist { .. }), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn every_format_leads_to_its_station() {
    let data = data(30_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| match request.path.as_str() {
        "/a.pls" => text(reply, &[PLS], "\u{feff}[playlist]\r\nFile1=one\r\nTitle1=One\r\nLength1=-1\r\n"),
        "/b" => text(reply, &[M3U], "#EXTM3U\r\n#EXTINF:-1,One\r\n/one\r\n"),
        "/c.m3u8" => text(reply, &[("Content-Type", "text/plain")], "one\n"),
        "/d" => text(
            reply,
            &[],
            "<?xml version='1.0'?><playlist xmlns='http://xspf.org/ns/0/'><trackList><track><location>one</location></track></trackList></playlist>",
        ),
        "/one" => station(reply, &source),
        other => panic!("{other}"),
    });
    for path in ["/a.pls", "/b", "/c.m3u8", "/d"] {
        let (reader, handle) = opened(&server, path).await;
        let (bytes, reader) = read_at(reader, 0, 30_000).await;
        assert!(bytes == **data, "{path}");
        assert_eq!(reader.content_type().as_deref(), Some("audio/mpeg"));
        assert!(handle.is_live());
    }
}

#[tokio::test]
async fn dead_entries_are_not_waited_for() {
    let data = data(30_000);
    let source = Arc::clone(&data);
    let (given_up, in_time) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let noted = Arc::clone(&in_time);
    let server = Server::start(move |_, request, reply| match request.path.as_str() {
        "/list.pls" => {
            // Nobody listens at the first; the second says nothing.
            text(
                reply,
                &[PLS],
                "[playlist]\nFile1=http://127.0.0.1:1/a\nFile2=/mute\nFile3=/one\nFile4=/two\n",
            );
        }
        "/mute" => {
            reply.stall();
            given_up.store(true, Ordering::SeqCst);
        }
        "/one" => {
            noted.store(!given_up.load(Ordering::SeqCst), Ordering::SeqCst);
            station(reply, &source);
        }
        other => panic!("{other}"),
    });
    let (reader, _handle) = opened(&server, "/list.pls").await;
    let (bytes, _reader) = read_at(reader, 0, 30_000).await;
    assert!(bytes == **data);
    assert!(in_time.load(Ordering::SeqCst), "the third was asked only when the second had been given up");
    assert_eq!(paths(&server), ["/list.pls", "/mute", "/one"]);
}

#[tokio::test]
async fn playlists_lie_inside_of_each_other_and_links_follow_redirects() {
    let data = data(30_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| match request.path.as_str() {
        "/1.m3u" => reply.status(302, &[("Location", "/deep/er/2.m3u")]),
        "/deep/er/2.m3u" => text(reply, &[M3U], "../3.pls\n"),
        "/deep/3.pls" => text(reply, &[PLS], "[playlist]\nFile1=4.m3u\n"),
        "/deep/4.m3u" => text(reply, &[M3U], "/5.m3u\n"),
        "/5.m3u" => text(reply, &[M3U], "six\n"),
        "/six" => station(reply, &source),
        other => panic!("{other}"),
    });
    let (reader, _handle) = opened(&server, "/1.m3u").await;
    let (bytes, _reader) = read_at(reader, 0, 30_000).await;
    assert!(bytes == **data);
}

#[tokio::test]
async fn playlists_too_deep_in_each_other_in_a_circle_or_without_a_link_are_errors() {
    let server = Server::start(move |_, request, reply| match request.path.as_str() {
        "/self.m3u" => text(reply, &[M3U], "self.m3u\n"),
        "/a.m3u" => text(reply, &[M3U], "b.m3u\n"),
        "/b.m3u" => text(reply, &[M3U], "a.m3u\n"),
        "/empty.m3u" => text(reply, &[M3U], "#EXTM3U\nfile:///etc/passwd\n"),
        "/hls.m3u8" => text(reply, &[M3U], "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-ENDLIST\n"),
        "/long.m3u" => text(reply, &[M3U], &"#".repeat(2 * 1024 * 1024)),
        "/page.m3u" => text(reply, &[("Content-Type", "text/html")], "<!DOCTYPE html><html></html>"),
        "/broken.xspf" => text(reply, &[], "<playlist><track></playlist>"),
        path => {
            let number: u32 = path[1..2].parse().unwrap();
            text(reply, &[M3U], &format!("/{}.m3u\n", number + 1));
        }
    });
    for path in ["/self.m3u", "/a.m3u"] {
        assert!(refused(&server, path).await.contains("leads back to itself"));
    }
    assert!(refused(&server, "/1.m3u").await.contains("inside of each other"));
    assert!(refused(&server, "/empty.m3u").await.contains("no link"));
    assert!(refused(&server, "/page.m3u").await.contains("no link"));
    assert!(refused(&server, "/long.m3u").await.contains("1 MiB"));
    assert!(refused(&server, "/broken.xspf").await.contains("XML"));
    assert!(refused(&server, "/hls.m3u8").await.contains("it lists no segment"));
    let asked = paths(&server)
        .into_iter()
        .filter(|path| path.trim_start_matches('/').starts_with(|c: char| c.is_ascii_digit()));
    assert_eq!(asked.collect::<Vec<_>>(), ["/1.m3u", "/2.m3u", "/3.m3u", "/4.m3u", "/5.m3u", "/6.m3u"]);
}

#[tokio::test]
async fn an_entry_out_of_reach_is_passed_over_and_headers_stay_with_their_origin() {
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = probe.connect("192.0.2.1:9").and_then(|()| probe.local_addr()).ok().map(|own| own.ip());
    // Needs an address that is not loopback.
    let Some(own) = own else { return };
    let hidden = Server::start(|_, _, reply| reply.status(200, &[]));
    let port = hidden.address.port();
    let data = data(30_000);
    let source = Arc::clone(&data);
    let other = Server::bind("0.0.0.0:0", move |_, _, reply| station(reply, &source));
    let open_to = other.address.port();
    let server = Server::bind("0.0.0.0:0", move |_, _, reply| {
        let list =
            format!("http://127.0.0.1:{port}/a\nhttp://localhost:{port}/a\nhttp://{own}:{open_to}/one\n");
        text(reply, &[M3U], &list);
    });
    let url = Url::parse(&format!("http://{own}:{}/list.m3u", server.address.port())).unwrap();
    let resolved = ResolvedStream {
        reach: Reach::Internet,
        headers: vec![("X-Key".to_owned(), "secret".to_owned())],
        ..ResolvedStream::plain(url)
    };
    let (reader, _handle) = open_with(settings(), resolved, &Resolver::never());
    let (bytes, _reader) = read_at(reader, 0, 30_000).await;
    assert!(bytes == **data);
    assert!(hidden.requests().is_empty());
    assert_eq!(server.requests()[0].headers["x-key"], "secret");
    assert!(!other.requests()[0].headers.contains_key("x-key"));
}

#[tokio::test]
async fn a_playlist_that_leads_out_of_reach_only_is_an_error() {
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = probe.connect("192.0.2.1:9").and_then(|()| probe.local_addr()).ok().map(|own| own.ip());
    let Some(own) = own else { return };
    let server =
        Server::bind("0.0.0.0:0", |_, _, reply| text(reply, &[M3U], "http://localhost:9/?key=secret\n"));
    let url = Url::parse(&format!("http://{own}:{}/list.m3u", server.address.port())).unwrap();
    let resolved = ResolvedStream { reach: Reach::Internet, ..ResolvedStream::plain(url) };
    let (reader, _handle) = open_with(settings(), resolved, &Resolver::never());
    assert!(matches!(failure(reader).await, StreamError::Forbidden { .. }));
}

#[tokio::test]
async fn when_no_entry_serves_any_more_the_playlist_is_fetched_again() {
    let data = data(60_000);
    let source = Arc::clone(&data);
    let (lists, olds) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let server = Server::start(move |_, request, reply| match request.path.as_str() {
        "/list.m3u" => match lists.fetch_add(1, Ordering::SeqCst) {
            0 => text(reply, &[M3U], "old\n"),
            // Even its server has a bad moment.
            1 => reply.status(500, &[]),
            _ => text(reply, &[M3U], "new\n"),
        },
        "/old" if olds.fetch_add(1, Ordering::SeqCst) == 0 => {
            reply.head(200, &[("icy-name", "Example")]);
            reply.body(&source[..30_000]);
        }
        "/old" => reply.status(404, &[]),
        "/new" => station(reply, &source[30_000..]),
        other => panic!("{other}"),
    });
    let (reader, _handle) = opened(&server, "/list.m3u").await;
    let (first, reader) = read_all(reader).await;
    assert_same(first, &data[..30_000]);
    let (second, _reader) = read_stretch(reader, 30_000).await;
    assert_same(Ok(second), &data[30_000..]);
    assert_eq!(paths(&server).iter().filter(|path| *path == "/list.m3u").count(), 3);
}

#[tokio::test]
async fn an_album_is_announced_and_its_first_track_is_resumed_by_range() {
    let data = data(300_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |number, request, reply| match request.path.as_str() {
        "/album.m3u" => {
            text(reply, &[M3U], "#EXTM3U\n#EXTINF:60,One\none.flac?key=secret\n#EXTINF:60,Two\ntwo.flac\n")
        }
        "/one.flac?key=secret" => match number {
            2 => reply.status(403, &[]),
            _ => reply.part(request, &source, 100_000),
        },
        other => panic!("{other}"),
    });
    let (reader, handle) = opened(&server, "/album.m3u").await;
    let mut changes = handle.changes();
    assert_same(read_all(reader).await.0, &data);
    assert!(!handle.is_live());
    let announced = event(&mut changes, |event| matches!(event, StreamEvent::Playlist { .. })).await;
    assert!(!format!("{announced:?}").contains("secret"));
    let StreamEvent::Playlist { entries, playing } = announced else { unreachable!() };
    assert_eq!(playing, 0);
    let titles: Vec<_> = entries.iter().map(|entry| entry.title.as_deref()).collect();
    assert_eq!(titles, [Some("One"), Some("Two")]);
    assert_eq!(entries[0].duration, Some(Duration::from_secs(60)));
    let asked: Vec<_> =
        server.requests().into_iter().map(|request| (request.path.len() > 12, request.from)).collect();
    assert_eq!(
        asked,
        [
            (false, Some(0)),
            (true, Some(0)),
            // Refused: a fresh list, wanted whole, and on at the same byte.
            (true, Some(100_000)),
            (false, None),
            (true, Some(100_000)),
            (true, Some(200_000)),
        ]
    );
}

#[tokio::test]
async fn audio_with_a_vague_type_or_the_name_of_a_playlist_is_audio() {
    let data = data(200_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| {
        let etag = (
            "Content-Type",
            if request.path == "/a.m3u" { "audio/x-mpegurl" } else { "application/octet-stream" },
        );
        let from = request.from.unwrap_or(0) as usize;
        let range = format!("bytes {from}-199999/200000");
        reply.head(206, &[etag, ("Content-Range", &range)]);
        reply.body(&source[from..(from + 90_000).min(200_000)]);
    });
    for path in ["/a.m3u", "/b"] {
        let (reader, _handle) = opened(&server, path).await;
        assert_same(read_all(reader).await.0, &data);
    }
}

#[tokio::test]
async fn an_entry_without_a_length_is_a_station() {
    let server = Server::start(move |number, request, reply| match request.path.as_str() {
        "/list.m3u" => text(reply, &[M3U], "one\n"),
        _ => {
            reply.head(200, &[("Content-Type", "audio/mpeg")]);
            reply.body(&[number as u8; 5_000]);
        }
    });
    let (reader, handle) = opened(&server, "/list.m3u").await;
    assert_same(read_all(reader).await.0, &[1; 5_000]);
    assert!(handle.is_live());
}
