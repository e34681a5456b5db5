//! The bounded store of byte ranges: pages of 64 KiB, each with one filled range.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::budget::Share;
use super::spool::Slot;

/// Bytes in a page.
pub(super) const PAGE: u64 = 64 * 1024;

/// Where the bytes of a page are.
pub(super) enum Data {
    Memory(Box<[u8]>),
    Spooled(Slot),
}

impl Data {
    /// False where the disk failed.
    fn write(&mut self, offset: usize, bytes: &[u8]) -> bool {
        match self {
            Data::Memory(data) => data[offset..offset + bytes.len()].copy_from_slice(bytes),
            Data::Spooled(slot) => return slot.write(offset, bytes).is_ok(),
        }
        true
    }

    /// False where the disk failed.
    fn read(&self, offset: usize, out: &mut [u8]) -> bool {
        match self {
            Data::Memory(data) => out.copy_from_slice(&data[offset..offset + out.len()]),
            Data::Spooled(slot) => return slot.read(offset, out).is_ok(),
        }
        true
    }
}

/// A piece of the file, aligned to its own size, of which `from..to` is filled.
struct Page {
    data: Data,
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
        if !page.data.read(offset, &mut out[..count]) {
            // It can be had again from where it came.
            self.remove(at / PAGE);
            return 0;
        }
        page.read = clock;
        count
    }

    /// Keeps the beginning of `bytes`, as much as there is room for. `reader` is where the reader stands.
    pub fn write(&mut self, at: u64, bytes: &[u8], reader: u64) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let position = at + done as u64;
            let (index, offset) = (position / PAGE, (position % PAGE) as usize);
            let page = match self.pages.entry(index) {
                Entry::Occupied(held) => held.into_mut(),
                Entry::Vacant(_) => {
                    let Some(data) = self.make_room(reader, index) else { break };
                    let page = Page { data, from: offset, to: offset, read: 0 };
                    self.pages.entry(index).or_insert(page)
                }
            };
            let count = (bytes.len() - done).min(PAGE as usize - offset);
            if !page.data.write(offset, &bytes[done..done + count]) {
                // Once more, in memory.
                self.remove(index);
                continue;
            }
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
        let has = self.pages.contains_key(&(at / PAGE))
            || self.share.may_take()
            || self.victim(reader, at / PAGE).is_some();
        if !has {
            self.share.wants();
        }
        has
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

    /// Gives back what lies behind the reader when the track holds more than its share and another wants it.
    pub fn trim(&mut self, reader: u64) {
        while self.share.over() && self.evict(reader, reader / PAGE) {}
    }

    /// Gives back everything, for ever: nothing can be written afterwards.
    pub fn close(&mut self) {
        while let Some((_, page)) = self.pages.pop_first() {
            self.share.give_back(page.data);
        }
        self.share.leave();
    }

    /// Bytes that the track can hold at present.
    pub fn cap(&self) -> u64 {
        self.share.cap()
    }

    /// Bytes of memory held.
    #[cfg(test)]
    pub fn memory(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// An empty page, for which another may have to go.
    fn make_room(&mut self, reader: u64, index: u64) -> Option<Data> {
        loop {
            if let Some(data) = self.share.take() {
                return Some(data);
            }
            if !self.evict(reader, index) {
                return None;
            }
        }
    }

    fn evict(&mut self, reader: u64, writing: u64) -> bool {
        let Some(index) = self.victim(reader, writing) else { return false };
        self.remove(index);
        true
    }

    fn remove(&mut self, index: u64) {
        if let Some(page) = self.pages.remove(&index) {
            self.share.give_back(page.data);
        }
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

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::sync::Arc;

    use super::super::budget::Budget;
    use super::super::spool::Spool;
    use super::super::spool::tests::on_a_full_disk;
    use super::*;

    fn byte(at: u64) -> u8 {
        (at ^ (at >> 8) ^ (at >> 16)).wrapping_mul(31) as u8
    }

    fn bytes(at: u64, count: u64) -> Vec<u8> {
        (at..at + count).map(byte).collect()
    }

    /// In memory; in a spool; in one whose disk is full.
    fn budget(spool: usize) -> (Budget, Option<tempfile::TempDir>) {
        match spool {
            0 => (Budget::new(16 * PAGE), None),
            1 => {
                let folder = tempfile::tempdir().unwrap();
                let spool = Spool::open(folder.path(), 16 * PAGE).unwrap();
                (Budget::new(4 * PAGE).with_spool(spool), Some(folder))
            }
            _ => (Budget::new(8 * PAGE).with_spool(on_a_full_disk(16 * PAGE)), None),
        }
    }

    #[test]
    fn a_spool_on_a_full_disk_leaves_what_memory_allows() {
        let (budget, _) = budget(2);
        let mut store = store(&budget);
        let held = store.write(0, &bytes(0, 20 * PAGE), 0) as u64;
        assert_eq!(held, 7 * PAGE, "the eighth is for the next track");
        let mut out = vec![0; PAGE as usize];
        for page in 0..7 {
            assert_eq!(store.read(page * PAGE, &mut out), out.len());
            assert!(out == bytes(page * PAGE, PAGE));
        }
        assert!(!store.has_room(held, 0), "nor is there said to be room");
    }

    fn store(budget: &Budget) -> Store {
        Store::new(budget.share(Arc::default()), PAGE)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn whatever_is_written_and_read_the_bytes_are_right_and_the_memory_bounded(
            steps in prop::collection::vec((0u64..40 * PAGE, 1u64..3 * PAGE, any::<bool>()), 1..60),
            spool in 0usize..3
        ) {
            let (budget, _folder) = budget(spool);
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
                    // A spool that turns out to be full halves what there is.
                    prop_assert!(room == (written > 0) || spool == 2 && room);
                    // A page that is written to apart from what it held gives that up; others must stay.
                    let apart = at / PAGE..=(at + count) / PAGE;
                    prop_assert!(store.extent(reader) >= before || spool == 2 || apart.contains(&(store.extent(reader) / PAGE)));
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
        assert_eq!(first.memory(), held, "nobody has asked for it");
        assert!(!second.has_room(started, 0));
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
