//! What a plugin may keep on the disk: its data and its cache have a cap each.
//!
//! No kernel enforces that for an ordinary user, so the folders are measured before each start and once a minute
//! while the plugin runs. A single file is bounded by the runner's limits meanwhile.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files and folders that are looked at; a folder with more counts as full.
const MAX_ENTRIES: usize = 100_000;
/// A block in `st_blocks`, whatever the file system's own is.
const BLOCK: u64 = 512;

/// One plugin's folders and how much of the disk each may occupy.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    pub(super) data: PathBuf,
    pub(super) cache: PathBuf,
    /// Bytes on the disk, for each.
    pub(super) most: u64,
}

/// A folder that holds too much; displays as a sentence with what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its folder {} occupies more than the {} MiB that are allowed: {}",
    folder.display(), most / 1_048_576, if *is_cache { "it is emptied" } else { "remove what it does not need, or reset the plugin by emptying the folder" }
)]
pub(super) struct Full {
    folder: PathBuf,
    most: u64,
    is_cache: bool,
}

impl Quota {
    /// Whether both folders are within their bounds. Takes as long as looking at every file does.
    pub(super) fn check(&self) -> Result<(), Full> {
        for (folder, is_cache) in [(&self.data, false), (&self.cache, true)] {
            if self.is_over(folder) {
                return Err(Full { folder: folder.clone(), most: self.most, is_cache });
            }
        }
        Ok(())
    }

    /// Before a start, when no process of the plugin lives: a cache that holds too much is emptied.
    ///
    /// # Errors
    /// Data are never touched: too much of them is for a person to look at.
    pub(super) fn tidy(&self) -> Result<(), Full> {
        if self.is_over(&self.cache) {
            tracing::warn!(folder = %self.cache.display(), "a plugin's cache holds too much: it is emptied");
            if let Err(error) = empty(&self.cache) {
                tracing::warn!(folder = %self.cache.display(), %error, "it cannot be emptied");
            }
        }
        self.check()
    }

    fn is_over(&self, folder: &Path) -> bool {
        // What cannot be read is the plugin's own trouble, and its next write's.
        occupied(folder, self.most).is_ok_and(|bytes| bytes > self.most)
    }
}

/// Bytes on the disk below a folder, links not followed. Stops counting above `enough`.
fn occupied(folder: &Path, enough: u64) -> io::Result<u64> {
    let mut bytes = 0_u64;
    let mut entries = 0_usize;
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            // Gone meanwhile: it occupies nothing.
            let Ok(facts) = fs::symlink_metadata(entry.path()) else { continue };
            bytes = bytes.saturating_add(facts.blocks().saturating_mul(BLOCK));
            entries += 1;
            if bytes > enough || entries > MAX_ENTRIES {
                return Ok(enough.saturating_add(1));
            }
            if facts.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    Ok(bytes)
}

fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            // Follows no link, also when one takes a folder's place meanwhile.
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_behind_a_link_does_not_count_and_is_never_removed() {
        let folder = tempfile::tempdir().unwrap();
        let [data, cache, other] = ["data", "cache", "other"].map(|name| folder.path().join(name));
        for folder in [&data, &cache, &other] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(other.join("large"), vec![1; 200_000]).unwrap();
        std::os::unix::fs::symlink(&other, cache.join("link")).unwrap();
        let quota = Quota { data: data.clone(), cache: cache.clone(), most: 100_000 };
        assert_eq!(quota.tidy(), Ok(()));
        fs::create_dir_all(cache.join("a/b")).unwrap();
        fs::write(cache.join("a/b/large"), vec![1; 200_000]).unwrap();
        assert!(quota.check().unwrap_err().to_string().contains("cache"));
        assert_eq!(quota.tidy(), Ok(()));
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);
        assert!(other.join("large").exists());
        fs::write(data.join("large"), vec![1; 200_000]).unwrap();
        assert!(quota.tidy().unwrap_err().to_string().contains("remove what it does not need"));
        assert!(data.join("large").exists());
    }
}
