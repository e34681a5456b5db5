//! The queue: entries in order, each with a number that is never used again.

use std::sync::Arc;

use crate::control::Repeat;
use crate::track::{EntryId, TrackInfo, TrackUri};

/// The most entries that the queue holds.
pub const MAX_ENTRIES: usize = 100_000;

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueEntry {
    /// Its number.
    pub id: EntryId,
    /// What it plays.
    pub uri: TrackUri,
    /// What is known about it by now.
    pub info: Arc<TrackInfo>,
}

/// Who says what a track is called. The plugin's word counts for more than the file's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Plugin,
    Container,
}

/// Entries in playing order. `revision` grows with each change.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    entries: Vec<QueueEntry>,
    last_id: u64,
    revision: u64,
    unknown: Arc<TrackInfo>,
}

impl Queue {
    /// A queue as it was saved. `last_id` keeps numbers from being used again.
    pub fn restore(entries: Vec<QueueEntry>, last_id: u64) -> Queue {
        let highest = entries.iter().map(|entry| entry.id.0).max().unwrap_or(0);
        Queue { entries, last_id: last_id.max(highest), revision: 1, unknown: Arc::default() }
    }

    /// All entries in order.
    pub fn entries(&self) -> &[QueueEntry] {
        &self.entries
    }

    /// The highest number given so far.
    pub fn last_id(&self) -> u64 {
        self.last_id
    }

    /// Grows with each change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry with this number.
    pub fn get(&self, id: EntryId) -> Option<&QueueEntry> {
        self.index(id).map(|index| &self.entries[index])
    }

    /// Where this entry stands, from 0.
    pub fn index(&self, id: EntryId) -> Option<usize> {
        self.entries.iter().position(|entry| entry.id == id)
    }

    /// Inserts before the given entry or at the end, and says which numbers the new entries got.
    /// The caller has checked the cap and that `before` exists.
    pub fn add(&mut self, uris: Vec<TrackUri>, before: Option<EntryId>) -> Vec<EntryId> {
        let at = before.and_then(|id| self.index(id)).unwrap_or(self.entries.len());
        let first = self.last_id + 1;
        self.last_id += uris.len() as u64;
        let ids: Vec<EntryId> = (first..=self.last_id).map(EntryId).collect();
        let unknown = self.unknown.clone();
        let added = ids.iter().zip(uris).map(|(&id, uri)| QueueEntry { id, uri, info: unknown.clone() });
        self.entries.splice(at..at, added);
        self.revision += u64::from(!ids.is_empty());
        ids
    }

    /// The entry plays something else from now on, under the same number.
    pub(super) fn becomes(&mut self, id: EntryId, uri: TrackUri) {
        if let Some(index) = self.index(id) {
            self.entries[index].uri = uri;
            self.revision += 1;
        }
    }

    /// Takes these out, as far as they are there, and says which were.
    pub fn remove(&mut self, ids: &[EntryId]) -> Vec<EntryId> {
        let wanted: std::collections::HashSet<EntryId> = ids.iter().copied().collect();
        let mut removed = Vec::new();
        self.entries.retain(|entry| {
            let goes = wanted.contains(&entry.id);
            if goes {
                removed.push(entry.id);
            }
            !goes
        });
        self.revision += u64::from(!removed.is_empty());
        removed
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.entries = Vec::new();
        self.revision += 1;
    }

    /// Keeps more knowledge about an entry. True when it was new.
    pub(super) fn learn(&mut self, id: EntryId, info: &TrackInfo, source: Source) -> bool {
        let Some(index) = self.index(id) else { return false };
        let known = &self.entries[index].info;
        let (first, second) = match source {
            Source::Plugin => (info, known.as_ref()),
            Source::Container => (known.as_ref(), info),
        };
        let mut merged = first.clone();
        merged.fill_from(second);
        if *self.entries[index].info == merged {
            return false;
        }
        self.entries[index].info = Arc::new(merged);
        self.revision += 1;
        true
    }

    /// The first entry.
    pub fn first(&self) -> Option<EntryId> {
        self.entries.first().map(|entry| entry.id)
    }

    /// What comes after this entry when it has been heard to its end.
    pub fn successor(&self, id: EntryId, repeat: Repeat) -> Option<EntryId> {
        match repeat {
            Repeat::Track => self.get(id).map(|entry| entry.id),
            Repeat::Off | Repeat::Queue => self.following(id, repeat == Repeat::Queue),
        }
    }

    /// What `Next` goes to: as [`Queue::successor`], but never the same entry by `Repeat::Track`.
    pub fn following(&self, id: EntryId, wrap: bool) -> Option<EntryId> {
        let next = self.entries.get(self.index(id)? + 1);
        next.or(if wrap { self.entries.first() } else { None }).map(|entry| entry.id)
    }

    /// What `Previous` goes to.
    pub fn preceding(&self, id: EntryId, wrap: bool) -> Option<EntryId> {
        let index = self.index(id)?;
        let entry = if index > 0 {
            self.entries.get(index - 1)
        } else if wrap {
            self.entries.last()
        } else {
            None
        };
        entry.map(|entry| entry.id)
    }
}
