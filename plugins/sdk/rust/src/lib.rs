//! Write a source for Segue, the headless audio player, in Rust.
//!
//! A plugin is a program beside a `plugin.json`. It implements [`Plugin`] and hands itself to [`run`], which speaks the
//! protocol: it answers `initialize` and `ping`, runs several calls at once, flushes, keeps prints away from standard
//! output, survives junk, and ends when the player is gone.
//!
//! ```no_run
//! use segue_plugin::{Error, Plugin, StreamInfo, run};
//!
//! struct Hello;
//!
//! impl Plugin for Hello {
//!     fn stream(&self, content_id: &str) -> Result<StreamInfo, Error> {
//!         if content_id != "hello" {
//!             return Err(Error::content_not_found("there is only “hello”"));
//!         }
//!         Ok(StreamInfo {
//!             url: "https://example.org/hello.flac".to_owned(),
//!             content_type: "audio/flac".to_owned(),
//!             ..StreamInfo::default()
//!         })
//!     }
//! }
//!
//! # const MANIFEST: &str = "";
//! fn main() -> std::process::ExitCode {
//!     run(MANIFEST, Hello) // include_str!("../plugin.json")
//! }
//! ```

#![warn(missing_docs)]

mod answer;
mod error;
pub mod log;
mod serve;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use error::{Error, Reason};
pub use segue_protocol::ErrorCode;
pub use segue_protocol::manifest::Capability;
pub use segue_protocol::messages::{HostFacts, SearchParams};
pub use segue_protocol::models::{
    Album, AlbumRef, AlbumType, Artist, ArtistRef, Gain, Image, ResultKind, SearchResult, StreamInfo, Track,
    TrackStub,
};
pub use serve::run;

/// What the player tells at the start.
#[derive(Clone, Debug)]
pub struct Context {
    /// What a person granted, as in the manifest: `network`, `secret:password` …
    pub scopes: Vec<String>,
    /// A folder of the plugin's own for what must be kept.
    pub data: PathBuf,
    /// A folder of the plugin's own for what can be made again.
    pub cache: PathBuf,
    /// `[config]` of the plugin's configuration.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// The granted secrets, by name.
    pub secrets: BTreeMap<String, String>,
    /// The player's name and version.
    pub host: HostFacts,
}

/// A source of music. Calls come on several threads at once. What a plugin does not name in its manifest is never
/// called.
pub trait Plugin: Send + Sync {
    /// Called once, before everything else, unless the plugin is tried by hand.
    ///
    /// # Errors
    /// What keeps it from working at all; then it is stopped.
    fn start(&self, context: &Context) -> Result<(), Error> {
        let _ = context;
        Ok(())
    }

    /// Which of the manifest's capabilities work now; asked at the start and at each ping, which it must not
    /// delay: it tells what is known already.
    fn capabilities(&self, offered: &[Capability]) -> Vec<Capability> {
        offered.to_vec()
    }

    /// Finds tracks, albums and artists, the best first. Other kinds than the wanted ones are left
    /// out of what it returns, and what is beyond the limit is cut off.
    ///
    /// # Errors
    /// Why it found nothing; that there is nothing is no error.
    fn search(&self, search: &SearchParams) -> Result<Vec<SearchResult>, Error> {
        let _ = search;
        Err(Error::not_supported("search"))
    }

    /// All about a track.
    ///
    /// # Errors
    /// Why it cannot be told.
    fn get_track(&self, content_id: &str) -> Result<Track, Error> {
        let _ = content_id;
        Err(Error::not_supported("get_track"))
    }

    /// An album with its tracks.
    ///
    /// # Errors
    /// Why it cannot be told.
    fn get_album(&self, content_id: &str) -> Result<Album, Error> {
        let _ = content_id;
        Err(Error::not_supported("get_album"))
    }

    /// An artist.
    ///
    /// # Errors
    /// Why it cannot be told.
    fn get_artist(&self, content_id: &str) -> Result<Artist, Error> {
        let _ = content_id;
        Err(Error::not_supported("get_artist"))
    }

    /// Where a track's bytes are now. Asked again when the URL expires, also in the middle of the track.
    ///
    /// # Errors
    /// Why it cannot be played.
    fn stream(&self, content_id: &str) -> Result<StreamInfo, Error> {
        let _ = content_id;
        Err(Error::not_supported("stream"))
    }
}
