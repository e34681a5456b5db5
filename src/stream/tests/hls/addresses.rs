//! Where the pieces come from: other addresses, fresh ones, kept connections, and what is told to whom.

use super::*;

#[tokio::test]
async fn headers_go_to_the_origin_of_the_address_only() {
    let other = Server::start(|_, request, reply| segment(request, reply));
    let text = RECORDING.replace("1.aac", other.url("/1.aac").as_str());
    let server = listing(move |_| text.clone(), segment);
    let mut resolved = ResolvedStream::plain(server.url("/list.m3u8"));
    resolved.headers = vec![("Authorization".to_owned(), "Bearer secret".to_owned())];
    let (reader, _handle) = open_with(settings(), resolved, &Resolver::never());
    assert_same(read_all(reader).await.0, &all(0..3));
    assert!(server.requests().iter().all(|request| request.headers["authorization"] == "Bearer secret"));
    assert!(other.requests().iter().all(|request| !request.headers.contains_key("authorization")));
}

#[tokio::test]
async fn segments_stay_within_reach() {
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = probe.connect("192.0.2.1:9").and_then(|()| probe.local_addr()).ok().map(|own| own.ip());
    // Needs an address that is not loopback.
    let Some(own) = own else { return };
    let hidden = Server::start(|_, _, reply| reply.status(200, &[]));
    let segment = format!("http://localhost:{}/0.aac", hidden.address.port());
    let server = Server::bind("0.0.0.0:0", move |_, request, reply| {
        playlist(request, reply, &RECORDING.replace("0.aac", &segment));
    });
    let url = Url::parse(&format!("http://{own}:{}/list.m3u8", server.address.port())).unwrap();
    let resolved = ResolvedStream { reach: Reach::Internet, ..ResolvedStream::plain(url) };
    let (reader, _handle) = open_with(settings(), resolved, &Resolver::never());
    assert!(matches!(failure(reader).await, StreamError::Forbidden { .. }));
    assert!(server.requests().len() == 1 && hidden.requests().is_empty());
}

#[tokio::test]
async fn a_recording_whose_address_runs_out_goes_on_at_the_same_byte_by_a_fresh_one() {
    let cut = AtomicUsize::new(0);
    let server = recording(move |request, reply| {
        let segment = frames(number(request), 100);
        if !request.path.starts_with("/new") && number(request) == 1 {
            if cut.fetch_add(1, Ordering::SeqCst) == 0 {
                return reply.part(request, &segment, 5_000);
            }
            return reply.status(403, &[]);
        }
        reply.range(request, &segment);
    });
    let fresh = server.url("/new/list.m3u8");
    let resolver = Resolver::new(move |_| Ok(ResolvedStream::plain(fresh.clone())));
    let (reader, handle) = open_list(&server, &resolver);
    assert_same(read_all(reader).await.0, &all(0..3));
    assert_eq!(resolver.calls(), 1);
    assert_eq!(handle.status().bytes_fetched, all(0..3).len() as u64);
    let asked: Vec<_> = server.requests().into_iter().map(|request| (request.path, request.from)).collect();
    assert_eq!(asked[asked.len() - 2], ("/new/1.aac".to_owned(), Some(5_000)), "{asked:?}");
}

#[tokio::test]
async fn an_alternative_is_asked_where_segments_do_not_come() {
    let dead = recording(|request, reply| {
        let segment = frames(number(request), 100);
        match number(request) {
            0 => reply.range(request, &segment),
            1 if request.from.is_none() => reply.part(request, &segment, 6_000),
            _ => reply.status(500, &[]),
        }
    });
    let other = recording(|request, reply| reply.range(request, &frames(number(request), 100)));
    let mut resolved = ResolvedStream::plain(dead.url("/list.m3u8"));
    resolved.alternatives = vec![other.url("/list.m3u8")];
    let (reader, handle) = open_with(settings(), resolved, &Resolver::never());
    assert_same(read_all(reader).await.0, &all(0..3));
    assert_eq!(handle.status().bytes_fetched, all(0..3).len() as u64);
    assert_eq!(paths(&other), ["/list.m3u8", "/1.aac", "/2.aac"]);
}

#[tokio::test]
async fn a_fresh_address_is_taken_between_segments_before_the_old_one_ends() {
    let (renewed, wait) = std::sync::mpsc::channel();
    let wait = Mutex::new(wait);
    let server = recording(move |request, reply| {
        let segment = frames(number(request), 100);
        if request.path != "/1.aac" {
            return reply.range(request, &segment);
        }
        // The rest of it comes when the fresh address is there.
        reply.range_head(request, &segment, "\"one\"");
        reply.body(&segment[..9_000]);
        wait.lock().unwrap().recv().unwrap();
        reply.body(&segment[9_000..]);
    });
    let (old, fresh) = (server.url("/list.m3u8"), server.url("/new/list.m3u8"));
    let resolver = Resolver::new(move |_| {
        renewed.send(()).unwrap();
        Ok(ResolvedStream::plain(fresh.clone()))
    });
    let lifetime = Duration::from_secs(1);
    let resolved = ResolvedStream {
        expiry: Expiry::Deadline { at: Instant::now() + lifetime, lifetime },
        ..ResolvedStream::plain(old)
    };
    let (reader, handle) = open_with(settings(), resolved, &resolver);
    assert_same(read_all(reader).await.0, &all(0..3));
    assert_eq!(resolver.calls(), 1);
    assert_eq!(handle.status().re_resolved, 1);
    let expected = ["/list.m3u8", "/0.aac", "/1.aac", "/new/list.m3u8", "/new/2.aac"];
    assert_eq!(paths(&server), expected);
}

/// Answers by path on connections that are kept, and counts them.
fn kept(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> (Url, Arc<AtomicUsize>) {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = Url::parse(&format!("http://{}/list.m3u8", listener.local_addr().unwrap())).unwrap();
    let (count, answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(answer));
    let counting = Arc::clone(&count);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            counting.fetch_add(1, Ordering::SeqCst);
            let (mut connection, answer) = (connection.unwrap(), Arc::clone(&answer));
            std::thread::spawn(move || {
                let mut lines = BufReader::new(connection.try_clone().unwrap()).lines().map_while(Result::ok);
                while let Some(first) = lines.next() {
                    assert!(lines.by_ref().any(|line| line.is_empty()));
                    let body = answer(first.split(' ').nth(1).unwrap());
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                    connection.write_all(&[head.as_bytes(), &body].concat()).unwrap();
                }
            });
        }
    });
    (url, count)
}

#[tokio::test]
async fn one_connection_serves_the_playlist_and_all_segments() {
    let (url, connections) = kept(|path| match path {
        "/list.m3u8" => RECORDING.as_bytes().to_vec(),
        path => frames(path.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap(), 100),
    });
    let (reader, _handle) = open_with(settings(), ResolvedStream::plain(url), &Resolver::never());
    assert_same(read_all(reader).await.0, &all(0..3));
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}
