//! Each effect of the player's, carried out.

use tokio::sync::broadcast::error::RecvError;

use super::actor::{Held, Inbox, Playback};
use super::feeder::Message;
use super::names;
use crate::control::{Notice, Reason};
use crate::player::{Effect, Event, Ticket};
use crate::stream::{StreamEvent, StreamHandle, WaitReason};
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

    fn tell(&mut self, message: Message) {
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

    fn is_of_the_user(&self, ticket: Ticket) -> bool {
        self.held.get(&ticket).is_some_and(|held| matches!(held.uri, TrackUri::Web(_)))
    }

    pub(super) fn watch_stream(&mut self, ticket: Ticket, stream: StreamHandle) {
        let Some(held) = self.held.get_mut(&ticket) else {
            stream.abort();
            return;
        };
        stream.hold(self.paused);
        let mut changes = stream.changes();
        held.stream = Some(stream);
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            loop {
                match changes.recv().await {
                    Ok(event) => {
                        if inbox.send(Inbox::StreamEvent(ticket, event)).is_err() {
                            return;
                        }
                    }
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
            }
        });
    }

    pub(super) fn streamed(&mut self, ticket: Ticket, event: StreamEvent) {
        let Some(entry) = self.held.get(&ticket).map(|held| held.entry) else { return };
        match event {
            StreamEvent::Head { content_type, total } => {
                let what = content_type.unwrap_or_else(|| "bytes".to_owned());
                let size = total.map(|total| format!(", {} KiB", total.div_ceil(1024))).unwrap_or_default();
                self.say(Some(entry), "fetching", format!("{what}{size}"));
            }
            StreamEvent::Prefetching | StreamEvent::Renewing => {}
            // What a plugin's playlist leads to is the plugin's to say: its links may run out.
            StreamEvent::Playlist { entries, playing } if self.is_of_the_user(ticket) => {
                let listed = entries.into_iter().map(names::of_listed).collect();
                self.happened(Event::Listed { ticket, listed, playing });
            }
            StreamEvent::Playlist { .. } => {}
            StreamEvent::Station(station) => {
                let info = names::of_station(&station);
                self.say(
                    Some(entry),
                    "station",
                    info.title.clone().unwrap_or_else(|| "a station".to_owned()),
                );
                self.happened(Event::Introduced(entry, info));
            }
            StreamEvent::Complete => {
                self.happened(Event::Fetched(ticket));
                self.tell(Message::Measure(ticket));
            }
            StreamEvent::Waiting(reason, text) => {
                // What is here already bridges most of these.
                self.say(Some(entry), "trouble", text);
                let reason = match reason {
                    WaitReason::Network => Reason::Network,
                    WaitReason::Server => Reason::Server,
                    WaitReason::Expired => Reason::Expired,
                };
                self.happened(Event::Waiting(ticket, reason));
            }
            StreamEvent::Flowing => self.happened(Event::Flowing(ticket)),
            StreamEvent::Renewed { before_deadline } => {
                let when =
                    if before_deadline { "before the old one ran out" } else { "the old one had run out" };
                self.say(Some(entry), "renewed", format!("a fresh URL is here, {when}"));
            }
            StreamEvent::Failed(error) => tracing::warn!(entry = entry.0, "{error}"),
        }
    }
}
