//! Pages in a file instead of in memory, for who wants to hold more of a track than memory allows.
//!
//! The file has no name, so that nothing is left behind however the daemon ends. It grows as it is needed and
//! shrinks to nothing when no track is open. Where the disk is full or fails, pages are held in memory again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::statvfs::fstatvfs;
use tracing::{info, warn};

use super::buffer::PAGE;

/// So much of the disk is left to others, in bytes.
const LEFT_FREE: u64 = 16 * 1024 * 1024;
/// A disk that was full is looked at again after this time.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The file, and which of its pages are in use.
pub(super) struct Spool {
    file: File,
    pages: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Pages that were in use and are free again.
    free: Vec<usize>,
    /// Pages below this one exist in the file.
    grown: usize,
    used: usize,
    /// The disk was full then: nothing more is put into the file for a while.
    full: Option<Instant>,
    /// For good: the disk fails.
    broken: bool,
}

impl Spool {
    /// Up to `bytes`, in `folder`, which must exist. Blocks.
    pub fn open(folder: &Path, bytes: u64) -> io::Result<Spool> {
        Ok(Spool::over(tempfile::tempfile_in(folder)?, bytes))
    }

    fn over(file: File, bytes: u64) -> Spool {
        Spool { file, pages: (bytes / PAGE) as usize, state: Mutex::default() }
    }

    /// A page of zeros; none when all are in use or the disk takes no more.
    pub fn claim(self: &Arc<Self>) -> Option<Slot> {
        let mut state = self.lock();
        if state.takes_no_more() || state.used >= self.pages {
            return None;
        }
        let index = match state.free.pop() {
            Some(index) => index,
            None if self.has_space() => {
                state.grown += 1;
                state.grown - 1
            }
            None => {
                info!("the disk of the spool is full; tracks are held in memory until it is not");
                state.full = Some(Instant::now());
                return None;
            }
        };
        state.used += 1;
        Some(Slot { spool: Arc::clone(self), index })
    }

    /// How many pages it holds at most.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// How many pages it holds or could hold now.
    pub fn capacity(&self) -> usize {
        let state = self.lock();
        if state.takes_no_more() { state.used } else { self.pages }
    }

    #[allow(clippy::useless_conversion)] // they have 32 bits on 32-bit machines
    fn has_space(&self) -> bool {
        fstatvfs(&self.file).is_ok_and(|disk| {
            u64::from(disk.blocks_available()) * u64::from(disk.fragment_size()) >= LEFT_FREE + PAGE
        })
    }

    fn give_back(&self, index: usize) {
        let mut state = self.lock();
        state.used -= 1;
        state.free.push(index);
        if state.used == 0 {
            (state.free, state.grown) = (Vec::new(), 0);
            // What cannot be given back to the disk now is used again.
            let _ = self.file.set_len(0);
        }
    }

    fn fails(&self, error: &io::Error) {
        let mut state = self.lock();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                state.full = Some(Instant::now());
            }
            _ if !state.broken => {
                warn!(%error, "the spool cannot be used any more; tracks are held in memory; check its disk");
                state.broken = true;
            }
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn takes_no_more(&self) -> bool {
        self.broken || self.full.is_some_and(|since| since.elapsed() < LOOK_AGAIN)
    }
}

/// A page of the file, which is free again when this is dropped.
pub(super) struct Slot {
    spool: Arc<Spool>,
    index: usize,
}

impl Slot {
    /// Fails where the disk does; then the page's content is not to be relied on.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        let written = self.spool.file.write_all_at(bytes, self.at(offset));
        written.inspect_err(|error| self.spool.fails(error))
    }

    /// Reads what was written there.
    pub fn read(&self, offset: usize, out: &mut [u8]) -> io::Result<()> {
        let read = self.spool.file.read_exact_at(out, self.at(offset));
        read.inspect_err(|error| self.spool.fails(error))
    }

    fn at(&self, offset: usize) -> u64 {
        self.index as u64 * PAGE + offset as u64
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.spool.give_back(self.index);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// One whose disk is full, though it does not say so before it is written to.
    pub fn on_a_full_disk(bytes: u64) -> Spool {
        let full = File::options().read(true).write(true).open("/dev/full").unwrap();
        Spool::over(full, bytes)
    }

    #[test]
    fn pages_keep_their_content_and_the_file_shrinks_when_none_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Arc::new(Spool::open(folder.path(), 3 * PAGE).unwrap());
        let slots: Vec<Slot> = std::iter::from_fn(|| spool.claim()).collect();
        assert_eq!(slots.len(), 3);
        for (n, slot) in slots.iter().enumerate() {
            slot.write(n * 7, &[n as u8 + 1; 100]).unwrap();
        }
        let mut out = [0; 100];
        for (n, slot) in slots.iter().enumerate() {
            slot.read(n * 7, &mut out).unwrap();
            assert_eq!(out, [n as u8 + 1; 100]);
        }
        assert!(spool.file.metadata().unwrap().len() > 2 * PAGE);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it has no name");
        drop(slots);
        assert_eq!(spool.file.metadata().unwrap().len(), 0);
        assert!(spool.claim().is_some());
    }
}
