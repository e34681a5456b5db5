//! Files that others published, through the decoder: `./dev conformance` fetches them and runs this, and README.md in
//! this folder says what is judged by what. Without the folders that `SEGUE_CONFORMANCE` names nothing of it runs, since
//! no other test may depend on what was fetched.

// The table goes to whoever asked for it; what a test cannot do without, it asks for.
#![allow(clippy::print_stdout, clippy::expect_used, clippy::unwrap_used)]

mod compare;
mod expected;
mod judge;
mod mangle;
mod pcm;
mod run;
mod suite;

use std::path::PathBuf;

/// Folders that hold one folder for each suite, joined by `:`.
const FOLDERS: &str = "SEGUE_CONFORMANCE";
/// How many damaged copies of each file are decoded, in place of the file itself.
const MANGLED: &str = "SEGUE_CONFORMANCE_MANGLED";

#[test]
fn files_that_others_published_sound_as_they_should() {
    let Some(folders) = std::env::var_os(FOLDERS) else {
        println!("Skipped: {FOLDERS} names no folder of published files; ./dev conformance fetches them.");
        return;
    };
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    let suites = suite::find(&folders);
    assert!(!suites.is_empty(), "{folders:?} hold no audio files");
    let findings = match std::env::var(MANGLED) {
        Ok(copies) => mangle::report(&suites, copies.parse().expect("a number of copies")),
        Err(_) => judge::report(&suites),
    };
    assert_eq!(findings, 0, "findings: see above");
}
