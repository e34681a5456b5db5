//! What SHOUTcast and Icecast put beside the audio: titles between the bytes, a station's description in the
//! head, and the head of servers that answer `ICY 200 OK`. Pure.

mod charset;
mod head;
mod title;

use std::mem;

use bytes::Bytes;
use reqwest::header::HeaderMap;

pub(super) use charset::{decode, shown, tidy};
pub(super) use head::parse_head;
pub use title::StreamTitle;

/// What a station says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Station {
    /// For example `Radio Example`; at most 1,024 characters, like all texts here.
    pub name: Option<String>,
    /// What it plays.
    pub genre: Option<String>,
    /// A sentence about it.
    pub description: Option<String>,
    /// In kbit/s, as announced.
    pub bitrate: Option<u32>,
}

impl Station {
    /// None where no `icy-…` header says anything.
    pub(super) fn of(headers: &HeaderMap) -> Option<Station> {
        let text = |name: &str| {
            let text = shown(headers.get(name)?.as_bytes());
            (!text.is_empty()).then_some(text)
        };
        let station = Station {
            name: text("icy-name"),
            genre: text("icy-genre"),
            description: text("icy-description"),
            // Some announce one for each of several streams: `128,128`.
            bitrate: text("icy-br")
                .and_then(|rates| rates.split(',').next()?.trim().parse().ok())
                .filter(|rate| *rate > 0),
        };
        (station != Station::default()).then_some(station)
    }
}

/// After how many bytes of audio a block of metadata stands, when the server announced it. Zero is none.
pub(super) fn interval(headers: &HeaderMap) -> Option<u64> {
    let value = headers.get("icy-metaint")?.to_str().ok()?.trim().parse().ok()?;
    (value > 0).then_some(value)
}

/// A piece of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Bytes of the track.
    Audio(Bytes),
    /// A title that is another than the one before; it belongs to the audio that follows.
    Title(StreamTitle),
    /// The audio that follows is another recording, of this media type.
    Stretch(&'static str),
}

/// Takes the metadata out of a body. It never holds back audio, and never more than one block (4,081 bytes).
pub(super) struct Demux {
    interval: u64,
    state: State,
    /// A block of metadata was seen, so the server really does what it announced.
    proved: bool,
    /// The body turned out to be plain audio.
    plain: bool,
    last: Option<StreamTitle>,
}

enum State {
    /// So many bytes of audio come before the next block.
    Audio(u64),
    /// A block: its length in units of 16 bytes, and what of it has come.
    Block { units: u8, held: Vec<u8> },
}

impl Demux {
    /// For a body with a block after each `interval` bytes of audio, which is not 0.
    pub fn new(interval: u64) -> Self {
        Demux { interval, state: State::Audio(interval), proved: false, plain: false, last: None }
    }

    /// Takes the next piece off the front of `input`; none when more input is needed, and then `input` is empty.
    pub fn next(&mut self, input: &mut Bytes) -> Option<Piece> {
        while !input.is_empty() {
            if self.plain {
                return Some(Piece::Audio(mem::take(input)));
            }
            match &mut self.state {
                State::Audio(0) => {
                    let units = input.split_to(1)[0];
                    self.state = match units {
                        0 => State::Audio(self.interval),
                        _ => State::Block { units, held: Vec::with_capacity(usize::from(units) * 16) },
                    };
                }
                State::Audio(left) => {
                    let count = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= count as u64;
                    return Some(Piece::Audio(input.split_to(count)));
                }
                State::Block { units, held } => {
                    let whole = usize::from(*units) * 16;
                    let count = input.len().min(whole - held.len());
                    held.extend_from_slice(&input.split_to(count));
                    if held.len() == whole {
                        let (units, held) = (*units, mem::take(held));
                        self.state = State::Audio(self.interval);
                        if let Some(piece) = self.block(units, held) {
                            return Some(piece);
                        }
                    }
                }
            }
        }
        None
    }

