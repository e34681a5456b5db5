use super::*;

#[tokio::test]
async fn answers_out_of_order_reach_their_callers() {
    let bench = Bench::new();
    let hook = r#"
held = []
def stream(id, p):
    held.append((id, p["content_id"]))
    if len(held) == 16:
        for i, c in reversed(held): answer(i, url(c))
        held.clear()
"#;
    bench.python("demo", hook, json!({}));
    let host = bench.enabled("demo").await;
    let names: Vec<String> = (0..32).map(|n| n.to_string()).collect();
    let calls = names.iter().map(|name| ask(&host, "demo", name));
    let answers = futures_util::future::join_all(calls).await;
    for (name, answer) in names.iter().zip(answers) {
        assert_eq!(&answer.unwrap(), name);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_stray_print_costs_the_calls_in_flight_and_no_more() {
    let bench = Bench::new();
    let hook = r#"
def stream(id, p):
    c = p["content_id"]
    if c == "print": put("hello"); return
    if c == "bytes": sys.stdout.buffer.write(b"\xff\xfe\n"); sys.stdout.flush(); return
    if c == "list": put("[1]"); return
    if c == "junk and answer": sys.stdout.buffer.write(b"\xff\n" + json.dumps({"jsonrpc": "2.0", "id": id, "result": url("late")}).encode() + b"\n"); sys.stdout.flush(); return
    answer(id, url(c))
"#;
    bench.python("demo", hook, json!({}));
    let host = bench.enabled("demo").await;
    for junk in ["print", "bytes", "list", "junk and answer"] {
        assert_eq!(code(&host, "demo", junk).await, ErrorCode::ParseError, "{junk}");
        assert_eq!(ask(&host, "demo", "fine").await.unwrap(), "fine", "after {junk}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn three_lines_of_junk_in_a_row_stop_the_process() {
    let bench = Bench::new();
    bench.python(
        "demo",
        "def stream(id, p):\n    put(str(os.getpid())); put('b'); put('c'); time.sleep(60)",
        json!({}),
    );
    let host = bench.enabled("demo").await;
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::ParseError);
    // The next call is served by a new process, or found the old one's end; both end in junk.
    for _ in 0..2 {
        assert!(matches!(code(&host, "demo", "1").await, ErrorCode::ParseError | ErrorCode::PluginCrashed));
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_line_of_ten_mebibytes_is_read_and_one_byte_more_is_refused() {
    let bench = Bench::new();
    let hook = r#"
def stream(id, p):
    size, piece = map(int, p["content_id"].split("-"))
    head = '{"jsonrpc":"2.0","id":%d,"result":{"url":"http://h/ok","content_type":"a/b","x_pad":"' % id
    text = (head + "x" * (size - len(head) - 3) + '"}}\n').encode()
    out = sys.stdout.buffer.raw
    sent = 0
    while sent < len(text): sent += out.write(text[sent:sent + piece])
"#;
    bench.python("demo", hook, json!({}));
    let host = bench.enabled("demo").await;
    let most = segue_protocol::MAX_LINE_BYTES;
    for piece in [4_096, 1_000_000] {
        assert_eq!(ask(&host, "demo", &format!("{most}-{piece}")).await.unwrap(), "ok");
        assert_eq!(code(&host, "demo", &format!("{}-{piece}", most + 1)).await, ErrorCode::ParseError);
        assert_eq!(ask(&host, "demo", &format!("{}-{piece}", 20_000)).await.unwrap(), "ok");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_late_reply_is_dropped_and_the_next_call_gets_its_own() {
    let bench = Bench::new();
    let hook = r#"
late = []
def stream(id, p):
    if p["content_id"] == "late": late.append(id); return
    for i in late: answer(i, url("late"))
    late.clear()
    answer(id, url(p["content_id"]))
"#;
    bench.python("demo", hook, json!({"timeouts_ms": {"stream": 200}}));
    let host = bench.enabled("demo").await;
    assert_eq!(code(&host, "demo", "late").await, ErrorCode::PluginTimeout);
    for name in ["a", "b", "c"] {
        assert_eq!(ask(&host, "demo", name).await.unwrap(), name);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn messages_of_the_wrong_shape_cost_their_own_call() {
    let bench = Bench::new();
    let hook = r#"
def raw(**m): put(json.dumps(dict({"jsonrpc": "2.0"}, **m)))
def stream(id, p):
    c = p["content_id"]
    if c == "typo": answer(id, url("x", expire_at="2030-01-01T00:00:00Z"))
    elif c == "file": answer(id, {"url": "file:///etc/passwd", "content_type": "a/b"})
    elif c == "both": raw(id=id, result=url("x"), error={"code": 1, "message": "x"})
    elif c == "neither": raw(id=id)
    elif c == "field": raw(id=id, result=url("x"), note=1)
    elif c == "host code": fail(id, -5, "no")
    elif c == "unknown code": fail(id, 99, "no")
    elif c == "gone": fail(id, 3, "no such track")
    elif c == "login": fail(id, 4, "log in")
    elif c == "slow down": fail(id, 5, "slow down", retry_after_ms=1500)
    elif c == "region": fail(id, 6, "not here", reason="region")
    else:
        raw(method="log", params={}); raw(method="call", id=id); raw(id="text", result=1); raw(id=None, result=1)
        raw(id=id, result=url("fine", x_more={"y": 1}), x_trace="t")
"#;
    bench.python("demo", hook, json!({}));
    let host = bench.enabled("demo").await;
    for wrong in ["typo", "both", "neither", "field", "host code", "unknown code"] {
        assert_eq!(code(&host, "demo", wrong).await, ErrorCode::PluginProtocolError, "{wrong}");
    }
    assert_eq!(code(&host, "demo", "file").await, ErrorCode::ScopeDenied);
    assert_eq!(ask(&host, "demo", "").await.unwrap(), "fine");
    let error = ask(&host, "demo", "slow down").await.unwrap_err();
    assert_eq!((error.code, error.retry_after), (ErrorCode::RateLimited, Some(Duration::from_millis(1_500))));
    assert_eq!(ask(&host, "demo", "region").await.unwrap_err().reason.as_deref(), Some("region"));
    use crate::track::{ResolveError, ResolveErrorKind as Kind};
    for (name, kind) in [
        ("gone", Kind::Gone),
        ("region", Kind::Gone),
        ("login", Kind::NeedsPerson),
        ("slow down", Kind::Later(Some(Duration::from_millis(1_500)))),
    ] {
        let error: ResolveError = ask(&host, "demo", name).await.unwrap_err().into();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains("demo"), "{error}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_search_asks_all_at_once_and_one_silent_plugin_holds_up_nobody() {
    let bench = Bench::new();
    bench.python("a", "", json!({}));
    bench.python("mute", "def search(id, p): pass", json!({"timeouts_ms": {"search": 700}}));
    bench.python("z", "", json!({}));
    bench.python("noting", "", json!({"capabilities": ["search", "get_track", "stream"]}));
    let host = bench.host().await;
    for name in ["a", "mute", "z"] {
        allow(&host, name).await.unwrap();
    }
    let outcome = host.search(&search("x y", 10, None)).await;
    let titles: Vec<_> =
        outcome.results.iter().map(|hit| (hit.title.as_str(), hit.uri.to_string())).collect();
    assert_eq!(titles, [("a", "segue:a:track:x%20y".to_owned()), ("z", "segue:z:track:x%20y".to_owned())]);
    assert_eq!(outcome.errors.len(), 1);
    assert_eq!((outcome.errors[0].0.as_str(), outcome.errors[0].1.code), ("mute", ErrorCode::PluginTimeout));
    let one = host.search(&search("q", 10, Some("noting"))).await;
    assert_eq!(one.errors[0].1.code, ErrorCode::PluginNotEnabled);
    host.shutdown().await;
}

#[tokio::test]
async fn metadata_becomes_the_programs_own() {
    let bench = Bench::new();
    let hook = r#"
def initialize(id, p):
    answer(id, {"protocol": "segue.plugin/1", "id": ME, "version": "1", "scopes": [],
                "capabilities": ["get_track", "get_album", "get_artist"]})
def get_track(id, p): answer(id, {"track": {"content_id": "1", "title": "T", "artists": [{"name": "A"}], "album": {"title": "L"},
    "track_no": 2, "duration_ms": 1500, "date": "2001", "genres": ["g"], "gain": {"track_db": -3.5}}})
stub = {"content_id": "s", "title": "S", "track_no": 1}
def get_album(id, p): answer(id, {"album": {"content_id": "al", "title": "L", "tracks": [stub], "artists": [{"name": "A"}], "album_type": "ep"}})
def get_artist(id, p): answer(id, {"artist": {"content_id": "ar", "name": "A", "albums": [{"title": "L", "content_id": "al"}], "top_tracks": [stub]}})
"#;
    let all = json!({"capabilities": ["search", "get_track", "get_album", "get_artist", "stream"]});
    bench.python("demo", hook, all);
    let host = bench.enabled("demo").await;
    let info = host.track(&track("demo", "1")).await.unwrap();
    assert_eq!((info.title.as_deref(), info.album.as_deref()), (Some("T"), Some("L")));
    assert_eq!(info.duration, Some(Duration::from_millis(1_500)));
    let album = host.album(&track("demo", "al")).await.unwrap();
    assert_eq!(album.tracks[0].0, track("demo", "s"));
    assert_eq!(album.complete(&album.tracks[0].1).album.as_deref(), Some("L"));
    let artist = host.artist(&track("demo", "ar")).await.unwrap();
    assert_eq!(artist.albums[0].1.as_ref().unwrap().to_string(), "segue:demo:album:al");
    // Left out of the handshake: it does not work now.
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::CapabilityMissing);
    host.shutdown().await;
}
