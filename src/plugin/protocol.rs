//! The wire types of `segue.plugin/1`. Nothing outside this module sees them.
//!
//! Unknown fields are refused, so that a typing error is found early; names that begin with `x_` are
//! extensions and are taken out before parsing.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{ErrorCode, Fault};
use super::manifest::Capability;

#[derive(Serialize)]
pub(super) struct Request<'a, P: Serialize> {
    pub(super) jsonrpc: &'static str,
    pub(super) id: u64,
    pub(super) method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) params: Option<P>,
}

#[derive(Serialize)]
pub(super) struct InitializeParams<'a> {
    pub(super) protocol: &'a str,
    pub(super) host: HostFacts<'a>,
    pub(super) scopes: &'a [String],
    pub(super) dirs: Dirs<'a>,
    pub(super) config: &'a Value,
    pub(super) secrets: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
pub(super) struct HostFacts<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
}

#[derive(Serialize)]
pub(super) struct Dirs<'a> {
    pub(super) data: &'a str,
    pub(super) cache: &'a str,
}

#[derive(Serialize)]
pub(super) struct SearchParams<'a> {
    pub(super) query: &'a str,
    pub(super) limit: u32,
}

#[derive(Serialize)]
pub(super) struct ContentParams<'a> {
    pub(super) content_id: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InitializeResult {
    pub(super) protocol: String,
    pub(super) id: String,
    pub(super) version: String,
    pub(super) capabilities: Vec<Capability>,
    pub(super) scopes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PingResult {
    pub(super) status: String,
    pub(super) version: String,
    pub(super) capabilities: Vec<Capability>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchReply {
    pub(super) results: Vec<SearchResult>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResultKind {
    Track,
    Album,
    Artist,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchResult {
    pub(super) kind: ResultKind,
    pub(super) content_id: String,
    pub(super) title: String,
    #[serde(default)]
    pub(super) artists: Vec<ArtistRef>,
    pub(super) album: Option<AlbumRef>,
    pub(super) duration_ms: Option<u64>,
    #[serde(default)]
    pub(super) artwork: Vec<Image>,
    pub(super) explicit: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArtistRef {
    pub(super) name: String,
    #[serde(rename = "content_id")]
    _content_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AlbumRef {
    pub(super) title: String,
    pub(super) content_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Image {
    pub(super) url: String,
    #[serde(rename = "width")]
    _width: Option<u32>,
    #[serde(rename = "height")]
    _height: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrackStub {
    pub(super) content_id: String,
    pub(super) title: String,
    #[serde(default)]
    pub(super) artists: Vec<ArtistRef>,
    pub(super) track_no: Option<u32>,
    pub(super) disc_no: Option<u32>,
    pub(super) duration_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrackReply {
    pub(super) track: Track,
}

// `flatten` and `deny_unknown_fields` exclude each other, so the stub's fields are repeated.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Track {
    #[serde(rename = "content_id")]
    _content_id: String,
    pub(super) title: String,
    #[serde(default)]
    pub(super) artists: Vec<ArtistRef>,
    pub(super) track_no: Option<u32>,
    pub(super) disc_no: Option<u32>,
    pub(super) duration_ms: Option<u64>,
    pub(super) album: Option<AlbumRef>,
    pub(super) date: Option<String>,
    #[serde(default)]
    pub(super) genres: Vec<String>,
    #[serde(rename = "isrc")]
    _isrc: Option<String>,
    #[serde(rename = "musicbrainz_id")]
    _musicbrainz_id: Option<String>,
    #[serde(rename = "explicit")]
    _explicit: Option<bool>,
    #[serde(default, rename = "artwork")]
    _artwork: Vec<Image>,
    #[serde(rename = "gain")]
    _gain: Option<Gain>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Gain {
    #[serde(rename = "track_db")]
    _track_db: Option<f64>,
    #[serde(rename = "track_peak")]
    _track_peak: Option<f64>,
    #[serde(rename = "album_db")]
    _album_db: Option<f64>,
    #[serde(rename = "album_peak")]
    _album_peak: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AlbumReply {
    pub(super) album: Album,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AlbumType {
    Album,
    Single,
    Ep,
    Compilation,
    Unknown,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Album {
    #[serde(rename = "content_id")]
    _content_id: String,
    pub(super) title: String,
    pub(super) tracks: Vec<TrackStub>,
    #[serde(default)]
    pub(super) artists: Vec<ArtistRef>,
    #[serde(rename = "album_type")]
    _album_type: Option<AlbumType>,
    pub(super) date: Option<String>,
    #[serde(default, rename = "artwork")]
    _artwork: Vec<Image>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArtistReply {
    pub(super) artist: Artist,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Artist {
    #[serde(rename = "content_id")]
    _content_id: String,
    pub(super) name: String,
    pub(super) biography: Option<String>,
    #[serde(default)]
    pub(super) genres: Vec<String>,
    #[serde(default)]
    pub(super) albums: Vec<AlbumRef>,
    #[serde(default)]
    pub(super) top_tracks: Vec<TrackStub>,
    #[serde(default, rename = "artwork")]
    _artwork: Vec<Image>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamInfo {
    pub(super) url: String,
    pub(super) content_type: String,
    pub(super) duration_ms: Option<u64>,
    pub(super) file_size_bytes: Option<u64>,
    pub(super) expires_at: Option<String>,
    pub(super) expires_in_ms: Option<u64>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) seekable: Option<bool>,
    pub(super) live: Option<bool>,
    #[serde(default)]
    pub(super) alternatives: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireError {
    code: i64,
    message: String,
    #[serde(default)]
    data: Option<ErrorData>,
}

// What a plugin adds for its own logs is no business of ours: unknown fields are allowed here alone.
#[derive(Deserialize, Default)]
struct ErrorData {
    retry_after_ms: Option<u64>,
    reason: Option<String>,
}

/// What one line of a plugin's turned out to be.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// The answer to a call.
    Reply(u64, Result<Value, Fault>),
    /// A reply with an id that we never give.
    Stray,
    /// A request or a notification, which only the host may send.
    Request,
    /// Not a JSON-RPC message.
    Junk,
}

/// Tells what a line is.
pub(super) fn parse_line(line: &str) -> Message {
    let Ok(Value::Object(mut object)) = serde_json::from_str::<Value>(line) else { return Message::Junk };
    if object.remove("jsonrpc") != Some(Value::from("2.0")) {
        return Message::Junk;
    }
    if object.contains_key("method") {
        return Message::Request;
    }
    let Some(id) = object.remove("id") else { return Message::Junk };
    let Some(id) = id.as_u64() else { return Message::Stray };
    let (result, error) = (object.remove("result"), object.remove("error"));
    object.retain(|name, _| !name.starts_with("x_"));
    if let Some(name) = object.keys().next() {
        return Message::Reply(id, Err(Fault::protocol(format_args!("unknown field “{name}” in a reply"))));
    }
    let answer = match (result, error) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => Err(parse_error(error)),
        _ => Err(Fault::protocol("a reply has either a result or an error")),
    };
    Message::Reply(id, answer)
}

fn parse_error(mut error: Value) -> Fault {
    if let Value::Object(fields) = &mut error {
        fields.retain(|name, _| !name.starts_with("x_"));
        if fields.get("data").is_some_and(|data| !data.is_object()) {
            fields.remove("data");
        }
    }
    let WireError { code, message, data } = match serde_json::from_value(error) {
        Ok(error) => error,
        Err(error) => return Fault::protocol(error),
    };
    let message = shortened(&message);
    let data = data.unwrap_or_default();
    match ErrorCode::from_wire(code) {
        Some(code) => Fault {
            code,
            message,
            retry_after: data.retry_after_ms.map(std::time::Duration::from_millis),
            reason: data.reason.map(|reason| shortened(&reason)),
        },
        None => Fault::protocol(format_args!("a plugin may not send the error code {code} ({message})")),
    }
}

/// A plugin's words in an error message: one line of bounded length.
fn shortened(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect()
}

/// Parses a result strictly.
pub(super) fn parse_result<T: DeserializeOwned>(mut value: Value) -> Result<T, Fault> {
    strip_extensions(&mut value);
    serde_json::from_value(value).map_err(Fault::protocol)
}

/// Removes names that begin with `x_`. The names in `headers` are HTTP's, not ours.
fn strip_extensions(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.starts_with("x_"));
            fields.iter_mut().filter(|(name, _)| *name != "headers").for_each(|(_, v)| strip_extensions(v));
        }
        Value::Array(items) => items.iter_mut().for_each(strip_extensions),
        _ => {}
    }
}
