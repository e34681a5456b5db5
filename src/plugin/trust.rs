//! What a person decided: which fingerprint is trusted, which plugins are enabled and with which scopes,
//! and the record of who decided it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::HostError;
use crate::track::PluginId;

/// The audit is rotated once when it would grow beyond this many bytes.
const MAX_AUDIT_BYTES: u64 = 1024 * 1024;
/// A larger file is not ours.
const MAX_TRUST_BYTES: u64 = 4 * 1024 * 1024;

/// Who decided, for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The peer's user, where there is one.
    pub uid: Option<u32>,
    /// By which way, for example `D-Bus`.
    pub via: String,
}

/// One plugin's standing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decision {
    /// What was reviewed, 64 hexadecimal digits.
    pub(super) fingerprint: String,
    /// Whether it may run.
    pub(super) enabled: bool,
    /// What was granted, in the manifest's words.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    version: u32,
    plugins: BTreeMap<String, Decision>,
}

/// `trust.json` and `audit.jsonl`.
pub(super) struct TrustStore {
    folder: PathBuf,
    decisions: BTreeMap<String, Decision>,
    /// Rights were taken away that the disk still gives.
    behind: bool,
}

impl TrustStore {
    /// Reads what was decided. A damaged file is set aside: then nothing is trusted.
    pub(super) fn load(folder: &Path) -> TrustStore {
        let path = folder.join("trust.json");
        let decisions = match read_trust(&path) {
            Ok(decisions) => decisions,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => {
                let aside = unused(folder.join("trust.json.damaged"));
                tracing::warn!(%error, aside = %aside.display(), "trust.json is damaged: no plugin is trusted");
                if let Err(error) = fs::rename(&path, &aside) {
                    tracing::warn!(%error, "the damaged trust.json cannot be set aside");
                }
                BTreeMap::new()
            }
        };
        TrustStore { folder: folder.to_owned(), decisions, behind: false }
    }

    pub(super) fn get(&self, id: &PluginId) -> Option<&Decision> {
        self.decisions.get(id.as_str())
    }

    pub(super) fn fingerprints(&self) -> Vec<super::package::Fingerprint> {
        self.decisions.values().filter_map(|decision| decision.fingerprint.parse().ok()).collect()
    }

    /// Records a decision: first the audit, then the file. What gives rights holds in memory only when both are on
    /// disk. What takes them away holds at once, whatever the disk does, and is written with the next decision.
    ///
    /// # Errors
    /// Nothing was decided, or it was and is not on the disk.
    pub(super) fn decide(
        &mut self,
        id: &PluginId,
        decision: Decision,
        action: &str,
        who: &Who,
    ) -> Result<(), HostError> {
        let line = serde_json::json!({
            "time": jiff::Timestamp::now().to_string(),
            "uid": who.uid,
            "via": who.via,
            "action": action,
            "plugin": id.as_str(),
            "fingerprint": decision.fingerprint,
            "scopes": decision.scopes,
        });
        let mut decisions = self.decisions.clone();
        let takes_away = !decision.enabled;
        decisions.insert(id.as_str().to_owned(), decision);
        if takes_away {
            self.decisions.clone_from(&decisions);
            self.behind = true;
        }
        let kept = |what: &str, result: io::Result<()>| {
            result.map_err(|source| match (takes_away, what.to_owned()) {
                (true, what) => HostError::NotKept { id: id.clone(), what, source },
                (false, what) => HostError::Storage { what, source },
            })
        };
        let audited = kept("audit.jsonl", self.audit(&line.to_string()));
        if !takes_away {
            // What is not in the audit is not given.
            audited?;
            kept("trust.json", self.write(&decisions))?;
        } else {
            kept("trust.json", self.write(&decisions))?;
            audited?;
        }
        self.decisions = decisions;
        self.behind = false;
        Ok(())
    }

    /// Whether something that holds is not on the disk yet.
    pub(super) fn is_behind(&self) -> bool {
        self.behind
    }

    fn audit(&self, line: &str) -> io::Result<()> {
        let path = self.folder.join("audit.jsonl");
        let len = fs::metadata(&path).map_or(0, |facts| facts.len());
        if len + line.len() as u64 + 1 > MAX_AUDIT_BYTES {
            fs::rename(&path, self.folder.join("audit.jsonl.1"))?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let mut file = options.open(&path)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    }

    fn write(&self, decisions: &BTreeMap<String, Decision>) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(&TrustFile { version: 1, plugins: decisions.clone() })?;
        // A temporary file is the owner's alone from its creation on.
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(self.folder.join("trust.json"))?;
        File::open(&self.folder)?.sync_all()
    }
}

/// This path, or the first with a number behind it that is free: what was set aside before stays.
fn unused(path: PathBuf) -> PathBuf {
    let numbered = |number: u32| PathBuf::from(format!("{}-{number}", path.display()));
    let mut candidates = std::iter::once(path.clone()).chain((2..100).map(numbered));
    candidates.find(|path| fs::symlink_metadata(path).is_err()).unwrap_or(path)
}

fn read_trust(path: &Path) -> io::Result<BTreeMap<String, Decision>> {
    let mut text = String::new();
    // Never waits, whatever lies there.
    let open = || OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = match open() {
        // A plugin that is not fully confined can take away the mode of a file of the same user.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
            open()?
        }
        other => other?,
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    file.take(MAX_TRUST_BYTES).read_to_string(&mut text)?;
    let file: TrustFile = serde_json::from_str(&text)?;
    if file.version != 1 {
        return Err(io::Error::other(format!("version {} is not known", file.version)));
    }
    Ok(file.plugins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_is_rotated_once_and_stays_below_its_cap() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = TrustStore::load(folder.path());
        let id: PluginId = "demo".parse().unwrap();
        let scopes = vec!["x".repeat(300_000)];
        let decision = Decision { fingerprint: "0".repeat(64), enabled: true, scopes };
        let who = Who { uid: None, via: "test".to_owned() };
        for _ in 0..9 {
            store.decide(&id, decision.clone(), "enable", &who).unwrap();
        }
        for name in ["audit.jsonl", "audit.jsonl.1"] {
            let text = fs::read_to_string(folder.path().join(name)).unwrap();
            assert!(text.len() as u64 <= MAX_AUDIT_BYTES && text.ends_with('\n'), "{name}");
        }
        assert_eq!(TrustStore::load(folder.path()).get(&id), Some(&decision));
    }
}
