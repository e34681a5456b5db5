//! Bodies that are cut, stalled, mislabelled or badly chunked.

use crate::fault::{Script, head, proper, say};
use crate::support::prelude::*;
use crate::table::{play, row};

const CHUNKED: &str = "Content-Type: audio/wav\nTransfer-Encoding: chunked";
const WHOLE: &str = "Content-Type: audio/wav\nContent-Length: {total}";
/// Longer than any file here.
const TOO_LONG: &str = "Content-Type: audio/wav\nContent-Length: 999999";

fn chunked() -> Script {
    say("200 OK", CHUNKED).chunked()
}

/// Of HTTP/1.0, whose bodies end with the connection.
fn old() -> Script {
    Script::default().raw("HTTP/1.0 200 OK\r\nContent-Type: audio/wav\r\n\r\n")
}

#[tokio::test]
async fn whatever_happens_to_a_body_no_wrong_byte_is_heard() {
    let rows = vec![
        row("reset in mid-body", [head("").body(90_000).reset(), proper()]),
        row("reset right after the head", [head("").reset(), proper()]),
        row("closed right after the head", [head(""), proper()]),
        row("silent in mid-body with an open connection", [head("").body(90_000).stall(), proper()])
            .asks("from the byte", |seen| seen[1].from == Some(90_000)),
        row("silent right after the head", [head("").stall(), proper()]),
        row("silent for half of the time that is borne", [head("").body(90_000).wait(500).rest()])
            .asks("one request", |seen| seen.len() == 1),
        row("a few bytes a second in mid-body", [head("").body(90_000).pace(20).rest(), proper()]),
        row("a few bytes a second and nothing else", [head("").pace(20).rest()]).fails(&["gave no data for"]),
        row(
            "cut without ranges and with a length",
            [say("200 OK", WHOLE).from(0).body(90_000), say("200 OK", WHOLE).from(0).rest()],
        ),
        row(
            "cut without ranges at each request",
            [
                say("200 OK", WHOLE).from(0).body(60_000),
                say("200 OK", WHOLE).from(0).body(120_000),
                say("200 OK", WHOLE).from(0).body(180_000),
                say("200 OK", WHOLE).from(0).rest(),
            ],
        ),
        row("cut at the same byte for ever", [say("200 OK", WHOLE).from(0).body(90_000)])
            .fails(&["gave no data for"]),
        row("longer than its Content-Length says", [say("200 OK", WHOLE).rest().noise(5_000)]),
        row("a part that is longer than it says", [head("").body(90_000), head("").rest().noise(5_000)]),
        row("HTTP/1.0 without a length", [old().from(0).rest()]),
        row("HTTP/1.0 without a length, cut: a WAV tells", [old().from(0).body(90_000)])
            .fails_as("decode", &["/row-", "earlier than it says"]),
        row("HTTP/1.0 without a length, cut: a FLAC tells", [old().from(0).body(90_000)])
            .codec(Codec::Flac)
            .fails_as("decode", &["/row-", "earlier than it says"]),
        row("HTTP/1.0 without a length, reset", [old().from(0).body(90_000).reset(), old().from(0).rest()]),
        row("a Content-Length that is too long", [say("200 OK", TOO_LONG).from(0).rest()]),
        row(
            "a Content-Length that is too short",
            [say("200 OK", "Content-Type: audio/wav\nContent-Length: 100000").from(0).body(100_000)],
        )
        .fails_as("decode", &["/row-"]),
        row("a negative Content-Length", [say("200 OK", "Content-Length: -5").from(0).rest(), proper()]),
        row(
            "a Content-Length that is no number, and nothing else",
            [say("200 OK", "Content-Length: many").from(0).rest()],
        )
        .fails(&["gave no data for"]),
        row(
            "two equal Content-Lengths",
            [say("200 OK", "Content-Length: {total}\nContent-Length: {total}").from(0).rest()],
        ),
        row(
            "two different Content-Lengths",
            [say("200 OK", "Content-Length: {total}\nContent-Length: 5000").from(0).rest(), proper()],
        ),
        row(
            "a length and chunks",
            [say("200 OK", "Content-Length: 5000\nTransfer-Encoding: chunked")
                .from(0)
                .chunked()
                .rest()
                .last_chunk()],
        ),
        row("proper chunks", [chunked().rest().last_chunk()]),
        row(
            "chunks without the last one",
            [chunked().body(90_000), chunked().body(90_000), chunked().rest().last_chunk()],
        ),
        row("chunks whose last one never comes", [chunked().rest()]),
        row(
            "chunks in parts",
            [
                head("").body(90_000),
                say(
                    "206 Partial Content",
                    "Content-Range: bytes {from}-{last}/{total}\nTransfer-Encoding: chunked",
                )
                .chunked()
                .rest()
                .last_chunk(),
            ],
        ),
        row(
            "a chunk size that is no number",
            [chunked().body(90_000).raw("xyz\r\n"), chunked().rest().last_chunk()],
        ),
        row(
            "a chunk size beyond all numbers",
            [chunked().body(90_000).raw("fffffffffffffffffffff\r\n"), chunked().rest().last_chunk()],
        ),
        row(
            "a chunk of as many bytes as can be said",
            [chunked().body(90_000).raw("fffffffffffffff0\r\n"), chunked().rest().last_chunk()],
        ),
        row(
            "chunks with extensions and trailers",
            [say("200 OK", CHUNKED)
                .raw("2710;name=\"value\"\r\n")
                .body(10_000)
                .raw("\r\n")
                .chunked()
                .rest()
                .raw("0;last\r\nX-Trailer: yes\r\nContent-Length: 5\r\n\r\n")],
        ),
        row(
            "chunks with an endless extension",
            [
                say("200 OK", CHUNKED)
                    .raw(&format!("2710;{}\r\n", "x".repeat(100_000)))
                    .body(10_000)
                    .raw("\r\n"),
                proper(),
            ],
        ),
        row(
            "gzip although it was refused, once",
            [say("200 OK", "Content-Encoding: gzip\nContent-Length: 20000").noise(20_000), proper()],
        ),
        row(
            "gzip although it was refused, in mid-track",
            [
                head("").body(90_000),
                say(
                    "206 Partial Content",
                    "Content-Encoding: gzip\nContent-Range: bytes {from}-{last}/{total}",
                )
                .noise(20_000),
                proper(),
            ],
        ),
        row(
            "gzip although it was refused, for ever",
            [say("200 OK", "Content-Encoding: gzip\nContent-Length: 20000").noise(20_000)],
        )
        .fails(&["compressed (gzip)"]),
        row(
            "a Content-Encoding that is none",
            [say("200 OK", &format!("{WHOLE}\nContent-Encoding: utf-8")).rest()],
        ),
        row("a whole track in one-kilobyte pieces", [head("").pace(400_000).rest()]).codec(Codec::Flac),
    ];
    play(2, rows).await;
}
