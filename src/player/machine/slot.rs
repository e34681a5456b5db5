//! How far the current entry, and what comes behind it, have come on their way to the ear.

use std::time::Duration;

use crate::player::effect::Ticket;
use crate::track::EntryId;

/// How far the current entry has come on its way to the ear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Slot {
    /// Nothing is open.
    Empty,
    /// Being resolved and opened, to begin at `start`.
    Opening { ticket: Ticket, start: Duration },
    /// Being decoded.
    Feeding { ticket: Ticket },
    /// Decoded to its end, still being heard.
    Fed { ticket: Ticket },
}

/// What comes behind the current sound: another entry, or the current one, opened again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Coming {
    pub(super) ticket: Ticket,
    pub(super) entry: EntryId,
    /// Where in the entry.
    pub(super) start: Duration,
}

/// How far what comes has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NextSlot {
    /// Not thought of yet, or there is nothing.
    Empty,
    /// Being resolved and opened.
    Opening(Coming),
    /// Open; will be decoded as soon as the current one is at its end.
    Ready(Coming),
    /// Being decoded behind the current one, which is still heard. `fed`: also to its end.
    Taken { coming: Coming, fed: bool },
}

impl Slot {
    pub(super) fn ticket(self) -> Option<Ticket> {
        match self {
            Slot::Empty => None,
            Slot::Opening { ticket, .. } | Slot::Feeding { ticket } | Slot::Fed { ticket } => Some(ticket),
        }
    }
}

impl NextSlot {
    pub(super) fn coming(self) -> Option<Coming> {
        match self {
            NextSlot::Empty => None,
            NextSlot::Opening(coming) | NextSlot::Ready(coming) | NextSlot::Taken { coming, .. } => {
                Some(coming)
            }
        }
    }
}
