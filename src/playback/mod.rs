//! Carries out what the player decided: opens tracks, feeds the decoder's PCM to the output, keeps what is to
//! be kept, and tells the player what happened.
//!
//! One task (here) owns the [`Machine`] and is the only one that calls it. It never waits: opening runs in tasks
//! of its own, decoding in a thread of its own, disks are waited for in the blocking pool. All of them report
//! into one inbox.

mod actor;
mod buffer;
mod effects;
mod feed;
mod feeder;
mod heard;
mod inbox;
mod names;
mod open;
mod persist;
mod runaway;
mod streams;

pub use actor::{Parts, Playback};
pub use persist::{Kept, restore};
