//! Files that survive a power cut: replaced whole, or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::de::DeserializeOwned;

/// Replaces a file atomically: after a power cut it holds the old content or the new, nothing between.
/// Blocks on the disk. The folder is made where it is missing.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("a path without a folder"))?;
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

/// Reads a JSON file of ours. One that is missing is `None`; one that cannot be understood is set aside under
/// another name, with a warning, so that nothing is lost and the daemon still starts.
pub fn load_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "cannot read this file; going on without it");
            return None;
        }
    };
    match serde_json::from_slice(&bytes) {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "this file is damaged");
            set_aside(path);
            None
        }
    }
}

/// Keeps a file that cannot be used under another name; the daemon goes on without it.
pub fn set_aside(path: &Path) {
    let aside = path.with_extension("damaged.json");
    match fs::rename(path, &aside) {
        Ok(()) => {
            tracing::warn!(kept_as = %aside.display(), "it is set aside, and the daemon goes on without it")
        }
        Err(error) => tracing::warn!(file = %path.display(), %error, "it cannot be set aside"),
    }
}

/// Makes this the only daemon that keeps its state in this folder, for as long as the file is open. Another one
/// would overwrite it. A folder that cannot be written to is no reason not to play.
pub fn claim(folder: &Path) -> io::Result<Option<File>> {
    let opened = fs::create_dir_all(folder).and_then(|()| File::create(folder.join("lock")));
    let Ok(file) = opened else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            format!(
                "another segued keeps its state in {}: end that one, or set STATE_DIRECTORY",
                folder.display()
            ),
        )),
        Err(fs::TryLockError::Error(_)) => Ok(None),
    }
}

/// Changes with each boot of the machine; empty where the kernel does not tell.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_set_aside_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("queue.json");
        replace(&path, b"[1, 2").unwrap();
        assert_eq!(load_json::<Vec<u32>>(&path), None);
        assert_eq!(fs::read(folder.path().join("queue.damaged.json")).unwrap(), b"[1, 2");
        replace(&path, b"[1, 2]").unwrap();
        assert_eq!(load_json::<Vec<u32>>(&path), Some(vec![1, 2]));
    }
}
