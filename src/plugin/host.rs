//! The plugins of this machine: what is installed, what was decided about it, and what runs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::broadcast;

use super::backoff::Limits;
use super::copies::CopyStore;
use super::counters::Counters;
use super::decide::{shown, warning, winner};
use super::discovery::{self, Found};
use super::error::{HostError, StartError};
use super::log::{Log, LogLine};
use super::package::Package;
use super::process::{Isolation, Launcher, Means, find_runner, strays};
use super::start::{Plan, private_folder};
use super::summary::{PluginHealth, PluginReview, PluginState, PluginSummary};
use super::supervisor::Supervisor;
use super::trust::TrustStore;
use super::watch::{self, WatchLimits, Watching};
use crate::track::PluginId;
use segue_protocol::manifest::{PROTOCOL, Scope};
use segue_protocol::{ErrorCode, Fault};

/// State changes that a slow listener may fall behind before it must read the whole list.
const MAX_CHANGES: usize = 128;

/// Where plugins and their state are.
#[derive(Clone, Debug)]
pub struct Settings {
    /// In rising precedence: the distribution's, the administrator's, the user's.
    pub folders: Vec<PathBuf>,
    /// `trust.json`, `audit.jsonl`, `packages/` and `plugin-data/`.
    pub state_dir: PathBuf,
    /// `plugins/<id>/` below it is each plugin's own cache.
    pub cache_dir: PathBuf,
    /// `plugins/<id>.toml` below it: `[config]`, and `[secrets]` for granted ones.
    pub config_dir: PathBuf,
    /// Run nothing that cannot be confined.
    pub require_sandbox: bool,
    /// The folder of the distribution's packages: the old copy of one that was upgraded and asks for no
    /// further scope serves on until it is reviewed.
    pub packaged: PathBuf,
    /// The program that gives plugins namespaces of their own, an absolute path. Where it does not work, a keeper
    /// does what it can, and what it cannot is reported.
    pub bubblewrap: PathBuf,
    /// `segue-plugin-runner`, an absolute path. Without it no plugin is started.
    pub runner: PathBuf,
    /// Trust what the distribution upgraded, as long as it asks for no further scope.
    pub follow_packages: bool,
    /// Times of supervision.
    pub limits: Limits,
    /// How packages are watched for changes.
    pub watch: WatchLimits,
}

impl Settings {
    /// The system's folders for plugins, and these for state, cache and configuration.
    pub fn new(state_dir: PathBuf, cache_dir: PathBuf, config_dir: PathBuf) -> Settings {
        let packaged = PathBuf::from("/usr/lib/segue/plugins");
        Settings {
            folders: vec![packaged.clone(), PathBuf::from("/usr/local/lib/segue/plugins")],
            state_dir,
            cache_dir,
            config_dir,
            require_sandbox: false,
            packaged,
            bubblewrap: PathBuf::from("/usr/bin/bwrap"),
            runner: find_runner(),
            follow_packages: false,
            limits: Limits::default(),
            watch: WatchLimits::default(),
        }
    }
}

/// The plugin host. Clones are handles of the same one.
#[derive(Clone)]
pub struct Host(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) settings: Settings,
    pub(super) launcher: Launcher,
    pub(super) copies: CopyStore,
    pub(super) trust: Arc<Mutex<TrustStore>>,
    pub(super) entries: Mutex<Vec<Entry>>,
    logs: Mutex<HashMap<String, Log>>,
    counters: Mutex<HashMap<PluginId, Arc<Counters>>>,
    /// Decisions and scans happen one after the other.
    pub(super) deciding: tokio::sync::Mutex<()>,
    changes: broadcast::Sender<PluginId>,
    stopping: tokio::sync::watch::Sender<bool>,
    watching: Mutex<Option<Watching>>,
    /// Told when a person had packages looked at: what could not be watched may be there now.
    pub(super) looked: Arc<tokio::sync::Notify>,
}

