//! Which devices to try, and in which order.

use alsa::ctl::{Ctl, DeviceIter};
use alsa::device_name::HintIter;
use alsa::pcm::PCM;
use alsa::{Direction, card};

use super::mixer::mixer_of;
use super::{OpenError, params};
use crate::output::devices::{DeviceAbilities, DeviceKind, Unavailable};

/// Names of a configuration that are listed; nobody has more.
const MOST_NAMED: usize = 64;

/// The device that something under way is heard on.
#[derive(Clone, Copy, Debug)]
pub(in crate::output) struct Held<'a> {
    pub name: &'a str,
    /// It went away while it was heard.
    pub lost: bool,
}

/// The names to open for what the configuration says: `auto` stands for every card, the likeliest first.
pub(super) fn candidates(names: &[String], held: Option<Held<'_>>) -> Vec<String> {
    expand(names, held, cards)
}

/// `auto` chooses where music begins. What is under way moves to a device that a person named, but to no other card:
/// music that comes out of the screen because a plug was pulled surprises the house.
fn expand(names: &[String], held: Option<Held<'_>>, cards: impl Fn() -> Vec<String>) -> Vec<String> {
    let of_auto = || match held {
        None => cards(),
        Some(held) if names.iter().any(|name| name == held.name) => Vec::new(),
        Some(held) => {
            let mut cards = cards();
            match cards.iter().position(|card| card == held.name) {
                // It was let go of in a pause: a better one may be there by now.
                Some(at) if !held.lost => cards.truncate(at + 1),
                _ => cards = vec![held.name.to_owned()],
            }
            cards
        }
    };
    names.iter().flat_map(|name| if name == "auto" { of_auto() } else { vec![name.clone()] }).collect()
}

/// Every card by rank; `default` where there is none, since a sound server or a configuration may stand behind it.
fn cards() -> Vec<String> {
    let found: Vec<_> =
        ranked().into_iter().filter(|found| found.index == 0).map(|found| found.name).collect();
    if found.is_empty() { vec!["default".into()] } else { found }
}

/// A device of a card, or of ALSA's configuration.
struct Found {
    kind: DeviceKind,
    /// Which of the card's devices: `auto` uses the first of each.
    index: usize,
    name: String,
    description: String,
}

/// Every card's devices for playback, the likeliest card first. Microphones and cameras have none.
fn ranked() -> Vec<Found> {
    let of_card = |card: alsa::Result<card::Card>| {
        let ctl = Ctl::from_card(&card.ok()?, true).ok()?;
        let info = ctl.card_info().ok()?;
        let (id, driver) = (info.get_id().ok()?, info.get_driver().unwrap_or_default());
        let plays = |device: &u32| ctl.pcm_info(*device, 0, Direction::Playback).is_ok();
        let numbers = DeviceIter::new(&ctl).filter_map(|number| u32::try_from(number).ok()).filter(plays);
        let devices = numbers.enumerate().map(|(index, number)| {
            let (kind, name) = rank(id, driver, index, number);
            Found { kind, index, name, description: info.get_longname().unwrap_or_default().to_owned() }
        });
        Some(devices.collect::<Vec<_>>())
    };
    let mut found: Vec<Found> = card::Iter::new().filter_map(of_card).flatten().collect();
    found.sort_by_key(|found| found.kind);
    found
}

/// USB first, then what somebody put onto the board, then what was always there, HDMI last. The name is that of a
/// card's device with this number, the one of this index for playback.
fn rank(id: &str, driver: &str, index: usize, number: u32) -> (DeviceKind, String) {
    let (lower, driver) = (id.to_lowercase(), driver.to_lowercase());
    let suffix = |number: usize| if number == 0 { String::new() } else { format!(",DEV={number}") };
    let hardware = format!("hw:CARD={id}{}", suffix(number as usize));
    if driver.contains("loopback") || driver.contains("dummy") {
        (DeviceKind::Virtual, hardware)
    } else if driver.contains("usb") {
        (DeviceKind::Usb, hardware)
    } else if lower.contains("hdmi") {
        // The Pi's HDMI takes only IEC958 frames on its hw: device. These names count HDMI's sockets.
        (DeviceKind::Hdmi, format!("hdmi:CARD={id}{}", suffix(index)))
    } else if lower.contains("headphones") || driver.contains("bcm2835") {
        (DeviceKind::Headphones, hardware)
    } else {
        (DeviceKind::Board, hardware)
    }
}

/// Names that ALSA's configuration offers and that mean something else than one of the cards above.
fn named() -> Vec<Found> {
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
            (!left_out).then_some(Found { kind: DeviceKind::Named, index: 0, name, description })
        })
        .take(MOST_NAMED)
        .collect()
}

/// Kind, name and description of every device: cards, names of ALSA's configuration, and `extra` where none of these.
pub(in crate::output) fn list_devices(extra: &[&str]) -> Vec<(DeviceKind, String, String)> {
    super::silence_library();
    let mut all: Vec<_> = ranked()
        .into_iter()
        .chain(named())
        .map(|found| (found.kind, found.name, found.description))
        .collect();
    for name in extra.iter().filter(|name| !name.is_empty() && **name != "auto") {
        if all.iter().any(|(_, known, _)| known == name) {
            continue;
        }
        // Another way to the same card is listed below it.
        let card = mixer_of(name);
        let twin = all.iter().rposition(|(_, known, _)| name.contains(':') && mixer_of(known) == card);
        let device = |kind, description| (kind, (*name).to_owned(), description);
        match twin {
            Some(twin) => all.insert(twin + 1, device(all[twin].0, all[twin].2.clone())),
            None => all.push(device(DeviceKind::Named, String::new())),
        }
    }
    all
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
            rank("vc4hdmi0", "vc4-hdmi", 0, 0),
            rank("Headphones", "bcm2835_headpho", 0, 0),
            rank("sndrpihifiberry", "RPi-simple", 0, 0),
            rank("DAC", "USB-Audio", 0, 0),
            rank("NVidia", "HDA-Intel", 0, 3),
        ];
        cards.sort();
        let names: Vec<_> = cards.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "hw:CARD=DAC",
                "hw:CARD=NVidia,DEV=3",
                "hw:CARD=sndrpihifiberry",
                "hw:CARD=Headphones",
                "hdmi:CARD=vc4hdmi0"
            ]
        );
    }

    fn check(names: &str, held: Option<(&str, bool)>, cards: &str, want: &str) {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let held = held.map(|(name, lost)| Held { name, lost });
        let got = expand(&words(names), held, || words(cards));
        assert_eq!(got, words(want), "{names}, on {held:?}, with {cards}");
    }

    #[test]
    fn named_devices_keep_their_order_and_auto_is_every_card_where_music_begins() {
        check("A null", None, "C D", "A null");
        check("auto", None, "C D", "C D");
        check("A auto B", None, "C D", "A C D B");
    }

    #[test]
    fn what_is_under_way_moves_to_a_device_that_is_named_and_to_no_other_card() {
        check("auto", Some(("C", true)), "D E", "C");
        check("auto", Some(("D", true)), "C D E", "D");
        check("A B", Some(("A", true)), "C D", "A B");
        check("A auto", Some(("A", true)), "C D", "A");
        check("A auto B", Some(("A", true)), "C D", "A B");
        check("A auto", Some(("C", true)), "C D", "A C");
    }

    #[test]
    fn a_card_that_was_let_go_of_in_a_pause_gives_way_to_a_better_one_only() {
        check("auto", Some(("D", false)), "C D E", "C D");
        check("auto", Some(("C", false)), "D E", "C");
        check("A auto", Some(("A", false)), "C D", "A");
    }
}
