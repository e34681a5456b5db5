//! Tries what must fail. Nothing of it changes anything where it does fail, and little where it does not.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use libc::c_int;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::signal::kill;
use nix::unistd::{ForkResult, fork, getppid};

use crate::contract::{Gap, Task};
use crate::limits::{MAX_DATA, MAX_OPEN_FILES, outcome};

/// A file that every system has and that no plugin is granted.
const SOMEBODYS: &str = "/etc/passwd";

/// What worked. `inside`: bubblewrap's namespaces are around this process.
pub fn gaps(task: &Task, inside: bool, own_processes: bool, landlock: bool) -> Vec<Gap> {
    // In a mount namespace of its own the root shows only what was put there.
    let listing = (landlock || !inside) && File::open("/").is_ok();
    let foreign = Some(task.foreign.as_path()).filter(|path| is(path, task.foreign_identity));
    let tried = [
        (Gap::Files, listing || File::open(SOMEBODYS).is_ok() || File::open("/proc/1/status").is_ok()),
        (Gap::Changes, foreign.is_some_and(writes_to)),
        (Gap::Names, Path::new(SOMEBODYS).exists()),
        (Gap::Modes, changes_mode(&task.package) || foreign.is_some_and(changes_mode)),
        (Gap::Internet, !task.network && reaches_internet(inside)),
        (Gap::Unix, socket(libc::AF_UNIX, libc::SOCK_STREAM)),
        (Gap::Netlink, socket(libc::AF_NETLINK, libc::SOCK_RAW)),
        (Gap::Packet, socket(libc::AF_PACKET, libc::SOCK_DGRAM)),
        (Gap::Vsock, socket(libc::AF_VSOCK, libc::SOCK_STREAM)),
        (Gap::IoUring, io_uring()),
        (Gap::Memory, reads_memory_of_parent()),
        // Inside, the parent is the namespace's own first process.
        (Gap::Signals, !inside && kill(getppid(), None).is_ok()),
        (Gap::Namespaces, makes_namespaces()),
        (Gap::Kernel, administers()),
        (Gap::Realtime, takes_realtime_priority()),
        (Gap::Hunger, maps(MAX_DATA)),
        (Gap::Descriptors, opens_more_files()),
        (Gap::Processes, !own_processes || forks_over_limit()),
    ];
    tried.into_iter().filter_map(|(gap, worked)| worked.then_some(gap)).collect()
}

/// Whether a path leads to this device and inode.
fn is(path: &Path, identity: (u64, u64)) -> bool {
    fs::metadata(path).is_ok_and(|facts| (facts.dev(), facts.ino()) == identity)
}

fn writes_to(foreign: &Path) -> bool {
    let new = foreign.join(format!(".segue-tries-{}", std::process::id()));
    fs::create_dir(&new).is_ok_and(|()| fs::remove_dir(&new).is_ok() || new.exists())
}

/// Sets the mode that it has.
fn changes_mode(path: &Path) -> bool {
    let mode = fs::metadata(path).map(|facts| facts.permissions().mode());
    mode.is_ok_and(|mode| fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o7777)).is_ok())
}

#[allow(unsafe_code)]
fn socket(domain: c_int, kind: c_int) -> bool {
    // SAFETY: takes integers; what it returns is closed here and known to nobody else.
    unsafe {
        let fd = libc::socket(domain, kind | libc::SOCK_CLOEXEC, 0);
        fd >= 0 && libc::close(fd) == 0
    }
}

/// Where sockets can be made, a network namespace of its own has no way out: then an address that belongs to
/// nobody has no route.
fn reaches_internet(inside: bool) -> bool {
    if !socket(libc::AF_INET, libc::SOCK_STREAM) {
        return false;
    }
    let routed = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.connect("192.0.2.1:9"));
    !inside || routed.is_ok()
}

/// Whether the kernel looked at what was asked, rather than refusing to.
fn let_through(result: Result<(), Errno>) -> bool {
    !matches!(result, Err(Errno::EPERM | Errno::EACCES | Errno::ENOSYS))
}

