//! Titles are taken out of a body the same way in any pieces, and nothing that a station says breaks its parsers.
#![no_main]
#![allow(dead_code, unused_imports)] // the program uses what is not fuzzed

use libfuzzer_sys::fuzz_target;

// The program's own files, without the libraries that the rest of it needs.
#[path = "../../src/stream"]
mod stream {
    pub mod icy;

    use bytes::Bytes;
    use icy::{Demux, Piece, StreamTitle, parse_head, shown};

    fn split(interval: u64, pieces: impl Iterator<Item = Bytes>) -> (Vec<u8>, Vec<(usize, StreamTitle)>) {
        let (mut demux, mut audio, mut titles) = (Demux::new(interval), Vec::new(), Vec::new());
        for mut input in pieces {
            while let Some(piece) = demux.next(&mut input) {
                match piece {
                    Piece::Audio(bytes) => audio.extend(bytes),
                    Piece::Title(title) => titles.push((audio.len(), title)),
                    Piece::Stretch(_) => panic!("a station's body is one recording"),
                }
            }
            assert!(input.is_empty());
        }
        (audio, titles)
    }

    pub fn check(data: &[u8]) {
        let [interval, piece, bytes @ ..] = data else { return };
        let (interval, piece) = (u64::from(*interval).max(1), usize::from(*piece).max(1));
        let whole = split(interval, std::iter::once(Bytes::copy_from_slice(bytes)));
        assert!(whole.0.len() <= bytes.len());
        assert_eq!(whole, split(interval, bytes.chunks(piece).map(Bytes::copy_from_slice)));
        for (_, title) in &whole.1 {
            assert!(title.text.chars().count() <= 1_024 && !title.text.contains(char::is_control));
        }
        assert!(!shown(bytes).contains(char::is_control));
        if let Ok(Some(head)) = parse_head(bytes) {
            assert!(head.length <= bytes.len() && head.length <= 16 * 1024);
            // What follows does not change it.
            assert_eq!(parse_head(&bytes[..head.length]), Ok(Some(head)));
        }
    }
}

fuzz_target!(|data: &[u8]| stream::check(data));
