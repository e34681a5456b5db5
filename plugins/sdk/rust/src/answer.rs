//! From a request to the text of its reply.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use segue_protocol::manifest::{Capability, Manifest, PROTOCOL};
use segue_protocol::messages::{
    ContentParams, InitializeParams, InitializeResult, PingResult, SearchParams, SearchReply, WireError,
};
use segue_protocol::models::{AlbumReply, ArtistReply, MAX_RESULTS, TrackReply};
use segue_protocol::{ErrorCode, MAX_LINE_BYTES};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{Context, Error, Plugin};

/// A call that wants an answer.
pub(crate) struct Call {
    id: Box<RawValue>,
    method: String,
    params: Option<Box<RawValue>>,
}

/// Borrows from its line. A `null` is there; only what is not there is `None`.
#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "present")]
    result: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "present")]
    error: Option<IgnoredAny>,
}

fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

#[derive(Serialize)]
struct Reply<'a, R: Serialize> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<WireError>,
}

/// What a line asks for: a call, nothing, or at once an answer.
pub(crate) enum Line {
    Call(Call),
    Silence,
    Answer(Vec<u8>),
}

impl Line {
    pub(crate) fn read(line: &str) -> Line {
        // serde would take a list for an object whose fields have no names.
        if !line.trim_ascii_start().starts_with('{') {
            return Line::junk();
        }
        let request = match serde_json::from_str::<Request<'_>>(line) {
            Ok(request) => request,
            Err(_) if serde_json::from_str::<IgnoredAny>(line).is_ok() => {
                return Line::refused(RawValue::NULL, "a field stands twice");
            }
            Err(_) => return Line::junk(),
        };
        // Neither a message without an id nor a reply is ever answered.
        let Some(id) = request.id else { return Line::Silence };
        if request.method.is_none() && (request.result.is_some() || request.error.is_some()) {
            return Line::Silence;
        }
        if !is_id(id.get()) {
            return Line::refused(
                RawValue::NULL,
                "an id is a whole number or a string of at most 1,000 bytes",
            );
        }
        let method = request.method.and_then(|method| serde_json::from_str::<String>(method.get()).ok());
        match method {
            Some(method) if request.jsonrpc.is_some_and(|version| version.get() == "\"2.0\"") => {
                Line::Call(Call { id: id.to_owned(), method, params: request.params.map(RawValue::to_owned) })
            }
            _ => Line::refused(id, "jsonrpc must be \"2.0\" and method a string"),
        }
    }

    pub(crate) fn junk() -> Line {
        let error = Error::json_rpc(ErrorCode::ParseError, "this is no JSON object on one line");
        Line::Answer(encode(RawValue::NULL, Err::<(), _>(error)))
    }

    fn refused(id: &RawValue, message: &str) -> Line {
        Line::Answer(encode(id, Err::<(), _>(Error::json_rpc(ErrorCode::InvalidRequest, message))))
    }
}

/// Bounded, because it comes back in each answer, however short the answer is made.
fn is_id(json: &str) -> bool {
    let whole = |json: &str| json.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    json.len() <= 1_002 && (json.starts_with('"') || whole(json))
}

impl Call {
    /// Answered on the reading thread: neither waits for anything.
    pub(crate) fn is_ping(&self) -> bool {
        self.method == "ping"
    }

    pub(crate) fn is_start(&self) -> bool {
        self.method == "initialize"
    }

    /// The answer to a start after the first one.
    pub(crate) fn again(&self) -> Vec<u8> {
        let error = Error::json_rpc(ErrorCode::InvalidRequest, "initialize comes once");
        encode(&self.id, Err::<(), _>(error))
    }

    /// Asks the plugin. Its panic costs this call only.
    pub(crate) fn answer(&self, manifest: &Manifest, plugin: &dyn Plugin) -> Vec<u8> {
        catch_unwind(AssertUnwindSafe(|| self.dispatch(manifest, plugin))).unwrap_or_else(|_| {
            encode(&self.id, Err::<(), _>(Error::internal("the plugin panicked; its log says where")))
        })
    }

