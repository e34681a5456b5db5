//! TLS and HTTP/2.

use crate::fault::{Door, Script, head, proper};
use crate::table::{play, row};

#[tokio::test]
async fn what_is_wrong_with_a_secure_connection_is_told_in_words() {
    let rows = vec![
        row("a certificate that holds", [proper()]).at(Door::Tls),
        row("cut in mid-body without a TLS goodbye", [head("").body(90_000).reset(), proper()]).at(Door::Tls),
        row("silent in mid-body", [head("").body(90_000).stall(), proper()]).at(Door::Tls),
        row("an authority that nobody knows", [proper()])
            .at(Door::Stranger)
            .fails(&["no secure connection", "signed by nobody whom this machine knows"]),
        row("another host's certificate", [proper()]).at(Door::WrongName).fails(&[
            "no secure connection",
            "is for another host",
            "music.example",
        ]),
        // Told only after a row of its lane that was served, with a date.
        row("a certificate of the past", [proper()]).at(Door::Expired).fails(&[
            "no secure connection",
            "was good until 2002-01-01",
            "clock",
        ]),
        row("a server that hangs up when it is greeted", [proper()])
            .at(Door::HangsUp)
            .fails(&["gave no data for", "hung up"]),
        row("garbage instead of a greeting", [proper()])
            .at(Door::Garbage)
            .fails(&["gave no data for", "https with something else"]),
        row("plain HTTP where TLS is expected", [proper()])
            .at(Door::PlainTls)
            .fails(&["gave no data for", "begins with http:"]),
        row("HTTP/2", [proper()]).at(Door::Http2),
        row("HTTP/2, a stream that is reset in mid-body", [head("").body(90_000).reset(), proper()])
            .at(Door::Http2)
            .asks("from the byte", |seen| seen.len() == 2 && seen[1].from.is_some_and(|from| from <= 90_000)),
        row("HTTP/2, a stream that is refused", [Script::default().reset(), proper()]).at(Door::Http2),
        row("HTTP/2, GOAWAY in mid-body", [head("").body(90_000).go_away().rest(), proper()])
            .at(Door::Http2)
            .asks("one request", |seen| seen.len() == 1),
        row("HTTP/2, a stream that ends too early", [head("").body(90_000), proper()]).at(Door::Http2),
        row("HTTP/2, a stream that goes silent", [head("").body(90_000).stall(), proper()]).at(Door::Http2),
        row("HTTP/2, no answer", [Script::default().stall(), proper()]).at(Door::Http2),
    ];
    play(6, rows).await;
}