pub(super) struct Entry {
    pub(super) found: Found,
    pub(super) state: PluginState,
    pub(super) reason: String,
    pub(super) granted: Vec<String>,
    pub(super) supervisor: Option<Arc<Supervisor>>,
}

impl Host {
    /// Looks at what is installed and what was decided. Runs no plugin.
    ///
    /// # Errors
    /// A folder for state that cannot be used, or no thread.
    pub async fn start(settings: Settings) -> Result<Host, StartError> {
        let (bubblewrap, runner) = (settings.bubblewrap.clone(), settings.runner.clone());
        let launcher = Launcher::new(bubblewrap, runner).await.map_err(StartError::Thread)?;
        let isolation = launcher.isolation();
        if isolation.is_enforced() {
            tracing::info!(%isolation, "plugins are confined");
        } else if isolation.means() == Means::Nothing {
            tracing::error!(%isolation, "no plugin can be started");
        } else {
            tracing::warn!(%isolation, "plugins are not fully confined on this machine");
        }
        let at = settings.clone();
        let prepared = tokio::task::spawn_blocking(move || {
            let packages = at.state_dir.join("packages");
            for folder in [&packages, &at.state_dir.join("plugin-data"), &at.cache_dir.join("plugins")] {
                private_folder(folder)
                    .map_err(|source| StartError::Folder { folder: folder.clone(), source })?;
            }
            strays::end(&packages);
            let copies = CopyStore::new(packages);
            let trust = TrustStore::load(&at.state_dir);
            copies.keep_only(&trust.fingerprints());
            Ok::<_, StartError>((copies, trust))
        });
        let (copies, trust) =
            prepared.await.map_err(|error| StartError::Thread(std::io::Error::other(error)))??;
        let host = Host(Arc::new(Inner {
            settings,
            launcher,
            copies,
            trust: Arc::new(Mutex::new(trust)),
            entries: Mutex::new(Vec::new()),
            logs: Mutex::new(HashMap::new()),
            counters: Mutex::new(HashMap::new()),
            deciding: tokio::sync::Mutex::new(()),
            changes: broadcast::channel(MAX_CHANGES).0,
            stopping: tokio::sync::watch::Sender::new(false),
            watching: Mutex::new(None),
            looked: Arc::default(),
        }));
        // Watched before it is read, so that no change falls between.
        let watching = watch::start(&host).await;
        *host.0.watching.lock().unwrap_or_else(PoisonError::into_inner) = Some(watching);
        host.scan().await;
        Ok(host)
    }

    /// Every package, in byte order of the ids, the winner before what it shadows.
    pub fn list(&self) -> Vec<PluginSummary> {
        self.entries().iter().map(|entry| self.summary(entry)).collect()
    }

    /// Everything that a person needs to decide about one plugin.
    ///
    /// # Errors
    /// No such plugin.
    pub fn inspect(&self, id: &str) -> Result<PluginReview, HostError> {
        let entries = self.entries();
        let entry = winner(&entries, id).ok_or_else(|| HostError::NotInstalled(shown(id)))?;
        let summary = self.summary(entry);
        let warning = warning(&summary, &self.isolation_of(entry));
        let protocol = PROTOCOL.to_owned();
        let Ok(package) = &entry.found.package else {
            return Ok(PluginReview {
                summary,
                protocol,
                files: vec![],
                command: vec![],
                scopes: vec![],
                warning,
            });
        };
        let manifest = &package.manifest;
        let mut command = vec![manifest.executable.display().to_string()];
        command.extend(manifest.arguments.iter().cloned());
        Ok(PluginReview {
            summary,
            protocol,
            files: package.files.iter().map(|f| (f.path.display().to_string(), f.len)).collect(),
            command,
            scopes: manifest.scopes.iter().map(|s| (s.scope.to_string(), s.reason.clone())).collect(),
            warning,
        })
    }

