//! Opening, losing and getting back the device.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use super::play::DRAIN_GRACE;
use super::{Flow, OutputThread, RingFor};
use crate::output::alsa::{Device, Fault, OpenError, first_mixer};
use crate::output::format::SourceFormat;
use crate::output::marks::{Event, Note, Prepared, What};
use crate::output::playhead::{duration, frames, now_ns};
use crate::output::shared::{Opened, wake};
use crate::system::realtime;

/// Above every ordinary thread, below the kernel's own.
const PRIORITY: i32 = 10;
/// What the card holds if nobody says; more where the thread may be kept waiting by ordinary ones.
const BUFFER: Duration = Duration::from_millis(250);
const BUFFER_ORDINARY: Duration = Duration::from_millis(500);
/// The first wait before a lost device is tried again; doubles to the last.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(10);
/// A device that went away is waited for so long before the next of the list is used: a plug that is pushed in better, a
/// cable that is moved and a reset of USB take about a second or two.
const PREFERRED_FOR: Duration = Duration::from_secs(3);
/// How long somebody who looks at a device is waited for.
const LOOK_AT_MOST: Duration = Duration::from_millis(500);
/// After a change below /dev/snd: udev still has to give the device to the group.
const SETTLE: Duration = Duration::from_millis(100);
/// Recoveries without a frame played in between before a device is given up.
const MOST_RECOVERIES: u32 = 5;
/// What a lost card may have failed to play before that was noticed. Rather this much is heard twice than not at all.
const NOTICED_AFTER: Duration = Duration::from_millis(40);
/// So long a card that says that it woke up and did not is waited for before it is set up anew.
const PATIENCE_WITH_SLEEP: Duration = Duration::from_secs(1);
/// What the ring holds: 2 s, but never more than 2 MiB of samples.
const RING_SECONDS: usize = 2;
const RING_SAMPLES: usize = (2 << 20) / size_of::<i32>();
/// Frames scaled and converted in one go.
const CHUNK_FRAMES: usize = 2048;

/// A device that cannot be used at the moment.
pub(super) struct Lost {
    pub retry_at: Instant,
    backoff: Duration,
    /// The last change of format that was tried in vain.
    request: u64,
    /// The device that went away, and when.
    awaited: Option<(String, Instant)>,
}

impl Lost {
    /// The device that is to come back before those behind it are tried.
    fn awaited(&self) -> Option<&str> {
        let awaited = self.awaited.as_ref().filter(|(_, since)| since.elapsed() < PREFERRED_FOR);
        awaited.map(|(name, _)| name.as_str())
    }
}

impl OutputThread {
    /// True if the device is open and can take the frames of the ring.
    pub(super) fn ensure_open(&mut self) -> bool {
        if self.device.is_some() {
            return true;
        }
        let Some(ring) = self.ring else { return false };
        if !self.may_try() || !self.open(&ring.source, 0) {
            return false;
        }
        if self.device.as_ref().is_some_and(|d| d.card == ring.card) {
            return true;
        }
        // The frames that wait are of no use for this card.
        self.shared.stale_ring.store(ring.request, SeqCst);
        let generation = self.feed.abandon(ring.card.rate);
        self.event(Event::NeedsRestart { generation });
        false
    }

    /// How much the card is to hold.
    fn buffer(&self) -> Duration {
        let usual = if self.may_be_realtime { BUFFER } else { BUFFER_ORDINARY };
        self.settings.buffer.unwrap_or(usual)
    }

    /// Finds out whether the system lets this thread run above ordinary ones.
    pub(super) fn try_realtime(&mut self) {
        self.may_be_realtime = realtime::become_realtime(PRIORITY).is_ok();
        let _ = realtime::become_ordinary();
    }

    /// True if the open device takes the frames of the ring.
    pub(super) fn ring_fits_device(&self) -> bool {
        match (&self.device, &self.ring) {
            (Some(device), Some(ring)) => device.card == ring.card,
            _ => false,
        }
    }

    fn may_try(&self) -> bool {
        self.lost.as_ref().is_none_or(|l| Instant::now() >= l.retry_at)
    }

