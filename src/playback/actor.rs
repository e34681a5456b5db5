//! The task that owns the player's mind.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

use super::buffer;
use super::feeder::{Feeder, Part};
use super::inbox::Inbox;
use super::open::{OpenTrack, Opener};
use super::persist::{Keeper, Kept};
use super::runaway::Runaways;
use crate::control::{self, Answer, Command, Notice, Request, State};
use crate::output::{self, Output, VolumeEvent};
use crate::player::{Event, Intent, Machine, Now, Ticket};
use crate::plugin::Host;
use crate::stream::{StreamHandle, Streams, UserFolders};
use crate::track::EntryId;

/// So often the player is told that time passes, while something plays.
const TICK: Duration = Duration::from_secs(5);
/// Sound is faded out over this time when the daemon ends.
const LAST_FADE: Duration = Duration::from_millis(100);

/// What the playback task works with.
pub struct Parts {
    /// Resolves tracks.
    pub plugins: Host,
    /// Fetches them.
    pub streams: Streams,
    /// Makes them heard.
    pub output: Output,
    /// What the output tells.
    pub sound: output::EventStream,
    /// `file:` URIs may be played below these.
    pub folders: Vec<PathBuf>,
    /// Commands from outside.
    pub requests: mpsc::Receiver<Request>,
    /// What is visible from outside.
    pub state: watch::Sender<State>,
    /// What must not be lost.
    pub notices: broadcast::Sender<Notice>,
    /// Where queue and state are kept, and what an earlier run left there.
    pub kept: Kept,
}

/// How far a ticket's opening has come.
pub(super) struct Held {
    pub entry: EntryId,
    pub uri: crate::track::TrackUri,
    pub opening: Option<AbortHandle>,
    pub stream: Option<StreamHandle>,
    /// Open, and not with the decode thread yet.
    pub track: Option<Box<OpenTrack>>,
    /// Parts that are decoded and not heard yet.
    pub parts: VecDeque<Part>,
}

/// Carries out what the player decides.
pub struct Playback {
    pub(super) machine: Machine,
    pub(super) opener: Opener,
    pub(super) output: Output,
    pub(super) feeder: Option<Feeder>,
    pub(super) held: HashMap<Ticket, Held>,
    /// The decode thread was told something since it was found idle.
    pub(super) watched: bool,
    /// The card is held, and so are the streams.
    pub(super) paused: bool,
    pub(super) inbox: UnboundedSender<Inbox>,
    pub(super) notices: broadcast::Sender<Notice>,
    pub(super) keeper: Keeper,
    state: watch::Sender<State>,
    pub(super) inbox_receiver: UnboundedReceiver<Inbox>,
    requests: mpsc::Receiver<Request>,
    sound: output::EventStream,
    volume: UnboundedReceiver<VolumeEvent>,
    /// When the card ran dry last.
    pub(super) ran_dry: Option<Instant>,
    /// Why another device than the preferred one is used, as it was said; empty if that is not so.
    pub(super) instead_of: String,
}

impl Playback {
    /// Joins the parts. Must be called within a tokio runtime.
    pub fn new(parts: Parts) -> std::io::Result<Playback> {
        let (inbox, inbox_receiver) = mpsc::unbounded_channel();
        let writer = parts.output.writer().ok_or_else(|| std::io::Error::other("the output is taken"))?;
        let volume =
            parts.output.volume_events().ok_or_else(|| std::io::Error::other("the output is taken"))?;
        let runaways = Runaways::default();
        let feeder = Feeder::start(writer, inbox.clone(), runaways.clone())?;
        let Kept { restored, keeper } = parts.kept;
        let opener = Opener {
            plugins: parts.plugins,
            streams: parts.streams,
            folders: UserFolders::new(parts.folders.clone()),
            inbox: inbox.clone(),
            runaways,
        };
        Ok(Playback {
            machine: Machine::new(restored, parts.folders),
            opener,
            output: parts.output,
            feeder: Some(feeder),
            held: HashMap::new(),
            watched: false,
            paused: false,
            inbox,
            notices: parts.notices,
            keeper,
            state: parts.state,
            inbox_receiver,
            requests: parts.requests,
            sound: parts.sound,
            volume,
            ran_dry: None,
            instead_of: String::new(),
        })
    }

