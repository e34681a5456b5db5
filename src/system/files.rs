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
            let aside = path.with_extension("damaged.json");
            let kept = fs::rename(path, &aside).is_ok();
            tracing::warn!(file = %path.display(), %error, kept_as = %aside.display(), kept,
                "this file is damaged; it is set aside, and the daemon goes on without it");
            None
        }
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
