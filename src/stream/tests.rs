//! The whole of a stream against a real server on a real socket.

mod address;
mod clock;
mod hls;
mod outage;
mod playlists;
mod radio;
mod reach;
mod resume;
mod seek;
mod server;
mod share;

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::broadcast::Receiver;
use tokio::task::spawn_blocking;
use url::Url;

use super::*;
use crate::track::{Expiry, Reach, ResolveError, ResolveErrorKind, Resolving};
use server::{Reply, Request, Server};

/// Bytes without a period, so that a shifted copy never compares equal.
fn data(length: usize) -> Arc<Vec<u8>> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    Arc::new(bytes)
}

fn settings() -> Settings {
    Settings {
        connect_timeout: Duration::from_secs(2),
        silence: Duration::from_secs(1),
        idle_close: Duration::from_millis(300),
        give_up: Duration::from_secs(1),
        resolve_pause: Duration::from_millis(100),
        backoff_min: Duration::from_millis(10),
        backoff_max: Duration::from_millis(100),
        live_backoff_max: Duration::from_millis(100),
        alternative_after: Duration::from_millis(200),
        ..Settings::default()
    }
}

type Answer = dyn Fn(usize) -> Result<ResolvedStream, ResolveError> + Send + Sync;

/// Answers call number n, counted from 0.
struct Resolver {
    calls: AtomicUsize,
    answer: Box<Answer>,
}

impl Resolver {
    fn new(
        answer: impl Fn(usize) -> Result<ResolvedStream, ResolveError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Resolver { calls: AtomicUsize::new(0), answer: Box::new(answer) })
    }

    fn never() -> Arc<Self> {
        Resolver::new(|_| panic!("nothing was to be resolved"))
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Resolve for Resolver {
    fn resolve(&self) -> Resolving {
        let answer = (self.answer)(self.calls.fetch_add(1, Ordering::SeqCst));
        Box::pin(async move { answer })
    }
}

fn open_with(
    settings: Settings,
    resolved: ResolvedStream,
    resolver: &Arc<Resolver>,
) -> (Reader, StreamHandle) {
    Streams::new(settings).unwrap().open(
        resolved,
        Arc::clone(resolver) as Arc<dyn Resolve>,
        "test".to_owned(),
    )
}

/// Streams on a machine whose clock, names and routes are what the test says.
fn streams_on(settings: Settings, surroundings: Surroundings) -> Streams {
    Streams::within(settings, surroundings).unwrap()
}

fn open(server: &Server, resolver: &Arc<Resolver>) -> (Reader, StreamHandle) {
    open_with(settings(), ResolvedStream::plain(server.url("/a?key=secret")), resolver)
}

/// Reads to the end on a thread of its own.
async fn read_all(mut reader: Reader) -> (io::Result<Vec<u8>>, Reader) {
    spawn_blocking(move || {
        let mut bytes = Vec::new();
        (reader.read_to_end(&mut bytes).map(|_| bytes), reader)
    })
    .await
    .unwrap()
}

/// Reads so much of what a new connection brought, which does not continue what was before.
async fn read_stretch(mut reader: Reader, count: usize) -> (Vec<u8>, Reader) {
    spawn_blocking(move || {
        assert_eq!(reader.read(&mut [0]).unwrap(), 0, "it is told where one connection ended");
        reader.next_stretch().expect("another connection follows");
        let mut bytes = vec![0; count];
        reader.read_exact(&mut bytes).unwrap();
        (bytes, reader)
    })
    .await
    .unwrap()
}

async fn read_at(mut reader: Reader, at: u64, count: usize) -> (Vec<u8>, Reader) {
    spawn_blocking(move || {
        reader.seek(SeekFrom::Start(at)).unwrap();
        let mut bytes = vec![0; count];
        reader.read_exact(&mut bytes).unwrap();
        (bytes, reader)
    })
    .await
    .unwrap()
}

async fn failure(reader: Reader) -> StreamError {
    let error = read_all(reader).await.0.unwrap_err();
    let error = StreamError::of(&error).unwrap().clone();
    assert!(!error.to_string().contains("secret"), "{error}");
    error
}

/// As [`failure`], for what might go on for ever if it is wrong.
async fn failure_in_time(reader: Reader, handle: &StreamHandle) -> StreamError {
    let failed = tokio::time::timeout(Duration::from_secs(30), failure(reader)).await;
    let status = handle.status();
    // Frees the thread that reads.
    handle.abort();
    failed.unwrap_or_else(|_| panic!("it goes on: {status:?}"))
}

async fn event(changes: &mut Receiver<StreamEvent>, wanted: impl Fn(&StreamEvent) -> bool) -> StreamEvent {
    let wait = async {
        loop {
            let event = changes.recv().await.unwrap();
            if wanted(&event) {
                return event;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.expect("the event did not come")
}

async fn complete(changes: &mut Receiver<StreamEvent>) {
    event(changes, |event| *event == StreamEvent::Complete).await;
}

/// Compares without printing a megabyte.
fn assert_same(got: io::Result<Vec<u8>>, expected: &[u8]) {
    let got = got.unwrap();
    assert_eq!(got.len(), expected.len());
    assert!(got == expected, "the bytes differ from the source");
}
