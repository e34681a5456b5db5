//! Requests: whom to ask, and whether an answer is believed.

use std::time::{Duration, Instant, SystemTime};

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{sleep, timeout};
use url::Url;

use super::Fetch;
use super::body::Body;
use super::setback::Setback;
use super::stations::Reply;
use crate::stream::StreamError;
use crate::stream::file;
use crate::stream::http::{self, Answer, NoAnswer};
use crate::stream::playlist::Found;
use crate::stream::range::{Asked, Entity, Verdict, judge};
use crate::stream::shared::Known;

/// An answer that is believed.
enum Judged {
    Playlist(Found),
    Bytes(Box<Answer>, Verdict),
}

impl Fetch {
    /// Asks until a candidate serves. Those that turn out to be playlists give way to what is in them. None when
    /// the file turned out to have ended.
    pub(super) async fn request(&mut self, at: u64) -> Result<Option<Body>, Setback> {
        let mut read = Vec::new();
        loop {
            let (index, asked, reply) = match self.race(at).await {
                Ok(won) => won,
                Err(setback) => {
                    self.back_to_the_list();
                    return Err(setback);
                }
            };
            match reply {
                Judged::Playlist(Found::Hls { text, base }) => {
                    self.source.preferred = index;
                    match self.begin_hls(at, &text, &base) {
                        // Perhaps another entry of the same list can be played.
                        Err(_) if self.source.candidates.len() > 1 => {
                            self.source.candidates.remove(index);
                            self.source.preferred = 0;
                        }
                        begun => return begun.map(Some),
                    }
                }
                Judged::Playlist(Found::Entries { entries, finite }) => {
                    if let Err(setback) = self.expand(index, (entries, finite), &mut read)
                        && self.source.candidates.is_empty()
                    {
                        self.back_to_the_list();
                        return Err(setback);
                    }
                }
                Judged::Bytes(answer, verdict) => {
                    self.source.preferred = index;
                    let body = self.believe(at, asked, *answer, verdict);
                    self.settle(index);
                    return Ok(body);
                }
            }
        }
    }

    /// Asks the candidates in turn: the next one when the former failed or was silent for a second.
    async fn race(&self, at: u64) -> Result<(usize, Asked, Judged), Setback> {
        let order = self.source.order();
        let mut asking = FuturesUnordered::new();
        let mut next = 0;
        let mut worst: Option<Setback> = None;
        loop {
            if asking.is_empty() {
                match order.get(next) {
                    Some(&index) => asking.push(self.ask(index, at)),
                    None => {
                        return Err(
                            worst.unwrap_or_else(|| Setback::Failing("no address is known".to_owned()))
                        );
                    }
                }
                next += 1;
            }
            tokio::select! {
                Some((index, asked, result)) = asking.next() => {
                    match result.and_then(|reply| self.judged(asked, reply)) {
                        Ok(judged) => return Ok((index, asked, judged)),
                        Err(setback) => {
                            if worst.as_ref().is_none_or(|worst| setback.rank() > worst.rank()) {
                                worst = Some(setback);
                            }
                        }
                    }
                },
                () = sleep(self.settings.alternative_after), if next < order.len() => {
                    asking.push(self.ask(order[next], at));
                    next += 1;
                }
            }
        }
    }

    async fn ask(&self, index: usize, at: u64) -> (usize, Asked, Result<Reply, Setback>) {
        let url = &self.source.candidates[index];
        let is_list = self.stations.is_list(url) || self.hls.is_some();
        let asked = if self.source.ranges && !is_list { Asked::From(at) } else { Asked::Whole };
        if url.scheme() == "file" {
            return (
                index,
                asked,
                self.ask_disk(url, asked).await.map(|answer| Reply::Bytes(Box::new(answer))),
            );
        }
        let headers = self.source.headers_for(url);
        // Not for the rest of a file: what has titles in it has other offsets.
        let titles = self.source.resolved.live || self.shared.fetched() == 0;
        let validator = if is_list { None } else { self.entity.validator() };
        let sent = async {
            let reach = self.source.resolved.reach;
            match self.web.get(url, &headers, reach, asked, validator, titles).await {
                Err(NoAnswer::Unreachable(missing, why)) => Err(Setback::Unreachable(missing, why)),
                Err(NoAnswer::Failing(why)) => Err(Setback::Failing(why)),
                // At the start this is told at once; in mid-track it may be one bad machine among many.
                Err(NoAnswer::Insecure { host, why }) if self.shared.fetched() == 0 => {
                    let track = self.shared.track.clone();
                    Err(Setback::Final(StreamError::Insecure { track, host, why }))
                }
                Err(NoAnswer::Insecure { host, why }) => Err(Setback::Failing(format!("{host}: {why}"))),
                Err(NoAnswer::Forbidden { host, why }) => {
                    let track = self.shared.track.clone();
                    Err(Setback::Final(StreamError::Forbidden { track, host, why }))
                }
                Ok((answer, from)) => self.reply(url, asked, answer, from).await,
            }
        };
        let result = timeout(self.settings.connect_timeout + self.settings.silence, sent).await;
        let silent = || Err(Setback::Failing(format!("{} did not answer in time", http::host(url))));
        (index, asked, result.unwrap_or_else(|_| silent()))
    }

