//! Feeding the card: filling, starting, draining, stopping.

use std::time::{Duration, Instant};

use super::{Flow, OutputThread, Sleep};
use crate::output::alsa::{Fault, Level};
use crate::output::convert::convert;
use crate::output::marks::Event;
use crate::output::playhead::{duration, frames, now_ns};
use crate::output::start_frames;
use crate::system::realtime;

/// With so little left in the card and nothing in the ring, silence follows: late, so that frames that arrive in the
/// last moment still join without a gap, but early enough for a thread that is scheduled badly.
const SILENCE_AT: Duration = Duration::from_millis(30);
/// How much longer than its frames last a card may take to play them before it is stopped anyway.
const DRAIN_GRACE: Duration = Duration::from_millis(500);
/// A device that takes everything at once is empty all the time; it is called empty only after this.
const INSTANT_GRACE: Duration = Duration::from_millis(100);
/// How long a card waits for its volume, from its opening on. A mixer that hangs must not cost the music.
const VOLUME_AT_MOST: Duration = Duration::from_millis(500);
/// A running card that has not moved for this long is stuck.
const STUCK: Duration = Duration::from_secs(1);
/// The same for a sound server, whose own card may have slept, or be at the other end of a radio link. To begin anew
/// sooner would make it begin anew for ever.
const SERVER_STUCK: Duration = Duration::from_secs(5);

impl OutputThread {
    /// Asks the card what it has played.
    pub(super) fn look(&mut self) {
        if !self.is_sounding() {
            return;
        }
        let Some(device) = &self.device else { return };
        match device.level() {
            Ok(level) => self.seen(level),
            Err(fault) => self.recover(fault),
        }
    }

    /// The same just before a drop, which must not cost a frame.
    pub(super) fn look_exactly(&mut self) {
        let Some(device) = &self.device else { return };
        match device.exact_level() {
            Ok(level) => self.seen(level),
            Err(fault) => self.recover(fault),
        }
    }

    fn seen(&mut self, level: Level) {
        self.level = level;
        self.level_ns = now_ns();
        let before = self.feed.heard;
        let unheard = (level.delay + self.slack()).saturating_sub(self.silence) as u64;
        let leading = unheard.saturating_sub(self.feed.written - before).min(self.leading);
        if leading < std::mem::replace(&mut self.leading, leading) {
            self.moved = Instant::now();
        }
        self.feed.set_heard(self.feed.written.saturating_sub(unheard));
        if self.feed.heard > before {
            self.moved = Instant::now();
            self.recoveries = 0;
        } else if self.moved.elapsed() > self.stuck_after() && self.feed.unheard() > 0 {
            self.recover(Fault::Other);
        }
    }

    fn is_served(&self) -> bool {
        self.device.as_ref().is_some_and(|device| device.is_served)
    }

    fn stuck_after(&self) -> Duration {
        if self.is_served() { SERVER_STUCK } else { STUCK }
    }

    /// A server takes sound block by block and guesses in between how far it is: its last frames are heard only when so
    /// much of the silence behind them seems to be.
    fn slack(&self) -> usize {
        let drains = matches!(self.flow, Flow::Draining { .. });
        self.device.as_ref().filter(|device| drains && device.is_served).map_or(0, |device| device.period)
    }

    /// Until when a card that plays its last frames, which last so long, is waited for.
    pub(super) fn drained_by(&self, left: Duration) -> Instant {
        let grace = if self.is_served() { SERVER_STUCK } else { DRAIN_GRACE };
        Instant::now() + left + grace
    }

    /// Makes the card ready if there is something to play.
    pub(super) fn fill_if_wanted(&mut self) {
        if self.paused || !self.feed.has_frames() || !self.has_refilled() || !self.ensure_open() {
            return;
        }
        if self.volume_patience().is_some() {
            return;
        }
        self.prepare_card();
    }

