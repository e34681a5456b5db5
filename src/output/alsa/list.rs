//! Which devices to try, and in which order.

use alsa::card;
use alsa::ctl::Ctl;

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
    let mut found: Vec<(u8, String)> = card::Iter::new()
        .filter_map(|card| {
            let info = Ctl::from_card(&card.ok()?, true).ok()?.card_info().ok()?;
            let id = info.get_id().ok()?.to_owned();
            Some(rank(&id, info.get_driver().unwrap_or_default()))
        })
        .collect();
    found.sort_by_key(|(rank, _)| *rank);
    if found.is_empty() {
        return vec!["default".into()];
    }
    found.into_iter().map(|(_, name)| name).collect()
}

/// USB first, then what somebody put onto the board, then what was always there, HDMI last.
fn rank(id: &str, driver: &str) -> (u8, String) {
    let (lower, driver) = (id.to_lowercase(), driver.to_lowercase());
    if driver.contains("loopback") || driver.contains("dummy") {
        (9, format!("hw:CARD={id}"))
    } else if driver.contains("usb") {
        (0, format!("hw:CARD={id}"))
    } else if lower.contains("hdmi") {
        // The Pi's HDMI takes only IEC958 frames on its hw: device.
        (3, format!("hdmi:CARD={id}"))
    } else if lower.contains("headphones") || driver.contains("bcm2835") {
        (2, format!("hw:CARD={id}"))
    } else {
        (1, format!("hw:CARD={id}"))
    }
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
