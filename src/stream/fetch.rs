//! The task that fetches: where the reader will need bytes next, from whom, and what to do when they do not
//! come.

mod body;
mod pieces;
mod renew;
mod request;
mod setback;
mod stations;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::task::yield_now;

use super::hls::Hls;
use super::http::Web;
use super::incoming::Incoming;
use super::patience::Patience;
use super::range::Entity;
use super::shared::Shared;
use super::source::Source;
use super::{Settings, StreamError};
use crate::track::{Resolve, ResolveError, ResolvedStream, Resolving};
use body::Stop;
use setback::Setback;
use stations::Stations;

/// Failed resolves since the last new byte after which a track is given up.
const MAX_USELESS_RESOLVES: u32 = 3;

/// Less than so many bytes within the time of silence is silence too: no music is so slow. Failures are forgiven after
/// as many new bytes.
pub(in crate::stream) const TRICKLE: usize = 1024;

/// A call of the resolver that is under way. The mutex is never locked; it makes the task `Send`.
type Renewal = Mutex<Resolving>;

/// The task's own state.
pub(super) struct Fetch {
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    web: Arc<Web>,
    resolver: Arc<dyn Resolve>,
    source: Source,
    /// What was learnt of the file so far; each further answer must agree.
    entity: Entity,
    /// What was found in playlists, where the source is one.
    stations: Stations,
    /// What was learnt of an HLS stream, between its connections. The mutex is like that of [`Renewal`].
    hls: Option<Mutex<Box<Hls>>>,
    /// Its playlist has to be asked for anew: the address is another.
    list_due: bool,
    /// A fresh address that is being asked for while the old one still serves.
    renewal: Option<Renewal>,
    /// When the last resolve was begun.
    resolve_not_before: Option<Instant>,
    /// The source was refused: resolve before the next request.
    must_resolve: bool,
    /// Set when the resolver said that there will be no fresh address.
    unresolvable: Option<ResolveError>,
    patience: Patience,
    /// First failure since the last new byte.
    trouble: Option<Instant>,
    /// New bytes since a failure was last forgiven.
    progress: u64,
    /// The last failure was that no host answers.
    outage: bool,
}

impl Fetch {
    pub fn new(
        shared: Arc<Shared>,
        settings: Arc<Settings>,
        web: Arc<Web>,
        resolved: ResolvedStream,
        resolver: Arc<dyn Resolve>,
    ) -> Self {
        let source = Source::new(resolved, None, &shared.track);
        shared.set_deadline(source.deadline.map(|deadline| deadline.at));
        if source.resolved.live {
            shared.live();
        }
        Fetch {
            shared,
            settings,
            web,
            resolver,
            source,
            entity: Entity::default(),
            stations: Stations::default(),
            hls: None,
            list_due: false,
            renewal: None,
            resolve_not_before: None,
            must_resolve: false,
            unresolvable: None,
            patience: Patience::default(),
            trouble: None,
            progress: 0,
            outage: false,
        }
    }

    /// Runs until the stream fails or is aborted: a complete one may need bytes again after a seek.
    pub async fn run(mut self) {
        loop {
            let at = self.shared.work().await;
            if let Err(error) = self.step(at).await {
                return self.shared.fail(error);
            }
        }
    }

    /// One request and its body, or one failure and the pause after it.
    async fn step(&mut self, at: u64) -> Result<(), StreamError> {
        if self.must_resolve || self.source.expired(Instant::now()) {
            self.resolve().await?;
        }
        let body = match self.go_on(at) {
            Some(body) => Ok(Some(body)),
            None => {
                let asked = Instant::now();
                let body = self.request(at).await;
                if matches!(body, Ok(Some(_))) {
                    self.shared.answered(asked.elapsed());
                }
                body
            }
        };
        let setback = match body {
            Ok(Some(mut body)) => {
                let before = self.shared.fetched();
                let stop = self.transfer(&mut body).await;
                let whole = body.end == Some(body.at);
                let brought = self.shared.fetched() - before;
                let is_hls = matches!(body.incoming, Incoming::Hls(_));
                // The very byte that was asked for is still missing, or the next one but a few.
                let useless = brought < TRICKLE as u64 && self.shared.wanted() == Some(at + brought);
                let trouble = self.put_away(body.incoming);
                if whole {
                    // Its connection becomes free in a task of its own: then the next request need not make another.
                    yield_now().await;
                }
                match stop {
                    Stop::Done if useless && !is_hls => {
                        let host = self.source.host();
                        Setback::Failing(format!("{host} does not send the bytes that it is asked for"))
                    }
                    Stop::Done | Stop::Idle => {
                        self.forgive();
                        return Ok(());
                    }
                    Stop::Cut(why) => trouble.unwrap_or(Setback::Failing(why)),
                }
            }
            Ok(None) => return Ok(()),
            Err(setback) => setback,
        };
        self.bear(setback).await
    }
}
