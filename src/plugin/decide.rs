//! Trust, enable, disable: a person's decisions. Each is on the disk before it holds.

use std::sync::Arc;

use segue_protocol::{ErrorCode, Fault};

use super::error::{CallError, HostError};
use super::grants;
use super::host::{Entry, Host};
use super::package::Package;
use super::process::{Isolation, Means};
use super::start::StartFailure;
use super::summary::{PluginState, PluginSummary};
use super::supervisor::Supervisor;
use super::trust::{Decision, Who};
use crate::track::PluginId;
use segue_protocol::manifest::{Manifest, Scope};

/// The package that an id means.
pub(super) fn winner<'a>(entries: &'a [Entry], id: &str) -> Option<&'a Entry> {
    entries.iter().find(|entry| entry.found.name == id && !entry.found.shadowed)
}

/// Any text, fit for a message.
pub(super) fn shown(id: &str) -> String {
    id.chars().filter(|c| !c.is_control()).take(80).collect()
}

pub(super) fn scopes_of(decision: &Decision) -> Vec<Scope> {
    decision.scopes.iter().filter_map(|scope| scope.parse().ok()).collect()
}

/// What trusting this plugin means.
pub(super) fn warning(plugin: &PluginSummary, isolation: &Isolation) -> String {
    let reach = match isolation.means() {
        Means::Nothing => {
            "It cannot be started here: the program that confines plugins does not work. Install segue again."
                .to_owned()
        }
        _ if isolation.is_enforced() => {
            "It is confined: it sees the system's programs, its own package and folders, and what you grant."
                .to_owned()
        }
        _ => {
            let gaps: Vec<&str> = isolation.gaps().iter().map(|gap| gap.text()).collect();
            format!(
                "It is NOT confined as it should be on this machine. Whatever scopes you grant: {}.",
                gaps.join("; ")
            )
        }
    };
    let files = if plugin.requested.iter().any(|scope| scope == "files.read:*") {
        " It asks to read files of your choice: name each folder when you enable it, as the scope files.read:/folder."
    } else {
        ""
    };
    format!(
        "Trusting “{}” is trusting a program that somebody wrote. {reach} Trust it only if you know where it comes from.{files}",
        plugin.id
    )
}

impl Host {
    /// Trusts the package that was reviewed. It stays disabled, or is disabled when it was another one.
    ///
    /// # Errors
    /// Not installed, broken, not the fingerprint that was reviewed, or nothing could be written.
    pub async fn trust(&self, id: &str, fingerprint: &str, who: &Who) -> Result<(), HostError> {
        let _one_at_a_time = self.0.deciding.lock().await;
        let (id, package, source) = self.installed(id)?;
        let found = package.fingerprint;
        let mismatch = |found: String| HostError::FingerprintMismatch { id: id.clone(), found };
        if found.to_string() != fingerprint.to_ascii_lowercase() {
            return Err(mismatch(found.to_string()));
        }
        if self.trust_store().get(&id).is_some_and(|decision| decision.fingerprint == found.to_string()) {
            return Ok(());
        }
        // The files may have changed since they were shown: what is hashed now is what will run.
        let (copies, name) = (self.0.copies.clone(), id.as_str().to_owned());
        let copied = tokio::task::spawn_blocking(move || copies.copy(&source, &name, found)).await;
        match copied {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(HostError::Invalid { id, reason: error.to_string() }),
            Err(error) => return Err(HostError::Invalid { id, reason: error.to_string() }),
        }
        let decision = Decision { fingerprint: found.to_string(), enabled: false, scopes: Vec::new() };
        self.record(&id, decision, "trust", who).await?;
        let before = self.set(&id, PluginState::Trusted, Vec::new(), None);
        stop(before).await;
        self.sweep_copies().await;
        Ok(())
    }

