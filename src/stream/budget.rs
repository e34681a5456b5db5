//! The limit that all open tracks share, in memory and in the spool.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::buffer::{Data, PAGE};
use super::spool::Spool;

/// The memory that all open tracks may use together.
#[derive(Clone)]
pub(super) struct Budget {
    /// In pages, of memory.
    memory: usize,
    /// Where pages are kept instead, as long as there is room.
    spool: Option<Arc<Spool>>,
    /// What each track gets even while the others hold the rest.
    reserve: usize,
    state: Arc<Mutex<BudgetState>>,
}

#[derive(Default)]
struct BudgetState {
    used: usize,
    /// How many of these are in memory.
    in_memory: usize,
    /// Pages by track.
    tracks: BTreeMap<u64, Track>,
    next: u64,
}

struct Track {
    pages: usize,
    /// It had no room for a byte when it last looked.
    wants: bool,
    /// Wakes the task that fetches when another gives memory back.
    freed: Arc<Notify>,
}

impl Budget {
    pub fn new(bytes: u64) -> Self {
        let memory = (bytes / PAGE).max(4) as usize;
        Budget { memory, spool: None, reserve: (memory / 8).clamp(1, 4), state: Arc::default() }
    }

    /// Pages go into this first.
    pub fn with_spool(self, spool: Spool) -> Self {
        Budget { spool: Some(Arc::new(spool)), ..self }
    }

    /// Pages that there can be. Where the spool is full, memory is what is left.
    fn total(&self) -> usize {
        let Some(spool) = &self.spool else { return self.memory };
        let capacity = spool.capacity();
        if capacity < spool.pages() { capacity + self.memory } else { capacity }
    }

    /// Another track's share. `freed` is notified when memory may have become free.
    pub fn share(&self, freed: Arc<Notify>) -> Share {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        state.tracks.insert(id, Track { pages: 0, wants: false, freed });
        drop(state);
        Share { budget: self.clone(), id }
    }

    /// Bytes that one track can hold at present.
    pub fn cap(&self) -> u64 {
        self.limit(self.lock().tracks.len()) as u64 * PAGE
    }

    /// Bytes held by all tracks.
    #[cfg(test)]
    pub fn used(&self) -> u64 {
        self.lock().used as u64 * PAGE
    }

    /// Pages for one of `tracks`. One alone leaves a little, so that the next can begin.
    fn limit(&self, tracks: usize) -> usize {
        let total = self.total();
        if tracks <= 1 { total - self.reserve } else { (total / 2).max(self.reserve) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BudgetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One track's claim on the [`Budget`].
pub(super) struct Share {
    budget: Budget,
    id: u64,
}

impl Share {
    fn own(&self, state: &BudgetState) -> usize {
        state.tracks.get(&self.id).map_or(0, |track| track.pages)
    }

    fn free_in(&self, state: &BudgetState) -> usize {
        if !state.tracks.contains_key(&self.id) {
            return 0;
        }
        let own = self.own(state);
        let quota = self.budget.limit(state.tracks.len()).saturating_sub(own);
        let common = self.budget.total().saturating_sub(state.used);
        quota.min(common.max(self.budget.reserve.saturating_sub(own)))
    }

    /// Bytes that the track can hold at present.
    pub fn cap(&self) -> u64 {
        self.budget.cap()
    }

    /// Pages that can be taken now.
    pub fn free(&self) -> usize {
        self.free_in(&self.budget.lock())
    }

    pub fn may_take(&self) -> bool {
        self.free() > 0
    }

    /// An empty page, if there may be another.
    pub fn take(&self) -> Option<Data> {
        let mut state = self.budget.lock();
        if self.free_in(&state) == 0 {
            return None;
        }
        let slot = self.budget.spool.as_ref().and_then(Spool::claim);
        // The spool may have turned out to be full just now.
        if slot.is_none() && (self.free_in(&state) == 0 || state.in_memory >= self.budget.memory) {
            return None;
        }
        state.used += 1;
        if let Some(track) = state.tracks.get_mut(&self.id) {
            track.pages += 1;
            track.wants = false;
        }
        Some(match slot {
            Some(slot) => Data::Spooled(slot),
            None => {
                state.in_memory += 1;
                Data::Memory(vec![0; PAGE as usize].into_boxed_slice())
            }
        })
    }

    /// There is no room for the next byte: those who hold more than their part are to give something back.
    pub fn wants(&self) {
        if let Some(track) = self.budget.lock().tracks.get_mut(&self.id) {
            track.wants = true;
        }
    }

    /// Whether the track holds more than its part while another, which was opened meanwhile, wants more than it has.
    pub fn over(&self) -> bool {
        let state = self.budget.lock();
        let others_want = state.tracks.iter().any(|(id, track)| *id != self.id && track.wants);
        others_want && self.own(&state) > self.budget.limit(state.tracks.len())
    }

    pub fn give_back(&self, data: Data) {
        let mut state = self.budget.lock();
        state.used = state.used.saturating_sub(1);
        state.in_memory -= usize::from(matches!(data, Data::Memory(_)));
        drop(data);
        if let Some(track) = state.tracks.get_mut(&self.id) {
            track.pages = track.pages.saturating_sub(1);
        }
        for (id, track) in &state.tracks {
            if *id != self.id {
                track.freed.notify_one();
            }
        }
    }

    /// Leaves the others the whole.
    pub fn leave(&self) {
        let mut state = self.budget.lock();
        state.tracks.remove(&self.id);
        for track in state.tracks.values() {
            track.freed.notify_one();
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.leave();
    }
}
