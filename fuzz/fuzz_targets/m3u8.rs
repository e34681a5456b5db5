//! No text breaks the parser of HLS playlists, takes long, or leads elsewhere than to a server.
#![no_main]
#![allow(dead_code, unused_imports)] // the program uses what is not fuzzed

use libfuzzer_sys::fuzz_target;

// The program's own files, without the libraries that the rest of it needs.
#[path = "../../src/stream/hls"]
mod hls {
    pub mod m3u8;

    use m3u8::{Playlist, parse};
    use url::Url;

    pub fn check(data: &[u8]) {
        let Ok(base) = Url::parse("https://radio.example/live/list.m3u8?key=secret") else { return };
        match parse(&String::from_utf8_lossy(data), &base) {
            Ok(Playlist::Master(urls)) => {
                assert!(!urls.is_empty() && urls.len() <= 100);
                assert!(urls.iter().all(|url| url.scheme() == "https" && url.host_str().is_some()));
            }
            Ok(Playlist::Media(media)) => {
                assert!(media.segments.len() <= m3u8::MOST_SEGMENTS && !media.target.is_zero());
                for segment in &media.segments {
                    assert!(segment.url.scheme() == "https" && segment.url.host_str().is_some());
                    assert!(segment.range.is_none_or(|range| range.from < range.to));
                    let map = segment.map.as_ref().and_then(|map| map.range);
                    assert!(map.is_none_or(|range| range.from < range.to));
                }
                assert!(media.segments.is_empty() || media.segment(media.live_edge()).is_some());
                assert!(media.segment(media.end()).is_none());
            }
            Err(_) => {}
        }
    }
}

fuzz_target!(|data: &[u8]| hls::check(data));
