//! Servers for names change while a plugin runs.

use super::*;

/// Set in the process that has a `/etc` of its own: whether the keeper is to be tried.
const INNER: &str = "SEGUE_TEST_OWN_ETC";

/// Runs the test of this name again where `/etc` is a copy that it may change. Returns false where that cannot be.
fn in_own_etc(name: &str, keeper: bool) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"cp -r /etc "$1/etc" 2>/dev/null; rm -f "$1/etc/resolv.conf"
mount --bind "$1/etc" /etc && shift && exec "$@""#;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(folder.path());
    command.arg(std::env::current_exe().unwrap()).args(["--exact", "--nocapture"]);
    command.arg(format!("plugin::tests::hostile::names::{name}")).env(INNER, keeper.to_string());
    let output = command.output().expect("unshare is installed");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if !text.contains("running 1 test") {
        eprintln!("skipped: {}", text.trim());
        return false;
    }
    assert!(output.status.success(), "{text}");
    true
}

async fn follows(name: &str, keeper: bool) {
    if std::env::var_os(INNER).is_none() {
        in_own_etc(name, keeper);
        return;
    }
    let bench = Bench::new();
    let hook = r#"
def stream(id, p):
    words = open("/etc/resolv.conf").read().split()
    answer(id, url(words[1] + "-" + str(os.getpid()) if p["content_id"] == "who" else words[1]))
"#;
    bench.python("demo", hook, json!({"scopes": [{"scope": "network", "reason": "fetches"}]}));
    let settings = if keeper { bench.unconfined() } else { bench.settings() };
    let replace = |text: &str| {
        fs::write("/etc/resolv.conf.new", text).unwrap();
        fs::rename("/etc/resolv.conf.new", "/etc/resolv.conf").unwrap();
    };
    replace("nameserver 192.0.2.1\n");
    let host = Host::start(settings).await.unwrap();
    allow(&host, "demo").await.unwrap();
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "192.0.2.1");
    replace("nameserver 192.0.2.2\n");
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "192.0.2.2");
    // What did not change does not cost a start.
    let process = ask(&host, "demo", "who").await.unwrap();
    assert_eq!(ask(&host, "demo", "who").await.unwrap(), process);
    // A link to a folder of its own is followed without a start, after the one that the link costs.
    let folder = tempfile::tempdir_in("/etc").unwrap();
    let target = folder.path().join("resolv.conf");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    fs::write(&target, "nameserver 192.0.2.3\n").unwrap();
    fs::remove_file("/etc/resolv.conf").unwrap();
    std::os::unix::fs::symlink(&target, "/etc/resolv.conf").unwrap();
    let process = ask(&host, "demo", "who").await.unwrap();
    assert!(process.starts_with("192.0.2.3-"), "{process}");
    let new = folder.path().join("new");
    fs::write(&new, "nameserver 192.0.2.4\n").unwrap();
    fs::rename(&new, &target).unwrap();
    assert_eq!(ask(&host, "demo", "who").await.unwrap(), process.replace("192.0.2.3", "192.0.2.4"));
    host.shutdown().await;
}

#[tokio::test]
async fn within_bubblewrap_a_plugin_sees_the_servers_for_names_that_there_are_now() {
    follows("within_bubblewrap_a_plugin_sees_the_servers_for_names_that_there_are_now", false).await;
}

#[tokio::test]
async fn under_the_keeper_a_plugin_sees_the_servers_for_names_that_there_are_now() {
    follows("under_the_keeper_a_plugin_sees_the_servers_for_names_that_there_are_now", true).await;
}
