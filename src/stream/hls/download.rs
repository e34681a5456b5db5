//! One file of a stream, or a part of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use reqwest::header::HeaderMap;
use tokio::time::sleep_until;
use url::{Origin, Url};

use super::Trouble;
use super::m3u8::Range;
use crate::stream::Settings;
use crate::stream::fetch::TRICKLE;
use crate::stream::http::{self, Answer, NoAnswer, Web};
use crate::stream::icy::Piece;
use crate::stream::incoming::{Incoming, WebBody};
use crate::stream::range::{Asked, ContentRange, Entity, is_compression, retry_after};
use crate::track::Reach;

/// How files are asked for.
#[derive(Clone)]
pub(in crate::stream) struct Access {
    pub web: Arc<Web>,
    pub settings: Arc<Settings>,
    pub reach: Reach,
    /// Where the headers belong.
    pub origin: Origin,
    /// Of the resolved stream.
    pub headers: HeaderMap,
}

type Answered = Result<(Answer, Url), NoAnswer>;

/// The mutex is never locked; it makes the download `Sync`.
type Asking = Mutex<Pin<Box<dyn Future<Output = Answered> + Send>>>;

/// A request and its answer. Dropping any of its futures loses nothing.
pub(super) struct Download {
    state: State,
    settings: Arc<Settings>,
    asked: Asked,
    /// Offset in the file of the next byte that is wanted.
    at: u64,
    to: Option<u64>,
    /// Offset of the next byte that comes.
    stands: u64,
    /// When enough came last, and what came since.
    last: Instant,
    since: usize,
    /// Who was asked, or answered.
    pub host: String,
    /// Where the answer came from, after redirects.
    pub from: Url,
    pub content_type: Option<String>,
    /// What tells this version of the file from others.
    pub entity: Entity,
}

enum State {
    Asking(Asking),
    Answered(Box<WebBody>),
}

impl Download {
    /// Asks for the file, or for `range` of it, less the first `read` bytes, which came by an earlier request whose
    /// answer was of `entity`. Without `ranges` all is asked for, and what is not wanted is discarded.
    pub fn new(
        access: &Access,
        url: &Url,
        range: Option<Range>,
        read: u64,
        entity: Entity,
        ranges: bool,
    ) -> Self {
        let at = range.map_or(0, |range| range.from).saturating_add(read);
        let to = range.map(|range| range.to);
        let asked = match to {
            _ if !ranges => Asked::Whole,
            Some(to) => Asked::Part { from: at, to },
            None if at > 0 => Asked::From(at),
            None => Asked::Whole,
        };
        let (asking, url) = (access.clone(), url.clone());
        let validator = entity.validator().map(str::to_owned);
        let host = http::host(&url);
        let from = url.clone();
        let future = async move {
            let headers = if url.origin() == asking.origin { asking.headers } else { HeaderMap::new() };
            asking.web.get(&url, &headers, asking.reach, asked, validator.as_deref(), false).await
        };
        Download {
            state: State::Asking(Mutex::new(Box::pin(future))),
            settings: Arc::clone(&access.settings),
            asked,
            at,
            to,
            stands: 0,
            last: Instant::now(),
            since: 0,
            host,
            from,
            content_type: None,
            entity,
        }
    }

    /// Nobody read for a while, for which the server is not to blame.
    pub fn waited(&mut self) {
        (self.last, self.since) = (Instant::now(), 0);
    }

