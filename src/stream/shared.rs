//! What the reader, the handle and the task that fetches share.

mod fetching;
mod reading;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, broadcast};
use tokio::task::AbortHandle;
use tracing::debug;

use super::budget::Budget;
use super::buffer::{PAGE, Store};
use super::icy::StreamTitle;
use super::pace::Pace;
use super::titles::Titles;
use super::{Status, StreamError, StreamEvent, Wait};

/// A reader that is ahead of the connection by no more than this is served by reading on.
const NEAR: u64 = 256 * 1024;
/// Pages that have to be free before more is fetched, once the store was full; with a small store, a quarter of it.
const ROOMY: usize = 16;
/// Borders between recordings that wait for the reader.
const STRETCHES: usize = 1024;
/// Events kept for a slow receiver.
const EVENTS: usize = 64;

/// One stream.
pub(super) struct Shared {
    /// What logs and errors call the track.
    pub track: String,
    state: Mutex<State>,
    /// Wakes the reader.
    readable: Condvar,
    /// Wakes the task that fetches: the reader moved or memory became free.
    wake: Arc<Notify>,
    events: broadcast::Sender<StreamEvent>,
    /// Held until the first call of `changes`, so that it misses nothing.
    first: Mutex<Option<broadcast::Receiver<StreamEvent>>>,
    task: OnceLock<AbortHandle>,
    /// The reader has reached a title that nobody has taken. Looked at without the lock.
    title_due: AtomicBool,
}

struct State {
    store: Store,
    reader: u64,
    /// Where the open connection stands, or the last one stood.
    fetching: u64,
    known: Option<Known>,
    /// Where a file of unknown length turned out to end.
    end: Option<u64>,
    failed: Option<StreamError>,
    aborted: bool,
    interrupted: bool,
    /// The task waits for the reader to move.
    idle: bool,
    /// Nobody listens since then.
    held: Option<Instant>,
    complete: bool,
    waiting: Option<Wait>,
    bytes_fetched: u64,
    re_resolved: u32,
    deadline: Option<Instant>,
    /// Where other recordings begin that the reader has not entered yet, in order.
    stretches: VecDeque<Stretch>,
    pace: Pace,
    titles: Titles,
    /// It is known to have no end.
    live: bool,
    /// It comes as pieces that were recorded or encoded one by one.
    pieced: bool,
    /// What the station says about itself was told.
    introduced: bool,
}

/// Bytes that do not continue those before them: a station's new connection, or what follows a discontinuity.
struct Stretch {
    at: u64,
    content_type: Option<String>,
}

/// What the head of the first answer said.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub content_type: Option<String>,
    pub total: Option<u64>,
    /// Whether the server serves ranges.
    pub ranges: bool,
    /// A stream without an end.
    pub live: bool,
    /// Who serves.
    pub host: String,
}

/// What became of bytes that the connection brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// So many were kept or are not needed.
    Took(usize),
    /// There is no room until the reader moves.
    Full,
    /// The reader needs bytes from elsewhere.
    Elsewhere,
}

impl State {
    /// Offset of the next byte that the reader will miss; None when it misses nothing.
    fn want(&self) -> Option<u64> {
        let at = self.store.extent(self.reader);
        let end = self.end.or(self.known.as_ref().and_then(|known| known.total));
        end.is_none_or(|end| at < end).then_some(at)
    }

    /// Pages that have to be free before the next request is worth while: a quarter of all, so that there are few
    /// requests, but not so many that what is held does not last until the answer.
    fn enough(&self) -> usize {
        let cap = self.store.cap();
        let spare = cap.saturating_sub(self.pace.needed());
        ((cap / 4).min(spare) / PAGE).max(1) as usize
    }

    fn stopped(&self, track: &str) -> Option<StreamError> {
        if self.aborted {
            Some(StreamError::Aborted { track: track.to_owned() })
        } else if self.interrupted {
            Some(StreamError::Interrupted { track: track.to_owned() })
        } else {
            None
        }
    }
}

impl Shared {
    pub fn new(track: String, budget: &Budget, behind: u64) -> Self {
        let (events, first) = broadcast::channel(EVENTS);
        let wake = Arc::new(Notify::new());
        let state = State {
            store: Store::new(budget.share(Arc::clone(&wake)), behind),
            reader: 0,
            fetching: 0,
            known: None,
            end: None,
            failed: None,
            aborted: false,
            interrupted: false,
            idle: false,
            held: None,
            complete: false,
            waiting: None,
            bytes_fetched: 0,
            re_resolved: 0,
            deadline: None,
            stretches: VecDeque::new(),
            pace: Pace::default(),
            titles: Titles::default(),
            live: false,
            pieced: false,
            introduced: false,
        };
        Shared {
            track,
            state: Mutex::new(state),
            readable: Condvar::new(),
            wake,
            events,
            first: Mutex::new(Some(first)),
            task: OnceLock::new(),
            title_due: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn emit(&self, event: StreamEvent) {
        debug!(track = self.track, ?event, "stream");
        // Nobody has to listen.
        let _ = self.events.send(event);
    }
}

/// For the handle.
impl Shared {
    pub fn set_task(&self, task: AbortHandle) {
        let _ = self.task.set(task);
    }

    pub fn abort(&self) {
        let mut state = self.lock();
        state.aborted = true;
        state.store.close();
        drop(state);
        self.readable.notify_all();
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    pub fn interrupt(&self, on: bool) {
        self.lock().interrupted = on;
        self.readable.notify_all();
    }

    /// Whether the music is paused.
    pub fn hold(&self, on: bool) {
        let mut state = self.lock();
        if state.held.is_some() != on {
            state.held = on.then(Instant::now);
            drop(state);
            self.wake.notify_one();
        }
    }

    pub fn changes(&self) -> broadcast::Receiver<StreamEvent> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.unwrap_or_else(|| self.events.subscribe())
    }

    pub fn status(&self) -> Status {
        let state = self.lock();
        let total = state.end.or(state.known.as_ref().and_then(|known| known.total));
        let is_file = self.task.get().is_none();
        let held = state.store.extent(state.reader) - state.reader;
        Status {
            received: if is_file { total.unwrap_or(0).saturating_sub(state.reader) } else { held },
            cap: state.store.cap(),
            total,
            complete: is_file || (state.known.is_some() && state.want().is_none()),
            position: state.reader,
            expires_in: state.deadline.map(|at| at.saturating_duration_since(Instant::now())),
            re_resolved: state.re_resolved,
            waiting: state.waiting,
            bytes_fetched: state.bytes_fetched,
            error: state.failed.clone(),
            live: state.live,
        }
    }

    pub fn is_live(&self) -> bool {
        self.lock().live
    }

    /// See [`StreamHandle::take_title`](super::StreamHandle::take_title).
    pub fn take_title(&self) -> Option<StreamTitle> {
        if !self.title_due.swap(false, Ordering::AcqRel) {
            return None;
        }
        let mut state = self.lock();
        let reader = state.reader;
        state.titles.take(reader)
    }
}
