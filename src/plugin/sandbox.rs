//! How a plugin is confined: the command line of bubblewrap.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// `PATH` inside and outside of the confinement.
pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// What a plugin may write to its private `/tmp`, in bytes: it is memory.
const TMP_BYTES: &str = "67108864";

/// What one plugin is started with.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    /// Absolute, inside `package`.
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    /// The verified copy, which is also the working directory.
    pub(super) package: PathBuf,
    /// Its own folders, writable.
    pub(super) data: PathBuf,
    pub(super) cache: PathBuf,
    /// Whether it may open internet sockets.
    pub(super) network: bool,
    /// Granted for reading.
    pub(super) folders: Vec<PathBuf>,
}

/// Arguments for bubblewrap, up to the program. On `info` it tells the process id of the namespace's first
/// process.
///
/// It is not asked to wait for us (`--block-fd`): whoever ends it in that wait leaves its child waiting for ever,
/// since that child only later asks to end with its parent.
pub(super) fn confinement(launch: Option<&Launch>, info: i32) -> Vec<OsString> {
    let mut line = Line::default();
    line.words(["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]);
    line.words(["--info-fd", &info.to_string()]);
    line.words(["--ro-bind", "/usr", "/usr"]);
    for name in ["bin", "sbin", "lib", "lib32", "lib64"] {
        line.system_folder(name);
    }
    for path in ["/etc/ssl", "/etc/localtime", "/etc/alternatives", "/etc/ld.so.cache"] {
        line.words(["--ro-bind-try", path, path]);
    }
    line.words(["--dev", "/dev", "--size", TMP_BYTES, "--tmpfs", "/tmp"]);
    if !launch.is_some_and(|launch| launch.network) {
        line.words(["--unshare-net"]);
    } else {
        for path in ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ca-certificates"] {
            line.words(["--ro-bind-try", path, path]);
        }
    }
    if let Some(launch) = launch {
        for folder in &launch.folders {
            line.bind("--ro-bind-try", folder);
        }
        line.bind("--ro-bind", &launch.package);
        line.bind("--bind", &launch.data);
        line.bind("--bind", &launch.cache);
        line.0.push("--chdir".into());
        line.0.push(launch.package.clone().into_os_string());
    }
    // bubblewrap sets PWD when it changes the folder; a plugin's environment is exactly what is documented.
    line.words(["--", "/usr/bin/env", "-u", "PWD"]);
    line.0
}

#[derive(Default)]
struct Line(Vec<OsString>);

impl Line {
    fn words<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) {
        self.0.extend(words.into_iter().map(OsString::from));
    }

    fn bind(&mut self, how: &str, path: &Path) {
        self.0.extend([how.into(), path.as_os_str().to_owned(), path.as_os_str().to_owned()]);
    }

    /// `/bin` and its like are links into `/usr` on a merged system and folders on others.
    fn system_folder(&mut self, name: &str) {
        let path = format!("/{name}");
        match fs::symlink_metadata(&path) {
            Ok(facts) if facts.is_symlink() => {
                let target = fs::read_link(&path).unwrap_or_else(|_| PathBuf::from(format!("usr/{name}")));
                self.0.extend(["--symlink".into(), target.into_os_string(), path.into()]);
            }
            Ok(facts) if facts.is_dir() => self.words(["--ro-bind", &path, &path]),
            _ => {}
        }
    }
}
