//! The bounded store of byte ranges: pages of 64 KiB, each with one filled range, and the limit that all
//! open tracks share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// Bytes in a page.
pub(super) const PAGE: u64 = 64 * 1024;

/// A piece of the file, aligned to its own size, of which `from..to` is filled.
struct Page {
    data: Box<[u8]>,
    from: usize,
    to: usize,
    /// When it was last read; 0 is never.
    read: u64,
}

/// What is held of one track.
pub(super) struct Store {
    pages: BTreeMap<u64, Page>,
    clock: u64,
    /// Bytes behind the reader that are not given up.
    behind: u64,
    share: Share,
}

impl Store {
    pub fn new(share: Share, behind: u64) -> Self {
        Store { pages: BTreeMap::new(), clock: 0, behind, share }
    }

    /// Offset of the first byte at or after `at` that is not held.
    pub fn extent(&self, at: u64) -> u64 {
        let mut end = at;
        for (index, page) in self.pages.range(at / PAGE..) {
            let start = index * PAGE;
            if end < start + page.from as u64 || end >= start + page.to as u64 {
                break;
            }
            end = start + page.to as u64;
            if !end.is_multiple_of(PAGE) {
                break;
            }
        }
        end
    }

    /// Copies what is held at `at`, up to the end of its page; 0 when nothing is.
    pub fn read(&mut self, at: u64, out: &mut [u8]) -> usize {
        self.clock += 1;
        let clock = self.clock;
        let Some(page) = self.pages.get_mut(&(at / PAGE)) else { return 0 };
        let offset = (at % PAGE) as usize;
        if offset < page.from || offset >= page.to {
            return 0;
        }
        let count = out.len().min(page.to - offset);
        out[..count].copy_from_slice(&page.data[offset..offset + count]);
        page.read = clock;
        count
    }

    /// Keeps the beginning of `bytes`, as much as there is room for. `reader` is where the reader stands.
    pub fn write(&mut self, at: u64, bytes: &[u8], reader: u64) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let position = at + done as u64;
            let (index, offset) = (position / PAGE, (position % PAGE) as usize);
            if !self.pages.contains_key(&index) && !self.make_room(reader, index) {
                break;
            }
            let empty = || Page {
                data: vec![0; PAGE as usize].into_boxed_slice(),
                from: offset,
                to: offset,
                read: 0,
            };
            let page = self.pages.entry(index).or_insert_with(empty);
            let count = (bytes.len() - done).min(PAGE as usize - offset);
            page.data[offset..offset + count].copy_from_slice(&bytes[done..done + count]);
            if offset <= page.to && offset + count >= page.from {
                page.from = page.from.min(offset);
                page.to = page.to.max(offset + count);
            } else {
                // Not joined to what the page held: that is given up.
                (page.from, page.to) = (offset, offset + count);
            }
            done += count;
        }
        done
    }

    /// Whether a byte at `at` would displace nothing that is held in its page.
    pub fn joins(&self, at: u64) -> bool {
        let offset = (at % PAGE) as usize;
        self.pages.get(&(at / PAGE)).is_none_or(|page| (page.from..=page.to).contains(&offset))
    }

    /// Whether a byte can be written at `at` now.
    pub fn has_room(&self, at: u64, reader: u64) -> bool {
        self.pages.contains_key(&(at / PAGE))
            || self.share.may_take()
            || self.victim(reader, at / PAGE).is_some()
    }

    /// Pages that are in use.
    pub fn pages_held(&self) -> usize {
        self.pages.len()
    }

    /// Pages that a request at `at` could fill now.
    pub fn room(&self, reader: u64) -> usize {
        let protected = self.protected(reader);
        let spare = self.pages.keys().filter(|index| !protected.contains(index)).count();
        self.share.free() + spare
    }

    /// Gives back what lies behind the reader when the track holds more than its share.
    pub fn trim(&mut self, reader: u64) {
        while self.share.over() && self.evict(reader, reader / PAGE) {}
    }

    /// Gives back everything, for ever: nothing can be written afterwards.
    pub fn close(&mut self) {
        self.pages.clear();
        self.share.leave();
    }

    /// Bytes that the track can hold at present.
    pub fn cap(&self) -> u64 {
        self.share.budget.cap()
    }

    /// Bytes of memory held.
    #[cfg(test)]
    pub fn memory(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    fn make_room(&mut self, reader: u64, index: u64) -> bool {
        while !self.share.take() {
            if !self.evict(reader, index) {
                return false;
            }
        }
        true
    }

    fn evict(&mut self, reader: u64, writing: u64) -> bool {
        let Some(index) = self.victim(reader, writing) else { return false };
        self.pages.remove(&index);
        self.share.give_back();
        true
    }

    /// The page to give up first: never read before read long ago, far before near, so that the beginnings
    /// of ranges stay for a reader that comes back to them.
    fn victim(&self, reader: u64, writing: u64) -> Option<u64> {
        let protected = self.protected(reader);
        let unprotected =
            self.pages.iter().filter(|(index, _)| !protected.contains(index) && **index != writing);
        unprotected.min_by_key(|(index, page)| (page.read, u64::MAX - **index)).map(|(index, _)| *index)
    }

    /// Pages from `behind` the reader to the end of what it can read without waiting. A reader that waits
    /// comes before one that may go back.
    fn protected(&self, reader: u64) -> std::ops::RangeInclusive<u64> {
        let end = self.extent(reader);
        let behind = if end > reader { self.behind } else { 0 };
        let first = reader.saturating_sub(behind) / PAGE;
        first..=end.saturating_sub(1).max(reader) / PAGE
    }
}

