//! What the reader, the handle and the task that fetches share.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, broadcast};
use tokio::task::AbortHandle;
use tracing::{debug, info, warn};

use super::buffer::{Budget, PAGE, Store};
use super::icy::{Station, StreamTitle};
use super::pace::Pace;
use super::titles::Titles;
use super::{Status, StreamError, StreamEvent, Wait, WaitReason};

/// A reader that is ahead of the connection by no more than this is served by reading on.
const NEAR: u64 = 256 * 1024;
/// Pages that have to be free before more is fetched, once the store was full; with a small store, a quarter of it.
const ROOMY: usize = 16;
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

/// For the reader.
impl Shared {
    /// Blocks until a byte is there, the file ends, or reading is over.
    pub fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        let mut state = self.lock();
        loop {
            if let Some(error) = state.stopped(&self.track) {
                return Err(error.into());
            }
            let at = state.reader;
            let border = state.stretches.front().map_or(u64::MAX, |stretch| stretch.at - at.min(stretch.at));
            if border == 0 {
                return Ok(0);
            }
            let most = usize::try_from(border).unwrap_or(usize::MAX).min(state.titles.most(at, state.live));
            let most = out.len().min(most);
            let count = state.store.read(at, &mut out[..most]);
            if count > 0 || out.is_empty() {
                self.advance(&mut state, at + count as u64);
                return Ok(count);
            }
            if state.known.is_some() && state.want().is_none() {
                return Ok(0);
            }
            if let Some(error) = &state.failed {
                return Err(error.clone().into());
            }
            if state.idle {
                self.wake.notify_one();
            }
            state = self.readable.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Moves the reader forward and wakes the task when that made room.
    fn advance(&self, state: &mut State, to: u64) {
        let crossed = state.reader / PAGE != to / PAGE;
        state.reader = to;
        if state.titles.is_due(to) {
            self.title_due.store(true, Ordering::Release);
        }
        if crossed {
            state.store.trim(to);
            // Not for each page: waking the main thread costs more than fetching much at once.
            state.pace.read(to, Instant::now());
            let enough = ROOMY.min(state.store.pages_held() / 4).min(state.enough()).max(1);
            if state.idle && state.store.room(to) >= enough {
                self.wake.notify_one();
            }
        }
    }

    /// The reader's offset, when reading is not over.
    pub fn position(&self) -> io::Result<u64> {
        let state = self.lock();
        state.stopped(&self.track).map_or(Ok(state.reader), |error| Err(error.into()))
    }

    /// Moves the reader; fails where a server without ranges cannot follow.
    pub fn seek(&self, to: u64) -> io::Result<u64> {
        let mut state = self.lock();
        if let Some(error) = state.stopped(&self.track) {
            return Err(error.into());
        }
        let held = state.store.extent(to) > to || to == state.fetching;
        if let Some(known) = &state.known
            && !known.ranges
            && !held
            && to < state.fetching
        {
            let error =
                StreamError::NotSeekable { track: self.track.clone(), host: known.host.clone(), offset: to };
            return Err(error.into());
        }
        state.reader = to;
        state.pace.jumped();
        drop(state);
        self.wake.notify_one();
        Ok(to)
    }

    /// Lets a reader that came to the end of a stretch read the next one, and tells the media type of it.
    /// None at the end of everything.
    pub fn next_stretch(&self) -> Option<Option<String>> {
        let mut state = self.lock();
        let reader = state.reader;
        let is_there = state.stretches.front().is_some_and(|stretch| stretch.at <= reader);
        let stretch = if is_there { state.stretches.pop_front() } else { None };
        stretch.map(|stretch| stretch.content_type)
    }

    /// Moves the position of a file's reader, which is shown in the status.
    pub fn note_position(&self, at: u64) {
        self.lock().reader = at;
    }

    /// Blocks until the head is known; None when the stream ended before.
    pub fn known(&self) -> Option<Known> {
        let mut state = self.lock();
        loop {
            if state.known.is_some() {
                return state.known.clone();
            }
            if state.failed.is_some() || state.stopped(&self.track).is_some() {
                return None;
            }
            state = self.readable.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A file of the disk, all of which is there.
    pub fn know_file(&self, length: u64) {
        self.lock().known = Some(Known {
            content_type: None,
            total: Some(length),
            ranges: true,
            live: false,
            host: String::new(),
        });
    }
}

/// For the task that fetches.
impl Shared {
    /// Waits until a request is worth while and returns its offset.
    pub async fn work(&self) -> u64 {
        loop {
            if let Some(at) = self.request_at() {
                return at;
            }
            self.moved().await;
        }
    }

    /// Waits until the reader moved or memory became free.
    pub async fn moved(&self) {
        self.wake.notified().await;
    }

    /// Since when the music is paused.
    pub fn held_since(&self) -> Option<Instant> {
        self.lock().held
    }

    fn request_at(&self) -> Option<u64> {
        let mut state = self.lock();
        state.idle = true;
        let Some(at) = state.want() else {
            let completed = state.known.is_some() && !std::mem::replace(&mut state.complete, true);
            drop(state);
            if completed {
                self.emit(StreamEvent::Complete);
            }
            return None;
        };
        state.complete = false;
        let reader = state.reader;
        // Not a request for each page: only when a good part is free, or the reader waits.
        let enough = state.enough();
        // Nor while nobody listens: the URL may run out meanwhile, and the connection would stand idle.
        let ahead = state.held.is_none() && state.store.room(reader) >= enough;
        let due = state.store.has_room(at, reader) && (at == reader || ahead);
        state.idle = !due;
        due.then_some(at)
    }

    /// Takes bytes that lie at `at`.
    pub fn put(&self, at: u64, bytes: &[u8], ranges: bool) -> Put {
        let mut state = self.lock();
        state.idle = false;
        let Some(want) = state.want() else { return Put::Elsewhere };
        if want < at || (ranges && want - at > NEAR) {
            return Put::Elsewhere;
        }
        let reader = state.reader;
        if at < want {
            let piece = bytes.len().min((want - at).min(PAGE - at % PAGE) as usize);
            if state.store.joins(at) {
                // Whether it was kept or not, the reader does not need it now.
                let _ = state.store.write(at, &bytes[..piece], reader);
            }
            state.fetching = at + piece as u64;
            return Put::Took(piece);
        }
        let count = state.store.write(at, bytes, reader);
        if count == 0 {
            if bytes.is_empty() && state.store.has_room(at, reader) {
                return Put::Took(0);
            }
            state.idle = true;
            return Put::Full;
        }
        state.fetching = at + count as u64;
        let first = state.bytes_fetched == 0;
        state.bytes_fetched += count as u64;
        let waited = state.waiting.take();
        drop(state);
        self.readable.notify_all();
        if first {
            self.emit(StreamEvent::Prefetching);
        }
        if let Some(wait) = waited {
            info!(track = self.track, seconds = wait.since.elapsed().as_secs(), "data comes again");
            self.emit(StreamEvent::Flowing);
        }
        Put::Took(count)
    }

    /// Notes what an answer said.
    pub fn know(&self, known: Known) {
        let mut state = self.lock();
        let first = state.known.is_none();
        let (content_type, total) = (known.content_type.clone(), known.total);
        state.live |= known.live;
        match &mut state.known {
            Some(before) => {
                before.total = before.total.or(known.total);
                before.ranges = known.ranges;
                before.live |= known.live;
                before.host = known.host;
            }
            empty => *empty = Some(known),
        }
        drop(state);
        if first {
            self.readable.notify_all();
            self.emit(StreamEvent::Head { content_type, total });
        }
    }

    /// A file of unknown length ends at `at`.
    pub fn ended(&self, at: u64) {
        self.lock().end = Some(at);
        self.readable.notify_all();
    }

    /// What comes from `at` on does not continue the bytes before: the reader sees an end there, until it asks
    /// for the next stretch.
    pub fn begin_stretch(&self, at: u64, content_type: Option<String>) {
        let mut state = self.lock();
        if at == 0 && state.bytes_fetched == 0 {
            // Nothing lies before it.
            return;
        }
        // One that holds not a byte is none.
        while state.stretches.back().is_some_and(|last| last.at >= at) {
            state.stretches.pop_back();
        }
        state.stretches.push_back(Stretch { at, content_type });
        drop(state);
        self.readable.notify_all();
    }

    pub fn tell(&self, event: StreamEvent) {
        self.emit(event);
    }

    /// It is known to have no end, before any answer.
    pub fn live(&self) {
        self.lock().live = true;
    }

    /// A title that belongs to what lies at `at` and after.
    pub fn title(&self, at: u64, title: StreamTitle) {
        debug!(track = self.track, at, title = title.text, "the station tells a title");
        self.lock().titles.push(at, title);
    }

    /// What a station says about itself; told once.
    pub fn station(&self, station: Station) {
        if !std::mem::replace(&mut self.lock().introduced, true) {
            self.emit(StreamEvent::Station(station));
        }
    }

    /// A connection begins at `at`.
    pub fn connected(&self, at: u64) {
        self.lock().fetching = at;
    }

    /// Bytes that were kept so far.
    pub fn fetched(&self) -> u64 {
        self.lock().bytes_fetched
    }

    /// A request was answered after this time.
    pub fn answered(&self, after: Duration) {
        self.lock().pace.answered(after);
    }

    pub fn set_deadline(&self, at: Option<Instant>) {
        self.lock().deadline = at;
    }

    pub fn waiting(&self, reason: WaitReason, message: &str) {
        let mut state = self.lock();
        if state.waiting.is_some_and(|wait| wait.reason == reason) {
            return;
        }
        let since = state.waiting.map_or_else(Instant::now, |wait| wait.since);
        state.waiting = Some(Wait { reason, since });
        drop(state);
        info!(track = self.track, ?reason, message, "no data comes");
        self.emit(StreamEvent::Waiting(reason, message.to_owned()));
    }

    pub fn renewing(&self) {
        self.emit(StreamEvent::Renewing);
    }

    pub fn renewed(&self, before_deadline: bool) {
        self.lock().re_resolved += 1;
        self.emit(StreamEvent::Renewed { before_deadline });
    }

    pub fn fail(&self, error: StreamError) {
        warn!(track = self.track, %error, "the stream ends");
        let mut state = self.lock();
        state.failed = Some(error.clone());
        state.waiting = None;
        drop(state);
        self.readable.notify_all();
        self.emit(StreamEvent::Failed(error));
    }
}
