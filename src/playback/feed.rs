//! The decode thread: takes opened tracks, and feeds the output without a break from one to the next.
//!
//! It owns the decoder that works now, the one that comes next, and the writing end of the ring. It blocks in
//! three places only: for a message when there is nothing to do, for room in the ring (a message wakes it), and
//! in a track's stream (an interrupt or an abort of that stream ends the wait).

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::eventfd::EventFd;
use tokio::sync::mpsc::UnboundedSender;

use super::actor::Inbox;
use super::calls::{Call, LaidDown};
use super::feeder::{Message, Told};
use super::open::OpenTrack;
use super::runaway::Desk;
use super::work::{Stage, Work};
use crate::decode::{DecodeError, Landed};
use crate::dsp;
use crate::output::{BeginState, PcmWriter};
use crate::player::Ticket;
use crate::stream::StreamError;
use crate::track::SourceFormat;

/// While the ring is full the thread looks again after this time even if nobody wakes it.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The thread's own state.
pub(super) struct Feed {
    writer: PcmWriter,
    told: UnboundedSender<Inbox>,
    messages: Receiver<Message>,
    wake: Arc<EventFd>,
    pub(super) current: Option<Work>,
    pub(super) next: Option<(Ticket, Box<OpenTrack>)>,
    /// The track that was decoded to its end before one that was taken back: what comes next follows it.
    left: Option<Left>,
    /// The track that the current one is faded into, until that is heard: it may be wanted back.
    before: Option<Work>,
    generation: u64,
    /// What is to be done to the samples.
    sound: dsp::Settings,
    /// The end of the music is still to be announced to the output.
    end: Option<u64>,
    /// Messages that are read and not obeyed yet.
    waiting: VecDeque<Message>,
}

/// What a track that was dropped had been joined to.
struct Left {
    from: Ticket,
    /// The dropped track, while some of its sound is in the ring and has not been taken back yet.
    instead_of: Option<Ticket>,
    /// The decoder ran away on `from`, and whether it is opened again or the next one follows is not decided yet.
    undecided: bool,
    /// What `from` had been joined to itself, where that may matter.
    before: Option<Ticket>,
}

impl Left {
    fn behind(from: Ticket, instead_of: Option<Ticket>) -> Left {
        Left { from, instead_of, undecided: false, before: None }
    }
}

/// What to do after a step.
enum Step {
    Again,
    WaitForRoom,
    WaitForMessage,
    Decoder(Call),
}

impl Feed {
    pub(super) fn new(
        writer: PcmWriter,
        told: UnboundedSender<Inbox>,
        messages: Receiver<Message>,
        wake: Arc<EventFd>,
    ) -> Feed {
        Feed {
            writer,
            told,
            messages,
            wake,
            current: None,
            next: None,
            left: None,
            before: None,
            generation: 0,
            sound: dsp::Settings::default(),
            end: None,
            waiting: VecDeque::new(),
        }
    }

    /// Works until the other end of the message channel is gone, or somebody else goes on with it.
    pub(super) fn run(self: Box<Self>, desk: &Desk<LaidDown>) {
        let mut feed = self;
        loop {
            let Some(step) = feed.turn() else { return };
            match step {
                Step::Again => {}
                Step::WaitForRoom => {
                    if feed.writer.wait(feed.wake.as_fd(), LOOK_AGAIN) {
                        let _ = feed.wake.read();
                    }
                }
                Step::WaitForMessage => {
                    let mut fds = [PollFd::new(feed.wake.as_fd(), PollFlags::POLLIN)];
                    let _ = nix::poll::poll(&mut fds, PollTimeout::NONE);
                    let _ = feed.wake.read();
                }
                Step::Decoder(call) => match feed.call(call, desk) {
                    Some(same) => feed = same,
                    None => return,
                },
            }
        }
    }

