//! The whole of a stream against a real server on a real socket.

mod server;

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::broadcast::Receiver;
use tokio::task::spawn_blocking;
use url::Url;

use super::*;
use crate::track::{Expiry, Reach, ResolveError, ResolveErrorKind, Resolving};
use server::{Reply, Request, Server};

/// Bytes without a period, so that a shifted copy never compares equal.
fn data(length: usize) -> Arc<Vec<u8>> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    Arc::new(bytes)
}

fn settings() -> Settings {
    Settings {
        connect_timeout: Duration::from_secs(2),
        silence: Duration::from_secs(1),
        idle_close: Duration::from_millis(300),
        give_up: Duration::from_secs(1),
        resolve_pause: Duration::from_millis(100),
        backoff_min: Duration::from_millis(10),
        backoff_max: Duration::from_millis(100),
        alternative_after: Duration::from_millis(200),
        ..Settings::default()
    }
}

type Answer = dyn Fn(usize) -> Result<ResolvedStream, ResolveError> + Send + Sync;

/// Answers call number n, counted from 0.
struct Resolver {
    calls: AtomicUsize,
    answer: Box<Answer>,
}

impl Resolver {
    fn new(
        answer: impl Fn(usize) -> Result<ResolvedStream, ResolveError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Resolver { calls: AtomicUsize::new(0), answer: Box::new(answer) })
    }

    fn never() -> Arc<Self> {
        Resolver::new(|_| panic!("nothing was to be resolved"))
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Resolve for Resolver {
    fn resolve(&self) -> Resolving {
        let answer = (self.answer)(self.calls.fetch_add(1, Ordering::SeqCst));
        Box::pin(async move { answer })
    }
}

fn open_with(
    settings: Settings,
    resolved: ResolvedStream,
    resolver: &Arc<Resolver>,
) -> (Reader, StreamHandle) {
    Streams::new(settings).unwrap().open(
        resolved,
        Arc::clone(resolver) as Arc<dyn Resolve>,
        "test".to_owned(),
    )
}

fn open(server: &Server, resolver: &Arc<Resolver>) -> (Reader, StreamHandle) {
    open_with(settings(), ResolvedStream::plain(server.url("/a?key=secret")), resolver)
}

/// Reads to the end on a thread of its own.
async fn read_all(mut reader: Reader) -> (io::Result<Vec<u8>>, Reader) {
    spawn_blocking(move || {
        let mut bytes = Vec::new();
        (reader.read_to_end(&mut bytes).map(|_| bytes), reader)
    })
    .await
    .unwrap()
}

async fn read_at(mut reader: Reader, at: u64, count: usize) -> (Vec<u8>, Reader) {
    spawn_blocking(move || {
        reader.seek(SeekFrom::Start(at)).unwrap();
        let mut bytes = vec![0; count];
        reader.read_exact(&mut bytes).unwrap();
        (bytes, reader)
    })
    .await
    .unwrap()
}

async fn failure(reader: Reader) -> StreamError {
    let error = read_all(reader).await.0.unwrap_err();
    let error = StreamError::of(&error).unwrap().clone();
    assert!(!error.to_string().contains("secret"), "{error}");
    error
}

async fn event(changes: &mut Receiver<StreamEvent>, wanted: impl Fn(&StreamEvent) -> bool) -> StreamEvent {
    let wait = async {
        loop {
            let event = changes.recv().await.unwrap();
            if wanted(&event) {
                return event;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.expect("the event did not come")
}

async fn complete(changes: &mut Receiver<StreamEvent>) {
    event(changes, |event| *event == StreamEvent::Complete).await;
}

/// Compares without printing a megabyte.
fn assert_same(got: io::Result<Vec<u8>>, expected: &[u8]) {
    let got = got.unwrap();
    assert_eq!(got.len(), expected.len());
    assert!(got == expected, "the bytes differ from the source");
}

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
    assert_same(read_all(reader).await.0, &data);
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
async fn a_refused_address_is_resolved_once_and_goes_on_at_the_same_byte() {
    let data = data(400_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |number, request, reply| match (number, request.path.as_str()) {
        (0, "/a?key=secret") => reply.part(request, &source, 150_000),
        (_, "/fresh") => reply.range(request, &source),
        _ => reply.status(403, &[]),
    });
    let fresh = server.url("/fresh");
    let resolver = Resolver::new(move |_| Ok(ResolvedStream::plain(fresh.clone())));
    let (reader, handle) = open(&server, &resolver);
    let mut changes = handle.changes();
    assert_same(read_all(reader).await.0, &data);
    assert_eq!(resolver.calls(), 1);
    assert_eq!(server.ranges(), [0, 150_000, 150_000].map(Some));
    event(&mut changes, |event| matches!(event, StreamEvent::Waiting(WaitReason::Expired, _))).await;
    event(&mut changes, |event| *event == StreamEvent::Renewed { before_deadline: false }).await;
    event(&mut changes, |event| *event == StreamEvent::Flowing).await;
    assert_eq!(handle.status().re_resolved, 1);
}

#[tokio::test]
async fn three_useless_fresh_addresses_end_the_track() {
    let server = Server::start(|_, _, reply| reply.status(410, &[]));
    let fresh = server.url("/");
    let resolver =
        Resolver::new(move |call| Ok(ResolvedStream::plain(fresh.join(&format!("/{call}")).unwrap())));
    let (reader, _handle) = open(&server, &resolver);
    let error = failure(reader).await;
    assert!(matches!(error, StreamError::Refused { status: 410, .. }), "{error}");
    assert!(error.to_string().contains(&server.address.to_string()));
    assert_eq!(resolver.calls(), 3);
}

#[tokio::test]
async fn a_plain_address_that_does_not_exist_fails_without_delay() {
    let server = Server::start(|_, _, reply| reply.status(404, &[]));
    let url = server.url("/a?key=secret");
    let resolver = Resolver::new(move |_| Ok(ResolvedStream::plain(url.clone())));
    let slow = Settings { resolve_pause: Duration::from_secs(60), ..settings() };
    let (reader, _handle) = open_with(slow, ResolvedStream::plain(server.url("/a?key=secret")), &resolver);
    assert!(matches!(failure(reader).await, StreamError::Refused { status: 404, .. }));
    assert_eq!(server.ranges().len(), 2);
}

#[tokio::test]
async fn a_track_that_the_plugin_calls_gone_ends_with_its_words() {
    let server = Server::start(|_, _, reply| reply.status(403, &[]));
    let resolver = Resolver::new(|_| {
        Err(ResolveError { kind: ResolveErrorKind::Gone, message: "no such song".to_owned() })
    });
    let (reader, _handle) = open(&server, &resolver);
    let error = failure(reader).await;
    assert!(matches!(error, StreamError::Unresolved { kind: ResolveErrorKind::Gone, .. }));
    assert!(error.to_string().contains("no such song"));
}

/// Serves 100 kB at once and the rest only after `until`.
fn slow_until(source: Arc<Vec<u8>>, until: Instant) -> impl Fn(usize, &Request, &mut Reply) + Send + Sync {
    move |_, request, reply| match request.path.as_str() {
        "/fresh" => reply.range(request, &source),
        _ => {
            // Small pieces, each well before the connection counts as silent, then a cut.
            reply.range_head(request, &source, "\"one\"");
            for piece in source[..200_000].chunks(10_000) {
                reply.body(piece);
                std::thread::sleep(
                    until.saturating_duration_since(Instant::now()).min(Duration::from_millis(60)),
                );
            }
        }
    }
}

#[tokio::test]
async fn an_address_is_renewed_before_its_deadline_and_the_old_transfer_goes_on() {
    let data = data(400_000);
    let now = Instant::now();
    let server = Server::start(slow_until(Arc::clone(&data), now + Duration::from_secs(3)));
    let fresh = server.url("/fresh");
    let resolver = Resolver::new(move |_| Ok(ResolvedStream::plain(fresh.clone())));
    let expiry =
        Expiry::Deadline { at: now + Duration::from_millis(1200), lifetime: Duration::from_millis(1200) };
    let resolved = ResolvedStream { expiry, ..ResolvedStream::plain(server.url("/a")) };
    let (reader, handle) = open_with(settings(), resolved, &resolver);
    assert!(handle.status().expires_in.is_some());
    let mut changes = handle.changes();
    assert_same(read_all(reader).await.0, &data);
    event(&mut changes, |event| *event == StreamEvent::Renewing).await;
    event(&mut changes, |event| *event == StreamEvent::Renewed { before_deadline: true }).await;
    assert_eq!(resolver.calls(), 1);
    assert_eq!(server.ranges(), [0, 200_000].map(Some));
    assert_eq!(server.requests()[1].path, "/fresh");
}

#[tokio::test]
async fn a_wall_clock_expiry_counts_by_the_servers_clock() {
    let data = data(400_000);
    let source = Arc::clone(&data);
    // The server lives in 2001; the address is good for 1.6 s of its time.
    let date = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let server = Server::start(move |_, request, reply| {
        let from = request.from.unwrap() as usize;
        let range = format!("bytes {from}-399999/400000");
        reply.head(206, &[("Content-Range", &range), ("Date", &httpdate::fmt_http_date(date))]);
        let pause = if request.path == "/fresh" { 0 } else { 50 };
        for piece in source[from..].chunks(10_000) {
            reply.body(piece);
            std::thread::sleep(Duration::from_millis(pause));
        }
    });
    let fresh = server.url("/fresh");
    let resolver = Resolver::new(move |_| Ok(ResolvedStream::plain(fresh.clone())));
    let expiry = Expiry::WallClock(date + Duration::from_millis(1600));
    let resolved = ResolvedStream { expiry, ..ResolvedStream::plain(server.url("/a")) };
    let (reader, handle) = open_with(settings(), resolved, &resolver);
    let mut changes = handle.changes();
    assert_same(read_all(reader).await.0, &data);
    event(&mut changes, |event| *event == StreamEvent::Renewed { before_deadline: true }).await;
    assert_eq!(resolver.calls(), 1);
}

#[tokio::test]
async fn a_url_that_expires_while_nothing_is_read_is_resolved_once() {
    let data = data(2_000_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| reply.range(request, &source));
    let fresh = server.url("/fresh");
    let resolver = Resolver::new(move |_| Ok(ResolvedStream::plain(fresh.clone())));
    let lifetime = Duration::from_secs(2);
    let expiry = Expiry::Deadline { at: Instant::now() + lifetime, lifetime };
    let resolved = ResolvedStream { expiry, ..ResolvedStream::plain(server.url("/a")) };
    let small = Settings { buffer: 512 * 1024, ..settings() };
    let (reader, handle) = open_with(small, resolved, &resolver);
    // Full, then idle for longer than the connection and the address live.
    tokio::time::sleep(Duration::from_millis(2300)).await;
    assert!(handle.status().received < 512 * 1024);
    assert_eq!(resolver.calls(), 0);
    assert_same(read_all(reader).await.0, &data);
    assert_eq!(resolver.calls(), 1);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].path, "/fresh");
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
async fn seeks_within_what_is_held_ask_nothing_and_others_ask_once() {
    let data = data(3_000_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| reply.range(request, &source));
    let small = Settings { buffer: 1024 * 1024, ..settings() };
    let (reader, handle) = open_with(small, ResolvedStream::plain(server.url("/a")), &Resolver::never());
    let (got, reader) = read_at(reader, 0, 300_000).await;
    assert!(got == data[..300_000]);
    let (got, reader) = read_at(reader, 250_000, 100_000).await;
    assert!(got == data[250_000..350_000]);
    assert_eq!(server.ranges(), [Some(0)]);
    let (got, reader) = read_at(reader, 2_500_000, 100_000).await;
    assert!(got == data[2_500_000..2_600_000]);
    assert_eq!(server.ranges(), [0, 2_500_000].map(Some));
    let (got, reader) = read_at(reader, 0, 3_000_000).await;
    assert!(got == **data);
    assert_eq!(handle.status().position, 3_000_000);
    let (got, _reader) = read_at(reader, 2_999_999, 1).await;
    assert!(got == data[2_999_999..]);
}

#[tokio::test]
async fn a_visit_to_the_tail_does_not_fetch_the_head_again() {
    let data = data(4_000_000);
    let source = Arc::clone(&data);
    // The head stays incomplete while the reader is there, as on a slow line.
    let server = Server::start(move |number, request, reply| match number {
        0 => {
            reply.part(request, &source, 500_000);
            reply.stall();
        }
        _ => reply.range(request, &source),
    });
    let patient = Settings { silence: Duration::from_secs(20), ..settings() };
    let (reader, handle) =
        open_with(patient, ResolvedStream::plain(server.url("/a.m4a")), &Resolver::never());
    let (_, reader) = read_at(reader, 0, 64).await;
    while handle.status().received < 500_000 - 64 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (moov, reader) = read_at(reader, 3_900_000, 100_000).await;
    assert!(moov == data[3_900_000..]);
    let (got, _reader) = read_at(reader, 0, 4_000_000).await;
    assert!(got == **data);
    assert_eq!(server.ranges(), [0, 3_900_000, 500_000].map(Some));
}

#[tokio::test]
async fn a_server_without_ranges_is_read_forward_and_refuses_to_go_back() {
    let data = data(2_000_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, _, reply| {
        reply.head(200, &[("Content-Length", "2000000"), ("Accept-Ranges", "none")]);
        reply.body(&source);
    });
    let small = Settings { buffer: 512 * 1024, ..settings() };
    let (reader, _handle) =
        open_with(small, ResolvedStream::plain(server.url("/a?key=secret")), &Resolver::never());
    let reader = spawn_blocking(move || {
        assert!(!reader.is_seekable());
        reader
    })
    .await
    .unwrap();
    let (got, mut reader) = read_at(reader, 1_500_000, 100_000).await;
    assert!(got == data[1_500_000..1_600_000]);
    let error = reader.seek(SeekFrom::Start(10)).unwrap_err();
    assert!(matches!(StreamError::of(&error), Some(StreamError::NotSeekable { offset: 10, .. })));
    assert!(!error.to_string().contains("secret"));
    // Within what is held it works, and nothing is lost.
    let (got, _reader) = read_at(reader, 1_550_000, 450_000).await;
    assert!(got == data[1_550_000..]);
    assert_eq!(server.ranges(), [Some(0)]);
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
    let (got, reader) = read_at(reader, 0, 500_000).await;
    assert!(got == **data);
    assert_eq!((reader.byte_len(), reader.is_seekable()), (None, false));
    assert!(server.ranges().iter().all(Option::is_none));
}

#[tokio::test]
async fn an_abort_ends_a_waiting_reader_within_50_ms_and_frees_its_memory() {
    let data = data(400_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| {
        reply.part(request, &source, 200_000);
        reply.stall();
    });
    let streams = Streams::new(Settings { silence: Duration::from_secs(20), ..settings() }).unwrap();
    let mut best = Duration::MAX;
    // The best of some, since the machine may be busy with other tests.
    for _ in 0..5 {
        let resolved = ResolvedStream::plain(server.url("/a"));
        let (mut reader, handle) = streams.open(resolved, Resolver::never(), "test".to_owned());
        let waiting = spawn_blocking(move || {
            let result = reader.read_exact(&mut vec![0; 300_000]);
            (result, Instant::now(), reader)
        });
        while handle.status().position < 200_000 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let start = Instant::now();
        handle.abort();
        let (result, ended, _reader) = waiting.await.unwrap();
        best = best.min(ended.duration_since(start));
        assert!(matches!(StreamError::of(&result.unwrap_err()), Some(StreamError::Aborted { .. })));
        assert_eq!(streams.budget.used(), 0);
    }
    assert!(best < Duration::from_millis(50), "{best:?}");
}

#[tokio::test]
async fn an_interrupt_fails_reads_until_it_is_cleared_while_the_fetch_goes_on() {
    let data = data(800_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| reply.range(request, &source));
    let (mut reader, handle) = open(&server, &Resolver::never());
    let mut changes = handle.changes();
    handle.interrupt();
    let error = reader.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Other);
    assert!(matches!(StreamError::of(&error), Some(StreamError::Interrupted { .. })));
    complete(&mut changes).await;
    handle.clear_interrupt();
    assert_same(read_all(reader).await.0, &data);
}

#[tokio::test]
async fn two_tracks_stay_within_the_buffer_together_and_both_arrive() {
    let data = data(3_000_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| reply.range(request, &source));
    let streams =
        Streams::new(Settings { buffer: 1024 * 1024, idle_close: Duration::from_secs(20), ..settings() })
            .unwrap();
    let open = |name: &str| {
        streams.open(ResolvedStream::plain(server.url("/a")), Resolver::never(), name.to_owned())
    };
    let (first, first_handle) = open("first");
    while first_handle.status().received < first_handle.status().cap {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (second, second_handle) = open("second");
    let mut changes = second_handle.changes();
    event(&mut changes, |event| *event == StreamEvent::Prefetching).await;
    let watched = streams.budget.clone();
    let watch = tokio::spawn(async move {
        loop {
            assert!(watched.used() <= 1024 * 1024);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let (got, first) = read_all(first).await;
    assert_same(got, &data);
    drop(first);
    let (got, second) = read_all(second).await;
    assert_same(got, &data);
    drop(second);
    assert!(!watch.is_finished());
    watch.abort();
    assert_eq!(streams.budget.used(), 0);
    assert_eq!(server.ranges(), [Some(0), Some(0)]);
}

#[tokio::test]
async fn headers_stay_with_their_origin_through_redirects() {
    let data = data(50_000);
    let source = Arc::clone(&data);
    let other = Server::start(move |_, request, reply| reply.range(request, &source));
    let target = other.url("/b").to_string();
    let server = Server::start(move |number, _, reply| match number {
        0 => reply.status(302, &[("Location", "/same")]),
        _ => reply.status(307, &[("Location", &target)]),
    });
    let resolved = ResolvedStream {
        headers: vec![("X-Key".to_owned(), "secret".to_owned())],
        ..ResolvedStream::plain(server.url("/a"))
    };
    let (reader, _handle) = open_with(settings(), resolved, &Resolver::never());
    assert_same(read_all(reader).await.0, &data);
    assert!(server.requests().iter().all(|request| request.headers["x-key"] == "secret"));
    assert!(other.requests().iter().all(|request| !request.headers.contains_key("x-key")));
}

#[tokio::test]
async fn more_than_ten_redirects_are_too_many() {
    let server = Server::start(|number, _, reply| reply.status(302, &[("Location", &format!("/{number}"))]));
    let (reader, _handle) = open(&server, &Resolver::never());
    assert!(matches!(failure(reader).await, StreamError::Forbidden { .. }));
    assert_eq!(server.ranges().len(), 11);
}

#[tokio::test]
async fn a_plugin_without_the_local_network_cannot_reach_this_machine() {
    let server = Server::start(|_, _, reply| reply.status(200, &[]));
    for host in ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"] {
        let url = Url::parse(&format!("http://{host}:{}/a?key=secret", server.address.port())).unwrap();
        let resolved = ResolvedStream { reach: Reach::Internet, ..ResolvedStream::plain(url) };
        let (reader, _handle) = open_with(settings(), resolved, &Resolver::never());
        assert!(matches!(failure(reader).await, StreamError::Forbidden { .. }), "{host}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_to_this_machine_is_out_of_reach() {
    // Needs an address that is not loopback; `redirects_stay_secure_and_within_reach` covers a machine without.
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let Some(own) = probe.connect("192.0.2.1:9").and_then(|()| probe.local_addr()).ok().map(|own| own.ip())
    else {
        return;
    };
    let hidden = Server::start(|_, _, reply| reply.status(200, &[]));
    let target = hidden.url("/").to_string();
    let server = Server::bind("0.0.0.0:0", move |_, _, reply| reply.status(302, &[("Location", &target)]));
    let url = Url::parse(&format!("http://{own}:{}/", server.address.port())).unwrap();
    let resolved = ResolvedStream { reach: Reach::Internet, ..ResolvedStream::plain(url) };
    let (reader, _handle) = open_with(settings(), resolved, &Resolver::never());
    assert!(matches!(failure(reader).await, StreamError::Forbidden { .. }));
    assert_eq!(server.requests().len(), 1);
    assert!(hidden.requests().is_empty());
}

#[test]
fn files_are_read_below_allowed_folders_only() {
    let folder = tempfile::tempdir().unwrap();
    let (music, secret) = (folder.path().join("music"), folder.path().join("secret"));
    std::fs::create_dir(&music).unwrap();
    std::fs::write(&secret, "secret").unwrap();
    std::fs::write(music.join("a.flac"), "0123456789").unwrap();
    std::os::unix::fs::symlink(&secret, music.join("link")).unwrap();
    std::os::unix::fs::symlink("a.flac", music.join("inside")).unwrap();
    nix::unistd::mkfifo(&music.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let streams = Streams::new(settings()).unwrap();
    let folders = [music.clone()];

    let (mut reader, handle) = streams.open_file(&music.join("a.flac"), &folders).unwrap();
    assert_eq!((reader.byte_len(), reader.is_seekable()), (Some(10), true));
    reader.seek(SeekFrom::End(-3)).unwrap();
    let mut tail = String::new();
    reader.read_to_string(&mut tail).unwrap();
    assert_eq!(tail, "789");
    assert!(handle.status().complete && handle.status().position == 10);
    handle.abort();
    assert!(reader.read(&mut [0; 1]).is_err());

    assert!(streams.open_file(&music.join("inside"), &folders).is_ok());
    for path in ["link", "../secret", "fifo", ".", "missing"] {
        let error = streams.open_file(&music.join(path), &folders).map(|_| ()).unwrap_err();
        assert!(matches!(error, StreamError::File { .. }), "{path}");
    }
    assert!(streams.open_file(&secret, &folders).is_err());
}
