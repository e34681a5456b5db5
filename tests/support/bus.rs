//! A message bus of our own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use zbus::Connection;
use zbus::connection::Builder;

/// A private dbus-daemon. It can be stopped and started again on the same address.
pub struct Bus {
    folder: TempDir,
    daemon: Option<Child>,
}

impl Bus {
    /// Starts one.
    pub fn start() -> Bus {
        let mut bus = Bus { folder: TempDir::with_prefix("segue-bus-").unwrap(), daemon: None };
        bus.restart();
        bus
    }

    /// Where it listens, or will.
    pub fn address(&self) -> String {
        format!("unix:path={}", self.folder.path().join("bus").display())
    }

    /// Starts it again after [`Bus::stop`].
    pub fn restart(&mut self) {
        let mut daemon = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--print-address", "--address", &self.address()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null()) // it complains about limits that it may not raise
            .spawn()
            .expect("these tests need dbus-daemon");
        let mut line = String::new();
        // The address is written once it listens.
        BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("unix:"), "dbus-daemon said {line:?}");
        self.daemon = Some(daemon);
    }

    /// Ends it; everybody on it is thrown off.
    pub fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().unwrap();
            daemon.wait().unwrap();
            let _ = std::fs::remove_file(self.folder.path().join("bus"));
        }
    }

    /// A new connection to it.
    pub async fn connect(&self) -> Connection {
        Builder::address(self.address().as_str()).build().await.unwrap()
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.stop();
    }
}
