//! Where plugins are made, and the client that looks at them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

/// Longer than anything takes that works, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A plugin that keeps the contract; `#HOOKS` is put in before its loop.
const PYTHON: &str = r#"#!/usr/bin/python3
import json, os, sys, time
METHODS = ["initialize", "ping", "search", "get_track", "get_album", "get_artist", "stream"]
OFFERS = json.load(open("plugin.json"))["capabilities"]
def put(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
def answer(id, result): put(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}))
def fail(id, code, message="no"):
    put(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
IDENTITY = {"protocol": "segue.plugin/1", "id": "tried", "version": "1", "capabilities": OFFERS}
TRACK = {"content_id": "t", "title": "Track", "artists": [{"name": "Ann", "content_id": "p"}],
         "album": {"title": "Album", "content_id": "a"}}
STREAM = {"url": "https://192.0.2.1/t.flac", "content_type": "audio/flac", "expires_in_ms": 60000}
def initialize(id, p): answer(id, dict(IDENTITY, scopes=p["scopes"]))
def ping(id, p): answer(id, {"status": "ok", "version": "1", "capabilities": OFFERS})
def search(id, p): answer(id, {"results": [{"kind": "track", "content_id": "t", "title": "Track"}]})
def get_track(id, p): answer(id, {"track": TRACK})
def get_album(id, p):
    answer(id, {"album": {"content_id": "a", "title": "Album", "tracks": [{"content_id": "t", "title": "Track"}]}})
def get_artist(id, p): answer(id, {"artist": {"content_id": "p", "name": "Ann"}})
def stream(id, p): answer(id, STREAM)
def unknown(id): fail(id, -32601)
def no_id(m): pass
def junk(line): fail(None, -32700)
def the_end(): pass
#HOOKS
while True:
    line = sys.stdin.readline()
    if not line: break
    try: m = json.loads(line)
    except ValueError:
        junk(line)
        continue
    if "id" not in m: no_id(m)
    elif m["method"] in METHODS: globals()[m["method"]](m["id"], m.get("params"))
    else: unknown(m["id"])
the_end()
"#;

/// The plugin with some of its functions replaced.
pub fn python(hooks: &str) -> String {
    PYTHON.replace("#HOOKS", hooks)
}

/// A folder of one test's own. Removed with it, and nothing else may be left there by then.
pub struct Workshop {
    folder: TempDir,
}

impl Workshop {
    pub fn new() -> Workshop {
        let folder = TempDir::with_prefix("segue-workshop-").unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Workshop { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A package named `tried` with this program; `manifest` is put into its plugin.json.
    pub fn package(&self, program: &str, manifest: Value) -> PathBuf {
        let folder = self.path("tried");
        fs::create_dir_all(&folder).unwrap();
        let mut fields = json!({
            "schema": 1, "id": "tried", "name": "Tried", "version": "1", "protocol": "segue.plugin/1",
            "executable": "run",
            "capabilities": ["search", "get_track", "get_album", "get_artist", "stream"],
        });
        for (name, value) in manifest.as_object().unwrap() {
            fields[name] = value.clone();
        }
        write(&folder.join("plugin.json"), &fields.to_string(), 0o644);
        write(&folder.join("run"), program, 0o755);
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        folder
    }

    /// The client. What it makes for a while, it makes below the workshop.
    pub fn segue(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_segue"));
        command.args(arguments).current_dir(self.folder.path()).env("TMPDIR", self.path("tmp"));
        // No daemon is there, and none is needed.
        command.env("SEGUE_BUS", "unix:path=/nowhere").stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs it: exit status, standard output, standard error.
    pub async fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = tokio::time::timeout(PATIENCE, self.segue(arguments).output());
        let output = output.await.expect("segue does not end").unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    /// What the client left behind.
    pub fn left(&self) -> Vec<PathBuf> {
        fs::read_dir(self.path("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

pub fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    // The umask of whoever runs the tests decides nothing.
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}
