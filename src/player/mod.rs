//! [2] The only part that decides; no I/O.
