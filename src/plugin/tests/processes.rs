use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::*;

/// Answers with what a plugin can see of itself.
const LOOK: &str = r#"
def stream(id, p):
    fds = []
    for n in range(1024):
        try: os.fstat(n); fds.append(n)
        except OSError: pass
    seen = {"env": dict(os.environ), "fds": fds, "cwd": os.getcwd(), "group": os.getpgid(0) != 0,
            "etc": os.path.exists("/etc/passwd"), "proc": os.path.exists("/proc/self"), "init": INIT["dirs"]}
    open(INIT["dirs"]["data"] + "/seen.json", "w").write(json.dumps(seen))
    open(INIT["dirs"]["cache"] + "/x", "w").write("x")
    open(os.environ["TMPDIR"] + "/x", "w").write("x")
    answer(id, url("done"))
"#;

#[tokio::test]
async fn the_environment_and_the_descriptors_are_exactly_what_is_documented() {
    let bench = Bench::new();
    bench.python("demo", LOOK, json!({}));
    // A descriptor that was opened without close-on-exec does not reach a plugin either.
    let (leak, _other) = nix::unistd::pipe().unwrap();
    let host = bench.enabled("demo").await;
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "done");
    drop(leak);
    let seen: Value =
        serde_json::from_slice(&fs::read(bench.path("state/plugin-data/demo/seen.json")).unwrap()).unwrap();
    let mut names: Vec<_> = seen["env"].as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["LANG", "PATH", "PYTHONDONTWRITEBYTECODE", "SEGUE_PLUGIN_PROTOCOL", "TMPDIR"]);
    assert_eq!(seen["env"]["PATH"], "/usr/local/bin:/usr/bin:/bin");
    assert_eq!(seen["fds"], json!([0, 1, 2]));
    assert!(seen["cwd"].as_str().unwrap().contains("/packages/"));
    if confined(&host) {
        assert_eq!((&seen["etc"], &seen["proc"]), (&json!(false), &json!(false)));
    }
    host.shutdown().await;
}

#[tokio::test]
async fn without_the_scope_network_there_is_no_network() {
    let bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let hook = format!(
        "import socket\ndef stream(id, p):\n    try: socket.create_connection(('127.0.0.1', {port}), 2); answer(id, url('open'))\n    except OSError: answer(id, url('shut'))"
    );
    bench.python("demo", &hook, json!({"scopes": [{"scope": "network", "reason": "fetches"}]}));
    let host = bench.host().await;
    if !confined(&host) {
        eprintln!("skipped: {}", host.list()[0].isolation);
        return;
    }
    host.trust("demo", &host.list()[0].fingerprint, &who()).await.unwrap();
    host.enable("demo", &[], &who()).await.unwrap();
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "shut");
    host.enable("demo", &["network".to_owned()], &who()).await.unwrap();
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "open");
    host.shutdown().await;
}

#[tokio::test]
async fn a_plugin_that_dies_fails_its_calls_at_once_and_the_next_call_restarts_it() {
    let bench = Bench::new();
    bench.python(
        "demo",
        "def stream(id, p):\n    if p['content_id'] != 'hold': answer(id, url('fine'))",
        json!({}),
    );
    let host = bench.enabled("demo").await;
    let mark = bench.path("state/packages").display().to_string();
    let began = Instant::now();
    let holding = async { tokio::join!(code(&host, "demo", "hold"), code(&host, "demo", "hold")) };
    let killing = async {
        // Answered after the two calls that are held were taken, as there is one line for each.
        ask(&host, "demo", "x").await.unwrap();
        for pid in processes_with(&mark) {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
    };
    let (codes, ()) = tokio::join!(holding, killing);
    assert_eq!(codes, (ErrorCode::PluginCrashed, ErrorCode::PluginCrashed));
    assert!(began.elapsed() < Duration::from_secs(10), "not after the time-out");
    assert_eq!(ask(&host, "demo", "y").await.unwrap(), "fine");
    host.shutdown().await;
}

#[tokio::test]
async fn a_plugin_that_crashes_again_and_again_is_faulted_until_a_person_enables_it() {
    let bench = Bench::new();
    bench.python("demo", "def stream(id, p): os._exit(3)", json!({}));
    let limits = Limits { backoff_first: Duration::from_millis(10), ..bench.settings().limits };
    let host = Host::start(Settings { limits, ..bench.settings() }).await.unwrap();
    allow(&host, "demo").await.unwrap();
    for _ in 0..5 {
        let error = ask(&host, "demo", "1").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::PluginCrashed);
        assert!(error.message.contains("exit status: 3"), "{error}");
    }
    let error = ask(&host, "demo", "1").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PluginFaulted);
    assert!(error.retry_after.unwrap() > Duration::from_secs(500));
    host.enable("demo", &[], &who()).await.unwrap();
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::PluginCrashed);
    host.shutdown().await;
}