    /// Works until `quit` is told, then ends within half a second: fades out, keeps what is to be kept.
    pub async fn run(mut self, mut quit: watch::Receiver<bool>) {
        let effects = self.machine.start();
        self.carry_out(effects);
        self.publish();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let save_at = self.keeper.due();
            tokio::select! {
                biased;
                _ = quit.wait_for(|quit| *quit) => break,
                event = self.sound.next() => match event {
                    Some(event) => self.heard(event),
                    None => {
                        tracing::error!("the output thread has ended; the daemon ends with it");
                        break;
                    }
                },
                Some(message) = self.inbox_receiver.recv() => self.read(message),
                Some(event) = self.volume.recv() => self.volume_changed(event),
                Some(request) = self.requests.recv() => self.answer(request),
                _ = ticks.tick(), if self.watched || self.machine.intent() == Intent::Playing => self.tick(),
                () = sleep_until(save_at), if save_at.is_some() => self.save(),
            }
            if self.opener.runaways.are_too_many() {
                tracing::error!(
                    "another decoder does not come to an end; the daemon ends, to be started anew"
                );
                break;
            }
            if !self.feeder.as_ref().is_some_and(Feeder::lives) {
                tracing::error!("the decode thread has ended; the daemon ends with it");
                break;
            }
            self.publish();
        }
        self.end().await;
    }

    /// Everything that the player may know about this moment.
    pub(super) fn now(&self) -> Now {
        let heard = self.output.playhead().filter(|playhead| {
            playhead.generation >= self.machine.valid_from() && Some(playhead.entry) == self.machine.current()
        });
        Now { at: Instant::now(), heard: heard.map(|playhead| playhead.position) }
    }

    fn answer(&mut self, request: Request) {
        let answer = if request.command == Command::Buffer {
            Ok(Answer::Buffer(self.buffer()))
        } else {
            let (answer, effects) = self.machine.command(request.command, self.now());
            self.carry_out(effects);
            answer
        };
        // Who asked sees what came of it when the answer arrives.
        self.publish();
        // A caller that is gone is no error.
        let _ = request.reply.send(answer);
    }

    fn buffer(&self) -> control::Buffer {
        let stream = self.machine.current_ticket().and_then(|ticket| self.held.get(&ticket)?.stream.clone());
        let status = stream.map(|stream| stream.status());
        buffer::view(status, &self.output.facts(), self.machine.position(self.now()), self.machine.duration())
    }

    pub(super) fn happened(&mut self, event: Event) {
        let effects = self.machine.happened(event, self.now());
        self.carry_out(effects);
    }

    fn tick(&mut self) {
        self.watched = self.feeder.as_mut().is_some_and(Feeder::is_in_decoder);
        if self.machine.intent() != Intent::Playing {
            return;
        }
        self.happened(Event::Tick);
        if !self.machine.plays_live() {
            self.keeper.tick(Instant::now());
        }
    }

    /// Ends whatever serves this ticket, but for the decode thread.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        let Some(held) = self.held.remove(&ticket) else { return };
        if let Some(opening) = held.opening {
            opening.abort();
        }
        if let Some(stream) = held.stream {
            stream.abort();
        }
    }

    fn save(&mut self) {
        let position = self.machine.position_to_keep(self.now());
        self.keeper.save(&self.machine, position, Instant::now());
    }

    /// Shows the state as it is now to whoever watches, if it differs.
    pub(super) fn publish(&self) {
        let facts = self.output.facts();
        let card = facts.card;
        let output = control::Output {
            device: facts.device,
            rate: card.map_or(0, |card| card.rate),
            format: card.map(|card| card.sample.name().to_owned()).unwrap_or_default(),
            channels: card.map_or(0, |card| u32::from(card.channels)),
            bit_perfect: facts.bit_perfect,
            reason: facts.reason,
            codec: String::new(),
            xruns: facts.xruns,
        };
        let state = self.machine.state(output);
        self.state.send_if_modified(|shown| {
            let changed = *shown != state;
            if changed {
                *shown = state;
            }
            changed
        });
    }

    async fn end(mut self) {
        let position = self.machine.position_to_keep(self.now());
        let last = self.keeper.last(&self.machine, position);
        let output = self.output.clone();
        let silence = tokio::task::spawn_blocking(move || output.shutdown(LAST_FADE));
        let tickets: Vec<Ticket> = self.held.keys().copied().collect();
        for ticket in tickets {
            self.forget(ticket);
        }
        let feeder = self.feeder.take();
        let decoding = tokio::task::spawn_blocking(move || drop(feeder));
        for part in [silence, decoding, last] {
            if let Err(error) = part.await {
                tracing::error!(%error, "a part of the daemon did not end well");
            }
        }
    }
}

async fn sleep_until(moment: Option<Instant>) {
    if let Some(moment) = moment {
        tokio::time::sleep_until(moment.into()).await;
    }
}
