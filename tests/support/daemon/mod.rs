//! The real `segued`, with folders, bus and card of its own.

use std::fs::{self, File};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::bus::Bus;
use super::client::{Client, Record, Said};
use super::plugin::Plugin;
use super::process::{self, Process};
use super::{PATIENCE, until};

mod awaited;
mod setup;

#[allow(unused_imports)] // each test binary uses its own part
pub use setup::Setup;

/// The running daemon. What [`Client`] does can be asked of it directly.
pub struct Daemon {
    home: TempDir,
    bus: Bus,
    alsa_config: PathBuf,
    environment: Vec<(&'static str, PathBuf)>,
    child: Option<Child>,
    process: Process,
    client: Client,
    /// What it announced.
    pub record: Record,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    /// Until it and every process that it had started were gone.
    pub took: Duration,
    /// Its own.
    pub status: ExitStatus,
}

impl Deref for Daemon {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

fn spawn(home: &Path, state: &Path, alsa_config: &Path, environment: &[(&'static str, PathBuf)]) -> Child {
    let log = File::options().create(true).append(true).open(home.join("segued.log")).unwrap();
    Command::new(env!("CARGO_BIN_EXE_segued"))
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home)
        .env("STATE_DIRECTORY", state)
        .env("CACHE_DIRECTORY", home.join("cache"))
        .env("CONFIGURATION_DIRECTORY", home.join("config"))
        .env("ALSA_CONFIG_PATH", alsa_config)
        .envs(environment.iter().map(|(name, path)| (name, path)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

fn found(child: &Child) -> Process {
    Process::find(child.id().unwrap() as i32).unwrap()
}

impl Daemon {
    async fn until_on_the_bus(&mut self, from: usize) {
        let child = self.child.as_mut().unwrap();
        let there = self.record.wait_from(from, "segued on the bus", |said| *said == Said::OnTheBus(true));
        tokio::select! {
            _ = there => {}
            status = child.wait() => panic!("segued ended at its start: {status:?}\n{}", self.log()),
        }
    }

    /// For `segue --bus` and `playerctl`.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// For a test that takes the bus away.
    pub fn bus_mut(&mut self) -> &mut Bus {
        &mut self.bus
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.process.pid
    }

    /// Its folders: `state`, `cache`, `config`, `plugins`.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// What it logged, over all its runs.
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("segued.log")).unwrap_or_default()
    }

    /// How often this stands in the log.
    pub fn logged(&self, words: &str) -> usize {
        self.log().lines().filter(|line| line.contains(words)).count()
    }

    /// The processes that it started, and theirs.
    pub fn children(&self) -> Vec<Process> {
        process::descendants(self.pid())
    }

    /// Those that run this plugin's program.
    pub fn plugin_processes(&self, plugin: &Plugin) -> Vec<Process> {
        let program = format!("/plugin/{}", plugin.id());
        let runs =
            |process: &Process| process.name.starts_with("relay") || process.name.starts_with("python");
        let ours = |process: &Process| process.command_line().contains(&program);
        self.children()
            .into_iter()
            .filter(|process| process.is_alive() && runs(process) && ours(process))
            .collect()
    }

    /// Asks it to end, as systemd does, and waits until nothing of it is left.
    pub async fn term(&mut self) -> Ended {
        self.end(Signal::SIGTERM).await
    }

    /// Ends it as a lack of memory would.
    pub async fn kill9(&mut self) -> Ended {
        self.end(Signal::SIGKILL).await
    }

    async fn end(&mut self, signal: Signal) -> Ended {
        let family = self.children();
        let mut child = self.child.take().unwrap();
        let asked = Instant::now();
        kill(Pid::from_raw(self.pid()), signal).unwrap();
        let waited = tokio::time::timeout(PATIENCE, child.wait()).await;
        let status = waited.unwrap_or_else(|_| panic!("segued did not end:\n{}", self.log())).unwrap();
        until("every process of segued's to be gone", || family.iter().all(|process| !process.is_alive()))
            .await;
        Ended { took: asked.elapsed(), status }
    }

    /// Waits for as long as it takes until it ends by itself.
    pub async fn ended(&mut self) -> std::process::ExitStatus {
        self.child.take().unwrap().wait().await.unwrap()
    }

    /// Starts it again with the same folders, after [`Daemon::term`] or [`Daemon::kill9`].
    pub async fn start_again(&mut self) {
        assert!(self.child.is_none(), "it still runs");
        let from = self.record.len();
        let child =
            spawn(self.home.path(), &self.home.path().join("state"), &self.alsa_config, &self.environment);
        self.process = found(&child);
        self.child = Some(child);
        self.until_on_the_bus(from).await;
    }

    /// Starts another one beside it: the same bus, card and log, and its state below this folder of the home.
    pub fn start_another(&self, state: &str) -> Child {
        spawn(self.home.path(), &self.home.path().join(state), &self.alsa_config, &self.environment)
    }

    /// The client, pointed at this daemon: exit status, standard output, standard error.
    pub async fn segue(&self, arguments: &[&str]) -> (i32, String, String) {
        segue(&self.bus.address(), arguments).await
    }
}

/// Runs `segue` against the bus at this address.
pub async fn segue(bus: &str, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_segue"));
    command.args(arguments).env("SEGUE_BUS", bus).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("segue does not end").unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "--- segued's log ---\n{}--- what it announced ---\n{:#?}",
                self.log(),
                self.record.all()
            );
        }
        // Ended before its folder goes, or it would write into it meanwhile. Its plugins end with it.
        if let Some(child) = &mut self.child {
            // Asked first: a plugin that is just being started is better ended by its daemon.
            let _ = kill(Pid::from_raw(self.process.pid), Signal::SIGTERM);
            let asked = Instant::now();
            while asked.elapsed() < Duration::from_secs(3) && matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let _ = child.start_kill();
            while matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        // Verified copies of plugins are read-only.
        let _ = std::process::Command::new("chmod").arg("-R").arg("u+w").arg(self.home.path()).status();
    }
}
