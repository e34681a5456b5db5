//! Stations: titles at their bytes, SHOUTcast's heads, and connections that end.

use super::*;

/// A body with titles in it, each after so much audio.
fn interleaved(audio: &[u8], interval: usize, titles: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::new();
    for (number, part) in audio.chunks(interval).enumerate() {
        body.extend_from_slice(part);
        let Some(title) = titles.get(number).filter(|_| part.len() == interval) else { continue };
        let text = if title.is_empty() { Vec::new() } else { [b"StreamTitle='", *title, b"';"].concat() };
        body.push(text.len().div_ceil(16) as u8);
        body.extend_from_slice(&text);
        body.resize(body.len() + text.len().div_ceil(16) * 16 - text.len(), 0);
    }
    body
}

const TITLES: [&[u8]; 5] =
    [b"One - First", b"", b"Sigur R\xf3s - \x93Gl\xf3s\xf3li\x94", b"", "Ólafur".as_bytes()];

/// Reads so many bytes and notes at which offset each title came out.
async fn listen(mut reader: Reader, handle: StreamHandle, count: usize) -> (Vec<u8>, Vec<(usize, String)>) {
    spawn_blocking(move || {
        let (mut bytes, mut titles) = (Vec::new(), Vec::new());
        let mut piece = vec![0; 32 * 1024];
        while bytes.len() < count {
            let most = piece.len().min(count - bytes.len());
            let got = reader.read(&mut piece[..most]).unwrap();
            assert!(got <= 2 * 1024, "{got} bytes of a live stream at once");
            if got == 0 {
                reader.next_stretch().expect("the station has ended");
                continue;
            }
            let before = bytes.len();
            bytes.extend_from_slice(&piece[..got]);
            if let Some(title) = handle.take_title() {
                titles.push((before, title.text));
            }
        }
        (bytes, titles)
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn each_title_comes_with_the_first_byte_that_it_belongs_to() {
    let data = data(60_000);
    let body = interleaved(&data, 10_000, &TITLES);
    let server = Server::start(move |_, request, reply| {
        assert_eq!(request.headers["icy-metadata"], "1");
        let headers = [
            ("icy-name", "Example"),
            ("icy-br", "128"),
            ("icy-metaint", "10000"),
            ("Content-Type", "audio/mpeg"),
        ];
        reply.head(200, &headers);
        for piece in body.chunks(777) {
            reply.body(piece);
        }
        reply.stall();
    });
    let (reader, handle) = open(&server, &Resolver::never());
    let mut changes = handle.changes();
    let (bytes, titles) = listen(reader, handle.clone(), 60_000).await;
    assert_same(Ok(bytes), &data);
    let expected = [(10_000, "One - First"), (30_000, "Sigur Rós - “Glósóli”"), (50_000, "Ólafur")]
        .map(|(at, text)| (at, text.to_owned()));
    assert_eq!(titles, expected);
    assert!(handle.is_live() && handle.status().live);
    let station = event(&mut changes, |event| matches!(event, StreamEvent::Station(_))).await;
    let expected = Station { name: Some("Example".to_owned()), bitrate: Some(128), ..Station::default() };
    assert_eq!(station, StreamEvent::Station(expected));
}

#[tokio::test]
async fn an_old_shoutcast_server_is_understood() {
    let data = data(60_000);
    let body = interleaved(&data, 10_000, &TITLES);
    for end in ["\r\n", "\n"] {
        let body = body.clone();
        let server = Server::start(move |_, _, reply| {
            let lines = [
                "ICY 200 OK",
                "icy-notice1:<BR>",
                "icy-name:Old",
                "icy-metaint:10000",
                "content-type:audio/mpeg",
                "",
                "",
            ];
            reply.body(lines.join(end).as_bytes());
            reply.body(&body);
            reply.stall();
        });
        let (reader, handle) = open(&server, &Resolver::never());
        let (reader, kind) = spawn_blocking(move || {
            let kind = reader.content_type();
            (reader, kind)
        })
        .await
        .unwrap();
        assert_eq!(kind.as_deref(), Some("audio/mpeg"));
        assert!(handle.is_live());
        let (bytes, titles) = listen(reader, handle, 60_000).await;
        assert_same(Ok(bytes), &data);
        assert_eq!(titles.len(), 3);
    }
}

#[tokio::test]
async fn a_shoutcast_server_that_is_off_the_air_is_asked_again() {
    let data = data(20_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |number, _, reply| match number {
        0 | 1 => reply.body(b"ICY 401 Service Unavailable\r\n\r\n"),
        _ => {
            reply.body(b"ICY 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n");
            reply.body(&source);
            reply.stall();
        }
    });
    let (reader, handle) = open(&server, &Resolver::never());
    assert_same(Ok(listen(reader, handle, 20_000).await.0), &data);
}

#[tokio::test]
async fn a_shoutcast_server_that_knows_no_such_stream_is_an_error() {
    let server = Server::start(|_, _, reply| reply.body(b"ICY 404 Resource Not Found\r\n\r\n"));
    let url = server.url("/a");
    let resolver = Resolver::new(move |_| Ok(ResolvedStream::plain(url.clone())));
    let (reader, _handle) = open(&server, &resolver);
    assert!(matches!(failure(reader).await, StreamError::Refused { status: 404, .. }));
}

#[tokio::test]
async fn a_server_that_speaks_another_protocol_is_an_error_and_no_audio() {
    for greeting in [
        &b"SSH-2.0-OpenSSH_9.2\r\n"[..],
        b"\xff\xfb\x90\x64 raw audio without a head",
        b"ICY 200 OK\r\nno end: ",
    ] {
        let server = Server::start(move |_, _, reply| {
            reply.body(greeting);
            if greeting.starts_with(b"ICY") {
                reply.body(&[b'x'; 20_000]);
            }
        });
        let (reader, _handle) = open(&server, &Resolver::never());
        let error = failure(reader).await;
        assert!(matches!(error, StreamError::NoData { .. }), "{error}");
        assert!(error.to_string().contains("head") || error.to_string().contains("SHOUTcast"), "{error}");
    }
}

#[tokio::test]
async fn announced_titles_that_do_not_come_cost_no_audio() {
    let data: Arc<Vec<u8>> = Arc::new(data(50_000).iter().map(|byte| byte | 1).collect());
    let source = Arc::clone(&data);
    let server = Server::start(move |_, _, reply| {
        reply.head(200, &[("icy-name", "Example"), ("icy-metaint", "1000")]);
        reply.body(&source);
        reply.stall();
    });
    let (reader, handle) = open(&server, &Resolver::never());
    let (bytes, titles) = listen(reader, handle, 50_000).await;
    assert_same(Ok(bytes), &data);
    assert!(titles.is_empty());
}

#[tokio::test]
async fn titles_begin_anew_with_a_new_connection() {
    let data = data(40_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |number, _, reply| {
        reply.head(200, &[("icy-name", "Example"), ("icy-metaint", "10000")]);
        let audio = &source[number * 20_000..][..20_000];
        // Nothing follows the second title.
        reply.body(&interleaved(audio, 10_000, &[b"Same", b"Too late"]));
        if number == 1 {
            reply.stall();
        }
    });
    let (reader, handle) = open(&server, &Resolver::never());
    let (bytes, titles) = listen(reader, handle, 40_000).await;
    assert_same(Ok(bytes), &data);
    assert_eq!(titles, [(10_000, "Same".to_owned()), (30_000, "Same".to_owned())]);
}

#[tokio::test]
async fn a_station_that_was_heard_is_waited_for_whatever_its_server_says() {
    let data = data(20_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |number, _, reply| match number {
        0 => {
            reply.head(200, &[("icy-name", "Example")]);
            reply.body(&source[..10_000]);
        }
        // More than would be borne of a file.
        1..=12 => reply.status([404, 403, 503, 500, 400][number % 5], &[]),
        13 => reply.stall(),
        _ => {
            reply.head(200, &[("icy-name", "Example")]);
            reply.body(&source[10_000..]);
            reply.stall();
        }
    });
    let url = server.url("/a");
    let resolver = Resolver::new(move |_| Ok(ResolvedStream::plain(url.clone())));
    let (reader, handle) = open(&server, &resolver);
    let mut changes = handle.changes();
    let (first, reader) = read_all(reader).await;
    assert_same(first, &data[..10_000]);
    event(&mut changes, |event| matches!(event, StreamEvent::Waiting(..))).await;
    event(&mut changes, |event| *event == StreamEvent::Flowing).await;
    let (second, _reader) = read_stretch(reader, 10_000).await;
    assert_same(Ok(second), &data[10_000..]);
    assert_eq!(handle.status().waiting, None);
}

#[tokio::test]
async fn a_file_with_titles_and_a_length_ends_and_is_not_asked_for_in_parts() {
    let data = data(50_000);
    let body = interleaved(&data, 10_000, &TITLES[..4]);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| {
        if request.headers.contains_key("icy-metadata") {
            let length = body.len().to_string();
            reply.head(
                200,
                &[("icy-metaint", "10000"), ("Content-Length", &length), ("Accept-Ranges", "bytes")],
            );
            reply.body(&body[..30_000]);
        } else {
            reply.head(200, &[("Content-Length", "50000")]);
            reply.body(&source);
        }
    });
    let (reader, handle) = open(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &data);
    assert!(!handle.is_live());
}