    /// How long a card that was away is still given to get back the volume that it had: it may be as loud as it can.
    fn volume_patience(&self) -> Option<Duration> {
        if self.device.is_none() || !self.shared.volume_is_away.load(std::sync::atomic::Ordering::SeqCst) {
            return None;
        }
        VOLUME_AT_MOST.checked_sub(self.stopped.elapsed()).filter(|left| !left.is_zero())
    }

    pub(super) fn has_refilled(&mut self) -> bool {
        let rate = self.ring.map_or(1, |ring| ring.card.rate);
        let (held, capacity) = (self.feed.in_ring(), self.feed.capacity());
        self.refill.is_enough(duration(held, rate), duration(capacity, rate), Instant::now())
    }

    /// Prepares the card for its first frame.
    pub(super) fn prepare_card(&mut self) {
        let Some(device) = &self.device else { return };
        if let Err(fault) = device.prepare() {
            self.recover(fault);
            return;
        }
        self.note_device();
        self.lead = self.lead_in();
        self.leading = self.lead as u64;
        self.asleep = false;
        self.silence = 0;
        self.dry_since = None;
        self.moved = Instant::now();
        // From silence into the middle of a sound; an entry's own beginning needs no help and stays exact.
        if std::mem::take(&mut self.fade_next) && !self.feed.starts_entry() {
            self.gain.fade_in();
        }
        self.flow = Flow::Filling;
    }

    /// Gives the card what it has room for and starts it when that is enough.
    pub(super) fn feed_card(&mut self) {
        if let Err(fault) = self.fill() {
            self.recover(fault);
            return;
        }
        if self.flow == Flow::Filling {
            self.start_if_enough();
        }
        if self.flow == Flow::Running {
            self.drain_if_dry();
        }
    }

    fn fill(&mut self) -> Result<(), Fault> {
        if self.lead > 0 && !self.write_lead()? {
            return Ok(());
        }
        loop {
            let Some(device) = &self.device else { return Ok(()) };
            let mut room = if self.flow == Flow::Filling { device.level()?.avail } else { self.level.avail };
            let channels = self.feed.channels();
            let mut gave = 0;
            while room > 0 {
                let ramp = self.gain.until_steady().map_or(usize::MAX, |f| f as usize);
                let most = (room.min(ramp) * channels).min(self.samples.len());
                let frames = self.feed.next(&mut self.samples[..most]);
                if frames == 0 {
                    break;
                }
                let took = self.write(frames)?;
                room -= took.min(room);
                gave += took;
                if took < frames {
                    room = 0;
                }
            }
            if gave > 0 {
                self.dry_since = None;
            }
            self.level.avail = room;
            let instant = self.device.as_ref().is_some_and(|d| d.instant);
            if !instant || gave == 0 || self.flow != Flow::Running {
                return Ok(());
            }
            // It has played everything already: more is wanted, and orders are looked for in between.
            self.look();
            self.tell_notes();
            if self.shared.paused.load(std::sync::atomic::Ordering::Relaxed) {
                return Ok(());
            }
        }
    }

    /// Scales, converts and writes the first `frames` of `self.samples`; returns how many the card took.
    fn write(&mut self, frames: usize) -> Result<usize, Fault> {
        let Some(device) = &self.device else { return Ok(0) };
        let channels = self.feed.channels();
        let samples = &mut self.samples[..frames * channels];
        let untouched = self.gain.is_unity();
        self.gain.apply(samples, channels);
        device.reorder(samples);
        let card = device.card;
        let bits = match self.feed.format {
            Some(f) if !self.feed.treated && !f.lossy && f.rate == card.rate && card.keeps(f.channels) => {
                f.bits
            }
            _ => 32,
        };
        let dither = !untouched || bits > card.sample.bits();
        let noise = if dither { Some(&mut self.noise) } else { None };
        let bytes = convert(samples, card.sample, noise, &mut self.bytes);
        let took = device.write(&self.bytes[..bytes])?;
        self.gain.advance(took as u64);
        self.feed.wrote(took);
        Ok(took)
    }

