//! Looking again at what is installed, and what that means for what was decided.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use futures_util::future::join_all;

use super::decide::{grantable, scopes_of};
use super::discovery::{self, Found};
use super::host::{Entry, Host};
use super::package::Package;
use super::summary::PluginState;
use super::supervisor::Supervisor;
use super::trust::{Decision, Who};
use crate::track::PluginId;
use segue_protocol::manifest::Scope;

/// What a scan compares with.
struct Before {
    name: String,
    path: PathBuf,
    state: PluginState,
    reason: String,
    supervisor: Option<Arc<Supervisor>>,
}

/// What a package may do now.
struct Judged {
    entry: Entry,
    /// What served before and must be stopped.
    unwanted: Option<Arc<Supervisor>>,
    /// It differs from what was told before.
    news: bool,
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
    /// Looks again at what is installed. Where nothing changed, nothing changes, and nothing is hashed.
    pub async fn rescan(&self) {
        self.scan().await;
        self.0.looked.notify_one();
    }

    /// A package that is gone keeps its trust: one that comes back unchanged runs as before. It is what a
    /// person reviewed.
    pub(super) async fn scan(&self) {
        let _one_at_a_time = self.0.deciding.lock().await;
        let folders = self.0.settings.folders.clone();
        let known = self.known();
        let scan = tokio::task::spawn_blocking(move || discovery::scan(&folders, &known));
        let found = tokio::select! {
            found = scan => found,
            () = self.stopped() => return,
        };
        let Ok(found) = found else { return };
        // Calls go on while this looks; the new list takes the old one's place at once.
        let mut old: Vec<Before> = self.entries().iter().map(Before::of).collect();
        let mut fresh = Vec::with_capacity(found.len());
        let (mut ended, mut told, mut replaced) = (Vec::new(), Vec::new(), false);
        for found in found {
            let before = old.iter().position(|entry| entry.path == found.path).map(|at| old.swap_remove(at));
            let Judged { entry, unwanted, news } = self.judge(found, before).await;
            if news {
                told.push(entry.found.name.clone());
            }
            match unwanted {
                // Never two processes of one plugin: the former ends before the next one can be called.
                Some(former) if entry.supervisor.is_some() => {
                    former.stop(false).await;
                    replaced = true;
                }
                unwanted => ended.extend(unwanted),
            }
            fresh.push(entry);
        }
        ended.extend(old.into_iter().filter_map(|gone| {
            told.push(gone.name);
            gone.supervisor
        }));
        *self.entries() = fresh;
        // Told when it can be seen: who hears of a change reads the list.
        told.iter().for_each(|name| self.tell(name));
        join_all(ended.iter().map(|supervisor| supervisor.stop(false))).await;
        if replaced || !ended.is_empty() {
            self.sweep_copies().await;
        }
    }

