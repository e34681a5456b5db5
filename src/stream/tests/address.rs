//! Addresses that are refused, expire or are renewed.

use super::*;

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
async fn each_of_many_short_lived_addresses_is_renewed_before_its_deadline() {
    const LIFE: Duration = Duration::from_millis(1500);
    let data = data(400_000);
    let source = Arc::clone(&data);
    let good_until = Arc::new(Mutex::new(vec![Instant::now() + LIFE]));
    let known = Arc::clone(&good_until);
    // Sends for 5 s in all, refuses an address that has run out, and cuts a transfer when it does.
    let server = Server::start(move |_, request, reply| {
        let number: usize = request.path[1..].parse().unwrap();
        let end = known.lock().unwrap()[number];
        if Instant::now() >= end {
            return reply.status(403, &[]);
        }
        let from = request.from.unwrap() as usize;
        reply.range_head(request, &source, "\"one\"");
        for piece in source[from..].chunks(4_000) {
            if Instant::now() >= end {
                return;
            }
            reply.body(piece);
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let base = server.url("/");
    let address = move |number: usize, at: Instant| ResolvedStream {
        expiry: Expiry::Deadline { at, lifetime: LIFE },
        ..ResolvedStream::plain(base.join(&number.to_string()).unwrap())
    };
    let first = address(0, good_until.lock().unwrap()[0]);
    let resolver = Resolver::new(move |_| {
        let mut issued = good_until.lock().unwrap();
        let end = Instant::now() + LIFE;
        issued.push(end);
        Ok(address(issued.len() - 1, end))
    });
    // Only a resolve that failed is a reason to wait before the next one.
    let slow = Settings { resolve_pause: Duration::from_secs(60), ..settings() };
    let (reader, handle) = open_with(slow, first, &resolver);
    let mut changes = handle.changes();
    assert_same(read_all(reader).await.0, &data);
    assert!(resolver.calls() >= 3, "{} calls", resolver.calls());
    assert!(resolver.calls() <= 8, "asked more often than the lifetimes require: {}", resolver.calls());
    while let Ok(event) = changes.try_recv() {
        assert_ne!(event, StreamEvent::Renewed { before_deadline: false });
    }
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
