//! From a request to the text of its reply.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use segue_protocol::manifest::{Manifest, PROTOCOL};
use segue_protocol::messages::{
    ContentParams, InitializeParams, InitializeResult, PingResult, SearchParams, SearchReply, WireError,
};
use segue_protocol::models::{AlbumReply, ArtistReply, TrackReply};
use segue_protocol::{ErrorCode, MAX_LINE_BYTES};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Context, Error, Plugin};

/// A call that wants an answer.
pub(crate) struct Call {
    id: Box<RawValue>,
    method: String,
    params: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
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
        match serde_json::from_str::<Request<'_>>(line) {
            // A message without an id is never answered.
            Ok(Request { id: None, .. }) => Line::Silence,
            Ok(Request { method, id: Some(id), params }) => Line::Call(Call {
                id: id.to_owned(),
                method: method.into_owned(),
                params: params.map(RawValue::to_owned),
            }),
            Err(_) if serde_json::from_str::<IgnoredAny>(line).is_ok() => {
                Line::refused(ErrorCode::InvalidRequest, "this is no request")
            }
            Err(_) => Line::junk(),
        }
    }

    pub(crate) fn junk() -> Line {
        Line::refused(ErrorCode::ParseError, "this is no JSON on one line")
    }

    fn refused(code: ErrorCode, message: &str) -> Line {
        Line::Answer(encode(RawValue::NULL, Err::<(), _>(Error::json_rpc(code, message))))
    }
}

impl Call {
    /// Answered on the reading thread: neither waits for anything.
    pub(crate) fn is_ping(&self) -> bool {
        self.method == "ping"
    }

    pub(crate) fn is_start(&self) -> bool {
        self.method == "initialize"
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
                    capabilities: plugin.capabilities(&manifest.capabilities),
                }),
            ),
            method if !manifest.capabilities.iter().any(|capability| capability.as_str() == method) => {
                encode(
                    id,
                    Err::<(), _>(Error::json_rpc(ErrorCode::MethodNotFound, format!("no method “{method}”"))),
                )
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
        plugin.start(&Context {
            scopes: params.scopes.clone(),
            data: PathBuf::from(params.dirs.data),
            cache: PathBuf::from(params.dirs.cache),
            config: params.config,
            secrets: params.secrets,
        })?;
        Ok(InitializeResult {
            protocol: PROTOCOL.to_owned(),
            id: manifest.id.to_string(),
            version: manifest.version.clone(),
            capabilities: plugin.capabilities(&manifest.capabilities),
            scopes: params.scopes,
        })
    }

    fn search(&self, plugin: &dyn Plugin) -> Result<SearchReply, Error> {
        let params: SearchParams = self.params()?;
        let mut results = plugin.search(&params)?;
        results.truncate(params.limit as usize);
        Ok(SearchReply { results })
    }

    fn params<P: DeserializeOwned>(&self) -> Result<P, Error> {
        let text = self.params.as_ref().map_or("null", |params| params.get());
        serde_json::from_str(text)
            .map_err(|error| Error::json_rpc(ErrorCode::InvalidParams, error.to_string()))
    }
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
