//! What the outside sees of the player.

use std::sync::Arc;

use super::slot::{NextSlot, Slot};
use super::{Intent, Machine};
use crate::control::{Can, Current, Output, QueueState, Reason, State, Status};

impl Machine {
    /// The state as it is now; `output` comes from who knows the card.
    pub fn state(&self, output: Output) -> State {
        let status = self.status();
        let waiting_for_device = self.intent == Intent::Playing && self.device_gone_since.is_some();
        State {
            status,
            reason: match status {
                _ if waiting_for_device => Reason::Device,
                Status::Playing => Reason::None,
                Status::Buffering if self.reason == Reason::None => self.why_silent(),
                _ => self.reason,
            },
            current: self.visible_entry(),
            volume: self.volume,
            volume_control: self.volume_control,
            mute: self.mute,
            sound: self.sound,
            queue: QueueState {
                length: u32::try_from(self.queue.len()).unwrap_or(u32::MAX),
                revision: self.queue.revision(),
                repeat: self.repeat,
            },
            can: self.can(),
            selected_output: self.selected_output.clone(),
            output: Output { codec: self.codec(), ..output },
            last_error: self.last_error.clone(),
        }
    }

    fn status(&self) -> Status {
        match self.intent {
            Intent::Stopped => Status::Stopped,
            Intent::Paused => Status::Paused,
            Intent::Playing if self.device_gone_since.is_some() => Status::Paused,
            Intent::Playing if self.sounding => Status::Playing,
            Intent::Playing => Status::Buffering,
        }
    }

    /// Before anybody has said why: the stream waits some seconds before it does.
    fn why_silent(&self) -> Reason {
        match self.slot {
            Slot::Opening { .. } => Reason::Opening,
            Slot::Feeding { .. } if self.stalled => Reason::Server,
            // The current entry is over, and the next is not there yet.
            Slot::Fed { .. } => match self.next {
                NextSlot::Opening(coming) => self.why_waits(coming.ticket).unwrap_or(Reason::Opening),
                NextSlot::Ready(coming) => self.why_waits(coming.ticket).unwrap_or(Reason::None),
                _ => Reason::None,
            },
            _ => Reason::None,
        }
    }

    fn visible_entry(&self) -> Option<Current> {
        let entry = self.queue.get(self.current?)?;
        let mut info = entry.info.clone();
        if info.duration != self.duration() {
            Arc::make_mut(&mut info).duration = self.duration();
        }
        if let Some(heard) = &self.now_playing {
            // What a station plays now; its own name stands where an album's would.
            let station = info.title.clone();
            let shown = Arc::make_mut(&mut info);
            shown.title.clone_from(&heard.title);
            shown.artists.clone_from(&heard.artists);
            shown.album = heard.album.clone().or(station);
        }
        Some(Current { entry: entry.id, uri: entry.uri.to_string(), info })
    }

    fn codec(&self) -> String {
        self.opened_track().map(|track| track.codec.clone()).unwrap_or_default()
    }

    fn can(&self) -> Can {
        let wrap = self.wraps();
        let Some(current) = self.current else { return Can::default() };
        Can {
            next: self.queue.following(current, wrap).is_some(),
            previous: self.queue.preceding(current, wrap).is_some(),
            play: true,
            pause: true,
            seek: self.opened_track().is_some_and(|track| track.not_seekable.is_none()),
        }
    }
}
