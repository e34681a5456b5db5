//! How many searches may run at a time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::track::PluginId;

/// Searches of one plugin, and of all plugins together, each.
const MAX_EACH: usize = 8;
/// All that run.
const MAX_RUNNING: usize = 64;

/// Who searches what. Searches of a plugin that does not answer take no place of another's.
#[derive(Default)]
pub struct Slots(Mutex<HashMap<Option<PluginId>, usize>>);

/// A running search.
pub struct Slot<'a>(&'a Slots, Option<PluginId>);

impl Slots {
    /// A place for a search of one plugin, or of all; `None` when too many run.
    pub fn take(&self, plugin: Option<&PluginId>) -> Option<Slot<'_>> {
        let mut running = self.lock();
        if running.values().sum::<usize>() >= MAX_RUNNING {
            return None;
        }
        let count = running.entry(plugin.cloned()).or_default();
        if *count >= MAX_EACH {
            return None;
        }
        *count += 1;
        Some(Slot(self, plugin.cloned()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<PluginId>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut running = self.0.lock();
        if let Some(count) = running.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_that_does_not_answer_takes_no_place_of_another() {
        let slots = Slots::default();
        let id = |number: usize| format!("p{number}").parse::<PluginId>().unwrap();
        let slow: Vec<_> = (0..MAX_EACH).map(|_| slots.take(Some(&id(0))).unwrap()).collect();
        assert!(slots.take(Some(&id(0))).is_none());
        assert!(slots.take(Some(&id(1))).is_some() && slots.take(None).is_some());
        let many: Vec<_> = (1..MAX_EACH).flat_map(|n| (0..MAX_EACH).map(move |_| n)).collect();
        let many: Vec<_> = many.into_iter().map(|n| slots.take(Some(&id(n))).unwrap()).collect();
        assert!(slots.take(None).is_none(), "all places are taken");
        drop((slow, many));
        assert!(slots.take(Some(&id(0))).is_some());
        assert!(slots.lock().is_empty());
    }
}
