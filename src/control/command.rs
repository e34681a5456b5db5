//! Every request that the player takes, as a value: the inward boundary.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::state::{Buffer, Repeat};
use crate::dsp::ReplayGain;
use crate::track::{EntryId, TrackInfo, UriError};

/// How many requests may wait for the player. It answers each at once, so a full channel means a flood.
const WAITING_REQUESTS: usize = 64;

/// The longest list of URIs that one request may carry.
pub const MAX_URIS_PER_CALL: usize = 100_000;

/// What the outside may ask of the player.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Play, or go on after a pause. After a stop it begins at the start of the current entry.
    Play,
    /// Hold. Stopped stays stopped.
    Pause,
    /// Play when paused or stopped, else pause.
    PlayPause,
    /// Stop; the current entry stays, its position is 0.
    Stop,
    /// To the next entry; paused and stopped stay what they are. Without a next entry: stop.
    Next,
    /// To the entry before; paused and stopped stay what they are.
    Previous,
    /// Move by so many microseconds; past the end it is `Next`.
    SeekBy(i64),
    /// Move to so many microseconds, if this entry is still the current one.
    SetPosition(EntryId, i64),
    /// From 0 to 1; clamped.
    SetVolume(f64),
    /// Silence without touching the volume.
    SetMute(bool),
    /// What happens at the end of an entry or of the queue.
    SetRepeat(Repeat),
    /// Which loudness tags are followed.
    SetReplayGain(ReplayGain),
    /// Both ears hear both channels.
    SetMono(bool),
    /// How long one track fades into the next; zero is not at all.
    SetCrossfade(Duration),
    /// Sound goes to this device, or to those of the configuration. Whoever asks has looked whether it is there.
    SelectOutput(Option<String>),
    /// Adds these behind the current entry and plays the first: `segue play URI…`, MPRIS `OpenUri`. What was
    /// queued stays and follows.
    PlayUris(Vec<String>),
    /// Adds entries before the given one, or at the end.
    Add {
        /// URIs in order. All or none are added.
        uris: Vec<String>,
        /// The entry to add before.
        before: Option<EntryId>,
    },
    /// Takes entries out. Removing the current one goes on to the next.
    Remove(Vec<EntryId>),
    /// Empties the queue and stops.
    Clear,
    /// Plays this entry.
    PlayEntry(EntryId),
    /// Reads a part of the queue.
    List {
        /// Index of the first entry, from 0.
        from: u32,
        /// How many at the most.
        count: u32,
    },
    /// Where the ear is.
    Position,
    /// How the current track's buffer stands.
    Buffer,
    /// Forgets the last error.
    ClearError,
}

/// One entry of the queue, as listed.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedEntry {
    /// Its number.
    pub entry: EntryId,
    /// Its `segue:` or `http(s):` URI, never a resolved URL.
    pub uri: String,
    /// What is known about it by now.
    pub info: TrackInfo,
}

/// What a [`Command`] is answered with.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Done, nothing to say.
    Done,
    /// The numbers of what was added, in order.
    Added(Vec<EntryId>),
    /// A part of the queue.
    Entries(Vec<ListedEntry>),
    /// Microseconds from the start of the entry that is heard.
    Position {
        /// The time.
        micros: i64,
        /// False where the format allows a guess only.
        exact: bool,
    },
    /// The buffer of the current track.
    Buffer(Buffer),
}

/// Why a request was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Not a URI of ours.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// A `file:` URI outside of the folders that the configuration names.
    #[error("{0} is not below a folder named in [files] folders of segue.toml")]
    FileNotAllowed(String),
    /// Albums and artists cannot be queued yet.
    #[error("{0} is not a track: queue its tracks one by one")]
    NotATrack(String),
    /// The queue is at its cap.
    #[error("the queue is full: it holds at most {cap} entries, and {free} more fit; remove some first")]
    QueueFull {
        /// The cap.
        cap: usize,
        /// How many more fit.
        free: usize,
    },
    /// No such entry.
    #[error("there is no entry {0} in the queue; `segue queue` lists them")]
    NoSuchEntry(EntryId),
    /// Nothing to act on.
    #[error("the queue is empty; add something with `segue play URI`")]
    EmptyQueue,
    /// A live stream, or a server without ranges.
    #[error("this track cannot be sought in: {0}")]
    NotSeekable(String),
    /// The configuration leaves the volume to somebody else.
    #[error("the volume is fixed by [output] volume in segue.toml; set it on the amplifier")]
    FixedVolume,
    /// A number that is no number, or a list that is too long.
    #[error("{0}")]
    BadArgument(String),
    /// The daemon is on its way out.
    #[error("segued is stopping")]
    Stopping,
}

/// A [`Command`] and where its answer goes.
#[derive(Debug)]
pub struct Request {
    /// What is asked.
    pub command: Command,
    /// Takes the answer. A caller that is gone is no error.
    pub reply: oneshot::Sender<Result<Answer, CommandError>>,
}

/// The outside's end of the request channel.
#[derive(Clone, Debug)]
pub struct Controller {
    requests: mpsc::Sender<Request>,
}

/// Makes the two ends of the request channel.
pub fn controller() -> (Controller, mpsc::Receiver<Request>) {
    let (requests, receiver) = mpsc::channel(WAITING_REQUESTS);
    (Controller { requests }, receiver)
}

impl Controller {
    /// Sends a command and waits for its answer.
    pub async fn ask(&self, command: Command) -> Result<Answer, CommandError> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request { command, reply }).await.map_err(|_| CommandError::Stopping)?;
        answer.await.map_err(|_| CommandError::Stopping)?
    }
}
