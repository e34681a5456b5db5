//! The smaller sections: control, files, plugins, the start, the log.

use std::path::PathBuf;

use serde::Deserialize;
use tracing_subscriber::filter::Targets;

use super::{A_DAY_S, Complaint};
use crate::control::dbus::Bus;
use crate::player::Intent;

/// `[dbus]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dbus {
    /// `system`, `session`, an address such as `unix:path=/run/my-bus`, or `auto`: the session bus where there is
    /// one, else the system bus.
    pub bus: String,
}

impl Default for Dbus {
    fn default() -> Self {
        Dbus { bus: "auto".to_owned() }
    }
}

/// `[files]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Files {
    /// `file:` URIs may be played below these folders. Absolute paths.
    pub folders: Vec<PathBuf>,
}

/// `[plugins]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plugins {
    /// Folders that hold plugin packages; later ones win. Empty: the usual places.
    pub folders: Vec<PathBuf>,
    /// Trust what the distribution upgraded, as long as it asks for no further scope.
    pub follow_packages: bool,
    /// Refuse to run a plugin that cannot be confined on this machine.
    pub require_sandbox: bool,
}

/// `[player]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Player {
    /// What to do with a track that played when the machine went down: `play`, `pause` or `stop`.
    pub resume: Resume,
    /// While playing, the position is saved so often, in seconds; 0 turns it off.
    pub save_position_s: u64,
}

impl Default for Player {
    fn default() -> Self {
        Player { resume: Resume::Pause, save_position_s: 60 }
    }
}

/// What to do at a start with what played before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resume {
    /// Play on.
    Play,
    /// Be paused at the same place.
    Pause,
    /// Be stopped.
    Stop,
}

impl Resume {
    /// What to want at a start, given what was wanted before. When the daemon alone was started again (a
    /// crash, an upgrade) what was wanted before still holds; after a boot of the machine this setting decides.
    pub fn intent(self, before: Intent, same_boot: bool) -> Intent {
        match (before, self) {
            (before, _) if same_boot => before,
            (Intent::Playing, Resume::Play) => Intent::Playing,
            (Intent::Playing | Intent::Paused, Resume::Stop) => Intent::Stopped,
            (Intent::Playing | Intent::Paused, _) => Intent::Paused,
            (Intent::Stopped, _) => Intent::Stopped,
        }
    }
}

/// `[log]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// `error`, `warn`, `info`, `debug` or `trace`; filters such as `info,segue::stream=debug` work too.
    pub level: String,
}

impl Default for Log {
    fn default() -> Self {
        Log { level: "info".to_owned() }
    }
}

impl Dbus {
    pub(super) fn complaint(&self) -> Option<Complaint> {
        let known = self.bus == "auto" || self.bus.parse::<Bus>().is_ok();
        let message = "\"auto\", \"system\", \"session\" or the address of a bus";
        (!known).then(|| Complaint { table: "dbus", key: "bus", message: message.to_owned() })
    }
}

impl Files {
    pub(super) fn complaint(&self) -> Option<Complaint> {
        relative("files", &self.folders)
    }
}

impl Plugins {
    pub(super) fn complaint(&self) -> Option<Complaint> {
        relative("plugins", &self.folders)
    }
}

fn relative(table: &'static str, folders: &[PathBuf]) -> Option<Complaint> {
    let folder = folders.iter().find(|folder| !folder.is_absolute())?;
    let message = format!("{} is not an absolute path", folder.display());
    Some(Complaint { table, key: "folders", message })
}

impl Player {
    pub(super) fn complaint(&self) -> Option<Complaint> {
        let message = || format!("at most {A_DAY_S} seconds");
        (self.save_position_s > A_DAY_S).then(|| Complaint {
            table: "player",
            key: "save_position_s",
            message: message(),
        })
    }
}

impl Log {
    pub(super) fn complaint(&self) -> Option<Complaint> {
        let level = &self.level;
        let is_one_word = level.chars().all(char::is_alphanumeric);
        let is_level = ["off", "error", "warn", "info", "debug", "trace"].contains(&level.as_str());
        let wrong = is_one_word && !is_level || level.parse::<Targets>().is_err();
        let message = || format!("“{level}” is no level such as \"info\"");
        wrong.then(|| Complaint { table: "log", key: "level", message: message() })
    }
}
