//! What a plugin asks for and a person grants.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A right that a plugin asks for and a person grants.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Internet sockets.
    Network,
    /// Its URLs may name this machine and link-local addresses.
    LocalNetwork,
    /// Reading below one folder, an absolute path.
    FilesRead(PathBuf),
    /// Reading below folders that the person names when enabling.
    FilesReadAny,
    /// One secret, by its name in the plugin's configuration.
    Secret(String),
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Scope, String> {
        let wrong = || format!("“{}” is not a scope", text.chars().take(100).collect::<String>());
        match text.split_once(':') {
            None if text == "network" => Ok(Scope::Network),
            None if text == "local-network" => Ok(Scope::LocalNetwork),
            Some(("files.read", "*")) => Ok(Scope::FilesReadAny),
            Some(("files.read", folder)) if is_plain_absolute(folder) => Ok(Scope::FilesRead(folder.into())),
            Some(("secret", name)) if is_plain_name(name) => Ok(Scope::Secret(name.to_owned())),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Network => f.write_str("network"),
            Scope::LocalNetwork => f.write_str("local-network"),
            Scope::FilesRead(folder) => write!(f, "files.read:{}", folder.display()),
            Scope::FilesReadAny => f.write_str("files.read:*"),
            Scope::Secret(name) => write!(f, "secret:{name}"),
        }
    }
}

/// Absolute, without `.` and `..`, and not the root itself: granting `/` would grant everything.
fn is_plain_absolute(folder: &str) -> bool {
    let path = Path::new(folder);
    path.is_absolute()
        && path.parent().is_some()
        && folder.len() <= 4_096
        && !folder.contains(char::is_control)
        && !folder.split('/').any(|part| part == "." || part == "..")
}

fn is_plain_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}
