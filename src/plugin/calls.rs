//! What plugins are asked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::join_all;
use segue_protocol::manifest::{Capability, Scope};
use segue_protocol::messages::{ContentParams, RawResult, SearchParams, SearchReply};
use segue_protocol::models::{AlbumReply, ArtistReply, StreamInfo, TrackReply};
use segue_protocol::{ErrorCode, Fault};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::decide::fault_of;
use super::error::CallError;
use super::host::Host;
use super::models::{self, AlbumInfo, ArtistInfo, SearchHit};
use super::rpc::{Lease, PARSED_INLINE};
use super::start::{self, StartFailure};
use super::summary::SearchOutcome;
use super::supervisor::{OpenTrack, Supervisor};
use crate::track::{Kind, PluginId, Reach, Resolve, ResolvedStream, Resolving, TrackInfo, TrackRef};

/// What one search may bring from one plugin.
pub const MAX_SEARCH_LIMIT: u32 = 500;
/// What one search may bring from all plugins, counted in bytes of their replies: the bus carries no endless message.
const MAX_SEARCH_BYTES: usize = 32 * 1024 * 1024;

/// What is looked for, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// In a person's words.
    pub query: String,
    /// The most results from each plugin, at most [`MAX_SEARCH_LIMIT`].
    pub limit: u32,
    /// Only these kinds; empty: all.
    pub kinds: Vec<Kind>,
    /// Only this plugin; `None`: all that can search.
    pub plugin: Option<PluginId>,
}

impl Host {
    /// Asks the track's plugin where its bytes are. No byte of it is fetched. Who asks while the same is being
    /// asked shares the answer.
    ///
    /// # Errors
    /// By the protocol's table.
    pub async fn resolve(&self, track: &TrackRef) -> Result<ResolvedStream, CallError> {
        match self.enabled(&track.plugin) {
            Ok(supervisor) => {
                let (host, asked) = (self.clone(), track.clone());
                let call = || async move { host.resolve_alone(&asked).await }.boxed();
                supervisor.answers.stream(&track.content_id, call).await
            }
            Err(_) => self.resolve_alone(track).await,
        }
    }

    /// How far an enabled plugin may reach; `None` where it may not use the network at all.
    pub fn reach(&self, plugin: &PluginId) -> Option<Reach> {
        let granted = self.enabled(plugin).ok()?.plan.granted.clone();
        let reach = if granted.contains(&Scope::LocalNetwork) { Reach::Anywhere } else { Reach::Internet };
        granted.contains(&Scope::Network).then_some(reach)
    }

    async fn resolve_alone(&self, track: &TrackRef) -> Result<ResolvedStream, CallError> {
        let params = ContentParams { content_id: track.content_id.clone() };
        self.call(&track.plugin, Capability::Stream, params, |supervisor, info: StreamInfo, _| {
            let local = supervisor.plan.granted.contains(&Scope::LocalNetwork);
            let reach = if local { Reach::Anywhere } else { Reach::Internet };
            models::resolved(info, reach, supervisor.plan.readable(), Instant::now())
        })
        .await
    }

    /// Asks again and again for the same track. While it exists the plugin is not idle.
    pub fn resolver(&self, track: TrackRef) -> Arc<dyn Resolve> {
        let open = self.enabled(&track.plugin).ok().map(|supervisor| supervisor.open_track());
        Arc::new(PluginTrack { host: self.clone(), track, _open: open })
    }

    /// Metadata of a track, at most ten minutes old.
    ///
    /// # Errors
    /// By the protocol's table.
    pub async fn track(&self, track: &TrackRef) -> Result<TrackInfo, CallError> {
        let convert = |reply: TrackReply| models::track_info(reply.track);
        self.metadata(track, Capability::GetTrack, convert).await
    }

    /// An album with its tracks, at most ten minutes old.
    ///
    /// # Errors
    /// By the protocol's table.
    pub async fn album(&self, album: &TrackRef) -> Result<AlbumInfo, CallError> {
        let convert = |reply: AlbumReply| models::album_info(&album.plugin, reply.album);
        self.metadata(album, Capability::GetAlbum, convert).await
    }

