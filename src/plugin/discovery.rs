//! What is installed. Reads files and runs nothing.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::package::{Package, PackageError, check_owner_and_mode};

/// Packages that are looked at, the first by id.
pub const MAX_PACKAGES: usize = 100;

/// A folder that should hold a plugin.
pub(super) struct Found {
    /// The folder's name, which is the id when the package is good.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// The package, or the broken rule.
    pub(super) package: Result<Package, String>,
    /// What is wrong is wrong with the package for certain: not that it is only half there, or that the disk
    /// failed.
    pub(super) broken: bool,
    /// Another folder holds a plugin of this name and wins.
    pub(super) shadowed: bool,
}

/// Looks through `folders`, which are in rising precedence. In byte order of the names, the winner first.
///
/// What lies where it lay in `known` is hashed only when a file of it was touched.
pub(super) fn scan(folders: &[PathBuf], known: &HashMap<PathBuf, Package>) -> Vec<Found> {
    let mut places: Vec<(String, usize, PathBuf)> = Vec::new();
    for (rank, folder) in folders.iter().enumerate() {
        places.extend(candidates(folder).into_iter().map(|path| (name_of(&path), rank, path)));
    }
    places.sort_by(|a, b| (a.0.as_bytes(), b.1).cmp(&(b.0.as_bytes(), a.1)));
    if places.len() > MAX_PACKAGES {
        tracing::warn!(found = places.len(), "only the first {MAX_PACKAGES} plugin packages are looked at");
        places.truncate(MAX_PACKAGES);
    }
    let mut found: Vec<Found> = Vec::with_capacity(places.len());
    for (name, rank, path) in places {
        let shadowed = found.last().is_some_and(|winner| winner.name == name);
        let read = || match known.get(&path) {
            Some(known) => Package::read_again(&path, known),
            None => Package::read(&path),
        };
        let package = folder_is_safe(&folders[rank]).and_then(|()| read());
        let passing = matches!(package, Err(PackageError::NoManifest | PackageError::Io { .. }));
        let broken = package.is_err() && !passing;
        let package = package.map_err(|error| error.to_string());
        found.push(Found { name, path, package, broken, shadowed });
    }
    found
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Folders, and links, which are then refused with a reason. Hidden names and plain files are no plugins.
fn candidates(folder: &Path) -> Vec<PathBuf> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "a folder of plugins cannot be read");
            return Vec::new();
        }
    };
    let plugins = entries.flatten().filter(|entry| {
        let hidden = entry.file_name().as_bytes().starts_with(b".");
        !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink())
    });
    plugins.map(|entry| entry.path()).collect()
}

fn folder_is_safe(folder: &Path) -> Result<(), PackageError> {
    let facts = fs::metadata(folder).map_err(PackageError::at(folder))?;
    check_owner_and_mode(&folder.display().to_string(), &facts)
}