    fn judged(&self, asked: Asked, reply: Reply) -> Result<Judged, Setback> {
        match reply {
            Reply::Playlist(found) => Ok(Judged::Playlist(found)),
            Reply::Bytes(answer) => self.judge(asked, &answer).map(|verdict| Judged::Bytes(answer, verdict)),
        }
    }

    /// A file of this machine, which the plugin was granted.
    async fn ask_disk(&self, url: &Url, asked: Asked) -> Result<Answer, Setback> {
        let files = &self.source.resolved.files;
        match timeout(self.settings.silence, file::ask(url, files, asked)).await {
            Err(_) => Err(Setback::Failing("the disk does not answer".to_owned())),
            Ok(Err(why)) => Err(Setback::Final(StreamError::File { track: self.shared.track.clone(), why })),
            Ok(Ok(answer)) => Ok(answer),
        }
    }

    /// Whether there is a web page where the track was: a network that wants a login, or a server in trouble.
    fn is_page_instead(&self, answer: &Answer) -> bool {
        let is_page = |kind: Option<&str>| {
            kind.is_some_and(|kind| {
                let kind = kind.split(';').next().unwrap_or_default().trim();
                kind.eq_ignore_ascii_case("text/html") || kind.eq_ignore_ascii_case("application/xhtml+xml")
            })
        };
        matches!(answer.head.status, 200 | 206)
            && self.shared.fetched() > 0
            && is_page(answer.content_type.as_deref())
            && !is_page(self.shared.content_type().as_deref())
    }

    /// Whether an answer is believed.
    fn judge(&self, asked: Asked, answer: &Answer) -> Result<Verdict, Setback> {
        let (host, status) = (answer.host.clone(), answer.head.status);
        let track = self.shared.track.clone();
        if self.is_page_instead(answer) {
            return Err(Setback::Failing(format!(
                "{host} sends a web page; perhaps this network asks for a login"
            )));
        }
        // The server's own clock tells how far away a date of its is: ours may be wrong.
        match judge(asked, &self.entity, &answer.head, answer.date.unwrap_or_else(SystemTime::now)) {
            Verdict::Changed(how) => Err(Setback::Final(StreamError::Changed { track, host, how })),
            Verdict::NotAsAsked(how) => Err(Setback::NotAsAsked(format!("{host}: {how}"))),
            Verdict::Compressed(coding) => Err(Setback::Failing(format!(
                "{host} sent the file compressed ({coding}) although it was asked not to"
            ))),
            Verdict::Refused => Err(Setback::Refused { status, host }),
            Verdict::Later(pause) => Err(Setback::Later(
                pause.unwrap_or(Duration::ZERO),
                format!("{host} is busy (status {status})"),
            )),
            Verdict::Failing => Err(Setback::Failing(format!("{host} has a problem (status {status})"))),
            Verdict::Final => {
                let tried = "which is not an answer that waiting or a fresh address would change".to_owned();
                Err(Setback::Final(StreamError::Refused { track, host, status, tried }))
            }
            believed => Ok(believed),
        }
    }

    /// Somebody answers, and it is this time there, if that is told.
    pub(super) fn reached(&mut self, date: Option<SystemTime>) {
        self.outage = false;
        self.source.learn_date(date.or_else(|| self.web.wall_clock()), Instant::now());
        self.shared.set_deadline(self.source.deadline.map(|deadline| deadline.at));
    }

    /// Notes what a believed answer says; the body if there is one.
    fn believe(&mut self, at: u64, asked: Asked, answer: Answer, verdict: Verdict) -> Option<Body> {
        self.reached(answer.date);
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
