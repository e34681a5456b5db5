use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;

fn manifest(change: impl FnOnce(&mut Value)) -> Result<Manifest, ManifestError> {
    let mut value = json!({
        "schema": 1, "id": "demo", "name": "Demo", "version": "1.0", "protocol": "segue.plugin/1",
        "executable": "bin/run", "arguments": ["-v"], "capabilities": ["search", "stream"],
        "scopes": [{"scope": "network", "reason": "fetches"}, {"scope": "secret:password", "reason": "logs in"}],
        "timeouts_ms": {"search": 8000}, "idle_stop_s": 60,
    });
    change(&mut value);
    Manifest::parse(value.to_string().as_bytes(), "demo")
}

#[test]
fn the_documented_manifest_is_accepted_and_its_numbers_are_used() {
    let manifest = manifest(|_| {}).unwrap();
    assert_eq!(manifest.timeouts.search, Duration::from_secs(8));
    assert_eq!(manifest.timeouts.stream, Duration::from_secs(15));
    assert_eq!(manifest.idle_stop, IdleStop::After(Duration::from_secs(60)));
    assert_eq!(manifest.scopes[1].scope, Scope::Secret("password".to_owned()));
}

#[test]
fn each_rule_for_manifests_refuses_what_breaks_it() {
    let rows: &[(&str, Value)] = &[
        ("schema", json!(2)),
        ("id", json!("other")),
        ("id", json!("Demo")),
        ("name", json!("")),
        ("name", json!("a\nb")),
        ("version", json!("")),
        ("protocol", json!("segue.plugin/2")),
        ("executable", json!("")),
        ("executable", json!("/bin/sh")),
        ("executable", json!("../run")),
        ("executable", json!("./run")),
        ("executable", json!("a//b")),
        ("arguments", json!(vec!["x"; 33])),
        ("arguments", json!(["x".repeat(4_097)])),
        ("arguments", json!(["a\u{0}b"])),
        ("capabilities", json!(["fly"])),
        ("capabilities", json!(["search", "search"])),
        ("scopes", json!([{"scope": "root", "reason": "x"}])),
        ("scopes", json!([{"scope": "network", "reason": " "}])),
        ("scopes", json!([{"scope": "network"}])),
        ("scopes", json!([{"scope": "network", "reason": "x"}, {"scope": "network", "reason": "y"}])),
        ("scopes", json!([{"scope": "files.read:/", "reason": "x"}])),
        ("scopes", json!([{"scope": "files.read:/a/../b", "reason": "x"}])),
        ("scopes", json!([{"scope": "files.read:a", "reason": "x"}])),
        ("scopes", json!([{"scope": "secret:", "reason": "x"}])),
        (
            "scopes",
            json!(
                (0..17).map(|n| json!({"scope": format!("secret:{n}"), "reason": "x"})).collect::<Vec<_>>()
            ),
        ),
        ("timeouts_ms", json!({"search": 30_001})),
        ("timeouts_ms", json!({"search": 0})),
        ("timeouts_ms", json!({"serach": 1})),
        ("idle_stop_s", json!(-2)),
        ("comment", json!("unknown fields are refused")),
    ];
    for (field, value) in rows {
        assert!(manifest(|m| m[*field] = value.clone()).is_err(), "{field} = {value}");
    }
    for required in ["schema", "id", "name", "version", "protocol", "executable", "capabilities"] {
        let without = manifest(|m| drop(m.as_object_mut().unwrap().remove(required)));
        assert!(without.is_err(), "{required}");
    }
    assert!(Manifest::parse(b"[]", "demo").is_err());
    assert!(Manifest::parse(" ".repeat(64 * 1024 + 1).as_bytes(), "demo").is_err());
}