    /// An artist, at most ten minutes old.
    ///
    /// # Errors
    /// By the protocol's table.
    pub async fn artist(&self, artist: &TrackRef) -> Result<ArtistInfo, CallError> {
        let convert = |reply: ArtistReply| models::artist_info(&artist.plugin, reply.artist);
        self.metadata(artist, Capability::GetArtist, convert).await
    }

    async fn metadata<R, T>(
        &self,
        of: &TrackRef,
        method: Capability,
        convert: impl FnOnce(R) -> Result<T, Fault>,
    ) -> Result<T, CallError>
    where
        R: DeserializeOwned + Send + 'static,
        T: Clone + Send + Sync + 'static,
    {
        let known =
            self.enabled(&of.plugin).ok().and_then(|plugin| plugin.answers.get(method, &of.content_id));
        if let Some(known) = known {
            return Ok(known);
        }
        let params = ContentParams { content_id: of.content_id.clone() };
        self.call(&of.plugin, method, params, |supervisor, reply, bytes| {
            let info = convert(reply)?;
            supervisor.answers.keep(method, &of.content_id, info.clone(), bytes);
            Ok(info)
        })
        .await
    }

    /// Asks for a sign of life, starting the plugin where that is needed; returns how long the answer took.
    ///
    /// # Errors
    /// By the protocol's table.
    pub async fn ping(&self, plugin: &PluginId) -> Result<Duration, CallError> {
        let began = Instant::now();
        let answer = async {
            let (supervisor, lease) = self.lease(plugin).await?;
            let asked = Instant::now();
            let pong = start::ping(&lease, supervisor.plan.manifest.timeouts.ping).await?;
            let took = asked.elapsed();
            lease.set_capabilities(start::pong(&supervisor.plan, &pong)?);
            Ok(took)
        };
        answer.await.map_err(|fault| CallError::new(fault, plugin, "ping", began.elapsed()))
    }

    /// Asks one plugin, or all that are enabled and can search, at once. Answers with what came in time, and with
    /// an error for each plugin that failed.
    pub async fn search(&self, search: &Search) -> SearchOutcome {
        let began = Instant::now();
        let asked: Vec<PluginId> = match &search.plugin {
            Some(plugin) => vec![plugin.clone()],
            None => self
                .all_enabled()
                .iter()
                .filter(|supervisor| supervisor.plan.manifest.capabilities.contains(&Capability::Search))
                .map(|supervisor| supervisor.plan.manifest.id.clone())
                .collect(),
        };
        let answers = join_all(asked.iter().map(|plugin| self.search_one(plugin, search))).await;
        let mut outcome = SearchOutcome::default();
        let mut room = MAX_SEARCH_BYTES;
        for (plugin, answer) in asked.into_iter().zip(answers) {
            match answer {
                Ok((hits, bytes)) if bytes <= room => {
                    room -= bytes;
                    outcome.results.extend(hits);
                }
                Ok(_) => {
                    let fault = Fault::protocol("with the others' results its own are too long to be shown");
                    let error = CallError::new(fault, &plugin, Capability::Search.as_str(), began.elapsed());
                    outcome.errors.push((plugin, error));
                }
                Err(error) => outcome.errors.push((plugin, error)),
            }
        }
        outcome
    }

    async fn search_one(
        &self,
        plugin: &PluginId,
        search: &Search,
    ) -> Result<(Vec<SearchHit>, usize), CallError> {
        let limit = search.limit.clamp(1, MAX_SEARCH_LIMIT);
        let kinds =
            (!search.kinds.is_empty()).then(|| search.kinds.iter().map(models::result_kind).collect());
        let params = SearchParams { query: search.query.clone(), limit, kinds };
        self.call(plugin, Capability::Search, params, |_, reply: SearchReply, bytes| {
            let found = reply.results.into_iter().map(|found| models::search_hit(plugin, found));
            // A plugin need not know about kinds.
            let wanted = found.filter(|hit| {
                hit.as_ref().map_or(true, |hit| search.kinds.is_empty() || search.kinds.contains(&hit.kind))
            });
            Ok((wanted.take(limit as usize).collect::<Result<_, Fault>>()?, bytes))
        })
        .await
    }

