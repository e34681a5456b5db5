//! Opening the device, choosing it, waiting for it.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use super::{Flow, OutputThread, RingFor};
use crate::output::alsa::{Device, Held, OpenError, first_mixer};
use crate::output::format::SourceFormat;
use crate::output::marks::{Event, Note, Prepared, What};
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
/// A device that went away is waited for so long before the next that is named is used: a plug that is pushed in better, a
/// cable that is moved and a reset of USB take about a second or two.
const PREFERRED_FOR: Duration = Duration::from_secs(3);
/// How long somebody who looks at a device is waited for.
const LOOK_AT_MOST: Duration = Duration::from_millis(500);
/// After a change below /dev/snd: udev still has to give the device to the group.
const SETTLE: Duration = Duration::from_millis(100);
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
    pub(super) awaited: Option<(String, Instant)>,
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

    /// What comes now may be heard on another device.
    pub(super) fn rest(&mut self) {
        self.on = None;
        if let Some(lost) = &mut self.lost {
            lost.awaited = None;
        }
    }

    /// What is under way is heard on the device that is open.
    pub(super) fn note_device(&mut self) {
        let Some(device) = &self.device else { return };
        if self.on.as_ref() != Some(&device.name) {
            self.on = Some(device.name.clone());
        }
    }

    /// Another device is wanted: lets go of the present one, so that the next frame goes there.
    pub(super) fn select(&mut self) {
        let selected = self.shared.selected();
        // What would be opened is open already: nothing is interrupted.
        let first = selected.clone().or_else(|| Some(first_mixer(&self.settings.device)?.0));
        let stays = self.device.as_ref().is_some_and(|device| Some(&device.name) == first.as_ref());
        self.selected = selected;
        self.rest();
        if stays && !self.is_still() {
            self.note_device();
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
        let held = self.on.as_deref().map(|name| Held { name, lost: self.lost.is_some() });
        match Device::open(&names, held, last, source, self.buffer()) {
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
        let ring_frames = (RING_SECONDS * card.rate as usize).min(RING_SAMPLES / channels);
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

    /// Says once that there is no device, and plans the next attempt.
    pub(super) fn unusable(&mut self, e: OpenError, request: u64) {
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
