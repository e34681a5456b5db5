//! Keeps the queue and the state over restarts, and writes nothing while nothing changes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::config::Player;
use crate::control::Repeat;
use crate::dsp;
use crate::player::{Intent, MAX_ENTRIES, Machine, Queue, QueueEntry, Restored};
use crate::system;
use crate::track::{EntryId, TrackInfo};

/// The queue is written at most once in this time.
const QUEUE_PAUSE: Duration = Duration::from_secs(10);
/// The state, at most once in this time: a volume knob that is turned makes many changes.
const STATE_PAUSE: Duration = Duration::from_secs(1);
/// Writes that may wait for a slow disk: both files, twice. What changes meanwhile is written later.
const WAITING_WRITES: usize = 4;
/// Changes that come together are written together.
const GATHER: Duration = Duration::from_millis(200);

const VERSION: u32 = 1;

/// What both files say first.
#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    #[serde(flatten)]
    file: T,
}

#[derive(Serialize, Deserialize, Default)]
struct QueueFile {
    last_id: u64,
    entries: Vec<EntryFile>,
}

#[derive(Serialize, Deserialize)]
struct EntryFile {
    id: u64,
    uri: String,
    #[serde(default, skip_serializing_if = "is_unknown")]
    info: Arc<TrackInfo>,
}

fn is_unknown(info: &TrackInfo) -> bool {
    *info == TrackInfo::default()
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct StateFile {
    boot_id: String,
    /// As in the queue's file, which may be older.
    last_id: u64,
    current: Option<EntryId>,
    position_ms: u64,
    intent: Intent,
    repeat: Repeat,
    volume: Option<f64>,
    mute: bool,
    sound: Option<KeptSound>,
    output: Option<String>,
    station: bool,
}

/// What was set while the daemon ran holds over restarts, until the configuration says something else.
#[derive(Serialize, Deserialize)]
struct KeptSound {
    set: dsp::Settings,
    configured: dsp::Settings,
}

impl KeptSound {
    fn beside(kept: Option<KeptSound>, configured: dsp::Settings) -> dsp::Settings {
        kept.filter(|kept| kept.configured == configured).map_or(configured, |kept| kept.set)
    }
}

/// What an earlier run left, and who keeps it from now on.
pub struct Kept {
    /// For the player.
    pub restored: Restored,
    /// For the playback task.
    pub(super) keeper: Keeper,
}

/// Reads queue and state from the folder; blocks on the disk. What is damaged is set aside.
/// Must be called within a tokio runtime: later writes are made by a task of it.
pub fn restore(folder: PathBuf, settings: &Player, sound: dsp::Settings) -> Kept {
    let boot_id = system::boot_id();
    let queue = load::<QueueFile>(&folder.join("queue.json"));
    let state = load::<StateFile>(&folder.join("state.json")).unwrap_or_default();
    let same_boot = !boot_id.is_empty() && state.boot_id == boot_id;
    let restored = Restored {
        queue: read_queue(queue.unwrap_or_default(), state.last_id),
        current: state.current,
        position: Duration::from_millis(state.position_ms),
        intent: settings.resume.intent(state.intent, same_boot),
        repeat: state.repeat,
        volume: state.volume.filter(|volume| volume.is_finite()),
        mute: state.mute,
        sound: KeptSound::beside(state.sound, sound),
        selected_output: state.output,
        station: state.station,
    };
    Kept { restored, keeper: Keeper::new(folder, boot_id, settings.save_position_s, sound) }
}

/// Reads one of the two files; one that another version wrote is set aside like a damaged one.
fn load<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let versioned = system::load_json::<Versioned<T>>(path)?;
    if versioned.version == VERSION {
        return Some(versioned.file);
    }
    let version = versioned.version;
    tracing::warn!(file = %path.display(), version, "another version of segued wrote this file");
    system::set_aside(path);
    None
}

fn read_queue(file: QueueFile, last_id: u64) -> Queue {
    let mut last_id = file.entries.iter().map(|entry| entry.id).fold(file.last_id.max(last_id), u64::max);
    let mut seen = HashSet::new();
    let read = |entry: EntryFile| match entry.uri.parse() {
        Ok(uri) => {
            let mut id = entry.id;
            if id == 0 || !seen.insert(id) {
                last_id += 1;
                id = last_id;
            }
            Some(QueueEntry { id: EntryId(id), uri, info: entry.info })
        }
        Err(error) => {
            tracing::warn!(%error, "an entry of the saved queue is left out");
            None
        }
    };
    let entries = file.entries.into_iter().take(MAX_ENTRIES).filter_map(read).collect();
    Queue::restore(entries, last_id)
}

/// One of the two files, and when it may be written again.
#[derive(Default)]
struct Pending {
    changed_at: Option<Instant>,
    not_before: Option<Instant>,
}

impl Pending {
    fn changed(&mut self) {
        self.changed_at.get_or_insert_with(Instant::now);
    }

    fn due(&self) -> Option<Instant> {
        let gathered = self.changed_at? + GATHER;
        Some(self.not_before.map_or(gathered, |not_before| not_before.max(gathered)))
    }

    fn take_if_due(&mut self, now: Instant, pause: Duration) -> bool {
        let is_due = self.due().is_some_and(|due| due <= now);
        if is_due {
            self.changed_at = None;
            self.not_before = Some(now + pause);
        }
        is_due
    }
}

struct Write {
    path: PathBuf,
    content: Vec<u8>,
}

