//! From a queue entry to a decoder that stands at its first frame: resolve, fetch, probe.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use super::inbox::Inbox;
use super::runaway::{Runaways, on_a_thread};
use crate::decode::{DecodeError, Decoder, Hints, Input};
use crate::player::{Failure, OpenedTrack, Place, Ticket};
use crate::plugin::{ErrorCode, Host};
use crate::stream::{Reader, StreamError, StreamEvent, StreamHandle, Streams, UserFolders, WaitReason};
use crate::track::{
    EntryId, Resolve, ResolveError, ResolveErrorKind, ResolvedStream, Resolving, TrackRef, TrackUri,
};

/// A plugin that asks for patience gets so much of it at the start of a track; then the track is passed over.
const PATIENCE: Duration = Duration::from_secs(60);
/// A plugin that failed without a reason is asked again after this time.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// And so often in all.
const TRIES: u32 = 2;

/// How often a plugin was asked in vain while the network was away.
#[derive(Default)]
struct Outage {
    asked: u32,
}

impl Outage {
    fn lasts(&self) -> bool {
        self.asked > 0
    }

    /// Before it is asked again: 1 s, doubling to 10 s.
    fn pause(&mut self) -> Duration {
        self.asked = self.asked.saturating_add(1);
        Duration::from_secs(1 << (self.asked - 1).min(4)).min(Duration::from_secs(10))
    }
}

/// A track that can be decoded.
pub(super) struct OpenTrack {
    pub entry: EntryId,
    pub decoder: Decoder,
    pub stream: StreamHandle,
    /// The frame that the decoder gives next.
    pub start_frame: u64,
    /// Where it stands in the queue.
    pub place: Place,
}

/// What opening needs.
#[derive(Clone)]
pub(super) struct Opener {
    pub plugins: Host,
    pub streams: Streams,
    /// `file:` URIs of the user's may lead below these.
    pub folders: UserFolders,
    pub inbox: UnboundedSender<Inbox>,
    pub runaways: Runaways,
}

impl Input for Reader {
    fn byte_len(&self) -> Option<u64> {
        Reader::byte_len(self)
    }

    fn is_seekable(&self) -> bool {
        Reader::is_seekable(self)
    }

    fn is_endless(&self) -> bool {
        self.may_go_on()
    }

    fn at_hand(&self, from: u64) -> u64 {
        Reader::at_hand(self, from)
    }

    fn next_stretch(&mut self) -> Option<Hints> {
        let content_type = Reader::next_stretch(self)?;
        Some(Hints { content_type, extension: None })
    }
}

/// Resolves a plain URL to itself.
struct SameUrl(ResolvedStream);

impl Resolve for SameUrl {
    fn resolve(&self) -> Resolving {
        let same = self.0.clone();
        Box::pin(async move { Ok(same) })
    }
}

impl Opener {
    /// Opens a track; the outcome goes to the inbox.
    pub(super) async fn open(self, ticket: Ticket, entry: EntryId, uri: TrackUri, start: Duration) {
        let outcome = self.try_open(ticket, entry, &uri, start).await;
        // The inbox is gone only when the program is on its way out.
        let _ = self.inbox.send(Inbox::Opened(ticket, outcome));
    }

    async fn try_open(
        &self,
        ticket: Ticket,
        entry: EntryId,
        uri: &TrackUri,
        start: Duration,
    ) -> Result<(Box<OpenTrack>, OpenedTrack), Failure> {
        let (reader, stream, hints) = match uri {
            TrackUri::Plugin(_, track) => {
                let resolved =
                    self.resolve(ticket, track).await.map_err(|error| failed_to_resolve(uri, error))?;
                let text = format!("{uri} resolved to {}", resolved.url.host_str().unwrap_or("a file"));
                self.tell(entry, "resolved", text);
                let hints = hints(resolved.content_type.clone(), resolved.url.path());
                let resolver = self.plugins.resolver(track.clone());
                let (reader, stream) = self.streams.open(resolved, resolver, uri.to_string());
                (reader, stream, hints)
            }
            TrackUri::Web(url) => {
                let resolved = ResolvedStream::plain(url.clone());
                let resolver = std::sync::Arc::new(SameUrl(resolved.clone()));
                let (reader, stream) = self.streams.open(resolved, resolver, uri.shown());
                (reader, stream, hints(None, url.path()))
            }
            TrackUri::File(path) => {
                let (reader, stream) =
                    self.streams.open_file(path, &self.folders).map_err(|error| failed_stream(&error))?;
                (reader, stream, hints(None, &path.to_string_lossy()))
            }
        };
        let _ = self.inbox.send(Inbox::Stream(ticket, stream.clone()));
        let opened = on_a_thread(&self.runaways, move || probe(reader, hints, start)).await;
        let Probed { decoder, start_frame, exact, not_seekable, live } =
            opened.map_err(|error| failed_decode(uri, &error))?;
        let facts = OpenedTrack {
            info: decoder.tags(),
            codec: decoder.codec().to_owned(),
            not_seekable,
            start_is_a_guess: !exact,
            start: decoder.format().time_of(start_frame),
            live,
        };
        Ok((Box::new(OpenTrack { entry, decoder, stream, start_frame, place: Place::default() }), facts))
    }

