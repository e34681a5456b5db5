//! [4] URL to bytes.
