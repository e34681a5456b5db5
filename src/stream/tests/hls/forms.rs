//! The same in several forms, of which one is played; what is encrypted.

use super::*;

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
        path if path.starts_with("/sub/") => segment(request, reply),
        _ => reply.status(500, &[]),
    });
    let (reader, _handle) = open_list(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &all(0..3));
}

#[tokio::test]
async fn an_encrypted_stream_is_refused_with_the_reason() {
    let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"key.bin?secret\"\n#EXTINF";
    let server = listing(move |_| RECORDING.replacen("#EXTINF", key, 1), segment);
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
        _ => segment(request, reply),
    });
    let (reader, _handle) = open_list(&server, &Resolver::never());
    assert_same(read_all(reader).await.0, &all(0..3));
}
