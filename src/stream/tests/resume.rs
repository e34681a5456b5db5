//! Whatever happens to the connection or the server, the bytes are those of the source.

use super::*;

#[tokio::test]
async fn a_file_is_read_whole_and_its_head_is_known() {
    let data = data(1_000_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| reply.range(request, &source));
    let (reader, handle) = open(&server, &Resolver::never());
    let mut changes = handle.changes();
    let reader = spawn_blocking(move || {
        assert_eq!(reader.byte_len(), Some(1_000_000));
        assert_eq!(reader.content_type().as_deref(), Some("audio/flac"));
        assert!(reader.is_seekable());
        reader
    })
    .await
    .unwrap();
    complete(&mut changes).await;
    let status = handle.status();
    assert!(status.complete && status.received == 1_000_000 && status.position == 0);
    let (got, _reader) = read_all(reader).await;
    assert_same(got, &data);
    assert_eq!(server.ranges(), [Some(0)]);
    let headers = &server.requests()[0].headers;
    assert_eq!(headers["accept-encoding"], "identity");
    assert!(headers["user-agent"].starts_with("segue/") && !headers.contains_key("cookie"));
}

#[tokio::test]
async fn a_cut_connection_is_resumed_at_the_same_byte() {
    let data = data(900_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| reply.part(request, &source, 200_000));
    let (reader, handle) = open(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &data);
    assert_eq!(server.ranges(), [0, 200_000, 400_000, 600_000, 800_000].map(Some));
    assert!(server.requests()[1..].iter().all(|request| request.headers["if-range"] == "\"one\""));
    assert_eq!(handle.status().bytes_fetched, 900_000);
}

#[tokio::test]
async fn a_body_that_ends_early_without_a_length_is_not_the_end() {
    let data = data(300_000);
    let source = Arc::clone(&data);
    // No Content-Length: only Content-Range tells that more was to come.
    let server = Server::start(move |_, request, reply| {
        let from = request.from.unwrap() as usize;
        reply.head(206, &[("Content-Range", &format!("bytes {from}-299999/300000"))]);
        reply.body(&source[from..(from + 100_000).min(300_000)]);
    });
    let (reader, _handle) = open(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &data);
    assert_eq!(server.ranges(), [0, 100_000, 200_000].map(Some));
}

#[tokio::test]
async fn a_server_that_sends_limited_parts_is_asked_for_the_next() {
    let data = data(300_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| {
        let from = request.from.unwrap() as usize;
        let end = (from + 128_000).min(300_000);
        let range = format!("bytes {from}-{}/300000", end - 1);
        reply.head(206, &[("Content-Range", &range), ("Content-Length", &(end - from).to_string())]);
        reply.body(&source[from..end]);
    });
    let (reader, handle) = open(&server, &Resolver::never());
    let mut changes = handle.changes();
    // The reader lives on: with it the stream would end.
    let (got, _reader) = read_all(reader).await;
    assert_same(got, &data);
    complete(&mut changes).await;
    while let Ok(event) = changes.try_recv() {
        assert!(!matches!(event, StreamEvent::Waiting(..)), "a limited part is no failure");
    }
}

#[tokio::test]
async fn the_whole_instead_of_a_part_is_discarded_up_to_the_position() {
    let data = data(700_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |number, request, reply| {
        let whole = Request { from: None, ..request.clone() };
        reply.part(&whole, &source, if number == 0 { 300_000 } else { 700_000 });
    });
    let (reader, _handle) = open(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &data);
    assert_eq!(server.ranges().len(), 2);
}

#[tokio::test]
async fn a_part_from_another_place_is_never_appended() {
    let data = data(500_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |number, request, reply| match (number, request.from) {
        (0, _) => reply.part(request, &source, 200_000),
        (_, Some(from)) => {
            let wrong = Request { from: Some(from - 7), ..request.clone() };
            reply.range(&wrong, &source);
        }
        (_, None) => reply.range(request, &source),
    });
    let (reader, _handle) = open(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &data);
    assert_eq!(server.ranges(), [Some(0), Some(200_000), None]);
}

