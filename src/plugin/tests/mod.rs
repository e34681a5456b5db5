//! The host with real processes: small plugins are written to a folder of the test's own and run as
//! installed ones are.

mod answers;
mod bundled;
mod decisions;
mod exit;
mod faults;
mod hostile;
mod packages;
mod processes;
mod replies;
mod table;
mod trusting;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::track::{PluginId, TrackRef};

/// Long enough for a busy machine; nothing waits for it to pass.
const LONG: Duration = Duration::from_secs(20);

/// What most test plugins share: the protocol's loop with a hook for each method.
const PYTHON: &str = r#"#!/usr/bin/python3
import json, os, signal, subprocess, sys, threading, time
ME = os.path.basename(os.getcwd())
lock = threading.Lock()
def put(text):
    with lock:
        sys.stdout.write(text + "\n"); sys.stdout.flush()
def answer(id, result): put(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}))
def fail(id, code, message, **data):
    put(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}}))
def url(path, **more): return dict({"url": "http://host.example/" + path, "content_type": "audio/flac"}, **more)
INIT = {}
def initialize(id, p):
    INIT.update(p)
    answer(id, {"protocol": "segue.plugin/1", "id": ME, "version": "1", "scopes": p["scopes"],
                "capabilities": ["search", "get_track", "stream"]})
def ping(id, p): answer(id, {"status": "ok", "version": "1", "capabilities": ["search", "get_track", "stream"]})
def stream(id, p): answer(id, url(p["content_id"]))
def search(id, p): answer(id, {"results": [{"kind": "track", "content_id": p["query"], "title": ME}]})
#HOOKS
while True:
    line = sys.stdin.readline()
    if not line: break
    m = json.loads(line)
    f = globals().get(m["method"])
    if f: f(m["id"], m.get("params"))
    else: fail(m["id"], -32601, "no such method")
"#;

/// Folders of one test's own, and the plugins in them.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench::below(&std::env::temp_dir())
    }

    fn below(folder: &Path) -> Bench {
        let folder = tempfile::tempdir_in(folder).unwrap();
        for name in ["plugins", "config/plugins"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a package whose executable is `program`; `extra` is put into its manifest.
    fn plugin(&self, id: &str, program: &str, extra: Value) -> PathBuf {
        let folder = self.path("plugins").join(id);
        write_package(&folder, id, program, extra);
        folder
    }

    /// A plugin in Python with some hooks replaced.
    fn python(&self, id: &str, hooks: &str, extra: Value) -> PathBuf {
        self.plugin(id, &PYTHON.replace("#HOOKS", hooks), extra)
    }

    fn settings(&self) -> Settings {
        let [state, cache, config] = ["state", "cache", "config"].map(|name| self.path(name));
        Settings {
            folders: vec![self.path("plugins"), self.path("local")],
            limits: Limits {
                backoff_first: Duration::from_millis(100),
                stop_grace: Duration::from_millis(500),
                ..Limits::default()
            },
            runner: runner(),
            ..Settings::new(state, cache, config)
        }
    }

    /// As on a machine where plugins cannot be confined.
    fn unconfined(&self) -> Settings {
        Settings { bubblewrap: self.path("missing"), ..self.settings() }
    }

    async fn host(&self) -> Host {
        Host::start(self.settings()).await.unwrap()
    }

    /// A host with this plugin trusted and enabled with all that it asks for.
    async fn enabled(&self, id: &str) -> Host {
        let host = self.host().await;
        allow(&host, id).await.unwrap();
        host
    }
}

/// The runner, built when it is missing or older than its source: tests of the library alone do not build it.
fn runner() -> PathBuf {
    static BUILT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    BUILT
        .get_or_init(|| {
            let runner = process::find_runner();
            let source = Path::new(env!("CARGO_MANIFEST_DIR"));
            let time = |path: &Path| fs::metadata(path).and_then(|facts| facts.modified()).ok();
            let folder =
                fs::read_dir(source.join("src/bin/segue-plugin-runner")).into_iter().flatten().flatten();
            let mut files: Vec<PathBuf> = folder.map(|file| file.path()).collect();
            files.push(source.join("src/plugin/process/contract.rs"));
            if files.iter().all(|file| time(file) <= time(&runner)) {
                return runner;
            }
            let mut build = std::process::Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "--offline", "--bin", "segue-plugin-runner"]);
            // What cargo tells a test about itself would have some build scripts run again, now and the next time.
            for (name, _) in std::env::vars_os() {
                let name = name.to_string_lossy();
                if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                    build.env_remove(&*name);
                }
            }
            if !cfg!(debug_assertions) {
                build.arg("--release");
            }
            match build.current_dir(source).status() {
                Ok(status) if status.success() => process::find_runner(),
                failed => panic!("the runner is not built: {failed:?}"),
            }
        })
        .clone()
}

fn write_package(folder: &Path, id: &str, program: &str, extra: Value) {
    fs::create_dir_all(folder).unwrap();
    let mut manifest = json!({
        "schema": 1, "id": id, "name": "Test", "version": "1", "protocol": "segue.plugin/1",
        "executable": "run", "capabilities": ["search", "get_track", "stream"],
    });
    for (name, value) in extra.as_object().unwrap() {
        manifest[name] = value.clone();
    }
    fs::write(folder.join("plugin.json"), manifest.to_string()).unwrap();
    fs::write(folder.join("run"), program).unwrap();
    fs::set_permissions(folder.join("run"), Permissions::from_mode(0o755)).unwrap();
}

fn who() -> Who {
    Who { uid: Some(1_000), via: "test".to_owned() }
}

async fn allow(host: &Host, id: &str) -> Result<(), HostError> {
    let review = host.inspect(id)?;
    host.trust(id, &review.summary.fingerprint, &who()).await?;
    host.enable(id, &review.summary.requested, &who()).await
}

fn state(host: &Host, id: &str) -> PluginState {
    host.inspect(id).unwrap().summary.state
}

fn id(text: &str) -> PluginId {
    text.parse().unwrap()
}

fn track(plugin: &str, content_id: &str) -> TrackRef {
    TrackRef { plugin: id(plugin), content_id: content_id.to_owned() }
}

fn search(query: &str, limit: u32, plugin: Option<&str>) -> Search {
    Search { query: query.to_owned(), limit, kinds: Vec::new(), plugin: plugin.map(id) }
}

/// The path of the URL that the plugin answered with.
async fn ask(host: &Host, plugin: &str, content_id: &str) -> Result<String, CallError> {
    let track = track(plugin, content_id);
    let resolved = tokio::time::timeout(LONG, host.resolve(&track)).await.expect("an answer in time")?;
    Ok(resolved.url.path().trim_start_matches('/').to_owned())
}

async fn code(host: &Host, plugin: &str, content_id: &str) -> ErrorCode {
    ask(host, plugin, content_id).await.expect_err("a failure").code
}

/// Process ids whose command line has `mark` in it, from outside of the confinement.
fn processes_with(mark: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(mark) {
            found.push(pid);
        }
    }
    found
}

/// Children of this process that ended and were not reaped, by name.
fn zombies(name: &str) -> usize {
    let me = std::process::id().to_string();
    let is_zombie = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let Some((front, rest)) = stat.rsplit_once(')') else { return false };
        let mut words = rest.split_whitespace();
        front.ends_with(name) && words.next() == Some("Z") && words.next() == Some(&me)
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_str().is_some_and(is_zombie)).count()
}

fn confined(host: &Host) -> bool {
    host.list()[0].isolation.starts_with("enforced")
}
