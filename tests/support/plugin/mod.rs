//! A plugin whose mind is in the test: a real package with a small Python program that passes each line that it
//! gets to the test's server and prints what comes back. So it can do anything, and every call is seen.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::{Request, Server};

mod mind;
mod track;

use mind::Mind;
pub use track::Track;

const RELAY: &str = r#"#!/usr/bin/python3
import http.client, json, os, signal, sys, threading, time
host, path = sys.argv[1], sys.argv[2]
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
out = threading.Lock()

def pass_on(line):
    connection = http.client.HTTPConnection(host)
    connection.request("POST", path, body=line)
    orders = json.loads(connection.getresponse().read())
    time.sleep(orders["delay_s"])
    if "log" in orders:
        os.write(2, orders["log"].encode())
    if "exit" in orders:
        os._exit(orders["exit"])
    with out:
        os.write(1, orders["print"].encode())

for line in sys.stdin.buffer:
    threading.Thread(target=pass_on, args=(line,), daemon=True).start()
os._exit(0)
"#;

/// What the plugin does instead of a good answer.
#[derive(Clone, Debug)]
pub enum Whim {
    /// Never answers.
    Silent,
    /// Prints this line instead of the answer.
    Junk(String),
    /// Prints this line, then the answer.
    JunkBefore(String),
    /// Ends with this exit status.
    Crash(i32),
    /// Answers late.
    Late(Duration),
    /// Answers with this error.
    Error(i32, &'static str),
    /// Answers with this.
    Result(Value),
}

/// A call that the plugin got.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: String,
    pub params: Value,
    pub at: Instant,
}

/// The plugin. Clones are handles of the same one.
#[derive(Clone)]
pub struct Plugin {
    id: String,
    host: String,
    server: Server,
    timeouts: HashMap<String, u64>,
    granted: Vec<&'static str>,
    mind: Arc<Mutex<Mind>>,
}

impl Plugin {
    /// The scopes that it asks for and is granted by the fixtures.
    pub const SCOPES: [&str; 2] = ["network", "local-network"];

    /// A plugin without tracks that behaves well.
    pub fn new(server: &Server, id: &str) -> Plugin {
        let path = format!("/plugin/{id}");
        let host = server.url("").replace("http://", "");
        let plugin = Plugin {
            id: id.to_owned(),
            host,
            server: server.clone(),
            timeouts: HashMap::new(),
            granted: Plugin::SCOPES.to_vec(),
            mind: Arc::default(),
        };
        let (mind, id, weak) = (plugin.mind.clone(), plugin.id.clone(), server.weak());
        server.answer(
            &path,
            Arc::new(move |request: &Request| {
                let orders =
                    weak.upgrade().map(|server| mind.lock().unwrap().answer(&id, &server, &request.body));
                (200, "application/json", orders.unwrap_or_default().to_string().into_bytes())
            }),
        );
        plugin
    }

    /// Lowers a method's time-out.
    pub fn timeout(mut self, method: &str, time: Duration) -> Plugin {
        self.timeouts.insert(method.to_owned(), time.as_millis() as u64);
        self
    }

    /// Is granted no more than these.
    pub fn granted(mut self, scopes: &[&'static str]) -> Plugin {
        self.granted = scopes.to_vec();
        self
    }

    /// What it is granted.
    pub fn scopes(&self) -> &[&'static str] {
        &self.granted
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Gives it a track and says its URI.
    pub fn add(&self, content_id: &str, mut track: Track) -> String {
        if track.title.is_empty() {
            track.title = format!("Track {content_id}");
        }
        self.mind.lock().unwrap().tracks.insert(content_id.to_owned(), track);
        format!("segue:{}:track:{content_id}", self.id)
    }

    /// From now on it does this when it is called so.
    pub fn whim(&self, method: &str, whim: Whim) {
        self.mind.lock().unwrap().whims.insert(method.to_owned(), whim);
    }

    /// From now on it behaves well again.
    pub fn behave(&self) {
        self.mind.lock().unwrap().whims.clear();
    }

    /// How it was called by this method, in order.
    pub fn calls(&self, method: &str) -> Vec<Call> {
        self.mind.lock().unwrap().calls.iter().filter(|call| call.method == method).cloned().collect()
    }

    /// Writes the package into a folder of packages.
    pub fn install(&self, folder: &Path) {
        let package = folder.join(&self.id);
        fs::create_dir_all(&package).unwrap();
        let manifest = json!({
            "schema": 1, "id": self.id, "name": format!("Test plugin {}", self.id), "version": "1.0.0",
            "protocol": "segue.plugin/1", "executable": "relay",
            "arguments": [self.host, format!("/plugin/{}", self.id)],
            "capabilities": ["search", "get_track", "stream"],
            "scopes": Plugin::SCOPES.map(|scope| json!({"scope": scope, "reason": "asks the test what to do"})),
            "timeouts_ms": self.timeouts,
        });
        fs::write(package.join("plugin.json"), manifest.to_string()).unwrap();
        fs::write(package.join("relay"), RELAY).unwrap();
        for (path, mode) in
            [(package.clone(), 0o755), (package.join("relay"), 0o755), (package.join("plugin.json"), 0o644)]
        {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}
