//! One process's conversation: requests out, replies matched by id in any order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio_util::bytes::BytesMut;
use tokio_util::codec::{Decoder, LinesCodec};

use super::error::{ErrorCode, Fault};
use super::manifest::Capability;
use super::protocol::{Message, Request, parse_line};
use crate::track::PluginId;

/// The longest line, in bytes, either way.
pub const MAX_LINE_BYTES: usize = 10 * 1024 * 1024;
/// Calls that a plugin is given at once; more wait for their turn.
pub const MAX_IN_FLIGHT: usize = 16;
/// Lines in a row that are no JSON-RPC, after which the process is stopped.
const MAX_JUNK_LINES: u32 = 3;
/// Longer lines are parsed away from the main thread.
const PARSED_INLINE: usize = 64 * 1024;

/// Why the conversation is over, though the process may still live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// Standard output was closed.
    Closed,
    /// Too many lines of junk, or a request that nobody reads.
    Unusable(String),
}

/// The calling side. Closed when the process ends.
pub(super) struct Connection {
    plugin: PluginId,
    requests: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    pending: Pending,
    next_id: AtomicU64,
    turns: Semaphore,
    capabilities: Mutex<Vec<Capability>>,
    leases: AtomicU32,
    /// Told when the last lease ends.
    pub(super) idle: Notify,
    over: watch::Sender<Option<Over>>,
}

#[derive(Clone, Default)]
struct Pending(Arc<Mutex<Calls>>);

#[derive(Default)]
struct Calls {
    waiting: HashMap<u64, oneshot::Sender<Result<Value, Fault>>>,
    /// Set when no reply can come any more.
    closed: Option<Fault>,
    /// Replies that nobody waits for.
    late: u64,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail_all(&self, fault: &Fault) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        for (_, caller) in waiting {
            let _ = caller.send(Err(fault.clone()));
        }
    }
}

/// Forgets a call when its caller is gone.
struct Forget<'a>(&'a Pending, u64);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting.remove(&self.1);
    }
}

/// The right to call; while one exists the process is not idle.
pub(super) struct Lease(Arc<Connection>);

impl std::ops::Deref for Lease {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.0.leases.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_one();
        }
    }
}

impl Connection {
    /// Takes over both pipes.
    pub(super) fn new(
        plugin: &PluginId,
        stdin: ChildStdin,
        stdout: ChildStdout,
        write_timeout: Duration,
    ) -> Arc<Connection> {
        let (requests, queue) = mpsc::channel(MAX_IN_FLIGHT);
        let pending = Pending::default();
        let (over, _) = watch::channel(None);
        tokio::spawn(write_requests(stdin, queue, write_timeout, over.clone()));
        let reader = Reader { plugin: plugin.clone(), pending: pending.clone(), over: over.clone() };
        tokio::spawn(reader.run(stdout));
        Arc::new(Connection {
            plugin: plugin.clone(),
            requests: Mutex::new(Some(requests)),
            pending,
            next_id: AtomicU64::new(1),
            turns: Semaphore::new(MAX_IN_FLIGHT),
            capabilities: Mutex::new(Vec::new()),
            leases: AtomicU32::new(0),
            idle: Notify::new(),
            over,
        })
    }

    pub(super) fn lease(self: &Arc<Self>) -> Lease {
        self.leases.fetch_add(1, Ordering::AcqRel);
        Lease(self.clone())
    }

    pub(super) fn in_use(&self) -> bool {
        self.leases.load(Ordering::Acquire) > 0
    }

