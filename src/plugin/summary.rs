//! What is told about plugins: values for lists and reviews.

use super::counters::CallCounts;
use super::health::Health;
use super::process::Gap;
use crate::track::PluginId;
use segue_protocol::manifest::Capability;

/// Where a package stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PluginState {
    /// Nobody reviewed it.
    Untrusted,
    /// Reviewed, and disabled.
    Trusted,
    /// It may run.
    Enabled,
    /// Not what was reviewed.
    Changed,
    /// Another package of the same id wins.
    Shadowed,
    /// It breaks a rule.
    Invalid,
}

impl PluginState {
    /// One lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            PluginState::Untrusted => "untrusted",
            PluginState::Trusted => "trusted",
            PluginState::Enabled => "enabled",
            PluginState::Changed => "changed",
            PluginState::Shadowed => "shadowed",
            PluginState::Invalid => "invalid",
        }
    }
}

/// A line of the list of plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginSummary {
    /// The id; for an invalid package the name of its folder.
    pub id: String,
    /// For people; empty when invalid.
    pub name: String,
    /// The author's; empty when invalid.
    pub version: String,
    /// Where it stands.
    pub state: PluginState,
    /// Why, where that is not plain; else empty.
    pub reason: String,
    /// What its manifest offers.
    pub capabilities: Vec<Capability>,
    /// What its manifest asks for.
    pub requested: Vec<String>,
    /// What a person granted.
    pub granted: Vec<String>,
    /// Of what is installed, 64 hexadecimal digits; empty when invalid.
    pub fingerprint: String,
    /// Where it is installed.
    pub path: String,
    /// What confines it on this machine, and why not more.
    pub isolation: String,
    /// What nothing keeps it from doing.
    pub gaps: Vec<Gap>,
    /// Whether its process lives now.
    pub running: bool,
}

/// Everything that a person needs to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginReview {
    /// The line of the list.
    pub summary: PluginSummary,
    /// The protocol that it speaks.
    pub protocol: String,
    /// Paths and lengths in bytes.
    pub files: Vec<(String, u64)>,
    /// What is run, relative to the package, with its arguments.
    pub command: Vec<String>,
    /// Scopes with the author's reasons.
    pub scopes: Vec<(String, String)>,
    /// What trusting means, in plain words.
    pub warning: String,
}

/// How one plugin is, and what was counted since the daemon's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginHealth {
    /// From pings while it runs, and from calls.
    pub health: Health,
    /// Why, where it is not well; else empty.
    pub reason: String,
    /// Whether its process lives now.
    pub running: bool,
    /// What confines it, and why not more.
    pub isolation: String,
    /// Numbers.
    pub counts: CallCounts,
}

/// What all plugins found together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchOutcome {
    /// By plugin in byte order of the ids, and in each plugin's own order.
    pub results: Vec<super::models::SearchHit>,
    /// Plugins that could not answer.
    pub errors: Vec<(PluginId, super::error::CallError)>,
}
