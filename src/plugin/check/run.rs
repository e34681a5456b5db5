//! One process with its bare pipes: what was written is what is seen.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use segue_protocol::messages::{Message, RawResult, Request};
use segue_protocol::{Fault, Line, LineReader};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::process::Process;
use super::plain::Plain;

/// How long a request may take to be written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long what was not flushed may take to come, once standard input is closed.
const UNFLUSHED: Duration = Duration::from_secs(1);
/// How long what a dead process wrote last may take to be read.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// What one read takes at most.
const PIECE_BYTES: usize = 16 * 1024;
/// Stray lines that are remembered; more are counted.
const MAX_STRAYS: usize = 100;

pub(super) enum Child {
    Confined(Process),
    Plain(Plain),
}

impl Child {
    async fn ended(&mut self) {
        match self {
            Child::Confined(process) => process.ended().await,
            Child::Plain(plain) => plain.ended().await,
        }
    }

    async fn kill(self) -> String {
        match self {
            Child::Confined(process) => process.kill().await,
            Child::Plain(plain) => plain.kill().await,
        }
    }
}

/// What came next on standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Line(Line),
    /// It was closed.
    End,
    /// Nothing within the time.
    Nothing,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Silence {
    /// None within this time.
    Late(Duration),
    /// It came only when standard input was closed.
    Unflushed,
    /// Standard output was closed.
    Ended,
    /// The request could not be written.
    Unread(String),
}

/// What each of several calls was answered; nothing after standard output was closed.
pub(super) struct Answers {
    pub(super) replies: Vec<Option<Result<RawResult, Fault>>>,
    pub(super) ended: bool,
}

/// Standard output, line by line.
struct Output {
    stdout: ChildStdout,
    reader: LineReader,
    ready: VecDeque<Line>,
    ended: bool,
}

impl Output {
    async fn hear(&mut self, until: Instant) -> Heard {
        let mut piece = [0; PIECE_BYTES];
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Heard::Line(line);
            }
            if self.ended {
                return Heard::End;
            }
            let left = until.saturating_duration_since(Instant::now());
            let read = match timeout(left, self.stdout.read(&mut piece)).await {
                Err(_) => return Heard::Nothing,
                Ok(read) => read.unwrap_or(0),
            };
            if read == 0 {
                self.ended = true;
                self.ready.extend(self.reader.rest());
            }
            let mut input = &piece[..read];
            while let Some(line) = self.reader.take(&mut input) {
                self.ready.push_back(line);
            }
        }
    }
}

pub(super) struct Run {
    child: Child,
    stdin: Option<ChildStdin>,
    output: Output,
    drain: JoinHandle<()>,
    next_id: u64,
    pub(super) began: Instant,
    /// What was printed besides replies to what was asked.
    pub(super) strays: Vec<Stray>,
}

/// A line that should not be there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stray {
    /// An answer to something, rather than noise.
    pub(super) is_reply: bool,
    pub(super) words: String,
}

impl Run {
    pub(super) fn new(
        child: Child,
        stdin: ChildStdin,
        stdout: ChildStdout,
        drain: JoinHandle<()>,
        began: Instant,
    ) -> Run {
        let output = Output { stdout, reader: LineReader::default(), ready: VecDeque::new(), ended: false };
        Run { child, stdin: Some(stdin), output, drain, next_id: 1, began, strays: Vec::new() }
    }

    /// A request with a fresh id, as one line.
    pub(super) fn request<P: Serialize>(
        &mut self,
        method: &str,
        params: Option<P>,
    ) -> io::Result<(u64, String)> {
        let id = self.next_id;
        self.next_id += 1;
        let line = serde_json::to_string(&Request { jsonrpc: "2.0", id, method, params })?;
        Ok((id, line + "\n"))
    }

    /// What confines it, or why nothing does.
    pub(super) fn confinement(&self) -> Result<String, String> {
        match &self.child {
            Child::Plain(_) => Err("it runs as a plain program".to_owned()),
            Child::Confined(process) if process.isolation().is_enforced() => {
                Ok(process.isolation().to_string())
            }
            Child::Confined(process) => Err(process.isolation().to_string()),
        }
    }

    pub(super) async fn write(&mut self, text: &str) -> io::Result<()> {
        let closed = || io::Error::other("its standard input is closed");
        let stdin = self.stdin.as_mut().ok_or_else(closed)?;
        let late = |_| io::Error::other("it does not read its standard input");
        timeout(WRITE_TIMEOUT, stdin.write_all(text.as_bytes())).await.map_err(late)?
    }

    pub(super) fn close_input(&mut self) {
        self.stdin = None;
    }

    pub(super) async fn hear(&mut self, until: Instant) -> Heard {
        self.output.hear(until).await
    }

