//! Files that a plugin may name.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use url::Url;

use super::PluginId;

/// The folders that one plugin was granted for reading: its `file:` URLs may lead below these and nowhere else.
///
/// What the *user* may play is another matter and another type, so that neither is judged by the other's rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantedFolders {
    plugin: Option<PluginId>,
    folders: Arc<[PathBuf]>,
    /// The daemon's own folders, which no link may lead to.
    own: Arc<[PathBuf]>,
}

/// Whether one of two folders holds the other; absolute paths without links.
pub fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// A place below a granted folder. Only its text was looked at: a link may still lead out of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantedPath {
    /// The folder that was granted, an absolute path.
    pub folder: PathBuf,
    /// Relative to it, without `..`.
    pub below: PathBuf,
}

/// A `file:` URL that its plugin may not name; displays as a sentence with what to grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct FileRefusal {
    plugin: Option<PluginId>,
    why: Refused,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Refused {
    Host,
    Path,
    NotGranted(PathBuf),
}

impl fmt::Display for FileRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.plugin.as_ref().map_or("who resolved it", PluginId::as_str);
        match &self.why {
            Refused::Host => f.write_str("a file: URL may name no host: write file:///path"),
            Refused::Path => f.write_str("the file: URL has no plain absolute path"),
            Refused::NotGranted(path) => {
                // No folder is suggested: what to grant is not the plugin's to say.
                write!(f, "{} lies in no folder that “{name}” may read", path.display())
            }
        }
    }
}

impl GrantedFolders {
    /// No file at all: for URLs of others than plugins.
    pub fn none() -> GrantedFolders {
        GrantedFolders::default()
    }

    /// What was granted to `plugin`, and the daemon's own folders: absolute paths.
    pub fn of(plugin: PluginId, folders: Vec<PathBuf>, own: Vec<PathBuf>) -> GrantedFolders {
        GrantedFolders { plugin: Some(plugin), folders: folders.into(), own: own.into() }
    }

    /// Whether this place, a path without links, may be read for a plugin at all. Blocks.
    pub fn allow(&self, real: &Path) -> bool {
        let resolved = |own: &PathBuf| own.canonicalize().unwrap_or_else(|_| own.clone());
        !self.own.iter().map(resolved).any(|own| overlap(real, &own))
    }

    /// Whose grant it is.
    pub fn plugin(&self) -> Option<&PluginId> {
        self.plugin.as_ref()
    }

    /// The granted folder that a `file:` URL leads below, by its text alone.
    ///
    /// # Errors
    /// A host, a path that is not plain, or one below no granted folder.
    pub fn locate(&self, url: &Url) -> Result<GrantedPath, FileRefusal> {
        let refused = |why| FileRefusal { plugin: self.plugin.clone(), why };
        if url.host_str().is_some_and(|host| !host.is_empty()) {
            return Err(refused(Refused::Host));
        }
        let path = url.to_file_path().map_err(|()| refused(Refused::Path))?;
        // `%2F..%2F` is a step upwards only after decoding.
        let plain = |path: &Path| {
            let mut parts = path.components();
            parts.next() == Some(Component::RootDir) && parts.all(|part| matches!(part, Component::Normal(_)))
        };
        if !plain(&path) || path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(refused(Refused::Path));
        }
        let found = self.folders.iter().find_map(|folder| {
            let below = path.strip_prefix(folder).ok()?;
            Some(GrantedPath { folder: folder.clone(), below: below.to_owned() })
        });
        found.ok_or_else(|| refused(Refused::NotGranted(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate(url: &str) -> Result<GrantedPath, FileRefusal> {
        let plugin: PluginId = "demo".parse().unwrap();
        let folders = vec!["/srv/music".into(), "/media/usb stick".into()];
        GrantedFolders::of(plugin, folders, vec![]).locate(&Url::parse(url).unwrap())
    }

    #[test]
    fn only_what_lies_below_a_granted_folder_is_found() {
        let rows = [
            ("file:///srv/music/a.flac", "a.flac"),
            ("file:///srv/music/a%20b/%C3%A9.flac", "a b/é.flac"),
            ("file:///srv/music/a%25b", "a%b"),
            ("file:///media/usb%20stick/x", "x"),
            ("file://localhost/srv/music/x", "x"),
            ("file:///srv/./music//x/../y", "y"),
        ];
        for (url, below) in rows {
            assert_eq!(locate(url).unwrap().below, Path::new(below), "{url}");
        }
        for url in [
            "file:///etc/passwd",
            "file:///srv/music2/x",
            "file:///srv/music/../other/x",
            "file:///srv/music/%2e%2e/other",
            "file:///srv/music/..%2f..%2fetc/passwd",
            "file:///srv/music/%00",
            "file://server/srv/music/x",
            "file:///",
        ] {
            assert!(locate(url).is_err(), "{url}");
        }
        let error = locate("file:///home/ann/x.flac").unwrap_err().to_string();
        assert!(error.contains("demo") && !error.contains("files.read:"), "{error}");
        let none = GrantedFolders::none().locate(&Url::parse("file:///srv/music/x").unwrap());
        assert!(none.is_err());
    }
}
