//! What the schema says and what the parser does: one table, and both agree on each row.

use std::time::Instant;

use segue_protocol::Fault;
use segue_protocol::manifest::Manifest;
use segue_protocol::messages::{InitializeResult, Message, PingResult, SearchReply, parse_strictly};
use segue_protocol::models::{AlbumReply, ArtistReply, StreamInfo, TrackReply};

use super::*;
use crate::track::{GrantedFolders, Reach};

/// The daemon's own way from a result to its values.
pub(super) fn parse(of: &str, record: &Value) -> Result<(), Fault> {
    let plugin = id("demo");
    let text = record.to_string();
    match of {
        "StreamInfo" => {
            let info: StreamInfo = parse_strictly(&text)?;
            let granted = GrantedFolders::of(plugin, vec![PathBuf::from("/srv/music")], vec![]);
            models::resolved(info, Reach::Internet, granted, Instant::now()).map(drop)
        }
        "SearchReply" => {
            let reply: SearchReply = parse_strictly(&text)?;
            reply.results.into_iter().try_for_each(|found| models::search_hit(&plugin, found).map(drop))
        }
        "TrackReply" => models::track_info(parse_strictly::<TrackReply>(&text)?.track).map(drop),
        "AlbumReply" => models::album_info(&plugin, parse_strictly::<AlbumReply>(&text)?.album).map(drop),
        "ArtistReply" => models::artist_info(&plugin, parse_strictly::<ArtistReply>(&text)?.artist).map(drop),
        "PingResult" => parse_strictly::<PingResult>(&text).map(drop),
        "InitializeResult" => parse_strictly::<InitializeResult>(&text).map(drop),
        "WireError" => {
            let line = json!({"jsonrpc": "2.0", "id": 1, "error": record}).to_string();
            let Message::Reply(1, Err(fault)) = Message::parse(line) else { panic!("no error: {record}") };
            if fault.code == ErrorCode::PluginProtocolError { Err(fault) } else { Ok(()) }
        }
        "Manifest" => Manifest::parse(text.as_bytes(), "demo").map(drop).map_err(Fault::protocol),
        other => panic!("a row of no type: {other}"),
    }
}

/// The schema of one type, or of a line, from a file in the tree.
pub(super) fn schema(of: Option<&str>, file: &str) -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("plugins/schema/{file}.schema.json"));
    let mut schema: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    if let Some(of) = of {
        schema =
            json!({"$schema": schema["$schema"], "$ref": format!("#/$defs/{of}"), "$defs": schema["$defs"]});
    }
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn schema_and_parser_agree_on_each_row_of_the_table() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins/schema/records.jsonl");
    let table = fs::read_to_string(table).unwrap();
    let mut rows = 0;
    let mut wrong = Vec::new();
    for line in table.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let (of, good, why) = (row["of"].as_str().unwrap(), row["good"].as_bool().unwrap(), &row["why"]);
        let file = if of == "Manifest" { "plugin-manifest-1" } else { "plugin-protocol-1" };
        let by_schema = schema(Some(of), file).is_valid(&row["record"]);
        let by_parser = parse(of, &row["record"]);
        if (by_schema, by_parser.is_ok()) != (good, good) {
            wrong.push(format!("{of}, {why}: good {good}, schema {by_schema}, parser {by_parser:?}"));
        }
        rows += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows >= 60, "{rows} rows");
}