/// One package in a folder of its own, changed by `change`.
fn package(change: impl FnOnce(&Path)) -> Result<Package, PackageError> {
    let bench = Bench::new();
    let folder = bench.plugin("demo", "#!/bin/sh\n", json!({}));
    change(&folder);
    Package::read(&folder)
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn each_rule_for_packages_refuses_what_breaks_it() {
    package(|_| {}).unwrap();
    type Change = fn(&Path);
    let rows: &[(&str, Change)] = &[
        ("no manifest", |p| fs::remove_file(p.join("plugin.json")).unwrap()),
        ("long manifest", |p| fs::write(p.join("plugin.json"), " ".repeat(64 * 1024 + 1)).unwrap()),
        ("no executable", |p| fs::remove_file(p.join("run")).unwrap()),
        ("not executable", |p| mode(&p.join("run"), 0o644)),
        ("executable is a folder", |p| {
            fs::remove_file(p.join("run")).unwrap();
            fs::create_dir(p.join("run")).unwrap();
        }),
        ("link to a file", |p| symlink("run", p.join("link")).unwrap()),
        ("link to a folder", |p| symlink("/usr", p.join("link")).unwrap()),
        ("group may write a file", |p| mode(&p.join("run"), 0o775)),
        ("others may write a file", |p| mode(&p.join("plugin.json"), 0o646)),
        ("a socket", |p| drop(std::os::unix::net::UnixListener::bind(p.join("socket")).unwrap())),
        ("others may write a folder", |p| mode(p, 0o757)),
        ("a pipe", |p| nix::unistd::mkfifo(&p.join("pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap()),
        ("too many files", |p| {
            for n in 0..4_095 {
                fs::write(p.join(n.to_string()), "").unwrap();
            }
        }),
        ("too large", |p| fs::File::create(p.join("big")).unwrap().set_len(257 << 20).unwrap()),
        ("executable too large", |p| {
            fs::OpenOptions::new().write(true).open(p.join("run")).unwrap().set_len(129 << 20).unwrap();
        }),
        ("too deep", |p| fs::create_dir_all(p.join("d/".repeat(40))).unwrap()),
    ];
    for (rule, change) in rows {
        assert!(package(change).is_err(), "{rule}");
    }
    if nix::unistd::geteuid().is_root() {
        let foreign = package(|p| std::os::unix::fs::chown(p.join("run"), Some(65_534), None).unwrap());
        assert!(foreign.is_err());
    }
}

#[test]
fn names_that_are_no_text_are_files_like_others() {
    use std::os::unix::ffi::OsStrExt;
    let name = |bytes: &[u8]| std::ffi::OsStr::from_bytes(bytes).to_owned();
    let with = |bytes: &[u8]| package(|p| fs::write(p.join(name(bytes)), "").unwrap()).unwrap().fingerprint;
    assert_ne!(with(b"\xff"), with(b"\xfe"));
}

#[test]
fn the_order_in_which_files_were_made_does_not_matter() {
    let made = |names: [&'static str; 3]| {
        let fill = |p: &Path| names.iter().for_each(|name| fs::write(p.join(name), name).unwrap());
        package(fill).unwrap().fingerprint
    };
    assert_eq!(made(["a", "b", "c"]), made(["c", "a", "b"]));
}

#[tokio::test]
async fn of_101_packages_the_first_100_by_id_are_looked_at() {
    let bench = Bench::new();
    (0..101).for_each(|n| drop(bench.plugin(&format!("p{n:03}"), "#!/bin/sh\n", json!({}))));
    let host = bench.host().await;
    let list = host.list();
    assert_eq!((list.len(), list[99].id.as_str()), (100, "p099"));
    host.shutdown().await;
}

#[test]
fn empty_folders_and_times_do_not_change_the_fingerprint() {
    let plain = package(|_| {}).unwrap().fingerprint;
    assert_eq!(plain, package(|p| fs::create_dir(p.join("empty")).unwrap()).unwrap().fingerprint);
    assert_eq!(plain.to_string().parse::<Fingerprint>().unwrap(), plain);
}

#[derive(Clone, Debug)]
enum Change {
    Flip(usize),
    Append(u8),
    Add(String),
    Rename(String),
    Executable,
    Move,
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<usize>().prop_map(Change::Flip),
        any::<u8>().prop_map(Change::Append),
        "[a-z]{4,8}".prop_map(Change::Add),
        "[a-z]{4,8}".prop_map(Change::Rename),
        Just(Change::Executable),
        Just(Change::Move),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_change_of_any_file_changes_the_fingerprint(
        content in prop::collection::vec(any::<u8>(), 1..300),
        change in changes(),
    ) {
        let bench = Bench::new();
        let folder = bench.plugin("demo", "#!/bin/sh\n", json!({}));
        let file = folder.join("x");
        fs::write(&file, &content).unwrap();
        let before = Package::read(&folder).unwrap().fingerprint;
        let mut changed = content.clone();
        match change {
            Change::Flip(at) => changed[at % content.len()] ^= 1,
            Change::Append(byte) => changed.push(byte),
            Change::Add(name) => fs::write(folder.join(name), "").unwrap(),
            Change::Rename(name) => fs::rename(&file, folder.join(name)).unwrap(),
            Change::Executable => mode(&file, 0o755),
            Change::Move => {
                fs::create_dir(folder.join("d")).unwrap();
                fs::rename(&file, folder.join("d/x")).unwrap();
            }
        }
        if file.exists() {
            fs::write(&file, &changed).unwrap();
        }
        prop_assert_ne!(Package::read(&folder).unwrap().fingerprint, before);
    }

    #[test]
    fn bytes_cannot_move_from_one_file_to_another(text in "[a-z]{2,20}", at in 1usize..19) {
        let at = at.min(text.len() - 1);
        let print = |cut: usize| {
            let bench = Bench::new();
            let folder = bench.plugin("demo", "#!/bin/sh\n", json!({}));
            fs::write(folder.join("a"), &text[..cut]).unwrap();
            fs::write(folder.join("b"), &text[cut..]).unwrap();
            Package::read(&folder).unwrap().fingerprint
        };
        prop_assert_ne!(print(at), print(at - 1));
    }
}

#[tokio::test]
async fn one_bad_package_is_listed_with_its_reason_and_a_duplicate_as_shadowed() {
    let bench = Bench::new();
    bench.plugin("bad", "#!/bin/sh\n", json!({"schema": 7}));
    bench.plugin("good", "#!/bin/sh\n", json!({}));
    write_package(&bench.path("local").join("good"), "good", "#!/bin/sh\n", json!({"version": "2"}));
    symlink(bench.path("plugins/good"), bench.path("plugins/link")).unwrap();
    let host = bench.host().await;
    let list = host.list();
    let rows: Vec<_> = list.iter().map(|p| (p.id.as_str(), p.version.as_str(), p.state)).collect();
    assert_eq!(
        rows,
        [
            ("bad", "", PluginState::Invalid),
            ("good", "2", PluginState::Untrusted),
            ("good", "1", PluginState::Shadowed),
            ("link", "", PluginState::Invalid),
        ]
    );
    assert!(list[0].reason.contains("schema 7"), "{}", list[0].reason);
    assert!(list[3].reason.contains("symbolic link"), "{}", list[3].reason);
}
