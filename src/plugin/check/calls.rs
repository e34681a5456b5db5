//! Each capability with a real call.

use std::time::Instant;

use segue_protocol::manifest::Capability;
use segue_protocol::messages::{ContentParams, RawResult, SearchParams, SearchReply};
use segue_protocol::models::{AlbumReply, ArtistReply, SearchResult, StreamInfo, TrackReply};
use segue_protocol::{ErrorCode, Fault};
use serde::de::DeserializeOwned;

use super::super::models;
use super::ids::Ids;
use super::session::{Session, Trouble};
use super::urls;
use crate::track::{GrantedFolders, PluginId, Reach};

/// Results that are asked for.
const LIMIT: u32 = 20;
/// Searched for one after the other until something is found.
const WORDS: [&str; 5] = ["a", "e", "the", "love", "1"];
/// In this order each finds ids for the next.
const ORDER: [Capability; 5] = [
    Capability::Search,
    Capability::GetTrack,
    Capability::GetAlbum,
    Capability::GetArtist,
    Capability::Stream,
];

pub(super) async fn check(session: &mut Session<'_>, mut ids: Ids, query: &str) {
    let promised = session.bench.manifest.capabilities.clone();
    for capability in ORDER.into_iter().filter(|capability| promised.contains(capability)) {
        if !session.capabilities.contains(&capability) {
            session.notes.fail(
                capability.as_str(),
                "its manifest names it, and it does not offer it now",
                "give it what it needs with --config, or take it out of the manifest",
            );
            continue;
        }
        match capability {
            Capability::Search => search(session, &mut ids, query).await,
            Capability::GetTrack => track(session, &mut ids).await,
            Capability::GetAlbum => album(session, &mut ids).await,
            Capability::GetArtist => artist(session, &mut ids).await,
            Capability::Stream => stream(session, &ids).await,
        }
    }
}

async fn search(session: &mut Session<'_>, ids: &mut Ids, query: &str) {
    let queries = if query.is_empty() { &WORDS[..] } else { &[query][..] };
    let patience = session.bench.manifest.timeouts.search;
    for query in queries {
        let params = SearchParams { query: (*query).to_owned(), limit: LIMIT, kinds: None };
        let found = session.ask("search", Some(params), patience).await.and_then(|result| {
            let results =
                searched(&result, &session.bench.manifest.id).map_err(|fault| Trouble::of(&fault))?;
            if results.len() > LIMIT as usize {
                let words = format!("{} results, and {LIMIT} were the limit", results.len());
                return Err(Trouble::new(words, "keep to limit"));
            }
            Ok(results)
        });
        match found {
            Ok(results) if results.is_empty() => {}
            Ok(results) => {
                ids.found(&results);
                session.notes.pass("search", format!("{} results for “{query}”", results.len()));
                return;
            }
            Err(trouble) => {
                session.notes.fail("search", trouble.words, trouble.advice);
                return;
            }
        }
    }
    session.notes.pass("search", format!("nothing found for “{}”", queries.join("”, “")));
}

fn searched(result: &RawResult, plugin: &PluginId) -> Result<Vec<SearchResult>, Fault> {
    let results = result.parse::<SearchReply>()?.results;
    results.iter().try_for_each(|found| models::search_hit(plugin, found.clone()).map(|_| ()))?;
    Ok(results)
}

async fn track(session: &mut Session<'_>, ids: &mut Ids) {
    let Some(id) = known(session, Capability::GetTrack, ids.track.clone()) else { return };
    let reply: Option<TrackReply> = content(session, Capability::GetTrack, &id, |_, reply: &TrackReply| {
        models::track_info(reply.track.clone()).map(|_| format!("{id}: {}", reply.track.title))
    })
    .await;
    if let Some(reply) = reply {
        ids.heard_of(&reply.track);
    }
}

async fn album(session: &mut Session<'_>, ids: &mut Ids) {
    let Some(id) = known(session, Capability::GetAlbum, ids.album.clone()) else { return };
    let reply: Option<AlbumReply> =
        content(session, Capability::GetAlbum, &id, |plugin, reply: &AlbumReply| {
            let info = models::album_info(plugin, reply.album.clone())?;
            Ok(format!("{id}: {}, {} tracks", info.title, info.tracks.len()))
        })
        .await;
    if let Some(AlbumReply { album }) = reply {
        ids.mentioned(&album.artists);
        if let Some(track) = album.tracks.first() {
            ids.track.get_or_insert_with(|| track.content_id.clone());
        }
    }
}

