//! What the output tells, and what it means to the player.

use std::time::{Duration, Instant};

use super::actor::Playback;
use super::feeder::Part;
use crate::control::VolumeControl;
use crate::output::{self, VolumeEvent};
use crate::player::{Event, Ticket};

/// A card that runs dry again within this time is said to have done so once; all times are counted.
const BURST: Duration = Duration::from_secs(10);

impl Playback {
    pub(super) fn heard(&mut self, event: output::Event) {
        use crate::output::Event as Sound;
        // Whatever is heard was decoded before: what the decode thread told of it comes first. A card without a
        // clock plays so fast that both arrive together.
        while let Ok(message) = self.inbox_receiver.try_recv() {
            self.read(message);
        }
        let event = match event {
            Sound::Heard(mark) => {
                self.heard_mark(mark);
                return;
            }
            Sound::Sounding { generation } => Event::Sounding(generation),
            Sound::Empty { generation } => Event::Empty(generation),
            Sound::Finished { generation } => Event::Finished(generation),
            Sound::NeedsRestart { .. } => Event::NeedsRestart,
            Sound::DeviceGone { message, .. } => Event::DeviceGone(message),
            Sound::DeviceBack => Event::DeviceBack("the sound card is back".to_owned()),
            Sound::Opened { device, card, reason, instead_of, .. } => {
                self.say_instead(&device, instead_of);
                tracing::info!(%device, rate = card.rate, channels = card.channels,
                    format = card.sample.name(), altered_by = %reason, "sound card opened");
                Event::DeviceBack(format!("sound goes to {device}"))
            }
            Sound::Xrun { count } => {
                let now = Instant::now();
                let again = self.ran_dry.replace(now).is_some_and(|last| now.duration_since(last) < BURST);
                if !again {
                    tracing::warn!(count, "the sound card ran dry; is the machine overloaded?");
                }
                self.publish();
                return;
            }
            Sound::Released => return,
        };
        self.happened(event);
    }

    fn heard_mark(&mut self, mark: output::Mark) {
        let (entry, generation, ticket) = (mark.entry, mark.generation, Ticket(mark.opening));
        self.happened(Event::Heard { entry, generation, position: mark.position, ticket });
        let Some(held) = self.held.get_mut(&ticket) else { return };
        let due = held.parts.iter().take_while(|part| part.number <= mark.part).count();
        let heard: Vec<Part> = held.parts.drain(..due).collect();
        let Some(codec) = heard.last().map(|part| part.codec.clone()) else { return };
        // A link of a chain without a title goes on under the one before.
        let info = heard.into_iter().rev().find_map(|part| part.info);
        self.happened(Event::NowPlaying { entry, ticket, info, codec });
    }

    /// Says once why another device than the preferred one is used.
    fn say_instead(&mut self, device: &str, instead_of: String) {
        if self.instead_of != instead_of && !instead_of.is_empty() {
            tracing::warn!(%device, "{instead_of}; until then sound goes to another device");
            self.say(None, "trouble", format!("{instead_of}; until then sound goes to “{device}”"));
        }
        self.instead_of = instead_of;
    }

    pub(super) fn volume_changed(&mut self, event: VolumeEvent) {
        let control = match event.control {
            output::VolumeControl::Software => VolumeControl::Software,
            output::VolumeControl::Hardware => VolumeControl::Hardware,
            output::VolumeControl::Fixed => VolumeControl::Fixed,
        };
        self.happened(Event::Volume(control, event.hardware));
    }
}
