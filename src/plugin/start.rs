//! From a decision to a plugin that has shaken hands: check, copy, start, `initialize`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::statvfs::{FsFlags, statvfs};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::task::JoinHandle;

use super::backoff::Limits;
use super::copies::CopyStore;
use super::counters::Counters;
use super::grants::{self, Granted};
use super::log::Log;
use super::package::{self, Fingerprint, PackageFile};
use super::process::{Isolation, Launch, LaunchError, Launcher, Process};
use super::quota::Quota;
use super::redact::Redactor;
use super::rpc::Connection;
use crate::track::GrantedFolders;
use segue_protocol::manifest::{Capability, Manifest, PROTOCOL, Scope};
use segue_protocol::messages::{Dirs, HostFacts, InitializeParams, InitializeResult, PingResult, RawResult};
use segue_protocol::{ErrorCode, Fault};

/// How long what a dead process wrote last may take to be read.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Everything that starting one plugin needs.
pub(super) struct Plan {
    pub(super) manifest: Manifest,
    pub(super) fingerprint: Fingerprint,
    pub(super) granted: Vec<Scope>,
    pub(super) source: PathBuf,
    /// What the package's folder looked like when it was last hashed. `None`: the copy is older than the
    /// package and serves on.
    pub(super) seen: Mutex<Option<Vec<PackageFile>>>,
    pub(super) copies: CopyStore,
    pub(super) data: PathBuf,
    pub(super) cache: PathBuf,
    pub(super) config_file: PathBuf,
    pub(super) require_sandbox: bool,
    pub(super) launcher: Launcher,
    /// The daemon's folders, which no grant may show.
    pub(super) own: Vec<PathBuf>,
    /// What kept it in bounds when it was started last.
    pub(super) measured: Mutex<Option<Isolation>>,
    /// Knows the secrets that it was started with last.
    pub(super) redactor: Mutex<Redactor>,
    pub(super) log: Log,
    pub(super) counters: Arc<Counters>,
    pub(super) limits: Limits,
}

impl Plan {
    /// What keeps it in bounds: measured when it was started last, else what a trial has shown.
    pub(super) fn isolation(&self) -> Isolation {
        let measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        measured.as_ref().unwrap_or_else(|| self.launcher.isolation()).clone()
    }

    /// A failure in words that may be shown.
    pub(super) fn clean_fault(&self, fault: Fault) -> Fault {
        self.redactor.lock().unwrap_or_else(PoisonError::into_inner).clean_fault(fault)
    }

    /// What it may keep on the disk.
    pub(super) fn quota(&self) -> Quota {
        Quota { data: self.data.clone(), cache: self.cache.clone(), most: self.limits.folder_bytes }
    }

    fn note(&self, isolation: Isolation) {
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner) = Some(isolation);
    }

    /// Where the plugin's `file:` URLs may lead.
    pub(super) fn readable(&self) -> GrantedFolders {
        let folder = |scope: &Scope| match scope {
            Scope::FilesRead(folder) => Some(folder.clone()),
            _ => None,
        };
        let folders = self.granted.iter().filter_map(folder).collect();
        GrantedFolders::of(self.manifest.id.clone(), folders, self.own.clone())
    }
}

/// Why a plugin did not start.
#[derive(Clone, Debug)]
pub(super) enum StartFailure {
    /// The package is not what it was when it was last looked at.
    SourceChanged,
    /// It never ran; trying again soon will not help.
    Refused(Fault),
    /// It ran, or should have, and failed.
    Failed(Fault),
}

impl StartFailure {
    /// Why, where that says something about the plugin's health.
    pub(super) fn words(&self) -> Option<String> {
        match self {
            StartFailure::SourceChanged => None,
            StartFailure::Refused(fault) | StartFailure::Failed(fault) => Some(fault.message.clone()),
        }
    }
}

/// A plugin that has shaken hands.
pub(super) struct Running {
    pub(super) process: Process,
    pub(super) connection: Arc<Connection>,
    pub(super) drain: JoinHandle<()>,
    pub(super) since: Instant,
}

impl Running {
    /// Ends it with all descendants; returns how it ended when all are gone and their words are read.
    pub(super) async fn kill(self) -> (String, Arc<Connection>) {
        let status = self.process.kill().await;
        let _ = tokio::time::timeout(LAST_WORDS, self.drain).await;
        (status, self.connection)
    }
}

/// By name.
pub(super) type Secrets = BTreeMap<String, String>;

/// `plugins/<id>.toml`.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    #[serde(default)]
    config: toml::Table,
    #[serde(default)]
    secrets: Secrets,
}

struct Prepared {
    copy: PathBuf,
    folders: Vec<Granted>,
    config: Map<String, Value>,
    secrets: Secrets,
}

