//! The command line of bubblewrap, and the task for the runner.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::access::{Configuration, Launch, SYSTEM};
use super::contract::{GrantedFolder, Task};

/// What a plugin may write to its private `/tmp`, in bytes: it is memory.
const TMP_BYTES: &str = "67108864";
/// The same for `/dev/shm`, where libraries keep semaphores.
const SHARED_BYTES: &str = "16777216";
/// Where the runner is seen when it is not below `/usr`.
const RUNNER: &str = "/segue-plugin-runner";

/// What the runner is to do for this plugin. `inside`: within what [`confinement`] prepares.
///
/// # Errors
/// The folder above the plugin's own cannot be looked at.
pub(super) fn task(launch: &Launch, system: &Configuration, inside: bool) -> io::Result<Task> {
    let foreign = launch.data.parent().unwrap_or(&launch.data).to_owned();
    let facts = fs::metadata(&foreign)?;
    let mut run: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    run.push(launch.package.clone());
    let granted = launch.folders.iter().map(|folder| GrantedFolder {
        // Without namespaces it is found where it really is.
        path: if inside { folder.path.clone() } else { folder.real.clone() },
        identity: folder.identity,
    });
    let mut write = vec![launch.data.clone(), launch.cache.clone()];
    let tmp = if inside {
        write.extend(["/tmp".into(), "/dev/shm".into()]);
        PathBuf::from("/tmp")
    } else {
        tmp_folder(launch)
    };
    Ok(Task {
        require_sandbox: launch.require_sandbox,
        network: launch.network,
        package: launch.package.clone(),
        tmp,
        foreign,
        foreign_identity: (facts.dev(), facts.ino()),
        run,
        read: system.paths.clone(),
        granted: granted.collect(),
        write,
    })
}

/// `TMPDIR` where a plugin has no `/tmp` of its own.
pub(super) fn tmp_folder(launch: &Launch) -> PathBuf {
    launch.cache.join("tmp")
}

/// The runner's path as a plugin's confinement shows it.
pub(super) fn runner_inside(runner: &Path) -> &Path {
    if runner.starts_with("/usr") { runner } else { Path::new(RUNNER) }
}

/// Arguments for bubblewrap, up to the program. On `info` it tells the process id of the namespace's first
/// process.
///
/// It is not asked to wait for us (`--block-fd`): whoever ends it in that wait leaves its child waiting for ever,
/// since that child only later asks to end with its parent.
pub(super) fn confinement(
    launch: &Launch,
    system: &Configuration,
    runner: &Path,
    info: i32,
) -> Vec<OsString> {
    let mut line = Line::default();
    line.words(["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]);
    // Run by root, it would leave root's rights within the namespaces.
    line.words(["--cap-drop", "ALL", "--info-fd", &info.to_string()]);
    if !launch.network {
        line.words(["--unshare-net"]);
    }
    SYSTEM.iter().for_each(|folder| line.system_folder(Path::new(folder)));
    system.paths.iter().for_each(|path| line.bind("--ro-bind-try", path));
    if let Some(target) = &system.resolver {
        line.words(["--symlink"]);
        line.0.extend([target.into(), "/etc/resolv.conf".into()]);
    }
    line.words(["--dev", "/dev", "--size", SHARED_BYTES, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]);
    line.words(["--size", TMP_BYTES, "--tmpfs", "/tmp"]);
    for folder in &launch.folders {
        line.words(["--ro-bind"]);
        line.0.extend([folder.real.clone().into(), folder.path.clone().into()]);
    }
    line.bind("--ro-bind", &launch.package);
    line.bind("--bind", &launch.data);
    line.bind("--bind", &launch.cache);
    if runner_inside(runner) != runner {
        line.words(["--ro-bind"]);
        line.0.extend([runner.into(), RUNNER.into()]);
    }
    // The root is memory, and without a limit of its own.
    line.words(["--remount-ro", "/", "--"]);
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
    fn system_folder(&mut self, path: &Path) {
        match fs::symlink_metadata(path) {
            Ok(facts) if facts.is_symlink() => {
                if let Ok(target) = fs::read_link(path) {
                    self.0.extend(["--symlink".into(), target.into_os_string(), path.into()]);
                }
            }
            Ok(facts) if facts.is_dir() => self.bind("--ro-bind", path),
            _ => {}
        }
    }
}
