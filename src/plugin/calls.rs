//! What plugins are asked.

use std::sync::Arc;
use std::time::Instant;

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
use super::start::StartFailure;
use super::summary::SearchOutcome;
use super::supervisor::{OpenTrack, Supervisor};
use crate::track::{PluginId, Reach, Resolve, ResolvedStream, Resolving, TrackInfo, TrackRef};

/// What one search may bring from one plugin.
pub const MAX_SEARCH_LIMIT: u32 = 500;

impl Host {
    /// Asks the track's plugin where its bytes are. No byte of it is fetched.
    ///
    /// # Errors
    /// By the protocol's table.
    pub async fn resolve(&self, track: &TrackRef) -> Result<ResolvedStream, CallError> {
        let params = ContentParams { content_id: track.content_id.clone() };
        self.call(&track.plugin, Capability::Stream, params, |supervisor, info: StreamInfo| {
            let local = supervisor.plan.granted.contains(&Scope::LocalNetwork);
            let reach = if local { Reach::Anywhere } else { Reach::Internet };
            models::resolved(info, reach, Instant::now())
        })
        .await
    }

    /// Asks again and again for the same track. While it exists the plugin is not idle.
    pub fn resolver(&self, track: TrackRef) -> Arc<dyn Resolve> {
        let open = self.enabled(&track.plugin).ok().map(|supervisor| supervisor.open_track());
        Arc::new(PluginTrack { host: self.clone(), track, _open: open })
    }

    /// Metadata of a track.
    ///
    /// # Errors
    /// By the protocol's table.
    pub async fn track(&self, track: &TrackRef) -> Result<TrackInfo, CallError> {
        let params = ContentParams { content_id: track.content_id.clone() };
        self.call(&track.plugin, Capability::GetTrack, params, |_, reply: TrackReply| {
            models::track_info(reply.track)
        })
        .await
    }

    /// An album with its tracks.
    ///
    /// # Errors
    /// By the protocol's table.
    pub async fn album(&self, album: &TrackRef) -> Result<AlbumInfo, CallError> {
        let params = ContentParams { content_id: album.content_id.clone() };
        self.call(&album.plugin, Capability::GetAlbum, params, |_, reply: AlbumReply| {
            models::album_info(&album.plugin, reply.album)
        })
        .await
    }

    /// An artist.
    ///
    /// # Errors
    /// By the protocol's table.
    pub async fn artist(&self, artist: &TrackRef) -> Result<ArtistInfo, CallError> {
        let params = ContentParams { content_id: artist.content_id.clone() };
        self.call(&artist.plugin, Capability::GetArtist, params, |_, reply: ArtistReply| {
            models::artist_info(&artist.plugin, reply.artist)
        })
        .await
    }

    /// Asks one plugin, or all that are enabled and can search, at once. `limit` holds for each plugin, at
    /// most [`MAX_SEARCH_LIMIT`].
    pub async fn search(&self, query: &str, limit: u32, plugin: Option<&PluginId>) -> SearchOutcome {
        let limit = limit.clamp(1, MAX_SEARCH_LIMIT);
        let asked: Vec<PluginId> = match plugin {
            Some(plugin) => vec![plugin.clone()],
            None => self
                .all_enabled()
                .iter()
                .filter(|supervisor| supervisor.plan.manifest.capabilities.contains(&Capability::Search))
                .map(|supervisor| supervisor.plan.manifest.id.clone())
                .collect(),
        };
        let answers = join_all(asked.iter().map(|plugin| self.search_one(plugin, query, limit))).await;
        let mut outcome = SearchOutcome::default();
        for (plugin, answer) in asked.into_iter().zip(answers) {
            match answer {
                Ok(hits) => outcome.results.extend(hits),
                Err(error) => outcome.errors.push((plugin, error)),
            }
        }
        outcome
    }

    async fn search_one(
        &self,
        plugin: &PluginId,
        query: &str,
        limit: u32,
    ) -> Result<Vec<SearchHit>, CallError> {
        self.call(
            plugin,
            Capability::Search,
            SearchParams { query: query.to_owned(), limit, kinds: None },
            |_, reply: SearchReply| {
                let wanted = reply.results.into_iter().take(limit as usize);
                wanted.map(|found| models::search_hit(plugin, found)).collect()
            },
        )
        .await
    }

    async fn call<P, R, T>(
        &self,
        plugin: &PluginId,
        method: Capability,
        params: P,
        convert: impl FnOnce(&Supervisor, R) -> Result<T, Fault>,
    ) -> Result<T, CallError>
    where
        P: Serialize,
        R: DeserializeOwned,
    {
        let began = Instant::now();
        let answer = match self.call_once(plugin, method, params).await {
            Ok((supervisor, result)) => result.parse().and_then(|reply| convert(&supervisor, reply)),
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
        let not_enabled = |why| Fault::new(ErrorCode::PluginNotEnabled, why);
        let mut supervisor = self.enabled(plugin).map_err(not_enabled)?;
        let lease = match supervisor.lease().await {
            Err(StartFailure::SourceChanged) => {
                // Something touched the package: what it is now decides.
                self.rescan().await;
                supervisor = self.enabled(plugin).map_err(not_enabled)?;
                supervisor.lease().await
            }
            other => other,
        };
        let lease = lease.map_err(fault_of)?;
        if !lease.capabilities().contains(&method) {
            let text = format!("it does not offer {} now", method.as_str());
            return Err(Fault::new(ErrorCode::CapabilityMissing, text));
        }
        let timeout = supervisor.plan.manifest.timeouts.of(method);
        let answer = lease.call(method.as_str(), Some(params), timeout).await;
        if answer.as_ref().is_err_and(|fault| fault.code == ErrorCode::PluginTimeout) {
            supervisor.suspect();
        }
        Ok((supervisor.clone(), answer?))
    }
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
