//! Segments of any kind as a run of bytes that one decoder reads.

use super::adts::{self, Frames};
use super::mp4::{self, Fragments};
use super::sink::Sink;
use super::ts::{Codec, PACKET, SYNC, Transport};

/// The end of a sentence about why it cannot be played.
pub(super) const NO_SOUND: &str = "there is no sound in it that can be played";

/// How many bytes tell what a segment is.
const TELLING: usize = 2 * PACKET + 1;
/// What a demuxer keeps of a live stream's fragments before it is given a fresh beginning, in bytes: some hours.
const MOST_TABLES: u64 = 2 * 1024 * 1024;

/// What segments hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Adts,
    Mpeg,
    Transport,
    Mp4,
}

impl Kind {
    fn of_bytes(head: &[u8]) -> Option<Kind> {
        let synced =
            |at: usize| head.get(at) == Some(&SYNC) && head.get(at + PACKET).is_none_or(|byte| *byte == SYNC);
        match head {
            _ if synced(0) => Some(Kind::Transport),
            _ if mp4::is_box(head) => Some(Kind::Mp4),
            [0xff, b, ..] if b & 0xf6 == 0xf0 => Some(Kind::Adts),
            [0xff, b, ..] if b & 0xe0 == 0xe0 => Some(Kind::Mpeg),
            _ if head.len() > PACKET && (1..head.len() - PACKET).any(synced) => Some(Kind::Transport),
            _ => None,
        }
    }

    fn of_type(content_type: &str) -> Option<Kind> {
        match content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "video/mp2t" => Some(Kind::Transport),
            "audio/aac" | "audio/aacp" => Some(Kind::Adts),
            "audio/mpeg" | "audio/mp3" => Some(Kind::Mpeg),
            _ => None,
        }
    }
}

enum Reading {
    Adts(Frames),
    Mpeg,
    Transport(Box<Transport>),
    Mp4(Fragments),
}

impl Reading {
    fn new(kind: Kind) -> Reading {
        match kind {
            Kind::Adts => Reading::Adts(Frames::default()),
            Kind::Mpeg => Reading::Mpeg,
            Kind::Transport => Reading::Transport(Box::default()),
            Kind::Mp4 => Reading::Mp4(Fragments::default()),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Reading::Adts(_) => Kind::Adts,
            Reading::Mpeg => Kind::Mpeg,
            Reading::Transport(_) => Kind::Transport,
            Reading::Mp4(_) => Kind::Mp4,
        }
    }
}

/// Something for the decoder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Another recording begins, of this media type.
    Stretch(&'static str),
    Bytes(Vec<u8>),
}

/// Takes segments as they come and gives on sound.
#[derive(Default)]
pub(super) struct Sound {
    reading: Option<Reading>,
    /// The head of fragments, checked.
    head: Option<Vec<u8>>,
    /// Of this segment, until it is known what it is.
    lead: Option<Vec<u8>>,
    /// Bytes of a tag in front of it that are still to come.
    skip: u64,
    content_type: Option<String>,
    /// What comes next does not continue what was there.
    fresh: bool,
    out: Sink,
}

impl Sound {
    /// The next segment does not continue the one before.
    pub fn discontinuity(&mut self, parts: &mut Vec<Part>) {
        self.close(parts);
        (self.reading, self.lead, self.fresh) = (None, None, true);
    }

