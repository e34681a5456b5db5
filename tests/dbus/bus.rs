//! A private dbus-daemon, and a player that does what little the tests need.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command as Program};
use tokio::sync::{broadcast, mpsc, watch};
use zbus::{Connection, DBusError, Message, Proxy};

use segue::control::dbus::{Bus, MPRIS_NAME, MPRIS_PATH, SEGUE_NAME, SEGUE_PATH, Services, serve};
use segue::control::{
    Answer, Can, Command, CommandError, Current, ListedEntry, Notice, Request, State, Status, controller,
};
use segue::output::{self, Output, VolumeMode, VolumeSettings};
use segue::plugin::{Host, Settings};
use segue::track::{EntryId, TrackInfo};

/// Longer than anything takes that works.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A bus of our own at a fixed address in a folder of its own.
pub struct PrivateBus {
    pub folder: TempDir,
    daemon: Option<Child>,
}

impl PrivateBus {
    pub fn not_yet_started() -> PrivateBus {
        PrivateBus { folder: TempDir::new().unwrap(), daemon: None }
    }

    pub async fn started() -> PrivateBus {
        let mut bus = PrivateBus::not_yet_started();
        bus.start().await;
        bus
    }

    pub fn address(&self) -> String {
        format!("unix:path={}", self.socket().display())
    }

    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("bus")
    }

    pub async fn start(&mut self) {
        let mut daemon = Program::new("dbus-daemon")
            .args(["--session", "--print-address", "--nofork", "--address", &self.address()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null()) // it complains about limits that it may not raise
            .kill_on_drop(true)
            .spawn()
            .expect("these tests need dbus-daemon");
        let mut line = String::new();
        let mut stdout = BufReader::new(daemon.stdout.take().unwrap());
        stdout.read_line(&mut line).await.unwrap(); // written once it listens
        assert!(line.starts_with("unix:"), "dbus-daemon said {line:?}");
        self.daemon = Some(daemon);
    }

    pub async fn kill(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        daemon.kill().await.unwrap();
        let _ = std::fs::remove_file(Path::new(&self.socket()));
    }

    pub async fn connect(&self) -> Connection {
        zbus::connection::Builder::address(self.address().as_str()).build().await.unwrap()
    }
}

/// An output that nobody plays to.
fn silent_output() -> Output {
    let volume = VolumeSettings { mode: VolumeMode::Software, ..VolumeSettings::default() };
    let settings =
        output::Settings { device: vec!["null".to_owned()], volume, ..output::Settings::default() };
    Output::start(settings).unwrap().0
}

/// The server under test with both ends of its player.
pub struct Fixture {
    pub bus: PrivateBus,
    pub ready: watch::Receiver<bool>,
    pub state: Arc<watch::Sender<State>>,
    pub notices: broadcast::Sender<Notice>,
    /// What reached the player, but for reads.
    pub commands: mpsc::UnboundedReceiver<Command>,
}

impl Fixture {
    pub async fn ready() -> Fixture {
        let mut fixture = Fixture::on(PrivateBus::started().await).await;
        fixture.until_ready(true).await;
        fixture
    }

    pub async fn on(bus: PrivateBus) -> Fixture {
        let (controller, requests) = controller();
        let (state, shown) = watch::channel(State { volume: 0.5, ..State::default() });
        let state = Arc::new(state);
        let (notices, _) = broadcast::channel(16);
        let (ready, is_ready) = watch::channel(false);
        let (log, commands) = mpsc::unbounded_channel();
        tokio::spawn(scripted_player(requests, state.clone(), log));
        let plugins = bundled_plugins(bus.folder.path()).await;
        let devices = silent_output().devices();
        let services = Services { controller, state: shown, notices: notices.clone(), devices, plugins };
        tokio::spawn(serve(Bus::Address(bus.address()), services, ready));
        Fixture { bus, ready: is_ready, state, notices, commands }
    }

    pub async fn until_ready(&mut self, wanted: bool) {
        let waited = tokio::time::timeout(PATIENCE, self.ready.wait_for(|ready| *ready == wanted)).await;
        waited.expect("the names were not taken in time").unwrap();
    }

    pub async fn next_command(&mut self) -> Command {
        tokio::time::timeout(PATIENCE, self.commands.recv()).await.unwrap().unwrap()
    }

    pub fn play(&self, entry: u64, title: &str) {
        self.state.send_modify(|state| {
            state.status = Status::Playing;
            state.can = Can { next: true, previous: true, play: true, pause: true, seek: true };
            state.current = Some(current(entry, title));
        });
    }
}

/// A plugin that writes what it is asked to search for on standard error, so many times as `limit` says.
const PARROT: &str = r#"#!/usr/bin/python3
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    if call["method"] == "initialize":
        result = {"protocol": "segue.plugin/1", "id": "parrot", "version": "1", "capabilities": ["search"],
                  "scopes": call["params"]["scopes"]}
    elif call["method"] == "ping":
        result = {"status": "ok", "version": "1", "capabilities": ["search"]}
    else:
        sys.stderr.write((call["params"]["query"] + "\n") * call["params"]["limit"])
        sys.stderr.flush()
        result = {"results": []}
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
"#;

