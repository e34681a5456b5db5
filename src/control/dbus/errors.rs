//! What goes wrong, as D-Bus errors: a name for programs, a sentence for people.

use zbus::DBusError;

use super::values::text;
use crate::control::CommandError;

/// Errors under `org.segue.Error.`. Nothing was changed when one of them is the answer.
#[derive(Debug, DBusError)]
#[zbus(prefix = "org.segue.Error")]
pub enum Error {
    /// The bus itself.
    #[zbus(error)]
    Bus(zbus::Error),
    /// A text that is no URI of ours.
    BadUri(String),
    /// A file outside of the folders that the configuration names.
    FileNotAllowed(String),
    /// An album or artist where a track is wanted.
    NotATrack(String),
    /// The queue is at its cap.
    QueueFull(String),
    /// No such entry in the queue.
    NoSuchEntry(String),
    /// There is nothing in the queue to act on.
    EmptyQueue(String),
    /// The track cannot be sought in.
    NotSeekable(String),
    /// An argument that makes no sense, or is too long.
    BadArgument(String),
    /// The daemon is on its way out.
    Stopping(String),
    /// The member exists, but this player does not do it.
    NotSupported(String),
    /// The caller may not do this.
    NotAllowed(String),
    /// Too many calls of this kind are running.
    Busy(String),
    /// No such sound card, or one that cannot be used.
    NoSuchOutput(String),
    /// No such plugin is installed.
    NoSuchPlugin(String),
    /// The plugin is not what was reviewed, or lacks what is needed to run.
    Plugin(String),
}

impl From<CommandError> for Error {
    fn from(error: CommandError) -> Error {
        let sentence = text(&error.to_string());
        match error {
            CommandError::Uri(_) => Error::BadUri(sentence),
            CommandError::FileNotAllowed(_) => Error::FileNotAllowed(sentence),
            CommandError::NotATrack(_) => Error::NotATrack(sentence),
            CommandError::QueueFull { .. } => Error::QueueFull(sentence),
            CommandError::NoSuchEntry(_) => Error::NoSuchEntry(sentence),
            CommandError::EmptyQueue => Error::EmptyQueue(sentence),
            CommandError::NotSeekable(_) => Error::NotSeekable(sentence),
            CommandError::FixedVolume => Error::NotSupported(sentence),
            CommandError::BadArgument(_) => Error::BadArgument(sentence),
            CommandError::Stopping => Error::Stopping(sentence),
        }
    }
}
