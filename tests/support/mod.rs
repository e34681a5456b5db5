//! Fixtures: a bus, a sound card, recordings, a server with faults, plugins, and the real daemon on top of them.
//!
//! ```ignore
//! let (card, server) = (Card::new().plug(), Server::start());
//! let source = Recording::music(1, 44_100, 16, 3.0);
//! let mut daemon = Daemon::new().card(&card).start().await;
//! daemon.play_to_the_end(&[server.serve("/a.flac", source.encode(Codec::Flac))]).await;
//! assert_exact(&card.music(), &source);
//! ```
//!
//! Each fixture ends what it started and removes its folder when it is dropped. The daemon's log is printed when
//! its test fails.

#![allow(dead_code)] // each test binary uses its own part

pub mod audio;
pub mod bus;
pub mod card;
pub mod client;
pub mod compare;
pub mod daemon;
pub mod encode;
pub mod icecast;
pub mod plugin;
pub mod process;
pub mod rack;
pub mod radio;
pub mod server;
pub mod transfer;

use std::time::Duration;

/// Everything that most tests need.
#[allow(unused_imports)] // as above
pub mod prelude {
    pub use std::sync::Arc;
    pub use std::time::{Duration, Instant};

    pub use super::audio::Recording;
    pub use super::bus::Bus;
    pub use super::card::{Card, Clock, Fault};
    pub use super::client::{Dict, Said, get, refusal, try_get};
    pub use super::compare::{
        assert_exact, assert_exact_but_for_gaps, assert_exact_outside, assert_not_skipped, difference,
        goes_on_at, likeness,
    };
    pub use super::daemon::{Daemon, segue};
    pub use super::encode::{Codec, Encoded};
    pub use super::plugin::{Plugin, Track, Whim};
    pub use super::process;
    pub use super::rack::Rack;
    pub use super::server::{Server, Trouble};
    pub use super::{PATIENCE, until, until_async};
}

/// Longer than anything takes that works, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for `what` to hold, by looking again and again: for files and processes, which send no events.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "waited {PATIENCE:?} in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The same for what has to be asked of somebody.
pub async fn until_async(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !holds().await {
        assert!(tokio::time::Instant::now() < deadline, "waited {PATIENCE:?} in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
