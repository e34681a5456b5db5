//! What a plugin may keep on the disk: its data and its cache have a cap each.
//!
//! No kernel enforces that for an ordinary user, so the folders are measured before each start and once a minute
//! while the plugin runs. A single file is bounded by the runner's limits meanwhile.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FchmodatFlags, Mode, SFlag, fchmodat, fstatat};

use super::copies::make_removable;

/// Files and folders that are looked at; a folder with more counts as full.
const MAX_ENTRIES: usize = 100_000;
/// Folders within folders that are looked at; a file descriptor is open for each.
const MAX_DEPTH: usize = 64;
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
#[error("its folder {} {excess}: {}", folder.display(), if *is_cache { "it is emptied" } else { "remove what it does not need, or reset the plugin by emptying the folder" })]
pub(super) struct Full {
    folder: PathBuf,
    excess: Excess,
    is_cache: bool,
}

/// What is too much. What cannot be measured counts as that, or else a plugin would see to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Excess {
    #[error("occupies more than the {} MiB that are allowed", .0 / 1_048_576)]
    Bytes(u64),
    #[error("holds more than {MAX_ENTRIES} files")]
    Entries,
    #[error("has folders within folders more than {MAX_DEPTH} deep")]
    Depth,
    #[error("cannot be measured ({})", .0.desc())]
    Unknown(Errno),
}

impl Quota {
    /// Whether both folders are within their bounds. Takes as long as looking at every file does.
    pub(super) fn check(&self) -> Result<(), Full> {
        for (folder, is_cache) in [(&self.data, false), (&self.cache, true)] {
            if let Err(excess) = measure(folder, self.most) {
                return Err(Full { folder: folder.clone(), excess, is_cache });
            }
        }
        Ok(())
    }

    /// Before a start, when no process of the plugin lives: a cache that holds too much is emptied.
    ///
    /// # Errors
    /// Data are never touched: too much of them is for a person to look at.
    pub(super) fn tidy(&self) -> Result<(), Full> {
        // What its owner took away from itself it needs to start again.
        for folder in [&self.data, &self.cache] {
            let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
        }
        if let Err(excess) = measure(&self.cache, self.most) {
            tracing::warn!(folder = %self.cache.display(), %excess, "a plugin's cache is emptied");
            if let Err(error) = empty(&self.cache) {
                tracing::warn!(folder = %self.cache.display(), %error, "it cannot be emptied");
            }
        }
        self.check()
    }
}

/// Whether a folder keeps within its bounds: bytes on the disk, links not followed. Each folder is opened below the
/// one above it, so that neither long paths nor links that appear meanwhile lead elsewhere.
fn measure(folder: &Path, most: u64) -> Result<(), Excess> {
    let mut sum = Sum { bytes: 0, entries: 0, most };
    let top = open(folder, FOLDER, Mode::empty()).map_err(Excess::Unknown)?;
    sum.add_folder(top, 0)
}

const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

struct Sum {
    bytes: u64,
    entries: usize,
    most: u64,
}

impl Sum {
    fn add_folder(&mut self, folder: OwnedFd, depth: usize) -> Result<(), Excess> {
        if depth > MAX_DEPTH {
            return Err(Excess::Depth);
        }
        let mut folder = Dir::from_fd(folder).map_err(Excess::Unknown)?;
        let mut below = Vec::new();
        let mut names = Vec::new();
        for entry in folder.iter() {
            let name = entry.map_err(Excess::Unknown)?.file_name().to_owned();
            if name.as_bytes() != b"." && name.as_bytes() != b".." {
                names.push(name);
            }
            if self.entries + names.len() > MAX_ENTRIES {
                return Err(Excess::Entries);
            }
        }
        for name in names {
            let facts = match fstatat(folder.as_fd(), name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(facts) => facts,
                // Gone meanwhile: it occupies nothing.
                Err(Errno::ENOENT) => continue,
                Err(error) => return Err(Excess::Unknown(error)),
            };
            self.entries += 1;
            self.bytes = self.bytes.saturating_add(facts.st_blocks.unsigned_abs().saturating_mul(BLOCK));
            if self.bytes > self.most {
                return Err(Excess::Bytes(self.most));
            }
            if facts.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits() {
                below.push(name);
            }
        }
        for name in below {
            match open_below(folder.as_fd(), &name) {
                Ok(below) => self.add_folder(below, depth + 1)?,
                // Gone, or something else has its name by now.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => {}
                Err(error) => return Err(Excess::Unknown(error)),
            }
        }
        Ok(())
    }
}

/// A folder that its owner may not read is made readable: it belongs to the same user.
fn open_below(folder: BorrowedFd<'_>, name: &std::ffi::CStr) -> Result<OwnedFd, Errno> {
    match openat(folder, name, FOLDER, Mode::empty()) {
        Err(Errno::EACCES) => {
            fchmodat(folder, name, Mode::S_IRWXU, FchmodatFlags::NoFollowSymlink)
                .or_else(|_| chmod_unless_link(folder, name))?;
            openat(folder, name, FOLDER, Mode::empty())
        }
        other => other,
    }
}

/// For kernels without `fchmodat2`: through a descriptor, which no link can take the place of.
fn chmod_unless_link(folder: BorrowedFd<'_>, name: &std::ffi::CStr) -> Result<(), Errno> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let itself = openat(folder, name, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", itself.as_raw_fd());
    let changed = fs::set_permissions(path, Permissions::from_mode(0o700));
    changed.map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
}

fn empty(folder: &Path) -> io::Result<()> {
    make_removable(folder);
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

    #[test]
    fn what_cannot_be_measured_counts_as_too_much_and_a_cache_of_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let [data, cache] = ["data", "cache"].map(|name| folder.path().join(name));
        let quota = Quota { data: data.clone(), cache: cache.clone(), most: 100_000 };
        for folder in [&data, &cache] {
            let mut deep = folder.clone();
            for _ in 0..=MAX_DEPTH + 1 {
                deep.push("d");
            }
            fs::create_dir_all(&deep).unwrap();
            // Hidden from its owner: it is looked at nevertheless.
            fs::create_dir(folder.join("hidden")).unwrap();
            fs::write(folder.join("hidden/large"), vec![1; 200_000]).unwrap();
            fs::set_permissions(folder.join("hidden"), Permissions::from_mode(0o000)).unwrap();
            fs::set_permissions(folder, Permissions::from_mode(0o300)).unwrap();
        }
        assert!(quota.tidy().is_err());
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);
        fs::remove_dir_all(data.join("d")).unwrap();
        assert!(quota.tidy().unwrap_err().to_string().contains("occupies more"));
        fs::remove_file(data.join("hidden/large")).unwrap();
        assert_eq!(quota.tidy(), Ok(()));
    }
}
