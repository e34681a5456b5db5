//! Rows of a table: what a server does, and what has to come of it.
//!
//! Each row is a file of its own with a sound of its own, so that a mix-up is heard. Rows share a few daemons, each
//! with its own card on the fast clock, and are judged one by one; all that failed are shown together.

use crate::fault::{Authority, Door, FaultServer, Script, Seen};
use crate::gaps::{heard_since, heard_with_gaps};
use crate::support::prelude::*;

/// Daemons at a time: rows mostly wait.
const LANES: usize = 4;
/// Longer than any row takes with the short time-outs of these tests, also on a busy machine: the longest are over
/// after six seconds.
const LIMIT: Duration = Duration::from_secs(30);
/// Stands in each URL and header, and must never be seen.
const SECRET: &str = "s3cret";

/// What has to come of it.
#[derive(Clone, Debug)]
enum Outcome {
    /// The source is heard, each frame once; where the card ran dry there is silence.
    Heard,
    /// An error of this code that holds these words; what was heard before is of the source.
    Fails { code: &'static str, words: Vec<&'static str> },
}

/// One row.
pub struct Row {
    name: &'static str,
    door: Door,
    codec: Codec,
    seconds: f64,
    scripts: Vec<Script>,
    outcome: Outcome,
    check: Option<Check>,
    via: Via,
    names_host: bool,
}

type Check = (&'static str, fn(&[Seen]) -> bool);

/// How the URL gets to the daemon.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Via {
    /// It is played itself.
    Url,
    /// From a plugin, a fresh one each time, with a header.
    Plugin,
    /// From a plugin; the first address is this status for ever, the alternative is the file.
    Mirror,
}

/// A file that is asked for by plain HTTP, and how its requests are answered; the last script is for all further
/// ones. It is heard, unless the row says otherwise.
pub fn row<const N: usize>(name: &'static str, scripts: [Script; N]) -> Row {
    Row {
        name,
        door: Door::Http,
        codec: Codec::Wav,
        seconds: 1.5,
        scripts: scripts.to_vec(),
        outcome: Outcome::Heard,
        check: None,
        via: Via::Url,
        names_host: true,
    }
}

impl Row {
    pub fn at(mut self, door: Door) -> Row {
        self.door = door;
        self
    }

    pub fn codec(mut self, codec: Codec) -> Row {
        self.codec = codec;
        self
    }

    /// A plugin gives the address.
    pub fn by_plugin(mut self) -> Row {
        self.via = Via::Plugin;
        self
    }

    /// A plugin gives the address as an alternative to one that is dead.
    pub fn by_mirror(mut self) -> Row {
        self.via = Via::Mirror;
        self
    }

