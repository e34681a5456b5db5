//! The real server on a real, private bus, with a player that answers from a script.

mod bus;
mod server;
