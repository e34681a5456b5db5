//! `segue plugin check` and `call`, as a library and as a program, with real plugins that keep the contract or break
//! it in one point.

#![allow(clippy::unwrap_used, clippy::expect_used)] // clippy sees no test in a test's helper functions

mod by_hand;
mod new;
mod program;
mod table;
mod workshop;