#[tokio::test]
async fn a_program_that_cannot_start_says_why() {
    let bench = Bench::new();
    bench.plugin("demo", "#!/bin/sh\necho 'E! the library is missing' >&2\nexit 7\n", json!({}));
    let host = bench.host().await;
    let Err(HostError::Handshake(error)) = allow(&host, "demo").await else { panic!("enabled") };
    assert_eq!(error.code, ErrorCode::PluginCrashed);
    assert!(
        error.message.contains("exit status: 7") && error.message.contains("library is missing"),
        "{error}"
    );
}

#[tokio::test]
async fn a_silent_plugin_costs_its_time_out_while_another_answers() {
    let bench = Bench::new();
    bench.python(
        "mute",
        "def stream(id, p): time.sleep(60)",
        json!({"timeouts_ms": {"stream": 400, "ping": 300}}),
    );
    bench.python("other", "", json!({}));
    let host = bench.host().await;
    for name in ["mute", "other"] {
        allow(&host, name).await.unwrap();
    }
    let began = Instant::now();
    let silent = async { (code(&host, "mute", "1").await, began.elapsed()) };
    let other = async { (ask(&host, "other", "2").await.unwrap(), began.elapsed()) };
    let ((silent, late), (answer, early)) = tokio::join!(silent, other);
    assert_eq!((silent, answer.as_str()), (ErrorCode::PluginTimeout, "2"));
    assert!(early < late && late >= Duration::from_millis(400), "{early:?} {late:?}");
    // It does not answer a ping either, so it is ended; the next call starts it anew.
    while host.list()[0].running {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(code(&host, "mute", "1").await, ErrorCode::PluginTimeout);
    host.shutdown().await;
}

#[tokio::test]
async fn standard_error_is_drained_and_its_newest_lines_are_kept() {
    let bench = Bench::new();
    let hook = "def stream(id, p):\n    for n in range(4000): sys.stderr.write('W! %04d %s\\n' % (n, 'x' * 60))\n    sys.stderr.write('é' * 3000 + '\\n'); sys.stderr.flush()\n    answer(id, url('ok'))";
    bench.python("demo", hook, json!({}));
    let host = bench.enabled("demo").await;
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "ok");
    host.shutdown().await;
    let log = host.logs("demo", 5_000).unwrap();
    assert_eq!(log.len(), 1_000);
    assert!(log[998].text.starts_with("3999 "), "{}", log[998].text);
    assert_eq!((log[999].text.len(), log[998].level), (2_048, LogLevel::Warn));
}

