//! No bytes break the readers of HLS segments (transport streams, fragments of MP4, ADTS); how they are cut makes no
//! difference, and no more comes out than went in. The first two bytes choose the cut and whether a head comes first.
#![no_main]
#![allow(dead_code, unused_imports)] // the program uses what is not fuzzed

use libfuzzer_sys::fuzz_target;

// The program's own files, without the libraries that the rest of it needs.
#[path = "../../src/stream/hls"]
mod hls {
    pub mod adts;
    pub mod mp4;
    pub mod sink;
    pub mod sound;
    pub mod ts;

    use sound::{Part, Sound};

    const ENCRYPTED: &str = "it is encrypted, which cannot be played";

    /// Recordings with their types, until something cannot be played.
    fn read(segments: &[&[u8]], head: bool, cut: usize) -> (Vec<(&'static str, Vec<u8>)>, Option<&'static str>) {
        let (mut sound, mut parts) = (Sound::default(), Vec::new());
        let mut result = Ok(());
        for (n, segment) in segments.iter().enumerate() {
            if head && n == 0 {
                result = sound.head(segment, &mut parts);
                if result.is_err() {
                    break;
                }
                continue;
            }
            sound.begin(None, n > 2, &mut parts);
            result = segment.chunks(cut).try_for_each(|piece| sound.push(piece, &mut parts));
            result = result.and_then(|()| sound.finish(&mut parts));
            if result.is_err() {
                break;
            }
        }
        sound.close(&mut parts);
        let mut stretches = Vec::new();
        for part in parts {
            match part {
                Part::Stretch(kind) => stretches.push((kind, Vec::new())),
                Part::Bytes(bytes) => stretches.last_mut().expect("its type is told first").1.extend(bytes),
            }
        }
        (stretches, result.err())
    }

    pub fn check(data: &[u8]) {
        let [cut, head, rest @ ..] = data else { return };
        let segments: Vec<&[u8]> = rest.chunks(rest.len().div_ceil(3).max(1)).collect();
        let head = head % 2 == 0;
        let whole = read(&segments, head, usize::MAX);
        let pieces = read(&segments, head, usize::from(*cut).max(1));
        if whole.1.is_none() && pieces.1.is_none() {
            assert_eq!(whole.0, pieces.0);
        }
        let heads: usize = if head { segments.first().map_or(0, |head| head.len()) } else { 0 };
        let out: usize = whole.0.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(out <= rest.len() + heads * whole.0.len());
    }
}

fuzz_target!(|data: &[u8]| hls::check(data));
