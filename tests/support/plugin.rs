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

/// Makes a URL, and says how long it is good.
#[derive(Clone)]
struct Maker(Arc<dyn Fn() -> (String, Duration) + Send + Sync>);

impl std::fmt::Debug for Maker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a function")
    }
}

/// Where a track's URL comes from.
#[derive(Clone, Debug)]
enum Source {
    Fixed(String),
    /// The next one at each call; the last for all further ones.
    InTurn(Vec<String>),
    /// Made at each call: URL, and how long it is good.
    Made(Maker),
    /// A fresh one at each call, with lives of these lengths; the last is for all further ones.
    Fresh {
        path: String,
        lives: Vec<Duration>,
        tell_expiry: bool,
        /// Where all but the first lead, if elsewhere.
        then_at: Option<String>,
    },
}

/// A track that the plugin has.
#[derive(Clone, Debug)]
pub struct Track {
    source: Source,
    content_type: &'static str,
    title: String,
    duration: Option<Duration>,
    alternatives: Vec<String>,
    headers: HashMap<String, String>,
    asked: usize,
}

impl Track {
    /// A track with one URL.
    pub fn at(url: impl Into<String>, content_type: &'static str) -> Track {
        Track::from_source(Source::Fixed(url.into()), content_type)
    }

    /// A track whose URL is another one at each call; the last one is for all further calls.
    pub fn in_turn(urls: Vec<String>, content_type: &'static str) -> Track {
        Track::from_source(Source::InTurn(urls), content_type)
    }

    /// A track whose URL is made at each call, and is good for as long as the function says.
    pub fn made(
        make: impl Fn() -> (String, Duration) + Send + Sync + 'static,
        content_type: &'static str,
    ) -> Track {
        Track::from_source(Source::Made(Maker(Arc::new(make))), content_type)
    }

    /// With other addresses of the same file.
    pub fn or_at(mut self, urls: Vec<String>) -> Track {
        self.alternatives = urls;
        self
    }

    /// With a header for its requests.
    pub fn with_header(mut self, name: &str, value: &str) -> Track {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// A track of the test's server whose URLs run out after these times: the first one after the first, and so on.
    /// The plugin says nothing about it: only 403 tells.
    pub fn expiring(path: &str, content_type: &'static str, lives: &[Duration]) -> Track {
        let lives = lives.to_vec();
        Track::from_source(
            Source::Fresh { path: path.to_owned(), lives, tell_expiry: false, then_at: None },
            content_type,
        )
    }

    /// The plugin tells when the URLs run out.
    pub fn and_says_so(mut self) -> Track {
        if let Source::Fresh { tell_expiry, .. } = &mut self.source {
            *tell_expiry = true;
        }
        self
    }

    /// All URLs but the first lead to this path of the server.
    pub fn then_at(mut self, path: &str) -> Track {
        if let Source::Fresh { then_at, .. } = &mut self.source {
            *then_at = Some(path.to_owned());
        }
        self
    }

    /// With this title.
    pub fn titled(mut self, title: &str) -> Track {
        self.title = title.to_owned();
        self
    }

    /// With this length in its metadata.
    pub fn lasting(mut self, duration: Duration) -> Track {
        self.duration = Some(duration);
        self
    }

    fn from_source(source: Source, content_type: &'static str) -> Track {
        Track {
            source,
            content_type,
            title: String::new(),
            duration: None,
            alternatives: Vec::new(),
            headers: HashMap::new(),
            asked: 0,
        }
    }
}

/// A call that the plugin got.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: String,
    pub params: Value,
    pub at: Instant,
}