    /// Asks the plugin, with patience where it asks for patience, and without an end while the network is away.
    async fn resolve(&self, ticket: Ticket, track: &TrackRef) -> Result<ResolvedStream, ResolveError> {
        let mut began = Instant::now();
        let mut tries = 0;
        let mut outage = Outage::default();
        loop {
            tries += 1;
            let (error, timed_out) = match self.plugins.resolve(track).await {
                Ok(resolved) => {
                    if outage.lasts() {
                        let _ = self.inbox.send(Inbox::StreamEvent(ticket, StreamEvent::Flowing));
                    }
                    return Ok(resolved);
                }
                Err(error) => {
                    let timed_out = error.code == ErrorCode::PluginTimeout;
                    (ResolveError::from(error), timed_out)
                }
            };
            let (ResolveErrorKind::Later(pause) | ResolveErrorKind::Unreachable(pause)) = error.kind else {
                return Err(error);
            };
            if self.is_for_want_of_a_network(track, &error).await {
                if !outage.lasts() {
                    let text = format!("the network is away, and the track is waited for ({error})");
                    let waiting = StreamEvent::Waiting(WaitReason::Network, text);
                    let _ = self.inbox.send(Inbox::StreamEvent(ticket, waiting));
                }
                tokio::time::sleep(outage.pause().max(pause.unwrap_or_default())).await;
                // Patience with the plugin begins anew.
                (began, tries) = (Instant::now(), 0);
                continue;
            }
            let pause = match pause {
                // It has been waited for long enough.
                _ if timed_out => return Err(error),
                Some(pause) if began.elapsed() + pause < PATIENCE => pause,
                None if tries < TRIES => ASK_AGAIN,
                _ => return Err(error),
            };
            tracing::info!(plugin = %track.plugin, track = %track.content_id, %error, ?pause, "asking again");
            tokio::time::sleep(pause).await;
        }
    }

    /// Whether a plugin failed because the network is away, and not by its own fault.
    async fn is_for_want_of_a_network(&self, track: &TrackRef, error: &ResolveError) -> bool {
        if !matches!(error.kind, ResolveErrorKind::Unreachable(_)) {
            return false;
        }
        match self.plugins.reach(&track.plugin) {
            Some(reach) => self.streams.network_is_away(reach).await,
            // What needs no network cannot miss it.
            None => false,
        }
    }

    fn tell(&self, entry: EntryId, kind: &'static str, text: String) {
        let _ = self.inbox.send(Inbox::Say(entry, kind, text));
    }
}

struct Probed {
    decoder: Decoder,
    start_frame: u64,
    exact: bool,
    not_seekable: Option<String>,
    live: bool,
}

/// Blocks on the stream: finds out the format and goes to the start.
fn probe(reader: Reader, mut hints: Hints, start: Duration) -> Result<Probed, DecodeError> {
    if let Some(content_type) = reader.content_type() {
        hints.content_type = Some(content_type);
    }
    let live = reader.is_live();
    let not_seekable = match reader.is_seekable() {
        true => None,
        false if live => Some("it is a station, which has no past".to_owned()),
        false => Some("its server gives no byte ranges".to_owned()),
    };
    let mut decoder = Decoder::open(Box::new(reader), &hints)?;
    let frame = decoder.format().frame_at(start);
    let (start_frame, exact) = if frame == 0 || live {
        (0, true)
    } else {
        match decoder.seek(frame) {
            Ok(landed) => (landed.frame, landed.exact),
            // Better from its beginning than not at all.
            Err(error @ (DecodeError::ForwardOnly | DecodeError::NeedsSeeking)) => {
                tracing::warn!(%error, "playing this track from its beginning");
                (0, true)
            }
            Err(error) => return Err(error),
        }
    };
    Ok(Probed { decoder, start_frame, exact, not_seekable, live })
}

fn hints(content_type: Option<String>, path: &str) -> Hints {
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    Hints { content_type, extension }
}

fn failed_to_resolve(uri: &TrackUri, error: ResolveError) -> Failure {
    let for_good = !error.kind.may_pass();
    Failure { code: "plugin", message: format!("{uri}: {}", error.message), for_good, again: false }
}

fn failed_stream(error: &StreamError) -> Failure {
    let for_good = !matches!(error, StreamError::NoData { .. } | StreamError::Aborted { .. });
    let again = matches!(error, StreamError::Changed { .. });
    Failure { code: "stream", message: error.to_string(), for_good, again }
}

/// A failure of the stream below the decoder is told as such.
pub(super) fn failed_decode(uri: &TrackUri, error: &DecodeError) -> Failure {
    if let DecodeError::Input(input) = error
        && let Some(stream) = StreamError::of(input)
    {
        return failed_stream(stream);
    }
    // What cannot be gone back in is read once more from its beginning.
    let again = matches!(error, DecodeError::ForwardOnly);
    Failure { code: "decode", message: format!("{}: {error}", uri.shown()), for_good: !again, again }
}
