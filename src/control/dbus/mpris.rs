//! `org.mpris.MediaPlayer2`: who this player is.

use zbus::interface;

use super::errors::Error;

/// The root interface. It has no state.
pub struct Root;

/// Prefixes of URIs that can be queued.
const URI_SCHEMES: [&str; 4] = ["segue", "http", "https", "file"];

/// What the decoders take.
const MIME_TYPES: [&str; 13] = [
    "audio/flac",
    "audio/x-flac",
    "audio/mpeg",
    "audio/mp4",
    "audio/x-m4a",
    "audio/aac",
    "audio/ogg",
    "audio/opus",
    "audio/vorbis",
    "audio/wav",
    "audio/x-wav",
    "audio/aiff",
    "audio/x-matroska",
];

#[interface(name = "org.mpris.MediaPlayer2", spawn = false, introspection_docs = false)]
impl Root {
    /// There is nothing to raise, and CanRaise says so.
    fn raise(&self) {}

    /// A remote control does not stop the daemon, and CanQuit says so.
    fn quit(&self) {}

    #[zbus(property(emits_changed_signal = "const"))]
    fn can_quit(&self) -> bool {
        false
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn can_raise(&self) -> bool {
        false
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn can_set_fullscreen(&self) -> bool {
        false
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn fullscreen(&self) -> bool {
        false
    }

    #[zbus(property)]
    fn set_fullscreen(&self, wanted: bool) -> Result<(), Error> {
        match wanted {
            false => Ok(()),
            true => Err(Error::NotSupported("Segue has no window to fill a screen with".into())),
        }
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn has_track_list(&self) -> bool {
        false
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn identity(&self) -> &'static str {
        "Segue"
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn supported_uri_schemes(&self) -> Vec<&'static str> {
        URI_SCHEMES.to_vec()
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn supported_mime_types(&self) -> Vec<&'static str> {
        MIME_TYPES.to_vec()
    }
}
