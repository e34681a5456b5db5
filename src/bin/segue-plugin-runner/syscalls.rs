//! The filter of system calls.
//!
//! Everything is allowed but what is listed: a list of what all interpreters and their libraries need would be
//! out of date with the next of them. `socket` alone is the other way round.
//!
//! On processors that the compiler of filters does not know (32-bit ARM) `no_syscalls.rs` takes this file's place.

use std::collections::BTreeMap;

use libc::{c_int, c_long};
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// For administrators and debuggers, or a way round other rules. What it makes outlives a plugin (System V and
/// POSIX queues and segments), too.
const FORBIDDEN: &[c_long] = &[
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_vhangup,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Answered as if the kernel did not have them: programs then do without. The flags of `clone3` are in memory,
/// where a filter cannot look, and C libraries fall back to `clone`.
const UNKNOWN: &[c_long] =
    &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_clone3];

/// Act on another process of the same user when this argument is not 0, which means oneself.
const ON_OTHERS: &[(c_long, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    (libc::SYS_migrate_pages, 0),
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    (libc::SYS_move_pages, 0),
];

const NAMESPACES: c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// The bits of a socket's type that are not flags.
const SOCKET_TYPE: u64 = 0xf;

/// Filters from now on and for ever. Returns whether this kernel does that.
pub fn confine(network: bool) -> Result<bool, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let forbidden = rules(network).map_err(|error| error.to_string())?;
    let unknown = UNKNOWN.iter().map(|call| (*call, vec![])).collect();
    let programs = [
        compiled(forbidden, libc::EPERM, arch)?,
        compiled(unknown, libc::ENOSYS, arch)?,
        if arch == TargetArch::x86_64 { without_x32() } else { BpfProgram::new() },
    ];
    for program in programs.iter().filter(|program| !program.is_empty()) {
        match apply_filter(program) {
            Ok(()) => {}
            Err(Error::Seccomp(error)) if is_unknown(&error) => return Ok(false),
            Err(error) => return Err(format!("seccomp: {error}")),
        }
    }
    Ok(true)
}

/// A kernel that is built without it.
fn is_unknown(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL))
}

fn compiled(rules: Rules, errno: c_int, arch: TargetArch) -> Result<BpfProgram, String> {
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch);
    filter.and_then(BpfProgram::try_from).map_err(|error| format!("seccomp: {error}"))
}

fn rules(network: bool) -> Result<Rules, seccompiler::BackendError> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let mut rules: Rules = FORBIDDEN.iter().map(|call| (*call, vec![])).collect();
    for (call, argument) in ON_OTHERS {
        rules.insert(*call, vec![SeccompRule::new(vec![when(*argument, Ne, 0)?])?]);
    }
    // Any of the bits.
    let mut clone = Vec::new();
    for bit in (0..32).map(|bit| 1_u64 << bit).filter(|bit| u64::from(NAMESPACES.cast_unsigned()) & bit != 0)
    {
        clone.push(SeccompRule::new(vec![when(0, MaskedEq(bit), bit)?])?);
    }
    rules.insert(libc::SYS_clone, clone);
    // Typing into the terminal that it was started from.
    rules.insert(
        libc::SYS_ioctl,
        vec![
            SeccompRule::new(vec![when(1, Eq, libc::TIOCSTI)?])?,
            SeccompRule::new(vec![when(1, Eq, libc::TIOCLINUX)?])?,
        ],
    );
    let mut socket = Vec::new();
    if network {
        let domains = [libc::AF_INET, libc::AF_INET6].map(|domain| u64::from(domain.unsigned_abs()));
        let [first, second] = domains;
        socket.push(SeccompRule::new(vec![when(0, Ne, first)?, when(0, Ne, second)?])?);
        let allowed = [libc::SOCK_STREAM, libc::SOCK_DGRAM].map(|kind| u64::from(kind.unsigned_abs()));
        for kind in (0..=SOCKET_TYPE).filter(|kind| !allowed.contains(kind)) {
            socket.push(SeccompRule::new(vec![when(1, MaskedEq(SOCKET_TYPE), kind)?])?);
        }
    }
    // Without any rule: always.
    rules.insert(libc::SYS_socket, socket);
    Ok(rules)
}

/// The kernel looks at the lower half only of the arguments that are compared here.
fn when(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value)
}

/// x86-64 has every call a second time under a number with this bit, where it is built for x32 programs.
fn without_x32() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    let word = |code: u32, k: u32| seccompiler::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut is_x32 = word(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, X32);
    is_x32.jf = 1;
    vec![
        // The number of the call is the first word of what a filter sees.
        word(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        is_x32,
        word(libc::BPF_RET | libc::BPF_K, SeccompAction::Errno(libc::ENOSYS.unsigned_abs()).into()),
        word(libc::BPF_RET | libc::BPF_K, SeccompAction::Allow.into()),
    ]
}
