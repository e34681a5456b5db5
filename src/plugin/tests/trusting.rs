//! What happens to trust when packages change by themselves.

use std::io::Read;

use super::*;
use crate::stream::{self, StreamError, Streams};

/// Waits until `holds`, looking again at each change that the host tells.
async fn until(host: &Host, holds: impl Fn() -> bool) {
    let mut changes = host.subscribe();
    let wait = async {
        while !holds() {
            let _ = tokio::time::timeout(Duration::from_millis(200), changes.recv()).await;
        }
    };
    tokio::time::timeout(LONG, wait).await.expect("it comes true in time");
}

#[tokio::test]
async fn a_byte_that_is_edited_ends_a_running_plugin_without_anybody_asking() {
    let bench = Bench::new();
    let folder = bench.python("demo", "", json!({}));
    let host = bench.enabled("demo").await;
    ask(&host, "demo", "1").await.unwrap();
    let text = fs::read_to_string(folder.join("run")).unwrap();
    fs::write(folder.join("run"), text.replace("lock", "lokc")).unwrap();
    until(&host, || state(&host, "demo") == PluginState::Changed && !host.list()[0].running).await;
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::PluginNotEnabled);
    let mark = bench.path("state/packages");
    until(&host, || processes_with(mark.to_str().unwrap()).is_empty()).await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_folder_that_appears_later_is_noticed_with_its_plugin() {
    let bench = Bench::new();
    let host = bench.host().await;
    assert!(host.list().is_empty());
    write_package(&bench.path("local/late"), "late", "#!/bin/sh\n", json!({}));
    until(&host, || host.list().iter().any(|p| p.state == PluginState::Untrusted)).await;
    fs::remove_dir_all(bench.path("local")).unwrap();
    until(&host, || host.list().is_empty()).await;
    host.shutdown().await;
}

#[tokio::test]
async fn where_watches_run_out_packages_are_looked_at_from_time_to_time() {
    let bench = Bench::new();
    let folder = bench.plugin("demo", "#!/bin/sh\n", json!({}));
    let watch = WatchLimits { max_watches: 1, slow: Duration::from_millis(300), ..WatchLimits::default() };
    let host = Host::start(Settings { watch, ..bench.settings() }).await.unwrap();
    let before = host.list()[0].fingerprint.clone();
    fs::write(folder.join("more"), "x").unwrap();
    until(&host, || host.list()[0].fingerprint != before).await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_call_in_flight_fails_at_once_when_its_plugin_is_disabled() {
    let bench = Bench::new();
    bench.python("demo", "def stream(id, p): open(INIT['dirs']['data'] + '/asked', 'w').close()", json!({}));
    let host = bench.enabled("demo").await;
    let (other, asked) = (host.clone(), bench.path("state/plugin-data/demo/asked"));
    let call = tokio::spawn(async move { code(&other, "demo", "1").await });
    until(&host, || asked.exists()).await;
    host.disable("demo", &who()).await.unwrap();
    assert_eq!(call.await.unwrap(), ErrorCode::PluginNotEnabled);
    host.shutdown().await;
}

#[tokio::test]
async fn an_uninstalled_plugin_that_comes_back_unchanged_is_still_enabled() {
    let bench = Bench::new();
    let folder = bench.python("demo", "", json!({}));
    let host = bench.enabled("demo").await;
    fs::rename(&folder, bench.path("away")).unwrap();
    host.rescan().await;
    assert!(host.list().is_empty());
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::PluginNotEnabled);
    fs::rename(bench.path("away"), &folder).unwrap();
    host.rescan().await;
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "1");
    host.shutdown().await;
}

#[tokio::test]
async fn a_copy_goes_when_another_version_is_trusted() {
    let bench = Bench::new();
    let folder = bench.python("demo", "", json!({}));
    let host = bench.enabled("demo").await;
    let old = bench.path("state/packages").join(&host.list()[0].fingerprint);
    fs::write(folder.join("more"), "x").unwrap();
    host.rescan().await;
    assert!(old.exists(), "the record still names it");
    allow(&host, "demo").await.unwrap();
    assert!(!old.exists());
    assert!(bench.path("state/packages").join(&host.list()[0].fingerprint).exists());
    host.shutdown().await;
}

