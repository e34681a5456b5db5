//! Why a call fails, in the protocol's terms.

use std::time::Duration;

use segue_protocol::ErrorCode;
use segue_protocol::messages::{ErrorData, WireError};

/// The longest message in characters; the player shows fewer.
const MAX_MESSAGE: usize = 2_000;

/// A failed call. The message is for the person who listens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: ErrorCode,
    message: String,
    retry_after: Option<Duration>,
    reason: Option<Reason>,
}

/// Why content that exists cannot be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Not in this country.
    Region,
    /// Not with this subscription.
    Subscription,
    /// Taken away.
    Removed,
}

impl Error {
    fn new(code: ErrorCode, message: impl Into<String>) -> Error {
        Error { code, message: message.into(), retry_after: None, reason: None }
    }

    /// The plugin's own fault.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(ErrorCode::InternalError, message)
    }

    /// The request cannot be understood.
    pub fn invalid_query(message: impl Into<String>) -> Error {
        Error::new(ErrorCode::InvalidQuery, message)
    }

    /// No such content.
    pub fn content_not_found(message: impl Into<String>) -> Error {
        Error::new(ErrorCode::ContentNotFound, message)
    }

    /// A person must log in again.
    pub fn auth_required(message: impl Into<String>) -> Error {
        Error::new(ErrorCode::AuthRequired, message)
    }

    /// Asked too often; not to be asked again before `retry_after` has passed.
    pub fn rate_limited(message: impl Into<String>, retry_after: Duration) -> Error {
        Error { retry_after: Some(retry_after), ..Error::new(ErrorCode::RateLimited, message) }
    }

    /// It exists and cannot be played.
    pub fn content_unavailable(message: impl Into<String>, reason: Reason) -> Error {
        Error { reason: Some(reason), ..Error::new(ErrorCode::ContentUnavailable, message) }
    }

    /// The service behind the plugin is down.
    pub fn upstream_unavailable(message: impl Into<String>) -> Error {
        Error::new(ErrorCode::UpstreamUnavailable, message)
    }

    /// Known and not done.
    pub fn not_supported(what: &str) -> Error {
        Error::new(ErrorCode::NotSupported, format!("{what} is not supported"))
    }

    pub(crate) fn json_rpc(code: ErrorCode, message: impl Into<String>) -> Error {
        Error::new(code, message)
    }

    /// By the protocol's table.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    pub(crate) fn on_the_wire(&self) -> WireError {
        let reason = self.reason.map(|reason| match reason {
            Reason::Region => "region",
            Reason::Subscription => "subscription",
            Reason::Removed => "removed",
        });
        WireError {
            code: self.code.number(),
            message: self.message.chars().take(MAX_MESSAGE).collect(),
            data: ErrorData {
                retry_after_ms: self
                    .retry_after
                    .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
                reason: reason.map(str::to_owned),
            },
        }
    }
}

/// Most I/O of a plugin's is with its service.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::upstream_unavailable(error.to_string())
    }
}

/// What a service answered was not understood.
impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Error {
        Error::internal(error.to_string())
    }
}
