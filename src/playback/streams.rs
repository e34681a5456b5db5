//! What the streams tell, and what it means to the player.

use tokio::sync::broadcast::error::RecvError;

use super::actor::Playback;
use super::feeder::Message;
use super::inbox::Inbox;
use super::names;
use crate::control::Reason;
use crate::player::{Event, Ticket};
use crate::stream::{StreamEvent, StreamHandle, WaitReason};
use crate::track::TrackUri;

impl Playback {
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

    fn is_of_the_user(&self, ticket: Ticket) -> bool {
        self.held.get(&ticket).is_some_and(|held| matches!(held.uri, TrackUri::Web(_)))
    }
}
