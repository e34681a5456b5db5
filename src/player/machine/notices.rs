//! What is said to those outside.

use std::time::Duration;

use super::Machine;
use crate::control::{Notice, QueueChange};
use crate::player::effect::Effect;
use crate::player::queue::Source;
use crate::track::{EntryId, TrackInfo};

impl Machine {
    pub(super) fn event(&self, kind: &'static str, text: String, effects: &mut Vec<Effect>) {
        effects.push(Effect::Notify(Notice::Event { kind, entry: self.current, text }));
    }

    /// Tells that the position is not what the clock would say.
    pub(super) fn sought(&self, position: Duration, effects: &mut Vec<Effect>) {
        effects.push(Effect::Notify(Notice::Seeked(micros(position))));
    }

    /// What a person calls this entry.
    pub(super) fn title(&self, entry: EntryId) -> String {
        let Some(found) = self.queue.get(entry) else { return String::new() };
        named(&found.info).unwrap_or_else(|| found.uri.shown())
    }

    pub(super) fn learn(
        &mut self,
        entry: EntryId,
        info: &TrackInfo,
        source: Source,
        effects: &mut Vec<Effect>,
    ) {
        if self.queue.learn(entry, info, source) {
            self.changed(QueueChange::Info(entry), effects);
        }
    }

    /// The queue is another one now.
    pub(super) fn changed(&self, change: QueueChange, effects: &mut Vec<Effect>) {
        effects.push(Effect::Notify(Notice::Queue { revision: self.queue.revision(), change }));
        effects.push(Effect::SaveQueue);
    }
}

/// Title and performers, where there is a title.
pub(super) fn named(info: &TrackInfo) -> Option<String> {
    let title = info.title.as_ref()?;
    Some(match info.artists.as_slice() {
        [] => title.clone(),
        artists => format!("{title} by {}", artists.join(", ")),
    })
}

/// As the bus has it.
pub(super) fn micros(position: Duration) -> i64 {
    i64::try_from(position.as_micros()).unwrap_or(i64::MAX)
}
