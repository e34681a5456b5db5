//! Why calls fail: the protocol's table of codes.

use std::fmt;
use std::time::Duration;

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
    pub fn from_wire(number: i64) -> Option<ErrorCode> {
        if (-8..=0).contains(&number) {
            return None;
        }
        Self::TABLE.iter().find(|row| row.1 == number).map(|row| row.0)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A plugin's words in an error message: one line of bounded length.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect()
}

/// A failure before it is known whose call it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Why.
    pub code: ErrorCode,
    /// What happened, for a person.
    pub message: String,
    /// Not to be asked again before this time has passed.
    pub retry_after: Option<Duration>,
    /// `region`, `subscription` or `removed`, with CONTENT_UNAVAILABLE.
    pub reason: Option<String>,
}

impl Fault {
    /// A failure without further facts.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), retry_after: None, reason: None }
    }

    /// PLUGIN_PROTOCOL_ERROR: what came is valid JSON of the wrong shape.
    pub fn protocol(message: impl fmt::Display) -> Fault {
        let text = shortened(&format!("the reply has the wrong shape: {message}"));
        Fault::new(ErrorCode::PluginProtocolError, text)
    }
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
}
