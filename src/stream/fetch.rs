//! The task that fetches: where the reader will need bytes next, from whom, and what to do when they do not
//! come.

mod pieces;
mod renew;
mod request;
mod setback;
mod stations;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::yield_now;
use tokio::time::sleep_until;

use super::hls::Hls;
use super::http::{Answer, Missing, Web};
use super::icy::Piece;
use super::incoming::Incoming;
use super::patience::Patience;
use super::range::{Asked, Entity, Verdict};
use super::shared::{Known, Put, Shared};
use super::source::Source;
use super::{Settings, StreamError};
use crate::track::{Resolve, ResolveError, ResolvedStream, Resolving};
use renew::renewed;
use stations::Stations;

/// Failed resolves since the last new byte after which a track is given up.
const MAX_USELESS_RESOLVES: u32 = 3;

/// Less than so many bytes within the time of silence is silence too: no music is so slow. Failures are forgiven after
/// as many new bytes.
pub(in crate::stream) const TRICKLE: usize = 1024;

/// A call of the resolver that is under way. The mutex is never locked; it makes the task `Send`.
type Renewal = Mutex<Resolving>;

/// The task's own state.
pub(super) struct Fetch {
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    web: Arc<Web>,
    resolver: Arc<dyn Resolve>,
    source: Source,
    /// What was learnt of the file so far; each further answer must agree.
    entity: Entity,
    /// What was found in playlists, where the source is one.
    stations: Stations,
    /// What was learnt of an HLS stream, between its connections. The mutex is like that of [`Renewal`].
    hls: Option<Mutex<Box<Hls>>>,
    /// Its playlist has to be asked for anew: the address is another.
    list_due: bool,
    /// A fresh address that is being asked for while the old one still serves.
    renewal: Option<Renewal>,
    /// When the last resolve was begun.
    resolve_not_before: Option<Instant>,
    /// The source was refused: resolve before the next request.
    must_resolve: bool,
    /// Set when the resolver said that there will be no fresh address.
    unresolvable: Option<ResolveError>,
    patience: Patience,
    /// First failure since the last new byte.
    trouble: Option<Instant>,
    /// New bytes since a failure was last forgiven.
    progress: u64,
    /// The last failure was that no host answers.
    outage: bool,
}

/// A response that is believed, and where its bytes belong.
struct Body {
    incoming: Incoming,
    at: u64,
    end: Option<u64>,
    ranges: bool,
    began: Instant,
}

/// Why a request gave no body, or a body ended before its end.
enum Setback {
    /// No host answers.
    Unreachable(Missing, String),
    /// The host can be reached, but gives nothing.
    Failing(String),
    /// The host asks for patience.
    Later(Duration, String),
    /// The address is no longer good.
    Refused { status: u16, host: String },
    /// The answer was not what was asked for: no more ranges from this address.
    NotAsAsked(String),
    /// It will not get better.
    Final(StreamError),
}

/// Why reading a body was over.
enum Stop {
    /// There is nothing more in it, or nothing that is needed now.
    Done,
    /// It was left because there is no room, or nobody listens.
    Idle,
    /// It ended before its end.
    Cut(String),
}

impl Setback {
    /// Of several candidates' failures the one that says best what to do.
    fn rank(&self) -> u8 {
        match self {
            Setback::Refused { .. } => 5,
            Setback::NotAsAsked(_) => 4,
            Setback::Later(..) => 3,
            Setback::Failing(_) => 2,
            Setback::Unreachable(..) => 1,
            Setback::Final(_) => 0,
        }
    }
}

impl Fetch {
    pub fn new(
        shared: Arc<Shared>,
        settings: Arc<Settings>,
        web: Arc<Web>,
        resolved: ResolvedStream,
        resolver: Arc<dyn Resolve>,
    ) -> Self {
        let source = Source::new(resolved, None, &shared.track);
        shared.set_deadline(source.deadline.map(|deadline| deadline.at));
        if source.resolved.live {
            shared.live();
        }
        Fetch {
            shared,
            settings,
            web,
            resolver,
            source,
            entity: Entity::default(),
            stations: Stations::default(),
            hls: None,
            list_due: false,
            renewal: None,
            resolve_not_before: None,
            must_resolve: false,
            unresolvable: None,
            patience: Patience::default(),
            trouble: None,
            progress: 0,
            outage: false,
        }
    }

