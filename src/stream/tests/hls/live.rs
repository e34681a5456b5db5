//! Live streams: a window that moves.

use super::*;

#[tokio::test]
async fn a_live_window_is_followed_from_near_its_end_to_the_end() {
    let list = |n| match n {
        0 | 1 => window(106, 6, 1.0),
        2 => window(108, 6, 1.0),
        _ => last_window(109, 6, 1.0),
    };
    let server = listing(list, segment);
    let (reader, handle) = open_list(&server, &Resolver::never());
    let mut changes = handle.changes();
    event(&mut changes, |event| *event == StreamEvent::Prefetching).await;
    assert!(handle.is_live());
    assert_same(read_all(reader).await.0, &all(103..109));
    assert_eq!(handle.status().error, None);
}

#[tokio::test]
async fn a_segment_that_left_the_window_is_passed_by() {
    let list = |n| if n == 0 { window(106, 6, 1.0) } else { last_window(112, 6, 1.0) };
    let server = listing(list, |request, reply| match request.path.as_str() {
        "/104.aac" => reply.status(404, &[]),
        _ => segment(request, reply),
    });
    let (reader, _handle) = open_list(&server, &Resolver::never());
    let stretches = read_stretches(reader).await;
    let heard: Vec<_> = stretches.iter().map(|(_, bytes)| bytes.len()).collect();
    assert!(stretches[0].1 == all(103..104) && stretches[1].1 == all(109..112), "{heard:?}");
}

#[tokio::test]
async fn a_live_segment_that_is_listed_before_it_is_there_is_waited_for() {
    let tries = AtomicUsize::new(0);
    let list = |n| if n < 3 { window(106, 6, 1.0) } else { last_window(106, 6, 1.0) };
    let server = listing(list, move |request, reply| match request.path.as_str() {
        "/105.aac" if tries.fetch_add(1, Ordering::SeqCst) < 2 => reply.status(404, &[]),
        _ => segment(request, reply),
    });
    let (reader, _handle) = open_list(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &all(103..106));
}

#[tokio::test]
async fn a_live_stream_is_heard_also_where_its_first_segment_never_comes() {
    let list = |n| if n < 4 { window(106, 6, 1.0) } else { last_window(106, 6, 1.0) };
    let server = listing(list, |request, reply| match request.path.as_str() {
        "/103.aac" => reply.status(404, &[]),
        _ => segment(request, reply),
    });
    let (reader, _handle) = open_list(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &all(104..106));
}
