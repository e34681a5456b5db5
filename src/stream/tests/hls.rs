//! HLS: playlists that are followed, and segments as one run of bytes.

use super::*;

/// AAC frames of pseudo-random bytes, different for each seed.
fn frames(seed: u64, count: usize) -> Vec<u8> {
    let noise = data(count * 200 + seed as usize * 7);
    let noise = &noise[seed as usize * 7..];
    noise
        .chunks(200)
        .take(count)
        .flat_map(|body| {
            let length = body.len() + 7;
            let (high, low) = ((length >> 3) as u8, (length << 5) as u8 | 0x1f);
            [&[0xff, 0xf1, 0x50, 0x80, high, low, 0xfc], body].concat()
        })
        .collect()
}

/// What a server serves by path: the whole of it, or the range that is asked for.
fn serve(request: &Request, reply: &mut Reply, content_type: &str, body: &[u8]) {
    let (from, total) = (request.from.unwrap_or(0) as usize, body.len());
    let to = request.to.map_or(total, |to| (to as usize).min(total));
    let length = (to - from).to_string();
    if request.from.is_some() {
        let range = format!("bytes {from}-{}/{total}", to - 1);
        reply.head(
            206,
            &[("Content-Type", content_type), ("Content-Range", &range), ("Content-Length", &length)],
        );
    } else {
        reply.head(200, &[("Content-Type", content_type), ("Content-Length", &length)]);
    }
    reply.body(&body[from..to]);
}

fn playlist(request: &Request, reply: &mut Reply, text: &str) {
    serve(request, reply, "application/vnd.apple.mpegurl", text.as_bytes());
}

fn open_list(server: &Server, resolver: &Arc<Resolver>) -> (Reader, StreamHandle) {
    open_with(settings(), ResolvedStream::plain(server.url("/list.m3u8?key=secret")), resolver)
}

