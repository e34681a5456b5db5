//! HTTP Live Streaming: the pieces that playlists list, as one run of bytes.
//!
//! [`Hls`] outlives connections: it knows which segment comes next and how much of it came already. What goes wrong
//! is told as [`Trouble`]; whoever reads waits as is right and asks again, and then it goes on.

mod adts;
mod download;
mod follow;
mod m3u8;
mod mp4;
mod sink;
mod sound;
mod trouble;
mod ts;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::task::yield_now;
use tokio::time::sleep_until;
use tracing::info;
use url::Url;

use super::icy::Piece;
use super::playlist::TEXT_CAP;
use super::range::Entity;
pub(super) use download::Access;
use download::Download;
use follow::{Follow, Next};
use m3u8::{Map, Playlist, Segment};
use sound::{NO_SOUND, Part, Sound};
pub(super) use trouble::Trouble;

/// The end of a sentence about why it cannot be played.
const ENCRYPTED: &str = "it is encrypted, which cannot be played";
/// Segments in a row that may be without sound.
const MOST_SILENT: u32 = 5;
/// The longest head of fragments, in bytes.
const LONGEST_HEAD: usize = 1024 * 1024;
/// The longest segment, in bytes.
const LONGEST_SEGMENT: u64 = 64 * 1024 * 1024;
/// A stream, wherever it stands.
pub(super) struct Hls {
    access: Access,
    track: String,
    /// Media playlists of the same recording, the best first.
    forms: Vec<Url>,
    /// The one that is played.
    form: usize,
    /// Forms that failed since something came.
    failed_forms: usize,
    follow: Follow,
    /// Bytes of the next segment that came already.
    read: u64,
    /// Of the next segment.
    entity: Entity,
    /// In a row, of the next segment or of the playlist.
    failures: u32,
    /// Servers are asked for ranges.
    ranges: bool,
    /// The head that was read last.
    map: Option<Arc<Map>>,
    job: Option<Job>,
    sound: Sound,
    parts: VecDeque<Part>,
    heard: bool,
    /// Whole segments in a row that gave no sound.
    silent: u32,
    trouble: Option<Trouble>,
}

/// What is being fetched.
struct Job {
    what: What,
    download: Download,
    /// Of what is needed whole.
    got: Vec<u8>,
}

#[derive(Clone, Debug)]
enum What {
    Playlist,
    Head(Arc<Map>),
    Segment,
}

impl Hls {
    /// `text` is the playlist that came from `base`.
    pub fn new(access: Access, track: String, text: &str, base: &Url) -> Result<Hls, Trouble> {
        let mut hls = Hls {
            access,
            track,
            forms: Vec::new(),
            form: 0,
            failed_forms: 0,
            follow: Follow::default(),
            read: 0,
            entity: Entity::default(),
            failures: 0,
            ranges: true,
            map: None,
            job: None,
            sound: Sound::default(),
            parts: VecDeque::new(),
            heard: false,
            silent: 0,
            trouble: None,
        };
        hls.read_first(text, base)?;
        Ok(hls)
    }

    /// Goes on by a fresh address, whose playlist is `text`.
    pub fn renew(&mut self, access: Access, text: &str, base: &Url) -> Result<(), Trouble> {
        self.access = access;
        self.job = None;
        self.read_first(text, base)
    }

    fn read_first(&mut self, text: &str, base: &Url) -> Result<(), Trouble> {
        match self.parse(text, base)? {
            Playlist::Master(forms) => {
                if forms.len() != self.forms.len() {
                    self.form = 0;
                }
                self.forms = forms;
                self.follow.forget();
            }
            Playlist::Media(media) => {
                (self.forms, self.form) = (vec![base.clone()], 0);
                self.listed(media, base)?;
            }
        }
        Ok(())
    }

    /// Whether it has no end, as far as is known.
    pub fn is_live(&self) -> bool {
        self.follow.is_live()
    }

    /// Nothing of a segment is missing: a good moment for another address.
    pub fn is_between_segments(&self) -> bool {
        self.read == 0 && self.parts.is_empty()
    }

    /// Closes the connection. Nothing that came is lost.
    pub fn close(&mut self) {
        self.job = None;
    }