#[tokio::test]
async fn a_file_that_changed_is_an_error_and_not_a_mixture() {
    let (one, two) = (data(400_000), data(400_000));
    let server = Server::start(move |number, request, reply| match number {
        0 => reply.part(request, &one, 100_000),
        _ => {
            reply.range_head(request, &two, "\"two\"");
            reply.body(&two[request.from.unwrap() as usize..]);
        }
    });
    let (reader, handle) = open(&server, &Resolver::never());
    assert!(matches!(failure(reader).await, StreamError::Changed { .. }));
    assert!(handle.status().error.is_some());
}

#[tokio::test]
async fn a_silent_connection_is_made_anew() {
    let data = data(400_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |number, request, reply| match number {
        0 => {
            reply.part(request, &source, 123_456);
            reply.stall();
        }
        1 => reply.stall(),
        _ => reply.range(request, &source),
    });
    let quick = Settings {
        connect_timeout: Duration::from_millis(200),
        give_up: Duration::from_secs(10),
        ..settings()
    };
    let (reader, handle) = open_with(quick, ResolvedStream::plain(server.url("/a")), &Resolver::never());
    let mut changes = handle.changes();
    assert_same(read_all(reader).await.0, &data);
    assert_eq!(server.ranges(), [0, 123_456, 123_456].map(Some));
    event(&mut changes, |event| matches!(event, StreamEvent::Waiting(WaitReason::Server, _))).await;
    event(&mut changes, |event| *event == StreamEvent::Flowing).await;
}

#[tokio::test]
async fn a_busy_server_is_left_alone_as_long_as_it_asks() {
    let data = data(100_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |number, request, reply| match number {
        0 => reply.status(503, &[("Retry-After", "1")]),
        _ => reply.range(request, &source),
    });
    let patient = Settings { give_up: Duration::from_secs(10), ..settings() };
    let start = Instant::now();
    let (reader, _handle) = open_with(patient, ResolvedStream::plain(server.url("/a")), &Resolver::never());
    assert_same(read_all(reader).await.0, &data);
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.ranges().len(), 2);
}

#[tokio::test]
async fn a_server_that_gives_nothing_is_given_up_in_the_end() {
    let server = Server::start(|_, _, reply| reply.status(500, &[]));
    let start = Instant::now();
    let (reader, handle) = open(&server, &Resolver::never());
    let mut changes = handle.changes();
    assert!(matches!(failure(reader).await, StreamError::NoData { .. }));
    assert!(start.elapsed() >= Duration::from_secs(1));
    event(&mut changes, |event| matches!(event, StreamEvent::Failed(StreamError::NoData { .. }))).await;
}

#[tokio::test]
async fn a_dead_address_moves_on_to_the_alternative_and_stays_there() {
    let data = data(300_000);
    let source = Arc::clone(&data);
    let alive = Server::start(move |_, request, reply| reply.part(request, &source, 160_000));
    let silent = Server::start(|_, _, reply| reply.stall());
    // Bound and closed again: refuses.
    let refusing = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let resolved = ResolvedStream {
        alternatives: vec![silent.url("/a"), alive.url("/a")],
        headers: vec![("X-Key".to_owned(), "k".to_owned())],
        ..ResolvedStream::plain(Url::parse(&format!("http://{refusing}/a")).unwrap())
    };
    let start = Instant::now();
    let (reader, _handle) = open_with(settings(), resolved, &Resolver::never());
    assert_same(read_all(reader).await.0, &data);
    // Sooner than the silent one counts as dead.
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!(silent.ranges().len(), 1);
    assert_eq!(alive.ranges(), [0, 160_000].map(Some));
    assert!(alive.requests().iter().all(|request| !request.headers.contains_key("x-key")));
}

/// A listener whose queue is full drops what comes, like a host that is not there.
fn dead_host() -> (std::net::SocketAddr, impl Sized) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        queued.push(stream);
    }
    (address, (listener, queued))
}