#[tokio::test]
async fn a_followed_package_is_upgraded_without_a_review_unless_it_asks_for_more() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root owns what a distribution installs");
        return;
    }
    let bench = Bench::new();
    let folder = bench.python("demo", "def stream(id, p): answer(id, url('old'))", json!({}));
    let settings = Settings { packaged: bench.path("plugins"), follow_packages: true, ..bench.settings() };
    let host = Host::start(settings).await.unwrap();
    allow(&host, "demo").await.unwrap();
    let old = bench.path("state/packages").join(&host.list()[0].fingerprint);
    let new = PYTHON.replace("#HOOKS", "def stream(id, p): answer(id, url('new'))");
    fs::write(folder.join("run"), &new).unwrap();
    host.rescan().await;
    assert_eq!(state(&host, "demo"), PluginState::Enabled);
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "new");
    assert!(!old.exists());
    let audit = fs::read_to_string(bench.path("state/audit.jsonl")).unwrap();
    assert!(audit.contains("follow_packages"), "{audit}");
    write_package(&folder, "demo", &new, json!({"scopes": [{"scope": "network", "reason": "more"}]}));
    host.rescan().await;
    assert_eq!(state(&host, "demo"), PluginState::Changed);
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::PluginNotEnabled);
    host.shutdown().await;
}