    /// The newest `count` lines that a plugin wrote on standard error, oldest first.
    ///
    /// # Errors
    /// No such plugin.
    pub fn logs(&self, id: &str, count: usize) -> Result<Vec<LogLine>, HostError> {
        winner(&self.entries(), id).ok_or_else(|| HostError::NotInstalled(shown(id)))?;
        Ok(self.log_of(id).newest(count))
    }

    /// The number of the newest line of a plugin's log, and the kept lines with higher numbers than `after`. Waits
    /// for one as long as `patience` lasts; a number from before a restart brings all lines.
    ///
    /// # Errors
    /// No such plugin.
    pub async fn log_after(
        &self,
        id: &str,
        after: u64,
        patience: Duration,
    ) -> Result<(u64, Vec<LogLine>), HostError> {
        winner(&self.entries(), id).ok_or_else(|| HostError::NotInstalled(shown(id)))?;
        let log = self.log_of(id);
        // Before looking, so that no line comes in between.
        let mut fresh = log.follow();
        let found = log.after(after);
        if !found.1.is_empty() || patience.is_zero() {
            return Ok(found);
        }
        // A line, or lines that were missed: both are in the log by now.
        let _ = tokio::time::timeout(patience, fresh.recv()).await;
        Ok(log.after(after))
    }

    /// How a plugin is, and what was counted.
    ///
    /// # Errors
    /// No such plugin.
    pub fn health(&self, id: &str) -> Result<PluginHealth, HostError> {
        let entries = self.entries();
        let not_there = || HostError::NotInstalled(shown(id));
        let summary = self.summary(winner(&entries, id).ok_or_else(not_there)?);
        let counters = self.counters_of(&summary.id.parse().map_err(|_| not_there())?);
        let (health, reason) = counters.health();
        Ok(PluginHealth {
            health,
            reason,
            running: summary.running,
            isolation: summary.isolation,
            counts: counters.counts(),
        })
    }

    /// The ids of plugins whose state changed, as it happens.
    pub fn subscribe(&self) -> broadcast::Receiver<PluginId> {
        self.0.changes.subscribe()
    }

    pub(super) fn plan(&self, package: &Package, found: &Found, granted: Vec<Scope>, current: bool) -> Plan {
        let Settings { state_dir, cache_dir, config_dir, require_sandbox, limits, .. } = &self.0.settings;
        let id = package.manifest.id.as_str();
        Plan {
            manifest: package.manifest.clone(),
            fingerprint: package.fingerprint,
            granted,
            source: found.path.clone(),
            seen: Mutex::new(current.then(|| package.files.clone())),
            copies: self.0.copies.clone(),
            data: state_dir.join("plugin-data").join(id),
            cache: cache_dir.join("plugins").join(id),
            config_file: config_dir.join("plugins").join(format!("{id}.toml")),
            require_sandbox: *require_sandbox,
            launcher: self.0.launcher.clone(),
            own: vec![state_dir.clone(), cache_dir.clone(), config_dir.clone()],
            measured: Mutex::default(),
            redactor: Mutex::default(),
            log: self.log_of(id),
            counters: self.counters_of(&package.manifest.id),
            limits: *limits,
        }
    }

    /// Ends all plugins at once. Returns when every process of theirs is gone.
    pub async fn shutdown(&self) {
        self.0.stopping.send_replace(true);
        // A decision or a scan gives up now; whatever cannot ends with the program.
        let _one_at_a_time =
            tokio::time::timeout(self.0.settings.limits.exit_grace, self.0.deciding.lock()).await;
        self.0.watching.lock().unwrap_or_else(PoisonError::into_inner).take();
        let all: Vec<_> = self.entries().iter_mut().filter_map(|entry| entry.supervisor.take()).collect();
        join_all(all.iter().map(|supervisor| supervisor.stop(true))).await;
        self.0.launcher.settled().await;
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.0.stopping.borrow()
    }

