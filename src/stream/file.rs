//! Files of this machine, below allowed folders only. The kernel sees to it that neither `..` nor a link leads
//! out of them.

use std::fs::{File, Metadata};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;
use url::Url;

use super::StreamError;
use super::http::Answer;
use super::incoming::{FileBody, Incoming};
use super::range::{Asked, Head};
use crate::track::GrantedFolders;

/// The folders below which the *user* may play files: the configuration names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserFolders(Vec<PathBuf>);

impl UserFolders {
    /// Absolute paths.
    pub fn new(folders: Vec<PathBuf>) -> UserFolders {
        UserFolders(folders)
    }
}

/// Opens a regular file below one of the user's folders and returns its length too.
pub(super) fn open_for_user(path: &Path, folders: &UserFolders) -> Result<(File, u64), StreamError> {
    let error = |why: String| StreamError::File { track: path.display().to_string(), why };
    let mut last = None;
    for folder in &folders.0 {
        let Ok(below) = path.strip_prefix(folder) else { continue };
        match open_regular(folder, below) {
            Ok((file, facts)) => return Ok((file, facts.len())),
            Err(cause) => last = Some(cause),
        }
    }
    Err(error(match last {
        None => "it lies in none of the folders that the configuration allows; add its folder to [files]"
            .to_owned(),
        Some(Unopened::Os(Errno::EXDEV)) => {
            "it leads out of the folder that the configuration allows".to_owned()
        }
        Some(cause) => cause.why(),
    }))
}

/// Answers a request for a plugin's `file:` URL as a server with ranges would.
///
/// # Errors
/// A sentence about why it cannot be had, with the plugin's name where that is why.
pub(super) async fn ask(url: &Url, files: &GrantedFolders, asked: Asked) -> Result<Answer, String> {
    let place = files.locate(url).map_err(|refusal| refusal.to_string())?;
    let granted = files.clone();
    let opened = tokio::task::spawn_blocking(move || {
        let (file, facts) = open_regular(&place.folder, &place.below)?;
        // The granted folder itself may be a link by now.
        let real = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        match real.is_ok_and(|real| granted.allow(&real)) {
            true => Ok((file, facts)),
            false => Err(Unopened::Os(Errno::EXDEV)),
        }
    });
    let opened = opened.await;
    let opened = opened.map_err(|error| error.to_string())?;
    let (file, facts) = opened.map_err(|cause| match cause {
        Unopened::Os(Errno::EXDEV | Errno::ELOOP) => {
            let name = files.plugin().map_or("the plugin", |plugin| plugin.as_str());
            format!(
                "the file that “{name}” names leads out of the folder that it may read; grant the folder where it really lies, or put the file itself there"
            )
        }
        cause => cause.why(),
    })?;
    Ok(answer(file, &facts, asked))
}

fn answer(file: File, facts: &Metadata, asked: Asked) -> Answer {
    let length = facts.len();
    let (from, mut head) = match asked {
        Asked::Whole => (0, Head { status: 200, length: Some(length), ..Head::default() }),
        Asked::From(at) | Asked::Part { from: at, .. } if at >= length => (
            length,
            Head { status: 416, content_range: Some(format!("bytes */{length}")), ..Head::default() },
        ),
        Asked::From(at) | Asked::Part { from: at, .. } => {
            let content_range = Some(format!("bytes {at}-{}/{length}", length - 1));
            (at, Head { status: 206, length: Some(length - at), content_range, ..Head::default() })
        }
    };
    // Another file under the same name is another file, also when it is as long.
    head.etag =
        Some(format!("\"{:x}-{:x}-{:x}.{:x}\"", facts.dev(), facts.ino(), facts.mtime(), facts.mtime_nsec()));
    Answer {
        body: Incoming::File(FileBody::new(Arc::new(file), from)),
        head,
        content_type: None,
        date: None,
        host: "this machine".to_owned(),
        radio: false,
        station: None,
    }
}

/// Why a file could not be opened.
#[derive(Debug)]
enum Unopened {
    NotRegular,
    Os(Errno),
}

impl Unopened {
    fn why(&self) -> String {
        match self {
            Unopened::NotRegular => "it is not a regular file".to_owned(),
            Unopened::Os(Errno::ENOENT) => "there is no such file".to_owned(),
            Unopened::Os(Errno::EACCES) => "segued may not read it; check its permissions".to_owned(),
            Unopened::Os(cause) => format!("it cannot be opened: {}", cause.desc()),
        }
    }
}

fn open_regular(folder: &Path, below: &Path) -> Result<(File, Metadata), Unopened> {
    let file = File::from(open_in(folder, below).map_err(Unopened::Os)?);
    let facts = file
        .metadata()
        .map_err(|cause| Unopened::Os(cause.raw_os_error().map_or(Errno::EIO, Errno::from_raw)))?;
    if facts.is_file() { Ok((file, facts)) } else { Err(Unopened::NotRegular) }
}

fn open_in(folder: &Path, below: &Path) -> Result<OwnedFd, Errno> {
    let folder = open(folder, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    // The folder itself, which an empty path does not name.
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    // Not blocking, or else a FIFO would hold the caller until someone writes to it.
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NOCTTY | OFlag::O_NONBLOCK;
    let how = OpenHow::new()
        .flags(flags)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(folder, below, how)
}
