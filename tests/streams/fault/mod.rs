//! A server that does what it is told, down to the byte: over TCP, TLS and HTTP/2, with scripts.
//!
//! A [`Script`] says how one request is answered. A file has a list of them; the last one is for all further
//! requests. What is a placeholder in a script is made of the request: see [`Script::say`].

mod certificates;
mod http1;
mod http2;
mod script;
mod server;

pub use certificates::Authority;
pub use script::{Script, head, proper, say};
pub use server::{Door, FaultServer, Seen};
