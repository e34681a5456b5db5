//! What plugins wrote and how they are, on the bus and from the shell.

use std::collections::HashMap;
use std::process::Stdio;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use zbus::{OwnedVariant, Proxy, Variant};

use crate::bus::*;
use crate::client::{done, next_line, run, segue as client};

type Lines = Vec<(String, String)>;
type Dict = HashMap<String, OwnedVariant>;

/// A plugin that runs, and what speaks to it.
struct Parrot {
    plugins: Proxy<'static>,
    catalog: Proxy<'static>,
}

impl Parrot {
    async fn enabled(fixture: &Fixture) -> Parrot {
        done(fixture, &["plugin", "trust", "parrot", "--yes"]).await;
        done(fixture, &["plugin", "enable", "parrot", "--all"]).await;
        let connection = fixture.bus.connect().await;
        let plugins = segue(&connection, "org.segue.Plugins1").await;
        let catalog = segue(&connection, "org.segue.Catalog1").await;
        Parrot { plugins, catalog }
    }

    /// Makes it write this so many times.
    async fn say(&self, words: &str, times: u32) {
        let options = HashMap::from([("limit", Variant::from(times)), ("plugin", Variant::from("parrot"))]);
        type Found = (Vec<Dict>, HashMap<String, (i32, String)>);
        let found: Found = self.catalog.call("Search", &(words, options)).await.unwrap();
        assert!(found.1.is_empty(), "{found:?}");
    }

    async fn logs(&self, count: u32) -> Lines {
        self.plugins.call("Logs", &("parrot", count)).await.unwrap()
    }

    async fn read(&self, after: u64, wait_ms: u32) -> (u64, Lines) {
        self.plugins.call("ReadLog", &("parrot", after, wait_ms)).await.unwrap()
    }

    /// Reads until the log has so many lines: they come through a pipe of their own.
    async fn written(&self, lines: u64) {
        let mut newest = 0;
        while newest < lines {
            newest = self.read(newest, 20_000).await.0;
        }
    }
}

fn line(level: &str, text: &str) -> (String, String) {
    (level.to_owned(), text.to_owned())
}

#[tokio::test]
async fn a_follower_waits_for_the_next_line_and_gets_each_once() {
    let fixture = Fixture::ready().await;
    let parrot = Parrot::enabled(&fixture).await;
    assert_eq!(parrot.read(0, 0).await, (0, vec![]), "nothing was written yet");
    parrot.say("W! careful", 1).await;
    let (newest, lines) = parrot.read(0, 20_000).await;
    assert_eq!((newest, lines), (1, vec![line("warn", "careful")]));
    assert_eq!(parrot.read(1, 0).await, (1, vec![]), "it waited, or told a line twice");
    let (read, ()) = tokio::join!(parrot.read(1, 20_000), parrot.say("E! there", 1));
    assert_eq!(read, (2, vec![line("error", "there")]));
    assert_eq!(parrot.read(77, 0).await.1.len(), 2, "a number of another run's brings all");
    assert_eq!(parrot.logs(1).await, [line("error", "there")]);
}

#[tokio::test]
async fn a_log_is_bounded_and_a_secret_is_not_in_it() {
    let fixture = Fixture::ready().await;
    let parrot = Parrot::enabled(&fixture).await;
    parrot.say("the word is polly-7291", 1).await;
    parrot.written(1).await;
    assert_eq!(parrot.logs(10).await, [line("info", "the word is [redacted]")]);
    for round in 1..=3 {
        parrot.say("D! and on", 500).await;
        parrot.written(1 + round * 500).await;
    }
    assert_eq!(parrot.logs(u32::MAX).await.len(), 1_000);
    assert_eq!(parrot.logs(0).await, []);
    assert_eq!(parrot.read(0, 0).await.1.len(), 1_000);
}

#[tokio::test]
async fn followers_are_bounded_and_the_others_still_get_their_lines() {
    let fixture = Fixture::ready().await;
    let parrot = Parrot::enabled(&fixture).await;
    let read = async || {
        let answer = parrot.plugins.call_method("ReadLog", &("parrot", 0_u64, 20_000_u32)).await;
        answer
            .map(|answer| answer.body().deserialize::<(u64, Lines)>().unwrap().1.len())
            .map_err(|error| error.to_string())
    };
    let all = join_all((0..40).map(|_| read()));
    let refused = async {
        // The first question that is refused shows that all places are taken.
        while !read().await.is_err_and(|error| error.contains("Busy")) {}
        parrot.say("at last", 1).await;
    };
    let (all, ()) = tokio::join!(all, refused);
    let busy = all.iter().filter(|answer| answer.as_ref().is_err_and(|error| error.contains("Busy"))).count();
    let told = all.iter().filter(|answer| **answer == Ok(1)).count();
    assert_eq!((busy + told, told), (40, 32), "{all:?}");
}