    /// Lets a trusted plugin run with `scopes`, some or all of those that it asks for. It is started once,
    /// and must shake hands.
    ///
    /// # Errors
    /// Not installed, not trusted, a scope that it does not ask for, a failed handshake, or nothing could be
    /// written. Then all is as it was.
    pub async fn enable(&self, id: &str, scopes: &[String], who: &Who) -> Result<(), HostError> {
        let _one_at_a_time = self.0.deciding.lock().await;
        if self.is_stopping() {
            return Err(HostError::Stopping);
        }
        let (id, package, _) = self.installed(id)?;
        let trusted = self.trust_store().get(&id).cloned();
        let trusted = trusted.filter(|d| d.fingerprint == package.fingerprint.to_string());
        let trusted = trusted.ok_or_else(|| HostError::NotTrusted(id.clone()))?;
        let granted = checked_scopes(&id, &package.manifest, scopes)?;
        self.check_folders(&id, &granted).await?;
        let words: Vec<String> = granted.iter().map(ToString::to_string).collect();
        let fresh = Arc::new(self.new_supervisor(&id, &package, granted)?);
        // Never two processes of one plugin: the one with the earlier scopes ends first.
        let (state, before) = match trusted.enabled {
            true => (PluginState::Enabled, trusted.scopes.clone()),
            false => (PluginState::Trusted, Vec::new()),
        };
        stop(self.set(&id, state, before.clone(), None)).await;
        let started = std::time::Instant::now();
        let leased = tokio::select! {
            leased = fresh.lease() => leased,
            // A mute plugin keeps nobody from ending.
            () = self.stopped() => {
                fresh.stop(true).await;
                return Err(HostError::Stopping);
            }
        };
        let outcome = match leased {
            Ok(_) => {
                let decision = Decision { enabled: true, scopes: words.clone(), ..trusted.clone() };
                self.record(&id, decision, "enable", who).await
            }
            Err(failure) => {
                let fault = fault_of(failure);
                Err(HostError::Handshake(Box::new(CallError::new(
                    fault,
                    &id,
                    "initialize",
                    started.elapsed(),
                ))))
            }
        };
        match outcome {
            Ok(()) => {
                self.set(&id, PluginState::Enabled, words, Some(fresh));
                Ok(())
            }
            Err(error) => {
                fresh.stop(false).await;
                if trusted.enabled {
                    let again = self.new_supervisor(&id, &package, scopes_of(&trusted))?;
                    self.set(&id, state, before, Some(Arc::new(again)));
                }
                Err(error)
            }
        }
    }

    /// Forbids a plugin to run. Returns when its process is gone.
    ///
    /// # Errors
    /// Not installed, or nothing could be written.
    pub async fn disable(&self, id: &str, who: &Who) -> Result<(), HostError> {
        let _one_at_a_time = self.0.deciding.lock().await;
        let (name, state) = {
            let entries = self.entries();
            let entry = winner(&entries, id).ok_or_else(|| HostError::NotInstalled(shown(id)))?;
            (entry.found.name.clone(), entry.state)
        };
        let id: PluginId = name.parse().map_err(|_| HostError::NotInstalled(shown(id)))?;
        let Some(decision) = self.trust_store().get(&id).cloned() else { return Ok(()) };
        let state = if state == PluginState::Enabled { PluginState::Trusted } else { state };
        // Whatever the disk does, it is stopped.
        let before = self.set(&id, state, Vec::new(), None);
        let news = decision.enabled || self.trust_store().is_behind();
        let decision = Decision { enabled: false, scopes: Vec::new(), ..decision };
        let recorded = if news { self.record(&id, decision, "disable", who).await } else { Ok(()) };
        stop(before).await;
        recorded
    }

    /// Folders that are to be granted exist, and hold nothing that no plugin may read.
    async fn check_folders(&self, id: &PluginId, granted: &[Scope]) -> Result<(), HostError> {
        let settings = &self.0.settings;
        let own = [&settings.state_dir, &settings.cache_dir, &settings.config_dir].map(Clone::clone);
        for scope in granted {
            let Scope::FilesRead(folder) = scope else { continue };
            let (folder, own) = (folder.clone(), own.clone());
            let checked = tokio::task::spawn_blocking(move || grants::check(&folder, &own)).await;
            let checked = checked.unwrap_or_else(|error| Err(error.to_string()));
            checked.map_err(|why| HostError::FolderRefused {
                id: id.clone(),
                scope: scope.to_string(),
                why,
            })?;
        }
        Ok(())
    }

