//! [3] Id to URL and metadata.
//!
//! A plugin is a separate program that a person trusted by its fingerprint. [`Host`] is the part that the
//! rest of the program talks to; no type of a plugin's messages leaves this module, and no other module
//! starts processes.
//!
//! From a folder to a reply: `discovery` reads the packages (`manifest`, `package`), `trust` knows what was
//! decided, `copies` holds what alone is run, `supervisor` keeps one process alive while it is used (`start`, `process`,
//! `backoff`), `rpc` carries the calls, and `models` makes the program's values of the answers (`protocol`).
//!
//! For those who write plugins, [`check`] runs a package without a daemon and tries the whole contract on it.

mod answers;
mod backoff;
mod calls;
pub mod check;
mod copies;
mod counters;
mod decide;
mod discovery;
mod error;
mod grants;
mod health;
mod host;
mod log;
mod models;
mod package;
mod process;
mod quota;
mod redact;
mod rescan;
mod rpc;
mod start;
mod summary;
mod supervisor;
mod trust;
mod watch;

#[cfg(test)]
mod tests;

pub use backoff::Limits;
pub use calls::{MAX_SEARCH_LIMIT, Search};
pub use counters::CallCounts;
pub use error::{CallError, HostError, StartError};
pub use health::Health;
pub use host::{Host, Settings};
pub use log::{LogLevel, LogLine};
pub use models::{AlbumInfo, ArtistInfo, SearchHit};
pub use package::{Fingerprint, Package, PackageError, PackageFile};
pub use process::{Gap, Isolation, LaunchError, Means};
pub use segue_protocol::ErrorCode;
pub use segue_protocol::manifest::{
    Capability, IdleStop, Manifest, ManifestError, PROTOCOL, Scope, ScopeRequest, Timeouts,
};
pub use segue_protocol::messages::MAX_GRANTED;
pub use summary::{PluginHealth, PluginReview, PluginState, PluginSummary, SearchOutcome};
pub use trust::Who;
pub use watch::WatchLimits;
