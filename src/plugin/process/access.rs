//! What a plugin may touch: one list, from which bubblewrap's mounts and the runner's rules are made.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::grants::Granted;

/// Where programs and libraries are; on a merged system all but the first are links into it.
pub(super) const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];
/// Read by libraries, whatever the program.
const LIBRARIES: [&str; 4] = ["/etc/ssl", "/etc/localtime", "/etc/alternatives", "/etc/ld.so.cache"];
/// Read to resolve names, apart from [`RESOLVER`].
const NAMES: [&str; 3] = ["/etc/hosts", "/etc/nsswitch.conf", "/etc/ca-certificates"];
/// The file that names the servers for names.
const RESOLVER: &str = "/etc/resolv.conf";

/// What one plugin is started with.
#[derive(Clone, Debug)]
pub(in crate::plugin) struct Launch {
    /// Absolute, inside `package`.
    pub(in crate::plugin) program: PathBuf,
    pub(in crate::plugin) arguments: Vec<String>,
    /// The verified copy, which is also the working directory.
    pub(in crate::plugin) package: PathBuf,
    /// Its own folders, writable.
    pub(in crate::plugin) data: PathBuf,
    pub(in crate::plugin) cache: PathBuf,
    /// Whether it may open internet sockets.
    pub(in crate::plugin) network: bool,
    /// Granted for reading.
    pub(in crate::plugin) folders: Vec<Granted>,
    /// Run it only when everything is enforced.
    pub(in crate::plugin) require_sandbox: bool,
}

/// System files that a plugin may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Configuration {
    pub(super) paths: Vec<PathBuf>,
    /// Where [`RESOLVER`] is a link to, when the folder of its target is among the paths.
    pub(super) resolver: Option<PathBuf>,
}

impl Configuration {
    pub(super) fn of(network: bool) -> Configuration {
        let mut paths: Vec<PathBuf> = LIBRARIES.iter().map(PathBuf::from).collect();
        let mut resolver = None;
        if network {
            paths.extend(NAMES.iter().map(PathBuf::from));
            match fs::canonicalize(RESOLVER).ok().and_then(|target| Some((folder_of(&target)?, target))) {
                Some((folder, target)) => {
                    paths.push(folder);
                    resolver = Some(target);
                }
                None => paths.push(RESOLVER.into()),
            }
        }
        Configuration { paths, resolver }
    }
}

/// A folder that holds the resolver's file and little else. A mount or a rule for the file itself would go on
/// showing the old one when it is replaced by renaming, as DHCP clients do.
fn folder_of(target: &Path) -> Option<PathBuf> {
    let folder = target.parent()?;
    let is_own = ["/run", "/etc", "/var/run"]
        .iter()
        .any(|top| folder.strip_prefix(top).is_ok_and(|below| below.components().next().is_some()));
    is_own.then(|| folder.to_owned())
}

/// How the files for resolving names looked when a plugin was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp(Vec<Option<(u64, u64, i64, i64)>>);

impl Stamp {
    /// Of files that are seen one by one; what is replaced in a folder that is seen as a whole does not matter.
    pub(super) fn now() -> Stamp {
        let mut files: Vec<PathBuf> = NAMES.iter().chain(&[RESOLVER]).map(PathBuf::from).collect();
        files.extend(fs::canonicalize(RESOLVER).ok().filter(|target| folder_of(target).is_none()));
        Stamp::of(&files)
    }

    fn of(files: &[PathBuf]) -> Stamp {
        let facts = |facts: fs::Metadata| (facts.dev(), facts.ino(), facts.mtime(), facts.mtime_nsec());
        Stamp(files.iter().map(|path| fs::symlink_metadata(path).ok().map(facts)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolvers_folder_is_granted_only_where_it_is_its_own() {
        for (target, folder) in [
            ("/run/systemd/resolve/stub-resolv.conf", Some("/run/systemd/resolve")),
            ("/run/NetworkManager/resolv.conf", Some("/run/NetworkManager")),
            ("/etc/resolvconf/run/resolv.conf", Some("/etc/resolvconf/run")),
            ("/etc/resolv.conf", None),
            ("/run/resolv.conf", None),
            ("/resolv.conf", None),
            ("/home/me/resolv.conf", None),
        ] {
            assert_eq!(folder_of(Path::new(target)).as_deref(), folder.map(Path::new), "{target}");
        }
    }

    #[test]
    fn a_file_that_is_replaced_or_written_to_has_another_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let [file, new] = ["resolv.conf", "resolv.conf.new"].map(|name| folder.path().join(name));
        let files = [file.clone()];
        let missing = Stamp::of(&files);
        fs::write(&file, "nameserver 192.0.2.1").unwrap();
        let first = Stamp::of(&files);
        assert_eq!(first, Stamp::of(&files));
        fs::write(&new, "nameserver 192.0.2.2").unwrap();
        fs::rename(&new, &file).unwrap();
        let second = Stamp::of(&files);
        assert!(missing != first && first != second);
    }
}
