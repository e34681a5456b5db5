//! What can go wrong between the daemon and a plugin, as values that tell a person what to do.

use std::fmt;
use std::time::Duration;

use crate::track::{PluginId, ResolveError, ResolveErrorKind};

/// Why a call failed, by the protocol's table. Names and numbers are part of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// 1, the plugin's own fault.
    InternalError,
    /// 2, the plugin cannot understand the request.
    InvalidQuery,
    /// 3, no such content.
    ContentNotFound,
    /// 4, a person must log in again.
    AuthRequired,
    /// 5, asked too often.
    RateLimited,
    /// 6, the content exists and may not be played.
    ContentUnavailable,
    /// 7, the plugin's service is down.
    UpstreamUnavailable,
    /// 8, known and not done.
    NotSupported,
    /// -1, the process ended.
    PluginCrashed,
    /// -2, no answer in time.
    PluginTimeout,
    /// -3, valid JSON of the wrong shape.
    PluginProtocolError,
    /// -4, not what was trusted.
    PluginIdentityMismatch,
    /// -5, untrusted, changed, disabled or not installed.
    PluginNotEnabled,
    /// -6, waiting before the next start.
    PluginFaulted,
    /// -7, not offered now.
    CapabilityMissing,
    /// -8, not granted.
    ScopeDenied,
    /// -32700, a line that is no JSON-RPC message.
    ParseError,
    /// -32600.
    InvalidRequest,
    /// -32601.
    MethodNotFound,
    /// -32602.
    InvalidParams,
    /// -32603.
    JsonRpcInternalError,
}

impl ErrorCode {
    const TABLE: [(ErrorCode, i64, &'static str); 21] = [
        (ErrorCode::InternalError, 1, "INTERNAL_ERROR"),
        (ErrorCode::InvalidQuery, 2, "INVALID_QUERY"),
        (ErrorCode::ContentNotFound, 3, "CONTENT_NOT_FOUND"),
        (ErrorCode::AuthRequired, 4, "AUTH_REQUIRED"),
        (ErrorCode::RateLimited, 5, "RATE_LIMITED"),
        (ErrorCode::ContentUnavailable, 6, "CONTENT_UNAVAILABLE"),
        (ErrorCode::UpstreamUnavailable, 7, "UPSTREAM_UNAVAILABLE"),
        (ErrorCode::NotSupported, 8, "NOT_SUPPORTED"),
        (ErrorCode::PluginCrashed, -1, "PLUGIN_CRASHED"),
        (ErrorCode::PluginTimeout, -2, "PLUGIN_TIMEOUT"),
        (ErrorCode::PluginProtocolError, -3, "PLUGIN_PROTOCOL_ERROR"),
        (ErrorCode::PluginIdentityMismatch, -4, "PLUGIN_IDENTITY_MISMATCH"),
        (ErrorCode::PluginNotEnabled, -5, "PLUGIN_NOT_ENABLED"),
        (ErrorCode::PluginFaulted, -6, "PLUGIN_FAULTED"),
        (ErrorCode::CapabilityMissing, -7, "CAPABILITY_MISSING"),
        (ErrorCode::ScopeDenied, -8, "SCOPE_DENIED"),
        (ErrorCode::ParseError, -32700, "PARSE_ERROR"),
        (ErrorCode::InvalidRequest, -32600, "INVALID_REQUEST"),
        (ErrorCode::MethodNotFound, -32601, "METHOD_NOT_FOUND"),
        (ErrorCode::InvalidParams, -32602, "INVALID_PARAMS"),
        (ErrorCode::JsonRpcInternalError, -32603, "INTERNAL_JSON_RPC_ERROR"),
    ];

    /// The number on the wire and on the bus.
    pub fn number(self) -> i64 {
        Self::TABLE.iter().find(|row| row.0 == self).map_or(1, |row| row.1)
    }

    /// The name in the protocol's table.
    pub fn name(self) -> &'static str {
        Self::TABLE.iter().find(|row| row.0 == self).map_or("INTERNAL_ERROR", |row| row.2)
    }

    /// What a plugin may send. The host's own codes (-1 to -8) are refused, as is what is in no table.
    pub(super) fn from_wire(number: i64) -> Option<ErrorCode> {
        if (-8..=0).contains(&number) {
            return None;
        }
        Self::TABLE.iter().find(|row| row.1 == number).map(|row| row.0)
    }

    fn advice(self) -> &'static str {
        match self {
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
            ErrorCode::PluginProtocolError => {
                "look at its log with `segue plugin inspect`, and tell its author"
            }
            ErrorCode::PluginIdentityMismatch => "review and trust it again",
            ErrorCode::PluginNotEnabled => "review it with `segue plugin inspect`, then trust and enable it",
            ErrorCode::PluginFaulted => "look at its log; `segue plugin enable` starts it again at once",
            ErrorCode::CapabilityMissing => "look at its log for why this does not work now",
            ErrorCode::ScopeDenied => "enable it with the scope that it asks for",
            ErrorCode::ParseError => "a plugin may print nothing but replies on standard output",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failure before it is known whose call it costs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) code: ErrorCode,
    pub(super) message: String,
    pub(super) retry_after: Option<Duration>,
    pub(super) reason: Option<String>,
}

impl Fault {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), retry_after: None, reason: None }
    }

    pub(super) fn protocol(message: impl fmt::Display) -> Fault {
        Fault::new(ErrorCode::PluginProtocolError, format!("the reply has the wrong shape: {message}"))
    }

    pub(super) fn in_call(self, plugin: &PluginId, method: &'static str, elapsed: Duration) -> CallError {
        let Fault { code, message, retry_after, reason } = self;
        CallError { code, plugin: plugin.clone(), method, elapsed, message, retry_after, reason }
    }
}

/// A call of a plugin that failed. Displays as a sentence with what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("plugin “{plugin}” failed at {method} after {:.1} s: {message} ({code}); {}", .elapsed.as_secs_f64(), .code.advice())]
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
            ErrorCode::RateLimited | ErrorCode::PluginFaulted => ResolveErrorKind::Later(error.retry_after),
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
    fn every_code_has_its_own_number_and_the_hosts_are_refused_from_the_wire() {
        for (code, number, name) in ErrorCode::TABLE {
            assert_eq!((code.number(), code.name()), (number, name));
            let host_made = (-8..0).contains(&number);
            assert_eq!(ErrorCode::from_wire(number), (!host_made).then_some(code));
        }
        assert_eq!(ErrorCode::from_wire(99), None);
        assert_eq!(ErrorCode::from_wire(0), None);
    }

    #[test]
    fn the_message_names_plugin_method_time_and_what_to_do() {
        let plugin: PluginId = "demo".parse().unwrap();
        let error = Fault::new(ErrorCode::PluginTimeout, "no answer in time").in_call(
            &plugin,
            "stream",
            Duration::from_millis(15_040),
        );
        let text = error.to_string();
        for part in ["demo", "stream", "15.0 s", "PLUGIN_TIMEOUT", "log"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(ResolveError::from(error).kind, ResolveErrorKind::Later(None));
    }
}
