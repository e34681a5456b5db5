//! JSON Schema (2020-12) of what goes over the wire, made from the types that parse it.
//!
//! Two rules are beyond a schema: lengths are counted in characters here and may be bounded in bytes by the parser
//! as well, and a field that stands twice is refused by the parser alone.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{Schema, json_schema};
use serde_json::{Map, Value, json};

use crate::manifest::RawManifest;
use crate::messages::{
    ContentParams, InitializeParams, InitializeResult, PingResult, SearchParams, SearchReply, WireError,
};
use crate::models::{AlbumReply, ArtistReply, MAX_HEADERS, StreamInfo, TrackReply};

/// Names that the player sets itself, in any case of letters.
const OURS: [&str; 7] =
    ["host", "range", "if-range", "content-length", "transfer-encoding", "connection", "icy-metadata"];

/// A line of a plugin's; parameters and results by method are in `$defs`.
pub fn protocol() -> Value {
    let mut generator = generator();
    generator.subschema_for::<InitializeParams>();
    generator.subschema_for::<InitializeResult>();
    generator.subschema_for::<PingResult>();
    generator.subschema_for::<SearchParams>();
    generator.subschema_for::<ContentParams>();
    generator.subschema_for::<SearchReply>();
    generator.subschema_for::<TrackReply>();
    generator.subschema_for::<AlbumReply>();
    generator.subschema_for::<ArtistReply>();
    generator.subschema_for::<StreamInfo>();
    let error = generator.subschema_for::<WireError>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "segue.plugin/1",
        "description": "A reply: one line of a plugin's standard output. Parameters and results are in $defs.",
        "type": "object",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": "integer", "minimum": 0},
            "result": true,
            "error": error,
        },
        "required": ["jsonrpc", "id"],
        "oneOf": [{"required": ["result"]}, {"required": ["error"]}],
        "patternProperties": {"^x_": true},
        "additionalProperties": false,
        "$defs": definitions(&mut generator),
    })
}

/// A `plugin.json`.
pub fn manifest() -> Value {
    let mut generator = generator();
    let root = generator.subschema_for::<RawManifest>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "plugin.json of segue.plugin/1",
        "$ref": root.get("$ref"),
        "$defs": generator.take_definitions(true),
    })
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().into_generator()
}

/// Objects whose fields are all named take no others, but for extensions.
fn definitions(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut definitions = generator.take_definitions(true);
    for (name, definition) in &mut definitions {
        let Value::Object(definition) = definition else { continue };
        // What a plugin adds to an error for its own logs is no business of ours.
        if definition.contains_key("properties") && name != "ErrorData" {
            definition.insert("patternProperties".to_owned(), json!({"^x_": true}));
            definition.insert("additionalProperties".to_owned(), json!(false));
        }
        if name == "WireError"
            && let Some(data) = definition.get_mut("properties").and_then(|p| p.get_mut("data"))
        {
            *data = json!({"anyOf": [{"$ref": "#/$defs/ErrorData"}, {"not": {"type": "object"}}]});
        }
    }
    definitions
}

/// HTTP headers: names by RFC 9110, but none of the player's own; values without control characters.
pub(crate) fn headers(_: &mut SchemaGenerator) -> Schema {
    let any_case =
        |word: &str| -> String {
            word.chars()
                .map(|c| {
                    if c.is_alphabetic() { format!("[{}{c}]", c.to_ascii_uppercase()) } else { c.to_string() }
                })
                .collect()
        };
    let ours = OURS.map(any_case).join("|");
    json_schema!({
        "type": "object",
        "maxProperties": MAX_HEADERS,
        "propertyNames": {"pattern": format!("^(?!({ours})$)[!#$%&'*+.^_`|~0-9A-Za-z-]+$")},
        "additionalProperties": {"type": "string", "pattern": r"^[^\x00-\x08\x0a-\x1f\x7f]*$"},
    })
}
