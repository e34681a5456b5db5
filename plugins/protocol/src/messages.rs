use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::bounded::{texts, up_to};
use crate::error::{ErrorCode, Fault, shortened};
use crate::manifest::{Capability, MAX_CAPABILITIES};
use crate::models::{MAX_RESULTS, MAX_URL, ResultKind, SearchResult};

/// Scopes that can be granted; with `files.read:*` they are more than a manifest asks for.
pub const MAX_GRANTED: usize = 256;

/// A call, as the host writes it.
#[derive(Clone, Debug, Serialize)]
pub struct Request<'a, P: Serialize> {
    /// Always `2.0`.
    pub jsonrpc: &'static str,
    /// Never used twice in one process's life.
    pub id: u64,
    /// One of the protocol's methods.
    pub method: &'a str,
    /// By method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<P>,
}

/// What `initialize` tells the plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitializeParams {
    /// `segue.plugin/1`.
    pub protocol: String,
    /// Who calls.
    pub host: HostFacts,
    /// What was granted.
    pub scopes: Vec<String>,
    /// The plugin's own folders.
    pub dirs: Dirs,
    /// `[config]` of the plugin's configuration.
    pub config: Map<String, Value>,
    /// The granted ones of `[secrets]`.
    pub secrets: BTreeMap<String, String>,
}

/// The calling program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFacts {
    /// `segue`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Writable folders of the plugin's own, kept over updates; absolute paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Dirs {
    /// For what must be kept.
    pub data: String,
    /// For what can be made again. It may be emptied while the plugin does not run.
    pub cache: String,
}

/// The result of `initialize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitializeResult {
    /// As in the manifest.
    pub protocol: String,
    /// As in the manifest.
    pub id: String,
    /// As in the manifest.
    pub version: String,
    /// What works now: some of the manifest's.
    #[serde(deserialize_with = "up_to::<MAX_CAPABILITIES, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 16)))]
    pub capabilities: Vec<Capability>,
    /// As in the params.
    #[serde(deserialize_with = "texts::<MAX_GRANTED, 0, MAX_URL, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 256), inner(length(max = 8_192))))]
    pub scopes: Vec<String>,
}

/// The result of `ping`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PingResult {
    /// `ok`, or words for the person who looks at the plugin's health.
    pub status: String,
    /// As in the manifest.
    pub version: String,
    /// What works now: some of the manifest's.
    #[serde(deserialize_with = "up_to::<MAX_CAPABILITIES, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 16)))]
    pub capabilities: Vec<Capability>,
}

/// What `search` is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchParams {
    /// In a person's words.
    pub query: String,
    /// The most results that are wanted.
    #[serde(default = "default_limit")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 500)))]
    pub limit: u32,
    /// Only these kinds; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<ResultKind>>,
}

fn default_limit() -> u32 {
    50
}

/// What `get_track`, `get_album`, `get_artist` and `stream` are asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContentParams {
    /// The plugin's own id.
    pub content_id: String,
}

/// The result of `search`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchReply {
    /// The best first; may be empty.
    #[serde(deserialize_with = "up_to::<MAX_RESULTS, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 500)))]
    pub results: Vec<SearchResult>,
}

/// Why a call failed, on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WireError {
    /// 1 to 8, or one of JSON-RPC's own.
    #[cfg_attr(
        feature = "schema",
        schemars(extend("enum" = [1, 2, 3, 4, 5, 6, 7, 8, -32700, -32600, -32601, -32602, -32603]))
    )]
    pub code: i64,
    /// For a person.
    pub message: String,
    /// More about it; what is not an object is ignored.
    #[serde(default, deserialize_with = "error_data", skip_serializing_if = "ErrorData::is_empty")]
    pub data: ErrorData,
}

/// What the host understands of an error's data. Other fields are the plugin's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorData {
    /// With RATE_LIMITED: not to be asked again before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// With CONTENT_UNAVAILABLE: `region`, `subscription` or `removed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ErrorData {
    fn is_empty(&self) -> bool {
        *self == ErrorData::default()
    }
}

/// Takes an object; anything else is skipped without being kept.
fn error_data<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ErrorData, D::Error> {
    struct Data;

    impl<'de> Visitor<'de> for Data {
        type Value = ErrorData;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("data about an error")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ErrorData, A::Error> {
            ErrorData::deserialize(serde::de::value::MapAccessDeserializer::new(map))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ErrorData, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(ErrorData::default())
        }

        fn visit_bool<E>(self, _: bool) -> Result<ErrorData, E> {
            Ok(ErrorData::default())
        }

        fn visit_i64<E>(self, _: i64) -> Result<ErrorData, E> {
            Ok(ErrorData::default())
        }

        fn visit_u64<E>(self, _: u64) -> Result<ErrorData, E> {
            Ok(ErrorData::default())
        }

        fn visit_f64<E>(self, _: f64) -> Result<ErrorData, E> {
            Ok(ErrorData::default())
        }

        fn visit_str<E>(self, _: &str) -> Result<ErrorData, E> {
            Ok(ErrorData::default())
        }

        fn visit_unit<E>(self) -> Result<ErrorData, E> {
            Ok(ErrorData::default())
        }
    }

    deserializer.deserialize_any(Data)
}

