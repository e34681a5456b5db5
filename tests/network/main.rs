//! The real daemon in a network of its own, whose name servers, addresses and routes come and go.

#![allow(clippy::unwrap_used, clippy::expect_used)] // clippy sees no test in a test's helper functions

#[path = "../support/mod.rs"]
mod support;

mod lab;
mod name_server;

mod outages;
mod reach;
mod starts;