    fn dispatch(&self, manifest: &Manifest, plugin: &dyn Plugin) -> Vec<u8> {
        let id = &self.id;
        let content = || self.params::<ContentParams>().map(|params| params.content_id);
        match self.method.as_str() {
            "initialize" => encode(id, self.start(manifest, plugin)),
            "ping" => encode(
                id,
                Ok(PingResult {
                    status: "ok".to_owned(),
                    version: manifest.version.clone(),
                    capabilities: working(manifest, plugin),
                }),
            ),
            method if !manifest.capabilities.iter().any(|capability| capability.as_str() == method) => {
                let error = Error::json_rpc(ErrorCode::MethodNotFound, format!("no method “{method}”"));
                encode(id, Err::<(), _>(error))
            }
            "search" => encode(id, self.search(plugin)),
            "get_track" => {
                encode(id, content().and_then(|id| Ok(TrackReply { track: plugin.get_track(&id)? })))
            }
            "get_album" => {
                encode(id, content().and_then(|id| Ok(AlbumReply { album: plugin.get_album(&id)? })))
            }
            "get_artist" => {
                encode(id, content().and_then(|id| Ok(ArtistReply { artist: plugin.get_artist(&id)? })))
            }
            _ => encode(id, content().and_then(|id| plugin.stream(&id))),
        }
    }

    fn start(&self, manifest: &Manifest, plugin: &dyn Plugin) -> Result<InitializeResult, Error> {
        let params: InitializeParams = self.params()?;
        if params.protocol != PROTOCOL {
            let text = format!("this plugin speaks {PROTOCOL}, not “{}”", params.protocol);
            return Err(Error::json_rpc(ErrorCode::InvalidParams, text));
        }
        plugin.start(&Context {
            scopes: params.scopes.clone(),
            data: PathBuf::from(params.dirs.data),
            cache: PathBuf::from(params.dirs.cache),
            config: params.config,
            secrets: params.secrets,
            host: params.host,
        })?;
        Ok(InitializeResult {
            protocol: PROTOCOL.to_owned(),
            id: manifest.id.to_string(),
            version: manifest.version.clone(),
            capabilities: working(manifest, plugin),
            scopes: params.scopes,
        })
    }

    fn search(&self, plugin: &dyn Plugin) -> Result<SearchReply, Error> {
        let params: SearchParams = self.params()?;
        if !(1..=MAX_RESULTS).contains(&(params.limit as usize)) {
            let text = format!("limit must be from 1 to {MAX_RESULTS}, not {}", params.limit);
            return Err(Error::json_rpc(ErrorCode::InvalidParams, text));
        }
        let mut results = plugin.search(&params)?;
        if let Some(kinds) = &params.kinds {
            results.retain(|result| kinds.contains(&result.kind));
        }
        results.truncate(params.limit as usize);
        Ok(SearchReply { results })
    }

    fn params<P: DeserializeOwned>(&self) -> Result<P, Error> {
        let text = self.params.as_ref().map_or("null", |params| params.get());
        serde_json::from_str(text)
            .map_err(|error| Error::json_rpc(ErrorCode::InvalidParams, error.to_string()))
    }
}

/// Never more than the manifest names: the player would take it for another plugin.
fn working(manifest: &Manifest, plugin: &dyn Plugin) -> Vec<Capability> {
    let mut working = plugin.capabilities(&manifest.capabilities);
    working.retain(|capability| manifest.capabilities.contains(capability));
    working
}

fn encode<R: Serialize>(id: &RawValue, answer: Result<R, Error>) -> Vec<u8> {
    let (result, error) = match answer {
        Ok(result) => (Some(result), None),
        Err(error) => (None, Some(error.on_the_wire())),
    };
    let mut line = match serde_json::to_vec(&Reply { jsonrpc: "2.0", id, result, error }) {
        Ok(line) if line.len() <= MAX_LINE_BYTES => line,
        Ok(line) => {
            let text = format!("the reply has {} bytes, at most {MAX_LINE_BYTES} are allowed", line.len());
            return encode(id, Err::<(), _>(Error::internal(text)));
        }
        Err(error) => return encode(id, Err::<(), _>(Error::internal(error.to_string()))),
    };
    line.push(b'\n');
    line
}
