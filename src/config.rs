//! `segue.toml` → a checked [`Config`]. `docs/configuration.md` is the reference for people.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use tracing_subscriber::filter::Targets;

use crate::control::dbus::Bus;
use crate::player::Intent;
use crate::system::Places;

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

/// `[output]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Output {
    /// An ALSA device, `auto`, or several in order of preference.
    pub device: Devices,
    /// How much the card holds, in milliseconds.
    pub buffer_ms: u64,
    /// After so many seconds without sound the card is given back.
    pub release_after_s: u64,
}

impl Default for Output {
    fn default() -> Self {
        Output { device: Devices(vec!["auto".to_owned()]), buffer_ms: 250, release_after_s: 10 }
    }
}

/// One device or several in order of preference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices(pub Vec<String>);

impl<'de> Deserialize<'de> for Devices {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "the name of an ALSA device, or a list of such names")]
        enum OneOrMany {
            One(String),
            Many(Vec<String>),
        }
        Ok(Devices(match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(device) => vec![device],
            OneOrMany::Many(devices) => devices,
        }))
    }
}

/// `[stream]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stream {
    /// Memory for the bytes of all open tracks together.
    pub buffer: Size,
    /// A folder in which more of them is kept, instead of in memory.
    pub spool: Option<PathBuf>,
    /// How much of that.
    pub spool_size: Size,
    /// Name, connection and TLS handshake together may take so many seconds.
    pub connect_s: u64,
    /// A connection that brings no byte for so many seconds is made anew.
    pub silence_s: u64,
    /// A server that can be reached but gives nothing for so many seconds: the track is given up.
    pub give_up_s: u64,
}

impl Default for Stream {
    fn default() -> Self {
        Stream {
            buffer: Size(6 << 20),
            spool: None,
            spool_size: Size(64 << 20),
            connect_s: 5,
            silence_s: 8,
            give_up_s: 60,
        }
    }
}

/// A size in bytes, written `6 MiB`, `512 KiB` or as a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a size such as \"6 MiB\"")]
        enum Written {
            Bytes(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Bytes(bytes) => Ok(Size(bytes)),
            Written::Text(text) => parse_size(&text).ok_or_else(|| {
                serde::de::Error::custom(format!("“{text}” is not a size; write for example \"6 MiB\""))
            }),
        }
    }
}

