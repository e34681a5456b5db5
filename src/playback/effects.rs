//! Each effect of the player's, carried out.

use super::actor::{Held, Playback};
use super::feeder::Message;
use super::inbox::Inbox;
use crate::control::Notice;
use crate::player::{Effect, Ticket};
use crate::track::{EntryId, TrackUri};

impl Playback {
    pub(super) fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.carry_out_one(effect);
        }
    }

    fn carry_out_one(&mut self, effect: Effect) {
        match effect {
            Effect::Open { ticket, entry, uri, start } => {
                let opening = tokio::spawn(self.opener.clone().open(ticket, entry, uri.clone(), start));
                let opening = Some(opening.abort_handle());
                let parts = Default::default();
                self.held.insert(ticket, Held { entry, uri, opening, stream: None, track: None, parts });
            }
            Effect::Abandon(ticket) => {
                self.forget(ticket);
                self.tell(Message::Abandon(ticket));
            }
            Effect::Place(ticket, place) => {
                if let Some(track) = self.held.get_mut(&ticket).and_then(|held| held.track.as_mut()) {
                    track.place = place;
                }
            }
            Effect::Feed { ticket, generation } => {
                let track = self.take_track(ticket);
                self.tell(Message::Feed { ticket, track, generation });
                self.measure_if_here(ticket);
            }
            Effect::FeedNext(ticket) => {
                if let Some(track) = self.take_track(ticket) {
                    self.tell(Message::Next { ticket, track });
                    self.measure_if_here(ticket);
                }
            }
            Effect::GoOn(ticket) => self.tell(Message::GoOn(ticket)),
            Effect::EndOfMusic { generation } => self.tell(Message::End { generation }),
            Effect::Seek { ticket, generation, position } => {
                if let Some(stream) = self.held.get(&ticket).and_then(|held| held.stream.as_ref()) {
                    stream.interrupt();
                }
                self.tell(Message::Seek { ticket, generation, position });
            }
            Effect::Cut { generation } => self.output.cut(generation),
            Effect::CutAfter { ticket, entry, generation } => {
                self.output.cut_after(entry, generation);
                self.tell(Message::TakeBack { ticket, generation });
            }
            Effect::Rest => self.output.rest(),
            Effect::Pause => self.hold(true),
            Effect::Resume => self.hold(false),
            Effect::RestoreVolume(volume, mute) => self.output.restore_volume(volume as f32, mute),
            Effect::SetVolume(volume) => self.output.set_volume(volume as f32),
            Effect::SetMute(mute) => self.output.set_mute(mute),
            Effect::SelectOutput(device) => self.output.select(device),
            Effect::SetSound(settings) => self.tell(Message::Sound(settings)),
            Effect::FetchInfo(entry, uri) => self.fetch_info(entry, uri),
            Effect::SaveQueue => self.keeper.queue_changed(),
            Effect::SaveState => self.keeper.state_changed(),
            Effect::Notify(notice) => self.notify(notice),
        }
    }

    /// A small track is often here before it is open: then nothing else asks for its length.
    fn measure_if_here(&mut self, ticket: Ticket) {
        let stream = self.held.get(&ticket).and_then(|held| held.stream.as_ref());
        if stream.is_some_and(|stream| stream.status().complete) {
            self.tell(Message::Measure(ticket));
        }
    }

    /// Silences or wakes the card, and lets the streams know.
    fn hold(&mut self, on: bool) {
        self.paused = on;
        if on {
            self.output.pause();
        } else {
            self.output.resume();
        }
        for stream in self.held.values().filter_map(|held| held.stream.as_ref()) {
            stream.hold(on);
        }
    }

    pub(super) fn tell(&mut self, message: Message) {
        self.watched = true;
        if let Some(feeder) = &self.feeder {
            feeder.tell(message);
        }
    }

    fn take_track(&mut self, ticket: Ticket) -> Option<Box<super::open::OpenTrack>> {
        self.held.get_mut(&ticket).and_then(|held| held.track.take())
    }

    fn notify(&self, notice: Notice) {
        match &notice {
            // Some stations tell dozens in a second.
            Notice::Event { kind: kind @ "title", entry, text } => {
                tracing::debug!(kind, entry = entry.map(|entry| entry.0), "{text}");
            }
            Notice::Event { kind, entry, text } => {
                tracing::info!(kind, entry = entry.map(|entry| entry.0), "{text}");
            }
            Notice::Error(error) => tracing::warn!(code = error.code, "{}", error.message),
            Notice::Seeked(_) | Notice::Queue { .. } => {}
        }
        // Nobody has to listen.
        let _ = self.notices.send(notice);
    }

    pub(super) fn say(&self, entry: Option<EntryId>, kind: &'static str, text: String) {
        self.notify(Notice::Event { kind, entry, text });
    }

    fn fetch_info(&self, entry: EntryId, uri: TrackUri) {
        let TrackUri::Plugin(_, track) = uri else { return };
        let (plugins, inbox) = (self.opener.plugins.clone(), self.inbox.clone());
        tokio::spawn(async move {
            match plugins.track(&track).await {
                Ok(info) => {
                    let _ = inbox.send(Inbox::Info(entry, info));
                }
                Err(error) => tracing::debug!(%error, "no metadata for this track"),
            }
        });
    }
}
