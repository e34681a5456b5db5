//! What the plugin answers: well, or by its whims.

use std::collections::HashMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::{Call, Track, Whim};
use crate::support::server::Server;

/// What it has, what it is to do, and how it was called.
#[derive(Default)]
pub(super) struct Mind {
    pub(super) tracks: HashMap<String, Track>,
    pub(super) whims: HashMap<String, Whim>,
    pub(super) calls: Vec<Call>,
}

impl Mind {
    pub(super) fn answer(&mut self, id: &str, server: &Server, line: &[u8]) -> Value {
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