    fn start_if_enough(&mut self) {
        let Some(device) = &self.device else { return };
        let given = self.feed.written - self.feed.heard;
        let enough = given + self.leading >= start_frames(device.card.rate, device.buffer) as u64
            || (given > 0 && (self.feed.at_stop() || self.level.avail == 0));
        if !enough && !device.is_running() {
            return;
        }
        if let Err(fault) = device.start() {
            self.recover(fault);
            return;
        }
        self.flow = Flow::Running;
        self.moved = Instant::now();
        self.level_ns = now_ns();
        self.event(Event::Sounding { generation: self.feed.generation });
        self.look();
        // A card that has played all of it at once has no clock: `null`, `file`, a plugin for tests. One that ran dry
        // has played all, too, and one whose server has not answered yet knows of no delay: these are none.
        let took_all = self.flow == Flow::Running && self.feed.unheard() == 0 && given > 64;
        let room = self.level.avail;
        if let Some(device) = self.device.as_mut().filter(|d| !d.instant && took_all && room >= d.buffer) {
            device.instant = true;
            let _ = realtime::become_ordinary();
        }
    }

    /// With nothing more to give, lets the last frames be heard and silence follow.
    fn drain_if_dry(&mut self) {
        if self.feed.has_frames() {
            return;
        }
        let since = *self.dry_since.get_or_insert_with(Instant::now);
        let Some(device) = &self.device else { return };
        let (left, dry_in) = (duration(self.feed.unheard() + self.leading, device.card.rate), self.dry_in());
        if device.instant {
            if self.feed.at_stop() || since.elapsed() >= INSTANT_GRACE {
                self.end_sound();
            }
            return;
        }
        if dry_in > self.silence_at() {
            return;
        }
        if let Err(fault) = self.write_silence() {
            self.recover(fault);
            return;
        }
        self.flow = Flow::Draining { until: self.drained_by(left) };
    }

    /// When the card runs dry, unless it gets more. That is before the last frame is heard where there is more behind its
    /// buffer: what is on its way over USB, a server's own card.
    fn dry_in(&self) -> Duration {
        let Some(device) = &self.device else { return Duration::ZERO };
        let held = device.buffer.saturating_sub(self.level.avail) as u64;
        duration(held.min(self.feed.unheard() + self.leading), device.card.rate)
    }

    /// With so little left in the card silence follows. Servers take a block at a time, about as large as a period.
    fn silence_at(&self) -> Duration {
        let block = self.device.as_ref().filter(|device| device.is_served);
        SILENCE_AT + block.map_or(Duration::ZERO, |device| duration(device.period as u64, device.card.rate))
    }

    fn write_silence(&mut self) -> Result<(), Fault> {
        let Some(device) = &self.device else { return Ok(()) };
        let rate = device.card.rate;
        // A server's last frames are heard only behind its own card's buffer, and its blocks.
        let periods = if device.is_served { 4 } else { 2 };
        let wanted =
            (periods * device.period).max(frames(4 * SILENCE_AT, rate) as usize).min(self.level.avail);
        self.silence += self.write_zeros(wanted.saturating_sub(self.silence))?;
        Ok(())
    }

    /// Stops the card once the last frame of sound is heard, or once it has had its time.
    pub(super) fn drain(&mut self, until: Instant) {
        if self.feed.unheard() == 0 {
            self.end_sound();
        } else if Instant::now() >= until {
            self.feed.set_heard(self.feed.written);
            self.end_sound();
        }
    }

    /// Everything is heard: stops the card and says whether that was meant.
    pub(super) fn end_sound(&mut self) {
        let meant = self.feed.at_stop();
        self.feed.set_heard(self.feed.written);
        self.tell_notes();
        self.stop_card();
        if !meant {
            // A device without a clock takes all at once and is empty most of the time.
            if !self.device.as_ref().is_some_and(|device| device.instant) {
                self.refill.emptied(Instant::now());
            }
            self.event(Event::Empty { generation: self.feed.generation });
        }
    }

