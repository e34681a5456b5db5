//! The real server on a real, private bus, with a player that answers from a script; and the real client.

#![allow(clippy::unwrap_used, clippy::expect_used)] // clippy sees no test in a test's helper functions

mod bus;
mod client;
mod plugins;
mod rights;
mod server;
