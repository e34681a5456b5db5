//! Signals through the chain, measured.

mod conversion;
mod joins;
pub(crate) mod measure;
mod resampling;
