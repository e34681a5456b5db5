use super::*;

#[tokio::test]
async fn nothing_runs_before_it_is_trusted_and_enabled() {
    let bench = Bench::new();
    bench.python("demo", "", json!({"scopes": [{"scope": "network", "reason": "fetches"}]}));
    let host = bench.host().await;
    assert_eq!(state(&host, "demo"), PluginState::Untrusted);
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::PluginNotEnabled);
    assert!(matches!(host.enable("demo", &[], &who()).await, Err(HostError::NotTrusted(_))));
    let wrong = host.trust("demo", &"0".repeat(64), &who()).await;
    assert!(matches!(wrong, Err(HostError::FingerprintMismatch { .. })));
    assert!(matches!(host.trust("other", "", &who()).await, Err(HostError::NotInstalled(_))));

    let mut changes = host.subscribe();
    let fingerprint = host.list()[0].fingerprint.clone();
    host.trust("demo", &fingerprint, &who()).await.unwrap();
    assert_eq!(changes.recv().await.unwrap(), id("demo"));
    assert_eq!(state(&host, "demo"), PluginState::Trusted);
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::PluginNotEnabled);
    let unasked = host.enable("demo", &["secret:x".to_owned()], &who()).await;
    assert!(matches!(unasked, Err(HostError::ScopeNotRequested { .. })));

    host.enable("demo", &[], &who()).await.unwrap();
    assert_eq!(state(&host, "demo"), PluginState::Enabled);
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "1");
    host.disable("demo", &who()).await.unwrap();
    assert_eq!(state(&host, "demo"), PluginState::Trusted);
    assert!(!host.list()[0].running);
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::PluginNotEnabled);

    let audit = fs::read_to_string(bench.path("state/audit.jsonl")).unwrap();
    let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let actions: Vec<_> = lines.iter().map(|line| line["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["trust", "enable", "disable"]);
    assert!(lines.iter().all(|l| l["uid"] == 1_000 && l["fingerprint"] == fingerprint.as_str()));
}

#[tokio::test]
async fn decisions_outlive_the_daemon_and_a_rescan_that_finds_nothing_changes_nothing() {
    let bench = Bench::new();
    bench.python("demo", "", json!({}));
    let host = bench.enabled("demo").await;
    let trust = fs::read(bench.path("state/trust.json")).unwrap();
    host.rescan().await;
    assert!(host.list()[0].running, "a rescan does not stop what runs");
    assert_eq!(fs::read(bench.path("state/trust.json")).unwrap(), trust);
    host.shutdown().await;
    let again = bench.host().await;
    assert_eq!(state(&again, "demo"), PluginState::Enabled);
    assert!(!again.list()[0].running, "started by a call, not by the daemon");
    assert_eq!(ask(&again, "demo", "2").await.unwrap(), "2");
    again.shutdown().await;
    let facts = fs::metadata(bench.path("state/trust.json")).unwrap();
    assert_eq!(facts.permissions().mode() & 0o077, 0);
}

#[tokio::test]
async fn a_bundle_that_is_edited_after_trust_is_disabled_and_never_run() {
    let bench = Bench::new();
    let folder = bench.python("demo", "", json!({}));
    let host = bench.enabled("demo").await;
    host.disable("demo", &who()).await.unwrap();
    host.enable("demo", &[], &who()).await.unwrap();
    host.shutdown().await;
    // Not rescanned: the next start must find it by itself.
    let host = bench.host().await;
    let evil = PYTHON.replace("#HOOKS", "def stream(id, p): answer(id, url('evil'))");
    fs::write(folder.join("run"), &evil).unwrap();
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::PluginNotEnabled);
    assert_eq!(state(&host, "demo"), PluginState::Changed);
    assert!(host.list()[0].granted.is_empty());
    // Changing it back does not give the grants back.
    fs::write(folder.join("run"), PYTHON.replace("#HOOKS", "")).unwrap();
    host.rescan().await;
    assert_eq!(state(&host, "demo"), PluginState::Trusted);
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::PluginNotEnabled);
}

#[tokio::test]
async fn a_change_stops_a_running_plugin_at_the_rescan() {
    let bench = Bench::new();
    let folder = bench.python("demo", "", json!({}));
    let host = bench.enabled("demo").await;
    ask(&host, "demo", "1").await.unwrap();
    fs::write(folder.join("data"), "new").unwrap();
    host.rescan().await;
    assert_eq!(state(&host, "demo"), PluginState::Changed);
    assert!(!host.list()[0].running);
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::PluginNotEnabled);
    assert!(fs::read_to_string(bench.path("state/audit.jsonl")).unwrap().contains("\"changed\""));
    allow(&host, "demo").await.unwrap();
    assert_eq!(ask(&host, "demo", "3").await.unwrap(), "3");
    host.shutdown().await;
}

#[tokio::test]
async fn a_copy_that_was_touched_is_made_anew_from_what_was_trusted() {
    let bench = Bench::new();
    bench.python("demo", "", json!({}));
    let host = bench.enabled("demo").await;
    let copy = bench.path("state/packages").join(&host.list()[0].fingerprint).join("demo/run");
    host.shutdown().await;
    fs::set_permissions(&copy, Permissions::from_mode(0o755)).unwrap();
    fs::write(&copy, PYTHON.replace("#HOOKS", "def stream(id, p): answer(id, url('evil'))")).unwrap();
    let host = bench.host().await;
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "1");
    host.shutdown().await;
}

