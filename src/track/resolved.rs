//! Where a track's bytes are: what a plugin (or a plain URL) resolves to.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime};

use url::Url;

use super::GrantedFolders;

/// A resolved track: an address and what was promised about it. Not yet a single byte of it.
#[derive(Clone)]
pub struct ResolvedStream {
    /// `http`, `https`, or `file` below one of the folders in `files`.
    pub url: Url,
    /// Tried in this order when `url` does not answer.
    pub alternatives: Vec<Url>,
    /// Media type as promised, for example `audio/flac`.
    pub content_type: Option<String>,
    /// Playing time as promised.
    pub duration: Option<Duration>,
    /// Length in bytes as promised.
    pub size: Option<u64>,
    /// Until when `url` is good.
    pub expiry: Expiry,
    /// Sent with each request for this URL, to its own origin only. Never logged.
    pub headers: Vec<(String, String)>,
    /// False when the server is known not to serve ranges.
    pub seekable: bool,
    /// A stream without an end.
    pub live: bool,
    /// Which hosts the URLs may lead to.
    pub reach: Reach,
    /// Which files the URLs may lead to: those of the plugin that resolved the track.
    pub files: GrantedFolders,
}

/// Shows the host only: queries and headers may hold credentials.
impl fmt::Debug for ResolvedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedStream")
            .field("host", &self.url.host_str())
            .field("content_type", &self.content_type)
            .field("expiry", &self.expiry)
            .finish_non_exhaustive()
    }
}

impl ResolvedStream {
    /// A plain URL that a person gave: nothing promised, nothing forbidden.
    pub fn plain(url: Url) -> Self {
        ResolvedStream {
            url,
            alternatives: Vec::new(),
            content_type: None,
            duration: None,
            size: None,
            expiry: Expiry::Unknown,
            headers: Vec::new(),
            seekable: true,
            live: false,
            reach: Reach::Anywhere,
            files: GrantedFolders::none(),
        }
    }
}

/// When a URL stops being good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Not told: an answer of 401, 403 or 410 decides.
    Unknown,
    /// On the monotonic clock, immune to a wrong wall clock.
    Deadline {
        /// The moment.
        at: Instant,
        /// How long the URL lived in all, from which the margin for renewing follows.
        lifetime: Duration,
    },
    /// By a wall clock. The stream turns it into a deadline with the server's `Date`.
    WallClock(SystemTime),
}

/// Which hosts a URL may lead to, also after name resolution and redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Neither loopback nor link-local addresses: a plugin without the scope `local-network`.
    Internet,
    /// Any host.
    Anywhere,
}

/// The future of a [`Resolve::resolve`] call.
pub type Resolving = Pin<Box<dyn Future<Output = Result<ResolvedStream, ResolveError>> + Send>>;

/// Asks again where a track is: a plugin's `stream` call, or a plain URL that stays the same.
pub trait Resolve: Send + Sync {
    /// One call. Dropping the future forgets the call.
    fn resolve(&self) -> Resolving;
}

/// Why a track could not be resolved, by what the caller should do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ResolveError {
    /// What to do.
    pub kind: ResolveErrorKind,
    /// A sentence for a person, with the plugin's name in it.
    pub message: String,
}

/// What to do about a [`ResolveError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolveErrorKind {
    /// The track will not come back: skip it.
    Gone,
    /// A person must do something (log in, enable the plugin): skip it.
    NeedsPerson,
    /// Try again, not earlier than after this time.
    Later(Option<Duration>),
    /// The same; it looks as if the service behind the plugin could not be reached. While the network is away that is
    /// nobody's fault, and it is tried again for as long as that lasts.
    Unreachable(Option<Duration>),
}

impl ResolveErrorKind {
    /// Whether trying again may help.
    pub fn may_pass(self) -> bool {
        matches!(self, ResolveErrorKind::Later(_) | ResolveErrorKind::Unreachable(_))
    }
}
