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
use super::card::{Card, PCM};
use super::client::{Client, Record, Said};
use super::plugin::Plugin;
use super::process::{self, Process};
use super::{PATIENCE, until};

/// What the daemon is started with.
pub struct Setup {
    alsa_config: Option<PathBuf>,
    plugins: Vec<Plugin>,
    bundled: Vec<&'static str>,
    sections: String,
    device: Vec<&'static str>,
    output: String,
    more_folder: bool,
    log_level: &'static str,
    environment: Vec<(&'static str, PathBuf)>,
}

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

impl Setup {
    /// Sound goes to this card.
    pub fn card(mut self, card: &Card) -> Setup {
        self.alsa_config = Some(card.alsa_config());
        self
    }

    /// Installed, trusted and enabled with all scopes that it asks for.
    pub fn plugin(mut self, plugin: &Plugin) -> Setup {
        self.plugins.push(plugin.clone());
        self
    }

    /// One of the plugins that come with Segue, with all scopes of the fixtures' plugins.
    pub fn bundled(mut self, id: &'static str) -> Setup {
        self.bundled.push(id);
        self
    }

    /// More sections for segue.toml, but for `[output]`.
    pub fn config(mut self, sections: &str) -> Setup {
        self.sections.push_str(sections);
        self.sections.push('\n');
        self
    }

    /// These devices in order of preference, instead of the card.
    pub fn devices(mut self, names: &[&'static str]) -> Setup {
        self.device = names.to_vec();
        self
    }

    /// More lines for the section `[output]`.
    pub fn output(mut self, lines: &str) -> Setup {
        self.output.push_str(lines);
        self.output.push('\n');
        self
    }

    /// With a second folder of plugins, `more-plugins` in its home, which wins over the first.
    pub fn more_plugins(mut self) -> Setup {
        self.more_folder = true;
        self
    }

    /// A path in its environment, such as `SSL_CERT_FILE`.
    pub fn env(mut self, name: &'static str, path: &Path) -> Setup {
        self.environment.push((name, path.to_owned()));
        self
    }

    /// Logs from this level on instead of everything from `debug` on.
    pub fn log_level(mut self, level: &'static str) -> Setup {
        self.log_level = level;
        self
    }

    /// Starts it and waits until it is on the bus.
    pub async fn start(self) -> Daemon {
        let home = TempDir::with_prefix("segue-home-").unwrap();
        let bus = Bus::start();
        for folder in ["state", "cache", "config", "plugins", "more-plugins"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        let mut folders = vec![home.path().join("plugins")];
        folders.extend(self.more_folder.then(|| home.path().join("more-plugins")));
        for plugin in &self.plugins {
            plugin.install(&home.path().join("plugins"));
        }
        for id in &self.bundled {
            copy_package(id, &home.path().join("plugins"));
        }
        let alsa_config = self.alsa_config.unwrap_or_else(|| PathBuf::from("/usr/share/alsa/alsa.conf"));
        let configuration = format!(
            "[dbus]\nbus = \"{}\"\n[output]\ndevice = {:?}\n{}[plugins]\nfolders = {folders:?}\n[log]\nlevel = \"{}\"\n{}",
            bus.address(),
            self.device,
            self.output,
            self.log_level,
            self.sections,
        );
        fs::write(home.path().join("config/segue.toml"), configuration).unwrap();
        let connection = bus.connect().await;
        let record = Record::begin(&connection).await;
        let client = Client::new(connection).await;
        let environment = self.environment;
        let child = spawn(home.path(), &home.path().join("state"), &alsa_config, &environment);
        let process = found(&child);
        let mut daemon =
            Daemon { home, bus, alsa_config, environment, child: Some(child), process, client, record };
        daemon.until_on_the_bus(0).await;
        for plugin in &self.plugins {
            daemon.trust_and_enable(plugin.id(), plugin.scopes()).await;
        }
        for id in self.bundled {
            daemon.trust_and_enable(id, &Plugin::SCOPES).await;
        }
        daemon
    }
}

/// Copied, since a check-out may be writable for a group.
fn copy_package(id: &str, folder: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins").join(id);
    let copied = std::process::Command::new("cp").arg("-r").arg(from).arg(folder).status().unwrap();
    let closed = std::process::Command::new("chmod").args(["-R", "go-w"]).arg(folder).status().unwrap();
    assert!(copied.success() && closed.success());
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
    /// How to start one: [`Setup::start`].
    #[allow(clippy::new_ret_no_self)]
    pub fn new() -> Setup {
        Setup {
            alsa_config: None,
            plugins: Vec::new(),
            bundled: Vec::new(),
            sections: String::new(),
            device: vec![PCM],
            output: String::new(),
            more_folder: false,
            log_level: "debug",
            environment: Vec::new(),
        }
    }

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

    /// Waits for an event of this kind.
    pub async fn wait_event(&mut self, kind: &str) -> Said {
        self.wait_event_from(0, kind).await
    }

    /// Waits for an event of this kind at or after a place in the record.
    pub async fn wait_event_from(&mut self, from: usize, kind: &str) -> Said {
        let is_kind = |said: &Said| matches!(said, Said::Event { kind: other, .. } if other == kind);
        self.record.wait_from(from, &format!("the event {kind}"), is_kind).await
    }

    /// Waits for an error that was announced, and says its message.
    pub async fn wait_error(&mut self, words: &str) -> String {
        let fits = |said: &Said| matches!(said, Said::Error { message, .. } if message.contains(words));
        match self.record.wait_from(0, &format!("an error with “{words}”"), fits).await {
            Said::Error { message, .. } => message,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until it plays, pauses and so on.
    pub async fn wait_state(&mut self, state: &str) {
        let from = self.record.len();
        if self.state().await != state {
            self.record
                .wait_from(from, &format!("the state {state}"), |said| *said == Said::State(state.to_owned()))
                .await;
        }
    }

    /// Waits until the position is at least this, in microseconds.
    pub async fn wait_position(&self, micros: i64) {
        let looked = async {
            while self.position().await < micros {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looked)
            .await
            .unwrap_or_else(|_| panic!("the position never was {micros} µs"));
    }

    /// Plays these and waits until the queue has been heard to its end.
    pub async fn play_to_the_end(&mut self, uris: &[impl AsRef<str>]) {
        let from = self.record.len();
        self.play_uris(uris).await;
        self.wait_end(from).await;
    }

    /// Waits until the queue has been heard to its end.
    pub async fn wait_end(&mut self, from: usize) {
        self.wait_event_from(from, "finished").await;
        self.wait_state("stopped").await;
    }

    /// How often events of this kind were announced.
    pub fn events(&self, kind: &str) -> usize {
        let is_kind = |said: &&Said| matches!(said, Said::Event { kind: other, .. } if other == kind);
        self.record.all().iter().filter(is_kind).count()
    }

    /// The errors that were announced.
    pub fn errors(&self) -> Vec<String> {
        let message = |said| match said {
            Said::Error { message, .. } => Some(message),
            _ => None,
        };
        self.record.all().into_iter().filter_map(message).collect()
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
