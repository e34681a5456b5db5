//! Who may read plugins' logs and decide about plugins on a bus that many users share: the real daemon on a system bus
//! of our own, and callers of several users. Only root can be several users, so that others skip this.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use nix::unistd::{Gid, Group, Uid, User, chown};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::bus::{PATIENCE, write_parrot};

/// Users that every Linux has, `nobody` and `daemon`: a bus turns away those that it does not know.
const DAEMON: u32 = 65_534;
const GUEST: u32 = 1;

/// Lets everybody do everything: what is refused, the daemon refuses.
const OPEN: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=SOCKET</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/><allow send_type="method_call"/><allow send_requested_reply="true"/>
    <allow receive_requested_reply="true"/><allow send_type="signal"/><allow receive_type="signal"/>
    <allow receive_type="method_call"/>
  </policy>
</busconfig>
"#;

struct Shared {
    folder: TempDir,
    _bus: Child,
    daemon: Child,
}

impl Shared {
    async fn start() -> Shared {
        let folder = TempDir::with_prefix("segue-shared-").unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        write_parrot(&at("plugins").join("parrot"));
        let address = format!("unix:path={}", at("bus").display());
        fs::write(at("bus.conf"), OPEN.replace("SOCKET", &at("bus").display().to_string())).unwrap();
        let mut bus = Command::new("dbus-daemon");
        bus.arg("--config-file").arg(at("bus.conf")).args(["--nofork", "--print-address"]);
        let mut bus = bus.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        let mut line = String::new();
        // Written once it listens.
        timeout(PATIENCE, BufReader::new(bus.stdout.take().unwrap()).read_line(&mut line))
            .await
            .unwrap()
            .unwrap();
        assert!(line.starts_with("unix:"), "dbus-daemon said {line:?}");

        let config = format!(
            "[dbus]\nbus = \"system\"\n[output]\ndevice = \"null\"\n[plugins]\nfolders = [\"{}\"]\n",
            at("plugins").display()
        );
        for name in ["state", "cache", "config"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(at("config/segue.toml"), config).unwrap();
        for name in ["state", "cache", "config", "config/segue.toml"] {
            chown(&at(name), Some(Uid::from_raw(DAEMON)), None).unwrap();
        }
        let log = fs::File::create(at("log")).unwrap();
        let mut daemon = user(DAEMON, None, env!("CARGO_BIN_EXE_segued"));
        daemon.env("DBUS_SYSTEM_BUS_ADDRESS", &address).env("HOME", folder.path());
        for (name, value) in [
            ("STATE_DIRECTORY", "state"),
            ("CACHE_DIRECTORY", "cache"),
            ("CONFIGURATION_DIRECTORY", "config"),
        ] {
            daemon.env(name, at(value));
        }
        let daemon = daemon.stdin(Stdio::null()).stderr(log).spawn().unwrap();
        let mut shared = Shared { folder, _bus: bus, daemon };
        let deadline = Instant::now() + PATIENCE;
        while !shared.segue(0, None, &["plugin", "list"]).await.0 {
            let ended = shared.daemon.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "{ended:?}: {}", shared.log());
            sleep(std::time::Duration::from_millis(50)).await; // it is not on the bus yet
        }
        shared
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Runs the client as this user: whether it succeeded, and what it said.
    async fn segue(&self, uid: u32, group: Option<Gid>, arguments: &[&str]) -> (bool, String) {
        let mut client = user(uid, group, env!("CARGO_BIN_EXE_segue"));
        client.arg("--bus").arg(format!("unix:path={}/bus", self.folder.path().display())).args(arguments);
        let output = timeout(PATIENCE, client.stdin(Stdio::null()).output()).await.unwrap().unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Verified copies of plugins are read-only; root may remove them all the same.
        let _ = self.daemon.start_kill();
    }
}

fn user(uid: u32, group: Option<Gid>, program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={uid}")).arg(format!("--regid={uid}"));
    match group {
        Some(group) => command.arg(format!("--groups={group}")),
        None => command.arg("--clear-groups"),
    };
    command.arg(program).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").kill_on_drop(true);
    command
}

#[tokio::test]
async fn logs_are_for_root_and_the_group_audio_and_decisions_are_not_theirs_alone() {
    if !Uid::effective().is_root() || !Path::new("/usr/bin/setpriv").exists() {
        eprintln!("SKIPPED: only root can call as several users, with setpriv");
        return;
    }
    if [DAEMON, GUEST].iter().any(|uid| User::from_uid(Uid::from_raw(*uid)).unwrap().is_none()) {
        eprintln!("SKIPPED: there are no users nobody and daemon");
        return;
    }
    let shared = Shared::start().await;
    let logs = ["plugin", "logs", "parrot"];
    for arguments in [&logs[..], &["plugin", "logs", "parrot", "-f"]] {
        let (done, said) = shared.segue(GUEST, None, arguments).await;
        assert!(!done && said.contains("for root and the group audio"), "{said}");
    }
    let (done, said) = shared.segue(DAEMON, None, &logs).await;
    assert!(
        !done && said.contains("segued's own user may not read"),
        "a plugin reads another one's log: {said}"
    );
    for everybody in
        [&["plugin", "list"][..], &["plugin", "health", "parrot"], &["plugin", "inspect", "parrot"]]
    {
        let (done, said) = shared.segue(GUEST, None, everybody).await;
        assert!(done, "{everybody:?}: {said}");
    }
    let (done, said) = shared.segue(0, None, &logs).await;
    assert!(done, "{said}");
    let trust = ["plugin", "trust", "parrot", "--yes"];
    for uid in [GUEST, DAEMON] {
        let (done, said) = shared.segue(uid, None, &trust).await;
        assert!(!done && said.contains("use sudo"), "{said}");
    }
    match Group::from_name("audio").unwrap() {
        None => eprintln!("SKIPPED in part: there is no group audio"),
        Some(audio) => {
            let (done, said) = shared.segue(GUEST, Some(audio.gid), &logs).await;
            assert!(done, "{said}");
            let (done, said) = shared.segue(GUEST, Some(audio.gid), &trust).await;
            assert!(!done, "whoever may hear music decides about plugins: {said}");
        }
    }
    let (done, said) = shared.segue(0, None, &trust).await;
    assert!(done, "{said}");
}
