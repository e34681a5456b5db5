//! Heads: late, endless, broken; redirects; refusals; requests for patience.

use crate::fault::{Authority, Door, FaultServer, Script, head, proper, say};
use crate::support::prelude::*;
use crate::table::{play, row};

#[tokio::test]
async fn whatever_stands_in_a_head_is_borne_or_told() {
    let endless = "X-Line: 0123456789\r\n".repeat(40_000);
    let rows = vec![
        row("reset before the head", [Script::default().reset(), proper()]),
        row("closed before the head", [Script::default(), proper()]),
        row("closed in the head", [Script::default().raw("HTTP/1.1 200 OK\r\nContent-Ty"), proper()]),
        row("reset in the head", [Script::default().raw("HTTP/1.1 200 OK\r\nContent-Ty").reset(), proper()]),
        row("something that is not HTTP", [Script::default().raw("hello, who is there?\r\n\r\n"), proper()]),
        row("something that is not HTTP, for ever", [Script::default().raw("hello, who is there?\r\n\r\n")])
            .fails(&["gave no data for"]),
        row("no answer at all, once", [Script::default().stall(), proper()]),
        row(
            "a byte of the head in a second",
            [Script::default().pace(1).raw("HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\n\r\n"), proper()],
        ),
        row(
            "100, 102 and 103 before the answer",
            [Script::default()
                .raw("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n")
                .raw("HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n")
                .wait(50)
                .and(proper())],
        ),
        row(
            "a header of a megabyte",
            [say("200 OK", &format!("X-Long: {}", "x".repeat(1 << 20))).rest(), proper()],
        ),
        row(
            "header lines without an end",
            [Script::default().raw("HTTP/1.1 200 OK\r\n").raw(&endless).stall(), proper()],
        ),
        row(
            "header lines without an end, for ever",
            [Script::default().raw("HTTP/1.1 200 OK\r\n").raw(&endless).stall()],
        )
        .fails(&["gave no data for"]),
    ];
    play(3, rows).await;
}

#[tokio::test]
async fn a_kept_connection_that_is_closed_under_a_request_is_not_heard() {
    let (card, server) =
        (Card::new().clock(Clock::Real).plug(), FaultServer::start(&Authority::new("Segue's tests")));
    let source = Recording::music(3_900, 44_100, 16, 3.0);
    let part = |from: usize| {
        let last = from + 99_999;
        let range = format!("Content-Range: bytes {from}-{last}/{{total}}\nContent-Length: 100000");
        say("206 Partial Content", &range).body(100_000).next()
    };
    let scripts = vec![part(0), Script::default().reset(), part(100_000), Script::default(), proper()];
    let url = server.serve(Door::Http, "a.wav", source.encode(Codec::Wav), scripts);
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_to_the_end(&[url]).await;
    assert_exact(&card.music(), &source);
    let seen = server.seen("a.wav");
    let froms: Vec<_> = seen.iter().map(|seen| seen.from.unwrap()).collect();
    assert_eq!(froms, [0, 100_000, 100_000, 200_000, 200_000]);
    let connections: Vec<_> = seen.iter().map(|seen| seen.connection).collect();
    assert!(connections.windows(2).any(|two| two[0] == two[1]), "none was kept: {connections:?}");
    // It did not even wait before it asked again.
    assert_eq!(daemon.logged("no data comes"), 0);
}

