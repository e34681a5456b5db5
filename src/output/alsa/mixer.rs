//! A card's own volume control.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use alsa::Round;
use alsa::mixer::{MilliBel, Mixer, Selem, SelemChannelId, SelemId};
use alsa::poll::{Descriptors, pollfd};

/// Controls that change what is heard, the likeliest first; as DAC chips and cards name them. Where a card has both,
/// `Master` is the chip's, and `PCM` may be one that alsa-lib makes for `default` alone.
const NAMES: [&str; 9] =
    ["Digital", "Master", "PCM", "Headphone", "Speaker", "Line Out", "Playback", "DAC", "Analogue"];
/// Words in the names of controls that change something else, though they count as playback: what is heard of an input,
/// one of many channels, a tone. Cards on USB call the one control that they have whatever their maker likes.
const SOMETHING_ELSE: [&str; 24] = [
    "mic", "capture", "input", "line in", "aux", "cd", "phono", "sidetone", "side", "loopback", "monitor",
    "beep", "boost", "bass", "treble", "tone", "eq", "surround", "center", "centre", "lfe", "iec958", "adc",
    "bypass",
];
/// The most descriptors that a mixer may have.
const MOST: usize = 8;
/// What is below this is no step of a scale, in dB.
const SILENCE_DB: f32 = -200.0;
/// The range of steps that a control tells, in dB: below this one the scale is taken as it is.
const SHORT_RANGE_DB: f64 = 24.0;

/// A card's volume control, open.
pub(in crate::output) struct HardwareVolume {
    mixer: Mixer,
    id: SelemId,
    /// In dB. The loudest is full scale where the card can amplify beyond it.
    min_db: f64,
    max_db: f64,
    has_switch: bool,
    /// What was asked for last, and the step of the card that it became: rounding is nobody's change.
    asked: Option<(f64, i64)>,
}

/// What a control stands at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::output) struct Reading {
    /// From 0 to 1, as people hear it.
    pub volume: f64,
    /// The card's own number for it.
    pub step: i64,
    pub muted: bool,
}

/// Why the wait for a change ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::output) struct MixerWoken {
    pub order: bool,
    pub changed: bool,
    /// The card is gone.
    pub gone: bool,
}

impl HardwareVolume {
    /// Opens the control of a card, by name or the likeliest; None where the card has none with a scale in dB.
    pub fn open(device: &str, wanted: Option<&str>) -> Option<HardwareVolume> {
        super::silence_library();
        let mixer = Mixer::new(device, true).ok()?;
        let id = choose(&mixer, wanted)?;
        let control = mixer.find_selem(&id)?;
        let (min, max) = control.get_playback_db_range();
        let (lowest, _) = control.get_playback_volume_range();
        // The lowest step of some is silence, at minus ten thousand dB; the scale begins above it.
        let above = control.ask_playback_vol_db(lowest + 1).unwrap_or(min);
        let min = if min.to_db() < SILENCE_DB { above } else { min };
        let (min_db, max_db) = (f64::from(min.to_db()), f64::from(max.to_db()).min(0.0));
        let has_switch = control.has_playback_switch();
        (max_db > min_db).then_some(HardwareVolume { mixer, id, min_db, max_db, has_switch, asked: None })
    }

    /// The control's name.
    pub fn name(&self) -> String {
        self.id.get_name().unwrap_or_default().to_owned()
    }

    fn control(&self) -> Option<Selem<'_>> {
        self.mixer.find_selem(&self.id)
    }

    /// Whether the card can mute.
    pub fn has_switch(&self) -> bool {
        self.has_switch
    }

    /// What it stands at; None when the card is gone.
    pub fn read(&self) -> Option<Reading> {
        let control = self.control()?;
        let channel = channel(&control)?;
        let step = control.get_playback_volume(channel).ok()?;
        let muted = self.has_switch && control.get_playback_switch(channel).ok()? == 0;
        let volume = match self.asked {
            Some((volume, at)) if at == step => volume,
            _ => self.volume_of(f64::from(control.get_playback_vol_db(channel).ok()?.to_db())),
        };
        Some(Reading { volume, step, muted })
    }

    /// What was asked for in an earlier opening, and the step that it became.
    pub fn recall(&mut self, volume: f64, step: i64) {
        self.asked = Some((volume, step));
    }

    /// Sets it, all channels alike; None when the card is gone.
    pub fn set_volume(&mut self, volume: f64) -> Option<()> {
        let control = self.control()?;
        let (lowest, _) = control.get_playback_volume_range();
        if volume <= 0.0 {
            control.set_playback_volume_all(lowest).ok()?;
        } else {
            let db = MilliBel((self.db_of(volume) * 100.0).round() as i64);
            // Never louder than asked for.
            control.set_playback_db_all(db, Round::Floor).ok()?;
        }
        let step = control.get_playback_volume(channel(&control)?).ok()?;
        self.asked = Some((volume, step));
        Some(())
    }

    /// Mutes by the card's switch; false where there is none.
    pub fn set_mute(&mut self, muted: bool) -> Option<bool> {
        if self.has_switch {
            self.control()?.set_playback_switch_all(i32::from(!muted)).ok()?;
        }
        Some(self.has_switch)
    }

    /// Waits for an order or a change made elsewhere.
    pub fn wait(&self, orders: BorrowedFd, timeout: Duration) -> MixerWoken {
        let entry = |fd| pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut fds = [entry(-1); MOST];
        fds[0] = entry(orders.as_raw_fd());
        let count = self.mixer.count().min(MOST - 1);
        let filled = self.mixer.fill(&mut fds[1..=count]).unwrap_or(0);
        let used = &mut fds[..=filled];
        let timeout = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        if alsa::poll::poll(used, timeout).unwrap_or(0) == 0 {
            return MixerWoken::default();
        }
        let failed = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
        let gone = used[1..].iter().any(|fd| fd.revents & failed != 0);
        let changed = used[1..].iter().any(|fd| fd.revents != 0);
        let gone = gone || changed && self.mixer.handle_events().is_err();
        MixerWoken { order: used[0].revents != 0, changed, gone }
    }

    /// As people hear it: half is a third of the way up in dB, as alsamixer shows it.
    fn volume_of(&self, db: f64) -> f64 {
        if db <= self.min_db {
            return 0.0;
        }
        let (range, down) = (self.max_db - self.min_db, db - self.max_db);
        if range <= SHORT_RANGE_DB {
            return (1.0 + down / range).clamp(0.0, 1.0);
        }
        let least = 10f64.powf(-range / 60.0);
        ((10f64.powf(down / 60.0) - least) / (1.0 - least)).clamp(0.0, 1.0)
    }

    fn db_of(&self, volume: f64) -> f64 {
        let range = self.max_db - self.min_db;
        if range <= SHORT_RANGE_DB {
            return self.min_db + volume * range;
        }
        let least = 10f64.powf(-range / 60.0);
        self.max_db + 60.0 * (volume * (1.0 - least) + least).log10()
    }
}

