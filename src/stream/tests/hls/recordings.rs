//! Recordings: pieces that are read as one, whatever happens to a piece.

use super::*;

#[tokio::test]
async fn a_recording_in_pieces_is_read_as_one() {
    let server = recording(|request, reply| {
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
    let server = recording(move |request, reply| {
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
    let server = recording(move |request, reply| {
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
    let server = recording(|request, reply| match request.path.as_str() {
        "/1.aac" => reply.status(404, &[]),
        _ => segment(request, reply),
    });
    let url = server.url("/list.m3u8?key=secret");
    let resolver = Resolver::new(move |_| Ok(ResolvedStream::plain(url.clone())));
    let (reader, _handle) = open_list(&server, &resolver);
    let error = failure(reader).await;
    assert!(matches!(error, StreamError::Refused { status: 404, .. }), "{error}");
    assert!(!paths(&server).contains(&"/2.aac".to_owned()));
}

#[tokio::test]
async fn a_discontinuity_begins_another_recording_with_its_own_type() {
    let mp3 = [&[0xff, 0xfb, 0x90, 0x64][..], &[0x55; 413]].concat().repeat(30);
    let served = mp3.clone();
    let text = RECORDING.replace("\n1.aac", "\n#EXT-X-DISCONTINUITY\n1.aac");
    let text = text.replace("\n2.aac", "\n#EXT-X-DISCONTINUITY\n2.aac");
    let server = listing(
        move |_| text.clone(),
        move |request, reply| match request.path.as_str() {
            "/1.aac" => serve(request, reply, "audio/mpeg", &served),
            _ => segment(request, reply),
        },
    );
    let (reader, _handle) = open_list(&server, &Resolver::never());
    let stretches = read_stretches(reader).await;
    let types: Vec<_> = stretches.iter().map(|(kind, _)| kind.as_deref().unwrap()).collect();
    assert_eq!(types, ["audio/aac", "audio/mpeg", "audio/aac"]);
    assert!(stretches[0].1 == all(0..1) && stretches[1].1 == mp3 && stretches[2].1 == all(2..3));
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
    let server = listing(
        move |_| text.clone(),
        move |request, reply| {
            serve(request, reply, "video/mp4", &served);
        },
    );
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
async fn a_paused_recording_closes_its_connection_and_goes_on_without_a_gap() {
    let server = recording(|request, reply| reply.range(request, &frames(number(request), 5_000)));
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
