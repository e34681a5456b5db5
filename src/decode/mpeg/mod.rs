//! MPEG audio and ADTS: runs of frames without an index, in which one has to be made.

mod header;
mod index;
mod toc;

pub(super) use index::{Entrance, Index};
