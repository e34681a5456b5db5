//! Seeks, and what is fetched for them.

use super::*;

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
    let (got, reader) = read_at(reader, 1_400_000, 100_000).await;
    assert!(got == data[1_400_000..1_500_000]);
    // More than the store holds, so that the beginning is gone for certain.
    let (got, mut reader) = read_at(reader, 1_500_000, 490_000).await;
    assert!(got == data[1_500_000..1_990_000]);
    let error = reader.seek(SeekFrom::Start(10)).unwrap_err();
    assert!(matches!(StreamError::of(&error), Some(StreamError::NotSeekable { offset: 10, .. })));
    assert!(!error.to_string().contains("secret"));
    // Within what is held it works, and nothing is lost.
    let (got, _reader) = read_at(reader, 1_985_000, 15_000).await;
    assert!(got == data[1_985_000..]);
    assert_eq!(server.ranges(), [Some(0)]);
}
