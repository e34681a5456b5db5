//! In the place of `syscalls.rs` on processors for which no filter of system calls can be made.

/// Filters nothing, and says so.
pub fn confine(_network: bool) -> Result<bool, String> {
    Ok(false)
}
