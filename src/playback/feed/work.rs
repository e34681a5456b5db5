//! A track on its way through the decode thread.

use std::collections::VecDeque;

use super::crossfade::Fade;
use super::processing::Conversion;
use crate::dsp::Settings;
use crate::output::Mark;
use crate::playback::feeder::Part;
use crate::playback::names;
use crate::playback::open::OpenTrack;
use crate::player::Ticket;
use crate::track::SourceFormat;

/// A track that is being decoded.
pub(super) struct Work {
    pub(super) ticket: Ticket,
    /// The track that it was joined to.
    pub(super) follows: Option<Ticket>,
    /// The dropped track behind which its sound lies in the ring: when that is taken back, this goes with it.
    pub(super) behind: Option<Ticket>,
    pub(super) track: Box<OpenTrack>,
    /// Decoded, at the source's rate.
    pub(super) pcm: Vec<i32>,
    /// What of it is ready for the ring, at the card's rate, and how many samples of that are in it already.
    pub(super) ready: Vec<i32>,
    pub(super) written: usize,
    /// What is ready before that and held back, since the next track may be faded into it.
    pub(super) tail: VecDeque<i32>,
    /// It is not: nothing is held back any more.
    pub(super) released: bool,
    /// The fade from the track before, for as long as that may be wanted back.
    pub(super) fade: Option<Fade>,
    /// The end of that fade is mixed and not in the ring: so many frames go there first, and this is the source's
    /// frame then.
    pub(super) fade_end: Option<(u64, u64)>,
    pub(super) conversion: Option<Conversion>,
    /// The frame of the source that the next sound begins with, while its mark is not set yet.
    pub(super) unmarked: Option<u64>,
    /// So many frames go to the ring before that mark: of the track before, or from before a change.
    pub(super) before_mark: u64,
    /// Some of its own sound is in the chain or behind it, since that mark is wanted.
    pub(super) sounded: bool,
    /// Number of the part of the recording that is being decoded, and the links of the chain before it.
    pub(super) part: u64,
    pub(super) links: u32,
    /// It failed, and whether it is opened again or the next one follows is not decided yet.
    pub(super) undecided: bool,
    /// That it is at its end was told.
    pub(super) told_end: bool,
    pub(super) stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Decoding,
    /// Nothing more comes from the decoder; what is ready still goes to the ring.
    Ending,
    /// All is in the ring, but for what waits in the chain to be joined.
    AtEnd,
    /// The stream was interrupted: a seek is on its way.
    AwaitingSeek,
}

impl Work {
    pub(super) fn new(ticket: Ticket, track: Box<OpenTrack>) -> Work {
        let unmarked = Some(track.start_frame);
        // What a station's first bytes say is about what it plays, and shown when that is heard.
        let links = if track.stream.is_live() { u32::MAX } else { track.decoder.links_before() };
        Work {
            ticket,
            follows: None,
            behind: None,
            track,
            pcm: Vec::new(),
            ready: Vec::new(),
            written: 0,
            tail: VecDeque::new(),
            released: false,
            fade: None,
            fade_end: None,
            conversion: None,
            unmarked,
            before_mark: 0,
            sounded: false,
            part: 0,
            links,
            undecided: false,
            told_end: false,
            stage: Stage::Decoding,
        }
    }

    /// What another part of the recording is called and coded in, if one has begun with what was decoded last.
    pub(super) fn new_part(&mut self) -> Option<Part> {
        let links = self.track.decoder.links_before();
        let chained = std::mem::replace(&mut self.links, links) != links;
        let tags = chained.then(|| self.track.decoder.tags()).filter(|tags| tags.title.is_some());
        // An empty title takes back the one before.
        let told = self.track.stream.take_title();
        let told = told.map(|title| names::of_title(&title.text).unwrap_or_default());
        let info = told.or(tags);
        let new = info.is_some() || chained;
        self.part += u64::from(new);
        new.then(|| Part { number: self.part, info, codec: self.track.decoder.codec().to_owned() })
    }

    /// A mark for what is in the ring next, which begins with this frame of the source.
    pub(super) fn mark(&self, frame: u64, format: SourceFormat, generation: u64, sound: &Settings) -> Mark {
        Mark {
            entry: self.track.entry,
            generation,
            position: format.time_of(frame),
            source_frame: frame,
            opening: self.ticket.0,
            part: self.part,
            treatment: self.treatment(sound),
        }
    }

    /// Forgets what was decoded: the next sound begins at this frame.
    pub(super) fn restart_at(&mut self, frame: u64) {
        self.pcm.clear();
        self.ready.clear();
        self.written = 0;
        self.tail.clear();
        self.released = false;
        self.fade = None;
        self.fade_end = None;
        self.conversion = None;
        self.unmarked = Some(frame);
        self.before_mark = 0;
        self.sounded = false;
        self.undecided = false;
        self.told_end = false;
        self.stage = Stage::Decoding;
    }
}