pub fn write_parrot(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let manifest = r#"{"schema": 1, "id": "parrot", "name": "Parrot", "version": "1", "protocol": "segue.plugin/1",
        "executable": "run", "capabilities": ["search"],
        "scopes": [{"scope": "secret:word", "reason": "has something to hide"}]}"#;
    for (name, text, mode) in [("plugin.json", manifest, 0o644), ("run", PARROT, 0o755)] {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    for folder in [folder, folder.parent().unwrap()] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// The host of the plugins that come with Segue, and of the parrot; nothing is trusted yet.
async fn bundled_plugins(state: &Path) -> Host {
    let own = state.join("plugins");
    write_parrot(&own.join("parrot"));
    // A copy with the modes that a package needs, whatever umask the checkout had.
    let script = "cp -r \"$0\" \"$1\" && rm -rf \"$1\"/__pycache__ && chmod -R u=rwX,go=rX \"$1\"";
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/plugins/demo");
    let copied = Program::new("sh").args(["-c", script, demo]).arg(own.join("demo")).status().await.unwrap();
    assert!(copied.success());
    std::fs::create_dir_all(state.join("config/plugins")).unwrap();
    std::fs::write(state.join("config/plugins/parrot.toml"), "[secrets]\nword = \"polly-7291\"\n").unwrap();
    let kept = Settings::new(state.join("state"), state.join("cache"), state.join("config"));
    let folders = vec![own];
    let settings = Settings { folders, packaged: state.join("packaged"), ..kept };
    Host::start(settings).await.unwrap()
}

pub fn current(entry: u64, title: &str) -> Current {
    let info = TrackInfo {
        title: Some(title.to_owned()),
        artists: vec!["Ann".to_owned(), "Ben".to_owned()],
        duration: Some(Duration::from_secs(10)),
        ..TrackInfo::default()
    };
    Current { entry: EntryId(entry), uri: format!("segue:demo:track:{entry}"), info: Arc::new(info) }
}

async fn scripted_player(
    mut requests: mpsc::Receiver<Request>,
    state: Arc<watch::Sender<State>>,
    log: mpsc::UnboundedSender<Command>,
) {
    while let Some(Request { command, reply }) = requests.recv().await {
        let answer = match &command {
            Command::Position => Ok(Answer::Position { micros: 1_500_000, exact: true }),
            Command::Buffer => Ok(Answer::Buffer(Default::default())),
            Command::List { from: 1.., .. } => Ok(Answer::Entries(Vec::new())),
            Command::List { .. } => Ok(Answer::Entries(vec![ListedEntry {
                entry: EntryId(7),
                uri: "segue:demo:track:7".into(),
                info: TrackInfo { title: Some("Seven".into()), ..TrackInfo::default() },
            }])),
            changing => {
                let _ = log.send(changing.clone());
                act(changing, &state)
            }
        };
        let _ = reply.send(answer);
    }
}

fn act(command: &Command, state: &watch::Sender<State>) -> Result<Answer, CommandError> {
    match command {
        Command::SetVolume(volume) => state.send_modify(|state| state.volume = *volume),
        Command::SetRepeat(repeat) => state.send_modify(|state| state.queue.repeat = *repeat),
        Command::Add { uris, .. } => return Ok(Answer::Added((1..).map(EntryId).take(uris.len()).collect())),
        Command::Remove(entries) => return Err(CommandError::NoSuchEntry(entries[0])),
        Command::Next => return Err(CommandError::EmptyQueue),
        _ => (),
    }
    Ok(Answer::Done)
}

pub async fn mpris(connection: &Connection) -> Proxy<'static> {
    uncached(connection, MPRIS_NAME, MPRIS_PATH, "org.mpris.MediaPlayer2.Player").await
}

pub async fn segue(connection: &Connection, interface: &'static str) -> Proxy<'static> {
    uncached(connection, SEGUE_NAME, SEGUE_PATH, interface).await
}

pub async fn uncached(
    connection: &Connection,
    name: &'static str,
    path: &'static str,
    interface: &'static str,
) -> Proxy<'static> {
    zbus::proxy::Builder::new(connection)
        .destination(name)
        .path(path)
        .interface(interface)
        .cache_properties(zbus::proxy::CacheProperties::No)
        .build()
        .await
        .unwrap()
}

/// The name of the error that a call was answered with.
pub fn error_name(result: zbus::Result<Message>) -> String {
    match result.expect_err("the call should have been refused") {
        zbus::Error::MethodError(name, sentence, _) => {
            assert!(sentence.is_some_and(|sentence| !sentence.is_empty()), "{name} says nothing");
            name.to_string()
        }
        zbus::Error::FDO(error) => error.name().to_string(),
        other => panic!("{other}"),
    }
}
