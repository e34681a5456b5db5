//! The plugins of this machine: what is installed, what was decided about it, and what runs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use tokio::sync::broadcast;

use super::backoff::Limits;
use super::copies::CopyStore;
use super::counters::Counters;
use super::decide::{scopes_of, shown, warning, winner};
use super::discovery::{self, Found};
use super::error::{HostError, StartError};
use super::log::{Log, LogLine};
use super::package::Package;
use super::process::{Isolation, Launcher, Means, find_runner, strays};
use super::start::{Plan, private_folder};
use super::summary::{PluginHealth, PluginReview, PluginState, PluginSummary};
use super::supervisor::Supervisor;
use super::trust::{Decision, TrustStore, Who};
use crate::track::PluginId;
use segue_protocol::manifest::Scope;

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
    /// Times of supervision.
    pub limits: Limits,
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
            limits: Limits::default(),
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
    entries: Mutex<Vec<Entry>>,
    logs: Mutex<HashMap<String, Log>>,
    counters: Mutex<HashMap<PluginId, Arc<Counters>>>,
    /// Decisions and scans happen one after the other.
    pub(super) deciding: tokio::sync::Mutex<()>,
    changes: broadcast::Sender<PluginId>,
    pub(super) stopping: AtomicBool,
}

pub(super) struct Entry {
    pub(super) found: Found,
    pub(super) state: PluginState,
    pub(super) reason: String,
    pub(super) granted: Vec<String>,
    pub(super) supervisor: Option<Arc<Supervisor>>,
}

/// What a scan compares with.
struct Before {
    name: String,
    path: PathBuf,
    state: PluginState,
    reason: String,
    supervisor: Option<Arc<Supervisor>>,
}

