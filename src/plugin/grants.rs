//! Which folders may be granted to a plugin for reading.

use std::fs;
use std::path::{Path, PathBuf};

/// The kernel's own trees: memory, devices and secrets of other programs.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Sockets of other programs lie below.
const RUNTIME: &str = "/run";

/// Looks at a folder that a person wants to grant. `own` are the folders of the daemon itself. Blocks.
///
/// # Errors
/// A sentence with what to do.
pub(super) fn check(folder: &Path, own: &[PathBuf]) -> Result<(), String> {
    let shown = folder.display();
    let real = fs::canonicalize(folder)
        .map_err(|error| format!("{shown} is not there ({error}): name a folder that exists"))?;
    if !real.is_dir() {
        return Err(format!("{shown} is not a folder: name the folder that holds the files"));
    }
    if real.parent().is_none() || real == Path::new(RUNTIME) {
        return Err(format!("{shown} holds far more than files to play: name the folder that holds those"));
    }
    if let Some(kernel) = KERNEL.iter().find(|kernel| real.starts_with(kernel)) {
        return Err(format!(
            "{shown} is the kernel's ({kernel}) and holds nothing to play: name another folder"
        ));
    }
    for own in own {
        // A folder that does not exist yet will lie where it is named.
        let own = fs::canonicalize(own).unwrap_or_else(|_| own.clone());
        if real.starts_with(&own) || own.starts_with(&real) {
            let own = own.display();
            return Err(format!(
                "it would let the plugin read the player's own {own}, where secrets and decisions lie: name a folder beside it"
            ));
        }
    }
    Ok(())
}