    /// A server that announces blocks but sends none would lose audio here, so the first one must look like one.
    fn block(&mut self, units: u8, held: Vec<u8>) -> Option<Piece> {
        if !self.proved && !title::plausible(&held) {
            self.plain = true;
            let mut audio = vec![units];
            audio.extend(held);
            return Some(Piece::Audio(audio.into()));
        }
        self.proved |= held.iter().any(|byte| *byte != 0);
        let title = StreamTitle::parse(&held)?;
        if self.last.as_ref() == Some(&title) {
            return None;
        }
        self.last = Some(title.clone());
        Some(Piece::Title(title))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    fn byte(at: usize) -> u8 {
        (at ^ (at >> 8)).wrapping_mul(31) as u8
    }

    fn block(text: &[u8]) -> Vec<u8> {
        let units = text.len().div_ceil(16);
        let mut block = vec![units as u8];
        block.extend_from_slice(text);
        block.resize(1 + units * 16, 0);
        block
    }

    /// Audio and, with the offset in it, each title.
    fn split(demux: &mut Demux, pieces: impl Iterator<Item = Bytes>) -> (Vec<u8>, Vec<(usize, String)>) {
        let (mut audio, mut titles) = (Vec::new(), Vec::new());
        for mut input in pieces {
            while let Some(piece) = demux.next(&mut input) {
                match piece {
                    Piece::Audio(bytes) => audio.extend(bytes),
                    Piece::Title(title) => titles.push((audio.len(), title.text)),
                    Piece::Stretch(_) => panic!("a station has no stretches of its own"),
                }
            }
            assert!(input.is_empty());
        }
        (audio, titles)
    }

    fn chunks(body: &[u8], sizes: &[usize]) -> Vec<Bytes> {
        let mut sizes = sizes.iter().copied().cycle();
        let (mut at, mut out) = (0, Vec::new());
        while at < body.len() {
            let end = (at + sizes.next().unwrap()).min(body.len());
            out.push(Bytes::copy_from_slice(&body[at..end]));
            at = end;
        }
        out
    }

    proptest! {
        #[test]
        fn in_any_chunks_the_audio_is_whole_and_each_title_stands_at_its_byte(
            interval in 1usize..3_000,
            titles in prop::collection::vec(prop::option::of("[a-z' ;äß]{0,300}"), 0..20),
            tail in 0usize..3_000,
            sizes in prop::collection::vec(1usize..5_000, 1..6),
        ) {
            let (mut body, mut audio, mut expected) = (Vec::new(), Vec::new(), Vec::<(usize, String)>::new());
            let mut add = |body: &mut Vec<u8>, count: usize| {
                for _ in 0..count {
                    body.push(byte(audio.len()));
                    audio.push(byte(audio.len()));
                }
                audio.len()
            };
            for title in &titles {
                let at = add(&mut body, interval);
                let Some(title) = title else { body.push(0); continue };
                body.extend(block(format!("StreamTitle='{title}';StreamUrl='';").as_bytes()));
                let text = title.trim().to_owned();
                if expected.last().is_none_or(|(_, last)| *last != text) {
                    expected.push((at, text));
                }
            }
            add(&mut body, tail.min(interval));
            let found = split(&mut Demux::new(interval as u64), chunks(&body, &sizes).into_iter());
            prop_assert_eq!(found.0, audio);
            prop_assert_eq!(found.1, expected);
        }

        #[test]
        fn no_bytes_make_it_hang_or_grow(
            interval in prop::sample::select(vec![1, 2, 16, 255, 8192, 1 << 21, u64::MAX]),
            body in prop::collection::vec(any::<u8>(), 0..20_000),
            sizes in prop::collection::vec(1usize..900, 1..4),
        ) {
            let whole = split(&mut Demux::new(interval), std::iter::once(Bytes::from(body.clone())));
            prop_assert!(whole.0.len() <= body.len());
            prop_assert_eq!(whole, split(&mut Demux::new(interval), chunks(&body, &sizes).into_iter()));
        }
    }

    #[test]
    fn a_body_without_the_announced_blocks_keeps_all_of_its_audio() {
        let body: Vec<u8> = (1..100_000).map(|at| byte(at) | 1).collect();
        let found = split(&mut Demux::new(1_000), chunks(&body, &[777]).into_iter());
        assert!(found.0 == body && found.1.is_empty());
    }

    #[test]
    fn a_bad_block_after_a_good_one_is_dropped() {
        let mut body = vec![1; 100];
        body.extend(block(b"StreamTitle='a';"));
        body.extend(vec![2; 100]);
        body.extend(block(b"\xff\xfb\x90garbage"));
        body.extend(vec![3; 100]);
        body.extend(block(b"StreamTitle='b';"));
        let (audio, titles) = split(&mut Demux::new(100), std::iter::once(Bytes::from(body)));
        assert_eq!(audio.len(), 300);
        assert_eq!(titles, [(100, "a".to_owned()), (300, "b".to_owned())]);
    }

    #[test]
    fn a_station_speaks_in_utf_8_or_windows_1252_and_at_no_length() {
        let mut headers = HeaderMap::new();
        assert_eq!(Station::of(&headers), None);
        headers.insert("icy-name", HeaderValue::from_bytes(b"Caf\xe9 \x80").unwrap());
        headers.insert("icy-genre", HeaderValue::from_bytes("Müßig".as_bytes()).unwrap());
        headers.insert("icy-description", HeaderValue::from_str(&"x".repeat(5_000)).unwrap());
        headers.insert("icy-br", HeaderValue::from_static("128,128"));
        let station = Station::of(&headers).unwrap();
        assert_eq!(station.name.as_deref(), Some("Café €"));
        assert_eq!(station.genre.as_deref(), Some("Müßig"));
        assert_eq!(station.description.unwrap().len(), 1_024);
        assert_eq!(station.bitrate, Some(128));
    }

    #[test]
    fn an_interval_of_nothing_is_none() {
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("icy-metaint", HeaderValue::from_static(value));
            interval(&headers)
        };
        assert_eq!(of("16000"), Some(16_000));
        for value in ["0", "", "-1", "1e3", "99999999999999999999999"] {
            assert_eq!(of(value), None, "{value}");
        }
    }
}
