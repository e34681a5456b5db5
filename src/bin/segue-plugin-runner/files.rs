//! Landlock: which files a plugin may touch, and whom it may signal.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};

use crate::contract::{GrantedFolder, Task};

/// The newest rules that are asked for; an older kernel enforces those that it knows.
const NEWEST: ABI = ABI::V10;
/// The version that brought the scope of signals.
const SIGNALS: ABI = ABI::V6;
/// Devices that programs need and that give nothing away.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Forbids whatever the task does not list. Returns the version in effect, 0 where the kernel has no Landlock.
pub fn confine(task: &Task) -> Result<i32, String> {
    let granted = task.granted.iter().map(opened).collect::<Result<Vec<File>, String>>()?;
    let status = restrict(task, granted).map_err(|error| format!("Landlock: {error}"))?;
    Ok(version(&status).map_or(0, |abi| abi as i32))
}

/// The very folder that was granted: what is opened here is what the rule is for.
fn opened(granted: &GrantedFolder) -> Result<File, String> {
    let path = granted.path.display();
    let flags = libc::O_PATH | libc::O_DIRECTORY;
    let folder = OpenOptions::new().read(true).custom_flags(flags).open(&granted.path);
    let folder =
        folder.map_err(|error| format!("{path}, which it was granted, cannot be opened: {error}"))?;
    let facts = folder.metadata().map_err(|error| format!("{path}: {error}"))?;
    if (facts.dev(), facts.ino()) != granted.identity {
        return Err(format!("{path} is no longer the folder that was granted"));
    }
    Ok(folder)
}

fn restrict(task: &Task, granted: Vec<File>) -> Result<RestrictionStatus, RulesetError> {
    let all = AccessFs::from_all(NEWEST);
    let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(NEWEST))?;
    if !task.network {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    rules
        .create()?
        .add_rules(path_beneath_rules(&task.run, read | AccessFs::Execute))?
        .add_rules(path_beneath_rules(&task.read, read))?
        .add_rules(granted.into_iter().map(|folder| Ok::<_, RulesetError>(PathBeneath::new(folder, read))))?
        .add_rules(path_beneath_rules(&task.write, all & !devices))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile))?
        .restrict_self()
}

/// Puts this process and its descendants where their signals reach nobody else. Returns whether the kernel
/// does that.
pub fn shield() -> bool {
    let shielded = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::Signal)
        .and_then(Ruleset::create)
        .and_then(|rules| rules.restrict_self());
    shielded.is_ok_and(|status| {
        status.ruleset == RulesetStatus::FullyEnforced && version(&status).is_some_and(|abi| abi >= SIGNALS)
    })
}

fn version(status: &RestrictionStatus) -> Option<ABI> {
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } if status.ruleset != RulesetStatus::NotEnforced => {
            Some(effective_abi)
        }
        _ => None,
    }
}
