//! The first plugin of the README, built as its reader would build it, and without a network.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The first block of the README in this language.
fn block(language: &str) -> &'static str {
    let readme = include_str!("../README.md");
    let (_, rest) = readme.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_first_plugin_compiles_and_answers() {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = sdk.ancestors().nth(3).unwrap();
    let package = tempfile::tempdir().unwrap();
    fs::create_dir(package.path().join("src")).unwrap();
    fs::write(package.path().join("plugin.json"), block("json")).unwrap();
    fs::write(package.path().join("src/main.rs"), block("rust")).unwrap();
    let cargo = block("toml").replace("../segue/plugins/sdk/rust", sdk.to_str().unwrap());
    fs::write(package.path().join("Cargo.toml"), cargo).unwrap();
    // The versions that are at hand; cargo takes out of it what the package does not need.
    fs::copy(workspace.join("Cargo.lock"), package.path().join("Cargo.lock")).unwrap();
    // Kept between runs, so that only the first one builds the dependencies.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--quiet"])
        .current_dir(package.path())
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut plugin = Command::new(target.join("debug/radio"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "search", "params": {"query": "station", "limit": 5}});
    writeln!(plugin.stdin.take().unwrap(), "{call}").unwrap();
    let output = plugin.wait_with_output().unwrap();
    assert!(output.status.success());
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["result"]["results"][0]["content_id"], "one");
}