/// The control by the name that the configuration says, or the likeliest that has a scale.
fn choose(mixer: &Mixer, wanted: Option<&str>) -> Option<SelemId> {
    let place = |name: &str| match wanted {
        Some(wanted) => (name == wanted).then_some(0),
        None => rank(name),
    };
    let usable = mixer.iter().filter_map(Selem::new).filter_map(|control| {
        let (min, max) = control.get_playback_db_range();
        let is_volume = control.has_playback_volume() && max > min;
        let id = control.get_id();
        let place = place(id.get_name().ok()?)?;
        is_volume.then_some((place, id))
    });
    usable.min_by_key(|(place, _)| *place).map(|(_, id)| id)
}

/// How likely a control is the volume, by its name, 0 before all others; None where it is something else.
fn rank(name: &str) -> Option<usize> {
    if let Some(known) = NAMES.iter().position(|known| *known == name) {
        return Some(known);
    }
    let lower = name.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let is_in =
        |other: &&str| if other.contains(' ') { lower.contains(other) } else { words.contains(other) };
    (!SOMETHING_ELSE.iter().any(is_in)).then_some(NAMES.len())
}

fn channel(control: &Selem<'_>) -> Option<SelemChannelId> {
    SelemChannelId::all().iter().copied().find(|channel| control.has_playback_channel(*channel))
}

/// The device that will probably be opened, and its mixer.
pub(in crate::output) fn first_mixer(names: &[String]) -> Option<(String, Option<String>)> {
    let first = super::list::candidates(names, None).into_iter().next()?;
    let mixer = mixer_of(&first);
    Some((first, mixer))
}

/// The name of a device's volume control, where it has one with a scale in dB.
pub(in crate::output) fn control_name(pcm: &str) -> Option<String> {
    Some(HardwareVolume::open(&mixer_of(pcm)?, None)?.name())
}

/// The mixer that belongs to a PCM, by the PCM's name; None for names that say none. There may be none of that name.
pub(in crate::output) fn mixer_of(pcm: &str) -> Option<String> {
    // Their volume is that of a sound server, for all programs, or of nobody knows which card.
    const SHARED: [&str; 6] = ["default", "sysdefault", "pulse", "pipewire", "jack", "null"];
    let Some((kind, arguments)) = pcm.split_once(':') else {
        // ALSA's custom: who defines a PCM defines the control for it under the same name.
        return (!SHARED.contains(&pcm)).then(|| pcm.to_owned());
    };
    let of_cards = ["hw", "plughw", "hdmi", "iec958", "sysdefault", "front", "dmix", "softvol"];
    if !of_cards.contains(&kind) {
        return None;
    }
    let card = match arguments.split(',').find_map(|argument| argument.trim().strip_prefix("CARD=")) {
        Some(card) => format!("CARD={card}"),
        None => arguments.split(',').next()?.trim().to_owned(),
    };
    (!card.is_empty()).then(|| format!("hw:{card}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pcms_name_leads_to_its_cards_mixer() {
        let leads = |pcm| mixer_of(pcm);
        assert_eq!(leads("hw:CARD=DAC,DEV=0").as_deref(), Some("hw:CARD=DAC"));
        assert_eq!(leads("plughw:1,0").as_deref(), Some("hw:1"));
        assert_eq!(leads("hdmi:CARD=vc4hdmi0").as_deref(), Some("hw:CARD=vc4hdmi0"));
        assert_eq!(leads("kitchen").as_deref(), Some("kitchen"));
        assert_eq!(leads("default"), None);
        assert_eq!(leads("hw:"), None);
    }

    #[test]
    fn a_control_of_an_unknown_name_counts_unless_its_name_speaks_against_it() {
        assert!(rank("Digital") < rank("Master") && rank("Master") < rank("PCM"));
        assert_eq!(rank("Acme DAC 3 Pro "), Some(NAMES.len()));
        for other in ["Mic", "Mic Boost", "Line In", "Sidetone", "Beep", "EQ", "PCM Surround", "Headset Mic"]
        {
            assert_eq!(rank(other), None, "{other}");
        }
    }
}
