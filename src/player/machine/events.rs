//! What the player makes of what happened.

use std::time::Duration;

use super::slot::Slot;
use super::{Intent, Machine, Now};
use crate::control::{Reason, VolumeControl};
use crate::player::effect::Effect;
use crate::player::event::{Event, Failure};
use crate::player::queue::Source;

/// So long a lost sound card is waited for with the wish to play on.
const DEVICE_PATIENCE: Duration = Duration::from_secs(600);

impl Machine {
    /// Takes in what happened and says what to do.
    pub fn happened(&mut self, event: Event, now: Now) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Opened(ticket, track) => self.opened(ticket, track, &mut effects),
            Event::OpenFailed(ticket, failure) => self.open_failed(ticket, failure, now, &mut effects),
            Event::TookNext { from, ticket, entry } => self.took_next(from, ticket, entry, &mut effects),
            Event::Lost(ticket) => self.lost(ticket, &mut effects),
            Event::FedToEnd(ticket) => {
                self.fed_to_end(ticket);
            }
            Event::DecodeFailed { ticket, failure, reached } => {
                self.decode_failed(ticket, failure, reached, &mut effects);
            }
            Event::Landed { ticket, position, exact } => {
                // A later seek may be on its way already: its position is the one to show.
                self.exact = exact;
                if self.slot == (Slot::Feeding { ticket }) && !exact {
                    self.anchor = position;
                }
            }
            Event::Measured(ticket, duration) => self.measured(ticket, duration, &mut effects),
            Event::Fetched(ticket) => self.fetched(ticket, &mut effects),
            Event::Waiting(ticket, reason) if self.slot.ticket() == Some(ticket) => self.reason = reason,
            Event::Flowing(ticket) if self.slot.ticket() == Some(ticket) => self.reason = Reason::None,
            Event::Waiting(ticket, reason) => self.coming_waits = Some((ticket, reason)),
            Event::Flowing(ticket) => {
                self.coming_waits.take_if(|(of, _)| *of == ticket);
            }
            Event::Heard { entry, generation, position, ticket } if generation >= self.valid_from => {
                self.heard(entry, position, ticket, now, &mut effects);
            }
            Event::NowPlaying { entry, ticket, info, codec } => {
                if let Some(track) = self.opened.get_mut(&ticket) {
                    track.codec = codec;
                }
                if let Some(info) = info.filter(|_| self.current == Some(entry)) {
                    self.now_playing(info, &mut effects);
                }
            }
            Event::Sounding(generation) if generation >= self.valid_from => self.sounds(now, &mut effects),
            Event::Empty(generation) if generation >= self.valid_from => {
                self.stalled |= self.sounding;
                self.sounding = false;
            }
            Event::Finished(generation) if generation >= self.valid_from => self.finished(&mut effects),
            Event::Heard { .. } | Event::Sounding(_) | Event::Empty(_) | Event::Finished(_) => {}
            Event::DeviceGone(message) => self.device_gone(message, now, &mut effects),
            Event::DeviceBack(message) => self.device_back(message, &mut effects),
            Event::NeedsRestart => self.jump(self.position(now), &mut effects),
            Event::Info(entry, info) => self.learn(entry, &info, Source::Plugin, &mut effects),
            Event::Introduced(entry, info) => self.learn(entry, &info, Source::Container, &mut effects),
            Event::Listed { ticket, listed, playing } => self.listed(ticket, listed, playing, &mut effects),
            Event::Volume(control, hardware) => self.volume_changed(control, hardware),
            Event::Tick => self.tick(now, &mut effects),
        }
        self.plan(now, &mut effects);
        effects
    }

    /// By the card, or by somebody at the card.
    fn volume_changed(&mut self, control: VolumeControl, hardware: Option<(f64, bool)>) {
        self.volume_control = control;
        (self.volume, self.mute) = match control {
            VolumeControl::Fixed => (1.0, self.mute),
            VolumeControl::Software | VolumeControl::Hardware => hardware.unwrap_or(self.software),
        };
    }

    fn device_gone(&mut self, message: String, now: Now, effects: &mut Vec<Effect>) {
        if self.device_gone_since.is_none() {
            self.device_gone_since = Some(now.at);
            self.stalled = true;
            let failure = Failure { code: "device", message, for_good: false, again: false };
            self.fail(failure, effects);
            effects.push(Effect::SaveState);
        }
    }

    fn device_back(&mut self, message: String, effects: &mut Vec<Effect>) {
        if self.device_gone_since.take().is_some() {
            self.last_error.take_if(|error| error.code == "device");
            self.event("device", message, effects);
        }
    }

    fn tick(&mut self, now: Now, effects: &mut Vec<Effect>) {
        self.try_station(now, effects);
        let patience_is_over = |since| now.at.saturating_duration_since(since) > DEVICE_PATIENCE;
        if self.intent == Intent::Playing && self.device_gone_since.is_some_and(patience_is_over) {
            self.intent = Intent::Paused;
            self.reason = Reason::Device;
            effects.extend([Effect::Pause, Effect::SaveState]);
        }
    }
}