    /// Waits for replies to these, in any order. Whatever else is printed is remembered as stray.
    pub(super) async fn answers(&mut self, ids: &[u64], until: Instant) -> Answers {
        let mut replies: Vec<Option<Result<RawResult, Fault>>> = ids.iter().map(|_| None).collect();
        while replies.iter().any(Option::is_none) {
            let line = match self.hear(until).await {
                Heard::Line(line) => line,
                Heard::End => return Answers { replies, ended: true },
                Heard::Nothing => break,
            };
            let begin = begin(&line);
            let message = parse(line);
            let stray = match message {
                Message::Reply(id, answer) => {
                    let place = ids.iter().position(|wanted| *wanted == id);
                    match place.and_then(|at| replies.get_mut(at)).filter(|reply| reply.is_none()) {
                        Some(reply) => {
                            *reply = Some(answer);
                            continue;
                        }
                        None => described(&Message::Reply(id, answer), &begin),
                    }
                }
                other => described(&other, &begin),
            };
            if self.strays.len() < MAX_STRAYS {
                self.strays.push(stray);
            }
            // However fast it prints, it is not listened to for ever.
            if Instant::now() >= until {
                break;
            }
        }
        Answers { replies, ended: false }
    }

    /// Calls and waits. Without an answer in time standard input is closed, to see whether that brings it: after
    /// this the run is of no more use.
    pub(super) async fn ask<P: Serialize>(
        &mut self,
        method: &str,
        params: Option<P>,
        patience: Duration,
    ) -> Result<Result<RawResult, Fault>, Silence> {
        let unread = |error: io::Error| Silence::Unread(error.to_string());
        let (id, line) = self.request(method, params).map_err(unread)?;
        if let Err(error) = self.write(&line).await {
            // Broken: it ended, and what it wrote before says more.
            let ended = error.kind() == io::ErrorKind::BrokenPipe;
            return Err(if ended { Silence::Ended } else { unread(error) });
        }
        let found = self.answers(&[id], Instant::now() + patience).await;
        match (found.replies.into_iter().flatten().next(), found.ended) {
            (Some(answer), _) => return Ok(answer),
            (None, true) => return Err(Silence::Ended),
            (None, false) => {}
        }
        self.close_input();
        let after = self.answers(&[id], Instant::now() + UNFLUSHED).await;
        let unflushed = after.replies.iter().any(Option::is_some);
        Err(if unflushed { Silence::Unflushed } else { Silence::Late(patience) })
    }

    /// Whether it ends by itself within this time. What it prints meanwhile is stray.
    pub(super) async fn ends_within(&mut self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let Run { child, output, strays, .. } = self;
        // Read meanwhile: a full pipe must not keep it from ending.
        let ended = tokio::select! {
            () = child.ended() => true,
            () = drain(output, strays, until) => false,
        };
        if ended && !output.ended {
            let last = Instant::now() + LAST_WORDS;
            while !output.ended && Instant::now() < last {
                match output.hear(last).await {
                    Heard::Line(line) => push(strays, line),
                    Heard::End | Heard::Nothing => break,
                }
            }
        }
        ended
    }

    /// Ends it with all its descendants, and says how it ended and what it printed besides replies.
    pub(super) async fn finish(mut self) -> (String, Vec<Stray>) {
        self.close_input();
        let by_itself = self.ends_within(LAST_WORDS).await;
        let status = self.child.kill().await;
        let _ = timeout(LAST_WORDS, self.drain).await;
        let status = if by_itself { format!("it ended ({status})") } else { "it had to be ended".to_owned() };
        (status, self.strays)
    }
}

/// Reads until that time, also after the end.
async fn drain(output: &mut Output, strays: &mut Vec<Stray>, until: Instant) {
    loop {
        match output.hear(until).await {
            Heard::Line(line) if Instant::now() < until => push(strays, line),
            Heard::End => {
                tokio::time::sleep_until(until.into()).await;
                return;
            }
            Heard::Line(_) | Heard::Nothing => return,
        }
    }
}

fn push(strays: &mut Vec<Stray>, line: Line) {
    if strays.len() < MAX_STRAYS {
        let begin = begin(&line);
        strays.push(described(&parse(line), &begin));
    }
}

fn parse(line: Line) -> Message {
    match line {
        Line::Text(text) => Message::parse(text),
        Line::TooLong | Line::NotUtf8 => Message::Junk,
    }
}

/// What a line is that nobody asked for.
fn described(message: &Message, begin: &str) -> Stray {
    let (is_reply, what) = match message {
        Message::Reply(..) => (true, "a reply that nobody waits for"),
        Message::Stray => (true, "a reply with an id that nobody gave"),
        Message::Request => (false, "a call, and the player takes none"),
        Message::Junk => (false, "a line that is no JSON-RPC message"),
    };
    Stray { is_reply, words: format!("{what}: {begin}") }
}

/// The first words of a line, fit for showing.
fn begin(line: &Line) -> String {
    match line {
        Line::TooLong => "more than 10 MiB".to_owned(),
        Line::NotUtf8 => "not UTF-8".to_owned(),
        Line::Text(text) => quoted(text),
    }
}

/// A plugin's words, unable to steer a terminal.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(200).collect()
}

/// A plugin's words in a sentence: cut, and unable to steer a terminal.
pub(super) fn quoted(text: &str) -> String {
    let mut chars = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let begin: String = chars.by_ref().take(80).collect();
    if chars.next().is_some() { format!("“{begin}…”") } else { format!("“{begin}”") }
}
