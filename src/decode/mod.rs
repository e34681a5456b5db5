//! [5] Bytes to PCM.
