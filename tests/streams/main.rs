//! Streams as they are met: servers with every fault that is known, played by the real daemon to a virtual card, and
//! compared with the source frame by frame.

#![allow(clippy::unwrap_used, clippy::expect_used)] // clippy sees no test in a test's helper functions
#![allow(clippy::single_range_in_vec_init)] // one faded part among others

#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod expiry;
mod fault;
mod gaps;
mod heads;
mod nginx;
mod outages;
mod ranges;
mod table;
mod tls;
