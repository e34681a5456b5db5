//! One process's conversation: requests out, replies matched by id in any order.

mod pending;
mod reader;
mod writer;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use segue_protocol::manifest::Capability;
use segue_protocol::messages::{RawResult, Request};
use segue_protocol::{ErrorCode, Fault, MAX_LINE_BYTES};
use serde::Serialize;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{AcquireError, Notify, Semaphore, SemaphorePermit, mpsc, watch};

use self::pending::{Forget, Pending};
pub(super) use self::reader::PARSED_INLINE;
use self::reader::Reader;
use super::counters::Counters;
use super::redact::Redactor;
use crate::track::PluginId;

/// Calls that a plugin is given at once; more wait for their turn, in the order in which they came.
pub const MAX_IN_FLIGHT: usize = 16;
/// Calls that wait for their turn; more are refused, so that a slow plugin does not fill memory.
const MAX_WAITING: u32 = 1_024;

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
    /// Tokio's semaphore is fair: whoever asked first is served first.
    turns: Semaphore,
    /// Of these turns one is kept for the music: what is to be played does not wait behind a flood of questions.
    questions: Semaphore,
    waiting: AtomicU32,
    capabilities: Mutex<Vec<Capability>>,
    leases: AtomicU32,
    /// Told when the last lease ends.
    pub(super) idle: Notify,
    over: watch::Sender<Option<Over>>,
    counters: Arc<Counters>,
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
        redactor: Redactor,
        counters: Arc<Counters>,
    ) -> Arc<Connection> {
        let (requests, queue) = mpsc::channel(MAX_IN_FLIGHT);
        let pending = Pending::default();
        let (over, _) = watch::channel(None);
        tokio::spawn(writer::write_requests(stdin, queue, write_timeout, over.clone(), counters.clone()));
        let reader = Reader {
            plugin: plugin.clone(),
            pending: pending.clone(),
            redactor,
            over: over.clone(),
            counters: counters.clone(),
        };
        tokio::spawn(reader.run(stdout));
        Arc::new(Connection {
            plugin: plugin.clone(),
            requests: Mutex::new(Some(requests)),
            pending,
            next_id: AtomicU64::new(1),
            turns: Semaphore::new(MAX_IN_FLIGHT),
            questions: Semaphore::new(MAX_IN_FLIGHT - 1),
            waiting: AtomicU32::new(0),
            capabilities: Mutex::new(Vec::new()),
            leases: AtomicU32::new(0),
            idle: Notify::new(),
            over,
            counters,
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
        self.pending.close(fault);
        self.turns.close();
        self.questions.close();
    }

    /// One call. Dropping the future forgets it. The time runs from when the plugin is given the call; waiting
    /// for its turn, while others are in flight, is bounded by the same time once more.
    ///
    /// # Errors
    /// By the protocol's table.
    pub(super) async fn call<P: Serialize>(
        &self,
        method: &'static str,
        params: Option<P>,
        timeout: Duration,
    ) -> Result<RawResult, Fault> {
        let late = |what: &str| {
            let seconds = timeout.as_secs_f64();
            Fault::new(ErrorCode::PluginTimeout, format!("{what} within {seconds:.1} s"))
        };
        let Some(_place) = Place::take(&self.waiting) else {
            return Err(Fault::new(ErrorCode::PluginTimeout, "too many calls wait for it already"));
        };
        let turn = tokio::time::timeout(timeout, self.turn(method)).await;
        let turn = turn.map_err(|_| late("its earlier calls were not answered"))?;
        let _turn = turn.map_err(|_| self.pending.why_closed())?;
        let began = Instant::now();
        let answer = tokio::time::timeout(timeout, self.exchange(method, params)).await;
        let answer = answer.unwrap_or_else(|_| Err(late("no answer")));
        // A plugin need not know `initialize`.
        let allowed = method == "initialize"
            && answer.as_ref().is_err_and(|fault| fault.code == ErrorCode::MethodNotFound);
        if !allowed {
            self.counters.called(&answer, began.elapsed());
        }
        answer
    }

    /// A turn lasts until the call has its answer. A sign of life needs none: it is asked for just when no call
    /// is answered.
    async fn turn(&self, method: &str) -> Result<[Option<SemaphorePermit<'_>>; 2], AcquireError> {
        match method {
            "ping" => Ok([None, None]),
            "stream" => Ok([None, Some(self.turns.acquire().await?)]),
            _ => Ok([Some(self.questions.acquire().await?), Some(self.turns.acquire().await?)]),
        }
    }

    async fn exchange<P: Serialize>(
        &self,
        method: &'static str,
        params: Option<P>,
    ) -> Result<RawResult, Fault> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut line = serde_json::to_vec(&Request { jsonrpc: "2.0", id, method, params })
            .map_err(|error| Fault::new(ErrorCode::InvalidParams, error.to_string()))?;
        if line.len() > MAX_LINE_BYTES {
            return Err(Fault::new(ErrorCode::InvalidParams, "the request has more than 10 MiB"));
        }
        line.push(b'\n');
        let answer = self.pending.expect(id)?;
        let _forget = Forget(&self.pending, id);
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(requests) = requests else { return Err(self.pending.why_closed()) };
        // A full queue or a closed one ends with the process, whose end answers all calls.
        let _ = requests.send(line).await;
        drop(requests);
        tracing::trace!(plugin = %self.plugin, method, id, "called");
        answer.await.unwrap_or_else(|_| Err(self.pending.why_closed()))
    }
}

/// A place in the queue.
struct Place<'a>(&'a AtomicU32);

impl Place<'_> {
    fn take(waiting: &AtomicU32) -> Option<Place<'_>> {
        let place = Place(waiting);
        (waiting.fetch_add(1, Ordering::AcqRel) < MAX_WAITING).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The first reason stays.
fn end(over: &watch::Sender<Option<Over>>, why: Over) {
    over.send_if_modified(|now| {
        let first = now.is_none();
        now.get_or_insert(why);
        first
    });
}