    /// Somebody wants to hear something: a lost device is tried without waiting.
    pub(super) fn try_soon(&mut self) {
        if let Some(lost) = &mut self.lost {
            lost.retry_at = Instant::now();
        }
    }

    /// Another device is wanted: lets go of the present one, so that the next frame goes there.
    pub(super) fn select(&mut self) {
        let selected = self.shared.selected();
        // What would be opened is open already: nothing is interrupted.
        let first = selected.clone().or_else(|| Some(first_mixer(&self.settings.device)?.0));
        let stays = self.device.as_ref().is_some_and(|device| Some(&device.name) == first.as_ref());
        self.selected = selected;
        if let Some(lost) = &mut self.lost {
            lost.awaited = None;
        }
        if self.device.is_some() && !stays {
            if self.flow != Flow::Stopped {
                self.halt();
            }
            self.close();
        }
        self.try_soon();
    }

    /// Opens the device for `source`, or plans the next attempt.
    fn open(&mut self, source: &SourceFormat, request: u64) -> bool {
        let selected = self.selected.iter().chain(&self.settings.device);
        let names: Vec<String> = selected.cloned().collect();
        let shared = Arc::clone(&self.shared);
        let _turn = own_turn(&shared.looking);
        let last = self.lost.as_ref().and_then(Lost::awaited);
        match Device::open(&names, last, source, self.buffer()) {
            Ok(device) => {
                self.feed.keep(2 * device.buffer);
                self.device = Some(device);
                self.opened(source);
                if self.lost.take().is_some() {
                    self.watch = None;
                    self.event(Event::DeviceBack);
                }
                true
            }
            Err(e) => {
                self.unusable(e, request);
                false
            }
        }
    }

    /// Makes known what was opened, and sizes what depends on it.
    fn opened(&mut self, source: &SourceFormat) {
        let Some(device) = &self.device else { return };
        let card = device.card;
        let channels = usize::from(card.channels);
        self.samples = vec![0; CHUNK_FRAMES * channels].into_boxed_slice();
        self.bytes = vec![0; CHUNK_FRAMES * device.frame_bytes()].into_boxed_slice();
        self.gain.set_rate(card.rate);
        self.stopped = Instant::now();
        self.asleep = true;
        // Not where the device always polls ready: that would be a busy loop above everything else. Where the system
        // does not allow it the thread stays ordinary, which the buffer is long enough for.
        let _ =
            if device.instant { realtime::become_ordinary() } else { realtime::become_realtime(PRIORITY) };
        let why = self.shared.path(*source, card, &device.name, device.converts).alteration();
        let opened = Opened {
            device: device.name.clone(),
            card: Some(card),
            mixer: device.mixer.clone(),
            converts: device.converts,
            offers: Arc::clone(&device.offers),
        };
        let event = Event::Opened {
            device: device.name.clone(),
            card,
            bit_perfect: why.is_none(),
            reason: why.unwrap_or_default(),
            instead_of: device.instead_of.clone().unwrap_or_default(),
        };
        self.set_opened(opened);
        self.event(event);
    }

    fn set_opened(&self, opened: Opened) {
        if let Ok(mut shared) = self.shared.opened.lock() {
            *shared = opened;
        }
        wake(&self.shared.mixer_orders);
    }

    pub(super) fn close(&mut self) {
        self.device = None;
        self.flow = Flow::Stopped;
        (self.silence, self.lead, self.leading) = (0, 0, 0);
        let _ = realtime::become_ordinary();
        self.set_opened(Opened::default());
    }

    /// Carries out a change of format for which everything before it has been heard. True if frames may come now.
    pub(super) fn set_up_if_due(&mut self) -> bool {
        let Some(note) = self.feed.pending_set_up() else { return false };
        let What::SetUp { request, format } = note.what else { return false };
        let tried = self.lost.as_ref().is_some_and(|l| l.request == request);
        if tried && !self.may_try() {
            self.feed.put_back(note);
            return false;
        }
        let buffer = self.buffer();
        let reused = match &mut self.device {
            // The gap is there anyway: the device that is preferred may be back.
            Some(device) if device.instead_of.is_some() => false,
            // Opened in vain for frames of another format, but right for these.
            Some(device) if device.abilities.choose(&format) == Some(device.card) => true,
            Some(device) => device.set_up(&format, buffer).is_ok(),
            None => false,
        };
        if reused {
            self.opened(&format);
        } else {
            self.close();
            if !self.open(&format, request) {
                self.feed.put_back(note);
                return false;
            }
        }
        self.hand_over_ring(note, request, format);
        true
    }