    /// Runs until the stream fails or is aborted: a complete one may need bytes again after a seek.
    pub async fn run(mut self) {
        loop {
            let at = self.shared.work().await;
            if let Err(error) = self.step(at).await {
                return self.shared.fail(error);
            }
        }
    }

    /// One request and its body, or one failure and the pause after it.
    async fn step(&mut self, at: u64) -> Result<(), StreamError> {
        if self.must_resolve || self.source.expired(Instant::now()) {
            self.resolve().await?;
        }
        let body = match self.go_on(at) {
            Some(body) => Ok(Some(body)),
            None => {
                let asked = Instant::now();
                let body = self.request(at).await;
                if matches!(body, Ok(Some(_))) {
                    self.shared.answered(asked.elapsed());
                }
                body
            }
        };
        let setback = match body {
            Ok(Some(mut body)) => {
                let before = self.shared.fetched();
                let stop = self.transfer(&mut body).await;
                let whole = body.end == Some(body.at);
                let brought = self.shared.fetched() - before;
                let is_hls = matches!(body.incoming, Incoming::Hls(_));
                // The very byte that was asked for is still missing, or the next one but a few.
                let useless = brought < TRICKLE as u64 && self.shared.wanted() == Some(at + brought);
                let trouble = self.put_away(body.incoming);
                if whole {
                    // Its connection becomes free in a task of its own: then the next request need not make another.
                    yield_now().await;
                }
                match stop {
                    Stop::Done if useless && !is_hls => {
                        let host = self.source.host();
                        Setback::Failing(format!("{host} does not send the bytes that it is asked for"))
                    }
                    Stop::Done | Stop::Idle => {
                        self.forgive();
                        return Ok(());
                    }
                    Stop::Cut(why) => trouble.unwrap_or(Setback::Failing(why)),
                }
            }
            Ok(None) => return Ok(()),
            Err(setback) => setback,
        };
        self.bear(setback).await
    }
}

/// Answers.
impl Fetch {
    /// Notes what a believed answer says; the body if there is one.
    fn believe(&mut self, at: u64, asked: Asked, answer: Answer, verdict: Verdict) -> Option<Body> {
        self.outage = false;
        self.source.learn_date(answer.date.or_else(|| self.web.wall_clock()), Instant::now());
        self.shared.set_deadline(self.source.deadline.map(|deadline| deadline.at));
        // Nobody says of a plain URL that it is endless but the server itself.
        let listed = self.source.candidates.get(self.source.preferred);
        let listed = listed.is_some_and(|url| self.stations.is_station(url)) && answer.head.length.is_none();
        let endless = (answer.radio || listed) && answer.head.status == 200;
        if endless && !self.source.resolved.live {
            self.source.resolved.live = true;
            self.source.ranges = false;
        }
        let live = self.source.resolved.live;
        let (from, end, entity, ranges) = match verdict {
            Verdict::Serve { from, end, entity, ranges } => (from, end, entity, ranges),
            Verdict::Ended { total } => (at, None, Entity { total: Some(total), ..Entity::default() }, true),
            // All others were turned into setbacks.
            _ => return None,
        };
        let ended = answer.head.status == 416;
        if !live {
            self.entity.complete_from(entity);
        }
        if !ranges && asked != Asked::Whole {
            self.source.ranges = false;
        }
        // A server that is not asked for ranges must be read through, whatever it offers.
        let ranges = ranges && self.source.ranges;
        let content_type = answer.content_type;
        if let Some(station) = answer.station {
            self.shared.station(station);
        }
        if live {
            // A station's new connection begins anywhere in its sound, perhaps with a head of its own.
            self.shared.begin_stretch(at, content_type.clone());
        }
        self.shared.know(Known { content_type, total: self.entity.total, ranges, live, host: answer.host });
        if ended {
            return None;
        }
        // A live stream has no offsets: it goes on where the reader is.
        let (from, end) = if live { (at, None) } else { (from, end) };
        self.shared.connected(from);
        Some(Body { incoming: answer.body, at: from, end, ranges, began: Instant::now() })
    }
}

/// Bodies.
impl Fetch {
    /// Reads a body as far as it is needed and there is room.
    async fn transfer(&mut self, body: &mut Body) -> Stop {
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
    fn forgive(&mut self) {
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
