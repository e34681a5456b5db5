//! The id of a plugin.

use std::fmt;
use std::str::FromStr;

/// The id of a plugin: `^[a-z][a-z0-9-]{0,63}$`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PluginId(String);

/// A plugin id that breaks the rule for ids.
#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone)]
#[error("“{0}” is not a plugin id: use a lower-case letter, then up to 63 lower-case letters, digits or “-”")]
pub struct PluginIdError(String);

impl PluginId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PluginId {
    type Err = PluginIdError;

    fn from_str(text: &str) -> Result<Self, PluginIdError> {
        let mut bytes = text.bytes();
        let starts_well = bytes.next().is_some_and(|b| b.is_ascii_lowercase());
        let goes_on_well = bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if starts_well && goes_on_well && text.len() <= 64 {
            Ok(PluginId(text.to_owned()))
        } else {
            Err(PluginIdError(text.chars().take(80).collect()))
        }
    }
}

impl fmt::Display for PluginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
