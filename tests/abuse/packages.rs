//! Packages that break the rules, are edited while they run, or share an id.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::json;

use crate::case::{Case, Expect, python};
use crate::stage::{self, Stage};
use crate::support::prelude::*;

const OUT: Expect = Expect::Fails(-5);

fn append(file: &Path) {
    let mut text = fs::read(file).unwrap();
    text.extend_from_slice(b"\n# one line more\n");
    fs::write(file, text).unwrap();
}

/// The same bytes in a new file that takes the old one's name.
fn replace(file: &Path, more: &[u8]) {
    let fresh = file.with_extension("new");
    fs::copy(file, &fresh).unwrap();
    let mut text = fs::read(&fresh).unwrap();
    text.extend_from_slice(more);
    fs::write(&fresh, text).unwrap();
    fs::rename(fresh, file).unwrap();
}

#[tokio::test]
async fn a_package_that_is_edited_while_it_runs_is_disabled_and_its_process_ends() {
    let case = |id| python(id, "").well();
    let out = |case: Case| case.call("well?", OUT).stopped();
    let cases = [
        out(case("script-edited").edited(|package| append(&package.join("run")))),
        out(case("script-swapped").edited(|package| replace(&package.join("run"), b"#"))),
        out(case("file-added").edited(|package| fs::write(package.join("more.py"), "x").unwrap())),
        out(case("mode-changed").edited(|package| {
            fs::write(package.join("more"), "x").unwrap();
            fs::set_permissions(package.join("run"), Permissions::from_mode(0o777)).unwrap();
        })),
        out(case("more-scopes-asked").edited(|package| {
            let file = package.join("plugin.json");
            let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            manifest["scopes"] = json!([{"scope": "network", "reason": "now it wants more"}]);
            fs::write(file, manifest.to_string()).unwrap();
        })),
        out(case("made-a-link").edited(|package| {
            fs::remove_file(package.join("run")).unwrap();
            symlink("/bin/sh", package.join("run")).unwrap();
        })),
        out(case("removed").edited(|package| fs::remove_dir_all(package).unwrap())),
        case("touched-only").edited(|package| replace(&package.join("run"), b"")).well(),
        python("edited-in-flight", "def abuse(id, words): log(words)")
            .edited_during("take your time", OUT, |package| append(&package.join("run")))
            .call("well?", OUT)
            .stopped(),
    ];
    stage::play(&cases).await;
}

/// A name, how the good package is spoiled, and words of the reason.
type Spoiled = (&'static str, fn(&Path), &'static str);

fn manifest(package: &Path, field: &str, value: serde_json::Value) {
    let file = package.join("plugin.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    manifest[field] = value;
    fs::write(file, manifest.to_string()).unwrap();
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

const SPOILED: [Spoiled; 20] = [
    ("link-inside", |p| symlink("run", p.join("other")).unwrap(), "symbolic link"),
    ("link-outside", |p| symlink("/etc/passwd", p.join("other")).unwrap(), "symbolic link"),
    ("link-to-itself", |p| symlink("loop", p.join("loop")).unwrap(), "symbolic link"),
    ("link-to-a-folder", |p| symlink("/etc", p.join("etc")).unwrap(), "symbolic link"),
    ("writable-file", |p| mode(&p.join("run"), 0o757), "writable by others"),
    ("writable-for-a-group", |p| mode(&p.join("plugin.json"), 0o664), "writable by others"),
    ("writable-folder", |p| mode(p, 0o777), "writable by others"),
    ("climbs", |p| manifest(p, "executable", json!("../music/relay")), "executable"),
    ("climbs-within", |p| manifest(p, "executable", json!("x/../../music/relay")), "executable"),
    ("absolute", |p| manifest(p, "executable", json!("/bin/sh")), "executable"),
    ("not-there", |p| manifest(p, "executable", json!("nothing")), "executable"),
    ("not-executable", |p| mode(&p.join("run"), 0o644), "chmod"),
    (
        "huge-program",
        |p| File::options().write(true).open(p.join("run")).unwrap().set_len(129 << 20).unwrap(),
        "134217728",
    ),
    ("huge-package", |p| File::create(p.join("data")).unwrap().set_len(257 << 20).unwrap(), "268435456"),
    (
        "pipe-inside",
        |p| nix::unistd::mkfifo(&p.join("pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap(),
        "neither a file nor a folder",
    ),
    ("unknown-field-here", |p| manifest(p, "autorun", json!(true)), "autorun"),
    ("id-of-another", |p| manifest(p, "id", json!("music")), "music"),
    ("long-manifest", |p| manifest(p, "name", json!("x".repeat(70_000))), "65536"),
    ("no-json-at-all", |p| fs::write(p.join("plugin.json"), "#!/bin/sh\n").unwrap(), "plugin.json"),
    ("no-manifest", |p| fs::remove_file(p.join("plugin.json")).unwrap(), "plugin.json"),
];

#[tokio::test]
async fn a_package_that_breaks_a_rule_is_listed_with_it_and_never_runs() {
    let stage = Stage::open(&[]).await;
    let folder = stage.daemon.home().join("plugins");
    for (id, spoil, _) in SPOILED {
        python(id, "").install(&folder, id, "");
        let package = folder.join(id);
        mode(&package, 0o755);
        spoil(&package);
    }
    fs::write(folder.join("crowded"), "a file is no package").unwrap();
    stage.daemon.plugins.call_method("Rescan", &()).await.unwrap();
    let mut wrong = Vec::new();
    for (id, _, words) in SPOILED {
        let review = stage.inspect(id).await;
        let (state, reason) = (get::<String>(&review, "state"), get::<String>(&review, "reason"));
        if state != "invalid" || !reason.contains(words) {
            wrong.push(format!("{id} is {state}: {reason}"));
        }
        if let Ok(()) = stage.enable(id).await {
            wrong.push(format!("{id} was enabled"));
        }
        wrong.extend(stage.search(id, "well?").await.ok().map(|found| format!("{id} answered {found:?}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let all: Vec<Dict> = stage.daemon.plugins.call("List", &()).await.unwrap();
    assert_eq!(all.len(), SPOILED.len() + 2);
    stage.music_plays().await.unwrap();
}

#[tokio::test]
async fn of_two_packages_with_one_id_the_second_folders_runs_and_the_other_is_shadowed() {
    let cases = [python("double", "def abuse(id, words): answer(id, 'the first')")];
    let stage = Stage::open(&cases).await;
    python("double", "def abuse(id, words): answer(id, 'the second')").install(
        &stage.daemon.home().join("more-plugins"),
        "double",
        "",
    );
    stage.enable("double").await.unwrap();
    assert_eq!(stage.search("double", "which?").await, Ok(vec!["the first".to_owned()]));
    stage.daemon.plugins.call_method("Rescan", &()).await.unwrap();
    // What was trusted is not what wins now: it must not run under that trust.
    assert_eq!(stage.search("double", "which?").await.unwrap_err().0, -5);
    stage.enable("double").await.unwrap();
    assert_eq!(stage.search("double", "which?").await, Ok(vec!["the second".to_owned()]));
    let all: Vec<Dict> = stage.daemon.plugins.call("List", &()).await.unwrap();
    let double = all.iter().filter(|plugin| get::<String>(plugin, "id") == "double");
    let mut states: Vec<String> = double.map(|plugin| get(plugin, "state")).collect();
    states.sort();
    assert_eq!(states, ["enabled", "shadowed"]);
    stage.daemon.plugins.call::<_, _, ()>("Disable", &"double").await.unwrap();
    stage.music_plays().await.unwrap();
}