/// Writes queue and state when they changed, in order, without making anybody wait.
pub(super) struct Keeper {
    folder: PathBuf,
    boot_id: String,
    every: Option<Duration>,
    /// As the configuration has it.
    sound: dsp::Settings,
    position_saved: Instant,
    queue: Pending,
    state: Pending,
    writes: Option<mpsc::Sender<Write>>,
    writer: Option<JoinHandle<()>>,
}

impl Keeper {
    fn new(folder: PathBuf, boot_id: String, save_position_s: u64, sound: dsp::Settings) -> Keeper {
        let (writes, jobs) = mpsc::channel(WAITING_WRITES);
        Keeper {
            folder,
            boot_id,
            every: (save_position_s > 0).then(|| Duration::from_secs(save_position_s)),
            sound,
            position_saved: Instant::now(),
            queue: Pending::default(),
            state: Pending::default(),
            writes: Some(writes),
            writer: Some(tokio::spawn(write_in_order(jobs))),
        }
    }

    pub(super) fn queue_changed(&mut self) {
        self.queue.changed();
        self.state.changed();
    }

    pub(super) fn state_changed(&mut self) {
        self.state.changed();
    }

    /// Time passed while something plays: now and then the position is worth keeping.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.every.is_some_and(|every| now.duration_since(self.position_saved) >= every) {
            self.state.changed();
        }
    }

    /// When [`Keeper::save`] has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        match (self.queue.due(), self.state.due()) {
            (Some(queue), Some(state)) => Some(queue.min(state)),
            (queue, state) => queue.or(state),
        }
    }

    /// Writes what is due.
    pub(super) fn save(&mut self, machine: &Machine, position: Duration, now: Instant) {
        if self.writes.as_ref().is_some_and(|writes| writes.capacity() < 2) {
            // The disk is slow: nothing is piled up, and the newest is written when it has caught up.
            for pending in [&mut self.queue, &mut self.state] {
                pending.not_before = Some(now + STATE_PAUSE);
            }
            return;
        }
        if self.queue.take_if_due(now, QUEUE_PAUSE) {
            self.write("queue.json", &queue_file(machine));
        }
        if self.state.take_if_due(now, STATE_PAUSE) {
            self.position_saved = now;
            self.write("state.json", &self.state_file(machine, position));
        }
    }

    /// Writes what has changed since the last time, and returns the task that ends when it is on the disk.
    pub(super) fn last(&mut self, machine: &Machine, position: Duration) -> JoinHandle<()> {
        if self.queue.changed_at.take().is_some() {
            self.write("queue.json", &queue_file(machine));
        }
        let unchanged = self.state.changed_at.take().is_none();
        let nothing_to_keep =
            unchanged && machine.current().is_none() && !self.folder.join("state.json").exists();
        if !nothing_to_keep {
            self.write("state.json", &self.state_file(machine, position));
        }
        self.writes = None;
        self.writer.take().unwrap_or_else(|| tokio::spawn(async {}))
    }

    fn state_file(&self, machine: &Machine, position: Duration) -> StateFile {
        let (volume, mute, repeat) = machine.modes();
        StateFile {
            boot_id: self.boot_id.clone(),
            last_id: machine.queue().last_id(),
            current: machine.current(),
            position_ms: u64::try_from(position.as_millis()).unwrap_or(u64::MAX),
            intent: machine.intent(),
            repeat,
            volume: Some(volume),
            mute,
            sound: Some(KeptSound { set: machine.sound(), configured: self.sound }),
            output: machine.selected_output().map(str::to_owned),
            station: machine.is_station(),
        }
    }

    fn write(&self, name: &str, content: &impl Serialize) {
        let path = self.folder.join(name);
        let content = Versioned { version: VERSION, file: content };
        match (serde_json::to_vec(&content), &self.writes) {
            (Ok(content), Some(writes)) => {
                // Full only where the disk does not answer, and then this is lost either way.
                let _ = writes.try_send(Write { path, content });
            }
            (Err(error), _) => tracing::error!(file = %path.display(), %error, "cannot be written down"),
            (Ok(_), None) => {}
        }
    }
}

fn queue_file(machine: &Machine) -> QueueFile {
    let queue = machine.queue();
    let entries = queue.entries().iter().map(|entry| EntryFile {
        id: entry.id.0,
        uri: entry.uri.to_string(),
        info: entry.info.clone(),
    });
    QueueFile { last_id: queue.last_id(), entries: entries.collect() }
}

async fn write_in_order(mut jobs: mpsc::Receiver<Write>) {
    let mut failing = false;
    while let Some(Write { path, content }) = jobs.recv().await {
        let shown = path.display().to_string();
        let written = tokio::task::spawn_blocking(move || system::replace(&path, &content)).await;
        let error = match written {
            Ok(Ok(())) => {
                failing = false;
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        // Said once: a full or read-only disk would say so for ever.
        if !std::mem::replace(&mut failing, true) {
            tracing::warn!(file = %shown, %error, "cannot keep queue and position; free space or check the folder");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_while_it_ran_holds_until_the_configuration_changes() {
        let configured = dsp::Settings::default();
        let set = dsp::Settings { mono: true, ..configured };
        let kept = || Some(KeptSound { set, configured });
        assert_eq!(KeptSound::beside(kept(), configured), set);
        let changed = dsp::Settings { preamp_db: 3.0, ..configured };
        assert_eq!(KeptSound::beside(kept(), changed), changed);
        assert_eq!(KeptSound::beside(None, changed), changed);
    }
}
