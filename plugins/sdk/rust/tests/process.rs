//! Compiled plugins as processes, over real pipes. `cargo test -p segue-plugin` builds them first; with a filter or
//! `--test` cargo takes those that are there, unless `--examples` is said as well.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// Generous: nothing waits for it to pass.
const LONG: Duration = Duration::from_secs(30);

struct Plugin {
    child: Child,
    input: Option<ChildStdin>,
    /// Lines as they come; closed at the end of standard output.
    replies: Receiver<String>,
}

impl Plugin {
    fn start(example: &str) -> Plugin {
        let me = std::env::current_exe().unwrap();
        let program: PathBuf = me.parent().unwrap().parent().unwrap().join("examples").join(example);
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("`cargo test -p segue-plugin` builds the examples; else say `--examples`");
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (lines, replies) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                // A test that has seen enough does not take the rest.
                let _ = lines.send(line.unwrap());
            }
        });
        Plugin { child, input, replies }
    }

    fn write(&mut self, line: impl AsRef<[u8]>) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_ref()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn send(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let line = json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params});
        self.write(line.to_string());
    }

    fn stream(&mut self, id: u32, content_id: &str) {
        self.send(id, "stream", json!({"content_id": content_id}));
    }

    fn read(&mut self) -> Value {
        let line = self.replies.recv_timeout(LONG).expect("a reply in time");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Closes standard input; returns what it wrote on standard error until it ended.
    fn end(mut self) -> String {
        drop(self.input.take());
        let mut words = self.child.stderr.take().unwrap();
        let words = thread::spawn(move || {
            let mut text = String::new();
            words.read_to_string(&mut text).unwrap();
            text
        });
        let rest = self.replies.recv_timeout(LONG);
        assert_eq!(rest, Err(RecvTimeoutError::Disconnected), "an end in time, and nothing but replies");
        assert!(self.child.wait().unwrap().success());
        words.join().unwrap()
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        // Only a test that failed leaves one running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn initialize(plugin: &mut Plugin) -> Value {
    let params = json!({
        "protocol": "segue.plugin/1", "host": {"name": "segue", "version": "1"}, "scopes": ["network"],
        "dirs": {"data": "/tmp", "cache": "/tmp"}, "config": {"greeting": "hello"}, "secrets": {}, "later": 1,
    });
    plugin.send(0, "initialize", params);
    plugin.read()
}

#[test]
fn it_shakes_hands_by_its_manifest_and_answers_every_method() {
    let mut plugin = Plugin::start("catalogue");
    let all = json!(["search", "get_track", "get_album", "get_artist", "stream"]);
    let hands = initialize(&mut plugin);
    let said = json!({"protocol": "segue.plugin/1", "id": "catalogue", "version": "1.0.0", "capabilities": all, "scopes": ["network"]});
    assert_eq!(hands["result"], said);
    assert_eq!(initialize(&mut plugin)["error"], json!({"code": -32600, "message": "initialize comes once"}));
    plugin.send(1, "ping", Value::Null);
    assert_eq!(plugin.read()["result"], json!({"status": "ok", "version": "1.0.0", "capabilities": all}));
    plugin.send(2, "search", json!({"query": "CLEAR"}));
    assert_eq!(plugin.read()["result"]["results"][0]["content_id"], "clear");
    plugin.send(3, "search", json!({"query": "", "limit": 2, "kinds": ["track", "artist"]}));
    assert_eq!(plugin.read()["result"]["results"].as_array().unwrap().len(), 2);
    plugin.send(3, "search", json!({"query": "", "kinds": ["artist"]}));
    let results = plugin.read()["result"]["results"].take();
    assert_eq!((results.as_array().unwrap().len(), &results[0]["content_id"]), (1, &json!("weather")));
    for (method, content, field) in
        [("get_track", "haze", "track"), ("get_album", "skies", "album"), ("get_artist", "weather", "artist")]
    {
        plugin.send("a text", method, json!({"content_id": content}));
        let reply = plugin.read();
        assert_eq!(
            (&reply["id"], &reply["result"][field]["content_id"]),
            (&json!("a text"), &json!(content))
        );
    }
    plugin.stream(4, "drizzle");
    assert_eq!(plugin.read()["result"]["url"], "https://example.org/drizzle.flac");
    plugin.stream(5, "nothing");
    assert_eq!(plugin.read()["error"], json!({"code": 3, "message": "there is no “nothing” here"}));
    assert_eq!(plugin.end(), "");
}

#[test]
fn what_is_no_call_is_refused_or_met_with_silence() {
    let mut plugin = Plugin::start("catalogue");
    for junk in
        [&b"hello"[..], b"{\"jsonrpc\":", b"\xff\xfe", b"", b"[1]", b"7", "[".repeat(100_000).as_bytes()]
    {
        plugin.write(junk);
        let reply = plugin.read();
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&Value::Null, &json!(-32700)), "{}", junk.len());
    }
    for silent in [
        r#"{"jsonrpc":"2.0","method":"stream"}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":""}}"#,
        "{}",
    ] {
        plugin.write(silent);
    }
    let long_id =
        format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(10 * 1024 * 1024 - 100));
    for (request, id) in [
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, Value::Null),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Value::Null),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, Value::Null),
        (long_id.as_str(), Value::Null),
        (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, json!(7)),
        (r#"{"id":7,"method":"ping"}"#, json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"method":null}"#, json!(7)),
        (r#"{"jsonrpc":"2.0","id":7}"#, json!(7)),
    ] {
        plugin.write(request);
        let reply = plugin.read();
        let request = &request[..request.len().min(100)];
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&id, &json!(-32600)), "{request}");
    }
    plugin.send(1, "sing", Value::Null);
    assert_eq!(plugin.read()["error"]["code"], -32601);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"stream","params":{deep}}}"#);
    plugin.write(deep);
    assert_eq!(plugin.read()["error"]["code"], -32602);
    for (method, params) in [
        ("stream", json!({"id": 1})),
        ("stream", json!({"content_id": 1})),
        ("stream", Value::Null),
        ("stream", json!({"content_id": ["x".repeat(5 * 1024 * 1024)]})),
        ("search", json!({"query": "", "limit": 0})),
        ("search", json!({"query": "", "limit": 501})),
        ("search", json!({"query": "", "kinds": ["song"]})),
        ("initialize", json!({"protocol": "segue.plugin/1"})),
    ] {
        plugin.send(2, method, params);
        assert_eq!(plugin.read()["error"]["code"], -32602, "{method}");
    }
    plugin.write(vec![b'x'; 10 * 1024 * 1024 + 1]);
    assert_eq!(plugin.read()["error"]["code"], -32700);
    let ping = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
    plugin.write(format!("{ping}{}", " ".repeat(10 * 1024 * 1024 - ping.len())));
    assert_eq!(plugin.read()["id"], 3);
    plugin.write(format!("{ping}\r"));
    assert_eq!(plugin.read()["id"], 3);
    assert_eq!(plugin.end(), "");
}

