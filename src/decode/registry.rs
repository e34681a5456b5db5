//! Which reader and which decoder take a track.

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use symphonia::core::codecs::registry::CodecRegistry;
use symphonia::core::common::Limit;
use symphonia::core::errors::{Error, Result};
use symphonia::core::formats::probe::{Hint, Probe, ProbeOptions};
use symphonia::core::formats::{FormatOptions, FormatReader};
use symphonia::core::io::MediaSourceStream;
use symphonia::core::meta::MetadataOptions;
use symphonia::default::formats;

use super::error::DecodeError;
use super::foreign;
use super::input::{Handle, Hints, Source};
use super::mpeg::Index;
use super::quirks::pictures::Id3v2WithoutPictures;

/// How far a format is searched for in what does not begin with one, in bytes.
const PROBE_DEPTH: u32 = 128 * 1024;
const TAG_LIMIT: usize = 64 * 1024;
/// What the probe says where no reader recognises its format.
const FOUND_NOTHING: &str = "no suitable format reader found";

/// The containers that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    Flac,
    Mpeg,
    Adts,
    Mp4,
    Ogg,
    Wav,
    Aiff,
    Caf,
    Mkv,
    /// To be found out by probing.
    Unknown,
}

impl Container {
    /// By the first bytes, then by what the server said.
    fn guess(head: &[u8], hints: &Hints) -> Container {
        Container::from_magic(head).or_else(|| Container::from_hints(hints)).unwrap_or(Container::Unknown)
    }

    fn from_magic(head: &[u8]) -> Option<Container> {
        Some(match head {
            [b'f', b'L', b'a', b'C', ..] => Container::Flac,
            [b'O', b'g', b'g', b'S', ..] => Container::Ogg,
            [b'R', b'I', b'F', b'F', ..] => Container::Wav,
            [b'F', b'O', b'R', b'M', ..] => Container::Aiff,
            [b'c', b'a', b'f', b'f', ..] => Container::Caf,
            [0x1a, 0x45, 0xdf, 0xa3, ..] => Container::Mkv,
            [_, _, _, _, b'f', b't', b'y', b'p', ..] => Container::Mp4,
            // The two layer bits are 0 in ADTS and never in MPEG audio.
            [0xff, b, ..] if b & 0xf6 == 0xf0 => Container::Adts,
            [0xff, b, ..] if b & 0xe0 == 0xe0 => Container::Mpeg,
            _ => return None,
        })
    }

    fn from_hints(hints: &Hints) -> Option<Container> {
        let kind = hints.content_type.as_deref().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let extension = hints.extension.as_deref().unwrap_or_default().to_ascii_lowercase();
        Some(match (kind.as_str(), extension.as_str()) {
            ("audio/mpeg" | "audio/mp3" | "audio/x-mp3" | "audio/mpegurl", _) | ("", "mp3") => {
                Container::Mpeg
            }
            ("audio/aac" | "audio/aacp" | "audio/x-aac", _) | ("", "aac") => Container::Adts,
            ("audio/flac" | "audio/x-flac", _) | ("", "flac") => Container::Flac,
            _ => return None,
        })
    }

    /// A new index for formats that have none. Behind an ID3v2 tag there is MPEG audio, most of the time.
    fn index(self, head: &[u8]) -> Option<Index> {
        match self {
            Container::Mpeg => Some(Index::of_mpeg()),
            Container::Adts => Some(Index::of_adts()),
            Container::Unknown if head.starts_with(b"ID3") => Some(Index::of_mpeg()),
            _ => None,
        }
    }

    /// Whether the reader must be able to seek from the start. The others then cost fewer requests.
    pub(super) fn opens_seekable(self) -> bool {
        // MPEG audio only estimates its length from the first frames then. CAF may have its table of packets behind the
        // sound, and is looked through to its end in any case.
        matches!(self, Container::Mp4 | Container::Caf | Container::Mpeg | Container::Unknown)
    }

    /// Whether a reader that was opened forward-only never learns to seek.
    pub(super) fn stays_forward_only(self) -> bool {
        matches!(self, Container::Ogg | Container::Mkv)
    }
}

static CODECS: LazyLock<CodecRegistry> = LazyLock::new(|| {
    let mut codecs = CodecRegistry::new();
    symphonia::default::register_enabled_codecs(&mut codecs);
    codecs
});

pub(super) fn codecs() -> &'static CodecRegistry {
    &CODECS
}

/// A probe for one container, so that nothing else is mistaken for it, or for all.
fn probe_for(container: Container) -> Probe {
    let mut probe =
        Probe::new_with_options(&ProbeOptions { max_probe_depth: PROBE_DEPTH, ..ProbeOptions::default() });
    match container {
        Container::Flac => probe.register_format::<formats::FlacReader<'_>>(),
        Container::Mpeg => probe.register_format::<formats::MpaReader<'_>>(),
        Container::Adts => probe.register_format::<formats::AdtsReader<'_>>(),
        Container::Mp4 => probe.register_format::<formats::IsoMp4Reader<'_>>(),
        Container::Ogg => probe.register_format::<formats::OggReader<'_>>(),
        Container::Wav => probe.register_format::<formats::WavReader<'_>>(),
        Container::Aiff => probe.register_format::<formats::AiffReader<'_>>(),
        Container::Caf => probe.register_format::<formats::CafReader<'_>>(),
        Container::Mkv => probe.register_format::<formats::MkvReader<'_>>(),
        Container::Unknown => {
            probe.register_format::<formats::AdtsReader<'_>>();
            probe.register_format::<formats::CafReader<'_>>();
            probe.register_format::<formats::FlacReader<'_>>();
            probe.register_format::<formats::IsoMp4Reader<'_>>();
            probe.register_format::<formats::MpaReader<'_>>();
            probe.register_format::<formats::AiffReader<'_>>();
            probe.register_format::<formats::WavReader<'_>>();
            probe.register_format::<formats::OggReader<'_>>();
            probe.register_format::<formats::MkvReader<'_>>();
        }
    }
    probe.register_metadata::<Id3v2WithoutPictures<'_>>();
    probe
}

