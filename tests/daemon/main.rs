//! The real daemon from outside: real plugins, sockets, files, a real bus and a virtual sound card.

#![allow(clippy::unwrap_used, clippy::expect_used)] // clippy sees no test in a test's helper functions
#![allow(clippy::single_range_in_vec_init)] // one faded part among others

#[path = "../support/mod.rs"]
mod support;

mod cards;
mod changed;
mod command_line;
mod crossfade;
mod devices;
mod devices_auto;
mod exact;
mod fixtures;
mod formats;
mod hls;
mod icecast;
mod lifecycle;
mod mixer;
mod outages;
mod outputs;
mod playback;
mod playlists;
mod plugins;
mod queue;
mod radio;
mod refusals;
mod runaway;
mod sound;