#[test]
fn prints_and_panics_go_to_standard_error_and_cost_nothing_else() {
    let mut plugin = Plugin::start("odd");
    assert_eq!(initialize(&mut plugin)["result"]["capabilities"], json!(["stream"]));
    plugin.stream(1, "print");
    assert_eq!(plugin.read()["result"]["url"], "https://example.org/print");
    plugin.stream(2, "panic");
    assert_eq!(plugin.read()["error"]["code"], 1);
    plugin.stream(3, "long");
    let reply = plugin.read();
    assert_eq!(reply["error"]["code"], 1);
    assert!(reply["error"]["message"].as_str().unwrap().contains("10485760"));
    plugin.stream(3, "wordy");
    let reply = plugin.read();
    assert_eq!(
        (&reply["error"]["code"], reply["error"]["message"].as_str().unwrap().len()),
        (&json!(3), 2_000)
    );
    // Both are on their way before the child looks for something to read.
    plugin.stream(4, "eat");
    plugin.stream(4, "eat");
    assert_eq!([plugin.read(), plugin.read()].map(|reply| reply["id"].clone()), [4, 4]);
    plugin.stream(4, "region");
    assert_eq!(
        plugin.read()["error"],
        json!({"code": 6, "message": "not here", "data": {"reason": "region"}})
    );
    plugin.send(5, "search", json!({"query": "slowly"}));
    assert_eq!(
        plugin.read()["error"],
        json!({"code": 5, "message": "slowly", "data": {"retry_after_ms": 2000}})
    );
    let words = plugin.end();
    for part in [
        "I! greeting is \"hello\"",
        "a stray print",
        "a child's print",
        "a child that reads: exit status: 0",
        "E! ",
        "as asked",
    ] {
        assert!(words.contains(part), "{part} in {words}");
    }
}

#[test]
fn calls_run_at_the_same_time_and_a_ping_waits_for_none() {
    let mut plugin = Plugin::start("odd");
    for id in 1..=3 {
        plugin.stream(id, "hold");
    }
    plugin.send(4, "ping", Value::Null);
    assert_eq!(plugin.read()["id"], 4);
    for id in 5..=15 {
        plugin.stream(id, "quick");
        assert_eq!(plugin.read()["id"], id);
    }
    plugin.stream(16, "release");
    let mut ids: Vec<u64> = (0..4).map(|_| plugin.read()["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 16]);
    plugin.end();
}

#[test]
fn sixteen_calls_are_answered_in_any_order_each_once_and_in_one_piece() {
    let mut plugin = Plugin::start("odd");
    plugin.stream(1, "hold");
    for id in 2..=15 {
        plugin.stream(id, "big");
    }
    plugin.stream(16, "release");
    let mut ids: Vec<u64> = (0..16).map(|_| plugin.read()["id"].as_u64().unwrap()).collect();
    assert_ne!(ids[0], 1);
    ids.sort_unstable();
    assert_eq!(ids, (1..=16).collect::<Vec<u64>>());
    plugin.end();
}

#[test]
fn what_was_asked_before_the_end_is_still_answered() {
    let mut plugin = Plugin::start("odd");
    plugin.stream(1, "hold");
    plugin.stream(2, "release");
    drop(plugin.input.take());
    let mut ids = [plugin.read(), plugin.read()].map(|reply| reply["id"].as_u64().unwrap());
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
    assert_eq!(plugin.end(), "");
}

#[test]
fn it_ends_with_the_player_also_in_the_middle_of_a_call() {
    let mut plugin = Plugin::start("odd");
    plugin.stream(1, "hold");
    plugin.end();
}

#[test]
fn it_ends_when_nobody_reads_its_replies() {
    let me = std::env::current_exe().unwrap();
    let program = me.parent().unwrap().parent().unwrap().join("examples/catalogue");
    let mut command = Command::new(program);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
    // Its standard error ends with it, though its standard input is still open.
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert!(child.wait().unwrap().success());
    drop(input);
}

#[test]
fn a_pipe_is_enough_to_try_it() {
    let mut plugin = Plugin::start("catalogue");
    plugin.input.as_mut().unwrap().write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}").unwrap();
    drop(plugin.input.take());
    assert_eq!(plugin.read()["id"], 1);
    assert!(plugin.child.wait().unwrap().success());
}
