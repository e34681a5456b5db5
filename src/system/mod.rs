//! What the operating system is asked for.