#[tokio::test]
async fn no_host_at_all_is_waited_for_and_not_an_error() {
    let (address, _hold) = dead_host();
    let url = Url::parse(&format!("http://{address}/a")).unwrap();
    let quick = Settings {
        connect_timeout: Duration::from_millis(100),
        give_up: Duration::from_millis(300),
        ..settings()
    };
    let (reader, handle) = open_with(quick, ResolvedStream::plain(url), &Resolver::never());
    let mut changes = handle.changes();
    event(&mut changes, |event| matches!(event, StreamEvent::Waiting(WaitReason::Network, _))).await;
    tokio::time::sleep(Duration::from_millis(1000)).await;
    let status = handle.status();
    assert_eq!(status.waiting.map(|wait| wait.reason), Some(WaitReason::Network));
    assert_eq!(status.error, None);
    handle.abort();
    assert!(matches!(failure(reader).await, StreamError::Aborted { .. }));
}

#[tokio::test]
async fn a_dead_host_is_given_up_while_another_answers() {
    let other = Server::start(|_, _, reply| {
        reply.head(200, &[]);
        reply.body(b"x");
    });
    let quick = Settings { connect_timeout: Duration::from_millis(100), ..settings() };
    let streams = Streams::new(quick).unwrap();
    let live = ResolvedStream { live: true, ..ResolvedStream::plain(other.url("/radio")) };
    let (_radio, _radio_handle) = streams.open(live, Resolver::never(), "radio".to_owned());
    let (address, _hold) = dead_host();
    let url = Url::parse(&format!("http://{address}/a?key=secret")).unwrap();
    let (reader, _handle) = streams.open(ResolvedStream::plain(url), Resolver::never(), "test".to_owned());
    assert!(matches!(failure(reader).await, StreamError::NoData { .. }));
}

#[tokio::test]
async fn a_radio_by_a_plain_url_goes_on_at_the_live_edge_after_a_reset() {
    let data = data(400_000);
    let source = Arc::clone(&data);
    // What was sent before is over: a station does not send it again.
    let server = Server::start(move |number, request, reply| {
        assert!(number == 0 || request.from.is_none(), "a station is not asked for ranges");
        reply.head(200, &[("icy-name", "Radio Test"), ("Content-Type", "audio/mpeg")]);
        match number {
            0 => reply.body(&source[..200_000]),
            _ => {
                reply.body(&source[200_000..]);
                reply.stall();
            }
        }
    });
    let url = server.url("/radio");
    let resolver = Resolver::new(move |_| Ok(ResolvedStream::plain(url.clone())));
    let (reader, handle) = open_with(settings(), ResolvedStream::plain(server.url("/radio")), &resolver);
    let (first, reader) = read_all(reader).await;
    assert_same(first, &data[..200_000]);
    let (second, _reader) = read_stretch(reader, 200_000).await;
    assert_same(Ok(second), &data[200_000..]);
    handle.abort();
}

#[tokio::test]
async fn chunked_bodies_end_at_their_last_chunk_only() {
    let data = data(300_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |number, _, reply| {
        reply.head(200, &[("Transfer-Encoding", "chunked")]);
        let count = if number == 0 { 3 } else { 10 };
        for piece in source.chunks(30_000).take(count) {
            reply.body(format!("{:x}\r\n", piece.len()).as_bytes());
            reply.body(piece);
            reply.body(b"\r\n");
        }
        if number > 0 {
            reply.body(b"0\r\n\r\n");
        }
    });
    let (reader, handle) = open(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &data);
    assert_eq!(server.ranges().len(), 2);
    assert_eq!(handle.status().total, Some(300_000));
}

