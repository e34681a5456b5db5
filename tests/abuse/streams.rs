//! Bad answers to the question where a track's bytes are: the track is passed over, and music plays on.

use serde_json::json;

use crate::case::{Case, python};
use crate::stage::Stage;
use crate::support::prelude::*;

/// Answers `stream` so.
fn stream(id: &'static str, part: &'static str) -> Case {
    let part = format!("CAPABILITIES.append('stream')\ndef stream(id, params): {part}\n");
    let timeouts = json!({"stream": 800, "ping": 330});
    python(id, Box::leak(part.into_boxed_str()))
        .manifest(json!({"capabilities": ["search", "stream"], "timeouts_ms": timeouts}))
}

#[tokio::test]
async fn a_track_with_a_bad_answer_is_passed_over_and_music_plays_on() {
    let cases = [
        stream("stream-never", "pass"),
        stream("stream-null", "reply(id, None)"),
        stream("stream-file", "reply(id, {'url': 'file:///etc/passwd', 'content_type': 'audio/flac'})"),
        stream("stream-loopback", "reply(id, {'url': 'http://127.0.0.1:1/x', 'content_type': 'audio/flac'})"),
        stream(
            "stream-link-local",
            "reply(id, {'url': 'http://169.254.169.254/latest', 'content_type': 'audio/flac'})",
        ),
        stream("stream-scheme", "reply(id, {'url': 'gopher://example.org/', 'content_type': 'audio/flac'})"),
        stream("stream-no-url", "reply(id, {'url': 'no url at all', 'content_type': 'audio/flac'})"),
        stream("stream-number", "reply(id, {'url': 7, 'content_type': 'audio/flac'})"),
        stream(
            "stream-typing-error",
            "reply(id, {'url': 'http://127.0.0.1/', 'content_type': 'a/b', 'expire_at': None})",
        ),
        stream("stream-gone", "fail(id, {'code': 3, 'message': 'no such track'})"),
        stream(
            "stream-unavailable",
            "fail(id, {'code': 6, 'message': 'not here', 'data': {'reason': 'region'}})",
        ),
        stream("stream-hosts-code", "fail(id, {'code': -5, 'message': 'not enabled'})"),
        stream(
            "stream-header-split",
            "reply(id, {'url': 'http://127.0.0.1/', 'content_type': 'audio/flac', 'headers': {'A\\r\\nB': 'c'}})",
        ),
    ];
    let stage = Stage::open(&cases).await;
    let endless = stage.daemon.listed().await[0].1.clone();
    for case in &cases {
        stage.enable(case.id).await.unwrap();
        let uri = format!("segue:{}:track:x", case.id);
        let before = stage.daemon.errors().len();
        stage.daemon.play_uris(&[&uri, &endless]).await;
        until(&format!("an error about {}", case.id), || {
            stage.daemon.errors()[before..].iter().any(|error| error.contains(case.id))
        })
        .await;
        stage.music_plays().await.unwrap_or_else(|what| panic!("after {}: {what}", case.id));
        // So that it is not tried again when the queue comes round.
        for (entry, listed) in stage.daemon.listed().await {
            if listed == uri {
                stage.daemon.queue.call::<_, _, ()>("Remove", &(vec![entry],)).await.unwrap();
            }
        }
        stage.daemon.plugins.call::<_, _, ()>("Disable", &case.id).await.unwrap();
    }
}
