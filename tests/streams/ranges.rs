//! Answers to ranges: proved before they are believed.

use crate::fault::{head, proper, say};
use crate::support::prelude::*;
use crate::table::{play, row};

/// A first answer that is cut, so that a second is asked for.
fn cut() -> crate::fault::Script {
    head("").body(90_000)
}

const PART: &str = "Content-Type: audio/wav\nETag: \"one\"\nContent-Range: bytes {from}-{last}/{total}\nContent-Length: {left}";
const WHOLE: &str = "Content-Type: audio/wav\nContent-Length: {total}";

#[tokio::test]
async fn whatever_a_server_answers_to_a_range_no_wrong_byte_is_heard() {
    let rows = vec![
        row("a good server is asked once", [proper()])
            .asks("one request", |seen| seen.len() == 1),
        row("a cut body is resumed at its byte", [cut(), proper()]).asks("from the byte", |seen| {
            seen.iter().map(|seen| seen.from).eq([Some(0), Some(90_000)])
        }),
        row("a part from a wrong first byte", [
            cut(),
            say("206 Partial Content", "Content-Range: bytes 89000-{last}/{total}").from(89_000).rest(),
            proper(),
        ]),
        row("a part from a later byte", [
            cut(),
            say("206 Partial Content", "Content-Range: bytes 90500-{last}/{total}").from(90_500).rest(),
            proper(),
        ]),
        row("a part that ends beyond the total", [
            cut(),
            say("206 Partial Content", "Content-Range: bytes {from}-{total}/{total}").rest().noise(1),
            proper(),
        ]),
        row("a part in another unit", [
            cut(),
            say("206 Partial Content", "Content-Range: items {from}-{last}/{total}").noise(50_000),
            proper(),
        ]),
        row("a part that says the right byte with a wrong length", [
            cut(),
            say("206 Partial Content", "Content-Range: bytes {from}-{last}/{total}\nContent-Length: 77").body(77),
            proper(),
        ]),
        row("a part with another total", [
            cut(),
            say("206 Partial Content", "Content-Range: bytes {from}-{last}/999999\nContent-Length: {left}").rest(),
        ])
        .asks("from its start again", |seen| seen[2].from == Some(0)),
        row("a part without Content-Range", [
            cut(),
            say("206 Partial Content", "Content-Length: {left}").rest(),
            proper(),
        ]),
        row("parts without Content-Range and nothing else", [
            cut(),
            say("206 Partial Content", "Content-Length: {left}").rest(),
        ])
        .fails(&["without saying which"]),
        row("several parts in one answer", [
            cut(),
            say("206 Partial Content", "Content-Type: multipart/byteranges; boundary=x\nContent-Length: 90")
                .raw("--x\r\nContent-Type: audio/wav\r\nContent-Range: bytes 90000-90009/{total}\r\n\r\n0123456789"),
            proper(),
        ]),
        row("a part although the whole was asked for, from the first byte on", [
            say("206 Partial Content", "Content-Length: {left}").rest(),
            say("206 Partial Content", PART).rest(),
        ]),
        row("the whole instead of the first part", [say("200 OK", WHOLE).rest()]),
        row("the whole instead of a later part", [
            cut(),
            say("200 OK", WHOLE).from(0).rest(),
        ]),
        row("the whole instead of a later part, cut again", [
            cut(),
            say("200 OK", WHOLE).from(0).body(150_000),
            say("200 OK", WHOLE).from(0).rest(),
        ]),
        row("a total that is not known", [
            say("206 Partial Content", "Content-Range: bytes {from}-{last}/*\nContent-Length: {left}").body(90_000),
            say("206 Partial Content", "Content-Range: bytes {from}-{last}/*\nContent-Length: {left}").rest(),
            // Only this tells that it was the end.
            say("416 Range Not Satisfiable", "Content-Range: bytes */{total}\nContent-Length: 0"),
        ]),
        row("a part of odd spelling", [
            cut(),
            say("206 partial", "content-range:   BYTES   {from} - {last} / {total}  \nCONTENT-LENGTH:{left}").rest(),
        ]),
        row("parts that are smaller than what was asked for", [
            say("206 Partial Content", "Content-Range: bytes 0-99999/{total}\nContent-Length: 100000").body(100_000),
            say("206 Partial Content", "Content-Range: bytes 100000-199999/{total}\nContent-Length: 100000")
                .body(100_000),
            proper(),
        ]),
        row("If-Range is sent, and a strong ETag is asked for", [cut(), proper()]).asks("If-Range", |seen| {
            seen[1].headers["if-range"].starts_with('"') && !seen[0].headers.contains_key("if-range")
        }),
        row("the ETag changes in mid-track", [
            say("206 Partial Content", PART).body(90_000),
            say("206 Partial Content", &PART.replace("one", "two")).rest(),
        ])
        .asks("from its start again", |seen| seen[2].from == Some(0)),
        row("the ETag changes at each request", ["one", "two", "three", "four", "five", "six"].map(|tag| {
            say("206 Partial Content", &PART.replace("one", tag)).body(90_000)
        }))
        .fails(&["changed", "ETag"]),
        row("the file changes and the server honours If-Range", [
            say("206 Partial Content", PART).body(90_000),
            say("200 OK", "ETag: \"two\"\nContent-Length: {total}").from(0).rest(),
        ])
        .asks("from its start again", |seen| seen[2].from == Some(0)),
        row("Last-Modified changes in mid-track", [
            say("206 Partial Content", &PART.replace("ETag: \"one\"", "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT"))
                .body(90_000),
            say("206 Partial Content", &PART.replace("ETag: \"one\"", "Last-Modified: Tue, 02 Jan 2024 00:00:00 GMT"))
                .rest(),
        ])
        .asks("from its start again", |seen| seen[2].from == Some(0)),
        row("a weak ETag is no proof and is not sent", [
            say("206 Partial Content", &PART.replace("\"one\"", "W/\"one\"")).body(90_000),
            say("206 Partial Content", &PART.replace("\"one\"", "W/\"two\"")).rest(),
        ])
        .asks("no If-Range", |seen| !seen[1].headers.contains_key("if-range")),
        row("416 at the end of a file whose length was not known", [
            say("200 OK", "Transfer-Encoding: chunked").chunked().rest(),
            say("416 Range Not Satisfiable", "Content-Range: bytes */{total}\nContent-Length: 0"),
        ]),
        row("416 in mid-track, against the length that was said", [
            cut(),
            say("416 Range Not Satisfiable", "Content-Range: bytes */{total}\nContent-Length: 0"),
            proper(),
        ]),
        row("416 with another length", [
            cut(),
            say("416 Range Not Satisfiable", "Content-Range: bytes */5000\nContent-Length: 0"),
        ])
        .fails(&["gave no data for", "416"]),
        row("FLAC cut five times", [
            cut(),
            head("").body(20_000),
            head("").body(1),
            head("").body(0),
            head("").body(20_000),
            proper(),
        ])
        .codec(Codec::Flac),
    ];
    play(1, rows).await;
}
