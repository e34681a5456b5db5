//! What goes wrong with a card, by what has to be done.

use crate::output::marks::GoneReason;

/// A running device's trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::output) enum Fault {
    /// EPIPE: it ran out of frames, if `prepare` succeeds. Plugins say this for a lost device, too.
    Xrun,
    /// ESTRPIPE: the machine slept.
    Suspended,
    /// The device is no more.
    Gone,
    /// Anything else.
    Other,
}

impl From<alsa::Error> for Fault {
    fn from(e: alsa::Error) -> Fault {
        // Some calls of the crate give negative errnos.
        match e.errno().abs() {
            libc::EPIPE => Fault::Xrun,
            libc::ESTRPIPE => Fault::Suspended,
            libc::ENODEV | libc::EBADFD | libc::ENXIO | libc::ENOENT => Fault::Gone,
            _ => Fault::Other,
        }
    }
}

/// Why a device cannot be opened, as a sentence for a person.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(in crate::output) struct OpenError {
    pub message: String,
    pub why: GoneReason,
}

impl OpenError {
    pub fn is_busy(&self) -> bool {
        self.why == GoneReason::Busy
    }

    pub(super) fn no_card() -> OpenError {
        let message = "no sound card was found: connect one, or name a device in [output] device".to_owned();
        OpenError { message, why: GoneReason::Missing }
    }

    pub(super) fn bad_name(name: &str) -> OpenError {
        let message = format!("{name:?} is no name of an ALSA device: correct [output] device");
        OpenError { message, why: GoneReason::Missing }
    }

    pub(super) fn open(name: &str, e: alsa::Error) -> OpenError {
        let (message, why) = match e.errno().abs() {
            libc::EBUSY | libc::EAGAIN => (
                format!("the sound device “{name}” is used by another program: stop that program"),
                GoneReason::Busy,
            ),
            libc::EACCES | libc::EPERM => (
                format!("the sound device “{name}” may not be used: add the user to the group “audio”"),
                GoneReason::Failing,
            ),
            libc::ENODEV | libc::ENOENT | libc::ENXIO => (
                format!("the sound device “{name}” is not there: connect it, or correct [output] device"),
                GoneReason::Missing,
            ),
            _ => (format!("the sound device “{name}” cannot be opened: {e}"), GoneReason::Failing),
        };
        OpenError { message, why }
    }

    pub(super) fn params(name: &str, e: alsa::Error) -> OpenError {
        match e.errno().abs() {
            libc::EBUSY | libc::ENODEV => OpenError::open(name, e),
            _ => OpenError {
                message: format!("the sound device “{name}” refuses the format: {e}"),
                why: GoneReason::Failing,
            },
        }
    }

    /// For a device that was in use.
    pub fn lost(name: &str, unplugged: bool) -> OpenError {
        if unplugged {
            let message =
                format!("the sound device “{name}” is gone: connect it again, playback goes on by itself");
            OpenError { message, why: GoneReason::Unplugged }
        } else {
            let message = format!("the sound device “{name}” takes no more sound: it is opened anew");
            OpenError { message, why: GoneReason::Failing }
        }
    }
}