fn number(request: &Request) -> u64 {
    request.path.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

fn paths(server: &Server) -> Vec<String> {
    server.requests().into_iter().map(|request| request.path).collect()
}

const RECORDING: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n0.aac\n#EXTINF:4,\n1.aac\n#EXTINF:4,\n2.aac\n\
    #EXT-X-ENDLIST\n";

fn all(numbers: std::ops::Range<u64>) -> Vec<u8> {
    numbers.flat_map(|number| frames(number, 100)).collect()
}

/// Reads on through all recordings, with their types.
async fn read_stretches(mut reader: Reader) -> Vec<(Option<String>, Vec<u8>)> {
    spawn_blocking(move || {
        let mut stretches = vec![(reader.content_type(), Vec::new())];
        loop {
            reader.read_to_end(&mut stretches.last_mut().unwrap().1).unwrap();
            let Some(content_type) = reader.next_stretch() else { return stretches };
            stretches.push((content_type, Vec::new()));
        }
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_recording_in_pieces_is_read_as_one() {
    let server = Server::start(|_, request, reply| {
        if request.path.starts_with("/list.m3u8") {
            return playlist(request, reply, RECORDING);
        }
        let mut tag = b"ID3\x04\0\0\0\0\0\x3f".to_vec();
        tag.resize(73, 0);
        tag.extend(frames(number(request), 100));
        serve(request, reply, "audio/aac", &tag);
    });
    let (reader, handle) = open_list(&server, &Resolver::never());
    let mut changes = handle.changes();
    let head = event(&mut changes, |event| matches!(event, StreamEvent::Head { .. })).await;
    assert_eq!(head, StreamEvent::Head { content_type: Some("audio/aac".to_owned()), total: None });
    assert!(!handle.is_live() && reader.may_go_on());
    assert_same(read_all(reader).await.0, &all(0..3));
    complete(&mut changes).await;
    assert_eq!(paths(&server), ["/list.m3u8?key=secret", "/0.aac", "/1.aac", "/2.aac"]);
}

#[tokio::test]
async fn a_segment_that_fails_or_is_cut_is_fetched_on_from_the_same_byte() {
    let tries = AtomicUsize::new(0);
    let server = Server::start(move |_, request, reply| {
        if request.path.starts_with("/list.m3u8") {
            return playlist(request, reply, RECORDING);
        }
        let segment = frames(number(request), 100);
        match number(request) {
            1 if tries.fetch_add(1, Ordering::SeqCst) < 2 => reply.status(503, &[("Retry-After", "0")]),
            2 if request.from.is_none() => reply.part(request, &segment, 9_999),
            2 if request.from == Some(9_999) => {
                reply.range_head(request, &segment, "\"one\"");
                reply.body(&segment[9_999..12_345]);
                reply.stall();
            }
            _ => reply.range(request, &segment),
        }
    });
    let (reader, handle) = open_list(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &all(0..3));
    assert_eq!(handle.status().bytes_fetched, all(0..3).len() as u64);
    assert_eq!(server.ranges(), [Some(0), None, None, None, None, None, Some(9_999), Some(12_345)]);
}

#[tokio::test]
async fn what_a_server_without_ranges_sends_again_is_discarded() {
    let tries = AtomicUsize::new(0);
    let server = Server::start(move |_, request, reply| {
        if request.path.starts_with("/list.m3u8") {
            return playlist(request, reply, RECORDING);
        }
        let segment = frames(number(request), 100);
        reply.head(200, &[("Content-Length", &segment.len().to_string())]);
        let cut = number(request) == 1 && tries.fetch_add(1, Ordering::SeqCst) < 2;
        reply.body(&segment[..if cut { 7_000 } else { segment.len() }]);
    });
    let (reader, _handle) = open_list(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &all(0..3));
}

#[tokio::test]
async fn a_missing_segment_of_a_recording_is_an_error_and_not_left_out() {
    let server = Server::start(|_, request, reply| match request.path.as_str() {
        "/1.aac" => reply.status(404, &[]),
        path if path.starts_with("/list") => playlist(request, reply, RECORDING),
        _ => serve(request, reply, "audio/aac", &frames(number(request), 100)),
    });
    let url = server.url("/list.m3u8?key=secret");
    let resolver = Resolver::new(move |_| Ok(ResolvedStream::plain(url.clone())));
    let (reader, _handle) = open_list(&server, &resolver);
    let error = failure(reader).await;
    assert!(matches!(error, StreamError::Refused { status: 404, .. }), "{error}");
    assert!(!paths(&server).contains(&"/2.aac".to_owned()));
}

/// A playlist of so many segments before `end`.
fn window(end: u64, count: u64, target: f32) -> String {
    let first = end - count;
    let mut text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:{first}\n");
    for number in first..end {
        text += &format!("#EXTINF:{target},\n{number}.aac\n");
    }
    text
}

#[tokio::test]
async fn a_live_window_is_followed_from_near_its_end_to_the_end() {
    let lists = AtomicUsize::new(0);
    let server = Server::start(move |_, request, reply| {
        if !request.path.starts_with("/list.m3u8") {
            return serve(request, reply, "audio/aac", &frames(number(request), 100));
        }
        let text = match lists.fetch_add(1, Ordering::SeqCst) {
            0 => window(106, 6, 1.0),
            1 => window(106, 6, 1.0),
            2 => window(108, 6, 1.0),
            _ => window(109, 6, 1.0) + "#EXT-X-ENDLIST\n",
        };
        playlist(request, reply, &text);
    });
    let (reader, handle) = open_list(&server, &Resolver::never());
    let mut changes = handle.changes();
    event(&mut changes, |event| *event == StreamEvent::Prefetching).await;
    assert!(handle.is_live());
    assert_same(read_all(reader).await.0, &all(103..109));
    assert_eq!(handle.status().error, None);
}

#[tokio::test]
async fn a_segment_that_left_the_window_is_passed_by() {
    let lists = AtomicUsize::new(0);
    let server = Server::start(move |_, request, reply| match request.path.as_str() {
        "/104.aac" => reply.status(404, &[]),
        path if path.starts_with("/list") => {
            let text = match lists.fetch_add(1, Ordering::SeqCst) {
                0 => window(106, 6, 1.0),
                _ => window(112, 6, 1.0) + "#EXT-X-ENDLIST\n",
            };
            playlist(request, reply, &text);
        }
        _ => serve(request, reply, "audio/aac", &frames(number(request), 100)),
    });
    let (reader, _handle) = open_list(&server, &Resolver::never());
    let stretches = read_stretches(reader).await;
    let heard: Vec<_> = stretches.iter().map(|(_, bytes)| bytes.len()).collect();
    assert!(stretches[0].1 == all(103..104) && stretches[1].1 == all(109..112), "{heard:?}");
}

#[tokio::test]
async fn a_live_segment_that_is_listed_before_it_is_there_is_waited_for() {
    let (lists, tries) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let server = Server::start(move |_, request, reply| match request.path.as_str() {
        "/105.aac" if tries.fetch_add(1, Ordering::SeqCst) < 2 => reply.status(404, &[]),
        path if path.starts_with("/list") => {
            let end = if lists.fetch_add(1, Ordering::SeqCst) < 3 { "" } else { "#EXT-X-ENDLIST\n" };
            playlist(request, reply, &(window(106, 6, 1.0) + end));
        }
        _ => serve(request, reply, "audio/aac", &frames(number(request), 100)),
    });
    let (reader, _handle) = open_list(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &all(103..106));
}

#[tokio::test]
async fn a_live_stream_is_heard_also_where_its_first_segment_never_comes() {
    let lists = AtomicUsize::new(0);
    let server = Server::start(move |_, request, reply| match request.path.as_str() {
        "/103.aac" => reply.status(404, &[]),
        path if path.starts_with("/list") => {
            let end = if lists.fetch_add(1, Ordering::SeqCst) < 4 { "" } else { "#EXT-X-ENDLIST\n" };
            playlist(request, reply, &(window(106, 6, 1.0) + end));
        }
        _ => serve(request, reply, "audio/aac", &frames(number(request), 100)),
    });
    let (reader, _handle) = open_list(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &all(104..106));
}

#[tokio::test]
async fn another_form_is_played_where_the_best_one_fails() {
    let server = Server::start(|_, request, reply| match request.path.as_str() {
        path if path.starts_with("/list.m3u8") => playlist(
            request,
            reply,
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=900,CODECS=\"mp4a.40.2\"\nbest.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=800,CODECS=\"mp4a.40.2\"\nlocked.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=700,CODECS=\"mp4a.40.2\"\nsub/good.m3u8\n",
        ),
        "/best.m3u8" => reply.status(404, &[]),
        "/locked.m3u8" => {
            let key = "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://x\",KEYFORMAT=\"y\"\n#EXTINF";
            playlist(request, reply, &RECORDING.replacen("#EXTINF", key, 1));
        }
        "/sub/good.m3u8" => playlist(request, reply, RECORDING),
        path if path.starts_with("/sub/") => {
            serve(request, reply, "audio/aac", &frames(number(request), 100));
        }
        _ => reply.status(500, &[]),
    });
    let (reader, _handle) = open_list(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &all(0..3));
}

#[tokio::test]
async fn an_encrypted_stream_is_refused_with_the_reason() {
    let server = Server::start(|_, request, reply| {
        let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"key.bin?secret\"\n#EXTINF";
        playlist(request, reply, &RECORDING.replacen("#EXTINF", key, 1));
    });
    let (reader, _handle) = open_list(&server, &Resolver::never());
    let error = failure(reader).await;
    let expected = format!(
        "test: the playlist on {} cannot be played: it is encrypted, which cannot be played",
        server.address
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_discontinuity_begins_another_recording_with_its_own_type() {
    let mp3 = [&[0xff, 0xfb, 0x90, 0x64][..], &[0x55; 413]].concat().repeat(30);
    let served = mp3.clone();
    let server = Server::start(move |_, request, reply| match request.path.as_str() {
        "/1.aac" => serve(request, reply, "audio/mpeg", &served),
        path if path.starts_with("/list") => {
            let text = RECORDING.replace("\n1.aac", "\n#EXT-X-DISCONTINUITY\n1.aac");
            playlist(request, reply, &text.replace("\n2.aac", "\n#EXT-X-DISCONTINUITY\n2.aac"));
        }
        _ => serve(request, reply, "audio/aac", &frames(number(request), 100)),
    });
    let (reader, _handle) = open_list(&server, &Resolver::never());
    let stretches = read_stretches(reader).await;
    let types: Vec<_> = stretches.iter().map(|(kind, _)| kind.as_deref().unwrap()).collect();
    assert_eq!(types, ["audio/aac", "audio/mpeg", "audio/aac"]);
    assert!(stretches[0].1 == all(0..1) && stretches[1].1 == mp3 && stretches[2].1 == all(2..3));
}

#[tokio::test]
async fn headers_go_to_the_origin_of_the_address_only() {
    let other = Server::start(|_, request, reply| {
        serve(request, reply, "audio/aac", &frames(number(request), 100));
    });
    let text = RECORDING.replace("1.aac", other.url("/1.aac").as_str());
    let server = Server::start(move |_, request, reply| {
        if request.path.starts_with("/list") {
            return playlist(request, reply, &text);
        }
        serve(request, reply, "audio/aac", &frames(number(request), 100));
    });
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
async fn fragments_in_parts_of_one_file_are_read_behind_their_head() {
    let mp4_box =
        |kind: &[u8; 4], body: &[u8]| [&(body.len() as u32 + 8).to_be_bytes()[..], kind, body].concat();
    let track = mp4_box(b"trak", &mp4_box(b"mdia", &mp4_box(b"hdlr", &[0; 24])));
    let head = [mp4_box(b"ftyp", b"iso6"), mp4_box(b"moov", &track)].concat();
    let fragment = |n: u8| [mp4_box(b"moof", &[n; 100]), mp4_box(b"mdat", &[n; 5_000])].concat();
    let (one, two) = (fragment(1), fragment(2));
    let index = mp4_box(b"sidx", &[0; 32]);
    let file = [&head[..], &index, &one, &index, &two].concat();
    let length = index.len() + one.len();
    let text = format!(
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI=\"all.mp4\",BYTERANGE=\"{0}@0\"\n#EXTINF:4,\n\
         #EXT-X-BYTERANGE:{length}@{0}\nall.mp4\n#EXTINF:4,\n#EXT-X-BYTERANGE:{length}\nall.mp4\n#EXT-X-ENDLIST\n",
        head.len()
    );
    let served = file.clone();
    let server = Server::start(move |_, request, reply| {
        if request.path.starts_with("/list") {
            return playlist(request, reply, &text);
        }
        serve(request, reply, "video/mp4", &served);
    });
    let (reader, handle) = open_list(&server, &Resolver::never());
    let stretches = read_stretches(reader).await;
    let expected = [head, one, two].concat();
    assert!(stretches == [(Some("audio/mp4".to_owned()), expected)]);
    let asked: Vec<_> = server.requests().iter().skip(1).map(|request| (request.from, request.to)).collect();
    let at = |n: usize| Some((file.len() - n * length) as u64);
    assert_eq!(asked, [(Some(0), at(2)), (at(2), at(1)), (at(1), at(0))]);
    assert_eq!(handle.status().error, None);
}

#[tokio::test]
async fn a_recording_whose_address_runs_out_goes_on_at_the_same_byte_by_a_fresh_one() {
    let cut = AtomicUsize::new(0);
    let server = Server::start(move |_, request, reply| {
        let path = request.path.trim_start_matches("/new");
        if path.starts_with("/list.m3u8") {
            return playlist(request, reply, RECORDING);
        }
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
async fn a_paused_recording_closes_its_connection_and_goes_on_without_a_gap() {
    let server = Server::start(|_, request, reply| {
        if request.path.starts_with("/list.m3u8") {
            return playlist(request, reply, RECORDING);
        }
        reply.range(request, &frames(number(request), 5_000));
    });
    let settings = Settings { buffer: 256 * 1024, ..settings() };
    let resolved = ResolvedStream::plain(server.url("/list.m3u8"));
    let (mut reader, handle) = open_with(settings, resolved, &Resolver::never());
    let mut begin = vec![0; 1_000];
    (begin, reader) =
        spawn_blocking(move || (reader.read_exact(&mut begin).map(|()| begin).unwrap(), reader))
            .await
            .unwrap();
    handle.hold(true);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = server.requests().len();
    handle.hold(false);
    let rest = read_all(reader).await.0.unwrap();
    let all: Vec<u8> = (0..3).flat_map(|number| frames(number, 5_000)).collect();
    assert_same(Ok([begin, rest].concat()), &all);
    assert!(server.ranges()[before].is_some(), "it was cut and went on by a range");
}

#[tokio::test]
async fn an_alternative_is_asked_where_segments_do_not_come() {
    let dead = Server::start(|_, request, reply| {
        if request.path.starts_with("/list.m3u8") {
            return playlist(request, reply, RECORDING);
        }
        let segment = frames(number(request), 100);
        match number(request) {
            0 => reply.range(request, &segment),
            1 if request.from.is_none() => reply.part(request, &segment, 6_000),
            _ => reply.status(500, &[]),
        }
    });
    let other = Server::start(|_, request, reply| {
        if request.path.starts_with("/list.m3u8") {
            return playlist(request, reply, RECORDING);
        }
        reply.range(request, &frames(number(request), 100));
    });
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
    let server = Server::start(move |_, request, reply| {
        if request.path.ends_with("/list.m3u8") {
            return playlist(request, reply, RECORDING);
        }
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

/// Why a stream cannot be played, as the end of the sentence about its playlist.
async fn unplayable(server: &Server) -> String {
    let (reader, handle) = open_list(server, &Resolver::never());
    match failure_in_time(reader, &handle).await {
        StreamError::Playlist { why, .. } => why,
        error => panic!("{error}"),
    }
}

const NO_SOUND: &str = "there is no sound in it that can be played";

#[tokio::test]
async fn numbers_beyond_all_bounds_are_refused_with_a_sentence() {
    let first = u64::MAX;
    let text = RECORDING.replacen("#EXTINF", &format!("#EXT-X-MEDIA-SEQUENCE:{first}\n#EXTINF"), 1);
    let server = Server::start(move |_, request, reply| playlist(request, reply, &text));
    assert_eq!(unplayable(&server).await, "the numbers of its segments are too large");
    // Ten bytes of a file without an end, and a server that sends more than it says.
    let server = Server::start(|_, request, reply| {
        if request.path.starts_with("/list.m3u8") {
            let range = format!("#EXT-X-BYTERANGE:10@{}", u64::MAX - 11);
            return playlist(
                request,
                reply,
                &format!("#EXTM3U\n#EXTINF:4,\n{range}\n0.aac\n#EXT-X-ENDLIST\n"),
            );
        }
        let range = format!("bytes {}-{}/*", u64::MAX - 11, u64::MAX - 2);
        reply.head(206, &[("Content-Type", "audio/aac"), ("Content-Range", &range)]);
        reply.body(&[0; 5_000]);
    });
    assert_eq!(unplayable(&server).await, NO_SOUND);
}

#[tokio::test]
async fn a_recording_without_any_sound_ends_with_the_reason() {
    let server = Server::start(|_, request, reply| match request.path.as_str() {
        path if path.starts_with("/list") => playlist(request, reply, RECORDING),
        _ => serve(request, reply, "audio/aac", b""),
    });
    assert_eq!(unplayable(&server).await, NO_SOUND);
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn a_long_recording_without_sound_is_not_fetched_to_its_end() {
    // A header without a frame in the second half.
    let segment = |n: u64| if n < 2 { Vec::new() } else { vec![0xff, 0xf1] };
    let server = Server::start(move |_, request, reply| match request.path.as_str() {
        path if path.starts_with("/list") => {
            playlist(request, reply, &(window(9_000, 9_000, 0.0) + "#EXT-X-ENDLIST\n"));
        }
        _ => serve(request, reply, "audio/aac", &segment(number(request))),
    });
    assert_eq!(unplayable(&server).await, NO_SOUND);
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn a_live_stream_of_which_no_segment_sounds_is_given_up() {
    let lists = AtomicUsize::new(0);
    let server = Server::start(move |_, request, reply| match request.path.as_str() {
        path if path.starts_with("/list") => {
            let end = 100 + 3 * lists.fetch_add(1, Ordering::SeqCst) as u64;
            playlist(request, reply, &window(end, 6, 0.0));
        }
        _ => serve(request, reply, "audio/aac", b""),
    });
    assert_eq!(unplayable(&server).await, NO_SOUND);
    assert_eq!(server.requests().len(), 7);
}

#[tokio::test]
async fn another_form_is_played_where_the_best_one_is_without_sound() {
    let server = Server::start(|_, request, reply| match request.path.as_str() {
        path if path.starts_with("/list.m3u8") => playlist(
            request,
            reply,
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=900,CODECS=\"mp4a.40.2\"\nmute/best.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=700,CODECS=\"mp4a.40.2\"\ngood.m3u8\n",
        ),
        path if path.ends_with(".m3u8") => playlist(request, reply, RECORDING),
        path if path.starts_with("/mute") => serve(request, reply, "audio/aac", b""),
        _ => serve(request, reply, "audio/aac", &frames(number(request), 100)),
    });
    let (reader, _handle) = open_list(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &all(0..3));
}

#[tokio::test]
async fn a_live_stream_that_falls_silent_is_waited_for_as_for_a_server_in_trouble() {
    let lists = AtomicUsize::new(0);
    let server = Server::start(move |_, request, reply| match request.path.as_str() {
        path if path.starts_with("/list") => {
            let text = match lists.fetch_add(1, Ordering::SeqCst) {
                0 => window(103, 3, 1.0),
                1 => window(110, 10, 1.0),
                _ => window(112, 12, 1.0) + "#EXT-X-ENDLIST\n",
            };
            playlist(request, reply, &text);
        }
        _ if (103..110).contains(&number(request)) => serve(request, reply, "audio/aac", b""),
        _ => serve(request, reply, "audio/aac", &frames(number(request), 100)),
    });
    let (reader, handle) = open_list(&server, &Resolver::never());
    let mut changes = handle.changes();
    assert_same(read_all(reader).await.0, &[all(100..103), all(110..112)].concat());
    let waiting = event(&mut changes, |event| matches!(event, StreamEvent::Waiting(..))).await;
    let text = format!("{} sends segments without sound", server.address);
    assert_eq!(waiting, StreamEvent::Waiting(WaitReason::Server, text));
    event(&mut changes, |event| *event == StreamEvent::Flowing).await;
}
