//! Segue: a headless audio player. ARCHITECTURE.md is the map.

pub mod app;
pub mod config;
pub mod control;
pub mod decode;
pub mod dsp;
pub mod output;
pub mod playback;
pub mod player;
pub mod plugin;
pub mod stream;
pub mod system;
pub mod track;