/// A demuxer on a track's bytes, with the container that it turned out to be.
pub(super) type Reader = Box<dyn FormatReader>;

/// Finds the container and opens a reader, from byte 0.
pub(super) fn open(
    source: &Source,
    hints: &Hints,
    seekable: &Arc<AtomicBool>,
) -> std::result::Result<(Reader, Container), DecodeError> {
    let head = read_head(source, seekable)?;
    if let Some(refusal) = foreign::refusal(&head) {
        return Err(refusal);
    }
    let guess = Container::guess(&head, hints);
    seekable.store(guess.opens_seekable(), Ordering::Relaxed);
    source.set_index(if source.is_seekable() { guess.index(&head) } else { None });
    let mut opened = open_as(guess, source.handle(seekable));
    if opened.is_err() {
        check_input(source)?;
        opened = open_as(Container::Unknown, source.handle(seekable)).or(opened);
    }
    let found = opened.as_ref().map_or(guess, |reader| container_of(reader.as_ref()));
    if source.is_seekable() && found != guess {
        // What was found by searching is opened as what it is, which decides how it jumps.
        seekable.store(found.opens_seekable(), Ordering::Relaxed);
        source.set_index(found.index(&[]));
        opened = open_as(found, source.handle(seekable));
    }
    match opened {
        Ok(reader) => Ok((reader, found)),
        Err(e) => {
            check_input(source)?;
            let late = Container::from_magic(&head).is_none().then(|| foreign::late_refusal(&head)).flatten();
            Err(late.unwrap_or_else(|| not_audio(e, guess, &head)))
        }
    }
}

/// A failure of the input, which a reader may have taken for the end. That the beginning of what only runs
/// forward is gone is no failure.
fn check_input(source: &Source) -> std::result::Result<(), DecodeError> {
    match source.take_failure() {
        Some(e) if e.kind() != ErrorKind::Unsupported => Err(DecodeError::Input(e)),
        _ => Ok(()),
    }
}

/// Opens a reader for a container that is known.
pub(super) fn open_as(container: Container, handle: Handle) -> Result<Reader> {
    let stream = MediaSourceStream::new(Box::new(handle), Default::default());
    let options = MetadataOptions::default().limit_tag_bytes(Limit::Maximum(TAG_LIMIT));
    probe_for(container).probe(&Hint::new(), stream, FormatOptions::default(), options)
}

/// Opens a reader of a format that has no header of its own, at a frame in the middle.
pub(super) fn enter(container: Container, handle: Handle) -> Result<Reader> {
    let stream = MediaSourceStream::new(Box::new(handle), Default::default());
    let options = FormatOptions::default();
    Ok(match container {
        Container::Adts => Box::new(formats::AdtsReader::try_new(stream, options)?),
        _ => Box::new(formats::MpaReader::try_new(stream, options)?),
    })
}

fn container_of(reader: &dyn FormatReader) -> Container {
    use symphonia::core::formats::well_known as id;
    match reader.format_info().format {
        id::FORMAT_ID_FLAC => Container::Flac,
        id::FORMAT_ID_MP1 | id::FORMAT_ID_MP2 | id::FORMAT_ID_MP3 => Container::Mpeg,
        id::FORMAT_ID_ADTS => Container::Adts,
        id::FORMAT_ID_ISOMP4 => Container::Mp4,
        id::FORMAT_ID_OGG => Container::Ogg,
        id::FORMAT_ID_WAVE => Container::Wav,
        id::FORMAT_ID_AIFF => Container::Aiff,
        id::FORMAT_ID_CAF => Container::Caf,
        id::FORMAT_ID_MKV => Container::Mkv,
        _ => Container::Unknown,
    }
}

/// The first bytes; fewer at the end of a short file.
fn read_head(source: &Source, seekable: &Arc<AtomicBool>) -> std::result::Result<Vec<u8>, DecodeError> {
    let mut handle = source.handle(seekable);
    handle.seek(SeekFrom::Start(0)).map_err(|told| source.cause(told))?;
    let mut head = Vec::with_capacity(foreign::HEAD);
    handle.take(foreign::HEAD as u64).read_to_end(&mut head).map_err(|told| source.cause(told))?;
    Ok(head)
}

fn not_audio(e: Error, guess: Container, head: &[u8]) -> DecodeError {
    if let Error::Unsupported(reason) = e
        && guess != Container::Unknown
        && !reason.contains(FOUND_NOTHING)
    {
        // The demuxers put their own name in front.
        let reason = reason.rsplit(": ").next().unwrap_or(reason).to_owned();
        let codec = format!("this {}", format!("{guess:?}").to_ascii_uppercase());
        return DecodeError::Unsupported { codec, reason };
    }
    let found = match guess {
        _ if head.is_empty() => "it is empty".to_owned(),
        Container::Unknown => "its format is not known".to_owned(),
        container => format!("it looks like {container:?} but is cut short or damaged ({e})"),
    };
    DecodeError::NotAudio { found }
}