/// The memory that all open tracks may use together.
#[derive(Clone)]
pub(super) struct Budget {
    /// In pages.
    total: usize,
    /// What each track gets even while the others hold the rest.
    reserve: usize,
    state: Arc<Mutex<BudgetState>>,
}

#[derive(Default)]
struct BudgetState {
    used: usize,
    /// Pages by track.
    tracks: BTreeMap<u64, Track>,
    next: u64,
}

struct Track {
    pages: usize,
    /// Wakes the task that fetches when another gives memory back.
    freed: Arc<Notify>,
}

impl Budget {
    pub fn new(bytes: u64) -> Self {
        let total = (bytes / PAGE).max(4) as usize;
        Budget { total, reserve: (total / 8).clamp(1, 4), state: Arc::default() }
    }

    /// Another track's share. `freed` is notified when memory may have become free.
    pub fn share(&self, freed: Arc<Notify>) -> Share {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        state.tracks.insert(id, Track { pages: 0, freed });
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
        if tracks <= 1 { self.total - self.reserve } else { (self.total / 2).max(self.reserve) }
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
        let common = self.budget.total.saturating_sub(state.used);
        quota.min(common.max(self.budget.reserve.saturating_sub(own)))
    }

    /// Pages that can be taken now.
    fn free(&self) -> usize {
        self.free_in(&self.budget.lock())
    }

    fn may_take(&self) -> bool {
        self.free() > 0
    }

    fn take(&self) -> bool {
        let mut state = self.budget.lock();
        if self.free_in(&state) == 0 {
            return false;
        }
        state.used += 1;
        if let Some(track) = state.tracks.get_mut(&self.id) {
            track.pages += 1;
        }
        true
    }

    /// Whether the track holds more than its part, because another was opened meanwhile.
    fn over(&self) -> bool {
        let state = self.budget.lock();
        self.own(&state) > self.budget.limit(state.tracks.len())
    }

    fn give_back(&self) {
        let mut state = self.budget.lock();
        state.used = state.used.saturating_sub(1);
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
    fn leave(&self) {
        let mut state = self.budget.lock();
        if let Some(track) = state.tracks.remove(&self.id) {
            state.used = state.used.saturating_sub(track.pages);
        }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn byte(at: u64) -> u8 {
        (at ^ (at >> 8) ^ (at >> 16)).wrapping_mul(31) as u8
    }

    fn bytes(at: u64, count: u64) -> Vec<u8> {
        (at..at + count).map(byte).collect()
    }

    fn store(budget: &Budget) -> Store {
        Store::new(budget.share(Arc::default()), PAGE)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn whatever_is_written_and_read_the_bytes_are_right_and_the_memory_bounded(
            steps in prop::collection::vec((0u64..40 * PAGE, 1u64..3 * PAGE, any::<bool>()), 1..60)
        ) {
            let budget = Budget::new(16 * PAGE);
            let mut store = store(&budget);
            let mut reader = 0;
            let mut out = vec![0; PAGE as usize];
            for (at, count, read) in steps {
                if read {
                    reader = at;
                    let end = store.extent(at);
                    let mut position = at;
                    while position < end {
                        let got = store.read(position, &mut out) as u64;
                        prop_assert!(got > 0 && position + got <= end);
                        prop_assert_eq!(&out[..got as usize], &bytes(position, got)[..]);
                        position += got;
                    }
                    prop_assert_eq!(store.read(end, &mut out), 0);
                } else {
                    let before = store.extent(reader);
                    let room = store.has_room(at, reader);
                    let written = store.write(at, &bytes(at, count), reader) as u64;
                    prop_assert_eq!(room, written > 0);
                    // A page that is written to apart from what it held gives that up; others must stay.
                    let apart = at / PAGE..=(at + count) / PAGE;
                    prop_assert!(store.extent(reader) >= before || apart.contains(&(store.extent(reader) / PAGE)));
                }
                prop_assert!(store.memory() <= 16 * PAGE);
                prop_assert_eq!(budget.used(), store.memory());
            }
        }
    }

    #[test]
    fn a_full_store_takes_no_more_until_the_reader_moves() {
        let budget = Budget::new(16 * PAGE);
        let mut store = store(&budget);
        let written = store.write(0, &bytes(0, 32 * PAGE), 0) as u64;
        assert_eq!(written, budget.cap());
        assert!(!store.has_room(written, 0));
        assert!(store.has_room(written, 3 * PAGE));
    }

    #[test]
    fn the_head_survives_a_visit_to_the_tail() {
        let budget = Budget::new(16 * PAGE);
        let mut store = store(&budget);
        let head = store.write(0, &bytes(0, 32 * PAGE), 0) as u64;
        let tail = 1000 * PAGE;
        assert_eq!(store.write(tail, &bytes(tail, 3 * PAGE), tail), 3 * PAGE as usize);
        assert_eq!(store.extent(0), head - 3 * PAGE);
    }

    #[test]
    fn a_second_track_begins_with_the_reserve_and_ends_with_a_half() {
        let budget = Budget::new(32 * PAGE);
        let mut first = store(&budget);
        let held = first.write(0, &bytes(0, 40 * PAGE), 0) as u64;
        let mut second = store(&budget);
        let started = second.write(0, &bytes(0, 40 * PAGE), 0) as u64;
        assert_eq!(held + started, 32 * PAGE);
        first.trim(20 * PAGE);
        let more = second.write(started, &bytes(started, 40 * PAGE), 0) as u64;
        assert_eq!(started + more, 16 * PAGE);
        drop(first);
        second.write(16 * PAGE, &bytes(16 * PAGE, 40 * PAGE), 0);
        assert_eq!(second.memory(), held);
        second.close();
        assert_eq!(budget.used(), 0);
        assert_eq!(second.write(0, &bytes(0, 10), 0), 0);
    }
}
