//! Why a stream gave no bytes, by what to do about it.

use std::io;

use crate::track::ResolveErrorKind;

/// Why a stream gave no bytes. Each message names the track and the host, never a query or a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The server refuses the track for good: skip it.
    #[error(
        "{track}: {host} refuses it with status {status}, {tried}; check that the track still exists and that the account may play it"
    )]
    Refused {
        /// The track's name.
        track: String,
        /// Host of the last request.
        host: String,
        /// HTTP status of the last answer.
        status: u16,
        /// What was tried.
        tried: String,
    },
    /// The plugin has no address for the track: skip it.
    #[error("{track}: no address could be had for it: {message}")]
    Unresolved {
        /// The track's name.
        track: String,
        /// What the resolver said.
        message: String,
        /// What the resolver said is to be done.
        kind: ResolveErrorKind,
    },
    /// The server can be reached but gave no byte for so long that the track is given up: skip it.
    #[error(
        "{track}: {host} gave no data for {seconds} s although it can be reached ({last}); try again later"
    )]
    NoData {
        /// The track's name.
        track: String,
        /// Host of the last request.
        host: String,
        /// For how long.
        seconds: u64,
        /// The last failure.
        last: String,
    },
    /// The file is another one than at the start: begin again or skip.
    #[error("{track}: the file on {host} changed while it was played: {how}; play it again from its start")]
    Changed {
        /// The track's name.
        track: String,
        /// Host of the last request.
        host: String,
        /// What differs.
        how: String,
    },
    /// The server has no ranges and the bytes before are no longer held: play on or begin again.
    #[error("{track}: {host} cannot send parts of a file, so going back to byte {offset} is not possible")]
    NotSeekable {
        /// The track's name.
        track: String,
        /// Host of the track.
        host: String,
        /// Where the reader wanted to go.
        offset: u64,
    },
    /// The address is not allowed: skip, and tell the person who enables plugins.
    #[error("{track}: {host} is not allowed: {why}")]
    Forbidden {
        /// The track's name.
        track: String,
        /// The host in question.
        host: String,
        /// The rule.
        why: String,
    },
    /// A playlist leads to nothing that can be played: skip it.
    #[error("{track}: the playlist on {host} cannot be played: {why}")]
    Playlist {
        /// The track's name.
        track: String,
        /// Host of the playlist.
        host: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server cannot prove who it is: skip, and tell what is wrong with its certificate.
    #[error("{track}: there is no secure connection to {host}: {why}")]
    Insecure {
        /// The track's name.
        track: String,
        /// Host of the request.
        host: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// A file cannot be read: skip it.
    #[error("{track}: {why}")]
    File {
        /// The path.
        track: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// A fault of this program ended the stream: skip it.
    #[error("{track}: a fault in Segue itself ended what came from {host}; please report it with that name")]
    Fault {
        /// The track's name.
        track: String,
        /// Host of the address.
        host: String,
    },
    /// HTTP cannot be set up: a fault of this machine or of the settings.
    #[error("HTTP cannot be set up: {0}; check [stream] in the configuration")]
    Setup(String),
    /// The stream was closed by [`StreamHandle::abort`](super::StreamHandle::abort).
    #[error("{track}: closed")]
    Aborted {
        /// The track's name.
        track: String,
    },
    /// Reading is interrupted until [`StreamHandle::clear_interrupt`](super::StreamHandle::clear_interrupt).
    #[error("{track}: reading is interrupted, a seek is coming")]
    Interrupted {
        /// The track's name.
        track: String,
    },
}

impl StreamError {
    /// The stream error inside of an I/O error that a [`Reader`](super::Reader) returned.
    pub fn of(error: &io::Error) -> Option<&StreamError> {
        error.get_ref().and_then(|inner| inner.downcast_ref())
    }
}

/// Never `ErrorKind::Interrupted`: callers retry that at once.
impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        io::Error::other(error)
    }
}