    /// One message, or one step; `None` when nobody is there any more to send messages.
    fn turn(&mut self) -> Option<Step> {
        loop {
            match self.messages.try_recv() {
                Ok(message) => self.waiting.push_back(message),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => break,
            }
        }
        let Some(message) = self.waiting.pop_front() else { return Some(self.step()) };
        // Of a burst of seeks only the last is worth its time.
        let obsolete = matches!(message, Message::Seek { .. })
            && self.waiting.iter().any(|later| matches!(later, Message::Seek { .. } | Message::Feed { .. }));
        let call = if obsolete { None } else { self.obey(message) };
        Some(call.map_or(Step::Again, Step::Decoder))
    }

    fn tell(&self, what: Told) {
        // Nobody listens any more only when the program is on its way out.
        let _ = self.told.send(Inbox::Feeder(what));
    }

    /// What it leads to may be a call of a decoder.
    fn obey(&mut self, message: Message) -> Option<Call> {
        match message {
            Message::Feed { ticket, track, generation } => {
                self.generation = generation;
                self.end = None;
                return self.feed(ticket, track);
            }
            Message::Next { ticket, track } => {
                self.next = Some((ticket, track));
                // What waits is its own to be followed, not the end's.
                self.end.take_if(|_| self.current.as_ref().is_some_and(Work::is_unwritten_at_end));
                match &mut self.current {
                    Some(work) if work.stage != Stage::AtEnd || work.undecided => {}
                    Some(work) => work.stage = Stage::Ending,
                    // The track before it comes back first.
                    None if self.before.is_some() => {}
                    None => self.take_next_after_taking_back(),
                }
            }
            Message::GoOn(ticket) => {
                if let Some(work) = self.current.as_mut().filter(|work| work.ticket == ticket) {
                    work.undecided = false;
                    if work.stage == Stage::AtEnd && self.next.is_some() {
                        work.stage = Stage::Ending;
                    }
                }
                if let Some(left) = self.left.as_mut().filter(|left| left.undecided && left.from == ticket) {
                    left.undecided = false;
                    self.take_next_after_taking_back();
                }
            }
            Message::Abandon(ticket) => {
                if let Some(work) = self.current.take_if(|work| work.ticket == ticket) {
                    self.left = work.follows.map(|from| Left::behind(from, Some(ticket)));
                    if let Some(before) = &mut self.before {
                        before.restore(work);
                    }
                }
                if self.before.take_if(|work| work.ticket == ticket).is_some() {
                    self.forget_done_fade();
                }
                self.next.take_if(|(next, _)| *next == ticket);
            }
            Message::Seek { ticket, generation, position } => {
                self.generation = generation;
                self.end = None;
                return self.seek(ticket, position);
            }
            Message::Measure(ticket) => return self.measure(ticket),
            Message::TakeBack { ticket, generation } => return self.take_back(ticket, generation),
            Message::Sound(settings) => {
                self.sound = settings;
                if let Some(work) = &mut self.current {
                    work.change_sound(&settings);
                }
            }
            Message::End { generation } => self.end = Some(generation),
        }
        None
    }

    fn feed(&mut self, ticket: Ticket, track: Option<Box<OpenTrack>>) -> Option<Call> {
        let handed_over_before = || self.next.take_if(|(next, _)| *next == ticket).map(|(_, track)| track);
        if let Some(track) = track.or_else(handed_over_before) {
            self.left = None;
            self.before = None;
            self.current = Some(Work::new(ticket, track));
            return None;
        }
        // It was taken as the next track a moment ago: begin it anew.
        self.seek(ticket, Duration::ZERO)
    }

