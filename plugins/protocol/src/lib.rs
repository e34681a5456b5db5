//! `segue.plugin/1`: what the player and its plugins say to each other.
//!
//! Both ends use these types, and the JSON Schema is made of them (feature `schema`). Nothing here does I/O.
//! A plugin in Rust does not use this crate itself but the SDK, which brings its models along.

#![warn(missing_docs)]

mod bounded;
mod error;
mod id;
mod line;
/// `plugin.json`.
pub mod manifest;
/// JSON-RPC: requests, replies, and the results of `initialize` and `ping`.
pub mod messages;
/// What plugins know: tracks, albums, artists, streams.
pub mod models;
#[cfg(feature = "schema")]
pub mod schema;
mod scope;

pub use error::{ErrorCode, Fault};
pub use id::{PluginId, PluginIdError};
pub use line::{Line, LineReader, MAX_LINE_BYTES};
