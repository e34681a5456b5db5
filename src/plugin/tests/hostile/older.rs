//! Kernels that lack something are played by a filter that answers as they do. What is reported must then be true.

use super::*;

/// Answers one system call with ENOSYS, and becomes TARGET.
const WITHOUT: &str = r#"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NUMBER, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 126;
    words[0] = TARGET;
    execv(TARGET, words);
    return 127;
}
"#;

/// Runs the hostile plugin where a system call does not exist. Each thing that works must be reported, and of each
/// thing that is reported something must work.
async fn check_without(call: &str, keeper: bool) -> Option<Vec<Gap>> {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let source = folder.path().join("without.c");
    fs::write(&source, WITHOUT).unwrap();
    // Named as what it stands for.
    let (name, target) = match keeper {
        true => ("segue-plugin-runner", runner()),
        false => ("bwrap", PathBuf::from("/usr/bin/bwrap")),
    };
    let program = folder.path().join(name);
    let built = Command::new("gcc")
        .arg(format!("-DTARGET=\"{}\"", target.display()))
        .arg(format!("-DNUMBER=SYS_{call}"))
        .arg("-o")
        .args([&program, &source])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no compiler");
        return None;
    }
    let (found, isolation) = tried(keeper, false, |settings| match keeper {
        true => settings.runner = program,
        false => settings.bubblewrap = program,
    })
    .await;
    if !keeper && isolation.means() != Means::Bubblewrap {
        eprintln!("skipped: {isolation}");
        return None;
    }
    let mut unreported = Vec::new();
    let mut worked = BTreeSet::new();
    for (name, rule) in TABLE {
        if found.get(*name).is_none_or(|outcome| outcome != "done") {
            continue;
        }
        let gap = match (*name, rule) {
            (_, Allowed) => continue,
            // Within namespaces it is their first process, their files, and their own loop of a network.
            ("a signal to the keeper" | "listing /" | "listing /etc" | "listing the state", _) if !keeper => {
                continue;
            }
            ("an internet datagram" | "an IPv6 socket", _) if !keeper => continue,
            (_, Net) => Gap::Internet,
            (_, Unless(gap)) => *gap,
            (_, Denied) => {
                unreported.push(*name);
                continue;
            }
        };
        worked.insert(gap);
        if !isolation.gaps().contains(&gap) {
            unreported.push(*name);
        }
    }
    assert!(unreported.is_empty(), "under {isolation}: {unreported:?}");
    let reported: BTreeSet<Gap> = isolation.gaps().iter().copied().collect();
    assert_eq!(worked, reported, "under {isolation}: {found:#?}");
    Some(isolation.gaps().to_vec())
}

#[tokio::test]
async fn without_landlock_bubblewrap_is_enough() {
    if let Some(gaps) = check_without("landlock_create_ruleset", false).await {
        assert!(gaps.iter().all(|gap| gap.is_appetite()), "{gaps:?}");
    }
}

#[tokio::test]
async fn without_landlock_the_keeper_reports_that_files_are_open() {
    if let Some(gaps) = check_without("landlock_create_ruleset", true).await {
        for gap in [Gap::Files, Gap::Changes, Gap::Signals] {
            assert!(gaps.contains(&gap), "{gaps:?}");
        }
    }
}

#[tokio::test]
async fn without_seccomp_sockets_are_reported_within_bubblewrap() {
    if let Some(gaps) = check_without("seccomp", false).await {
        assert!(gaps.contains(&Gap::Unix) && !gaps.contains(&Gap::Internet), "{gaps:?}");
    }
}

#[tokio::test]
async fn without_seccomp_the_internet_is_reported_under_the_keeper() {
    if let Some(gaps) = check_without("seccomp", true).await {
        assert!(gaps.contains(&Gap::Unix) && gaps.contains(&Gap::Internet), "{gaps:?}");
    }
}
