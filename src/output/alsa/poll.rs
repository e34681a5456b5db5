//! Waiting for the card, for orders and for new devices at once.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use alsa::poll::{Descriptors, Flags, pollfd};

use super::Device;

/// The most descriptors that a device may have; devices have one or two.
const MOST: usize = 16;

/// Why the thread woke up.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::output) struct Woken {
    /// Somebody wrote to the eventfd.
    pub order: bool,
    /// Something changed below /dev/snd.
    pub devices: bool,
    /// The card reports trouble.
    pub trouble: bool,
}

/// The descriptors, kept so that a wait allocates nothing.
pub(in crate::output) struct Poller {
    fds: [pollfd; MOST],
}

fn entry(fd: i32) -> pollfd {
    pollfd { fd, events: libc::POLLIN, revents: 0 }
}

impl Poller {
    pub fn new() -> Poller {
        Poller { fds: [entry(-1); MOST] }
    }

    /// Waits for `orders`, `devices` (if any) and `device` (if any), at most for `timeout`.
    pub fn wait(
        &mut self,
        orders: BorrowedFd,
        devices: Option<BorrowedFd>,
        device: Option<&Device>,
        timeout: Option<Duration>,
    ) -> Woken {
        self.fds[0] = entry(orders.as_raw_fd());
        // poll() skips negative descriptors.
        self.fds[1] = entry(devices.map_or(-1, |fd| fd.as_raw_fd()));
        let cards = device.map_or(0, |d| d.pcm.count().min(MOST - 2));
        let filled = match device {
            Some(d) if cards > 0 => d.pcm.fill(&mut self.fds[2..2 + cards]).unwrap_or(0),
            _ => 0,
        };
        let timeout = timeout.map_or(-1, |t| i32::try_from(t.as_micros().div_ceil(1000)).unwrap_or(i32::MAX));
        let used = &mut self.fds[..2 + filled];
        // An interrupted wait is a wake-up like any other.
        if alsa::poll::poll(used, timeout).unwrap_or(0) == 0 {
            return Woken::default();
        }
        let (own, card) = used.split_at(2);
        let trouble = match device {
            Some(d) if filled > 0 => match d.pcm.revents(card) {
                Ok(flags) => flags.intersects(Flags::ERR | Flags::HUP | Flags::NVAL),
                Err(_) => true,
            },
            _ => false,
        };
        Woken { order: own[0].revents != 0, devices: own[1].revents != 0, trouble }
    }
}