#[tokio::test]
async fn redirects_are_followed_as_far_as_is_safe() {
    let to = |status: &str, location: &str| say(status, &format!("Location: {location}\nContent-Length: 0"));
    let rows = vec![
        row("301, relative", [to("301 Moved Permanently", "{path}/moved"), proper()]),
        row("302 to another origin", [to("302 Found", "{elsewhere}"), proper()])
            .asks("there", |seen| seen[1].door == Door::Elsewhere),
        row("303", [to("303 See Other", "{path}"), proper()]),
        row("307", [to("307 Temporary Redirect", "{path}?other=1"), proper()]),
        row("308 of a path without a slash", [to("308 Permanent Redirect", "./row-x/../..{path}"), proper()]),
        row(
            "a redirect for each part",
            [to("302 Found", "{elsewhere}"), head("").body(90_000), to("302 Found", "{elsewhere}"), proper()],
        )
        .asks("the same byte there", |seen| seen[3].from == Some(90_000)),
        row(
            "ten hops",
            [
                to("302 Found", "{path}"),
                to("302 Found", "{path}"),
                to("302 Found", "{path}"),
                to("302 Found", "{path}"),
                to("302 Found", "{path}"),
                to("302 Found", "{path}"),
                to("302 Found", "{path}"),
                to("302 Found", "{path}"),
                to("302 Found", "{path}"),
                to("302 Found", "{path}"),
                proper(),
            ],
        ),
        row("a loop", [to("302 Found", "{path}")]).fails(&["redirects more than ten times"]),
        row("a redirect to nowhere", [say("302 Found", "Content-Length: 0"), proper()]),
        row("a redirect to nowhere, for ever", [say("302 Found", "Content-Length: 0")])
            .fails(&["redirects to nowhere"]),
        row("a redirect to something else than HTTP", [to("302 Found", "file:///etc/passwd")])
            .fails_elsewhere(&["only http and https can be played"]),
        row("https to http", [to("302 Found", "{elsewhere}")])
            .at(Door::Tls)
            .fails_elsewhere(&["from https to http"]),
        row(
            "headers of a plugin's stay with their origin",
            [to("302 Found", "{elsewhere}"), head("").body(90_000), proper()],
        )
        .by_plugin()
        .asks("not elsewhere", |seen| {
            seen.iter().all(|seen| seen.headers.contains_key("authorization") == (seen.door == Door::Http))
        }),
    ];
    play(4, rows).await;
}

#[tokio::test]
async fn refusals_are_borne_as_long_as_is_asked_and_told_when_they_last() {
    let rows = vec![
        row("429 with seconds", [say("429 Too Many Requests", "Retry-After: 1\nContent-Length: 0"), proper()])
            .asks("not before", |seen| seen[1].at - seen[0].at >= Duration::from_millis(990)),
        row("503 with a date", [say("503 Service Unavailable", "Retry-After: {soon}\nContent-Length: 0"), proper()])
            .asks("not before", |seen| seen[1].at - seen[0].at >= Duration::from_millis(990)),
        row("503 with a date by a clock that is decades wrong", [
            say(
                "503 Service Unavailable",
                "Date: Thu, 01 Jan 1970 00:00:00 GMT\nRetry-After: Thu, 01 Jan 1970 00:00:01 GMT\nContent-Length: 0",
            ),
            proper(),
        ])
        .asks("not before", |seen| seen[1].at - seen[0].at >= Duration::from_millis(990)),
        row("503 in mid-track", [head("").body(90_000), say("503 Service Unavailable", "Content-Length: 0"), proper()]),
        row("503 with an absurd time", [say("503 Service Unavailable", "Retry-After: 99999999999\nContent-Length: 0")])
            .fails(&["gave no data for", "503"]),
        row("429 with nonsense", [say("429 Too Many Requests", "Retry-After: soon\nContent-Length: 0"), proper()]),
        row("500 for ever", [say("500 Internal Server Error", "Content-Length: 0")]).fails(&["gave no data for", "500"]),
        row("502, then well", [say("502 Bad Gateway", "Content-Length: 0"), proper()]),
        row("404 of a plain URL", [say("404 Not Found", "Content-Length: 0")]).fails(&["404", "refuses"]),
        row("403 of a plain URL in mid-track, once", [
            head("").body(90_000),
            say("403 Forbidden", "Content-Length: 0"),
            proper(),
        ]),
        row("400", [say("400 Bad Request", "Content-Length: 0")]).fails(&["400", "refuses"]),
        row("204", [say("204 No Content", "")]).fails(&["204"]),
        row("401 of a plugin's in mid-track", [head("").body(90_000), say("401 Unauthorized", "Content-Length: 0"), proper()])
            .by_plugin(),
        row("403 of a plugin's in mid-track", [head("").body(90_000), say("403 Forbidden", "Content-Length: 0"), proper()])
            .by_plugin(),
        row("404 of a plugin's in mid-track", [head("").body(90_000), say("404 Not Found", "Content-Length: 0"), proper()])
            .by_plugin(),
        row("410 of a plugin's at the start", [say("410 Gone", "Content-Length: 0"), proper()]).by_plugin(),
        row("403 of each URL that the plugin gives", [say("403 Forbidden", "Content-Length: 0")])
            .by_plugin()
            .fails(&["403", "fresh address"]),
        row("a dead first mirror", [proper()]).by_mirror(),
    ];
    play(5, rows).await;
}
