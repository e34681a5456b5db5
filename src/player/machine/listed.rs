//! An entry that turned out to be an album's playlist becomes the album's tracks.

use super::Machine;
use crate::control::QueueChange;
use crate::player::effect::{Effect, Ticket};
use crate::player::queue::{MAX_ENTRIES, Source};
use crate::track::{EntryId, TrackInfo, TrackUri};

impl Machine {
    /// The entry itself becomes the track that plays, so that its sound goes on; the others come around it.
    pub(super) fn listed(
        &mut self,
        ticket: Ticket,
        mut listed: Vec<(TrackUri, TrackInfo)>,
        playing: usize,
        effects: &mut Vec<Effect>,
    ) {
        let coming = self.next.coming().filter(|coming| coming.ticket == ticket).map(|coming| coming.entry);
        let current = self.current.filter(|_| self.slot.ticket() == Some(ticket));
        let Some(entry) = current.or(coming).filter(|entry| self.queue.get(*entry).is_some()) else { return };
        let free = MAX_ENTRIES.saturating_sub(self.queue.len());
        if playing >= listed.len() || free < listed.len() {
            // It stays what it was, and plays this one track.
            return;
        }
        let after = listed.split_off(playing + 1);
        let Some((uri, info)) = listed.pop() else { return };
        self.event("expanded", format!("the playlist holds {} tracks", playing + 1 + after.len()), effects);
        self.queue.becomes(entry, uri);
        self.learn(entry, &info, Source::Plugin, effects);
        self.insert(listed, Some(entry), effects);
        self.insert(after, self.queue.following(entry, false), effects);
    }

    fn insert(
        &mut self,
        tracks: Vec<(TrackUri, TrackInfo)>,
        before: Option<EntryId>,
        effects: &mut Vec<Effect>,
    ) {
        if tracks.is_empty() {
            return;
        }
        let (uris, infos): (Vec<_>, Vec<_>) = tracks.into_iter().unzip();
        let entries = self.queue.add(uris, before);
        for (entry, info) in entries.iter().zip(&infos) {
            self.queue.learn(*entry, info, Source::Plugin);
        }
        self.changed(QueueChange::Added { entries, before }, effects);
    }
}
