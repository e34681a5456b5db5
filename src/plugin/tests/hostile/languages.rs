//! Interpreters and compiled programs start under each rule set.

use super::*;

const NODE: &str = r#"#!/usr/bin/env node
const reply = (id, more) => process.stdout.write(JSON.stringify({jsonrpc: "2.0", id, ...more}) + "\n");
require("readline").createInterface({input: process.stdin}).on("line", line => {
  const m = JSON.parse(line);
  if (m.method === "initialize") reply(m.id, {result: {protocol: "segue.plugin/1", id: "demo", version: "1", scopes: m.params.scopes, capabilities: ["stream"]}});
  else if (m.method === "stream") reply(m.id, {result: {url: "http://host.example/node", content_type: "audio/mpeg"}});
  else reply(m.id, {error: {code: -32601, message: "no"}});
});
"#;

const SHELL: &str = r#"#!/bin/sh
exec jq --unbuffered -c '
  def reply(more): {jsonrpc: "2.0", id} + more;
  if .method == "initialize" then
    reply({result: {protocol: "segue.plugin/1", id: "demo", version: "1", scopes: .params.scopes, capabilities: ["stream"]}})
  elif .method == "stream" then reply({result: {url: "http://host.example/jq", content_type: "audio/mpeg"}})
  else reply({error: {code: -32601, message: "no"}}) end'
"#;

const C: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char line[1 << 16];
int main(void) {
    while (fgets(line, sizeof line, stdin)) {
        const char *id = strstr(line, "\"id\":");
        long number = id ? atol(id + 5) : 0;
        if (strstr(line, "\"method\":\"ping\""))
            printf("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{\"status\":\"ok\",\"version\":\"1\",\"capabilities\":[\"stream\"]}}\n", number);
        else if (strstr(line, "\"method\":\"stream\""))
            printf("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{\"url\":\"http://host.example/c\",\"content_type\":\"audio/mpeg\"}}\n", number);
        else
            printf("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n", number);
        fflush(stdout);
    }
    return 0;
}
"#;

/// Starts a plugin under both means, with and without network, and asks it for something. `put` writes the
/// package with these facts in its manifest.
async fn starts_everywhere(answer: &str, put: impl Fn(&Bench, Value)) {
    for keeper in [false, true] {
        for network in [false, true] {
            let bench = Bench::new();
            let scopes =
                if network { vec![json!({"scope": "network", "reason": "fetches"})] } else { vec![] };
            put(&bench, json!({"scopes": scopes}));
            let settings = if keeper { bench.unconfined() } else { bench.settings() };
            let host = Host::start(settings).await.unwrap();
            let allowed = allow(&host, "demo").await;
            assert!(allowed.is_ok(), "keeper: {keeper}, network: {network}: {allowed:?}");
            assert_eq!(ask(&host, "demo", answer).await.unwrap(), answer);
            host.shutdown().await;
        }
    }
}

fn is_installed(program: &str) -> bool {
    let found = ["/usr/local/bin", "/usr/bin"].iter().any(|folder| Path::new(folder).join(program).exists());
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

#[tokio::test]
async fn python_starts_under_each_rule_set() {
    starts_everywhere("python", |bench, extra| {
        bench.python("demo", "import ssl, threading, asyncio", extra);
    })
    .await;
}

#[tokio::test]
async fn node_starts_under_each_rule_set() {
    if is_installed("node") {
        starts_everywhere("node", |bench, extra| {
            bench.plugin("demo", NODE, extra);
        })
        .await;
    }
}

#[tokio::test]
async fn sh_with_jq_starts_under_each_rule_set() {
    if is_installed("jq") {
        starts_everywhere("jq", |bench, extra| {
            bench.plugin("demo", SHELL, extra);
        })
        .await;
    }
}

#[tokio::test]
async fn a_compiled_program_starts_under_each_rule_set() {
    if !is_installed("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("plugin.c"), folder.path().join("plugin"));
    fs::write(&source, C).unwrap();
    let built = Command::new("gcc").arg("-o").args([&program, &source]).status().unwrap();
    assert!(built.success());
    starts_everywhere("c", |bench, extra| {
        let package = bench.plugin("demo", "", extra);
        fs::copy(&program, package.join("run")).unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_is_no_program_is_not_given_to_a_shell() {
    let bench = Bench::new();
    bench.plugin("demo", "echo hello\n", json!({}));
    let host = bench.host().await;
    let Err(HostError::Handshake(error)) = allow(&host, "demo").await else { panic!("enabled") };
    assert!(error.message.contains("#!"), "{error}");
    bench.plugin("other", "#!/usr/bin/no-such-interpreter\n", json!({}));
    host.rescan().await;
    let Err(HostError::Handshake(error)) = allow(&host, "other").await else { panic!("enabled") };
    assert!(error.message.contains("interpreter"), "{error}");
}
