//! `segue plugin call`.

use serde_json::{Value, json};

use crate::workshop::{Workshop, python, write};

#[tokio::test]
async fn the_reply_is_on_standard_output_as_it_came_and_all_else_is_not() {
    let workshop = Workshop::new();
    let hooks = r#"
sys.stderr.write("I! here\n")
print("Welcome!", flush=True)
def search(id, p): put('{"jsonrpc":"2.0",  "id":%d, "result":{"results":[]}}' % id)
"#;
    workshop.package(&python(hooks), json!({}));
    let (status, out, error) =
        workshop.run(&["plugin", "call", "tried", "search", r#"{"query":"é","limit":3}"#]).await;
    assert_eq!(status, 0, "{error}");
    assert_eq!(out, "{\"jsonrpc\":\"2.0\",  \"id\":2, \"result\":{\"results\":[]}}\n");
    assert!(error.contains("\ninfo  here\n") || error.starts_with("info  here\n"), "{error}");
    let marked: Vec<&str> = error.lines().filter(|line| line.starts_with(['<', '>'])).collect();
    assert!(marked[0].starts_with("> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\""), "{error}");
    assert_eq!(marked[1], "< Welcome!");
    assert!(marked[2].starts_with("< {") && marked[2].contains("segue.plugin/1"), "{error}");
    assert_eq!(marked[3], r#"> {"jsonrpc":"2.0","id":2,"method":"search","params":{"limit":3,"query":"é"}}"#);
    assert_eq!(marked.len(), 4);
    assert!(workshop.left().is_empty());
}

#[tokio::test]
async fn what_goes_wrong_is_the_exit_status() {
    let workshop = Workshop::new();
    let hooks = r#"
def get_track(id, p): fail(id, 3, "no such track")
def search(id, p): pass
def stream(id, p): answer(id, dict(STREAM, expire_at="x"))
def get_artist(id, p): os._exit(5)
"#;
    workshop.package(&python(hooks), json!({}));
    for (arguments, status, on_stdout, on_stderr) in [
        (&["get_track", r#"{"content_id":"t"}"#][..], 1, "no such track", "CONTENT_NOT_FOUND"),
        (&["stream", r#"{"content_id":"t"}"#], 1, "expire_at", "unknown field “expire_at”"),
        (&["search", "{}", "--timeout", "1"], 1, "", "search got no answer within 1.0 s"),
        (&["get_artist", "{}"], 1, "", "exit status: 5"),
        (&["lyrics"], 1, "-32601", "METHOD_NOT_FOUND"),
        (&["ping", "{"], 2, "", "PARAMS is no JSON"),
        (&["ping"], 0, "\"ok\"", "initialize"),
        (&["ping", "--no-sandbox"], 0, "\"ok\"", "initialize"),
    ] {
        let all = [&["plugin", "call", "tried"], arguments].concat();
        let (found, out, error) = workshop.run(&all).await;
        assert_eq!(found, status, "{arguments:?}: {out}{error}");
        assert!(out.contains(on_stdout) && error.contains(on_stderr), "{arguments:?}: {out}{error}");
        assert_eq!(out.lines().count(), usize::from(!on_stdout.is_empty()), "{out}");
    }
    let (status, out, error) = workshop.run(&["plugin", "call", "tried", "initialize"]).await;
    assert_eq!(status, 0, "{error}");
    let reply: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&reply["id"], &reply["result"]["id"]),
        (&json!(1), &json!("tried")),
        "it is not called twice"
    );
}

#[tokio::test]
async fn configuration_and_secrets_are_given_and_secrets_are_not_shown() {
    let workshop = Workshop::new();
    let hooks = r#"
SEEN = {}
def initialize(id, p, old=initialize):
    SEEN.update(p)
    sys.stderr.write("token %s\n" % p["secrets"]["token"])
    old(id, p)
def search(id, p): answer(id, {"results": [{"kind": "track", "content_id": "t", "title": SEEN["config"]["server"]}]})
"#;
    let scopes = json!([{"scope": "secret:token", "reason": "logs in"}]);
    workshop.package(&python(hooks), json!({"scopes": scopes}));
    let config = "[config]\nserver = \"house\"\n[secrets]\ntoken = \"hush-4711\"\nother = \"not granted\"\n";
    write(&workshop.path("tried.toml"), config, 0o600);
    let (status, out, error) =
        workshop.run(&["plugin", "call", "tried", "search", "{}", "--config", "tried.toml"]).await;
    assert_eq!(status, 0, "{error}");
    assert!(out.contains("house"), "{out}");
    assert!(!error.contains("hush-4711") && error.contains("token [redacted]"), "{error}");
    assert!(!error.contains("not granted"), "{error}");
    let (status, out, error) = workshop.run(&["plugin", "check", "tried", "--config", "tried.toml"]).await;
    assert_eq!(status, 0, "{out}{error}");
    assert!(!out.contains("hush-4711"), "{out}");
}