    /// The head of the fragments to come.
    ///
    /// # Errors
    /// Why it cannot be played, as the end of a sentence.
    pub fn head(&mut self, init: &[u8], parts: &mut Vec<Part>) -> Result<(), &'static str> {
        let head = mp4::head(init)?;
        if self.head.as_ref() != Some(&head) {
            self.discontinuity(parts);
            self.head = Some(head);
        }
        Ok(())
    }

    /// A segment begins. With `live` it may be one of very many.
    pub fn begin(&mut self, content_type: Option<String>, live: bool, parts: &mut Vec<Part>) {
        if let Some(Reading::Mp4(fragments)) = &self.reading
            && live
            && fragments.tables() > MOST_TABLES
        {
            self.discontinuity(parts);
        }
        (self.lead, self.skip, self.content_type) = (Some(Vec::new()), 0, content_type);
    }

    /// Goes on with these bytes of the segment.
    ///
    /// # Errors
    /// Why it cannot be played, as the end of a sentence.
    pub fn push(&mut self, mut bytes: &[u8], parts: &mut Vec<Part>) -> Result<(), &'static str> {
        let Some(lead) = &mut self.lead else {
            self.read(bytes)?;
            self.give(parts);
            return Ok(());
        };
        while !bytes.is_empty() {
            let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
            self.skip -= skipped as u64;
            bytes = &bytes[skipped..];
            let needed = TELLING.saturating_sub(lead.len()).min(bytes.len());
            lead.extend_from_slice(&bytes[..needed]);
            bytes = &bytes[needed..];
            // The timestamp of a segment of nothing but sound comes in a tag.
            if let Some(length) = adts::id3_length(lead) {
                let held = usize::try_from(length).unwrap_or(usize::MAX).min(lead.len());
                self.skip = length - held as u64;
                lead.drain(..held);
            } else if lead.len() >= TELLING {
                self.told(parts)?;
                self.read(bytes)?;
                break;
            }
        }
        self.give(parts);
        Ok(())
    }

    /// The segment is over.
    ///
    /// # Errors
    /// Why it cannot be played, as the end of a sentence.
    pub fn finish(&mut self, parts: &mut Vec<Part>) -> Result<(), &'static str> {
        if self.lead.as_ref().is_some_and(|lead| !lead.is_empty()) {
            self.told(parts)?;
        }
        self.lead = None;
        match &mut self.reading {
            Some(Reading::Transport(transport)) => {
                transport.finish(&mut self.out);
                if let Some(obstacle) = transport.obstacle().filter(|_| transport.codec().is_none()) {
                    return Err(obstacle);
                }
                if transport.codec().is_none() {
                    return Err(NO_SOUND);
                }
            }
            Some(Reading::Mp4(fragments)) => fragments.finish()?,
            _ => {}
        }
        self.give(parts);
        Ok(())
    }

    /// Why no sound comes out, as far as is known.
    pub fn obstacle(&self) -> Option<&'static str> {
        match &self.reading {
            Some(Reading::Transport(transport)) => transport.obstacle(),
            _ => None,
        }
    }

    /// Nothing comes any more.
    pub fn close(&mut self, parts: &mut Vec<Part>) {
        match &mut self.reading {
            Some(Reading::Transport(transport)) => transport.end(&mut self.out),
            Some(Reading::Adts(frames)) => frames.finish(&mut self.out),
            _ => {}
        }
        self.give(parts);
    }

    /// The beginning of a segment is there.
    fn told(&mut self, parts: &mut Vec<Part>) -> Result<(), &'static str> {
        let lead = self.lead.take().unwrap_or_default();
        let before = self.reading.as_ref().map(Reading::kind);
        let told = || self.content_type.as_deref().and_then(Kind::of_type);
        let kind = Kind::of_bytes(&lead).or(before).or_else(told);
        let kind = kind.ok_or("its segments are of a kind that is not known")?;
        if before != Some(kind) {
            self.close(parts);
            self.reading = Some(Reading::new(kind));
            self.fresh = true;
            if kind == Kind::Mp4 && self.head.is_none() {
                return Err("its fragments come without a head");
            }
        }
        self.read(&lead)
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        match &mut self.reading {
            Some(Reading::Adts(frames)) => frames.push(bytes, &mut self.out),
            Some(Reading::Mpeg) => self.out.push(bytes),
            Some(Reading::Mp4(fragments)) => fragments.push(bytes, &mut self.out)?,
            Some(Reading::Transport(transport)) => {
                transport.push(bytes, &mut self.out);
                if transport.obstacle() == Some(super::ENCRYPTED) {
                    return Err(super::ENCRYPTED);
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Gives on what came out, with its beginning told.
    fn give(&mut self, parts: &mut Vec<Part>) {
        let content_type = match &self.reading {
            Some(Reading::Adts(_)) => "audio/aac",
            Some(Reading::Mpeg) => "audio/mpeg",
            Some(Reading::Mp4(_)) => "audio/mp4",
            Some(Reading::Transport(transport)) if transport.codec() == Some(Codec::Mpeg) => "audio/mpeg",
            Some(Reading::Transport(_)) => "audio/aac",
            None => return,
        };
        for (n, bytes) in self.out.take().into_iter().enumerate() {
            self.fresh |= n > 0;
            if bytes.is_empty() {
                continue;
            }
            if std::mem::take(&mut self.fresh) {
                parts.push(Part::Stretch(content_type));
                if let (Some(Reading::Mp4(_)), Some(head)) = (&self.reading, &self.head) {
                    parts.push(Part::Bytes(head.clone()));
                }
            }
            parts.push(Part::Bytes(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::adts::tests::frame;
    use super::super::mp4::tests::{init, mp4_box};
    use super::super::ts::tests::Writer;
    use super::*;

    /// Recordings with their types.
    fn stretches(
        segments: &[&[u8]],
        head: Option<&[u8]>,
    ) -> Result<Vec<(&'static str, Vec<u8>)>, &'static str> {
        let (mut sound, mut parts) = (Sound::default(), Vec::new());
        if let Some(head) = head {
            sound.head(head, &mut parts)?;
        }
        for segment in segments {
            sound.begin(None, true, &mut parts);
            for piece in segment.chunks(100) {
                sound.push(piece, &mut parts)?;
            }
            sound.finish(&mut parts)?;
        }
        sound.close(&mut parts);
        let mut stretches = Vec::new();
        for part in parts {
            match part {
                Part::Stretch(kind) => stretches.push((kind, Vec::new())),
                Part::Bytes(bytes) => stretches.last_mut().unwrap().1.extend(bytes),
            }
        }
        Ok(stretches)
    }

    fn tagged(frames: &[u8]) -> Vec<u8> {
        let mut tag = b"ID3\x04\0\0\0\0\0\x3f".to_vec();
        tag.resize(10 + 63, 0);
        tag.extend_from_slice(frames);
        tag
    }

    fn transport(kind: u8, frames: &[u8]) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.tables(kind);
        writer.sound(frames);
        writer.bytes
    }

    #[test]
    fn segments_of_one_kind_are_one_recording() {
        let a = frame(4, &[1; 700]);
        assert_eq!(stretches(&[&tagged(&a), &a], None), Ok(vec![("audio/aac", a.repeat(2))]));
        let mp3 = [&[0xff, 0xfb][..], &[0; 700]].concat();
        assert_eq!(stretches(&[&tagged(&mp3), &mp3], None), Ok(vec![("audio/mpeg", mp3.repeat(2))]));
        let ts = transport(0x0f, &a);
        assert_eq!(stretches(&[&ts, &ts], None), Ok(vec![("audio/aac", a.repeat(2))]));
    }

    #[test]
    fn fragments_are_given_on_behind_their_head() {
        let fragment = [mp4_box(b"moof", &[1; 60]), mp4_box(b"mdat", &[2; 900])].concat();
        let segment = [mp4_box(b"styp", b"msdh"), mp4_box(b"sidx", &[0; 40]), fragment.clone()].concat();
        let head = init(&[b"mp4a"]);
        let whole = [mp4::head(&head).unwrap(), fragment.repeat(2)].concat();
        assert_eq!(stretches(&[&segment, &segment], Some(&head)), Ok(vec![("audio/mp4", whole)]));
        assert_eq!(stretches(&[&segment], None), Err("its fragments come without a head"));
    }

    #[test]
    fn a_live_stream_of_fragments_begins_anew_before_the_demuxer_holds_too_much() {
        let fragment = [mp4_box(b"moof", &[1; 1_000_000]), mp4_box(b"mdat", &[2; 9])].concat();
        let segments: Vec<&[u8]> = vec![&fragment; 5];
        assert_eq!(stretches(&segments, Some(&init(&[b"mp4a"]))).unwrap().len(), 2);
    }

    #[test]
    fn segments_of_another_kind_are_another_recording() {
        let (a, b) = (frame(4, &[1; 700]), frame(3, &[2; 700]));
        let (ts, mp2) = (transport(0x0f, &a), transport(0x04, &[0xff; 600]));
        assert_eq!(
            stretches(&[&a, &ts, &b, &b, &mp2], None).unwrap(),
            [
                ("audio/aac", a.clone()),
                ("audio/aac", a),
                ("audio/aac", b.repeat(2)),
                ("audio/mpeg", vec![0xff; 600]),
            ]
        );
    }

    #[test]
    fn what_is_no_sound_is_refused() {
        let text = "WEBVTT\n\n00:01.000 --> 00:04.000\nHello\n".repeat(20);
        assert_eq!(stretches(&[text.as_bytes()], None), Err("its segments are of a kind that is not known"));
        assert!(stretches(&[&transport(0x81, &[1; 600])], None).unwrap_err().contains("AC-3"));
        assert_eq!(
            stretches(&[&transport(0x06, &[1; 600])], None),
            Err("there is no sound in it that can be played")
        );
    }
}
