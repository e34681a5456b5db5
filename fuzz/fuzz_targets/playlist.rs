//! No text breaks a parser of playlists, takes long, or leads elsewhere than to a server. The first byte chooses the
//! format.
#![no_main]
#![allow(dead_code, unused_imports)] // the program uses what is not fuzzed

use libfuzzer_sys::fuzz_target;

// The program's own files, without the libraries that the rest of it needs.
#[path = "../../src/stream"]
mod stream {
    pub mod icy;
    pub mod playlist;

    use playlist::{Found, Kind, MOST_ENTRIES, detect, parse};
    use url::Url;

    pub fn check(data: &[u8]) {
        let [kind, text @ ..] = data else { return };
        let Ok(base) = Url::parse("https://radio.example/lists/all?key=secret") else { return };
        let _ = detect(None, "/a", text);
        let called = detect(None, "/a.m3u", text);
        let kind = match kind % 4 {
            0 => Kind::Pls,
            1 => Kind::M3u,
            2 => Kind::Xspf,
            _ => called.unwrap_or(Kind::M3u),
        };
        match parse(kind, text, &base) {
            Ok(Found::Entries { entries, finite }) => {
                assert!(!entries.is_empty() && entries.len() <= MOST_ENTRIES);
                assert!(!finite || entries.len() > 1 || entries[0].duration.is_some());
                for entry in entries {
                    assert!(matches!(entry.url.scheme(), "http" | "https") && entry.url.host_str().is_some());
                    assert!(!format!("{entry:?}").contains("secret") || String::from_utf8_lossy(text).contains("secret"));
                }
            }
            Ok(Found::Hls { .. }) => assert_eq!(kind, Kind::M3u),
            Err(_) => {}
        }
    }
}

fuzz_target!(|data: &[u8]| stream::check(data));