async fn artist(session: &mut Session<'_>, ids: &mut Ids) {
    let Some(id) = known(session, Capability::GetArtist, ids.artist.clone()) else { return };
    let reply: Option<ArtistReply> =
        content(session, Capability::GetArtist, &id, |plugin, reply: &ArtistReply| {
            models::artist_info(plugin, reply.artist.clone()).map(|info| format!("{id}: {}", info.name))
        })
        .await;
    if let Some(track) = reply.and_then(|reply| reply.artist.top_tracks.into_iter().next()) {
        ids.track.get_or_insert(track.content_id);
    }
}

async fn stream(session: &mut Session<'_>, ids: &Ids) {
    let Some(id) = known(session, Capability::Stream, ids.track.clone()) else { return };
    let info = content(session, Capability::Stream, &id, |_, info: &StreamInfo| {
        // Where the URL leads and how long it lasts have lines of their own.
        let elsewhere = "https://host.invalid/".to_owned();
        let rest = StreamInfo {
            url: elsewhere.clone(),
            alternatives: info.alternatives.iter().map(|_| elsewhere.clone()).collect(),
            expires_at: None,
            ..info.clone()
        };
        taken(rest)?;
        Ok(format!("{id}: {}", info.content_type))
    })
    .await;
    if let Some(info) = info {
        urls::check(session, &info).await;
    }
}

/// What the daemon makes of it, wherever it leads. Whether it may name a file is judged with its URLs.
fn taken(info: StreamInfo) -> Result<(), Fault> {
    models::resolved(info, Reach::Anywhere, GrantedFolders::none(), Instant::now()).map(|_| ())
}

/// An id to ask for; without one the capability cannot be tried.
fn known(session: &mut Session<'_>, method: Capability, id: Option<String>) -> Option<String> {
    if id.is_none() {
        let option = match method {
            Capability::GetAlbum => "--album-id",
            Capability::GetArtist => "--artist-id",
            _ => "--content-id",
        };
        let words = "nothing is known to ask for: its search found nothing of the kind";
        session.notes.skip(
            method.as_str(),
            words,
            format!("name something that it has with {option}, or use --query"),
        );
    }
    id
}

/// Asks for one thing. `judge` says what of the reply the daemon would not take, or what it is.
async fn content<R: DeserializeOwned>(
    session: &mut Session<'_>,
    method: Capability,
    id: &str,
    judge: impl Fn(&PluginId, &R) -> Result<String, Fault>,
) -> Option<R> {
    let patience = session.bench.manifest.timeouts.of(method);
    let params = ContentParams { content_id: id.to_owned() };
    let result = session.ask(method.as_str(), Some(params), patience).await;
    let judged = result.and_then(|result| {
        let reply: R = result.parse().map_err(|fault| Trouble::of(&fault))?;
        let words = judge(&session.bench.manifest.id, &reply).map_err(|fault| Trouble::of(&fault))?;
        Ok((reply, words))
    });
    match judged {
        Ok((reply, words)) => {
            let words = session.bench.redacted(&super::run::plain(&words));
            session.notes.pass(method.as_str(), words);
            Some(reply)
        }
        Err(trouble) => {
            session.notes.fail(
                method.as_str(),
                format!("{}: {}", super::run::plain(id), trouble.words),
                trouble.advice,
            );
            None
        }
    }
}

/// What the daemon would refuse of this result, where it is one of the protocol's methods.
pub(super) fn refusal(method: &str, result: &RawResult, plugin: &PluginId) -> Option<Fault> {
    let judged = match method {
        "search" => searched(result, plugin).map(|_| ()),
        "get_track" => result.parse::<TrackReply>().and_then(|r| models::track_info(r.track).map(|_| ())),
        "get_album" => {
            result.parse::<AlbumReply>().and_then(|r| models::album_info(plugin, r.album).map(|_| ()))
        }
        "get_artist" => {
            result.parse::<ArtistReply>().and_then(|r| models::artist_info(plugin, r.artist).map(|_| ()))
        }
        "stream" => result.parse::<StreamInfo>().and_then(taken),
        _ => Ok(()),
    };
    judged.err().filter(|fault| fault.code == ErrorCode::PluginProtocolError)
}
