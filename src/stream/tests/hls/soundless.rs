//! Playlists of which nothing can be heard, and such as lie about their size.

use super::*;

const NO_SOUND: &str = "there is no sound in it that can be played";

/// Why a stream cannot be played, as the end of the sentence about its playlist.
async fn unplayable(server: &Server) -> String {
    let (reader, handle) = open_list(server, &Resolver::never());
    match failure_in_time(reader, &handle).await {
        StreamError::Playlist { why, .. } => why,
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn numbers_beyond_all_bounds_are_refused_with_a_sentence() {
    let first = u64::MAX;
    let text = RECORDING.replacen("#EXTINF", &format!("#EXT-X-MEDIA-SEQUENCE:{first}\n#EXTINF"), 1);
    let server = listing(move |_| text.clone(), segment);
    assert_eq!(unplayable(&server).await, "the numbers of its segments are too large");
    // Ten bytes of a file without an end, and a server that sends more than it says.
    let range = format!("#EXT-X-BYTERANGE:10@{}", u64::MAX - 11);
    let text = format!("#EXTM3U\n#EXTINF:4,\n{range}\n0.aac\n#EXT-X-ENDLIST\n");
    let server = listing(
        move |_| text.clone(),
        |_, reply| {
            let range = format!("bytes {}-{}/*", u64::MAX - 11, u64::MAX - 2);
            reply.head(206, &[("Content-Type", "audio/aac"), ("Content-Range", &range)]);
            reply.body(&[0; 5_000]);
        },
    );
    assert_eq!(unplayable(&server).await, NO_SOUND);
}

#[tokio::test]
async fn a_recording_without_any_sound_ends_with_the_reason() {
    let server = recording(|request, reply| serve(request, reply, "audio/aac", b""));
    assert_eq!(unplayable(&server).await, NO_SOUND);
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn a_long_recording_without_sound_is_not_fetched_to_its_end() {
    // A header without a frame in the second half.
    let server = listing(
        |_| last_window(9_000, 9_000, 0.0),
        |request, reply| {
            let body: &[u8] = if number(request) < 2 { &[] } else { &[0xff, 0xf1] };
            serve(request, reply, "audio/aac", body);
        },
    );
    assert_eq!(unplayable(&server).await, NO_SOUND);
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn a_live_stream_of_which_no_segment_sounds_is_given_up() {
    let list = |n| window(100 + 3 * n as u64, 6, 0.0);
    let server = listing(list, |request, reply| serve(request, reply, "audio/aac", b""));
    assert_eq!(unplayable(&server).await, NO_SOUND);
    assert_eq!(server.requests().len(), 7);
}

#[tokio::test]
async fn a_live_stream_that_falls_silent_is_waited_for_as_for_a_server_in_trouble() {
    let list = |n| match n {
        0 => window(103, 3, 1.0),
        1 => window(110, 10, 1.0),
        _ => last_window(112, 12, 1.0),
    };
    let server = listing(list, |request, reply| match number(request) {
        103..110 => serve(request, reply, "audio/aac", b""),
        _ => segment(request, reply),
    });
    let (reader, handle) = open_list(&server, &Resolver::never());
    let mut changes = handle.changes();
    assert_same(read_all(reader).await.0, &[all(100..103), all(110..112)].concat());
    let waiting = event(&mut changes, |event| matches!(event, StreamEvent::Waiting(..))).await;
    let text = format!("{} sends segments without sound", server.address);
    assert_eq!(waiting, StreamEvent::Waiting(WaitReason::Server, text));
    event(&mut changes, |event| *event == StreamEvent::Flowing).await;
}
