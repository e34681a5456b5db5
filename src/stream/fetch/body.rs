//! Reads bodies: as far as their bytes are needed, and no faster than there is room for them.

use std::time::Instant;

use tokio::time::sleep_until;

use super::renew::renewed;
use super::{Fetch, TRICKLE};
use crate::stream::icy::Piece;
use crate::stream::incoming::Incoming;
use crate::stream::shared::Put;

/// A response that is believed, and where its bytes belong.
pub(super) struct Body {
    pub(super) incoming: Incoming,
    pub(super) at: u64,
    pub(super) end: Option<u64>,
    pub(super) ranges: bool,
    pub(super) began: Instant,
}

/// Why reading a body was over.
pub(super) enum Stop {
    /// There is nothing more in it, or nothing that is needed now.
    Done,
    /// It was left because there is no room, or nobody listens.
    Idle,
    /// It ended before its end.
    Cut(String),
}

impl Fetch {
    /// Reads a body as far as it is needed and there is room.
    pub(super) async fn transfer(&mut self, body: &mut Body) -> Stop {
        let mut last = body.began;
        let mut since = 0;
        loop {
            if body.end == Some(body.at) {
                return Stop::Done;
            }
            // Asks with nothing in hand first, so that the socket is not read while there is no room.
            match self.shared.put(body.at, &[], body.ranges) {
                Put::Elsewhere => return Stop::Done,
                Put::Full => {
                    if !self.wait_for_room(body).await {
                        return Stop::Idle;
                    }
                    last = Instant::now();
                    continue;
                }
                Put::Took(_) => {}
            }
            if self.list_due && self.is_between_segments(body) {
                return Stop::Done;
            }
            let renew_at = self.renew_at();
            let silent_at = (!body.incoming.minds_silence()).then_some(last + self.settings.silence);
            let close_at =
                self.shared.held_since().map(|since| since.max(body.began) + self.settings.idle_close);
            tokio::select! {
                chunk = body.incoming.chunk() => match chunk {
                    Ok(Some(Piece::Title(title))) => self.shared.title(body.at, title),
                    Ok(Some(Piece::Stretch(content_type))) => self.begin_stretch(body, content_type),
                    Ok(Some(Piece::Audio(bytes))) => {
                        since += bytes.len();
                        if since >= TRICKLE {
                            (last, since) = (Instant::now(), 0);
                        }
                        if let Some(stop) = self.keep(body, &bytes).await {
                            return stop;
                        }
                    }
                    Ok(None) => return self.body_ended(body),
                    Err(why) => return Stop::Cut(why),
                },
                () = sleep_until_some(silent_at) => {
                    return Stop::Cut("the connection has gone silent".to_owned());
                }
                // The reader moved: look whether this connection still serves it.
                () = self.shared.moved() => {}
                result = renewed(&mut self.renewal) => self.renewed(result),
                () = sleep_until_some(renew_at) => self.renew(),
                () = sleep_until_some(close_at) => return Stop::Idle,
            }
        }
    }

    /// Stores a chunk whole, waiting for room. Says why if some of it is not needed or was given up.
    async fn keep(&mut self, body: &mut Body, bytes: &[u8]) -> Option<Stop> {
        let needed = body.end.map_or(u64::MAX, |end| end - body.at);
        let mut rest = &bytes[..bytes.len().min(usize::try_from(needed).unwrap_or(usize::MAX))];
        while !rest.is_empty() {
            let before = self.shared.fetched();
            match self.shared.put(body.at, rest, body.ranges) {
                Put::Took(count) => {
                    rest = &rest[count..];
                    body.at += count as u64;
                    self.flows(self.shared.fetched() - before, body.began);
                }
                Put::Full => {
                    if !self.wait_for_room(body).await {
                        body.incoming.give_back(rest);
                        return Some(Stop::Idle);
                    }
                }
                Put::Elsewhere => {
                    body.incoming.give_back(rest);
                    return Some(Stop::Done);
                }
            }
        }
        None
    }

    /// So many new bytes were kept, of a connection that began then.
    fn flows(&mut self, count: u64, began: Instant) {
        if count == 0 {
            return;
        }
        self.source.fresh = false;
        self.progress += count;
        // A station that sends a little and cuts, again and again, is not to be asked four times in a second.
        let settled = !self.source.resolved.live || began.elapsed() >= self.settings.live_settled;
        if self.progress >= TRICKLE as u64 {
            self.trouble = None;
            if settled {
                self.forgive();
            }
        }
    }

    /// What went wrong before counts no more.
    pub(super) fn forgive(&mut self) {
        self.patience.byte();
        self.trouble = None;
        self.progress = 0;
    }

    /// False when the connection was idle for too long. While the music plays, room will be soon, and the address
    /// has to be good then.
    async fn wait_for_room(&mut self, body: &mut Body) -> bool {
        let until = Instant::now() + self.settings.idle_close;
        while self.shared.put(body.at, &[], body.ranges) == Put::Full {
            let renew_at = self.renew_at().filter(|_| self.shared.held_since().is_none());
            tokio::select! {
                () = self.shared.moved() => {}
                result = renewed(&mut self.renewal) => self.renewed(result),
                () = sleep_until_some(renew_at) => self.renew(),
                () = sleep_until(until.into()) => return false,
            }
        }
        body.incoming.waited();
        true
    }

    fn body_ended(&self, body: &Body) -> Stop {
        match body.end {
            Some(end) => Stop::Cut(format!("the connection ended {} bytes too early", end - body.at)),
            None if matches!(body.incoming, Incoming::Hls(_)) => {
                self.shared.ended(body.at);
                Stop::Done
            }
            None if self.source.resolved.live => Stop::Cut("the live stream was cut".to_owned()),
            None => match self.entity.total {
                Some(total) if body.at < total => Stop::Cut("the connection ended too early".to_owned()),
                _ => {
                    self.shared.ended(body.at);
                    Stop::Done
                }
            },
        }
    }
}

async fn sleep_until_some(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