/// Starts the plugin once. Dropping the future ends what was started.
pub(super) async fn start(plan: Arc<Plan>) -> Result<Running, StartFailure> {
    let for_disk = plan.clone();
    let prepared = tokio::task::spawn_blocking(move || prepare(&for_disk)).await;
    let prepared = prepared.map_err(|error| StartFailure::Failed(cannot_start(error)))??;
    let since = Instant::now();
    let launch = Launch {
        program: prepared.copy.join(&plan.manifest.executable),
        arguments: plan.manifest.arguments.clone(),
        package: prepared.copy,
        data: plan.data.clone(),
        cache: plan.cache.clone(),
        network: plan.granted.contains(&Scope::Network),
        folders: prepared.folders,
        require_sandbox: plan.require_sandbox,
    };
    let (process, pipes) = plan.launcher.start(launch).await.map_err(|error| not_launched(&plan, error))?;
    plan.note(process.isolation().clone());
    let id = &plan.manifest.id;
    let redactor = Redactor::new(prepared.secrets.values().cloned());
    *plan.redactor.lock().unwrap_or_else(PoisonError::into_inner) = redactor.clone();
    let drain = tokio::spawn(plan.log.clone().drain(id.clone(), pipes.stderr, redactor.clone()));
    let timeout = plan.limits.write_timeout;
    let counters = plan.counters.clone();
    let connection = Connection::new(id, pipes.stdin, pipes.stdout, timeout, redactor, counters);
    let running = Running { process, connection, drain, since };
    let handshake = shake_hands(&plan, &running.connection, &prepared.config, &prepared.secrets, since);
    let outcome = tokio::select! {
        outcome = handshake => outcome,
        () = running.process.ended() => Err(Fault::new(ErrorCode::PluginCrashed, "the process ended at its start")),
        _ = running.connection.over() => {
            Err(Fault::new(ErrorCode::PluginCrashed, "the process closed its standard output at its start"))
        }
    };
    match outcome {
        Ok(()) => Ok(running),
        Err(mut fault) => {
            let (status, _) = running.kill().await;
            if fault.code == ErrorCode::PluginCrashed {
                fault.message = format!("{} ({status}{})", fault.message, last_words(&plan.log));
            }
            Err(StartFailure::Failed(plan.clean_fault(fault)))
        }
    }
}

fn last_words(log: &Log) -> String {
    log.newest(1).first().map_or_else(String::new, |line| {
        format!("; it said: {}", line.text.chars().take(200).collect::<String>())
    })
}

fn cannot_start(error: impl std::fmt::Display) -> Fault {
    Fault::new(ErrorCode::PluginCrashed, format!("it cannot be started: {error}"))
}

fn not_launched(plan: &Plan, error: LaunchError) -> StartFailure {
    let text = error.to_string();
    match error {
        LaunchError::Unconfined(isolation) => {
            plan.note(*isolation);
            refused(text)
        }
        LaunchError::Runner { .. } => refused(text),
        LaunchError::Failed(_) | LaunchError::Io(_) => StartFailure::Failed(cannot_start(text)),
    }
}

fn refused(text: impl Into<String>) -> StartFailure {
    StartFailure::Refused(Fault::new(ErrorCode::PluginNotEnabled, text))
}

/// Everything that touches the disk.
fn prepare(plan: &Plan) -> Result<Prepared, StartFailure> {
    let id = plan.manifest.id.as_str();
    if let Some(seen) = &*plan.seen.lock().unwrap_or_else(PoisonError::into_inner) {
        match package::walk(&plan.source) {
            Ok((files, _)) if files == *seen => {}
            _ => return Err(StartFailure::SourceChanged),
        }
    }
    let copy = match plan.copies.verified(plan.fingerprint, id) {
        Some((copy, _)) => copy,
        None => match plan.copies.copy(&plan.source, id, plan.fingerprint) {
            Ok((copy, _)) => copy,
            Err(error) => return Err(refused(format!("its verified copy cannot be made: {error}"))),
        },
    };
    if statvfs(&copy).is_ok_and(|facts| facts.flags().contains(FsFlags::ST_NOEXEC)) {
        let text = format!("nothing may run from {}: mount it without noexec", copy.display());
        return Err(refused(text));
    }
    for folder in [&plan.data, &plan.cache] {
        private_folder(folder)
            .map_err(|error| StartFailure::Failed(cannot_start(format!("{}: {error}", folder.display()))))?;
    }
    let folders = grants::present(&plan.granted, &plan.own)
        .map_err(|why| refused(format!("a folder that it was granted cannot be shown to it: {why}")))?;
    plan.quota()
        .tidy()
        .map_err(|full| StartFailure::Refused(Fault::new(ErrorCode::PluginFaulted, full.to_string())))?;
    let (config, secrets) = read_config(&plan.config_file, &plan.granted).map_err(refused)?;
    Ok(Prepared { copy, folders, config, secrets })
}

