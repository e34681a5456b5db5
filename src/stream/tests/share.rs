//! Ending, interrupting, and the memory that tracks share.

use super::*;

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
