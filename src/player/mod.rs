//! [2] The only part that decides; no I/O.
//!
//! The [`Machine`] takes commands and events as values, together with the time and the heard position, and
//! answers with [`Effect`]s. It owns the queue and knows what is open, what is decoded and what is heard. It
//! reads no clock, touches no file and awaits nothing, so that each of its decisions is tested with plain values.

mod album;
mod effect;
mod event;
mod machine;
mod queue;

#[cfg(test)]
mod tests;

pub use album::Place;
pub use effect::{Effect, Ticket};
pub use event::{Event, Failure, OpenedTrack};
pub use machine::{Intent, Machine, Now, Restored};
pub use queue::{MAX_ENTRIES, Queue, QueueEntry};
