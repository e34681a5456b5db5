//! Real files from real encoders, decoded and compared with what went in.

mod chains;
mod channels;
mod damaged_runs;
pub(crate) mod fixture;
mod formats;
#[cfg(feature = "he-aac")]
mod he_aac;
mod interrupted;
mod joins;
mod loudness;
mod matroska;
mod random_seeks;
mod refusals;
mod robustness;
mod seeking;
mod stretches;
mod traps;
mod unfinished;
mod widths;
