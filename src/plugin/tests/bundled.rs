//! What the plugins of this tree really say goes through the schema and through the parser.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use segue_protocol::messages::Message;

use super::table::{parse, schema};
use super::*;

/// Folders below `plugins` that hold a `plugin.json` and its program.
const BUNDLED: [&str; 3] = ["demo", "sdk/python/example", "sdk/sh/example"];

/// One line each, since a plugin may be so simple that it answers one after the other.
fn talk(folder: &Path, calls: &[(&str, Value)]) -> Vec<String> {
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("plugin.json")).unwrap()).unwrap();
    let mut plugin = Command::new(folder.join(manifest["executable"].as_str().unwrap()))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = plugin.stdin.take().unwrap();
    let mut output = BufReader::new(plugin.stdout.take().unwrap());
    let mut lines = Vec::new();
    for (id, (method, params)) in calls.iter().enumerate() {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        lines.push(line.trim_end().to_owned());
    }
    drop(input);
    plugin.wait().unwrap();
    lines
}

#[test]
fn the_traffic_of_bundled_plugins_keeps_to_the_schema() {
    let own = tempfile::tempdir().unwrap();
    let dirs = json!({"data": own.path(), "cache": own.path()});
    let line_schema = schema(None, "plugin-protocol-1");
    for name in BUNDLED {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins").join(name);
        let manifest: Value = serde_json::from_slice(&fs::read(folder.join("plugin.json")).unwrap()).unwrap();
        assert!(schema(Some("Manifest"), "plugin-manifest-1").is_valid(&manifest), "{name}");
        let none = vec![];
        let asked = manifest["scopes"].as_array().unwrap_or(&none);
        let scopes: Vec<&Value> = asked.iter().map(|request| &request["scope"]).collect();
        let initialize = json!({
            "protocol": "segue.plugin/1", "host": {"name": "segue", "version": "0"}, "scopes": scopes, "dirs": dirs,
            "config": {}, "secrets": {},
        });
        let found = talk(
            &folder,
            &[("initialize", initialize.clone()), ("search", json!({"query": "a", "limit": 500}))],
        );
        let found: Value = serde_json::from_str(&found[1]).unwrap();
        let hits = found["result"]["results"].as_array().unwrap();
        let id_of = |kind: &str| {
            let hit = hits.iter().find(|hit| hit["kind"] == kind);
            json!({"content_id": hit.map_or(&json!("nothing"), |hit| &hit["content_id"])})
        };
        assert!(id_of("track")["content_id"] != "nothing", "{name} finds no track with an “a” in it");
        let calls = [
            ("initialize", initialize),
            ("ping", json!(null)),
            ("search", json!({"query": "a", "limit": 50})),
            ("get_track", id_of("track")),
            ("get_album", id_of("album")),
            ("get_artist", id_of("artist")),
            ("stream", id_of("track")),
            ("stream", json!({"content_id": "no such thing"})),
        ];
        let types = [
            "InitializeResult",
            "PingResult",
            "SearchReply",
            "TrackReply",
            "AlbumReply",
            "ArtistReply",
            "StreamInfo",
        ];
        let mut results = 0;
        let said = talk(&folder, &calls);
        for (line, of) in said.iter().zip(types.into_iter().chain(["StreamInfo"])) {
            let value: Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: {error}: {line}"));
            assert!(line_schema.is_valid(&value), "{name}: {line}");
            assert!(matches!(Message::parse(line.clone()), Message::Reply(..)), "{name}: {line}");
            if let Some(result) = value.get("result") {
                assert!(schema(Some(of), "plugin-protocol-1").is_valid(result), "{name}: {of}: {line}");
                parse(of, result).unwrap_or_else(|fault| panic!("{name}: {fault:?}: {line}"));
                results += 1;
            }
        }
        assert!(results >= 4, "{name} answered {results} calls: {said:?}");
    }
}
