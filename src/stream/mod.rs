//! URL → bytes: fetching ahead, resuming at the same byte, renewing addresses before they expire.
//!
//! [`Streams::open`] starts a task that fetches into a bounded store; the [`Reader`] is a blocking
//! `Read + Seek` over it for the decode thread, and the [`StreamHandle`] shows and ends it.
//!
//! *Architecture invariant*: only this module knows reqwest. What a server says is believed only when it
//! proves itself (`range`), and what it sends never makes memory grow beyond [`Settings::buffer`].

mod budget;
mod buffer;
mod error;
mod expiry;
mod fetch;
mod file;
mod hls;
mod http;
mod icy;
mod incoming;
mod names;
mod network;
mod pace;
mod patience;
mod playlist;
mod range;
mod reach;
mod reader;
mod shared;
mod source;
mod spool;
#[cfg(test)]
mod tests;
mod titles;
mod tls;

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::sync::broadcast;
use tracing::warn;

pub use error::StreamError;
pub use file::UserFolders;
pub use icy::{Station, StreamTitle};
pub use playlist::PlaylistEntry;
/// Why an address is none of the internet's: it needs the scope for the local network.
pub(crate) use reach::refusal as out_of_reach;
pub use reader::Reader;

use budget::Budget;
use fetch::Fetch;
use http::{Surroundings, Web};
use shared::Shared;
use spool::Spool;

use crate::track::{Reach, Resolve, ResolvedStream};

/// Every number of this module that may be tuned.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bytes that all open tracks hold together (at most two are open); at least 256 KiB.
    pub buffer: u64,
    /// A folder, and how many bytes may be kept in it instead of in memory.
    pub spool: Option<(PathBuf, u64)>,
    /// Bytes behind the reader that stay for seeks back; at most an eighth of `buffer` is used.
    pub behind: u64,
    /// What servers are told.
    pub user_agent: String,
    /// For name, connection and TLS together.
    pub connect_timeout: Duration,
    /// No byte on an open connection for so long: it is made anew.
    pub silence: Duration,
    /// A connection that is not read for so long, because the store is full or the music paused, is closed.
    pub idle_close: Duration,
    /// A server that can be reached but gives no byte for so long: the track is given up.
    pub give_up: Duration,
    /// Between failed resolves.
    pub resolve_pause: Duration,
    /// First pause after a failure; doubled at each further one.
    pub backoff_min: Duration,
    /// Longest pause after a failure.
    pub backoff_max: Duration,
    /// The same for a live stream, which is never given up once it has been heard.
    pub live_backoff_max: Duration,
    /// A connection to a live stream that lasts so long is a good one: what failed before it no longer counts.
    pub live_settled: Duration,
    /// An address that does not answer for so long: the next alternative is asked as well.
    pub alternative_after: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            buffer: 6 * 1024 * 1024,
            spool: None,
            behind: 512 * 1024,
            user_agent: concat!("segue/", env!("CARGO_PKG_VERSION")).to_owned(),
            connect_timeout: Duration::from_secs(5),
            silence: Duration::from_secs(8),
            idle_close: Duration::from_secs(30),
            give_up: Duration::from_secs(60),
            resolve_pause: Duration::from_secs(5),
            backoff_min: Duration::from_millis(250),
            backoff_max: Duration::from_secs(10),
            live_backoff_max: Duration::from_secs(30),
            live_settled: Duration::from_secs(5),
            alternative_after: Duration::from_secs(1),
        }
    }
}

/// Opens streams that share connections and one limit of memory.
#[derive(Clone)]
pub struct Streams {
    settings: Arc<Settings>,
    web: Arc<Web>,
    budget: Budget,
}

impl Streams {
    /// Installs the TLS provider and opens the spool; without one, memory does. Blocks on the disk. Certificates are read when the first stream needs them.
    pub fn new(settings: Settings) -> Result<Self, StreamError> {
        Streams::within(settings, Surroundings::of_the_system())
    }

    fn within(settings: Settings, surroundings: Surroundings) -> Result<Self, StreamError> {
        let settings = Arc::new(settings);
        let web = Web::new(Arc::clone(&settings), surroundings).map_err(StreamError::Setup)?;
        let mut budget = Budget::new(settings.buffer);
        if let Some((folder, bytes)) = &settings.spool {
            budget = match Spool::open(folder, *bytes) {
                Ok(spool) => budget.with_spool(spool),
                Err(error) => {
                    warn!(folder = %folder.display(), %error, "no spool there, tracks are held in memory; check [stream] spool");
                    budget
                }
            };
        }
        Ok(Streams { web: Arc::new(web), budget, settings })
    }

    /// Begins to fetch at once. `name` is what logs and errors call the track. Must be called within a
    /// tokio runtime. Dropping the reader, like [`StreamHandle::abort`], ends the stream.
    pub fn open(
        &self,
        resolved: ResolvedStream,
        resolver: Arc<dyn Resolve>,
        name: String,
    ) -> (Reader, StreamHandle) {
        let spooled = self.settings.spool.as_ref().map_or(0, |(_, bytes)| *bytes);
        let behind = self.settings.behind.min(self.settings.buffer.max(spooled) / 8);
        let shared = Arc::new(Shared::new(name, &self.budget, behind));
        let host = http::host(&resolved.url);
        let fetch = Fetch::new(
            Arc::clone(&shared),
            Arc::clone(&self.settings),
            Arc::clone(&self.web),
            resolved,
            resolver,
        );
        shared.set_task(tokio::spawn(guarded(fetch, Arc::clone(&shared), host)).abort_handle());
        (Reader::over_store(Arc::clone(&shared)), StreamHandle { shared })
    }

