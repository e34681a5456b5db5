//! Where sound can go to: what there is, and when that changes.

use std::time::Duration;

use nix::sys::inotify::AddWatchFlags;
use tokio::io::unix::AsyncFd;

use super::alsa;
use crate::system::FileEvents;

/// Devices appear in several steps; nothing must have happened for so long.
const SETTLE: Duration = Duration::from_millis(300);

/// What kind of place it is; `auto` prefers them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceKind {
    /// A card on USB.
    Usb,
    /// A card on the board, such as an I²S hat.
    Board,
    /// The board's own headphones.
    Headphones,
    /// A screen or receiver.
    Hdmi,
    /// A name of ALSA's configuration: a sound server, a converting plugin.
    Named,
    /// It only looks like a card.
    Virtual,
}

impl DeviceKind {
    /// The word on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            DeviceKind::Usb => "usb",
            DeviceKind::Board => "board",
            DeviceKind::Headphones => "headphones",
            DeviceKind::Hdmi => "hdmi",
            DeviceKind::Named => "named",
            DeviceKind::Virtual => "virtual",
        }
    }
}

/// A place that sound can go to.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputDevice {
    /// ALSA's name of it, as for `[output] device`.
    pub name: String,
    /// For people.
    pub description: String,
    /// What kind of place.
    pub kind: DeviceKind,
    /// Name of its volume control, where it has one with a scale in dB.
    pub mixer: Option<String>,
    /// What it can do, or why that cannot be told.
    pub abilities: Result<DeviceAbilities, Unavailable>,
}

/// What a device can do by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceAbilities {
    /// Frames per second, of the usual ones.
    pub rates: Vec<u32>,
    /// ALSA's names of the sample formats that Segue writes.
    pub formats: Vec<&'static str>,
    /// The fewest and the most channels.
    pub channels: (u16, u16),
}

/// Why a device cannot be looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// It plays, for Segue or for another program.
    #[error("{0}")]
    Busy(String),
    /// It is not there or not usable.
    #[error("{0}")]
    Unusable(String),
}

/// All places that sound can go to, `auto`'s favourites first. Opens each for a moment, but for `playing`, which is
/// open already. Blocks for some milliseconds for each.
pub fn list(playing: &str) -> Vec<OutputDevice> {
    alsa::list_devices(playing)
}

/// Whether a device can be opened. Blocks like [`list`]. One that is busy is there.
///
/// # Errors
/// A sentence for a person.
pub fn check(name: &str) -> Result<(), Unavailable> {
    match alsa::probe_device(name) {
        Ok(_) | Err(Unavailable::Busy(_)) => Ok(()),
        Err(unusable) => Err(unusable),
    }
}

/// Tells when cards come and go.
pub struct HotPlug(Option<AsyncFd<FileEvents>>);

impl HotPlug {
    /// Begins to watch. Where the system has no sound devices at all, nothing is ever told. Must be called within a
    /// tokio runtime.
    pub fn watch() -> HotPlug {
        let watched = FileEvents::new().ok().filter(|events| {
            let flags = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_DELETE | AddWatchFlags::IN_ATTRIB;
            events.get_ref().0.add_watch("/dev/snd", flags).is_ok()
        });
        HotPlug(watched)
    }

    /// Waits until cards have come or gone.
    pub async fn changed(&mut self) {
        let Some(events) = &mut self.0 else { return std::future::pending().await };
        let Ok(mut ready) = events.readable_mut().await else { return std::future::pending().await };
        let _ = ready.get_inner().0.read_events();
        ready.clear_ready();
        tokio::time::sleep(SETTLE).await;
        // What happened meanwhile is part of the same change.
        let _ = events.get_ref().0.read_events();
    }
}
