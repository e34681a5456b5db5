//! Silence that is no part of any music: before the first frame, for receivers that mute until they hear a stream, and
//! while nothing plays, for DACs that pop when their clock stops.
//!
//! It counts nowhere. What the card still has of it in front of the sound makes its delay longer than the sound that it
//! was given: by that the thread knows that nothing is heard yet.

use std::time::{Duration, Instant};

use super::{Flow, OutputThread, Sleep};
use crate::output::alsa::Fault;
use crate::output::marks::Event;
use crate::output::playhead::{duration, frames};

/// So much silence is kept in the card: sound that is asked for waits as long.
const KEPT: Duration = Duration::from_millis(80);
/// It is filled up so often.
const FILLED_EVERY: Duration = Duration::from_millis(40);
/// A card that has been still for less is still awake.
const STILL: Duration = Duration::from_millis(500);

impl OutputThread {
    /// Silence to write in front of what comes now, in frames.
    pub(super) fn lead_in(&self) -> usize {
        let rate = self.device.as_ref().map_or(0, |device| device.card.rate);
        let asleep = self.asleep || self.stopped.elapsed() > STILL;
        if asleep { frames(self.settings.lead_in, rate) as usize } else { 0 }
    }

    /// Writes what is left of the silence in front; true when none is.
    pub(super) fn write_lead(&mut self) -> Result<bool, Fault> {
        let wrote = self.write_zeros(self.lead)?;
        self.lead -= wrote;
        Ok(self.lead == 0)
    }

    /// How much silence the card has in front of its first frame of sound.
    pub(super) fn leading(&self) -> Duration {
        let rate = self.device.as_ref().map_or(1, |device| device.card.rate);
        duration(self.leading, rate)
    }

    /// Writes so many frames of silence, as far as the card has room; returns how many.
    pub(super) fn write_zeros(&mut self, wanted: usize) -> Result<usize, Fault> {
        let Some(device) = &self.device else { return Ok(0) };
        let width = device.frame_bytes();
        let chunk = self.bytes.len() / width * width;
        let mut written = 0;
        self.bytes.fill(0);
        while written < wanted && chunk > 0 {
            let bytes = ((wanted - written) * width).min(chunk);
            let took = device.write(&self.bytes[..bytes])?;
            if took == 0 {
                break;
            }
            written += took;
        }
        Ok(written)
    }

    /// Nothing plays, and the card is to be kept awake.
    pub(super) fn keep_awake_if_wanted(&mut self) {
        let Some(device) = self.device.as_ref().filter(|_| self.settings.keep_alive) else { return };
        if device.instant || device.prepare().is_err() {
            return;
        }
        self.flow = Flow::Silent;
        self.silence = 0;
        if self.fill_silence().is_err() {
            self.lose_quietly();
        }
    }

    /// Keeps the card awake, or goes on with sound.
    pub(super) fn stay_awake(&mut self) {
        let sounds = !self.paused && self.feed.has_frames() && self.has_refilled();
        if self.feed.waits_for_set_up() {
            self.stop_card();
        } else if sounds && self.ring_fits_device() {
            self.go_on_from_silence();
        } else if sounds {
            self.stop_card();
        } else {
            match self.fill_silence() {
                Ok(()) => {}
                // It ran dry or slept, in silence: it is prepared anew in this same round.
                Err(Fault::Xrun | Fault::Suspended) => self.stop_card(),
                Err(_) => self.lose_quietly(),
            }
        }
    }

    /// The sound follows the silence that is in the card: its clock never stops.
    fn go_on_from_silence(&mut self) {
        if std::mem::take(&mut self.fade_next) && !self.feed.starts_entry() {
            self.gain.fade_in();
        }
        self.note_device();
        let rate = self.device.as_ref().map_or(0, |device| device.card.rate);
        (self.flow, self.silence, self.dry_since) = (Flow::Running, 0, None);
        self.leading = frames(2 * KEPT, rate);
        self.moved = Instant::now();
        self.event(Event::Sounding { generation: self.feed.generation });
        self.look();
        if self.flow == Flow::Running {
            self.feed_card();
        }
    }

    fn fill_silence(&mut self) -> Result<(), Fault> {
        let Some(device) = &self.device else { return Ok(()) };
        let level = device.level()?;
        let kept = frames(KEPT, device.card.rate) as usize;
        let has = device.buffer.saturating_sub(level.avail);
        self.write_zeros(kept.saturating_sub(has).min(level.avail))?;
        match &self.device {
            Some(device) => device.start(),
            None => Ok(()),
        }
    }

    /// A card that goes while nothing plays is nobody's trouble yet.
    fn lose_quietly(&mut self) {
        self.stop_card();
        self.close();
        self.event(Event::Released);
    }

    pub(super) fn sleep_in_silence(&self) -> Sleep {
        Sleep { timeout: Some(FILLED_EVERY), card: false }
    }
}
