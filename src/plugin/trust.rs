//! What a person decided: which fingerprint is trusted, which plugins are enabled and with which scopes,
//! and the record of who decided it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
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
}

impl TrustStore {
    /// Reads what was decided. A damaged file is set aside: then nothing is trusted.
    pub(super) fn load(folder: &Path) -> TrustStore {
        let path = folder.join("trust.json");
        let decisions = match read_trust(&path) {
            Ok(decisions) => decisions,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => {
                let aside = folder.join("trust.json.damaged");
                tracing::warn!(%error, aside = %aside.display(), "trust.json is damaged: no plugin is trusted");
                if let Err(error) = fs::rename(&path, &aside) {
                    tracing::warn!(%error, "the damaged trust.json cannot be set aside");
                }
                BTreeMap::new()
            }
        };
        TrustStore { folder: folder.to_owned(), decisions }
    }

    pub(super) fn get(&self, id: &PluginId) -> Option<&Decision> {
        self.decisions.get(id.as_str())
    }

    pub(super) fn fingerprints(&self) -> Vec<super::package::Fingerprint> {
        self.decisions.values().filter_map(|decision| decision.fingerprint.parse().ok()).collect()
    }

    /// Records a decision: first the audit, then the file. In memory it holds only when both are on disk.
    ///
    /// # Errors
    /// Nothing was decided.
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
        self.audit(&line.to_string())
            .map_err(|source| HostError::Storage { what: "audit.jsonl".to_owned(), source })?;
        let mut decisions = self.decisions.clone();
        decisions.insert(id.as_str().to_owned(), decision);
        self.write(&decisions)
            .map_err(|source| HostError::Storage { what: "trust.json".to_owned(), source })?;
        self.decisions = decisions;
        Ok(())
    }

    fn audit(&self, line: &str) -> io::Result<()> {
        let path = self.folder.join("audit.jsonl");
        let len = fs::metadata(&path).map_or(0, |facts| facts.len());
        if len + line.len() as u64 + 1 > MAX_AUDIT_BYTES {
            fs::rename(&path, self.folder.join("audit.jsonl.1"))?;
        }
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
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

fn read_trust(path: &Path) -> io::Result<BTreeMap<String, Decision>> {
    let mut text = String::new();
    File::open(path)?.take(MAX_TRUST_BYTES).read_to_string(&mut text)?;
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
