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
/// What is kept of one plugin, counted in tracks, albums and artists.
const MAX_WEIGHT: usize = 2_048;

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
    weight: usize,
}

struct Kept {
    since: Instant,
    weight: usize,
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
        weight: usize,
    ) {
        if weight > MAX_WEIGHT {
            return;
        }
        let key = (method, content_id.to_owned());
        let mut metadata = self.metadata.lock().unwrap_or_else(PoisonError::into_inner);
        metadata.remove(&key);
        metadata.order.push_back(key.clone());
        metadata.weight += weight;
        metadata.kept.insert(key, Kept { since: Instant::now(), weight, value: Arc::new(value) });
        while metadata.weight > MAX_WEIGHT {
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
            self.weight -= gone.weight;
            self.order.retain(|kept| kept != key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_answers_make_room_and_none_outweighs_the_cap() {
        let answers = Answers::default();
        answers.keep(Capability::GetAlbum, "heavy", 0_usize, MAX_WEIGHT + 1);
        assert_eq!(answers.get::<usize>(Capability::GetAlbum, "heavy"), None);
        for number in 0..=MAX_WEIGHT {
            answers.keep(Capability::GetTrack, &number.to_string(), number, 1);
        }
        assert_eq!(answers.get::<usize>(Capability::GetTrack, "0"), None);
        assert_eq!(answers.get(Capability::GetTrack, "1"), Some(1_usize));
        assert_eq!(answers.get::<usize>(Capability::GetArtist, "1"), None);
        answers.keep(Capability::GetTrack, "1", 7_usize, 1);
        assert_eq!(answers.get(Capability::GetTrack, "1"), Some(7_usize));
        let metadata = answers.metadata.lock().unwrap();
        assert_eq!((metadata.weight, metadata.kept.len()), (MAX_WEIGHT, metadata.order.len()));
    }
}