    /// Returns when the shutdown has begun.
    pub(super) async fn stopped(&self) {
        // The sender lives as long as this host.
        let _ = self.0.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// The task of an enabled plugin, or why there is none.
    pub(super) fn enabled(&self, id: &PluginId) -> Result<Arc<Supervisor>, String> {
        if self.is_stopping() {
            return Err("the player is being stopped".to_owned());
        }
        let entries = self.entries();
        let Some(entry) = winner(&entries, id.as_str()) else { return Err("it is not installed".to_owned()) };
        match &entry.supervisor {
            Some(supervisor) => Ok(supervisor.clone()),
            None if !entry.reason.is_empty() => {
                Err(format!("it is {} ({})", entry.state.as_str(), entry.reason))
            }
            None if entry.state == PluginState::Trusted => {
                Err(format!("it is trusted and not enabled: `segue plugin enable {id}` lets it run"))
            }
            None => Err(format!("it is {}: review it, then trust and enable it", entry.state.as_str())),
        }
    }

    /// Whether this task may still be called: nobody disabled the plugin, and nothing changed, since it was
    /// asked for.
    pub(super) fn still_enabled(&self, id: &PluginId, supervisor: &Arc<Supervisor>) -> Result<(), Fault> {
        let not_enabled = |why: String| Fault::new(ErrorCode::PluginNotEnabled, why);
        let now = self.enabled(id).map_err(not_enabled)?;
        if Arc::ptr_eq(&now, supervisor) {
            return Ok(());
        }
        Err(not_enabled("it was decided about anew during the call: try again".to_owned()))
    }

    pub(super) fn all_enabled(&self) -> Vec<Arc<Supervisor>> {
        self.entries().iter().filter_map(|entry| entry.supervisor.clone()).collect()
    }

    fn summary(&self, entry: &Entry) -> PluginSummary {
        let package = entry.found.package.as_ref().ok();
        let manifest = package.map(|package| &package.manifest);
        let isolation = self.isolation_of(entry);
        PluginSummary {
            id: entry.found.name.clone(),
            name: manifest.map(|m| m.name.clone()).unwrap_or_default(),
            version: manifest.map(|m| m.version.clone()).unwrap_or_default(),
            state: entry.state,
            reason: entry.reason.clone(),
            capabilities: manifest.map(|m| m.capabilities.clone()).unwrap_or_default(),
            requested: manifest
                .map(|m| m.scopes.iter().map(|s| s.scope.to_string()).collect())
                .unwrap_or_default(),
            granted: entry.granted.clone(),
            fingerprint: package.map(|p| p.fingerprint.to_string()).unwrap_or_default(),
            path: entry.found.path.display().to_string(),
            isolation: isolation.to_string(),
            gaps: isolation.gaps().to_vec(),
            running: entry.supervisor.as_ref().is_some_and(|supervisor| supervisor.is_running()),
        }
    }

    /// Measured when it was started last, else what a trial has shown.
    fn isolation_of(&self, entry: &Entry) -> Isolation {
        let measured = entry.supervisor.as_ref().map(|supervisor| supervisor.plan.isolation());
        measured.unwrap_or_else(|| self.0.launcher.isolation().clone())
    }

    pub(super) fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn trust_store(&self) -> MutexGuard<'_, TrustStore> {
        self.0.trust.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_of(&self, id: &str) -> Log {
        let mut logs = self.0.logs.lock().unwrap_or_else(PoisonError::into_inner);
        match logs.get(id) {
            Some(log) => log.clone(),
            // Only for what is installed, so that asking for names does not fill memory.
            None if id.parse::<PluginId>().is_ok() && logs.len() <= 2 * discovery::MAX_PACKAGES => {
                logs.entry(id.to_owned()).or_default().clone()
            }
            None => Log::default(),
        }
    }

    /// Only for what is installed: the ids of packages are few.
    fn counters_of(&self, id: &PluginId) -> Arc<Counters> {
        let mut counters = self.0.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters.entry(id.clone()).or_default().clone()
    }

    pub(super) fn tell(&self, name: &str) {
        if let Ok(id) = name.parse() {
            // Nobody listening is no error.
            let _ = self.0.changes.send(id);
        }
    }
}
