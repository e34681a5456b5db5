//! `segue.toml` → a checked [`Config`]. `docs/configuration.md` is the reference for people.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::system::Places;

mod output;
mod sections;
mod sound;
mod stream;
#[cfg(test)]
mod tests;

pub use output::{Devices, Output};
pub use sections::{Dbus, Files, Log, Player, Plugins, Resume};
pub use sound::Sound;
pub use stream::{Size, Stream};

/// No time in the configuration is longer.
const A_DAY_S: u64 = 86_400;

/// The settings of the daemon, checked. Each has a default, so that an empty file is a good one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where control comes from.
    pub dbus: Dbus,
    /// Where sound goes to.
    pub output: Output,
    /// What is done to the samples.
    pub sound: Sound,
    /// How tracks are fetched.
    pub stream: Stream,
    /// Which local files may be played.
    pub files: Files,
    /// Where plugins are and how they are confined.
    pub plugins: Plugins,
    /// What happens at the start.
    pub player: Player,
    /// What is logged.
    pub log: Log,
}

/// A value that makes no sense.
struct Complaint {
    table: &'static str,
    key: &'static str,
    message: String,
}

/// Where a key stands in the text, in bytes; the beginning if it is written in a way that is not looked for.
fn place_of(text: &str, table: &str, key: &str) -> usize {
    let (mut at, mut inside) = (0, "");
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            inside = name.trim();
        }
        let written = trimmed.split('=').next().unwrap_or_default().trim();
        let dotted = written.split_once('.').is_some_and(|(t, k)| (t.trim(), k.trim()) == (table, key));
        if inside == table && written == key || inside.is_empty() && dotted {
            return at + line.len() - trimmed.len();
        }
        at += line.len();
    }
    0
}

/// A configuration that cannot be used, with file, line and column.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What is written there is wrong.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Wrong {
        /// Which file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong and what would be right.
        message: String,
    },
}

impl Config {
    /// Reads a file. Without a path, the usual place is read, and its absence means the defaults.
    pub fn load(path: Option<&Path>, places: &Places) -> Result<Config, ConfigError> {
        let usual = places.config.join("segue.toml");
        let file = path.unwrap_or(&usual);
        match std::fs::read_to_string(file) {
            Ok(text) => Config::parse(&text, file),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.is_none() => {
                Ok(Config::default())
            }
            Err(source) => Err(ConfigError::Unreadable { path: file.to_owned(), source }),
        }
    }

    /// Reads the text of a configuration; `path` is for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        let wrong_at = |at: usize, message: String| {
            let before = &text[..at.min(text.len())];
            let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
            ConfigError::Wrong {
                path: path.to_owned(),
                line: before.matches('\n').count() + 1,
                column: before[line_start..].chars().count() + 1,
                message,
            }
        };
        let config: Config = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            wrong_at(at, error.message().to_owned())
        })?;
        match config.complaint() {
            None => Ok(config),
            Some(Complaint { table, key, message }) => {
                Err(wrong_at(place_of(text, table, key), format!("{key}: {message}")))
            }
        }
    }

    /// What the types do not say: the first key whose value makes no sense.
    fn complaint(&self) -> Option<Complaint> {
        self.dbus
            .complaint()
            .or_else(|| self.output.complaint())
            .or_else(|| self.sound.complaint())
            .or_else(|| self.stream.complaint())
            .or_else(|| self.player.complaint())
            .or_else(|| self.files.complaint())
            .or_else(|| self.plugins.complaint())
            .or_else(|| self.log.complaint())
    }

    /// How much the card holds.
    pub fn card_buffer(&self) -> Option<Duration> {
        self.output.buffer_ms.map(Duration::from_millis)
    }

    /// After so long without sound the card is given back.
    pub fn release_after(&self) -> Duration {
        Duration::from_secs(self.output.release_after_s)
    }
}
