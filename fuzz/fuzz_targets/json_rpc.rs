//! Any line is told apart, any result is parsed as any type; a general JSON reader is of the same opinion.
#![no_main]

use libfuzzer_sys::fuzz_target;
use segue_protocol::messages::{InitializeResult, Message, PingResult, SearchReply};
use segue_protocol::models::{AlbumReply, ArtistReply, StreamInfo, TrackReply};
use serde_json::Value;

fuzz_target!(|line: String| {
    let value = serde_json::from_str::<Value>(&line);
    let message = Message::parse(line);
    if let Message::Reply(_, Ok(result)) = &message {
        let _ = result.parse::<InitializeResult>();
        let _ = result.parse::<PingResult>();
        let _ = result.parse::<SearchReply>();
        let _ = result.parse::<TrackReply>();
        let _ = result.parse::<AlbumReply>();
        let _ = result.parse::<ArtistReply>();
        if let Ok(info) = result.parse::<StreamInfo>() {
            let again = serde_json::to_string(&info).map(|text| segue_protocol::messages::parse_strictly(&text));
            assert!(matches!(again, Ok(Ok(found)) if info == found));
        }
    }
    // The general reader gives up on deep nesting, which is skipped here.
    let Ok(value) = value else { return };
    let well_formed = value.get("jsonrpc") == Some(&Value::from("2.0"));
    match message {
        Message::Reply(id, answer) => {
            assert_eq!(value["id"].as_u64(), Some(id));
            assert!(well_formed && value.get("method").is_none());
            if let Ok(result) = answer {
                assert_eq!(serde_json::from_str::<Value>(result.as_str()).ok().as_ref(), value.get("result"));
                assert!(value.get("error").is_none());
            }
        }
        Message::Request => assert!(well_formed && value.get("method").is_some()),
        Message::Stray => assert!(value.get("id").is_some_and(|id| id.as_u64().is_none())),
        // A field that stands twice is nobody's; the general reader takes the last.
        Message::Junk => {}
    }
});