    /// What a package that was found is allowed now; also what must be stopped.
    async fn judge(&self, found: Found, before: Option<Before>) -> Judged {
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
                        Some(self.supervisor_for(package, &entry.found, decision, supervisor.as_ref(), true));
                }
            } else if let Some(followed) = self.follow(package, &entry.found, decision).await {
                self.revoke(supervisor.as_ref());
                entry.state = PluginState::Enabled;
                entry.granted.clone_from(&followed.scopes);
                entry.supervisor = Some(self.supervisor_for(package, &entry.found, &followed, None, true));
            } else if let Some(old) = self.old_copy(package, &entry.found, decision).await {
                entry.state = PluginState::Changed;
                entry.reason =
                    "it was upgraded: the version that was reviewed serves until you review this one"
                        .to_owned();
                entry.granted.clone_from(&decision.scopes);
                entry.supervisor =
                    Some(self.supervisor_for(&old, &entry.found, decision, supervisor.as_ref(), false));
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
        if entry.supervisor.is_none() {
            // Before anything is written, so that no call gets through meanwhile.
            self.revoke(supervisor.as_ref());
        }
        // What changed loses its grants at once, and does not get them back by changing back.
        let changed = entry.state == PluginState::Changed || entry.found.broken && !entry.found.shadowed;
        let lost = changed && entry.supervisor.is_none();
        if let (true, Some(id), Some(decision)) = (lost, &id, decision) {
            self.take_grants(id, decision).await;
        }
        let same = before.is_some_and(|before| before.state == entry.state && before.reason == entry.reason);
        let kept =
            matches!((&entry.supervisor, &supervisor), (Some(new), Some(old)) if Arc::ptr_eq(new, old));
        Judged { entry, unwanted: supervisor.filter(|_| !kept), news: !same }
    }

    async fn take_grants(&self, id: &PluginId, decision: Decision) {
        if !decision.enabled {
            return;
        }
        let decision = Decision { enabled: false, scopes: Vec::new(), ..decision };
        let who = Who { uid: None, via: "rescan".to_owned() };
        if let Err(error) = self.record(id, decision, "changed", &who).await {
            tracing::warn!(plugin = %id, %error, "a change could not be recorded");
        }
    }

    /// The one that serves already when it is for this decision, else a new one. `installed`: the package is the one
    /// that was found, and not a copy of the version before.
    fn supervisor_for(
        &self,
        package: &Package,
        found: &Found,
        decision: &Decision,
        current: Option<&Arc<Supervisor>>,
        installed: bool,
    ) -> Arc<Supervisor> {
        let Some(current) = current.filter(|current| current.plan.fingerprint == package.fingerprint) else {
            return Arc::new(Supervisor::new(self.plan(package, found, scopes_of(decision), installed)));
        };
        let seen = installed.then(|| package.files.clone());
        *current.plan.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        current.clone()
    }

    /// What was read of the packages the last time.
    fn known(&self) -> HashMap<PathBuf, Package> {
        let entries = self.entries();
        let good = entries.iter().filter_map(|entry| {
            let package = entry.found.package.as_ref().ok()?;
            Some((entry.found.path.clone(), package.clone()))
        });
        good.collect()
    }

    /// No call reaches this task any more.
    fn revoke(&self, unwanted: Option<&Arc<Supervisor>>) {
        let Some(unwanted) = unwanted else { return };
        let is_it = |entry: &&mut Entry| entry.supervisor.as_ref().is_some_and(|s| Arc::ptr_eq(s, unwanted));
        if let Some(entry) = self.entries().iter_mut().find(is_it) {
            entry.supervisor = None;
            "its package is being looked at".clone_into(&mut entry.reason);
            let unwanted = unwanted.clone();
            // Whoever goes on with the scan waits for its end; calls in flight fail now.
            tokio::spawn(async move { unwanted.stop(false).await });
        }
    }

    /// The reviewed package, when `package` is the distribution's upgrade of it and asks for no further scope.
    async fn upgraded_from(&self, package: &Package, found: &Found, decision: &Decision) -> Option<Package> {
        let folder = &self.0.settings.packaged;
        let packaged = package.root_owned && found.path.parent() == Some(folder);
        let fingerprint = decision.fingerprint.parse().ok().filter(|_| packaged && decision.enabled)?;
        let (copies, name, folder) = (self.0.copies.clone(), found.name.clone(), folder.clone());
        let old = tokio::task::spawn_blocking(move || {
            // In a folder of another's, what is root's may have been moved there by anybody.
            let owner = std::fs::metadata(&folder).ok()?.uid();
            copies.verified(fingerprint, &name).filter(|_| owner == 0)
        });
        let old = old.await.ok()??.1;
        let asked: Vec<&Scope> = old.manifest.scopes.iter().map(|request| &request.scope).collect();
        package.manifest.scopes.iter().all(|request| asked.contains(&&request.scope)).then_some(old)
    }

    /// The copy that may serve on after an upgrade by the distribution.
    async fn old_copy(&self, package: &Package, found: &Found, decision: &Decision) -> Option<Package> {
        self.upgraded_from(package, found, decision).await
    }

    /// Carries trust over to the distribution's upgrade, where the configuration says so.
    async fn follow(&self, package: &Package, found: &Found, decision: &Decision) -> Option<Decision> {
        if !self.0.settings.follow_packages {
            return None;
        }
        self.upgraded_from(package, found, decision).await?;
        let id: PluginId = found.name.parse().ok()?;
        let (copies, source, fingerprint) = (self.0.copies.clone(), found.path.clone(), package.fingerprint);
        let name = found.name.clone();
        let copied = tokio::task::spawn_blocking(move || copies.copy(&source, &name, fingerprint)).await;
        if !matches!(copied, Ok(Ok(_))) {
            return None;
        }
        // What it no longer asks for it no longer gets.
        let granted = scopes_of(decision).into_iter().filter(|scope| grantable(&package.manifest, scope));
        let scopes = granted.map(|scope| scope.to_string()).collect();
        let fresh = Decision { fingerprint: fingerprint.to_string(), enabled: true, scopes };
        let who = Who { uid: None, via: "follow_packages".to_owned() };
        match self.record(&id, fresh.clone(), "enable", &who).await {
            Ok(()) => {
                tracing::info!(plugin = %id, version = package.manifest.version, "the upgrade is trusted as its package is followed");
                Some(fresh)
            }
            Err(error) => {
                tracing::warn!(plugin = %id, %error, "an upgrade could not be followed");
                None
            }
        }
    }

    /// Removes copies that neither a decision nor a task names. Called when what ran from them is gone.
    pub(super) async fn sweep_copies(&self) {
        let mut named = self.trust_store().fingerprints();
        named.extend(self.all_enabled().iter().map(|supervisor| supervisor.plan.fingerprint));
        let copies = self.0.copies.clone();
        let _ = tokio::task::spawn_blocking(move || copies.sweep(&named)).await;
    }
}