/// Creates a folder that is the daemon's alone.
pub(super) fn private_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The plugin's configuration and those of its secrets that were granted.
pub(super) fn read_config(path: &Path, granted: &[Scope]) -> Result<(Map<String, Value>, Secrets), String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    // The message alone: what toml quotes may be a secret.
    let wrong = |error: toml::de::Error| format!("{}: {}", path.display(), error.message());
    let file: ConfigFile = toml::from_str(&text).map_err(wrong)?;
    let config = match serde_json::to_value(file.config).map_err(|error| error.to_string())? {
        Value::Object(config) => config,
        _ => Map::new(),
    };
    let mut secrets = file.secrets;
    secrets.retain(|name, _| granted.iter().any(|s| matches!(s, Scope::Secret(granted) if granted == name)));
    Ok((config, secrets))
}

async fn shake_hands(
    plan: &Plan,
    connection: &Arc<Connection>,
    config: &Map<String, Value>,
    secrets: &Secrets,
    since: Instant,
) -> Result<(), Fault> {
    let manifest = &plan.manifest;
    let scopes: Vec<String> = plan.granted.iter().map(ToString::to_string).collect();
    let params = InitializeParams {
        protocol: PROTOCOL.to_owned(),
        host: HostFacts { name: "segue".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        scopes: scopes.clone(),
        dirs: Dirs {
            data: plan.data.to_string_lossy().into_owned(),
            cache: plan.cache.to_string_lossy().into_owned(),
        },
        config: config.clone(),
        secrets: secrets.clone(),
    };
    let left = manifest.timeouts.initialize.saturating_sub(since.elapsed());
    let capabilities = match connection.call("initialize", Some(params), left).await {
        Ok(result) => check_identity(manifest, &scopes, result.parse()?)?,
        Err(fault) if fault.code == ErrorCode::MethodNotFound => {
            let pong: PingResult = ping(connection, manifest.timeouts.ping).await?.parse()?;
            equal("version", &manifest.version, &pong.version)?;
            tracing::debug!(plugin = %manifest.id, status = pong.status, "handshake by ping");
            pong.capabilities
        }
        Err(fault) => return Err(fault),
    };
    let capabilities = known(manifest, capabilities)?;
    plan.counters.started(left_out(manifest, &capabilities));
    connection.set_capabilities(capabilities);
    Ok(())
}

/// Asks for a sign of life.
pub(super) async fn ping(connection: &Connection, timeout: Duration) -> Result<RawResult, Fault> {
    connection.call("ping", None::<()>, timeout).await
}

/// What a ping tells: the capabilities that work now, and how the plugin is.
pub(super) fn pong(plan: &Plan, result: &RawResult) -> Result<Vec<Capability>, Fault> {
    let pong: PingResult = result.parse()?;
    let capabilities = known(&plan.manifest, pong.capabilities)?;
    let well = pong.status == "ok";
    plan.counters.told(if well { left_out(&plan.manifest, &capabilities) } else { shown(&pong.status) });
    Ok(capabilities)
}

/// Words about what the manifest promises and does not work now; empty when all works.
fn left_out(manifest: &Manifest, offered: &[Capability]) -> String {
    let missing = manifest.capabilities.iter().filter(|capability| !offered.contains(capability));
    let missing: Vec<&str> = missing.map(|capability| capability.as_str()).collect();
    if missing.is_empty() { String::new() } else { format!("it does not offer {} now", missing.join(", ")) }
}

/// A plugin's words, fit for one line.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

pub(super) fn check_identity(
    manifest: &Manifest,
    granted: &[String],
    found: InitializeResult,
) -> Result<Vec<Capability>, Fault> {
    equal("protocol", PROTOCOL, &found.protocol)?;
    equal("id", manifest.id.as_str(), &found.id)?;
    equal("version", &manifest.version, &found.version)?;
    let sorted = |scopes: &[String]| {
        let mut scopes = scopes.to_vec();
        scopes.sort_unstable();
        scopes.join(", ")
    };
    equal("scopes", &sorted(granted), &sorted(&found.scopes))?;
    Ok(found.capabilities)
}

pub(super) fn equal(what: &str, trusted: &str, found: &str) -> Result<(), Fault> {
    if trusted == found {
        return Ok(());
    }
    let found = shown(found);
    let text = format!("its {what} is “{found}”, but “{trusted}” was trusted");
    Err(Fault::new(ErrorCode::PluginIdentityMismatch, text))
}

pub(super) fn known(manifest: &Manifest, offered: Vec<Capability>) -> Result<Vec<Capability>, Fault> {
    match offered.iter().find(|capability| !manifest.capabilities.contains(capability)) {
        None => Ok(offered),
        Some(extra) => {
            let text = format!("it offers “{}”, which its manifest does not name", extra.as_str());
            Err(Fault::new(ErrorCode::PluginIdentityMismatch, text))
        }
    }
}