#[tokio::test]
async fn an_unused_plugin_is_stopped_unless_its_track_is_open() {
    let bench = Bench::new();
    bench.python("demo", "", json!({"idle_stop_s": 0}));
    let host = bench.enabled("demo").await;
    let resolver = host.resolver(track("demo", "1"));
    resolver.resolve().await.unwrap();
    resolver.resolve().await.unwrap();
    assert!(host.list()[0].running);
    drop(resolver);
    ask(&host, "demo", "1").await.unwrap();
    while host.list()[0].running {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ask(&host, "demo", "1").await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn pings_do_not_keep_an_unused_plugin_and_one_that_never_idles_stays() {
    let bench = Bench::new();
    bench.python("brief", "", json!({"idle_stop_s": 1}));
    bench.python("lasting", "", json!({"idle_stop_s": -1}));
    let limits = Limits { ping_every: Duration::from_millis(200), ..bench.settings().limits };
    let host = Host::start(Settings { limits, ..bench.settings() }).await.unwrap();
    for name in ["brief", "lasting"] {
        allow(&host, name).await.unwrap();
    }
    let running = |name: &str| host.inspect(name).unwrap().summary.running;
    assert!(running("brief") && running("lasting"));
    let stopped = async {
        while running("brief") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, stopped).await.unwrap();
    assert!(running("lasting") && host.health("lasting").unwrap().counts.calls > 1);
    host.shutdown().await;
}

#[tokio::test]
async fn there_are_never_two_processes_of_one_plugin() {
    let bench = Bench::new();
    let hook = r#"
def stream(id, p):
    if p["content_id"] == "die": os._exit(1)
    answer(id, url("ok"))
lockfile = None
def initialize(id, p):
    global lockfile
    import fcntl
    lockfile = open(p["dirs"]["data"] + "/lock", "w")
    try: fcntl.flock(lockfile, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError: open(p["dirs"]["data"] + "/two", "w").write("x")
    answer(id, {"protocol": "segue.plugin/1", "id": ME, "version": "1", "scopes": [], "capabilities": ["stream"]})
"#;
    bench.python("demo", hook, json!({}));
    let limits =
        Limits { backoff_first: Duration::from_millis(1), fault_crashes: 100, ..bench.settings().limits };
    let host = Host::start(Settings { limits, ..bench.settings() }).await.unwrap();
    allow(&host, "demo").await.unwrap();
    for round in 0..6 {
        let names = ["a", "b", if round % 2 == 0 { "die" } else { "c" }, "d", "e"];
        futures_util::future::join_all(names.iter().map(|name| ask(&host, "demo", name))).await;
        if round == 3 {
            host.enable("demo", &[], &who()).await.unwrap();
        }
    }
    assert!(!bench.path("state/plugin-data/demo/two").exists());
    host.shutdown().await;
    assert_eq!(zombies("bwrap"), 0);
}

#[tokio::test]
async fn a_plugin_that_never_reads_is_ended_after_the_deadline_for_writing() {
    let bench = Bench::new();
    let hook = "hello = initialize\ndef initialize(id, p):\n    hello(id, p)\n    time.sleep(600)";
    bench.python("demo", hook, json!({}));
    let limits = Limits { write_timeout: Duration::from_millis(300), ..bench.settings().limits };
    let host = Host::start(Settings { limits, ..bench.settings() }).await.unwrap();
    allow(&host, "demo").await.unwrap();
    let long = "x".repeat(500_000);
    let found = host.search(&search(&long, 1, Some("demo"))).await;
    assert_eq!(found.errors[0].1.code, ErrorCode::PluginCrashed);
    assert!(found.errors[0].1.message.contains("does not read"), "{}", found.errors[0].1);
    host.shutdown().await;
}

#[tokio::test]
async fn where_nothing_confines_plugins_they_run_and_that_is_said() {
    let bench = Bench::new();
    bench.python("demo", LOOK, json!({}));
    let host = Host::start(bench.unconfined()).await.unwrap();
    assert!(host.list()[0].isolation.starts_with("advisory"));
    assert!(host.inspect("demo").unwrap().warning.contains("NOT confined"));
    allow(&host, "demo").await.unwrap();
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "done");
    let seen: Value =
        serde_json::from_slice(&fs::read(bench.path("state/plugin-data/demo/seen.json")).unwrap()).unwrap();
    assert_eq!(seen["fds"], json!([0, 1, 2]));
    assert_eq!(seen["env"].as_object().unwrap().len(), 5);
    host.shutdown().await;
    let host = Host::start(Settings { require_sandbox: true, ..bench.unconfined() }).await.unwrap();
    let error = ask(&host, "demo", "1").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PluginNotEnabled);
    assert!(error.message.contains("require_sandbox"), "{error}");
}

#[tokio::test]
async fn a_shell_plugin_without_initialize_shakes_hands_by_ping() {
    let bench = Bench::new();
    let script = r#"#!/bin/sh
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"method":"ping"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"status":"ok","version":"1","capabilities":["stream"]}}' ;;
    *'"method":"stream"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"url":"http://host/sh","content_type":"audio/mpeg"}}' ;;
    *) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
  esac
done
"#;
    bench.plugin("demo", script, json!({}));
    let host = bench.enabled("demo").await;
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "sh");
    host.shutdown().await;
}
