//! What the operating system is asked for.

pub mod allocator;
pub mod clock;
mod files;
mod inotify;
mod places;
pub mod realtime;
pub mod routes;

pub use files::{boot_id, claim, load_json, replace, set_aside};
pub use inotify::FileEvents;
pub use places::Places;