    /// Not one more frame of this track goes to the ring: under the new generation it would be heard.
    fn take_back(&mut self, ticket: Ticket, generation: u64) -> Option<Call> {
        self.generation = generation;
        if let Some(left) = &mut self.left
            && left.instead_of == Some(ticket)
        {
            left.instead_of = None;
            if self.current.is_none()
                && let Some(before) = self.before.take()
            {
                self.come_back(before);
            }
        }
        if let Some(work) = self.current.take_if(|work| work.ticket == ticket) {
            self.left = work.follows.map(|from| Left::behind(from, None));
            if let Some(mut before) = self.before.take() {
                before.restore(work);
                self.come_back(before);
            }
            return None;
        }
        if let Some(left) = self.left.as_mut().filter(|left| left.from == ticket) {
            self.left = left.before.map(|before| Left::behind(before, None));
        }
        let work = self.current.as_mut()?;
        if work.behind == Some(ticket) {
            // What it has in the ring is taken back too: from its beginning again.
            work.behind = None;
            let (again, start) = (work.ticket, work.track.decoder.format().time_of(work.track.start_frame));
            return self.seek(again, start);
        }
        None
    }

    fn seek(&mut self, ticket: Ticket, position: Duration) -> Option<Call> {
        let work = self.current.as_mut().filter(|work| work.ticket == ticket);
        let Some(work) = work else {
            self.tell(Told::Lost(ticket));
            return None;
        };
        work.track.stream.clear_interrupt();
        Some(Call::Seek(position))
    }

    pub(super) fn sought(&mut self, position: Duration, outcome: Result<Landed, DecodeError>) {
        let Some(work) = &mut self.current else { return };
        let format = work.track.decoder.format();
        match outcome {
            Ok(landed) => {
                work.restart_at(landed.frame);
                let (ticket, position) = (work.ticket, format.time_of(landed.frame));
                self.tell(Told::Landed { ticket, position, exact: landed.exact });
            }
            Err(error) => {
                work.restart_at(format.frame_at(position));
                self.failed(error, position);
            }
        }
    }

    fn measure(&self, ticket: Ticket) -> Option<Call> {
        if self.current.as_ref().is_some_and(|work| work.ticket == ticket) {
            return Some(Call::Measure);
        }
        self.next.as_ref().filter(|(next, _)| *next == ticket).map(|_| Call::MeasureNext)
    }

    pub(super) fn measured(
        &self,
        ticket: Ticket,
        track: &OpenTrack,
        outcome: Result<Option<u64>, DecodeError>,
    ) {
        // What cannot be measured stays unknown; if the track is broken, decoding it will say so.
        if let Ok(Some(frames)) = outcome {
            self.tell(Told::Measured(ticket, track.decoder.format().time_of(frames)));
        }
    }

    fn step(&mut self) -> Step {
        if let Some(generation) = self.end {
            match self.current.as_mut().filter(|work| work.is_unwritten_at_end()) {
                Some(work) => work.released = true,
                None if !self.writer.end(generation) => return Step::WaitForRoom,
                None => self.end = None,
            }
        }
        let Some(work) = &mut self.current else { return Step::WaitForMessage };
        if let most @ 1.. = work.is_due(&self.sound, &self.writer) {
            return self.write(most);
        }
        if !work.pcm.is_empty() {
            return self.convert();
        }
        match work.stage {
            Stage::Decoding => Step::Decoder(Call::Next),
            Stage::Ending => self.come_to_the_end(),
            // What may be joined waits for that as long as there is time.
            Stage::AtEnd if work.holds_back() && (self.end.is_some() || self.writer.is_half_empty()) => {
                work.finish(&self.sound);
                work.stage = Stage::Ending;
                Step::Again
            }
            Stage::AtEnd if work.holds_back() || work.waiting() > 0 => Step::WaitForRoom,
            Stage::AtEnd | Stage::AwaitingSeek => Step::WaitForMessage,
        }
    }

