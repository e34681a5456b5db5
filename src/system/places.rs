//! Where files live: as systemd says, else as is usual for the user who runs the daemon.

use std::path::PathBuf;

/// Folders of the daemon. None of them has to exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// `segue.toml` and `plugins/<id>.toml`.
    pub config: PathBuf,
    /// Queue, state, trust and what plugins keep.
    pub state: PathBuf,
    /// What may be lost.
    pub cache: PathBuf,
    /// Folders of plugin packages, later ones win.
    pub plugins: Vec<PathBuf>,
    /// The user who runs the daemon has a bus of the session's.
    pub has_session_bus: bool,
}

impl Places {
    /// Reads systemd's `CONFIGURATION_DIRECTORY`, `STATE_DIRECTORY` and `CACHE_DIRECTORY`; without them root
    /// gets `/etc/segue`, `/var/lib/segue` and `/var/cache/segue`, and anybody else the XDG folders.
    pub fn find(variable: impl Fn(&str) -> Option<String>, is_root: bool) -> Places {
        let home = PathBuf::from(variable("HOME").unwrap_or_else(|| "/".to_owned()));
        let place = |systemd: &str, system: &str, xdg: &str, below_home: &str| {
            let first = |list: String| list.split(':').next().map(PathBuf::from);
            if let Some(given) = variable(systemd).filter(|value| !value.is_empty()).and_then(first) {
                return given;
            }
            if is_root {
                return PathBuf::from(system);
            }
            let base = variable(xdg).filter(|value| value.starts_with('/')).map(PathBuf::from);
            base.unwrap_or_else(|| home.join(below_home)).join("segue")
        };
        let mut plugins =
            vec![PathBuf::from("/usr/lib/segue/plugins"), PathBuf::from("/usr/local/lib/segue/plugins")];
        if !is_root {
            let data = variable("XDG_DATA_HOME").filter(|value| value.starts_with('/')).map(PathBuf::from);
            plugins.push(data.unwrap_or_else(|| home.join(".local/share")).join("segue/plugins"));
        }
        let runtime = variable("XDG_RUNTIME_DIR").map(PathBuf::from);
        let has_session_bus = variable("DBUS_SESSION_BUS_ADDRESS").is_some_and(|address| !address.is_empty())
            || runtime.is_some_and(|folder| folder.is_absolute() && folder.join("bus").exists());
        Places {
            has_session_bus,
            config: place("CONFIGURATION_DIRECTORY", "/etc/segue", "XDG_CONFIG_HOME", ".config"),
            state: place("STATE_DIRECTORY", "/var/lib/segue", "XDG_STATE_HOME", ".local/state"),
            cache: place("CACHE_DIRECTORY", "/var/cache/segue", "XDG_CACHE_HOME", ".cache"),
            plugins,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_comes_first_then_root_then_the_users_own_folders() {
        let systemd = |name: &str| (name == "STATE_DIRECTORY").then(|| "/srv/state:/other".to_owned());
        assert_eq!(Places::find(systemd, true).state, PathBuf::from("/srv/state"));
        assert_eq!(Places::find(|_| None, true).state, PathBuf::from("/var/lib/segue"));
        let user = |name: &str| (name == "HOME").then(|| "/home/ann".to_owned());
        let places = Places::find(user, false);
        assert_eq!(places.config, PathBuf::from("/home/ann/.config/segue"));
        assert_eq!(places.plugins.last(), Some(&PathBuf::from("/home/ann/.local/share/segue/plugins")));
    }
}
