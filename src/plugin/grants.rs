//! Which folders may be granted to a plugin for reading.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use segue_protocol::manifest::Scope;

use crate::track::overlap;

/// The kernel's own trees: memory, devices and secrets of other programs.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Sockets of other programs lie below.
const RUNTIME: &str = "/run";

/// A granted folder as it is now: what was looked at is what is shown to the plugin.
#[derive(Clone, Debug)]
pub(super) struct Granted {
    /// Where the plugin looks for it.
    pub(super) path: PathBuf,
    /// Where it really is.
    pub(super) real: PathBuf,
    /// Device and inode. A link may take the place of any folder above it at any time.
    pub(super) identity: (u64, u64),
}

/// Those of the granted folders that are there. One that is away, such as a stick's, is shown when it is back.
///
/// # Errors
/// A sentence about one that may not be shown.
pub(super) fn present(granted: &[Scope], own: &[PathBuf]) -> Result<Vec<Granted>, String> {
    let folders = granted.iter().filter_map(|scope| match scope {
        Scope::FilesRead(folder) if folder.exists() => Some(folder),
        _ => None,
    });
    folders.map(|folder| check(folder, own)).collect()
}

/// Looks at a folder that a person wants to grant, or has granted. `own` are the folders of the daemon itself. Blocks.
///
/// # Errors
/// A sentence with what to do.
pub(super) fn check(folder: &Path, own: &[PathBuf]) -> Result<Granted, String> {
    let shown = folder.display();
    let (real, identity) = opened(folder)
        .map_err(|error| format!("{shown} is not there ({error}): name a folder that exists"))?;
    if real.parent().is_none() || real == Path::new(RUNTIME) {
        return Err(format!("{shown} holds far more than files to play: name the folder that holds those"));
    }
    if let Some(kernel) = KERNEL.iter().find(|kernel| real.starts_with(kernel)) {
        return Err(format!(
            "{shown} is the kernel's ({kernel}) and holds nothing to play: name another folder"
        ));
    }
    for own in own {
        // A folder that does not exist yet will lie where it is named.
        let own = fs::canonicalize(own).unwrap_or_else(|_| own.clone());
        if overlap(&real, &own) {
            let own = own.display();
            return Err(format!(
                "it would let the plugin read the player's own {own}, where secrets and decisions lie: name a folder beside it"
            ));
        }
    }
    Ok(Granted { path: folder.to_owned(), real, identity })
}

/// One open file gives both the path and the identity, so that both are of the same folder.
fn opened(folder: &Path) -> std::io::Result<(PathBuf, (u64, u64))> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let opened = File::from(open(folder, flags, Mode::empty())?);
    let facts = opened.metadata()?;
    let real = fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()))?;
    Ok((real, (facts.dev(), facts.ino())))
}