    /// All that was decoded is in the ring, or waits for what may be joined to it or faded into it.
    fn come_to_the_end(&mut self) -> Step {
        let fades = self.fades();
        let Some(work) = &mut self.current else { return Step::WaitForMessage };
        let next = self.next.as_ref().map(|(_, next)| next.decoder.format());
        let format = work.track.decoder.format();
        let joins = !fades && next.is_none_or(|next| next == format);
        if work.holds_back() && (work.is_mixing() || !joins) {
            work.finish(&self.sound);
            return Step::Again;
        }
        if work.is_mixing() {
            work.fade_out(&self.sound);
            return Step::Again;
        }
        if next.is_some() && !fades && work.waiting() > 0 {
            // No fade for this one: the end is heard as it is.
            work.released = true;
            return Step::Again;
        }
        // A track that is shorter than what the chain holds back has its mark all the same.
        let is_due = work.sounded && work.waiting() == 0 && (next.is_some() || !work.holds_back());
        if is_due && !self.mark(format) {
            return Step::WaitForRoom;
        }
        let Some(work) = &mut self.current else { return Step::WaitForMessage };
        work.stage = Stage::AtEnd;
        if work.undecided {
            return Step::Again;
        }
        if next.is_some() {
            self.take_next();
        } else if !std::mem::replace(&mut work.told_end, true) {
            let ticket = work.ticket;
            self.tell(Told::AtEnd(ticket, self.generation));
        }
        Step::Again
    }

    /// Whether the next track is faded into the current one.
    fn fades(&self) -> bool {
        let (Some(work), Some((_, next))) = (&self.current, &self.next) else { return false };
        !work.undecided && work.fades_into(next, &self.sound, &self.writer)
    }

    /// A track that was to fade out is not to, and has its end again.
    fn come_back(&mut self, mut before: Work) {
        if self.next.is_some() {
            before.stage = Stage::Ending;
        }
        (self.current, self.left) = (Some(before), None);
    }

    /// Once the current track is heard and the fade is mixed, what it was mixed with is not wanted any more.
    fn forget_done_fade(&mut self) {
        if let Some(work) = self.current.as_mut().filter(|_| self.before.is_none()) {
            work.fade.take_if(|fade| fade.is_done());
        }
    }

    /// The decoder, which stood at the frame `before`, has given what it has.
    pub(super) fn decoded(&mut self, before: u64, outcome: Result<Option<usize>, DecodeError>) {
        let Some(work) = &mut self.current else { return };
        match outcome {
            Ok(Some(_)) => {
                if let Some(part) = work.new_part() {
                    // Its mark stands where its sound begins.
                    work.begin_part(&self.sound);
                    work.released = true;
                    work.unmarked.get_or_insert(before);
                    let told = Told::Part(work.ticket, part);
                    self.tell(told);
                }
            }
            Ok(None) => work.stage = Stage::Ending,
            Err(error) => {
                let reached = work.track.decoder.format().time_of(before);
                self.failed(error, reached);
            }
        }
    }

    /// The decoder of the current track ran away, in a thread that is left to itself; or that of the next one, before
    /// its turn.
    pub(super) fn ran_away(&mut self, ticket: Ticket, follows: Option<Ticket>, at: Option<Duration>) {
        if at.is_some() {
            self.before = None;
            self.left = Some(Left { undecided: true, before: follows, ..Left::behind(ticket, None) });
        }
        let reached = at.unwrap_or_default();
        self.tell(Told::Failed(ticket, self.generation, DecodeError::RanAway, reached));
    }

    /// Brings what was decoded to the card's rate and channels, once these are known.
    fn convert(&mut self) -> Step {
        let Some(work) = &mut self.current else { return Step::WaitForMessage };
        let from = work.track.decoder.format();
        let BeginState::Ready(to) = self.writer.begin(from, self.generation) else {
            return Step::WaitForRoom;
        };
        if let Err(error) = work.process(from, to, &self.sound) {
            work.pcm.clear();
            let codec = work.track.decoder.codec().to_owned();
            let reached = from.time_of(work.track.decoder.position());
            self.failed(DecodeError::Unsupported { codec, reason: error.to_string() }, reached);
        }
        self.forget_done_fade();
        Step::Again
    }