    /// The next bytes; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Trouble> {
        loop {
            match &mut self.state {
                State::Asking(asking) => {
                    let asking = asking.get_mut().unwrap_or_else(PoisonError::into_inner);
                    let until = self.last + self.settings.connect_timeout + self.settings.silence;
                    let answered = tokio::select! {
                        biased;
                        answered = asking => answered,
                        () = sleep_until(until.into()) => {
                            return Err(Trouble::Failing(format!("{} did not answer in time", self.host)));
                        }
                    };
                    self.begin(answered)?;
                }
                State::Answered(body) => {
                    if self.to.is_some_and(|to| self.stands >= to) {
                        return Ok(None);
                    }
                    let piece = tokio::select! {
                        biased;
                        piece = body.piece() => piece,
                        () = sleep_until((self.last + self.settings.silence).into()) => {
                            return Err(Trouble::Failing(format!("the connection to {} has gone silent", self.host)));
                        }
                    };
                    match piece.map_err(|why| Trouble::Failing(format!("{}: {why}", self.host)))? {
                        Some(Piece::Audio(bytes)) => {
                            self.since += bytes.len();
                            if self.since >= TRICKLE {
                                self.waited();
                            }
                            if let Some(bytes) = self.wanted(bytes) {
                                return Ok(Some(bytes));
                            }
                        }
                        Some(_) => {}
                        None if self.at < self.to.unwrap_or(self.at) => {
                            return Err(Trouble::Failing(format!("{} sent too little", self.host)));
                        }
                        None => return Ok(None),
                    }
                }
            }
        }
    }

    fn wanted(&mut self, mut bytes: Bytes) -> Option<Bytes> {
        let begins = self.stands;
        self.stands = self.stands.saturating_add(bytes.len() as u64);
        let within = |offset: u64, length: usize| {
            usize::try_from(offset.saturating_sub(begins)).unwrap_or(usize::MAX).min(length)
        };
        if let Some(to) = self.to {
            bytes.truncate(within(to, bytes.len()));
        }
        let bytes = bytes.split_off(within(self.at, bytes.len()));
        self.at = self.at.saturating_add(bytes.len() as u64);
        (!bytes.is_empty()).then_some(bytes)
    }

    fn begin(&mut self, answered: Answered) -> Result<(), Trouble> {
        let (answer, from) = answered.map_err(|error| match error {
            NoAnswer::Unreachable(missing, why) => Trouble::Unreachable(missing, why),
            NoAnswer::Failing(why) => Trouble::Failing(why),
            NoAnswer::Insecure { host, why } => Trouble::Insecure { host, why },
            NoAnswer::Forbidden { host, why } => Trouble::Forbidden { host, why },
        })?;
        self.waited();
        self.host = answer.host;
        let (host, head) = (self.host.clone(), answer.head);
        let mut total = head.length;
        if let (200 | 206, Some(coding)) = (head.status, head.content_encoding.as_deref())
            && is_compression(coding)
        {
            return Err(Trouble::Failing(format!("{host} compresses what it was asked to send as it is")));
        }
        self.stands = match head.status {
            200 => 0,
            206 => match head.content_range.as_deref().and_then(ContentRange::parse) {
                Some(ContentRange::Part { first, last, total: told })
                    if self.asked != Asked::Whole
                        && first == self.at
                        && self.to.is_none_or(|to| last < to) =>
                {
                    total = told;
                    first
                }
                _ => return Err(Trouble::NotAsAsked(format!("{host} sent another part than was asked for"))),
            },
            416 => {
                return Err(Trouble::NotAsAsked(format!(
                    "{host} says that nothing lies at byte {}",
                    self.at
                )));
            }
            status @ (401 | 403 | 404 | 410) => return Err(Trouble::Refused { status, host }),
            status @ (429 | 503) => {
                let told = head.retry_after.as_deref();
                let pause =
                    told.and_then(|value| retry_after(value, SystemTime::now())).unwrap_or(Duration::ZERO);
                return Err(Trouble::Later(pause, format!("{host} is busy (status {status})")));
            }
            status @ (408 | 425 | 500..=599) => {
                return Err(Trouble::Failing(format!("{host} has a problem (status {status})")));
            }
            status => return Err(Trouble::Final { status, host }),
        };
        let entity = Entity::new(total, head.etag.as_deref(), head.last_modified.as_deref());
        if let Some(how) = self.entity.difference(&entity) {
            return Err(Trouble::Changed { host, how });
        }
        self.entity.complete_from(entity);
        self.content_type = answer.content_type;
        self.from = from;
        let Incoming::Web(body) = answer.body else {
            return Err(Trouble::Failing(format!("{host} gave no answer")));
        };
        self.state = State::Answered(body);
        Ok(())
    }
}
