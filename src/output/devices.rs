//! Where sound can go to: what there is, and when that changes.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use nix::sys::inotify::AddWatchFlags;
use tokio::io::unix::AsyncFd;

use super::alsa;
use super::shared::{Opened, Shared};
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
    /// Segue has it open.
    pub current: bool,
    /// What it can do, or why that cannot be told.
    pub abilities: Result<Arc<DeviceAbilities>, Unavailable>,
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

/// Looks at devices without getting into the way of the one that plays. Cheap to clone.
#[derive(Clone)]
pub struct Devices {
    shared: Arc<Shared>,
    /// As the configuration has it.
    configured: Arc<[String]>,
}

impl Devices {
    pub(super) fn new(shared: Arc<Shared>, configured: Arc<[String]>) -> Devices {
        Devices { shared, configured }
    }

    /// All places that sound can go to, `auto`'s favourites first: cards, what ALSA's configuration offers, what
    /// Segue's names, and `selected`. Opens each for a moment, but for the one that is open already. Blocks for some
    /// milliseconds for each.
    pub fn list(&self, selected: Option<&str>) -> Vec<OutputDevice> {
        let open = self.opened().device;
        let extra: Vec<&str> =
            self.configured.iter().map(String::as_str).chain(selected).chain([&*open]).collect();
        let named = alsa::list_devices(&extra);
        named.into_iter().map(|(kind, name, description)| self.look(kind, name, description)).collect()
    }

    fn look(&self, kind: DeviceKind, name: String, description: String) -> OutputDevice {
        // One after the other, so that whoever wants to play waits for a single one at most.
        let _turn = self.shared.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.opened();
        let current = opened.device == name;
        let abilities = if current { Ok(opened.offers) } else { alsa::probe_device(&name).map(Arc::new) };
        OutputDevice { mixer: alsa::control_name(&name), name, description, kind, current, abilities }
    }

    /// Whether sound could go to this device. Blocks like [`Devices::list`].
    ///
    /// # Errors
    /// A sentence for a person: it is not there, or another program has it.
    pub fn check(&self, name: &str) -> Result<(), Unavailable> {
        let _turn = self.shared.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.opened();
        if opened.device == name {
            return Ok(());
        }
        match alsa::probe_device(name) {
            Err(Unavailable::Busy(reason)) => match is_same_card(&opened, name) {
                // It is Segue itself that keeps that card busy, by another name.
                Some(true) => Ok(()),
                Some(false) => Err(Unavailable::Busy(reason)),
                None => Err(Unavailable::Busy(format!("{reason}, or stop Segue if it is the same card"))),
            },
            other => other.map(drop),
        }
    }

    fn opened(&self) -> Opened {
        self.shared.opened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether a name leads to the card that is open; None where names do not tell.
fn is_same_card(opened: &Opened, name: &str) -> Option<bool> {
    if opened.device.is_empty() {
        return Some(false);
    }
    // A name of its own says nothing about the card behind it.
    let card = |name: &str| alsa::mixer_of(name).filter(|_| name.contains(':'));
    Some(card(&opened.device)? == card(name)?)
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
