//! Why a track cannot be decoded, in sentences for people.

use std::io;

/// Why a track cannot be opened or goes no further.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are no recording in a format that is known here.
    #[error("this is not audio that can be played: {found}; check the track's URL")]
    NotAudio {
        /// What the bytes look like.
        found: String,
    },
    /// The container is understood, but not what is inside.
    #[error("{codec} cannot be played ({reason}); choose another format of this track")]
    Unsupported {
        /// Name of the codec as people know it.
        codec: String,
        /// What is missing.
        reason: String,
    },
    /// An MP4 with its index at the end, or a CAF, from a server that gives no byte ranges.
    #[error(
        "this file cannot be played from its beginning on, and the server gives no byte ranges; serve it with ranges, \
         or store it in another way (an MP4 with its index in front, by \"faststart\")"
    )]
    NeedsSeeking,
    /// A jump back in a source that only runs forward.
    #[error("it is not possible to go back in this track: its server gives no byte ranges")]
    ForwardOnly,
    /// The bytes could not be read.
    #[error("the track's bytes could not be read: {0}")]
    Input(#[source] io::Error),
    /// Too much in a row was unreadable.
    #[error("the track is damaged: {lost} packets in a row could not be decoded ({reason})")]
    Damaged {
        /// How many packets in a row gave no sound.
        lost: u32,
        /// What the decoder said about the last one.
        reason: String,
    },
    /// The bytes end before the recording does. What there was has been decoded.
    #[error(
        "the recording ends {:.1} s earlier than it says: the file is not whole; fetch or store it anew",
        missing.as_secs_f64()
    )]
    CutShort {
        /// What is not there.
        missing: std::time::Duration,
    },
    /// The decoder computes and computes; nobody can stop it, so it is left alone.
    #[error(
        "the decoder does not come to an end on this track, and it is given up; please report it with the file"
    )]
    RanAway,
    /// The decoder failed in a way that it should not; the track is lost, nothing else.
    #[error("the decoder broke down on this track; please report it with the file")]
    Panicked,
}