#[tokio::test]
async fn health_tells_what_was_counted_and_unknown_plugins_are_refused() {
    let fixture = Fixture::ready().await;
    let parrot = Parrot::enabled(&fixture).await;
    parrot.say("hello", 1).await;
    let health: Dict = parrot.plugins.call("Health", &"parrot").await.unwrap();
    assert_eq!(*health["health"], Variant::from("healthy"));
    assert_eq!(*health["running"], Variant::from(true));
    // The handshake when it was enabled, and the search; in between it may have been started again.
    let number = |key: &str| u64::try_from(health[key].try_clone().unwrap()).unwrap();
    assert!(number("calls") >= 2 && number("bytes_sent") > 0 && number("bytes_received") > 0, "{health:?}");
    assert_eq!((number("errors"), number("timeouts"), number("late_replies")), (0, 0, 0));
    assert!(i64::try_from(health["p50_us"].try_clone().unwrap()).unwrap() > 0);
    let review: Dict = parrot.plugins.call("Inspect", &"parrot").await.unwrap();
    assert_eq!(*review["health"], Variant::from("healthy"));
    assert_eq!(*review["protocol"], Variant::from("segue.plugin/1"));
    assert!(!review.contains_key("log"), "reviews are for everybody, logs are not");
    let missing = "org.segue.Error.NoSuchPlugin";
    assert_eq!(error_name(parrot.plugins.call_method("Health", &"none").await), missing);
    assert_eq!(error_name(parrot.plugins.call_method("Logs", &("none", 1_u32)).await), missing);
    assert_eq!(error_name(parrot.plugins.call_method("ReadLog", &("none", 0_u64, 0_u32)).await), missing);
    let long = "x".repeat(1 << 20);
    let bad = "org.segue.Error.BadArgument";
    assert_eq!(error_name(parrot.plugins.call_method("Health", &long).await), bad);
}

#[tokio::test]
async fn the_client_shows_logs_health_and_what_holds_plugins() {
    let fixture = Fixture::ready().await;
    let parrot = Parrot::enabled(&fixture).await;
    let list = done(&fixture, &["plugin", "list"]).await;
    let entry = list.lines().find(|line| line.starts_with("parrot")).unwrap();
    assert!(entry.contains("enabled") && entry.contains("healthy"), "{list}");
    assert!(entry.contains("enforced") || entry.contains("advisory"), "{list}");
    let json: Value = serde_json::from_str(&done(&fixture, &["plugin", "list", "--json"]).await).unwrap();
    assert!(json.as_array().unwrap().iter().any(|plugin| plugin["id"] == "parrot"), "{json}");
    let review = done(&fixture, &["plugin", "inspect", "parrot"]).await;
    for part in ["segue.plugin/1", "secret:word — has something to hide", "isolation", "healthy", "warning"]
    {
        assert!(review.contains(part), "{part}: {review}");
    }
    let json: Value =
        serde_json::from_str(&done(&fixture, &["plugin", "inspect", "parrot", "--json"]).await).unwrap();
    assert_eq!(json["fingerprint"].as_str().unwrap().len(), 64);

    parrot.say("W! one\u{1b}[2J", 2).await;
    parrot.written(2).await;
    assert_eq!(done(&fixture, &["plugin", "logs", "parrot", "-n", "1"]).await, "warn  one\u{fffd}[2J\n");
    let json = done(&fixture, &["plugin", "logs", "parrot", "--json"]).await;
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((json.lines().count(), &first["level"]), (2, &Value::from("warn")));

    let health = done(&fixture, &["plugin", "health"]).await;
    assert!(health.lines().any(|line| line.starts_with("parrot") && line.contains("healthy")), "{health}");
    let one = done(&fixture, &["plugin", "health", "parrot"]).await;
    assert!(one.contains("late replies") && one.contains("half within"), "{one}");
    let json: Value = serde_json::from_str(&done(&fixture, &["plugin", "health", "--json"]).await).unwrap();
    assert_eq!(json["parrot"]["health"], "healthy");
    for arguments in
        [&["plugin", "logs", "none"][..], &["plugin", "logs", "none", "-f"], &["plugin", "health", "none"]]
    {
        let gone = run(&fixture, arguments).await;
        assert_eq!(gone.status.code(), Some(1), "{gone:?}");
        assert!(String::from_utf8_lossy(&gone.stderr).contains("no plugin “none”"), "{gone:?}");
    }
}

#[tokio::test]
async fn following_shows_the_newest_lines_and_goes_on() {
    let fixture = Fixture::ready().await;
    let parrot = Parrot::enabled(&fixture).await;
    for words in ["old", "new"] {
        parrot.say(words, 1).await;
    }
    parrot.written(2).await;
    let mut program = client(&fixture, &["plugin", "logs", "parrot", "-n", "1", "-f"]);
    let mut following = program.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    assert_eq!(next_line(&mut lines).await, "info  new");
    for words in ["E! later", "D! still later"] {
        parrot.say(words, 1).await;
    }
    assert_eq!(next_line(&mut lines).await, "error later");
    assert_eq!(next_line(&mut lines).await, "debug still later");
    following.kill().await.unwrap();
}