fn parse_size(text: &str) -> Option<Size> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit: u64 = match text[digits..].trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit).map(Size)
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
        let complain = |table, key, message: String| Some(Complaint { table, key, message });
        let bus = self.dbus.bus.as_str();
        if bus != "auto" && bus.parse::<Bus>().is_err() {
            return complain(
                "dbus",
                "bus",
                "\"auto\", \"system\", \"session\" or the address of a bus".to_owned(),
            );
        }
        if self.output.device.0.is_empty() || self.output.device.0.iter().any(|name| name.trim().is_empty()) {
            let message = "name a device, for example \"auto\" or \"hw:CARD=DAC\"";
            return complain("output", "device", message.to_owned());
        }
        if !(50..=2_000).contains(&self.output.buffer_ms) {
            return complain("output", "buffer_ms", "between 50 and 2000 milliseconds".to_owned());
        }
        if self.output.release_after_s > A_DAY_S {
            return complain("output", "release_after_s", format!("at most {A_DAY_S} seconds"));
        }
        if !(2 << 20..=1 << 30).contains(&self.stream.buffer.0) {
            return complain("stream", "buffer", "from \"2 MiB\" to \"1 GiB\"".to_owned());
        }
        if self.stream.spool.as_ref().is_some_and(|folder| !folder.is_absolute()) {
            return complain("stream", "spool", "the absolute path of a folder, best on a tmpfs".to_owned());
        }
        let spool_sizes = self.stream.buffer.0..=1 << 34;
        if self.stream.spool.is_some() && !spool_sizes.contains(&self.stream.spool_size.0) {
            return complain("stream", "spool_size", "from the size of `buffer` to \"16 GiB\"".to_owned());
        }
        let stream = &self.stream;
        for (key, seconds) in [
            ("connect_s", stream.connect_s),
            ("silence_s", stream.silence_s),
            ("give_up_s", stream.give_up_s),
        ] {
            if !(1..=A_DAY_S).contains(&seconds) {
                return complain("stream", key, format!("from 1 to {A_DAY_S} seconds"));
            }
        }
        if self.player.save_position_s > A_DAY_S {
            return complain("player", "save_position_s", format!("at most {A_DAY_S} seconds"));
        }
        for (table, folders) in [("files", &self.files.folders), ("plugins", &self.plugins.folders)] {
            if let Some(folder) = folders.iter().find(|folder| !folder.is_absolute()) {
                return complain(table, "folders", format!("{} is not an absolute path", folder.display()));
            }
        }
        let level = &self.log.level;
        let is_one_word = level.chars().all(char::is_alphanumeric);
        let is_level = ["off", "error", "warn", "info", "debug", "trace"].contains(&level.as_str());
        if is_one_word && !is_level || level.parse::<Targets>().is_err() {
            return complain("log", "level", format!("“{level}” is no level such as \"info\""));
        }
        None
    }

    /// How much the card holds.
    pub fn card_buffer(&self) -> Duration {
        Duration::from_millis(self.output.buffer_ms)
    }

    /// After so long without sound the card is given back.
    pub fn release_after(&self) -> Duration {
        Duration::from_secs(self.output.release_after_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        Config::parse(text, Path::new("segue.toml")).unwrap_err().to_string()
    }

    #[test]
    fn an_empty_file_is_a_good_one() {
        assert_eq!(Config::parse("", Path::new("x")).unwrap(), Config::default());
    }

    #[test]
    fn a_mistake_is_shown_with_line_and_column() {
        assert!(wrong("[output]\ndevise = \"auto\"\n").starts_with("segue.toml:2:1: unknown field `devise`"));
        assert!(wrong("[output]\nbuffer_ms = \"long\"\n").starts_with("segue.toml:2:13: "));
        assert!(wrong("[stream]\nbuffer = \"6 Mb\"\n").contains("2:10: “6 Mb” is not a size"));
        assert!(wrong("[stream]\n\n  buffer = 5\n").starts_with("segue.toml:3:3: buffer: from"));
        assert!(wrong("[files]\nfolders = [\"music\"]\n").contains("music is not an absolute path"));
        assert!(
            wrong("[stream]\nbuffer = 3\n[output]\nbuffer_ms = 100\n").starts_with("segue.toml:2:1: buffer:")
        );
        assert!(wrong("[dbus]\nbus = \"sesion\"\n").starts_with("segue.toml:2:1: bus:"));
        assert!(
            wrong("[files]\nfolders = []\n[plugins]\nfolders = [\"x\"]\n").starts_with("segue.toml:4:1: ")
        );
        assert!(wrong("output.buffer_ms = 1\n").starts_with("segue.toml:1:1: buffer_ms:"));
        assert!(wrong("[log]\nlevel = \"loud\"\n").starts_with("segue.toml:2:1: level: “loud”"));
        assert!(wrong("[stream]\nsilence_s = 0\n").starts_with("segue.toml:2:1: silence_s: from 1"));
        let years = format!("[output]\nrelease_after_s = {}\n", i64::MAX);
        assert!(wrong(&years).starts_with("segue.toml:2:1: release_after_s: at most"));
        assert!(wrong("[dbus\n").starts_with("segue.toml:1:"));
        assert!(wrong("[log]\nlevel = 3").starts_with("segue.toml:2:9: "));
    }

    #[test]
    fn sizes_and_devices_are_read_as_people_write_them() {
        let text = "[stream]\nbuffer = \"8 MiB\"\n[output]\ndevice = [\"hw:CARD=DAC\", \"auto\"]\n";
        let config = Config::parse(text, Path::new("x")).unwrap();
        assert_eq!(config.stream.buffer, Size(8 << 20));
        assert_eq!(config.output.device.0, ["hw:CARD=DAC", "auto"]);
    }

    #[test]
    fn each_configuration_in_the_documents_is_a_good_one() {
        let mut found = 0;
        for name in ["README.md", "docs/configuration.md"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            let text = std::fs::read_to_string(&path).unwrap();
            for block in text.split("```toml\n").skip(1) {
                let block = block.split("```").next().unwrap();
                // Plugins' own files are shown too; those begin with their path.
                if !block.starts_with("# plugins/") {
                    Config::parse(block, &path).unwrap_or_else(|error| panic!("{block}\n{error}"));
                    found += 1;
                }
            }
        }
        assert!(found >= 2, "only {found} configurations found");
    }

    #[test]
    fn after_a_crash_it_plays_on_and_after_a_boot_it_waits() {
        let (playing, paused, stopped) = (Intent::Playing, Intent::Paused, Intent::Stopped);
        assert_eq!(Resume::Pause.intent(playing, true), playing);
        assert_eq!(Resume::Pause.intent(playing, false), paused);
        assert_eq!(Resume::Play.intent(playing, false), playing);
        assert_eq!(Resume::Play.intent(paused, false), paused);
        assert_eq!(Resume::Stop.intent(playing, false), stopped);
        assert_eq!(Resume::Stop.intent(paused, true), paused);
        assert_eq!(Resume::Play.intent(stopped, true), stopped);
    }
}