    /// With an error of the stream that holds these words.
    pub fn fails(self, words: &[&'static str]) -> Row {
        self.fails_as("stream", words)
    }

    /// The same, but it is another host that is named.
    pub fn fails_elsewhere(mut self, words: &[&'static str]) -> Row {
        self.names_host = false;
        self.fails(words)
    }

    pub fn fails_as(mut self, code: &'static str, words: &[&'static str]) -> Row {
        self.outcome = Outcome::Fails { code, words: words.to_vec() };
        self
    }

    /// What must hold of the requests.
    pub fn asks(mut self, what: &'static str, check: fn(&[Seen]) -> bool) -> Row {
        self.check = Some((what, check));
        self
    }
}

/// Plays the rows and says which failed. `group` makes their sounds differ from those of other groups.
pub async fn play(group: u64, rows: Vec<Row>) {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("Segue's tests");
    let certificates = folder.path().join("authority.pem");
    authority.write(&certificates);
    let server = FaultServer::start(&authority);
    let count = rows.len();
    let mut lanes: Vec<Vec<(u64, Row)>> = (0..LANES).map(|_| Vec::new()).collect();
    for (nth, row) in rows.into_iter().enumerate() {
        lanes[nth % LANES].push((group * 1_000 + nth as u64, row));
    }
    let lanes = lanes.into_iter().filter(|lane| !lane.is_empty());
    let played = lanes.map(|rows| play_lane(&server, &certificates, rows));
    let failed: Vec<String> = futures_util::future::join_all(played).await.into_iter().flatten().collect();
    assert!(failed.is_empty(), "{} of {count} rows failed:\n{}", failed.len(), failed.join("\n"));
}

/// One after another on one daemon.
async fn play_lane(
    server: &FaultServer,
    certificates: &std::path::Path,
    rows: Vec<(u64, Row)>,
) -> Vec<String> {
    let (card, minds) = (Card::new().plug(), Server::start());
    let plugin = Plugin::new(&minds, "faults");
    let mut daemon = Daemon::new()
        .card(&card)
        .plugin(&plugin)
        .env("SSL_CERT_FILE", certificates)
        .config("[stream]\nconnect_s = 2\nsilence_s = 1\ngive_up_s = 3\n")
        .start()
        .await;
    let mut failed = Vec::new();
    for (seed, row) in rows {
        let began = Instant::now();
        let name = format!("row-{seed}.{}", row.codec.extension());
        let source = Recording::music(seed, 44_100, 16, row.seconds);
        let url = server.serve(row.door, &name, source.encode(row.codec), row.scripts.clone());
        let uri = offer(&row, server, &plugin, &name, url);
        let stage = Stage { server, card: &card, name: &name, source: &source };
        let judged = stage.play(&mut daemon, &row, &uri).await;
        eprintln!("{:6.2} s  {}", began.elapsed().as_secs_f64(), row.name);
        if let Err(why) = judged {
            failed.push(format!("{}: {why}\n    asked: {}", row.name, asked(&server.seen(&name))));
        }
        daemon.stop().await;
        daemon.queue.call_method("Clear", &()).await.unwrap();
    }
    if daemon.log().contains(SECRET) {
        failed.push("a secret stands in the log".to_owned());
    }
    if !failed.is_empty() {
        eprintln!("--- segued's log ---\n{}", daemon.log());
    }
    failed
}

/// What the daemon is told to play.
fn offer(row: &Row, server: &FaultServer, plugin: &Plugin, name: &str, url: String) -> String {
    let secret = format!("{url}?key={SECRET}");
    let urls: Vec<String> = (0..6).map(|nth| format!("{secret}-{nth}")).collect();
    let content_type = row.codec.content_type();
    match row.via {
        Via::Url => secret,
        Via::Plugin => plugin.add(
            name,
            Track::in_turn(urls, content_type).with_header("Authorization", &format!("Bearer {SECRET}")),
        ),
        Via::Mirror => {
            let dead = server.url(Door::Elsewhere, "dead.wav");
            plugin.add(name, Track::at(dead, content_type).or_at(vec![secret]))
        }
    }
}

fn asked(seen: &[Seen]) -> String {
    let first = seen.first().map(|seen| seen.at);
    let show = |seen: &Seen| {
        let after = seen.at.duration_since(first.unwrap_or(seen.at)).as_secs_f64();
        format!("{:?} from {:?} after {after:.2} s", seen.door, seen.from)
    };
    seen.iter().map(show).collect::<Vec<_>>().join("; ")
}

/// What a row is played with.
struct Stage<'a> {
    server: &'a FaultServer,
    card: &'a Card,
    name: &'a str,
    source: &'a Recording,
}

impl Stage<'_> {
    async fn play(&self, daemon: &mut Daemon, row: &Row, uri: &str) -> Result<(), String> {
        let (before, from) = (self.card.frames_heard(), daemon.record.len());
        daemon.play_uris(&[uri]).await;
        let said = tokio::time::timeout(LIMIT, over(daemon, from)).await;
        let said = said.map_err(|_| format!("it hangs: neither heard nor failed within {LIMIT:?}"))?;
        daemon.wait_state("stopped").await;
        let nothing = || Recording { samples: Vec::new(), ..self.source.clone() };
        let heard = heard_since(self.card, before).unwrap_or_else(nothing);
        match (&row.outcome, said) {
            (Outcome::Fails { .. }, None) => {
                return Err(format!("it was finished; {}", difference(&heard, self.source)));
            }
            (Outcome::Fails { code, words }, Some((told, message))) => {
                let host = self.server.host(row.door);
                let host = row.names_host.then_some(host.as_str());
                let missing = words.iter().copied().chain(host).find(|word| !message.contains(word));
                if told != *code || missing.is_some() {
                    return Err(format!("failed as {told}: “{message}” ({missing:?} is missing)"));
                }
                if message.contains(SECRET) {
                    return Err(format!("the error tells a secret: {message}"));
                }
                heard_with_gaps(&heard, self.source, true)?;
            }
            (_, Some((code, message))) => return Err(format!("failed as {code}: {message}")),
            (Outcome::Heard, None) => {
                heard_with_gaps(&heard, self.source, false)?;
            }
        }
        if self.server.fetched_twice_at_once(self.name) {
            return Err("it was fetched twice at the same time".to_owned());
        }
        match row.check {
            Some((what, check)) if !check(&self.server.seen(self.name)) => Err(format!("not so: {what}")),
            _ => Ok(()),
        }
    }
}

/// Waits until it is heard to its end (none) or given up (code and message).
async fn over(daemon: &mut Daemon, from: usize) -> Option<(String, String)> {
    let fits = |said: &Said| {
        matches!(said, Said::Error { .. }) || matches!(said, Said::Event { kind, .. } if kind == "finished")
    };
    match daemon.record.wait_from(from, "the end", fits).await {
        Said::Error { code, message } => Some((code, message)),
        _ => None,
    }
}
