//! What can go wrong between the daemon and a plugin, as values that tell a person what to do.

use std::time::Duration;

use segue_protocol::{ErrorCode, Fault};

use crate::track::{PluginId, ResolveError, ResolveErrorKind};

/// What a person can do about it.
fn advice(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::InternalError | ErrorCode::JsonRpcInternalError => {
            "look at the plugin's log, and tell its author"
        }
        ErrorCode::InvalidQuery | ErrorCode::InvalidParams | ErrorCode::InvalidRequest => {
            "try other words, or tell the plugin's author"
        }
        ErrorCode::ContentNotFound => "remove it from the queue",
        ErrorCode::AuthRequired => "log in again: renew the secrets in the plugin's configuration",
        ErrorCode::RateLimited => "wait, it is asked again later",
        ErrorCode::ContentUnavailable => "choose another track",
        ErrorCode::UpstreamUnavailable => "wait until the service is back",
        ErrorCode::NotSupported | ErrorCode::MethodNotFound => "the plugin does not offer this",
        ErrorCode::PluginCrashed => "it starts again at the next call; its log says more",
        ErrorCode::PluginTimeout => "try again; if it stays silent, look at its log",
        ErrorCode::PluginProtocolError => "look at its log with `segue plugin logs`, and tell its author",
        ErrorCode::PluginIdentityMismatch => "review and trust it again",
        ErrorCode::PluginNotEnabled => "`segue plugin inspect` says where it stands",
        ErrorCode::PluginFaulted => "look at its log; `segue plugin enable` starts it again at once",
        ErrorCode::CapabilityMissing => "look at its log for why this does not work now",
        ErrorCode::ScopeDenied => "if you want it to read that folder, name the folder when you enable it",
        ErrorCode::ParseError => "a plugin may print nothing but replies on standard output",
    }
}

/// A call of a plugin that failed. Displays as a sentence with what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("plugin “{plugin}” failed at {method} after {:.1} s: {message} ({code}); {}", .elapsed.as_secs_f64(), advice(*.code))]
pub struct CallError {
    /// Why, by the protocol's table.
    pub code: ErrorCode,
    /// Whose call.
    pub plugin: PluginId,
    /// The method's name on the wire.
    pub method: &'static str,
    /// From the call to the failure.
    pub elapsed: Duration,
    /// What happened, for a person.
    pub message: String,
    /// Not to be asked again before this time has passed.
    pub retry_after: Option<Duration>,
    /// `region`, `subscription` or `removed`, with CONTENT_UNAVAILABLE.
    pub reason: Option<String>,
}

impl CallError {
    pub(super) fn new(fault: Fault, plugin: &PluginId, method: &'static str, elapsed: Duration) -> CallError {
        let Fault { code, message, retry_after, reason } = fault;
        CallError { code, plugin: plugin.clone(), method, elapsed, message, retry_after, reason }
    }
}

impl From<CallError> for ResolveError {
    fn from(error: CallError) -> ResolveError {
        let kind = match error.code {
            ErrorCode::ContentNotFound | ErrorCode::ContentUnavailable => ResolveErrorKind::Gone,
            ErrorCode::AuthRequired
            | ErrorCode::PluginNotEnabled
            | ErrorCode::PluginIdentityMismatch
            | ErrorCode::CapabilityMissing
            | ErrorCode::ScopeDenied
            | ErrorCode::MethodNotFound
            | ErrorCode::NotSupported => ResolveErrorKind::NeedsPerson,
            ErrorCode::RateLimited => ResolveErrorKind::Later(error.retry_after),
            // Also what a plugin does whose author thought of no outage: it breaks down, or says that it failed.
            ErrorCode::UpstreamUnavailable
            | ErrorCode::InternalError
            | ErrorCode::PluginTimeout
            | ErrorCode::PluginCrashed
            | ErrorCode::PluginFaulted => ResolveErrorKind::Unreachable(error.retry_after),
            _ => ResolveErrorKind::Later(None),
        };
        ResolveError { kind, message: error.to_string() }
    }
}

/// A decision about a plugin that cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// No such folder.
    #[error("no plugin “{0}” is installed: `segue plugin list` shows what is, after `segue plugin rescan`")]
    NotInstalled(String),
    /// The package breaks a rule.
    #[error("plugin “{id}” cannot be used: {reason}")]
    Invalid {
        /// Which.
        id: PluginId,
        /// The broken rule.
        reason: String,
    },
    /// The package is not the one that was reviewed.
    #[error("plugin “{id}” is not what was reviewed (its fingerprint is {found}): inspect it again")]
    FingerprintMismatch {
        /// Which.
        id: PluginId,
        /// What is installed now.
        found: String,
    },
    /// Trust comes before enabling.
    #[error("plugin “{0}” is not trusted: inspect it, then trust the fingerprint that was shown")]
    NotTrusted(PluginId),
    /// Only what the manifest asks for can be granted.
    #[error(
        "plugin “{id}” does not ask for the scope “{scope}”: grant only what `segue plugin inspect` lists"
    )]
    ScopeNotRequested {
        /// Which.
        id: PluginId,
        /// The scope that was to be granted.
        scope: String,
    },
    /// A folder that cannot be granted.
    #[error("plugin “{id}” cannot be granted {scope}: {why}")]
    FolderRefused {
        /// Which.
        id: PluginId,
        /// The scope that was to be granted.
        scope: String,
        /// What is wrong with the folder, and what to do.
        why: String,
    },
    /// Enabling needs one good handshake.
    #[error("not enabled: {0}")]
    Handshake(Box<CallError>),
    /// State could not be kept.
    #[error("{what} cannot be written, so that nothing was decided: {source}")]
    Storage {
        /// Which file.
        what: String,
        /// Why.
        source: std::io::Error,
    },
    /// Rights were taken away, and that is not on the disk.
    #[error(
        "plugin “{id}” is stopped and disabled, but {what} cannot be written ({source}): make room on the disk, then disable it again, or it runs after the next start of segued"
    )]
    NotKept {
        /// Which.
        id: PluginId,
        /// Which file.
        what: String,
        /// Why.
        source: std::io::Error,
    },
    /// The host has been shut down.
    #[error("the plugins are being stopped: try again when the daemon runs")]
    Stopping,
}

/// The plugin host cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A folder of the daemon's own.
    #[error("the folder {folder} cannot be used for plugins' state: {source}")]
    Folder {
        /// Which.
        folder: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No thread can be started.
    #[error("no thread for starting plugins: {0}")]
    Thread(std::io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_plugin_method_time_and_what_to_do() {
        let plugin: PluginId = "demo".parse().unwrap();
        let error = CallError::new(
            Fault::new(ErrorCode::PluginTimeout, "no answer in time"),
            &plugin,
            "stream",
            Duration::from_millis(15_040),
        );
        let text = error.to_string();
        for part in ["demo", "stream", "15.0 s", "PLUGIN_TIMEOUT", "log"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(ResolveError::from(error).kind, ResolveErrorKind::Unreachable(None));
    }
}