    /// Nobody read for a while, for which no server is to blame.
    pub fn waited(&mut self) {
        if let Some(job) = &mut self.job {
            job.download.waited();
        }
    }

    /// Takes back bytes that could not be kept; they come again.
    pub fn give_back(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.parts.push_front(Part::Bytes(bytes.to_vec()));
        }
    }

    /// Why the last piece failed.
    pub fn take_trouble(&mut self) -> Option<Trouble> {
        self.trouble.take()
    }

    /// The next piece; none at the end. An empty one comes between segments, where an address may be left for another.
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// A sentence; [`Hls::take_trouble`] tells what kind of trouble it is. Asked again, it tries again.
    pub async fn piece(&mut self) -> Result<Option<Piece>, String> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Ok(Some(match part {
                    Part::Stretch(content_type) => Piece::Stretch(content_type),
                    Part::Bytes(bytes) => {
                        (self.heard, self.failed_forms, self.silent) = (true, 0, 0);
                        Piece::Audio(Bytes::from(bytes))
                    }
                }));
            }
            let done = match &mut self.job {
                Some(job) => match job.download.next().await {
                    Ok(Some(bytes)) => self.came(&bytes),
                    Ok(None) => {
                        let done = self.complete();
                        if done.is_ok() {
                            // The connection becomes free in a task of its own: then the next request need not make
                            // another.
                            yield_now().await;
                            if self.is_between_segments() {
                                return Ok(Some(Piece::Audio(Bytes::new())));
                            }
                        }
                        done
                    }
                    Err(trouble) => self.failed(trouble),
                },
                None => match self.follow.next(Instant::now()) {
                    Next::End => {
                        let mut parts = Vec::new();
                        self.sound.close(&mut parts);
                        if parts.is_empty() && self.heard {
                            return Ok(None);
                        }
                        let silent = parts.is_empty();
                        self.parts.extend(parts);
                        if silent { self.ended_unheard() } else { Ok(()) }
                    }
                    Next::Wait(until) => {
                        sleep_until(until.into()).await;
                        Ok(())
                    }
                    Next::Playlist => {
                        self.open_playlist();
                        Ok(())
                    }
                    Next::Segment(segment) => self.open(&segment),
                },
            };
            if let Err(trouble) = done {
                let why = trouble.to_string();
                self.trouble = Some(trouble);
                return Err(why);
            }
        }
    }

    fn open_playlist(&mut self) {
        let Some(url) = self.forms.get(self.form) else { return };
        let download = Download::new(&self.access, url, None, 0, Entity::default(), false);
        self.job = Some(Job { what: What::Playlist, download, got: Vec::new() });
    }

    /// Asks for the next segment, or for what has to be read before it.
    fn open(&mut self, segment: &Segment) -> Result<(), Trouble> {
        if segment.encrypted {
            return self
                .failed(Trouble::Unplayable { host: super::http::host(&segment.url), why: ENCRYPTED });
        }
        let ranges = self.ranges;
        if let Some(map) = segment.map.as_ref().filter(|map| Some(*map) != self.map.as_ref()) {
            let download = Download::new(&self.access, &map.url, map.range, 0, Entity::default(), ranges);
            self.job = Some(Job { what: What::Head(Arc::clone(map)), download, got: Vec::new() });
            return Ok(());
        }
        let entity = self.entity.clone();
        let download = Download::new(&self.access, &segment.url, segment.range, self.read, entity, ranges);
        self.job = Some(Job { what: What::Segment, download, got: Vec::new() });
        Ok(())
    }

    /// Bytes of what is being fetched.
    fn came(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        let Some(job) = &mut self.job else { return Ok(()) };
        let cap = match job.what {
            What::Playlist => TEXT_CAP,
            What::Head(_) => LONGEST_HEAD,
            What::Segment => return self.came_of_segment(bytes),
        };
        job.got.extend_from_slice(bytes);
        if job.got.len() > cap {
            let (host, why) = (job.download.host.clone(), "a playlist or a head in it is longer than 1 MiB");
            return self.failed(Trouble::Unplayable { host, why });
        }
        Ok(())
    }

    fn came_of_segment(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        let Some(job) = &self.job else { return Ok(()) };
        let (host, mut parts) = (job.download.host.clone(), Vec::new());
        if self.read == 0 {
            if self.follow.is_cut() {
                self.sound.discontinuity(&mut parts);
            }
            self.sound.begin(job.download.content_type.clone(), self.is_live(), &mut parts);
        }
        self.entity.clone_from(&job.download.entity);
        self.read += bytes.len() as u64;
        let mut result = self.sound.push(bytes, &mut parts);
        self.parts.extend(parts);
        if self.read > LONGEST_SEGMENT {
            result = Err("a segment of it is longer than 64 MiB");
        }
        result.or_else(|why| self.failed(Trouble::Unplayable { host, why }))
    }

    /// All came of what was being fetched.
    fn complete(&mut self) -> Result<(), Trouble> {
        let Some(job) = self.job.take() else { return Ok(()) };
        let host = job.download.host;
        match job.what {
            What::Playlist => {
                let text = String::from_utf8_lossy(&job.got);
                let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                let result = match self.parse(text, &job.download.from) {
                    Ok(Playlist::Media(media)) => self.listed(media, &job.download.from),
                    Ok(Playlist::Master(_)) => {
                        Err(Trouble::Unplayable { host, why: "its playlists lie inside of each other" })
                    }
                    Err(trouble) => Err(trouble),
                };
                result.or_else(|trouble| self.form_failed(trouble))
            }
            What::Head(map) => {
                let mut parts = Vec::new();
                let result = self.sound.head(&job.got, &mut parts);
                self.parts.extend(parts);
                match result {
                    Ok(()) => self.map = Some(map),
                    Err(why) => return self.failed(Trouble::Unplayable { host, why }),
                }
                Ok(())
            }
            What::Segment => {
                let mut parts = Vec::new();
                let result = self.sound.finish(&mut parts);
                self.parts.extend(parts);
                // A segment without a byte passes on that what follows begins anew.
                let cut = self.read == 0 && self.follow.is_cut();
                match result {
                    Ok(()) => self.advance(),
                    Err(why) => return self.failed(Trouble::Unplayable { host, why }),
                }
                if cut {
                    self.follow.cut();
                }
                let sounds = self.parts.iter().any(|part| matches!(part, Part::Bytes(_)));
                self.silent = if sounds { 0 } else { self.silent + 1 };
                if self.silent < MOST_SILENT {
                    return Ok(());
                }
                if !self.heard {
                    return self.unheard(host);
                }
                if self.is_live() {
                    // Else one that lists many of them would be asked for them as fast as it answers.
                    return Err(Trouble::Failing(format!("{host} sends segments without sound")));
                }
                Ok(())
            }
        }
    }

    /// All that is listed is over, and no sound was in it.
    fn ended_unheard(&mut self) -> Result<(), Trouble> {
        let host = self.forms.get(self.form).map(super::http::host).unwrap_or_default();
        self.unheard(host)
    }

    /// There is no sound in this form of the recording.
    fn unheard(&mut self, host: String) -> Result<(), Trouble> {
        let why = self.sound.obstacle().unwrap_or(NO_SOUND);
        self.form_failed(Trouble::Unplayable { host, why })
    }

    /// On to the segment after this one.
    fn advance(&mut self) {
        self.follow.advance();
        (self.read, self.failures, self.entity) = (0, 0, Entity::default());
    }

    fn parse(&self, text: &str, base: &Url) -> Result<Playlist, Trouble> {
        m3u8::parse(text, base).map_err(|why| Trouble::Unplayable { host: super::http::host(base), why })
    }

    /// A media playlist has come.
    fn listed(&mut self, media: m3u8::Media, from: &Url) -> Result<(), Trouble> {
        let host = super::http::host(from);
        if media.segments.is_empty() && media.ended {
            return Err(Trouble::Unplayable { host, why: "it lists no segment" });
        }
        if let Some(form) = self.forms.get_mut(self.form) {
            // Where a redirect led is asked from now on: a session may have begun there.
            form.clone_from(from);
        }
        let told = self.follow.listed(media, Instant::now());
        if told.jumped {
            (self.read, self.entity) = (0, Entity::default());
            if self.heard {
                info!(track = self.track, "the live stream goes on elsewhere than where it was left");
            }
        }
        if told.stands {
            return Err(Trouble::Failing(format!("{host} lists no new segments")));
        }
        Ok(())
    }
}