/// A result that is still text: a part of the line that brought it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawResult {
    line: String,
    at: Range<usize>,
}

impl RawResult {
    /// Its JSON.
    pub fn as_str(&self) -> &str {
        &self.line[self.at.clone()]
    }

    /// Parses it strictly: unknown fields are refused, so that a typing error is found early. Names that begin
    /// with `x_` are extensions and are ignored.
    ///
    /// # Errors
    /// PLUGIN_PROTOCOL_ERROR, with what is wrong and where.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        parse_strictly(self.as_str())
    }
}

/// See [`RawResult::parse`].
///
/// # Errors
/// PLUGIN_PROTOCOL_ERROR, with what is wrong and where.
pub fn parse_strictly<T: DeserializeOwned>(json: &str) -> Result<T, Fault> {
    strictly(json, |_| false)
}

fn strictly<T: DeserializeOwned>(json: &str, allowed: impl Fn(&str) -> bool) -> Result<T, Fault> {
    let mut unknown = None;
    let mut reader = serde_json::Deserializer::from_str(json);
    let value = serde_ignored::deserialize(&mut reader, |path| {
        if let serde_ignored::Path::Map { key, .. } = &path
            && key.starts_with("x_")
        {
            return;
        }
        let path = path.to_string();
        if unknown.is_none() && !allowed(&path) {
            unknown = Some(path);
        }
    });
    let value = value.map_err(Fault::protocol)?;
    reader.end().map_err(Fault::protocol)?;
    match unknown {
        None => Ok(value),
        Some(path) => Err(Fault::protocol(format_args!("unknown field “{}”", shortened(&path)))),
    }
}

/// What one line of a plugin's turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The answer to a call.
    Reply(u64, Result<RawResult, Fault>),
    /// A reply with an id that the host never gives.
    Stray,
    /// A request or a notification, which only the host may send.
    Request,
    /// Not a JSON-RPC message: nobody can tell whose it was.
    Junk,
}

impl Message {
    /// Tells what a line is. The result is not looked into, so that no reply costs much more than its line.
    pub fn parse(line: String) -> Message {
        let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(&line) else { return Message::Junk };
        if envelope.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
            return Message::Junk;
        }
        if envelope.has_method {
            return Message::Request;
        }
        let Some(id) = envelope.id else { return Message::Junk };
        let Ok(id) = id.get().parse::<u64>() else { return Message::Stray };
        if let Some(name) = envelope.unknown {
            let fault = Fault::protocol(format_args!("unknown field “{}” in a reply", shortened(&name)));
            return Message::Reply(id, Err(fault));
        }
        match (envelope.result, envelope.error) {
            (Some(result), None) => {
                // A RawValue borrows from the line, so its place in it is its address less the line's.
                let from = result.get().as_ptr() as usize - line.as_ptr() as usize;
                let at = from..from + result.get().len();
                Message::Reply(id, Ok(RawResult { line, at }))
            }
            (None, Some(error)) => Message::Reply(id, Err(parse_error(error.get()))),
            _ => Message::Reply(id, Err(Fault::protocol("a reply has either a result or an error"))),
        }
    }
}

#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    has_method: bool,
    unknown: Option<String>,
}

// By hand: a derived `Option` would take `"result": null` for a missing result.
impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Envelope<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON-RPC message")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
                let mut envelope = Envelope::default();
                while let Some(Name(name)) = map.next_key::<Name<'de>>()? {
                    let field = match &*name {
                        "jsonrpc" => &mut envelope.jsonrpc,
                        "id" => &mut envelope.id,
                        "result" => &mut envelope.result,
                        "error" => &mut envelope.error,
                        other => {
                            map.next_value::<IgnoredAny>()?;
                            if other == "method" {
                                envelope.has_method = true;
                            } else if !other.starts_with("x_") {
                                envelope.unknown.get_or_insert_with(|| other.to_owned());
                            }
                            continue;
                        }
                    };
                    if field.replace(map.next_value()?).is_some() {
                        return Err(A::Error::custom("a field stands twice"));
                    }
                }
                Ok(envelope)
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

fn parse_error(json: &str) -> Fault {
    let WireError { code, message, data } = match strictly(json, |path| path.starts_with("data.")) {
        Ok(error) => error,
        Err(fault) => return fault,
    };
    let message = shortened(&message);
    match ErrorCode::from_wire(code) {
        Some(code) => Fault {
            code,
            message,
            retry_after: data.retry_after_ms.map(Duration::from_millis),
            reason: data.reason.map(|reason| shortened(&reason)),
        },
        None => Fault::protocol(format_args!("a plugin may not send the error code {code} ({message})")),
    }
}