    /// `convert` is also told how many bytes the result had.
    async fn call<P, R, T>(
        &self,
        plugin: &PluginId,
        method: Capability,
        params: P,
        convert: impl FnOnce(&Supervisor, R, usize) -> Result<T, Fault>,
    ) -> Result<T, CallError>
    where
        P: Serialize,
        R: DeserializeOwned + Send + 'static,
    {
        let began = Instant::now();
        let answer = match self.call_once(plugin, method, params).await {
            Ok((supervisor, result)) => {
                let bytes = result.as_str().len();
                let reply = parsed(result).await.and_then(|reply| convert(&supervisor, reply, bytes));
                let reply = reply.map_err(|fault| supervisor.plan.clean_fault(fault));
                if let Err(fault) = &reply {
                    supervisor.plan.counters.misshapen(fault);
                }
                reply
            }
            Err(fault) => Err(fault),
        };
        answer.map_err(|fault| {
            let error = CallError::new(fault, plugin, method.as_str(), began.elapsed());
            // Not to offer something is no failure.
            if error.code != ErrorCode::CapabilityMissing {
                tracing::info!(%plugin, %error, "a call failed");
            }
            error
        })
    }

    async fn call_once<P: Serialize>(
        &self,
        plugin: &PluginId,
        method: Capability,
        params: P,
    ) -> Result<(Arc<Supervisor>, RawResult), Fault> {
        let (supervisor, lease) = self.lease(plugin).await?;
        if !lease.capabilities().contains(&method) {
            let text = format!("it does not offer {} now", method.as_str());
            return Err(Fault::new(ErrorCode::CapabilityMissing, text));
        }
        let timeout = supervisor.plan.manifest.timeouts.of(method);
        let answer = lease.call(method.as_str(), Some(params), timeout).await;
        if answer.as_ref().is_err_and(|fault| fault.code == ErrorCode::PluginTimeout) {
            supervisor.suspect();
        }
        let answer = answer?;
        // What came after the decision does not count.
        self.still_enabled(plugin, &supervisor)?;
        Ok((supervisor, answer))
    }

    /// The right to call a plugin, which is started where that is needed.
    async fn lease(&self, plugin: &PluginId) -> Result<(Arc<Supervisor>, Lease), Fault> {
        let not_enabled = |why| Fault::new(ErrorCode::PluginNotEnabled, why);
        let mut supervisor = self.enabled(plugin).map_err(not_enabled)?;
        let lease = match supervisor.lease().await {
            Err(StartFailure::SourceChanged) => {
                // Something touched the package: what it is now decides.
                self.scan().await;
                supervisor = self.enabled(plugin).map_err(not_enabled)?;
                supervisor.lease().await
            }
            other => other,
        };
        let lease = lease.map_err(fault_of)?;
        // Decided about while it was started or waited for.
        self.still_enabled(plugin, &supervisor)?;
        Ok((supervisor, lease))
    }
}

/// Long results are parsed away from the main thread.
async fn parsed<R: DeserializeOwned + Send + 'static>(result: RawResult) -> Result<R, Fault> {
    if result.as_str().len() <= PARSED_INLINE {
        return result.parse();
    }
    let parsing = tokio::task::spawn_blocking(move || result.parse());
    parsing.await.unwrap_or_else(|error| Err(Fault::new(ErrorCode::InternalError, error.to_string())))
}

/// A track of a plugin's that is open.
struct PluginTrack {
    host: Host,
    track: TrackRef,
    _open: Option<OpenTrack>,
}

impl Resolve for PluginTrack {
    fn resolve(&self) -> Resolving {
        let (host, track) = (self.host.clone(), self.track.clone());
        Box::pin(async move { Ok(host.resolve(&track).await?) })
    }
}
