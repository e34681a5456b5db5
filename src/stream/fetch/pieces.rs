//! HLS: a stream in pieces, which outlives its connections.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use url::Url;

use super::Fetch;
use super::body::Body;
use super::setback::Setback;
use crate::stream::StreamError;
use crate::stream::hls::{Access, Hls, Trouble};
use crate::stream::incoming::Incoming;
use crate::stream::shared::Known;

impl Fetch {
    /// The address led to a playlist of HLS.
    pub(super) fn begin_hls(&mut self, at: u64, text: &str, base: &Url) -> Result<Body, Setback> {
        self.list_due = false;
        self.reached(None);
        let access = Access {
            web: Arc::clone(&self.web),
            settings: Arc::clone(&self.settings),
            reach: self.source.resolved.reach,
            origin: self.source.resolved.url.origin(),
            headers: self.source.headers_for(&self.source.resolved.url),
        };
        let hls = match self.hls.take() {
            None => Hls::new(access, self.shared.track.clone(), text, base).map(Box::new),
            Some(hls) => {
                let mut hls = hls.into_inner().unwrap_or_else(PoisonError::into_inner);
                match hls.renew(access, text, base) {
                    Ok(()) => Ok(hls),
                    Err(trouble) => {
                        self.hls = Some(Mutex::new(hls));
                        self.list_due = true;
                        Err(trouble)
                    }
                }
            }
        };
        let hls = hls.map_err(|trouble| self.setback(trouble))?;
        self.shared.connected(at);
        Ok(body(hls, at))
    }

    /// Goes on with the stream that was begun. None when its playlist has to be asked for.
    pub(super) fn go_on(&mut self, at: u64) -> Option<Body> {
        if self.list_due {
            return None;
        }
        let hls = self.hls.take()?.into_inner().unwrap_or_else(PoisonError::into_inner);
        Some(body(hls, at))
    }

    /// Keeps the stream for its next connection, and tells why this one failed, if it did.
    pub(super) fn put_away(&mut self, incoming: Incoming) -> Option<Setback> {
        let Incoming::Hls(mut hls) = incoming else { return None };
        hls.close();
        let trouble = hls.take_trouble();
        self.hls = Some(Mutex::new(hls));
        let trouble = trouble?;
        // The playlist may lead to other segments now.
        self.list_due |= matches!(trouble, Trouble::Refused { .. });
        let alternatives = self.source.resolved.alternatives.len();
        let elsewhere = matches!(trouble, Trouble::Unreachable(..) | Trouble::Failing(_));
        if elsewhere && alternatives > 0 && self.source.candidates.len() == 1 + alternatives {
            self.source.preferred = (self.source.preferred + 1) % self.source.candidates.len();
            self.list_due = true;
        }
        Some(self.setback(trouble))
    }

    /// Another recording begins in the stream.
    pub(super) fn begin_stretch(&mut self, body: &Body, content_type: &'static str) {
        let Incoming::Hls(hls) = &body.incoming else { return };
        let live = self.source.resolved.live || hls.is_live();
        self.source.resolved.live = live;
        self.source.ranges = false;
        let content_type = Some(content_type.to_owned());
        self.shared.begin_stretch(body.at, content_type.clone());
        self.shared.pieced();
        let host = self.source.host();
        self.shared.know(Known { content_type, total: None, ranges: false, live, host });
    }

    /// Whether nothing is lost by leaving the connection.
    pub(super) fn is_between_segments(&self, body: &Body) -> bool {
        matches!(&body.incoming, Incoming::Hls(hls) if hls.is_between_segments())
    }

    fn setback(&self, trouble: Trouble) -> Setback {
        let track = self.shared.track.clone();
        match trouble {
            Trouble::Unreachable(missing, why) => Setback::Unreachable(missing, why),
            Trouble::Failing(why) | Trouble::NotAsAsked(why) => Setback::Failing(why),
            Trouble::Later(pause, why) => Setback::Later(pause, why),
            Trouble::Refused { status, host } => Setback::Refused { status, host },
            Trouble::Final { status, host } => {
                let tried = "which is not an answer that waiting or a fresh address would change".to_owned();
                Setback::Final(StreamError::Refused { track, host, status, tried })
            }
            Trouble::Insecure { host, why } if self.shared.fetched() > 0 => {
                Setback::Failing(format!("{host}: {why}"))
            }
            Trouble::Insecure { host, why } => Setback::Final(StreamError::Insecure { track, host, why }),
            Trouble::Forbidden { host, why } => Setback::Final(StreamError::Forbidden { track, host, why }),
            Trouble::Changed { host, how } => Setback::Final(StreamError::Changed { track, host, how }),
            Trouble::Unplayable { host, why } => {
                Setback::Final(StreamError::Playlist { track, host, why: why.to_owned() })
            }
        }
    }
}

fn body(hls: Box<Hls>, at: u64) -> Body {
    Body { incoming: Incoming::Hls(hls), at, end: None, ranges: false, began: Instant::now() }
}