#[tokio::test]
async fn a_live_stream_is_taken_up_again_whenever_it_is_cut() {
    let data = data(500_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |number, _, reply| {
        reply.head(200, &[("Content-Type", "audio/mpeg")]);
        reply.body(&source[number % 5 * 100_000..][..100_000]);
    });
    let resolved = ResolvedStream { live: true, ..ResolvedStream::plain(server.url("/radio")) };
    let (reader, _handle) = open_with(settings(), resolved, &Resolver::never());
    let (first, mut reader) = read_all(reader).await;
    assert_same(first, &data[..100_000]);
    for part in 1..5 {
        let (got, same) = read_stretch(reader, 100_000).await;
        assert!(got == data[part * 100_000..][..100_000]);
        reader = same;
    }
    assert_eq!((reader.byte_len(), reader.is_seekable()), (None, false));
    assert!(server.ranges().iter().all(Option::is_none));
}

/// Ends as an error within a time in which an unpaced client asks thousands of times.
async fn is_given_up_after_few_requests(server: &Server) {
    let (reader, _handle) = open(server, &Resolver::never());
    let error = failure(reader).await;
    assert!(matches!(error, StreamError::NoData { .. }), "{error:?}");
    assert!(server.requests().len() < 100, "asked {} times", server.requests().len());
}

#[tokio::test]
async fn a_server_that_sends_parts_that_nobody_asked_for_is_not_asked_without_a_pause() {
    let data = data(1_000_000);
    // Parts without a total, and at the end no word about it.
    let server = Server::start(move |_, request, reply| {
        let from = request.from.unwrap_or(0) as usize;
        if from >= data.len() {
            return reply.status(416, &[]);
        }
        let part = &data[from..(from + 300_000).min(data.len())];
        let range = format!("bytes {from}-{}/*", from + part.len() - 1);
        reply.head(206, &[("Content-Range", &range), ("Content-Length", &part.len().to_string())]);
        reply.body(part);
    });
    is_given_up_after_few_requests(&server).await;
}

#[tokio::test]
async fn a_server_that_sends_the_beginning_again_and_again_is_not_asked_without_a_pause() {
    let data = data(1_000_000);
    let server = Server::start(move |number, _, reply| match number {
        0 => {
            reply.head(200, &[("Content-Length", "1000000"), ("Accept-Ranges", "bytes")]);
            reply.body(&data[..600_000]);
        }
        1 => reply.head(206, &[("Content-Length", "10")]),
        _ => {
            reply.head(206, &[("Content-Range", "bytes 0-9999/1000000"), ("Content-Length", "10000")]);
            reply.body(&data[..10_000]);
        }
    });
    is_given_up_after_few_requests(&server).await;
}

#[tokio::test]
async fn a_server_that_sends_one_byte_at_a_time_is_not_asked_without_a_pause() {
    let data = data(10_000);
    let server = Server::start(move |_, request, reply| {
        let from = request.from.unwrap_or(0) as usize;
        reply.head(206, &[("Content-Range", &format!("bytes {from}-{from}/10000")), ("Content-Length", "1")]);
        reply.body(&data[from..=from]);
    });
    is_given_up_after_few_requests(&server).await;
}

#[tokio::test]
async fn a_web_page_in_mid_track_is_waited_out() {
    let data = data(300_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |number, request, reply| match number {
        0 => reply.part(request, &source, 100_000),
        1..4 => {
            reply.head(200, &[("Content-Type", "text/html; charset=utf-8"), ("Content-Length", "18")]);
            reply.body(b"<html>Login</html>");
        }
        _ => reply.range(request, &source),
    });
    let (reader, _handle) = open(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &data);
    assert_eq!(server.ranges().last(), Some(&Some(100_000)));
}

#[tokio::test]
async fn a_fault_in_the_program_ends_the_stream_with_a_sentence() {
    let server = Server::start(|_, _, reply| reply.status(403, &[]));
    let resolver = Resolver::new(|_| panic!("this is meant"));
    let (reader, handle) = open(&server, &resolver);
    let error = failure_in_time(reader, &handle).await;
    assert_eq!(error, StreamError::Fault { track: "test".to_owned(), host: server.address.to_string() });
    assert_eq!(handle.status().error, Some(error));
}