#[tokio::test]
async fn a_distribution_upgrade_without_further_scopes_keeps_the_old_copy_serving() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root owns what a distribution installs");
        return;
    }
    let bench = Bench::new();
    let folder = bench.python("demo", "def stream(id, p): answer(id, url('old'))", json!({}));
    let settings = Settings { packaged: bench.path("plugins"), ..bench.settings() };
    let host = Host::start(settings).await.unwrap();
    allow(&host, "demo").await.unwrap();
    let new = PYTHON.replace("#HOOKS", "def stream(id, p): answer(id, url('new'))");
    fs::write(folder.join("run"), &new).unwrap();
    host.rescan().await;
    assert_eq!(state(&host, "demo"), PluginState::Changed);
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "old");
    allow(&host, "demo").await.unwrap();
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "new");
    write_package(&folder, "demo", &new, json!({"scopes": [{"scope": "network", "reason": "more"}]}));
    host.rescan().await;
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::PluginNotEnabled);
    host.shutdown().await;
}

#[tokio::test]
async fn a_damaged_trust_file_is_set_aside_and_trusts_nothing() {
    let bench = Bench::new();
    bench.python("demo", "", json!({}));
    bench.enabled("demo").await.shutdown().await;
    fs::write(bench.path("state/trust.json"), "{").unwrap();
    let host = bench.host().await;
    assert_eq!(state(&host, "demo"), PluginState::Untrusted);
    assert!(bench.path("state/trust.json.damaged").exists());
}

#[tokio::test]
async fn a_handshake_that_is_not_what_was_trusted_names_both_values() {
    for (field, value) in [
        ("protocol", "\"segue.plugin/9\""),
        ("id", "\"other\""),
        ("version", "\"9\""),
        ("scopes", "[\"network\"]"),
    ] {
        let bench = Bench::new();
        let hook = format!(
            "def initialize(id, p):\n    r = {{'protocol': 'segue.plugin/1', 'id': ME, 'version': '1', 'scopes': [], 'capabilities': []}}\n    r['{field}'] = {value}\n    answer(id, r)"
        );
        bench.python("demo", &hook, json!({}));
        let host = bench.host().await;
        let Err(HostError::Handshake(error)) = allow(&host, "demo").await else { panic!("{field}") };
        assert_eq!(error.code, ErrorCode::PluginIdentityMismatch, "{error}");
        assert!(error.message.contains(field) && error.message.contains("was trusted"), "{error}");
        assert_eq!(state(&host, "demo"), PluginState::Trusted);
        host.shutdown().await;
        assert!(processes_with(bench.folder.path().to_str().unwrap()).is_empty());
    }
}

#[tokio::test]
async fn configuration_and_granted_secrets_only_reach_the_plugin() {
    let bench = Bench::new();
    let hook = "def stream(id, p):\n    sys.stderr.write('W! the key is ' + INIT['secrets']['key'] + '\\n'); sys.stderr.flush()\n    answer(id, url(json.dumps([INIT['config'], INIT['secrets'], INIT['scopes']], separators=(',', ':'))))";
    let scopes =
        json!({"scopes": [{"scope": "secret:key", "reason": "x"}, {"scope": "secret:pin", "reason": "x"}]});
    bench.python("demo", hook, scopes);
    let toml = "[config]\nserver = \"s\"\n[secrets]\nkey = \"hunter2\"\npin = \"1234\"\nother = \"o\"\n";
    fs::write(bench.path("config/plugins/demo.toml"), toml).unwrap();
    let host = bench.host().await;
    host.trust("demo", &host.list()[0].fingerprint, &who()).await.unwrap();
    host.enable("demo", &["secret:key".to_owned()], &who()).await.unwrap();
    let path = ask(&host, "demo", "1").await.unwrap();
    let path = percent_encoding::percent_decode_str(&path).decode_utf8().unwrap().into_owned();
    assert_eq!(path, r#"[{"server":"s"},{"key":"hunter2"},["secret:key"]]"#);
    host.shutdown().await;
    let log = host.logs("demo", 10).unwrap();
    assert_eq!((log[0].level, log[0].text.as_str()), (LogLevel::Warn, "the key is [redacted]"));
}

#[tokio::test]
async fn a_plugin_is_stopped_for_good_also_when_that_cannot_be_written() {
    let bench = Bench::new();
    bench.python("demo", "", json!({}));
    let host = bench.enabled("demo").await;
    ask(&host, "demo", "1").await.unwrap();
    // Nothing can be written where a folder has the file's name.
    let audit = bench.path("state/audit.jsonl");
    fs::remove_file(&audit).unwrap();
    fs::create_dir(&audit).unwrap();
    let error = host.disable("demo", &who()).await.unwrap_err();
    assert!(matches!(error, HostError::NotKept { .. }), "{error}");
    assert!(!host.list()[0].running);
    assert_eq!(code(&host, "demo", "1").await, ErrorCode::PluginNotEnabled);
    host.rescan().await;
    assert_eq!(state(&host, "demo"), PluginState::Trusted);
    // It is told again until it is on the disk.
    fs::remove_dir(&audit).unwrap();
    host.disable("demo", &who()).await.unwrap();
    host.shutdown().await;
    let host = bench.host().await;
    assert_eq!(state(&host, "demo"), PluginState::Trusted);
    host.shutdown().await;
}
