//! What the kernel says about processes.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

/// A process, told from a later one of the same number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// When it began, in the kernel's ticks.
    began: String,
    /// Its program.
    pub name: String,
}

impl Process {
    /// The process that has this number now.
    pub fn find(pid: i32) -> Option<Process> {
        let stat = Stat::read(pid)?;
        Some(Process { pid, began: stat.began, name: stat.name })
    }

    /// It runs; one that ended and waits for its parent does not.
    pub fn is_alive(&self) -> bool {
        Stat::read(self.pid)
            .is_some_and(|stat| stat.began == self.began && stat.state != "Z" && stat.state != "X")
    }

    /// Its words.
    pub fn command_line(&self) -> String {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    }
}

/// All processes below this one.
pub fn descendants(pid: i32) -> Vec<Process> {
    let numbers =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let parents: Vec<(i32, i32)> =
        numbers.filter_map(|pid| Stat::read(pid).map(|stat| (pid, stat.parent))).collect();
    let mut family = HashSet::from([pid]);
    loop {
        let before = family.len();
        family.extend(
            parents
                .iter()
                .filter(|(_, parent)| family.contains(parent))
                .map(|(pid, _)| *pid)
                .collect::<Vec<_>>(),
        );
        if family.len() == before {
            break;
        }
    }
    family.remove(&pid);
    family.into_iter().filter_map(Process::find).collect()
}

/// Children that ended and were not waited for.
pub fn zombies(pid: i32) -> usize {
    descendants(pid).iter().filter(|process| !process.is_alive()).count()
}

/// Time that the threads of this process have spent on a processor.
pub fn cpu(pid: i32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let spent = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

/// Memory in use, in bytes.
pub fn resident(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

struct Stat {
    name: String,
    state: String,
    parent: i32,
    began: String,
}

impl Stat {
    fn read(pid: i32) -> Option<Stat> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = text.split_once('(')?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let parent = fields.get(1)?.parse().ok()?;
        Some(Stat {
            name: name.to_owned(),
            state: (*fields.first()?).to_owned(),
            parent,
            began: (*fields.get(19)?).to_owned(),
        })
    }
}
