use super::*;
use crate::track::Kind;

/// Writes down what it is asked.
const NOTING: &str = r#"
def note(method, p): open(INIT["dirs"]["data"] + "/asked", "a").write(method + " " + p.get("content_id", "") + "\n")
held = []
def stream(id, p):
    note("stream", p)
    if p["content_id"] != "held": return answer(id, url(p["content_id"], expires_in_ms=1))
    held.append(id)
def get_track(id, p):
    note("get_track", p)
    for one in held: answer(one, url("held"))
    answer(id, {"track": {"content_id": p["content_id"], "title": "T"}})
def search(id, p):
    answer(id, {"results": [{"kind": k, "content_id": k, "title": json.dumps(p)} for k in ("track", "album", "artist")]})
"#;

fn asked(bench: &Bench) -> Vec<String> {
    let text = fs::read_to_string(bench.path("state/plugin-data/demo/asked")).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn who_asks_for_a_stream_that_is_being_asked_for_shares_the_answer() {
    let bench = Bench::new();
    bench.python("demo", NOTING, json!({}));
    let host = bench.enabled("demo").await;
    let both = async { tokio::join!(ask(&host, "demo", "held"), ask(&host, "demo", "held")) };
    // The plugin answers what it holds when it is asked for a track.
    let release = async {
        while asked_or_nothing(&bench).is_empty() {
            tokio::task::yield_now().await;
        }
        host.track(&track("demo", "release")).await.unwrap();
    };
    let ((first, second), ()) = tokio::join!(both, release);
    assert_eq!((first.unwrap().as_str(), second.unwrap().as_str()), ("held", "held"));
    assert_eq!(asked(&bench), ["stream held", "get_track release"]);
    // An answer that came is not kept: who asks again has a reason to.
    ask(&host, "demo", "other").await.unwrap();
    ask(&host, "demo", "other").await.unwrap();
    assert_eq!(asked(&bench)[2..], ["stream other", "stream other"]);
    host.shutdown().await;
}

fn asked_or_nothing(bench: &Bench) -> String {
    fs::read_to_string(bench.path("state/plugin-data/demo/asked")).unwrap_or_default()
}

#[tokio::test]
async fn metadata_is_asked_for_once_until_the_plugin_is_enabled_anew() {
    let bench = Bench::new();
    bench.python("demo", NOTING, json!({}));
    let host = bench.enabled("demo").await;
    for _ in 0..3 {
        assert_eq!(host.track(&track("demo", "1")).await.unwrap().title.as_deref(), Some("T"));
    }
    assert_eq!(asked(&bench), ["get_track 1"]);
    host.disable("demo", &who()).await.unwrap();
    assert_eq!(host.track(&track("demo", "1")).await.unwrap_err().code, ErrorCode::PluginNotEnabled);
    host.enable("demo", &[], &who()).await.unwrap();
    host.track(&track("demo", "1")).await.unwrap();
    assert_eq!(asked(&bench), ["get_track 1", "get_track 1"]);
    host.shutdown().await;
}

#[tokio::test]
async fn a_search_for_some_kinds_gets_only_those() {
    let bench = Bench::new();
    bench.python("demo", NOTING, json!({}));
    let host = bench.enabled("demo").await;
    let outcome = host.search(&Search { kinds: vec![Kind::Album], ..search("x", 10, None) }).await;
    let found: Vec<_> = outcome.results.iter().map(|hit| hit.kind).collect();
    assert_eq!(found, [Kind::Album]);
    let told: Value = serde_json::from_str(&outcome.results[0].title).unwrap();
    assert_eq!(told, json!({"query": "x", "limit": 10, "kinds": ["album"]}));
    host.shutdown().await;
}

#[tokio::test]
async fn health_follows_calls_and_runs_and_calls_are_counted() {
    let bench = Bench::new();
    let hook = r#"
def stream(id, p):
    if p["content_id"] == "die": os._exit(3)
    if p["content_id"] == "odd": return answer(id, {"url": 7})
    if p["content_id"] == "twice": answer(id, url("twice"))
    answer(id, url(p["content_id"]))
"#;
    bench.python("demo", hook, json!({}));
    let host = bench.host().await;
    assert_eq!(host.health("demo").unwrap().health, Health::Unknown);
    allow(&host, "demo").await.unwrap();
    assert_eq!(host.health("demo").unwrap().health, Health::Healthy);
    ask(&host, "demo", "twice").await.unwrap();
    ask(&host, "demo", "fine").await.unwrap();
    assert_eq!(code(&host, "demo", "odd").await, ErrorCode::PluginProtocolError);
    let health = host.health("demo").unwrap();
    assert_eq!(health.health, Health::Degraded);
    assert!(health.reason.contains("PLUGIN_PROTOCOL_ERROR"), "{}", health.reason);
    assert_eq!((health.counts.errors, health.counts.late_replies, health.counts.restarts), (1, 1, 0));
    assert!(health.counts.p50.is_some() && health.counts.p50 <= health.counts.p99);
    assert_eq!(code(&host, "demo", "die").await, ErrorCode::PluginCrashed);
    let health = host.health("demo").unwrap();
    assert_eq!((health.health, health.running), (Health::Unhealthy, false));
    ask(&host, "demo", "fine").await.unwrap();
    let health = host.health("demo").unwrap();
    assert_eq!((health.health, health.counts.restarts), (Health::Degraded, 1));
    host.shutdown().await;
}

#[tokio::test]
async fn while_it_runs_a_plugin_is_asked_how_it_is() {
    let bench = Bench::new();
    let hook = r#"
pings = 0
def ping(id, p):
    global pings
    pings += 1
    if pings == 2: answer(id, {"status": "ok", "version": "1", "capabilities": ["stream"]})
    elif pings == 3: time.sleep(60)
    else: answer(id, {"status": "tired", "version": "1", "capabilities": ["stream"]})
"#;
    bench.python("demo", hook, json!({"timeouts_ms": {"ping": 500}}));
    let limits = Limits { ping_every: Duration::from_millis(200), ..bench.settings().limits };
    let host = Host::start(Settings { limits, ..bench.settings() }).await.unwrap();
    allow(&host, "demo").await.unwrap();
    let mut seen = Vec::new();
    let watching = async {
        while !seen.contains(&(Health::Unhealthy, "it does not answer".to_owned())) {
            let health = host.health("demo").unwrap();
            if seen.last() != Some(&(health.health, health.reason.clone())) {
                seen.push((health.health, health.reason));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, watching).await.unwrap();
    let words: Vec<&str> = seen.iter().map(|(_, why)| why.as_str()).collect();
    assert!(words.contains(&"tired"), "{words:?}");
    assert!(words.contains(&"it does not offer search, get_track now"), "{words:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn what_is_to_be_played_does_not_wait_behind_questions() {
    let bench = Bench::new();
    bench.python("demo", "def get_track(id, p): pass", json!({}));
    let host = bench.enabled("demo").await;
    let questions: Vec<_> = (0..100)
        .map(|number| {
            let host = host.clone();
            tokio::spawn(async move { host.track(&track("demo", &number.to_string())).await })
        })
        .collect();
    while host.health("demo").unwrap().counts.bytes_sent < 1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(ask(&host, "demo", "music").await.unwrap(), "music");
    host.disable("demo", &who()).await.unwrap();
    for question in questions {
        assert_eq!(question.await.unwrap().unwrap_err().code, ErrorCode::PluginNotEnabled);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn secrets_are_in_no_log_and_in_no_error() {
    let bench = Bench::new();
    let hook = r#"
def stream(id, p):
    secret = INIT["secrets"]["password"]
    if p["content_id"] == "name": return answer(id, url("x", **{secret: 1}))
    if p["content_id"] == "value": return answer(id, url("x", duration_ms=secret + "\x1b[2J"))
    if p["content_id"] == "file": return answer(id, {"url": "file:///" + secret, "content_type": "audio/flac"})
    sys.stderr.write("W! logging in with " + secret + " at https://me:pw@host/x?token=abc\n"); sys.stderr.flush()
    fail(id, 4, "no: " + secret + " Authorization: Bearer xyz", reason=secret)
"#;
    bench.python("demo", hook, json!({"scopes": [{"scope": "secret:password", "reason": "logs in"}]}));
    fs::write(bench.path("config/plugins/demo.toml"), "[secrets]\npassword = \"hunter2!\"\n").unwrap();
    let host = bench.enabled("demo").await;
    let error = ask(&host, "demo", "1").await.unwrap_err();
    assert_eq!(error.message, "no: [redacted] Authorization: [redacted]");
    assert_eq!(error.reason.as_deref(), Some("[redacted]"));
    for content in ["name", "value", "file"] {
        let error = ask(&host, "demo", content).await.unwrap_err().to_string();
        assert!(error.contains("[redacted]") && !error.contains(['\x1b', '!']), "{error}");
    }
    let (newest, lines) = host.log_after("demo", 0, LONG).await.unwrap();
    let [line] = &lines[..] else { panic!("{lines:?}") };
    let text = "logging in with [redacted] at https://[redacted]@host/x?token=[redacted]";
    assert_eq!((line.level, line.text.as_str()), (LogLevel::Warn, text));
    assert_eq!(newest, 1);
    assert_eq!(host.logs("demo", 9).unwrap(), lines);
    host.shutdown().await;
}
