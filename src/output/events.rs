//! The output's events, for the player on its tokio thread.

use std::os::unix::net::UnixStream;

use rtrb::Consumer;

use super::marks::Event;

/// Everything that happens to the sound, in order.
pub struct EventStream {
    events: Consumer<Event>,
    /// Readable when there is something new. A socket and not an eventfd, since tokio can wait for it in safe code.
    bell: Bell,
}

enum Bell {
    /// Not yet known to a runtime.
    Fresh(UnixStream),
    Awaited(tokio::net::UnixStream),
    /// The runtime refused it.
    Broken,
}

impl EventStream {
    pub(super) fn new(events: Consumer<Event>, bell: UnixStream) -> EventStream {
        EventStream { events, bell: Bell::Fresh(bell) }
    }

    /// The next event; None once the output has ended. Dropping the future loses nothing.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            // In this order, so that the events before the end are not lost.
            let over = self.events.is_abandoned();
            if let Ok(event) = self.events.pop() {
                return Some(event);
            }
            if over {
                return None;
            }
            let bell = self.bell.awaited()?;
            bell.readable().await.ok()?;
            let mut rings = [0; 64];
            // Only that it rang matters. The next turn of the loop finds the end, too.
            let _ = bell.try_read(&mut rings);
        }
    }

    /// An event that is there already, without waiting.
    pub fn try_next(&mut self) -> Option<Event> {
        self.events.pop().ok()
    }
}

impl Bell {
    fn awaited(&mut self) -> Option<&tokio::net::UnixStream> {
        if let Bell::Fresh(_) = self
            && let Bell::Fresh(stream) = std::mem::replace(self, Bell::Broken)
            && let Ok(stream) = tokio::net::UnixStream::from_std(stream)
        {
            *self = Bell::Awaited(stream);
        }
        match self {
            Bell::Awaited(stream) => Some(stream),
            _ => None,
        }
    }
}
