//! `segue plugin check`, as a person runs it.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::workshop::{PATIENCE, Workshop, python, write};

#[tokio::test]
async fn the_demo_passes_and_the_last_line_counts() {
    let workshop = Workshop::new();
    // A copy with the modes that a package needs, whatever umask the checkout had.
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/plugins/demo");
    let copy = workshop.path("demo");
    let script = "cp -r \"$0\" \"$1\" && rm -rf \"$1\"/__pycache__ && chmod -R u=rwX,go=rX \"$1\"";
    let copied = std::process::Command::new("sh").args(["-c", script, demo]).arg(&copy).status().unwrap();
    assert!(copied.success());
    let (status, out, error) = workshop.run(&["plugin", "check", "demo"]).await;
    assert_eq!(status, 0, "{out}{error}");
    let last = out.lines().last().unwrap();
    assert!(last.starts_with("demo: ") && last.contains(" passed, 0 failed, "), "{out}");
    assert!(out.lines().any(|line| line.starts_with("pass  stream ")), "{out}");
    assert_eq!(error, "");
    // The same from inside of it, and without confinement.
    let inside =
        workshop.segue(&["plugin", "check", ".", "--no-sandbox"]).current_dir(&copy).output().await.unwrap();
    let out = String::from_utf8(inside.stdout).unwrap();
    assert!(inside.status.success() && out.contains("skip  confinement"), "{out}");
}

#[tokio::test]
async fn a_failure_says_what_to_do_and_shows_the_log() {
    let workshop = Workshop::new();
    let hooks = "sys.stderr.write('W! trying\\n')\ndef junk(line): fail(1, -32700)";
    workshop.package(&python(hooks), json!({}));
    let (status, out, error) = workshop.run(&["plugin", "check", "tried"]).await;
    assert_eq!(status, 1);
    let mut lines = out.lines().skip_while(|line| !line.starts_with("fail"));
    assert_eq!(lines.next().unwrap(), "fail  junk            the answer's id is not null");
    assert!(lines.next().unwrap().trim().starts_with("→ answer what is no JSON with"), "{out}");
    assert!(out.contains("  warn  trying\n"), "{out}");
    assert_eq!(error, "segue: tried: 1 of 20 failed\n");
}

#[tokio::test]
async fn what_is_no_package_is_wrong_use() {
    let workshop = Workshop::new();
    workshop.package(&python(""), json!({}));
    for arguments in [
        &["plugin", "check", "nowhere"][..],
        &["plugin", "check", "tmp"],
        &["plugin", "check", "tried/run"],
        &["plugin", "check"],
        &["plugin", "check", "tried", "--config", "nowhere.toml"],
        &["plugin", "call", "nowhere", "ping"],
    ] {
        let (status, out, error) = workshop.run(arguments).await;
        assert_eq!((status, out.as_str()), (2, ""), "{arguments:?}: {error}");
        assert!(!error.is_empty());
    }
}

#[tokio::test]
async fn ids_words_and_folders_can_be_named() {
    let workshop = Workshop::new();
    std::fs::create_dir(workshop.path("music")).unwrap();
    write(&workshop.path("music/x.flac"), "x", 0o644);
    let hooks = format!(
        "FILE = {:?}\n{}",
        workshop.path("music/x.flac"),
        r#"
def search(id, p):
    answer(id, {"results": [{"kind": "album", "content_id": "a", "title": "A"}] if p["query"] == "two words" else []})
def stream(id, p): answer(id, {"url": "file://" + FILE, "content_type": "audio/flac"}) if p["content_id"] == "mine" else fail(id, 3)
sys.stderr.write("may read: %s\n" % os.path.exists(FILE))
"#
    );
    let scopes = json!([{"scope": "files.read:*", "reason": "plays your files"}]);
    workshop.package(&python(&hooks), json!({"capabilities": ["search", "stream"], "scopes": scopes}));
    let all = [
        "plugin",
        "check",
        "tried",
        "--query",
        "two words",
        "--content-id",
        "mine",
        "--folder",
        "music",
        "--json",
    ];
    let (status, out, error) = workshop.run(&all).await;
    assert_eq!(status, 0, "{out}{error}");
    let out: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(out["log"][0]["text"], "may read: True");
    assert!(out["checks"].to_string().contains("1 results for “two words”"), "{out}");
    let (status, out, _) = workshop.run(&all[..7]).await;
    assert_eq!(status, 1, "a file that it may not read: {out}");
}

#[tokio::test]
async fn an_interrupted_check_leaves_nothing_behind() {
    let workshop = Workshop::new();
    workshop.package(&python("def search(id, p): pass"), json!({"timeouts_ms": {"search": 30_000}}));
    for sandbox in [&["plugin", "check", "tried"][..], &["plugin", "check", "tried", "--no-sandbox"]] {
        let mut client =
            workshop.segue(sandbox).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
        while !lines.next_line().await.unwrap().expect("it ended early").starts_with("pass  ping") {}
        let plugin = plugin_process(&workshop);
        assert!(plugin.is_some(), "it does not run");
        kill(Pid::from_raw(client.id().unwrap().cast_signed()), Signal::SIGINT).unwrap();
        let status = tokio::time::timeout(PATIENCE, client.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(1));
        assert_eq!(workshop.left(), [] as [&std::path::Path; 0]);
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while plugin_process(&workshop).is_some() {
            assert!(tokio::time::Instant::now() < deadline, "the plugin lives on");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await; // processes send no events
        }
    }
}

/// A process that runs a copy which lies in the workshop.
fn plugin_process(workshop: &Workshop) -> Option<i32> {
    let place = workshop.path("tmp").display().to_string();
    let numbers = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.into_iter().find(|pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&place)
    })
}