    fn hand_over_ring(&mut self, note: Note, request: u64, format: SourceFormat) {
        let Some(device) = &self.device else { return };
        let card = device.card;
        let channels = usize::from(card.channels).max(1);
        let ring_frames = (RING_SECONDS * card.rate as usize).min(RING_SAMPLES / channels).max(device.buffer);
        let (producer, consumer) = rtrb::RingBuffer::new(ring_frames * channels);
        // Twice the card's buffer: the delay counts what is on its way behind that buffer, too.
        let old_rate = self.ring.map_or(0, |r| r.card.rate);
        self.feed.set_ring(consumer, card.channels, 2 * device.buffer, old_rate);
        self.feed.generation = note.generation;
        self.feed.format = Some(format);
        self.shared.set_source(&format);
        self.ring = Some(RingFor { request, source: format, card });
        let answer = Prepared { request, format, card, abilities: device.abilities, ring: producer };
        let _ = self.answers.push(answer);
        self.answered = true;
    }

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
                let until = self.moved + duration(self.feed.unheard(), device.card.rate) + DRAIN_GRACE;
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

    /// Says once that there is no device, and plans the next attempt.
    fn unusable(&mut self, e: OpenError, request: u64) {
        let now = Instant::now();
        match &mut self.lost {
            Some(lost) => {
                lost.backoff = (lost.backoff * 2).min(LAST_RETRY);
                lost.retry_at = now + lost.backoff;
                lost.request = request;
            }
            None => {
                let retry_at = now + FIRST_RETRY;
                self.lost = Some(Lost { retry_at, backoff: FIRST_RETRY, request, awaited: None });
                self.event(Event::DeviceGone { message: e.message, why: e.why });
            }
        }
        if self.watch.is_none() {
            self.watch = watch_devices();
        }
    }

    /// A device came or changed: try again soon.
    pub(super) fn devices_changed(&mut self) {
        if let Some(watch) = &self.watch {
            // Only that something changed matters.
            let _ = watch.read_events();
        }
        if let Some(lost) = &mut self.lost {
            lost.backoff = FIRST_RETRY;
            lost.retry_at = Instant::now() + SETTLE;
        }
    }

    /// Until a lost device is tried again, or an idle one is released.
    pub(super) fn until_device_matters(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if let Some(retry_at) = self.lost.as_ref().map(|l| l.retry_at) {
            return self.is_wanted().then(|| retry_at.saturating_duration_since(now));
        }
        self.device.as_ref()?;
        let left = (self.stopped + self.settings.release_after).saturating_duration_since(now);
        if left.is_zero() {
            self.close();
            self.event(Event::Released);
            return None;
        }
        Some(left)
    }

    /// True if somebody waits for the device.
    fn is_wanted(&mut self) -> bool {
        self.feed.waits_for_set_up() || (!self.paused && self.ring.is_some() && self.feed.has_frames())
    }
}

/// Waits until nobody looks at a device; not for one whose driver hangs.
fn own_turn(looking: &Mutex<()>) -> Option<MutexGuard<'_, ()>> {
    let since = Instant::now();
    loop {
        match looking.try_lock() {
            Ok(turn) => return Some(turn),
            Err(_) if since.elapsed() > LOOK_AT_MOST => return None,
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Watches /dev/snd, where it exists; elsewhere the timer alone has to do.
fn watch_devices() -> Option<Inotify> {
    let watch = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
    watch.add_watch("/dev/snd", AddWatchFlags::IN_CREATE | AddWatchFlags::IN_ATTRIB).ok()?;
    Some(watch)
}
