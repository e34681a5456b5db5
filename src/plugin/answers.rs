//! What one plugin answered lately, and what it is being asked: so that it is not asked twice.
//!
//! It belongs to a supervisor and goes with it: a plugin that was disabled, changed or given other scopes begins anew.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{Shared, WeakShared};
use segue_protocol::manifest::Capability;

use super::error::CallError;
use crate::track::ResolvedStream;

/// Metadata is believed for so long.
const GOOD_FOR: Duration = Duration::from_secs(600);
/// What is kept of one plugin, counted in bytes of its replies.
const MAX_KEPT_BYTES: usize = 256 * 1024;

type Stream = Pin<Box<dyn Future<Output = Result<ResolvedStream, CallError>> + Send>>;
type Key = (Capability, String);

/// Metadata of the last minutes, and calls of `stream` that are not answered yet.
///
/// A resolved stream is never kept: whoever asks again has a reason to, such as a URL that is no longer good.
#[derive(Default)]
pub(super) struct Answers {
    metadata: Mutex<Metadata>,
    streams: Mutex<HashMap<String, WeakShared<Stream>>>,
}

#[derive(Default)]
struct Metadata {
    kept: HashMap<Key, Kept>,
    /// The oldest first.
    order: VecDeque<Key>,
    bytes: usize,
}

struct Kept {
    since: Instant,
    bytes: usize,
    value: Arc<dyn Any + Send + Sync>,
}

impl Answers {
    /// What was answered in the last ten minutes.
    pub(super) fn get<T: Clone + 'static>(&self, method: Capability, content_id: &str) -> Option<T> {
        let metadata = self.metadata.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = metadata.kept.get(&(method, content_id.to_owned()))?;
        (kept.since.elapsed() < GOOD_FOR).then(|| kept.value.downcast_ref().cloned()).flatten()
    }

    /// Keeps an answer, at the price of the oldest ones.
    pub(super) fn keep<T: Send + Sync + 'static>(
        &self,
        method: Capability,
        content_id: &str,
        value: T,
        bytes: usize,
    ) {
        if bytes > MAX_KEPT_BYTES {
            return;
        }
        let key = (method, content_id.to_owned());
        let mut metadata = self.metadata.lock().unwrap_or_else(PoisonError::into_inner);
        metadata.remove(&key);
        metadata.order.push_back(key.clone());
        metadata.bytes += bytes;
        metadata.kept.insert(key, Kept { since: Instant::now(), bytes, value: Arc::new(value) });
        while metadata.bytes > MAX_KEPT_BYTES {
            let Some(oldest) = metadata.order.front().cloned() else { break };
            metadata.remove(&oldest);
        }
    }

    /// The call of `stream` for this content: one that is on its way already, else a new one. It is forgotten
    /// when nobody awaits it any more.
    pub(super) fn stream(&self, content_id: &str, call: impl FnOnce() -> Stream) -> Shared<Stream> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let on_its_way = |call: &WeakShared<Stream>| call.upgrade().filter(|call| call.peek().is_none());
        if let Some(shared) = streams.get(content_id).and_then(on_its_way) {
            return shared;
        }
        streams.retain(|_, call| on_its_way(call).is_some());
        let shared = call().shared();
        if let Some(weak) = shared.downgrade() {
            streams.insert(content_id.to_owned(), weak);
        }
        shared
    }
}

impl Metadata {
    fn remove(&mut self, key: &Key) {
        if let Some(gone) = self.kept.remove(key) {
            self.bytes -= gone.bytes;
            self.order.retain(|kept| kept != key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_answers_make_room_and_none_is_longer_than_the_cap() {
        let answers = Answers::default();
        answers.keep(Capability::GetAlbum, "long", 0_usize, MAX_KEPT_BYTES + 1);
        assert_eq!(answers.get::<usize>(Capability::GetAlbum, "long"), None);
        let each = MAX_KEPT_BYTES / 8;
        for number in 0..9_usize {
            answers.keep(Capability::GetTrack, &number.to_string(), number, each);
        }
        assert_eq!(answers.get::<usize>(Capability::GetTrack, "0"), None);
        assert_eq!(answers.get(Capability::GetTrack, "1"), Some(1_usize));
        assert_eq!(answers.get::<usize>(Capability::GetArtist, "1"), None);
        answers.keep(Capability::GetTrack, "1", 7_usize, each);
        assert_eq!(answers.get(Capability::GetTrack, "1"), Some(7_usize));
        let metadata = answers.metadata.lock().unwrap();
        assert_eq!((metadata.bytes, metadata.kept.len(), metadata.order.len()), (MAX_KEPT_BYTES, 8, 8));
    }
}
