//! What must be as before, whatever a bad plugin did: the music, the neighbour, processes, descriptors, memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use super::Stage;
use crate::support::prelude::*;

/// How long a good plugin's answer may take while a bad one does its worst, on a machine that is busy with other
/// tests as well. Usually it is some milliseconds.
const PROMPT: Duration = Duration::from_secs(5);
/// What the daemon may need more than at the beginning, however often it is provoked: a thousand lines of each log,
/// and the allocator's reserve. One line of the greatest length that is kept would be more.
const MEMORY_BOUND: u64 = 8 * 1024 * 1024;
/// What it may need more for a moment: a line of 10 MiB in a buffer that has just grown, and what is read from it.
const PEAK_BOUND: u64 = 64 * 1024 * 1024;
/// How long processes, descriptors and memory may take to be given back.
const SETTLING: Duration = Duration::from_secs(30);

/// What the daemon holds of the system's resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Footprint {
    /// Open descriptors by what they are; sockets are left out, since the music comes through them.
    descriptors: BTreeMap<String, usize>,
    /// Sockets: a few come and go.
    sockets: usize,
}

impl Stage {
    pub(super) async fn neighbour_answers(&self) -> Result<(), String> {
        let asked = Instant::now();
        let found = tokio::time::timeout(2 * PROMPT, self.search(self.neighbour.id(), "neighbour")).await;
        self.slowest.fetch_max(asked.elapsed().as_millis() as u64, Ordering::Relaxed);
        match found {
            Ok(Ok(titles)) if titles == ["Good neighbour"] && asked.elapsed() <= PROMPT => Ok(()),
            other => Err(format!("the neighbour's answer after {:?}: {other:?}", asked.elapsed())),
        }
    }

    /// All that must be as it was before a bad plugin.
    pub(super) async fn nothing_is_left(
        &self,
        id: &str,
        before: &Footprint,
        memory: u64,
    ) -> Result<(), String> {
        let mark = self.mark_of(id);
        settles(|| match processes_with(&mark) {
            found if found.is_empty() => Ok(()),
            found => Err(format!("processes are left: {found:?}")),
        })
        .await?;
        settles(|| match process::zombies(self.daemon.pid()) {
            0 => Ok(()),
            count => Err(format!("{count} zombies are left")),
        })
        .await?;
        settles(|| {
            let now = self.footprint();
            let known = |kind: &String| before.descriptors.get(kind).copied().unwrap_or(0);
            let none_more = now.descriptors.iter().all(|(kind, count)| *count <= known(kind));
            if none_more && now.sockets <= before.sockets + 2 {
                Ok(())
            } else {
                Err(format!("descriptors are left: {now:?}, before {before:?}"))
            }
        })
        .await?;
        settles(|| self.memory_within(memory)).await?;
        self.neighbour_answers().await?;
        self.music_plays().await
    }

    /// The card gets more music, has never run dry, and the daemon says that it plays.
    pub async fn music_plays(&self) -> Result<(), String> {
        let heard = self.heard();
        settles(|| if self.heard() > heard { Ok(()) } else { Err("the music stands still".to_owned()) })
            .await?;
        let deadline = Instant::now() + SETTLING;
        while self.daemon.state().await != "playing" {
            if Instant::now() > deadline {
                return Err(format!("the player is {}", self.daemon.state().await));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut errors = self.daemon.errors();
        // Tracks that the cases have nothing good for are passed over with an error.
        errors.retain(|error| !error.contains(":track:x"));
        let mut xruns = self.card.events_of("xrun");
        if self.calm.is_none() && !self.is_realtime() {
            // Among ten thousand others an ordinary thread comes too late now and then.
            xruns.clear();
        }
        match (xruns.as_slice(), errors.as_slice()) {
            ([], []) => Ok(()),
            (xruns, errors) => Err(format!("the music suffered: {xruns:?} {errors:?}")),
        }
    }

    /// Whether the kernel runs a thread of the daemon's, that for the card, before all ordinary ones.
    fn is_realtime(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.daemon.pid())).unwrap().flatten();
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok()).any(|stat| {
            // The 41st field is the policy; the second, which may have any characters in it, ends with `) `.
            let (_, fields) = stat.rsplit_once(") ").unwrap();
            fields.split(' ').nth(38).is_some_and(|policy| policy == "1")
        })
    }

    /// Bytes that the card has played.
    fn heard(&self) -> u64 {
        let folder = self.card.alsa_config().with_file_name(crate::support::card::PCM);
        let captures = fs::read_dir(folder).unwrap().flatten();
        let captures = captures.filter(|entry| entry.file_name().to_string_lossy().starts_with("capture-"));
        captures.filter_map(|capture| Some(capture.metadata().ok()?.len())).sum()
    }

    pub(super) fn memory_within(&self, before: u64) -> Result<(), String> {
        within(self.memory(), before + MEMORY_BOUND)
    }

    /// The same while the plugin is at it.
    pub(super) fn peak_within(&self, before: u64) -> Result<(), String> {
        within(self.memory(), before + PEAK_BOUND)
    }

    /// Memory that is the daemon's own, in bytes.
    pub(super) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.daemon.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
    }

    pub(super) fn footprint(&self) -> Footprint {
        let mut descriptors = BTreeMap::new();
        let folder = PathBuf::from(format!("/proc/{}/fd", self.daemon.pid()));
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            let target = target.to_string_lossy().into_owned();
            // Numbers of pipes and sockets tell nothing.
            let kind = target.split_once(":[").map_or(target.as_str(), |(kind, _)| kind);
            *descriptors.entry(kind.to_owned()).or_insert(0) += 1;
        }
        let sockets = descriptors.remove("socket").unwrap_or(0);
        Footprint { descriptors, sockets }
    }
}

fn within(memory: u64, bound: u64) -> Result<(), String> {
    if memory <= bound {
        return Ok(());
    }
    Err(format!("the daemon has {} KiB of memory, more than {} KiB", memory >> 10, bound >> 10))
}

/// Waits until there is nothing to complain about, or tells the complaint.
pub(super) async fn settles(mut look: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let deadline = Instant::now() + SETTLING;
    loop {
        match look() {
            Err(what) if Instant::now() > deadline => return Err(what),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            Ok(()) => return Ok(()),
        }
    }
}

/// Processes that live and have this among their arguments, confined or not.
pub(super) fn processes_with(mark: &str) -> Vec<String> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let lines = numbers.filter_map(|pid: i32| {
        let process = process::Process::find(pid)?;
        // A whole word: one id may begin with another one.
        let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let ours = words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes());
        (ours && process.is_alive()).then(|| format!("{pid} {}", process.command_line()))
    });
    lines.take(10).collect()
}
