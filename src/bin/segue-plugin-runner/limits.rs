//! What a plugin may take of the machine, and rights that it has no use for.

use std::io;

use nix::errno::Errno;
use nix::sys::resource::{Resource, rlim_t, setrlimit};

/// Open files.
pub const MAX_OPEN_FILES: rlim_t = 256;
/// Private memory of one process that it can write to, in bytes. Node takes 50 MiB of it before it has done anything,
/// mostly for the stacks and heaps of its threads.
pub const MAX_DATA: rlim_t = 512 * 1024 * 1024;
/// The longest file, in bytes.
pub const MAX_FILE: rlim_t = 256 * 1024 * 1024;
/// Processes and threads, with all its descendants'. Node has 11 threads.
pub const MAX_PROCESSES: rlim_t = 128;

/// Sets every limit. `own_processes`: whether the limit of processes counts this plugin's only.
pub fn set(own_processes: bool) -> Result<(), Errno> {
    let limits = [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_RTPRIO, 0),
        (Resource::RLIMIT_MEMLOCK, 0),
        (Resource::RLIMIT_NOFILE, MAX_OPEN_FILES),
        (Resource::RLIMIT_DATA, MAX_DATA),
        (Resource::RLIMIT_FSIZE, MAX_FILE),
    ];
    for (what, most) in limits {
        setrlimit(what, most, most)?;
    }
    if own_processes {
        setrlimit(Resource::RLIMIT_NPROC, MAX_PROCESSES, MAX_PROCESSES)?;
    }
    Ok(())
}

/// Since Linux 5.14 a user namespace counts its own processes; before, the limit counted all of the user's, and
/// a busy user would have no plugins.
pub fn counts_processes_by_namespace() -> bool {
    let Ok(name) = nix::sys::utsname::uname() else { return false };
    let mut numbers = name.release().to_str().unwrap_or("").split(['.', '-']).map(|word| word.parse().ok());
    let (major, minor): (Option<u32>, Option<u32>) = (numbers.next().flatten(), numbers.next().flatten());
    (major, minor) >= (Some(5), Some(14))
}

/// Gives up every capability for good. Without any, which is how it should be, nothing happens.
#[allow(unsafe_code)]
pub fn give_up_rights() {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    /// Past the last one that the kernel knows it answers with an error.
    const CAPABILITIES: std::ops::Range<libc::c_ulong> = 0..64;
    /// `_LINUX_CAPABILITY_VERSION_3`: two words for each of the sets.
    const VERSION: u32 = 0x2008_0522;
    let header = Header { version: VERSION, pid: 0 };
    let none = [0_u32; 6];
    // SAFETY: prctl takes integers; capset reads a header and two triples of words, which outlive the call.
    unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        for capability in CAPABILITIES {
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
        libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr());
    }
}

/// The reason of the last call's failure when `failed`.
pub fn outcome(failed: bool) -> Result<(), Errno> {
    if failed {
        Err(io::Error::last_os_error().raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw))
    } else {
        Ok(())
    }
}
