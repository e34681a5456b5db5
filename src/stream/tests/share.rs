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

#[tokio::test]
async fn a_paused_stream_closes_its_connection_and_goes_on_at_the_same_byte_with_one_fresh_address() {
    let data = data(3_000_000);
    let source = Arc::clone(&data);
    // The first answer is slow, so that the pause comes in its midst.
    let server = Server::start(move |number, request, reply| {
        if number > 0 {
            return reply.range(request, &source);
        }
        reply.range_head(request, &source, "\"one\"");
        for piece in source.chunks(10_000) {
            reply.body(piece);
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let fresh = server.url("/fresh");
    let resolver = Resolver::new(move |_| Ok(ResolvedStream::plain(fresh.clone())));
    let lifetime = Duration::from_secs(2);
    let expiry = Expiry::Deadline { at: Instant::now() + lifetime, lifetime };
    let resolved = ResolvedStream { expiry, ..ResolvedStream::plain(server.url("/a")) };
    let (reader, handle) = open_with(settings(), resolved, &resolver);
    let (begun, mut reader) = read_at(reader, 0, 100_000).await;
    assert!(begun[..] == data[..100_000]);
    handle.hold(true);
    // Longer than a paused connection and the address live.
    tokio::time::sleep(Duration::from_millis(2300)).await;
    let held = handle.status().received + 100_000;
    assert!(held < 1_500_000, "the connection was closed in its midst");
    assert_eq!((resolver.calls(), server.requests().len()), (0, 1), "nothing is asked during a pause");
    handle.hold(false);
    let rest = spawn_blocking(move || {
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).map(|_| rest)
    });
    assert_same(rest.await.unwrap(), &data[100_000..]);
    assert_eq!(resolver.calls(), 1);
    assert_eq!(server.ranges(), [Some(0), Some(held)]);
}

#[tokio::test]
async fn a_seek_back_to_what_was_given_up_for_the_next_track_fetches_what_is_missing_alone() {
    let data = data(1_500_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| reply.range(request, &source));
    let streams = Streams::new(Settings { buffer: 2 * 1024 * 1024, ..settings() }).unwrap();
    let open = |name: &str| {
        let url = ResolvedStream::plain(server.url(&format!("/{name}")));
        streams.open(url, Resolver::never(), name.to_owned())
    };
    let (first, first_handle) = open("first");
    let mut changes = first_handle.changes();
    complete(&mut changes).await;
    let (_, first) = read_at(first, 1_000_000, 50_000).await;
    let (_second, second_handle) = open("second");
    // The next track takes what is free, and then what it is due: what lies behind the first one's reader goes for it.
    let holds = async |bytes: u64| {
        while second_handle.status().received < bytes {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    holds(500 * 1024).await;
    let mut first = first;
    for offset in (1_050_000..1_450_000).step_by(70_000).cycle().take(60) {
        if second_handle.status().received >= 800 * 1024 {
            break;
        }
        first = read_at(first, offset, 70_000).await.1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (again, _first) = read_at(first, 0, 1_500_000).await;
    assert!(again == **data);
    let asked = server.requests();
    let of_first: Vec<_> = asked.iter().filter(|request| request.path == "/first").collect();
    assert!(of_first.len() >= 2, "it was not given up, so this test shows nothing");
}
