//! Files of this machine, below allowed folders only.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;

use super::StreamError;

/// Opens a regular file below one of `folders` and returns its length too. The kernel sees to it that
/// neither `..` nor a link leads out of the folder.
pub(super) fn open_beneath(path: &Path, folders: &[PathBuf]) -> Result<(File, u64), StreamError> {
    let error = |why: String| StreamError::File { track: path.display().to_string(), why };
    let mut last = None;
    for folder in folders {
        let Ok(below) = path.strip_prefix(folder) else { continue };
        match open_in(folder, below) {
            Ok(fd) => {
                let file = File::from(fd);
                let metadata = file.metadata().map_err(|cause| error(cause.to_string()))?;
                if !metadata.is_file() {
                    return Err(error("it is not a regular file".to_owned()));
                }
                return Ok((file, metadata.len()));
            }
            Err(cause) => last = Some(cause),
        }
    }
    Err(error(match last {
        None => "it lies in none of the folders that the configuration allows; add its folder to [files]"
            .to_owned(),
        Some(Errno::EXDEV) => "it leads out of the folder that the configuration allows".to_owned(),
        Some(Errno::ENOENT) => "there is no such file".to_owned(),
        Some(Errno::EACCES) => "segued may not read it; check its permissions".to_owned(),
        Some(cause) => format!("it cannot be opened: {}", cause.desc()),
    }))
}

fn open_in(folder: &Path, below: &Path) -> Result<OwnedFd, Errno> {
    let folder = open(folder, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    // Not blocking, or else a FIFO would hold the caller until someone writes to it.
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NOCTTY | OFlag::O_NONBLOCK;
    let how = OpenHow::new()
        .flags(flags)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(folder, below, how)
}
