//! Signals through the chain, measured.

mod conversion;
