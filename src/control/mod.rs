//! [1] What the outside may ask and see.
//!
//! A request comes in as a [`Command`], goes to the player over a bounded channel, and is answered from what
//! the player knows at that moment. What is visible goes out as a [`State`] (the newest value wins) and as
//! [`Notice`]s (each one counts, in order).

mod command;
pub mod dbus;
mod state;

pub use command::{
    Answer, Command, CommandError, Controller, ListedEntry, MAX_URIS_PER_CALL, Request, controller,
};
pub use state::{
    Buffer, Can, Current, LastError, Notice, Output, QueueChange, QueueState, Reason, Repeat, State, Status,
    VolumeControl,
};