#[allow(unsafe_code)]
fn io_uring() -> bool {
    /// More than the kernel's `struct io_uring_params` (120 bytes).
    type Parameters = [u64; 32];
    let mut parameters: Parameters = [0; 32];
    // SAFETY: the kernel reads and writes the parameters, which outlive the call; what it returns is closed here.
    unsafe {
        let fd = libc::syscall(libc::SYS_io_uring_setup, 1, &raw mut parameters);
        fd >= 0 && libc::syscall(libc::SYS_close, fd) == 0
    }
}

#[allow(unsafe_code)]
fn reads_memory_of_parent() -> bool {
    let parent = getppid().as_raw();
    let mut byte = 0_u8;
    let own = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: the kernel writes at most one byte, to a variable that outlives the call. What it is to be copied
    // from is the parent's; that there may be nothing at this address is an answer as well.
    let result = unsafe { libc::process_vm_readv(parent, &raw const own, 1, &raw const own, 1, 0) };
    let_through(outcome(result < 0))
}

#[allow(unsafe_code)]
fn makes_namespaces() -> bool {
    /// No flag of `unshare`: with it the kernel refuses the whole as invalid, and nothing changes.
    const INVALID: c_int = 1;
    // SAFETY: takes an integer.
    let result = unsafe { libc::unshare(libc::CLONE_NEWUSER | INVALID) };
    let_through(outcome(result < 0))
}

/// Each with arguments that can have no effect.
#[allow(unsafe_code)]
fn administers() -> bool {
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: integers and null pointers; commands that do not exist.
    let calls = unsafe {
        [
            libc::syscall(libc::SYS_keyctl, -1, 0, 0, 0, 0),
            libc::syscall(libc::SYS_ptrace, -1, 0, 0, 0),
            libc::syscall(libc::SYS_bpf, -1, nothing, 0),
            libc::syscall(libc::SYS_userfaultfd, -1),
        ]
        .map(|result| outcome(result < 0))
    };
    // The last two may be forbidden to users anyway. An answer of the first two's own shows that nothing filters.
    calls.into_iter().any(let_through)
}

#[allow(unsafe_code)]
fn takes_realtime_priority() -> bool {
    let most = libc::sched_param { sched_priority: 1 };
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: on this process, with parameters that outlive the calls.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const most) == 0
            && libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const none) == 0
    }
}

/// Asks for more memory than is allowed, without touching it.
#[allow(unsafe_code)]
fn maps(bytes: rlim_t) -> bool {
    // Where addresses are too short for it, it cannot be had.
    let Ok(bytes) = usize::try_from(bytes) else { return false };
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping wherever the kernel likes, unmapped at once and never touched.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, kind, -1, 0);
        at != libc::MAP_FAILED && libc::munmap(at, bytes) == 0
    }
}

#[allow(unsafe_code)]
fn opens_more_files() -> bool {
    let Ok(first) = c_int::try_from(MAX_OPEN_FILES) else { return true };
    // SAFETY: takes integers; what it returns is closed here.
    unsafe {
        let fd = libc::fcntl(2, libc::F_DUPFD_CLOEXEC, first);
        fd >= 0 && libc::close(fd) == 0
    }
}

/// Whether the kernel starts a process though the limit, lowered for that, is reached. It does for root.
#[allow(unsafe_code)]
fn forks_over_limit() -> bool {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NPROC) else { return true };
    if setrlimit(Resource::RLIMIT_NPROC, 0, hard).is_err() {
        return true;
    }
    // SAFETY: this process has one thread, and the child does nothing but end.
    let forked = unsafe { fork() };
    let over = match forked {
        // SAFETY: ends the child without running anything of this program's.
        Ok(ForkResult::Child) => unsafe { libc::_exit(0) },
        Ok(ForkResult::Parent { child }) => {
            let _ = nix::sys::wait::waitpid(child, None);
            true
        }
        Err(_) => false,
    };
    let _ = setrlimit(Resource::RLIMIT_NPROC, soft, hard);
    over
}
