//! Which devices to try, and in which order.

use alsa::ctl::Ctl;
use alsa::device_name::HintIter;
use alsa::pcm::PCM;
use alsa::{Direction, card};

use super::mixer::HardwareVolume;
use super::{OpenError, params};
use crate::output::devices::{DeviceAbilities, DeviceKind, OutputDevice, Unavailable};

/// Names of a configuration that are listed; nobody has more.
const MOST_NAMED: usize = 64;

/// The names to open for what the configuration says: `auto` stands for every card, the likeliest first.
pub(super) fn candidates(names: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for name in names {
        if name == "auto" {
            all.extend(cards());
        } else {
            all.push(name.clone());
        }
    }
    all
}

/// Every card by rank; `default` where there is none, since a sound server or a configuration may stand behind it.
fn cards() -> Vec<String> {
    let found = ranked_cards();
    if found.is_empty() {
        return vec!["default".into()];
    }
    found.into_iter().map(|(_, name, _)| name).collect()
}

/// Kind, name and description of every card, the likeliest first.
fn ranked_cards() -> Vec<(DeviceKind, String, String)> {
    let mut found: Vec<_> = card::Iter::new()
        .filter_map(|card| {
            let info = Ctl::from_card(&card.ok()?, true).ok()?.card_info().ok()?;
            let (kind, name) = rank(info.get_id().ok()?, info.get_driver().unwrap_or_default());
            Some((kind, name, info.get_longname().unwrap_or_default().to_owned()))
        })
        .collect();
    found.sort_by_key(|(kind, ..)| *kind);
    found
}

/// USB first, then what somebody put onto the board, then what was always there, HDMI last.
fn rank(id: &str, driver: &str) -> (DeviceKind, String) {
    let (lower, driver) = (id.to_lowercase(), driver.to_lowercase());
    let hardware = format!("hw:CARD={id}");
    if driver.contains("loopback") || driver.contains("dummy") {
        (DeviceKind::Virtual, hardware)
    } else if driver.contains("usb") {
        (DeviceKind::Usb, hardware)
    } else if lower.contains("hdmi") {
        // The Pi's HDMI takes only IEC958 frames on its hw: device.
        (DeviceKind::Hdmi, format!("hdmi:CARD={id}"))
    } else if lower.contains("headphones") || driver.contains("bcm2835") {
        (DeviceKind::Headphones, hardware)
    } else {
        (DeviceKind::Board, hardware)
    }
}

/// Names that ALSA's configuration offers and that mean something else than one of the cards above.
fn named() -> Vec<(DeviceKind, String, String)> {
    const OF_CARDS: [&str; 14] = [
        "null",
        "hw:",
        "hdmi:",
        "plughw:",
        "sysdefault",
        "front",
        "surround",
        "iec958",
        "dsnoop",
        "dmix",
        "lavrate",
        "samplerate",
        "speexrate",
        "usbstream",
    ];
    const OF_USE_TO_NOBODY: [&str; 5] = ["jack", "oss", "upmix", "vdownmix", "capture"];
    let Ok(hints) = HintIter::new_str(None, "pcm") else { return Vec::new() };
    hints
        .filter(|hint| hint.direction != Some(Direction::Capture))
        .filter_map(|hint| {
            let name = hint.name?;
            let left_out = OF_CARDS.iter().chain(&OF_USE_TO_NOBODY).any(|start| name.starts_with(start));
            let description = hint.desc.unwrap_or_default().replace('\n', ", ");
            (!left_out).then_some((DeviceKind::Named, name, description))
        })
        .take(MOST_NAMED)
        .collect()
}

/// See [`crate::output::devices::list`].
pub(in crate::output) fn list_devices(playing: &str) -> Vec<OutputDevice> {
    super::silence_library();
    let all = ranked_cards().into_iter().chain(named());
    all.map(|(kind, name, description)| {
        let abilities = if name == playing {
            Err(Unavailable::Busy("it plays for Segue".to_owned()))
        } else {
            probe_device(&name)
        };
        let mixer = super::mixer::mixer_of(&name);
        let mixer = mixer.and_then(|mixer| Some(HardwareVolume::open(&mixer, None)?.name()));
        OutputDevice { name, description, kind, mixer, abilities }
    })
    .collect()
}

/// Opens a device for a moment to see what it can do.
pub(in crate::output) fn probe_device(name: &str) -> Result<DeviceAbilities, Unavailable> {
    super::silence_library();
    let unavailable = |error: OpenError| {
        if error.is_busy() { Unavailable::Busy(error.message) } else { Unavailable::Unusable(error.message) }
    };
    if name.contains('\0') {
        return Err(unavailable(OpenError::bad_name(name)));
    }
    let pcm = PCM::new(name, Direction::Playback, true).map_err(|e| unavailable(OpenError::open(name, e)))?;
    params::offered(&pcm).map_err(|e| unavailable(OpenError::params(name, e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usb_comes_before_a_hat_before_headphones_before_hdmi() {
        let mut cards = [
            rank("vc4hdmi0", "vc4-hdmi"),
            rank("Headphones", "bcm2835_headpho"),
            rank("sndrpihifiberry", "RPi-simple"),
            rank("DAC", "USB-Audio"),
        ];
        cards.sort();
        let names: Vec<_> = cards.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(
            names,
            ["hw:CARD=DAC", "hw:CARD=sndrpihifiberry", "hw:CARD=Headphones", "hdmi:CARD=vc4hdmi0"]
        );
    }

    #[test]
    fn named_devices_keep_their_order() {
        let names = ["hw:CARD=A".to_owned(), "null".to_owned()];
        assert_eq!(candidates(&names), names);
    }
}