    /// Stops the card at once.
    pub(super) fn stop_card(&mut self) {
        if let Some(device) = &self.device {
            device.stop();
        }
        (self.silence, self.lead, self.leading) = (0, 0, 0);
        self.flow = Flow::Stopped;
        self.stopped = Instant::now();
    }

    /// Stops the card at once, so that what it had not played can be given to it again.
    pub(super) fn halt(&mut self) {
        if self.is_sounding() {
            self.look_exactly();
        }
        let Some(device) = self.device.as_ref().filter(|_| self.is_sounding()) else {
            if let Flow::Asleep { heard } = self.flow {
                self.feed.set_heard(heard);
                self.fade_next = true;
            }
            if self.flow != Flow::Stopped {
                self.stop_card();
            }
            self.feed.again();
            return;
        };
        let played = device.drop_now(self.level);
        let at = self.feed.heard + played as u64;
        self.feed.set_heard(at);
        self.tell_notes();
        self.feed.again();
        self.fade_next = true;
        (self.silence, self.lead, self.leading) = (0, 0, 0);
        self.flow = Flow::Stopped;
        self.stopped = Instant::now();
    }

    /// Until when there is nothing to do.
    pub(super) fn sleep(&mut self) -> Sleep {
        let rate = self.device.as_ref().map_or(1, |d| d.card.rate);
        let moment = Duration::from_millis(1);
        match self.flow {
            Flow::Stopped => {
                let refills = !self.paused && self.feed.has_frames();
                let refill = self.refill.patience(Instant::now()).filter(|_| refills);
                let volume = self.volume_patience();
                let timeout = self.until_device_matters().into_iter().chain(refill).chain(volume).min();
                Sleep { timeout, card: false }
            }
            // With frames at hand it fills because the card failed while it was being fed: that goes on at once.
            Flow::Filling => Sleep { timeout: self.feed.has_frames().then_some(moment), card: false },
            Flow::Asleep { .. } => Sleep { timeout: Some(Duration::from_millis(100)), card: false },
            Flow::Silent => self.sleep_in_silence(),
            Flow::Draining { .. } => {
                let timeout = duration(self.feed.unheard(), rate) + moment;
                Sleep { timeout: Some(timeout.min(DRAIN_GRACE)), card: false }
            }
            Flow::Running => {
                let note = self.feed.until_note().map(|f| duration(f, rate) + self.leading() + moment);
                let dry = self.dry_since.is_some();
                let instant = self.device.as_ref().is_some_and(|d| d.instant);
                let limit = match (dry, instant) {
                    (false, _) => STUCK,
                    (true, true) => INSTANT_GRACE,
                    (true, false) => self.dry_in().saturating_sub(self.silence_at()).max(moment),
                };
                Sleep { timeout: Some(note.map_or(limit, |n| n.min(limit))), card: !dry }
            }
        }
    }

    /// Fades out, as far as there are frames for it, and lets go of the device.
    pub(super) fn finish(&mut self) {
        let fade = Duration::from_millis(self.shared.fade_ms.load(std::sync::atomic::Ordering::Relaxed));
        if self.flow == Flow::Running && !fade.is_zero() {
            // ALSA offers no rewinding through this crate: what the card has is taken back and given again, fading.
            self.halt();
            self.fade_next = false;
            self.prepare_card();
            if let Some(rate) = self.device.as_ref().map(|d| d.card.rate) {
                self.gain.fade_out(frames(fade, rate));
                if self.flow == Flow::Filling && self.fill().is_ok() {
                    let started = self.device.as_ref().is_some_and(|d| d.start().is_ok());
                    if started {
                        std::thread::sleep(fade);
                    }
                }
            }
        }
        self.stop_card();
        self.device = None;
        self.publish();
    }
}