#[tokio::test]
async fn folders_that_hold_more_than_files_to_play_are_not_granted() {
    let bench = Bench::new();
    bench.python("demo", "", json!({"scopes": [{"scope": "files.read:*", "reason": "plays them"}]}));
    let host = bench.host().await;
    let review = host.inspect("demo").unwrap();
    assert_eq!(review.protocol, "segue.plugin/1");
    assert!(review.warning.contains("name each folder"), "{}", review.warning);
    host.trust("demo", &review.summary.fingerprint, &who()).await.unwrap();
    let own = bench.path("state");
    let (above, below) = (bench.folder.path().to_owned(), own.join("packages"));
    for folder in [bench.path("missing"), own, above, below, "/proc".into(), "/run".into()] {
        let scope = format!("files.read:{}", folder.display());
        let refused = host.enable("demo", std::slice::from_ref(&scope), &who()).await;
        assert!(matches!(refused, Err(HostError::FolderRefused { .. })), "{scope}: {refused:?}");
    }
    // A link that takes the place of a folder opens nothing more, nor does a folder that is away keep it from starting.
    let music = bench.path("music");
    fs::create_dir(&music).unwrap();
    let scope = format!("files.read:{}", music.display());
    host.enable("demo", &[scope], &who()).await.unwrap();
    host.shutdown().await;
    fs::remove_dir(&music).unwrap();
    let host = bench.host().await;
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "1");
    host.shutdown().await;
    std::os::unix::fs::symlink(bench.path("state"), &music).unwrap();
    let host = bench.host().await;
    let error = ask(&host, "demo", "1").await.unwrap_err();
    assert!(error.message.contains("cannot be shown to it"), "{error}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_granted_file_is_played_and_nothing_else_is() {
    let bench = Bench::new();
    let music = bench.path("music");
    fs::create_dir_all(music.join("folder")).unwrap();
    let bytes: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    fs::write(music.join("a é.flac"), &bytes).unwrap();
    fs::write(bench.path("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(bench.path("secret"), music.join("link")).unwrap();
    nix::unistd::mkfifo(&music.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let hook = "def stream(id, p): answer(id, {'url': p['content_id'], 'content_type': 'audio/flac'})";
    bench.python("demo", hook, json!({"scopes": [{"scope": "files.read:*", "reason": "plays them"}]}));
    let host = bench.host().await;
    host.trust("demo", &host.list()[0].fingerprint, &who()).await.unwrap();
    let scope = format!("files.read:{}", music.display());
    host.enable("demo", &[scope], &who()).await.unwrap();

    let streams = Streams::new(stream::Settings::default()).unwrap();
    let play = async |name: &str| {
        let track = track("demo", &format!("file://{}/{name}", music.display()));
        let resolved = host.resolve(&track).await.unwrap();
        let (mut reader, _handle) = streams.open(resolved, host.resolver(track), name.to_owned());
        let read = move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all)
        };
        tokio::time::timeout(LONG, tokio::task::spawn_blocking(read)).await.unwrap().unwrap()
    };
    assert!(play("a%20%C3%A9.flac").await.unwrap() == bytes);
    for name in ["link", "fifo", "folder", "missing"] {
        let error = play(name).await.unwrap_err();
        assert!(matches!(StreamError::of(&error), Some(StreamError::File { .. })), "{name}: {error}");
    }
    let base = music.display();
    for refused in [
        format!("file://{base}/../secret"),
        format!("file://{base}/..%2fsecret"),
        "file:///etc/passwd".to_owned(),
    ] {
        let error = ask(&host, "demo", &refused).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::ScopeDenied, "{refused}: {error}");
    }
    for odd in
        [format!("file://host{base}/link"), format!("file:{base}/link"), format!(" file://{base}/link")]
    {
        assert_eq!(code(&host, "demo", &odd).await, ErrorCode::PluginProtocolError, "{odd}");
    }
    // While the plugin runs, its folder becomes a link to the player's own.
    fs::write(bench.path("state/a.flac"), "secret").unwrap();
    fs::rename(&music, bench.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(bench.path("state"), &music).unwrap();
    let error = play("a.flac").await.unwrap_err();
    assert!(matches!(StreamError::of(&error), Some(StreamError::File { .. })), "{error}");
    fs::remove_file(&music).unwrap();
    fs::rename(bench.path("elsewhere"), &music).unwrap();
    host.enable("demo", &[], &who()).await.unwrap();
    let again = ask(&host, "demo", &format!("file://{base}/a.flac")).await.unwrap_err();
    assert_eq!(again.code, ErrorCode::ScopeDenied);
    assert!(again.message.contains("may read") && !again.message.contains("files.read:"), "{again}");
    host.shutdown().await;
}

#[tokio::test]
async fn what_a_plugin_keeps_on_the_disk_has_a_cap() {
    let bench = Bench::new();
    let hook = r#"
def stream(id, p):
    where, content = p["content_id"].split("-")
    open(INIT["dirs"][where] + "/large", "wb").write(b"x" * 300000)
    answer(id, url(content))
"#;
    bench.python("demo", hook, json!({}));
    let limits =
        Limits { folder_bytes: 200_000, ping_every: Duration::from_millis(100), ..bench.settings().limits };
    let host = Host::start(Settings { limits, ..bench.settings() }).await.unwrap();
    allow(&host, "demo").await.unwrap();
    let stopped = async |folder: &str| {
        while host.health("demo").unwrap().running {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let health = host.health("demo").unwrap();
        assert_eq!(health.health, Health::Unhealthy);
        assert!(health.reason.contains(folder) && health.reason.contains("occupies"), "{}", health.reason);
    };
    // A cache is emptied before the next start.
    assert_eq!(ask(&host, "demo", "cache-1").await.unwrap(), "1");
    tokio::time::timeout(LONG, stopped("cache")).await.unwrap();
    assert_eq!(ask(&host, "demo", "data-2").await.unwrap(), "2");
    assert!(!bench.path("cache/plugins/demo/large").exists());
    // Data are a person's to look at.
    tokio::time::timeout(LONG, stopped("plugin-data")).await.unwrap();
    let error = ask(&host, "demo", "cache-3").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::PluginFaulted);
    assert!(error.message.contains("remove what it does not need"), "{error}");
    fs::remove_file(bench.path("state/plugin-data/demo/large")).unwrap();
    assert_eq!(ask(&host, "demo", "cache-3").await.unwrap(), "3");
    host.shutdown().await;
}

#[tokio::test]
async fn who_hears_of_a_change_finds_it_in_the_list() {
    let bench = Bench::new();
    let folder = bench.python("demo", "", json!({}));
    // Others, so that the rescan still writes down what they lost after the first one was judged.
    for other in ["other", "third"] {
        bench.python(other, "", json!({}));
    }
    let host = bench.enabled("demo").await;
    for other in ["other", "third"] {
        allow(&host, other).await.unwrap();
    }
    let mut changes = host.subscribe();
    let heard = async {
        while changes.recv().await.unwrap() != id("demo") {}
        state(&host, "demo")
    };
    fs::write(folder.join("new"), "x").unwrap();
    let rescan = async {
        for other in ["other", "third"] {
            fs::write(bench.path("plugins").join(other).join("new"), "x").unwrap();
        }
        host.rescan().await;
    };
    let (heard, ()) = tokio::join!(tokio::time::timeout(LONG, heard), rescan);
    assert_eq!(heard.unwrap(), PluginState::Changed);
    host.shutdown().await;
}
