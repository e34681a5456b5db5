//! The copies of packages that alone are run.
//!
//! A copy is written from the very bytes that are hashed, so that what runs is what was reviewed,
//! whatever happens to the package's folder meanwhile.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::package::{Fingerprint, Package, PackageError};

/// The verified copies, one read-only folder for each fingerprint: `<store>/<fingerprint>/<id>`.
#[derive(Clone, Debug)]
pub struct CopyStore {
    folder: PathBuf,
}

impl CopyStore {
    /// Copies lie below `folder`, which exists.
    pub fn new(folder: PathBuf) -> CopyStore {
        CopyStore { folder }
    }

    fn path(&self, fingerprint: Fingerprint, id: &str) -> PathBuf {
        self.folder.join(fingerprint.to_string()).join(id)
    }

    /// The copy with this fingerprint, hashed just now. `None` when there is none or it was touched.
    pub fn verified(&self, fingerprint: Fingerprint, id: &str) -> Option<(PathBuf, Package)> {
        let path = self.path(fingerprint, id);
        match Package::read(&path) {
            Ok(package) if package.fingerprint == fingerprint => Some((path, package)),
            Ok(package) => {
                tracing::warn!(plugin = id, found = %package.fingerprint, "the verified copy was touched");
                None
            }
            Err(error) => {
                tracing::debug!(plugin = id, %error, "no verified copy");
                None
            }
        }
    }

    /// Copies the package in `source` while hashing it. The copy stays only if the hash is `fingerprint`.
    ///
    /// # Errors
    /// A broken rule, a full disk, or another fingerprint than the expected one.
    pub fn copy(
        &self,
        source: &Path,
        id: &str,
        fingerprint: Fingerprint,
    ) -> Result<(PathBuf, Package), PackageError> {
        if let Some(found) = self.verified(fingerprint, id) {
            return Ok(found);
        }
        let fresh = tempfile::Builder::new().prefix(".new-").tempdir_in(&self.folder);
        let fresh = fresh.map_err(PackageError::at(&self.folder))?;
        let inner = fresh.path().join(id);
        let result = self.copy_into(source, id, fingerprint, fresh.path(), &inner);
        if fresh.path().exists() {
            remove_read_only(fresh.path());
        }
        result
    }

    fn copy_into(
        &self,
        source: &Path,
        id: &str,
        fingerprint: Fingerprint,
        fresh: &Path,
        inner: &Path,
    ) -> Result<(PathBuf, Package), PackageError> {
        let package = Package::read_into(source, Some(inner))?;
        if package.fingerprint != fingerprint {
            return Err(PackageError::rule(format!(
                "the package changed: its fingerprint is now {}",
                package.fingerprint
            )));
        }
        seal(fresh)?;
        // Once for all of it: thousands of small files would take a card many seconds one by one.
        let opened = File::open(fresh).map_err(PackageError::at(fresh))?;
        nix::unistd::syncfs(&opened).map_err(|error| PackageError::at(fresh)(error.into()))?;
        let target = self.folder.join(fingerprint.to_string());
        remove_read_only(&target);
        fs::rename(fresh, &target).map_err(PackageError::at(&target))?;
        sync_folder(&self.folder)?;
        Ok((self.path(fingerprint, id), package))
    }

    /// Removes the copies that no decision names any more, and what an earlier run left half-written. Only
    /// while no plugin runs.
    pub fn keep_only(&self, fingerprints: &[Fingerprint]) {
        self.remove(|name| !wanted(name, fingerprints));
    }

    /// Removes the copies that are named neither by a decision nor by what runs. What is being written stays.
    pub fn sweep(&self, fingerprints: &[Fingerprint]) {
        self.remove(|name| !name.starts_with('.') && !wanted(name, fingerprints));
    }

    fn remove(&self, unwanted: impl Fn(&str) -> bool) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            if unwanted(&entry.file_name().to_string_lossy()) {
                remove_read_only(&entry.path());
            }
        }
    }
}

fn wanted(name: &str, fingerprints: &[Fingerprint]) -> bool {
    name.parse().is_ok_and(|found: Fingerprint| fingerprints.contains(&found))
}

/// Makes every folder read-only.
fn seal(folder: &Path) -> Result<(), PackageError> {
    for entry in fs::read_dir(folder).map_err(PackageError::at(folder))? {
        let entry = entry.map_err(PackageError::at(folder))?;
        if entry.file_type().map_err(PackageError::at(folder))?.is_dir() {
            seal(&entry.path())?;
        }
    }
    fs::set_permissions(folder, Permissions::from_mode(0o555)).map_err(PackageError::at(folder))
}

fn sync_folder(folder: &Path) -> Result<(), PackageError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(PackageError::at(folder))
}

fn remove_read_only(folder: &Path) {
    if !folder.exists() {
        return;
    }
    make_removable(folder);
    if let Err(error) = fs::remove_dir_all(folder) {
        tracing::warn!(folder = %folder.display(), %error, "an old copy of a package cannot be removed");
    }
}

/// Folders must be writable before their entries can go. Only where nobody puts links in their places meanwhile.
pub(super) fn make_removable(folder: &Path) {
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_removable(&entry.path());
        }
    }
}