    /// Gives the ring so many samples, if it has room for them.
    fn write(&mut self, most: usize) -> Step {
        let Some(work) = &mut self.current else { return Step::WaitForMessage };
        let format = work.conversion.as_ref().map_or(work.track.decoder.format(), |made| made.from);
        let BeginState::Ready(card) = self.writer.begin(format, self.generation) else {
            return Step::WaitForRoom;
        };
        if work.before_mark == 0 && !self.mark(format) || !self.mark_end_of_fade(format) {
            return Step::WaitForRoom;
        }
        let Some(work) = &mut self.current else { return Step::WaitForMessage };
        let channels = usize::from(card.channels);
        let mark = work.unmarked.map(|_| work.before_mark);
        let frames =
            mark.into_iter().chain(work.fade_end.map(|(before, _)| before)).min().unwrap_or(u64::MAX);
        let most = most.min(usize::try_from(frames).unwrap_or(usize::MAX).saturating_mul(channels));
        let ready = work.front(channels);
        let frames = self.writer.write(&ready[..most.min(ready.len())]);
        if frames == 0 {
            return Step::WaitForRoom;
        }
        work.gave(frames * channels, channels);
        Step::Again
    }

    /// Sets the mark that is due; false if too many wait.
    fn mark(&mut self, format: SourceFormat) -> bool {
        let Some(work) = &mut self.current else { return true };
        let Some(frame) = work.unmarked else { return true };
        let set = self.writer.mark(work.mark(frame, format, self.generation, &self.sound));
        work.unmarked = work.unmarked.filter(|_| !set);
        set
    }

    /// Sets the mark that the track is alone from here, if it is due; false if too many wait.
    fn mark_end_of_fade(&mut self, format: SourceFormat) -> bool {
        let Some(work) = &mut self.current else { return true };
        let Some((_, frame)) = work.fade_end.take_if(|(before, _)| *before == 0) else { return true };
        let set = self.writer.mark(work.mark(frame, format, self.generation, &self.sound));
        work.fade_end = Some((0, frame)).filter(|_| !set);
        set
    }

    fn failed(&mut self, error: DecodeError, reached: Duration) {
        let Some(work) = &mut self.current else { return };
        if was_wanted(&error) {
            work.stage = Stage::AwaitingSeek;
            return;
        }
        let ticket = work.ticket;
        work.undecided = true;
        work.released = true;
        work.stage = Stage::Ending;
        self.tell(Told::Failed(ticket, self.generation, error, reached));
    }

    /// Goes on with the next track. In the same format the converter goes on too, so that the join is no seam.
    fn take_next(&mut self) {
        let fades = self.fades();
        let Some((ticket, track)) = self.next.take() else { return };
        let Some(mut before) = self.current.take() else { return };
        let joins = before.track.decoder.format() == track.decoder.format();
        let (from, entry) = (before.ticket, track.entry);
        let mut work = Work { follows: Some(from), ..Work::new(ticket, track) };
        if fades {
            work.fade_from(&mut before);
        } else if let Some(conversion) = before.conversion.take_if(|_| joins) {
            work.join(conversion, &self.sound);
        }
        self.before = Some(before).filter(|_| fades);
        self.current = Some(work);
        self.tell(Told::TookNext { from, ticket, entry });
    }

    /// The next track was decoded already when the queue changed, and its decoder is gone. What was decoded before
    /// it is still heard, and another one follows that.
    fn take_next_after_taking_back(&mut self) {
        let Some(left) = self.left.take_if(|left| !left.undecided && self.next.is_some()) else { return };
        let Some((ticket, track)) = self.next.take() else { return };
        let Left { from, instead_of, .. } = left;
        let entry = track.entry;
        let work = Work::new(ticket, track);
        self.current = Some(Work { follows: Some(from), behind: instead_of, ..work });
        self.tell(Told::TookNext { from, ticket, entry });
    }
}

/// The stream was interrupted or closed by us: a message says what comes now.
fn was_wanted(error: &DecodeError) -> bool {
    let DecodeError::Input(error) = error else { return false };
    matches!(StreamError::of(error), Some(StreamError::Interrupted { .. } | StreamError::Aborted { .. }))
}
