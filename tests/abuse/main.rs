//! Plugins that misbehave in every way that we could think of or have read about, against the real daemon.
//!
//! Each test is a [`stage::Stage`]: a daemon that plays the music of one good plugin without end while a second
//! good plugin is asked all the time, and beside them a row of [`case::Case`]s, each a plugin of its own. After
//! each case the stage looks at what must be as before: the music, the others' answers, processes, zombies,
//! descriptors and memory.

#![allow(clippy::unwrap_used, clippy::expect_used)] // clippy sees no test in a test's helper functions

#[path = "../support/mod.rs"]
mod support;

mod case;
mod dying;
mod errors;
mod greed;
mod hostile;
mod identity;
mod junk;
mod lines;
mod packages;
mod stage;
mod streams;
mod waiting;