impl Before {
    fn of(entry: &Entry) -> Before {
        Before {
            name: entry.found.name.clone(),
            path: entry.found.path.clone(),
            state: entry.state,
            reason: entry.reason.clone(),
            supervisor: entry.supervisor.clone(),
        }
    }
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
            stopping: AtomicBool::new(false),
        }));
        host.rescan().await;
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
        let log = self.log_of(id).newest(50);
        let warning = warning(&summary, &self.isolation_of(entry));
        let Ok(package) = &entry.found.package else {
            return Ok(PluginReview {
                summary,
                files: vec![],
                command: vec![],
                scopes: vec![],
                warning,
                log,
            });
        };
        let manifest = &package.manifest;
        let mut command = vec![manifest.executable.display().to_string()];
        command.extend(manifest.arguments.iter().cloned());
        Ok(PluginReview {
            summary,
            files: package.files.iter().map(|f| (f.path.display().to_string(), f.len)).collect(),
            command,
            scopes: manifest.scopes.iter().map(|s| (s.scope.to_string(), s.reason.clone())).collect(),
            warning,
            log,
        })
    }

    /// The newest `count` lines that a plugin wrote on standard error, oldest first.
    pub fn logs(&self, id: &str, count: usize) -> Vec<LogLine> {
        self.log_of(id).newest(count)
    }

    /// Lines as a plugin writes them, from now on. A slow reader misses the oldest.
    ///
    /// # Errors
    /// No such plugin.
    pub fn follow_log(&self, id: &str) -> Result<broadcast::Receiver<LogLine>, HostError> {
        winner(&self.entries(), id).ok_or_else(|| HostError::NotInstalled(shown(id)))?;
        Ok(self.log_of(id).follow())
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

    /// Looks again at what is installed. Where nothing changed, nothing changes.
    pub async fn rescan(&self) {
        let _one_at_a_time = self.0.deciding.lock().await;
        let folders = self.0.settings.folders.clone();
        let Ok(found) = tokio::task::spawn_blocking(move || discovery::scan(&folders)).await else { return };
        if self.0.stopping.load(Ordering::Acquire) {
            return;
        }
        // Calls go on while this looks; the new list takes the old one's place at once.
        let mut old: Vec<Before> = self.entries().iter().map(Before::of).collect();
        let mut fresh = Vec::with_capacity(found.len());
        let mut ended = Vec::new();
        for found in found {
            let before = old.iter().position(|entry| entry.path == found.path).map(|at| old.swap_remove(at));
            let (entry, unwanted) = self.judge(found, before).await;
            fresh.push(entry);
            ended.extend(unwanted);
        }
        ended.extend(old.into_iter().filter_map(|gone| {
            self.tell(&gone.name);
            gone.supervisor
        }));
        *self.entries() = fresh;
        join_all(ended.iter().map(|supervisor| supervisor.stop(false))).await;
    }

    /// What a package that was found is allowed now; also what must be stopped.
    async fn judge(&self, found: Found, before: Option<Before>) -> (Entry, Option<Arc<Supervisor>>) {
        let supervisor = before.as_ref().and_then(|entry| entry.supervisor.clone());
        let mut entry = Entry {
            state: PluginState::Invalid,
            reason: String::new(),
            granted: Vec::new(),
            supervisor: None,
            found,
        };
        let id = entry.found.name.parse::<PluginId>().ok();
        let decision = id.as_ref().and_then(|id| self.trust_store().get(id).cloned());
        if entry.found.shadowed {
            entry.state = PluginState::Shadowed;
            entry.reason = "another package of this id wins".to_owned();
        } else if let (Ok(package), Some(decision)) = (&entry.found.package, &decision) {
            if package.fingerprint.to_string() == decision.fingerprint {
                entry.state = if decision.enabled { PluginState::Enabled } else { PluginState::Trusted };
                if decision.enabled {
                    entry.granted.clone_from(&decision.scopes);
                    entry.supervisor =
                        Some(self.supervisor_for(package, &entry.found, decision, supervisor.as_ref()));
                }
            } else if let Some(old) = self.old_copy(package, &entry.found, decision).await {
                entry.state = PluginState::Changed;
                entry.reason =
                    "it was upgraded: the version that was reviewed serves until you review this one"
                        .to_owned();
                entry.granted.clone_from(&decision.scopes);
                entry.supervisor =
                    Some(self.old_supervisor(&old, &entry.found, decision, supervisor.as_ref()));
            } else {
                entry.state = PluginState::Changed;
                entry.reason =
                    "its files are not those that were reviewed: inspect and trust it again".to_owned();
            }
        } else if entry.found.package.is_ok() {
            entry.state = PluginState::Untrusted;
        }
        if let Err(reason) = &entry.found.package {
            entry.reason.clone_from(reason);
        }
        // What changed loses its grants at once, and does not get them back by changing back.
        let lost =
            matches!(entry.state, PluginState::Changed | PluginState::Invalid) && entry.supervisor.is_none();
        if let (true, Some(id), Some(decision)) = (lost, &id, decision)
            && decision.enabled
        {
            let decision = Decision { enabled: false, scopes: Vec::new(), ..decision };
            let who = Who { uid: None, via: "rescan".to_owned() };
            if let Err(error) = self.record(id, decision, "changed", &who).await {
                tracing::warn!(plugin = %id, %error, "a change could not be recorded");
            }
        }
        let same = before.is_some_and(|before| before.state == entry.state && before.reason == entry.reason);
        if !same {
            self.tell(&entry.found.name);
        }
        let kept =
            matches!((&entry.supervisor, &supervisor), (Some(new), Some(old)) if Arc::ptr_eq(new, old));
        (entry, supervisor.filter(|_| !kept))
    }

    /// The one that serves already when it is for this decision, else a new one.
    fn supervisor_for(
        &self,
        package: &Package,
        found: &Found,
        decision: &Decision,
        current: Option<&Arc<Supervisor>>,
    ) -> Arc<Supervisor> {
        if let Some(current) = current
            && current.plan.fingerprint == package.fingerprint
        {
            *current.plan.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(package.files.clone());
            return current.clone();
        }
        Arc::new(Supervisor::new(self.plan(package, found, scopes_of(decision), true)))
    }

    fn old_supervisor(
        &self,
        old: &Package,
        found: &Found,
        decision: &Decision,
        current: Option<&Arc<Supervisor>>,
    ) -> Arc<Supervisor> {
        match current.filter(|current| current.plan.fingerprint == old.fingerprint) {
            Some(current) => {
                *current.plan.seen.lock().unwrap_or_else(PoisonError::into_inner) = None;
                current.clone()
            }
            None => Arc::new(Supervisor::new(self.plan(old, found, scopes_of(decision), false))),
        }
    }

    /// The copy that may serve on after an upgrade by the distribution.
    async fn old_copy(&self, package: &Package, found: &Found, decision: &Decision) -> Option<Package> {
        let packaged = package.root_owned && found.path.parent() == Some(&self.0.settings.packaged);
        let fingerprint = decision.fingerprint.parse().ok().filter(|_| packaged && decision.enabled)?;
        let (copies, name) = (self.0.copies.clone(), found.name.clone());
        let old = tokio::task::spawn_blocking(move || copies.verified(fingerprint, &name)).await.ok()??.1;
        let asked: Vec<&Scope> = old.manifest.scopes.iter().map(|request| &request.scope).collect();
        package.manifest.scopes.iter().all(|request| asked.contains(&&request.scope)).then_some(old)
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
            measured: Mutex::default(),
            log: self.log_of(id),
            counters: self.counters_of(&package.manifest.id),
            limits: *limits,
        }
    }

    /// Ends all plugins at once. Returns when every process of theirs is gone.
    pub async fn shutdown(&self) {
        self.0.stopping.store(true, Ordering::Release);
        let _one_at_a_time = self.0.deciding.lock().await;
        let all: Vec<_> = self.entries().iter_mut().filter_map(|entry| entry.supervisor.take()).collect();
        join_all(all.iter().map(|supervisor| supervisor.stop(true))).await;
        self.0.launcher.settled().await;
    }

    /// The task of an enabled plugin, or why there is none.
    pub(super) fn enabled(&self, id: &PluginId) -> Result<Arc<Supervisor>, String> {
        let entries = self.entries();
        let Some(entry) = winner(&entries, id.as_str()) else { return Err("it is not installed".to_owned()) };
        match &entry.supervisor {
            Some(supervisor) => Ok(supervisor.clone()),
            None if self.0.stopping.load(Ordering::Acquire) => Err("the player is being stopped".to_owned()),
            None if entry.reason.is_empty() => Err(format!("it is {}", entry.state.as_str())),
            None => Err(format!("it is {} ({})", entry.state.as_str(), entry.reason)),
        }
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