    /// A good package and where it lies.
    fn installed(&self, id: &str) -> Result<(PluginId, Package, std::path::PathBuf), HostError> {
        let entries = self.entries();
        let not_there = || HostError::NotInstalled(shown(id));
        let entry = winner(&entries, id).ok_or_else(not_there)?;
        let id: PluginId = entry.found.name.parse().map_err(|_| not_there())?;
        match &entry.found.package {
            Ok(package) => Ok((id, package.clone(), entry.found.path.clone())),
            Err(reason) => Err(HostError::Invalid { id, reason: reason.clone() }),
        }
    }

    fn new_supervisor(
        &self,
        id: &PluginId,
        package: &Package,
        granted: Vec<Scope>,
    ) -> Result<Supervisor, HostError> {
        let entries = self.entries();
        let entry = winner(&entries, id.as_str()).ok_or_else(|| HostError::NotInstalled(id.to_string()))?;
        Ok(Supervisor::new(self.plan(package, &entry.found, granted, true)))
    }

    /// Puts a decision on the disk, away from the main thread.
    pub(super) async fn record(
        &self,
        id: &PluginId,
        decision: Decision,
        action: &'static str,
        who: &Who,
    ) -> Result<(), HostError> {
        let (trust, id, who) = (self.0.trust.clone(), id.clone(), who.clone());
        let writing = tokio::task::spawn_blocking(move || {
            let mut store = trust.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            store.decide(&id, decision, action, &who)
        });
        writing.await.unwrap_or_else(|error| {
            let source = std::io::Error::other(error);
            Err(HostError::Storage { what: "trust.json".to_owned(), source })
        })
    }

    /// Changes an entry and tells it; returns what served before.
    fn set(
        &self,
        id: &PluginId,
        state: PluginState,
        granted: Vec<String>,
        supervisor: Option<Arc<Supervisor>>,
    ) -> Option<Arc<Supervisor>> {
        let mut entries = self.entries();
        let entry = entries.iter_mut().find(|e| e.found.name == id.as_str() && !e.found.shadowed)?;
        entry.state = state;
        entry.granted = granted;
        if matches!(state, PluginState::Trusted | PluginState::Enabled) {
            entry.reason.clear();
        }
        let before = std::mem::replace(&mut entry.supervisor, supervisor);
        drop(entries);
        self.tell(id.as_str());
        before
    }
}

async fn stop(supervisor: Option<Arc<Supervisor>>) {
    if let Some(supervisor) = supervisor {
        supervisor.stop(false).await;
    }
}

pub(super) fn fault_of(failure: StartFailure) -> Fault {
    match failure {
        StartFailure::SourceChanged => {
            Fault::new(ErrorCode::PluginNotEnabled, "its files are not those that were reviewed")
        }
        StartFailure::Refused(fault) | StartFailure::Failed(fault) => fault,
    }
}

/// Whether the manifest asks for it.
pub(super) fn grantable(manifest: &Manifest, scope: &Scope) -> bool {
    let asked = |scope: &Scope| manifest.scopes.iter().any(|request| request.scope == *scope);
    match scope {
        // The star names no folder, so there is nothing to grant.
        Scope::FilesReadAny => false,
        Scope::FilesRead(_) => asked(scope) || asked(&Scope::FilesReadAny),
        _ => asked(scope),
    }
}

/// A subset of what the manifest asks for; `files.read:*` stands for any folder.
fn checked_scopes(id: &PluginId, manifest: &Manifest, scopes: &[String]) -> Result<Vec<Scope>, HostError> {
    let mut granted = Vec::new();
    for text in scopes {
        let refused = || HostError::ScopeNotRequested { id: id.clone(), scope: shown(text) };
        let no_folder =
            |why: &str| HostError::FolderRefused { id: id.clone(), scope: shown(text), why: why.to_owned() };
        let scope: Scope = match text.parse() {
            Ok(Scope::FilesReadAny) => {
                return Err(no_folder("it names no folder: write files.read:/folder for each one"));
            }
            Ok(scope) => scope,
            Err(_) if text.starts_with("files.read:") => {
                return Err(no_folder("name a folder by its absolute path, and not /"));
            }
            Err(_) => return Err(refused()),
        };
        if !grantable(manifest, &scope) {
            return Err(refused());
        }
        if !granted.contains(&scope) {
            granted.push(scope);
        }
    }
    Ok(granted)
}
