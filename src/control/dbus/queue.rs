//! `org.segue.Queue1`: what plays next.

use zbus::interface;
use zbus::object_server::SignalEmitter;

use super::errors::Error;
use super::values::{Change, Dict, check_uris, entry_number, entry_or_none, track};
use super::{Player, signals};
use crate::control::{Answer, Command, MAX_URIS_PER_CALL, Repeat, State};
use crate::track::EntryId;

/// How many entries one answer holds at the most. It keeps the answer far below the bus's own limit.
pub const MAX_LISTED: u32 = 1_000;

/// Entries are told by their numbers; 0 is no entry.
pub struct Queue1 {
    pub(super) player: Player,
}

#[interface(name = "org.segue.Queue1", spawn = false, introspection_docs = false)]
impl Queue1 {
    /// Adds entries before another, or at the end for 0; all or none.
    #[zbus(out_args("entries"))]
    async fn add(&self, uris: Vec<String>, before: u64) -> Result<Vec<u64>, Error> {
        check_uris(&uris)?;
        match self.player.ask(Command::Add { uris, before: entry_or_none(before) }).await? {
            Answer::Added(entries) => Ok(entries.into_iter().map(|entry| entry.0).collect()),
            _ => Ok(Vec::new()),
        }
    }

    async fn remove(&self, entries: Vec<u64>) -> Result<(), Error> {
        if entries.len() > MAX_URIS_PER_CALL {
            return Err(Error::BadArgument(format!(
                "remove at most {MAX_URIS_PER_CALL} entries in one call"
            )));
        }
        self.player.tell(Command::Remove(entries.into_iter().map(EntryId).collect())).await
    }

    async fn clear(&self) -> Result<(), Error> {
        self.player.tell(Command::Clear).await
    }

    async fn play(&self, entry: u64) -> Result<(), Error> {
        self.player.tell(Command::PlayEntry(EntryId(entry))).await
    }

    /// A part of the queue, at most [`MAX_LISTED`] entries.
    #[zbus(out_args("entries"))]
    async fn list(&self, from: u32, count: u32) -> Result<Vec<(u64, Dict)>, Error> {
        let count = count.min(MAX_LISTED);
        match self.player.ask(Command::List { from, count }).await? {
            Answer::Entries(entries) => {
                Ok(entries.iter().map(|listed| (listed.entry.0, track(&listed.uri, &listed.info))).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// What changed; `replaced` when changes were missed and the queue is to be read anew.
    #[zbus(signal)]
    pub async fn changed(
        emitter: &SignalEmitter<'_>,
        revision: u64,
        changes: Vec<Change>,
    ) -> zbus::Result<()>;

    #[zbus(property)]
    fn length(&self) -> u32 {
        self.player.now().queue.length
    }

    #[zbus(property)]
    fn current(&self) -> u64 {
        current(&self.player.now())
    }

    #[zbus(property)]
    fn revision(&self) -> u64 {
        self.player.now().queue.revision
    }

    #[zbus(property)]
    fn repeat(&self) -> &'static str {
        self.player.now().queue.repeat.as_str()
    }

    #[zbus(property)]
    async fn set_repeat(&self, mode: String) -> Result<(), Error> {
        let repeat = match mode.as_str() {
            "off" => Repeat::Off,
            "track" => Repeat::Track,
            "queue" => Repeat::Queue,
            _ => return Err(Error::BadArgument("Repeat is one of off, track and queue".into())),
        };
        let note = |told: &mut State, now: &State| told.queue.repeat = now.queue.repeat;
        self.player.set(Command::SetRepeat(repeat), note).await
    }
}

fn current(state: &State) -> u64 {
    entry_number(state.current.as_ref().map(|current| current.entry))
}

/// What to announce when `old` became `new`.
pub fn changes(old: &State, new: &State) -> Dict {
    let mut changes = signals::Changes::between(old, new);
    changes.compare("Length", |state| state.queue.length);
    changes.compare("Current", current);
    changes.compare("Revision", |state| state.queue.revision);
    changes.compare("Repeat", |state| state.queue.repeat.as_str());
    changes.into_dict()
}