    pub(super) fn capabilities(&self) -> Vec<Capability> {
        self.capabilities.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_capabilities(&self, now: Vec<Capability>) {
        *self.capabilities.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Replies that came too late or to nobody.
    pub(super) fn dropped_replies(&self) -> u64 {
        self.pending.lock().late
    }

    /// Returns when no further call can succeed.
    pub(super) async fn over(&self) -> Over {
        let mut over = self.over.subscribe();
        match over.wait_for(Option::is_some).await {
            Ok(over) => over.clone().unwrap_or(Over::Closed),
            Err(_) => Over::Closed,
        }
    }

    /// Closes standard input: the plugin is to end.
    pub(super) fn close_input(&self) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Fails what is in flight and whatever comes later.
    pub(super) fn close(&self, fault: &Fault) {
        self.close_input();
        self.pending.lock().closed.get_or_insert_with(|| fault.clone());
        self.pending.fail_all(fault);
    }

    /// One call. Dropping the future forgets it.
    pub(super) async fn call<P: Serialize>(
        &self,
        method: &'static str,
        params: Option<P>,
        timeout: Duration,
    ) -> Result<Value, Fault> {
        let answer = tokio::time::timeout(timeout, self.call_untimed(method, params)).await;
        answer.unwrap_or_else(|_| {
            let seconds = timeout.as_secs_f64();
            Err(Fault::new(ErrorCode::PluginTimeout, format!("no answer within {seconds:.1} s")))
        })
    }

    async fn call_untimed<P: Serialize>(
        &self,
        method: &'static str,
        params: Option<P>,
    ) -> Result<Value, Fault> {
        let crashed = || Fault::new(ErrorCode::PluginCrashed, "the process ended");
        let _turn = self.turns.acquire().await.map_err(|_| crashed())?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut line = serde_json::to_vec(&Request { jsonrpc: "2.0", id, method, params })
            .map_err(|error| Fault::new(ErrorCode::InvalidParams, error.to_string()))?;
        line.push(b'\n');
        if line.len() > MAX_LINE_BYTES {
            return Err(Fault::new(ErrorCode::InvalidParams, "the request has more than 10 MiB"));
        }
        let (caller, answer) = oneshot::channel();
        {
            let mut calls = self.pending.lock();
            if let Some(fault) = &calls.closed {
                return Err(fault.clone());
            }
            calls.waiting.insert(id, caller);
        }
        let _forget = Forget(&self.pending, id);
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(requests) = requests else { return Err(crashed()) };
        // A full queue or a closed one ends with the process, whose end answers all calls.
        let _ = requests.send(line).await;
        drop(requests);
        tracing::trace!(plugin = %self.plugin, method, id, "called");
        answer.await.unwrap_or_else(|_| Err(crashed()))
    }
}

async fn write_requests(
    mut stdin: ChildStdin,
    mut queue: mpsc::Receiver<Vec<u8>>,
    timeout: Duration,
    over: watch::Sender<Option<Over>>,
) {
    while let Some(line) = queue.recv().await {
        let why = match tokio::time::timeout(timeout, stdin.write_all(&line)).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => format!("its standard input is closed ({error})"),
            Err(_) => "it does not read its standard input".to_owned(),
        };
        end(&over, Over::Unusable(why));
        return;
    }
}

fn end(over: &watch::Sender<Option<Over>>, why: Over) {
    over.send_if_modified(|now| {
        let first = now.is_none();
        now.get_or_insert(why);
        first
    });
}

struct Reader {
    plugin: PluginId,
    pending: Pending,
    over: watch::Sender<Option<Over>>,
}

impl Reader {
    async fn run(self, stdout: ChildStdout) {
        let why = self.read(stdout).await;
        end(&self.over, why);
    }

    /// The codec is driven by hand: its stream adapter pauses after an error although whole lines are left
    /// in the buffer.
    async fn read(&self, mut stdout: impl AsyncRead + Unpin) -> Over {
        let mut codec = LinesCodec::new_with_max_length(MAX_LINE_BYTES);
        let mut buffer = BytesMut::new();
        let mut junk = 0;
        loop {
            buffer.reserve(8 * 1024);
            let at_end = match stdout.read_buf(&mut buffer).await {
                Ok(read) => read == 0,
                Err(error) => return Over::Unusable(error.to_string()),
            };
            loop {
                let line = if at_end { codec.decode_eof(&mut buffer) } else { codec.decode(&mut buffer) };
                let message = match line {
                    Ok(Some(line)) => parse(line).await,
                    Ok(None) => break,
                    Err(error) => {
                        tracing::debug!(plugin = %self.plugin, %error, "a line is too long or not UTF-8");
                        Message::Junk
                    }
                };
                junk = if message == Message::Junk { junk + 1 } else { 0 };
                self.take(message);
                if junk >= MAX_JUNK_LINES {
                    return Over::Unusable(format!("{MAX_JUNK_LINES} lines in a row were no JSON-RPC"));
                }
            }
            if at_end {
                return Over::Closed;
            }
        }
    }

    fn take(&self, message: Message) {
        match message {
            Message::Reply(id, answer) => {
                let caller = self.pending.lock().waiting.remove(&id);
                let unwanted = match caller {
                    Some(caller) => caller.send(answer).is_err(),
                    None => true,
                };
                if unwanted {
                    self.drop_reply();
                }
            }
            Message::Stray => self.drop_reply(),
            Message::Request => {
                tracing::warn!(plugin = %self.plugin, "a plugin cannot call the player: message ignored");
            }
            Message::Junk => {
                tracing::warn!(plugin = %self.plugin, "a line on standard output is no JSON-RPC");
                let text = "the plugin printed a line that is no JSON-RPC message";
                self.pending.fail_all(&Fault::new(ErrorCode::ParseError, text));
            }
        }
    }

    fn drop_reply(&self) {
        self.pending.lock().late += 1;
        tracing::debug!(plugin = %self.plugin, "a reply that nobody waits for was dropped");
    }
}

async fn parse(line: String) -> Message {
    if line.len() <= PARSED_INLINE {
        return parse_line(&line);
    }
    tokio::task::spawn_blocking(move || parse_line(&line)).await.unwrap_or(Message::Junk)
}
