//! Real files from real encoders, decoded and compared with what went in.

pub(crate) mod fixture;
mod formats;
mod gapless;
mod random_seeks;
mod robustness;
mod seeking;
mod stretches;
