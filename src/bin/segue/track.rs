//! Tracks as people read them, and as they name them.

use crate::bus::{Dict, get, text, texts};
use crate::out::clean;

/// `Title — Artist`, or the URI where there is no title.
pub fn name(track: &Dict) -> String {
    named(&text(track, "title"), &texts(track, "artists"), &text(track, "uri"))
}

/// The same from MPRIS metadata.
pub fn name_from_mpris(metadata: &Dict) -> String {
    named(&text(metadata, "xesam:title"), &texts(metadata, "xesam:artist"), &text(metadata, "xesam:url"))
}

fn named(title: &str, artists: &[String], uri: &str) -> String {
    match (title, artists) {
        ("", _) => clean(uri),
        (title, []) => clean(title),
        (title, artists) => clean(&format!("{title} — {}", artists.join(", "))),
    }
}

/// The length of a track on our own interfaces.
pub fn length(track: &Dict) -> Option<i64> {
    get(track, "duration_us")
}

/// `1:02`, `1:02:03`.
pub fn time(micros: i64) -> String {
    let seconds = micros.max(0) / 1_000_000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// What was typed as a URI: the path of a file that exists becomes its `file:` URI.
pub fn uri(typed: &str) -> String {
    let path = std::path::Path::new(typed);
    if !path.is_file() {
        return typed.to_owned();
    }
    let absolute = std::path::absolute(path).ok();
    absolute.and_then(|path| url::Url::from_file_path(path).ok()).map_or(typed.to_owned(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_on_a_player() {
        assert_eq!(time(-5), "0:00");
        assert_eq!(time(62_900_000), "1:02");
        assert_eq!(time(3_723_000_000), "1:02:03");
    }

    #[test]
    fn a_title_cannot_steer_the_terminal() {
        assert_eq!(named("a\x1b[2J", &["b\n".into()], ""), "a\u{fffd}[2J — b\u{fffd}");
        assert_eq!(named("", &[], "segue:demo:track:1"), "segue:demo:track:1");
    }

    #[test]
    fn a_file_that_exists_is_named_by_its_uri() {
        let file = tempfile::Builder::new().suffix(" x.flac").tempfile().unwrap();
        let uri = uri(file.path().to_str().unwrap());
        assert!(uri.starts_with("file:///") && uri.ends_with("%20x.flac"), "{uri}");
        assert_eq!(super::uri("segue:demo:track:1"), "segue:demo:track:1");
    }
}
