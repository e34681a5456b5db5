//! Which of a card's channels is which loudspeaker. Frames have the order of WAVE, cards their own.

use std::fmt::Write;

use alsa::pcm::PCM;

/// For each channel of the card, which of a frame's it plays. None where frames fit as they are.
pub(super) fn of_card(pcm: &PCM, channels: u16, is_hardware: bool) -> Option<Box<[u8]>> {
    if !(3..=8).contains(&channels) {
        return None;
    }
    let mut names = String::new();
    match pcm.get_chmap() {
        // As text, since the crate panics at a place that it does not know.
        Ok(map) => write!(names, "{map}").ok()?,
        Err(_) if is_hardware => names.push_str(usual(channels)),
        Err(_) => return None,
    }
    order(&names.split_whitespace().collect::<Vec<_>>(), frames(channels))
}

/// The order of WAVE, in ALSA's names.
fn frames(channels: u16) -> &'static [&'static str] {
    match channels {
        3 => &["FL", "FR", "FC"],
        4 => &["FL", "FR", "RL", "RR"],
        5 => &["FL", "FR", "FC", "RL", "RR"],
        6 => &["FL", "FR", "FC", "LFE", "RL", "RR"],
        7 => &["FL", "FR", "FC", "LFE", "RC", "SL", "SR"],
        _ => &["FL", "FR", "FC", "LFE", "RL", "RR", "SL", "SR"],
    }
}

/// What the kernel's drivers do that do not say what they do.
fn usual(channels: u16) -> &'static str {
    match channels {
        3 => "FL FR FC",
        4 => "FL FR RL RR",
        5 => "FL FR RL RR FC",
        6 => "FL FR RL RR FC LFE",
        7 => "FL FR RL RR FC LFE RC",
        _ => "FL FR RL RR FC LFE SL SR",
    }
}

/// A card's loudspeakers beside those that a frame is meant for. Where only one of two pairs is there, back and side
/// stand for each other; what has no place of its own takes what is left over.
fn order(card: &[&str], frame: &[&str]) -> Option<Box<[u8]>> {
    if card.len() != frame.len() || !card.contains(&"FL") {
        return None;
    }
    let other = |name: &str| match name {
        "RL" => "SL",
        "RR" => "SR",
        "SL" => "RL",
        "SR" => "RR",
        _ => "",
    };
    let mut taken = vec![false; frame.len()];
    let mut order = vec![None; card.len()];
    let mut give = |at: usize, channel: Option<usize>, order: &mut Vec<Option<usize>>| {
        let channel = channel.filter(|channel| order[at].is_none() && !taken[*channel]);
        if let Some(channel) = channel {
            taken[channel] = true;
            order[at] = Some(channel);
        }
    };
    let find = |name: &str| frame.iter().position(|of_frame| *of_frame == name);
    for (at, name) in card.iter().enumerate() {
        give(at, find(name), &mut order);
    }
    for (at, name) in card.iter().enumerate() {
        give(at, find(other(name)), &mut order);
    }
    for at in 0..card.len() {
        for channel in 0..frame.len() {
            give(at, Some(channel), &mut order);
        }
    }
    let order: Box<[u8]> = order.into_iter().flatten().map(|channel| channel as u8).collect();
    (!order.iter().enumerate().all(|(at, channel)| at == usize::from(*channel))).then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(card: &str, want: Option<&[u8]>) {
        let names: Vec<&str> = card.split_whitespace().collect();
        let got = order(&names, frames(names.len() as u16));
        assert_eq!(got.as_deref(), want, "{card}");
    }

    #[test]
    fn each_loudspeaker_gets_what_is_meant_for_it() {
        check("FL FR FC LFE RL RR", None);
        check("FL FR RL RR FC LFE", Some(&[0, 1, 4, 5, 2, 3]));
        check("FL FR LFE FC RL RR", Some(&[0, 1, 3, 2, 4, 5]));
        check("FL FR SL SR FC LFE", Some(&[0, 1, 4, 5, 2, 3]));
        check("FL FR RL RR FC LFE SL SR", Some(&[0, 1, 4, 5, 2, 3, 6, 7]));
        check("FL FR RL RR FC", Some(&[0, 1, 3, 4, 2]));
        check("FL FR RL RR FC LFE RC", Some(&[0, 1, 5, 6, 2, 3, 4]));
        check("FL FR RL RR", None);
    }

    #[test]
    fn a_map_that_says_nothing_changes_nothing_and_none_loses_a_channel() {
        check("UNKNOWN UNKNOWN UNKNOWN UNKNOWN", None);
        check("", None);
        assert_eq!(order(&["FL", "FR"], frames(6)), None);
        check("FL FR FLC FRC FC LFE", Some(&[0, 1, 4, 5, 2, 3]));
        for card in ["FL FL FL FL", "FL[INV] FR FC LFE RL FL", "NA FL NA FR NA NA NA NA"] {
            let names: Vec<&str> = card.split_whitespace().collect();
            let Some(mut all) = order(&names, frames(names.len() as u16)).map(Vec::from) else { continue };
            all.sort_unstable();
            assert!(all.iter().enumerate().all(|(at, channel)| at == usize::from(*channel)), "{card}");
        }
    }
}
