//! `segue plugin new`: what it writes keeps the contract as it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::workshop::Workshop;

/// Runs it where new files may be written by the group, as is usual on Debian for users with a group of their own.
fn new(workshop: &Workshop, arguments: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 002; exec \"$0\" plugin new \"$@\"", env!("CARGO_BIN_EXE_segue")]);
    command.args(arguments).current_dir(workshop.path("")).output().unwrap()
}

fn made(workshop: &Workshop, arguments: &[&str]) -> String {
    let output = new(workshop, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn modes_are_a_packages(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let facts = entry.metadata().unwrap();
        assert_eq!(facts.permissions().mode() & 0o022, 0, "{:?}", entry.path());
        if facts.is_dir() {
            modes_are_a_packages(&entry.path());
        }
    }
}

async fn passes(workshop: &Workshop, package: &str) {
    let (status, out, error) = workshop.run(&["plugin", "check", package]).await;
    assert_eq!(status, 0, "{out}{error}");
    assert!(out.lines().any(|line| line.starts_with("pass  stream ")), "{out}");
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn a_new_plugin_in_python_passes_at_once() {
    let workshop = Workshop::new();
    let said = made(&workshop, &["my-radio"]);
    assert!(said.contains("segue plugin check ./my-radio"), "{said}");
    modes_are_a_packages(&workshop.path("my-radio"));
    passes(&workshop, "my-radio").await;
    let manifest = fs::read_to_string(workshop.path("my-radio/plugin.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!((&manifest["id"], &manifest["name"]), (&"my-radio".into(), &"My radio".into()));
}

#[tokio::test]
async fn a_new_plugin_in_sh_passes_at_once() {
    if !is_installed("jq") {
        eprintln!("SKIPPED: jq is not installed");
        return;
    }
    let workshop = Workshop::new();
    fs::create_dir(workshop.path("mine")).unwrap();
    made(&workshop, &["Radio “Éire”", "--lang", "sh", "--dir", "mine"]);
    modes_are_a_packages(&workshop.path("mine/radio-ire"));
    passes(&workshop, "mine/radio-ire").await;
}

#[tokio::test]
async fn a_new_plugin_in_rust_passes_once_it_is_built() {
    let workshop = Workshop::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sdk = sources.join("plugins/sdk/rust");
    made(&workshop, &["fast", "--lang", "rust", "--sdk", sdk.to_str().unwrap()]);
    let folder = workshop.path("fast");
    // The versions that are here already.
    fs::copy(sources.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(arguments).arg("--offline").current_dir(&folder);
        // Built once, not at each run.
        command.env("CARGO_TARGET_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/new"));
        command.output()
    };
    match cargo(&["metadata", "--format-version", "1"]) {
        Ok(output) if output.status.success() => {}
        failed => {
            eprintln!("SKIPPED: cargo cannot find the SDK's crates offline: {failed:?}");
            return;
        }
    }
    let built = cargo(&["build"]).unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let package = folder.join("package/fast");
    fs::create_dir_all(&package).unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new/debug/segue-plugin-fast");
    for (from, name, mode) in
        [(program, "segue-plugin-fast", 0o755), (folder.join("plugin.json"), "plugin.json", 0o644)]
    {
        fs::copy(from, package.join(name)).unwrap();
        fs::set_permissions(package.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(&package, fs::Permissions::from_mode(0o755)).unwrap();
    passes(&workshop, "fast/package/fast").await;
}

#[test]
fn nothing_is_overwritten_and_bad_names_are_refused() {
    let workshop = Workshop::new();
    made(&workshop, &["radio"]);
    fs::write(workshop.path("radio/plugin"), "mine").unwrap();
    for (arguments, status, words) in [
        (&["radio"][..], 1, "exists already"),
        (&["radio", "--lang", "sh"], 1, "exists already"),
        (&["other", "--dir", "nowhere"], 1, "is missing"),
        (&["42"], 2, "no id can be made of “42”"),
        (&["other", "--lang", "rust", "--sdk", "nowhere"], 2, "no folder with the SDK's Cargo.toml"),
        (&["other", "--lang", "cobol"], 2, "cobol"),
    ] {
        let refused = new(&workshop, arguments);
        assert_eq!(refused.status.code(), Some(status), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains(words), "{refused:?}");
    }
    assert_eq!(fs::read_to_string(workshop.path("radio/plugin")).unwrap(), "mine");
    assert!(!workshop.path("other").exists());
}
