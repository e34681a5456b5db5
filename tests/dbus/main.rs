//! The real server on a real, private bus, with a player that answers from a script; and the real client.

mod bus;
mod client;
mod server;
