//! A card in trouble: brought back, or given up.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::{Flow, OutputThread};
use crate::output::alsa::{Device, Fault, OpenError};
use crate::output::marks::Event;
use crate::output::playhead::{duration, frames, now_ns};

/// Recoveries without a frame played in between before a device is given up.
const MOST_RECOVERIES: u32 = 5;
/// What a lost card may have failed to play before that was noticed. Rather this much is heard twice than not at all.
const NOTICED_AFTER: Duration = Duration::from_millis(40);
/// So long a card that says that it woke up and did not is waited for before it is set up anew.
const PATIENCE_WITH_SLEEP: Duration = Duration::from_secs(1);

impl OutputThread {
    /// The poll said that something is wrong with the card.
    pub(super) fn troubled(&mut self) {
        let Some(device) = &self.device else { return };
        match device.level() {
            // It answers as if nothing were: a few times that is believed.
            Ok(_) => self.recover(Fault::Other),
            Err(fault) => self.recover(fault),
        }
    }

    /// Brings the card back after `fault`, or gives it up.
    pub(super) fn recover(&mut self, fault: Fault) {
        match fault {
            Fault::Xrun => self.underrun(),
            Fault::Suspended => {
                let heard = self.guess();
                self.flow = Flow::Asleep { heard };
                self.moved = Instant::now();
                self.wake_card();
            }
            Fault::Gone => self.lose(true),
            Fault::Other => {
                self.recoveries += 1;
                if self.recoveries > MOST_RECOVERIES {
                    self.lose(false);
                } else {
                    self.guess_heard();
                    self.feed.again();
                    self.stop_card();
                    self.moved = Instant::now();
                    self.fade_next = true;
                    self.prepare_card();
                }
            }
        }
    }

    /// The card ran dry: if it can be prepared again, it has played everything that it had.
    fn underrun(&mut self) {
        // Its start threshold may have started it while it was still being filled.
        let ran = self.flow != Flow::Filling || self.device.as_ref().is_some_and(Device::is_dry);
        let prepared = self.device.as_ref().is_some_and(|d| d.prepare().is_ok());
        if !prepared {
            // Plugins say "underrun" for a device that is no more.
            self.lose(true);
            return;
        }
        if ran {
            self.feed.set_heard(self.feed.written);
        } else {
            // It failed to start: nothing was heard.
            self.feed.again();
        }
        self.silence = 0;
        self.tell_notes();
        if !self.feed.has_frames() {
            self.end_sound();
            return;
        }
        let count = self.shared.xruns.fetch_add(1, Relaxed) + 1;
        self.event(Event::Xrun { count });
        self.recoveries += 1;
        if self.recoveries > MOST_RECOVERIES {
            self.lose(false);
            return;
        }
        self.moved = Instant::now();
        self.flow = Flow::Filling;
    }

    /// Tries to get a card back after the machine slept.
    pub(super) fn wake_card(&mut self) {
        let (Some(device), Flow::Asleep { heard }) = (&self.device, self.flow) else { return };
        match device.wake(self.moved.elapsed() < PATIENCE_WITH_SLEEP) {
            Ok(false) => {}
            Ok(true) if device.is_running() => {
                self.moved = Instant::now();
                // What is behind the silence may come only after it: see `drain`.
                let until = self.drained_by(duration(self.feed.unheard(), device.card.rate));
                self.flow = if self.silence > 0 { Flow::Draining { until } } else { Flow::Running };
            }
            Ok(true) => {
                self.feed.set_heard(heard);
                self.feed.again();
                self.fade_next = true;
                self.prepare_card();
            }
            Err(_) => {
                self.feed.set_heard(heard);
                self.lose(true);
            }
        }
    }

    /// Where the card was when it failed, as play count: from its last answer and the time since.
    fn guess(&self) -> u64 {
        let Some(device) = self.device.as_ref().filter(|_| self.is_sounding()) else {
            return self.feed.heard;
        };
        let since =
            Duration::from_nanos(now_ns().saturating_sub(self.level_ns)).saturating_sub(NOTICED_AFTER);
        self.feed.heard + frames(since, device.card.rate)
    }

    fn guess_heard(&mut self) {
        let at = self.guess();
        self.feed.set_heard(at);
    }

    fn lose(&mut self, unplugged: bool) {
        self.guess_heard();
        self.tell_notes();
        self.feed.again();
        self.fade_next = true;
        self.recoveries = 0;
        let name = self.device.as_ref().map(|d| d.name.clone()).unwrap_or_default();
        self.close();
        self.unusable(OpenError::lost(&name, unplugged), 0);
        if let Some(lost) = &mut self.lost {
            lost.awaited = Some((name, Instant::now()));
        }
    }
}