    /// Whether the network is away as it seems from here, for who depends on it in another way: a plugin without the
    /// scope for the local network (`Reach::Internet`), or with it. Takes up to the time for a connection.
    pub async fn network_is_away(&self, reach: Reach) -> bool {
        self.web.network_is_away(reach).await
    }

    /// Opens a regular file that the user named, below one of the user's folders; links must not lead out of
    /// them. Blocks on the disk. (A plugin's `file:` URL is opened by [`Streams::open`], below what the plugin
    /// was granted.)
    pub fn open_file(
        &self,
        path: &Path,
        folders: &UserFolders,
    ) -> Result<(Reader, StreamHandle), StreamError> {
        let (file, length) = file::open_for_user(path, folders)?;
        // A budget of its own: files are not held in memory.
        let shared = Arc::new(Shared::new(path.display().to_string(), &Budget::new(0), 0));
        shared.know_file(length);
        Ok((Reader::over_file(Arc::clone(&shared), file), StreamHandle { shared }))
    }
}

/// Fetches, and tells the reader also of a fault in this program, for which it would wait for ever.
async fn guarded(fetch: Fetch, shared: Arc<Shared>, host: String) {
    if AssertUnwindSafe(fetch.run()).catch_unwind().await.is_err() {
        shared.fail(StreamError::Fault { track: shared.track.clone(), host });
    }
}

/// Shows and ends one stream.
#[derive(Clone)]
pub struct StreamHandle {
    shared: Arc<Shared>,
}

impl StreamHandle {
    /// Ends the stream for ever: the reader returns an error at once, the task ends, memory is given back.
    pub fn abort(&self) {
        self.shared.abort();
    }

    /// Makes the current and all further reads fail until [`StreamHandle::clear_interrupt`]; fetching goes on.
    pub fn interrupt(&self) {
        self.shared.interrupt(true);
    }

    /// Lets reads through again.
    pub fn clear_interrupt(&self) {
        self.shared.interrupt(false);
    }

    /// Whether the music is paused. After [`Settings::idle_close`] of pause the connection is closed, and no fresh
    /// address is asked for any more; afterwards it goes on at the same byte.
    pub fn hold(&self, on: bool) {
        self.shared.hold(on);
    }

    /// How it stands now.
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// The newest title whose first byte the reader has read, once; older ones are forgotten. Costs next to nothing
    /// while there is none.
    pub fn take_title(&self) -> Option<StreamTitle> {
        self.shared.take_title()
    }

    /// Whether it is known to have no end.
    pub fn is_live(&self) -> bool {
        self.shared.is_live()
    }

    /// What happens from now on; the first caller also gets what happened since `open`. A receiver that lags
    /// more than 64 events behind is told so and should look at [`StreamHandle::status`].
    pub fn changes(&self) -> broadcast::Receiver<StreamEvent> {
        self.shared.changes()
    }
}

/// How a stream stands.
#[derive(Clone, Debug)]
pub struct Status {
    /// Bytes held ahead of the reader that it can read without waiting.
    pub received: u64,
    /// Bytes that this track can hold at present.
    pub cap: u64,
    /// Length in bytes, when known.
    pub total: Option<u64>,
    /// Everything from the reader to the end is held: no more requests are needed to play on.
    pub complete: bool,
    /// Offset of the reader in bytes.
    pub position: u64,
    /// How long the address is good.
    pub expires_in: Option<Duration>,
    /// How many times a fresh address was had.
    pub re_resolved: u32,
    /// Set while nothing comes.
    pub waiting: Option<Wait>,
    /// Bytes that came from the network and were kept.
    pub bytes_fetched: u64,
    /// Why the stream ended, when it did.
    pub error: Option<StreamError>,
    /// It is known to have no end: who resolved it said so, or a radio station answered.
    pub live: bool,
}

/// Why nothing comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The reason.
    pub reason: WaitReason,
    /// Since when.
    pub since: Instant,
}

/// Why nothing comes, by whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// No host can be reached. Retried for ever.
    Network,
    /// The server can be reached, but gives nothing.
    Server,
    /// The address is no longer good and a fresh one is not there yet.
    Expired,
}

/// What happens to a stream, for the player and its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The first answer that was believed.
    Head {
        /// Media type as the server says.
        content_type: Option<String>,
        /// Length in bytes.
        total: Option<u64>,
    },
    /// A radio station introduces itself; once.
    Station(Station),
    /// The address leads to a playlist of several tracks that have an end, of which the first is played; once.
    Playlist {
        /// Its tracks, in order.
        entries: Vec<PlaylistEntry>,
        /// Which of them plays, from 0.
        playing: usize,
    },
    /// The first bytes are there.
    Prefetching,
    /// Everything up to the end is held or read. Comes again after a seek made more requests necessary.
    Complete,
    /// Nothing comes; with a sentence for a person.
    Waiting(WaitReason, String),
    /// Bytes come again after `Waiting`.
    Flowing,
    /// A fresh address is asked for.
    Renewing,
    /// A fresh address is there and serves the next request.
    Renewed {
        /// Whether the former one was still good.
        before_deadline: bool,
    },
    /// The stream ended with an error; what is held can still be read.
    Failed(StreamError),
}