#[derive(Default)]
struct Mind {
    tracks: HashMap<String, Track>,
    whims: HashMap<String, Whim>,
    calls: Vec<Call>,
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
    pub fn add(&self, content_id: &str, track: Track) -> String {
        let title = if track.title.is_empty() { format!("Track {content_id}") } else { track.title.clone() };
        self.mind.lock().unwrap().tracks.insert(content_id.to_owned(), Track { title, ..track });
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

impl Mind {
    fn answer(&mut self, id: &str, server: &Server, line: &[u8]) -> Value {
        let request: Value = serde_json::from_slice(line).unwrap_or_default();
        let method = request["method"].as_str().unwrap_or_default().to_owned();
        let params = request["params"].clone();
        self.calls.push(Call { method: method.clone(), params: params.clone(), at: Instant::now() });
        let mut orders = json!({"delay_s": 0.0});
        let mut print = String::new();
        let outcome = match self.whims.get(&method).cloned() {
            Some(Whim::Silent) => return json!({"delay_s": 0.0, "print": ""}),
            Some(Whim::Junk(line)) => return json!({"delay_s": 0.0, "print": line + "\n"}),
            Some(Whim::Crash(status)) => {
                return json!({"delay_s": 0.0, "exit": status, "log": "E! crashing\n"});
            }
            Some(Whim::Error(code, message)) => Err((code, message.to_owned())),
            Some(Whim::Result(value)) => Ok(value),
            Some(Whim::JunkBefore(line)) => {
                print = line + "\n";
                self.well(id, server, &method, &params)
            }
            Some(Whim::Late(time)) => {
                orders["delay_s"] = json!(time.as_secs_f64());
                self.well(id, server, &method, &params)
            }
            None => self.well(id, server, &method, &params),
        };
        let reply = match outcome {
            Ok(result) => json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
            Err((code, message)) => {
                json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}})
            }
        };
        orders["print"] = json!(format!("{print}{reply}\n"));
        orders
    }

    /// What a plugin does that behaves.
    fn well(
        &mut self,
        id: &str,
        server: &Server,
        method: &str,
        params: &Value,
    ) -> Result<Value, (i32, String)> {
        let capabilities = json!(["search", "get_track", "stream"]);
        let content_id = params["content_id"].as_str().unwrap_or_default();
        let missing = || (3, format!("no track {content_id}"));
        match method {
            "initialize" => Ok(json!({
                "protocol": "segue.plugin/1", "id": id, "version": "1.0.0",
                "capabilities": capabilities, "scopes": params["scopes"],
            })),
            "ping" => Ok(json!({"status": "ok", "version": "1.0.0", "capabilities": capabilities})),
            "search" => {
                let query = params["query"].as_str().unwrap_or_default().to_lowercase();
                let found =
                    self.tracks.iter().filter(|(_, track)| track.title.to_lowercase().contains(&query));
                let found =
                    found.map(|(id, track)| json!({"kind": "track", "content_id": id, "title": track.title}));
                Ok(json!({"results": found.collect::<Vec<_>>()}))
            }
            "get_track" => {
                let track = self.tracks.get(content_id).ok_or_else(missing)?;
                let mut found = json!({
                    "content_id": content_id, "title": track.title, "artists": [{"name": "Test artist"}],
                });
                if let Some(duration) = track.duration {
                    found["duration_ms"] = json!(duration.as_millis() as u64);
                }
                Ok(json!({"track": found}))
            }
            "stream" => self.tracks.get_mut(content_id).map(|track| track.stream(server)).ok_or_else(missing),
            other => Err((-32601, format!("unknown method {other}"))),
        }
    }
}

impl Track {
    fn stream(&mut self, server: &Server) -> Value {
        let content_type = self.content_type;
        let nth = self.asked;
        self.asked += 1;
        let mut info = match &self.source {
            Source::Fixed(url) => json!({"url": url, "content_type": content_type}),
            Source::InTurn(urls) => {
                json!({"url": urls[nth.min(urls.len() - 1)], "content_type": content_type})
            }
            Source::Made(make) => {
                let (url, life) = (make.0)();
                let life = life.as_millis() as u64;
                json!({"url": url, "content_type": content_type, "expires_in_ms": life})
            }
            Source::Fresh { path, lives, tell_expiry, then_at } => {
                let path = then_at.as_ref().filter(|_| nth > 0).unwrap_or(path);
                let life = lives[nth.min(lives.len() - 1)];
                let mut info = json!({"url": server.fresh_url(path, life), "content_type": content_type});
                if *tell_expiry {
                    info["expires_in_ms"] = json!(life.as_millis() as u64);
                }
                info
            }
        };
        if !self.alternatives.is_empty() {
            info["alternatives"] = json!(self.alternatives);
        }
        if !self.headers.is_empty() {
            info["headers"] = json!(self.headers);
        }
        info
    }
}
