//! What the operating system is asked for.

mod files;
mod places;
pub mod realtime;

pub use files::{boot_id, load_json, replace};
pub use places::Places;
