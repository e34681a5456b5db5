//! The output against the virtual card: what was written is what was heard.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod card;
mod cuts;
mod exact;
mod player;
mod silence;
mod sizes;
mod stubborn;
mod trouble;

use segue::output::SourceFormat;

fn source(rate: u32, bits: u16) -> SourceFormat {
    SourceFormat { rate, channels: 2, bits, lossy: false }
}
