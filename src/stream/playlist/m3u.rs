//! M3U, plain and extended.

use super::{MOST_ENTRIES, Raw, lines};

/// Whether it is HTTP Live Streaming, which looks like an extended M3U but has tags of its own.
pub(super) fn is_hls(text: &str) -> bool {
    lines(text).any(|line| line.starts_with("#EXT-X-"))
}

pub(super) fn parse(text: &str) -> Vec<Raw> {
    let mut entries = Vec::new();
    let mut next = Raw::default();
    for line in lines(text) {
        if let Some(about) = strip_tag(line, "#EXTINF:") {
            let (seconds, title) = split_info(about);
            next.seconds = seconds;
            title.clone_into(&mut next.title);
        } else if line.starts_with('#') {
            // A comment, or a tag that says nothing about playing.
        } else if line.starts_with('<') {
            // A web page that is served as a playlist.
            return Vec::new();
        } else {
            entries.push(Raw { link: line.to_owned(), ..std::mem::take(&mut next) });
            if entries.len() == MOST_ENTRIES {
                break;
            }
        }
    }
    entries
}

fn strip_tag<'a>(line: &'a str, tag: &str) -> Option<&'a str> {
    let (start, rest) = line.split_at_checked(tag.len())?;
    start.eq_ignore_ascii_case(tag).then_some(rest)
}

/// `-1 key="a, b",Title` → −1, `Title`. A comma in quotes is none.
fn split_info(about: &str) -> (Option<f64>, &str) {
    let mut quoted = false;
    let comma = about.find(|character| {
        quoted ^= character == '"';
        character == ',' && !quoted
    });
    let (info, title) = match comma.or_else(|| about.find(',')) {
        Some(comma) => (&about[..comma], &about[comma + 1..]),
        None => (about, ""),
    };
    let seconds = info.split_whitespace().next().and_then(|number| number.parse().ok());
    (seconds.filter(|seconds: &f64| seconds.is_finite()), title)
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::super::tests::entries;
    use super::*;

    fn check(text: &[u8], url: &str, title: Option<&str>, millis: Option<u64>) {
        let expected = [(url.to_owned(), title.map(str::to_owned), millis)];
        assert_eq!(entries(Kind::M3u, text), expected, "{}", String::from_utf8_lossy(text));
    }

    #[test]
    fn links_titles_and_durations_are_read_in_all_their_spellings() {
        check(b"http://a/b", "http://a/b", None, None);
        check(b"\xef\xbb\xbf#EXTM3U\r\n#EXTINF:-1,Name\r\nhttp://a/b\r\n", "http://a/b", Some("Name"), None);
        check(b"#EXTM3U\r#EXTINF:90.5,A, B\rhttp://a/b", "http://a/b", Some("A, B"), Some(90_500));
        check(
            b"#extinf:7 logo=\"x,y\",Name\n\n# comment\n http://a/b ",
            "http://a/b",
            Some("Name"),
            Some(7_000),
        );
        check(b"#EXTINF:3,Caf\xe9\nhttp://a/b", "http://a/b", Some("Café"), Some(3_000));
        check(b"#EXTINF:3\nhttp://a/b", "http://a/b", None, Some(3_000));
        check(b"#EXTINF:x,\"Half\nhttp://a/b", "http://a/b", Some("\"Half"), None);
    }

    #[test]
    fn a_web_page_or_nothing_is_no_playlist() {
        for text in [&b""[..], b"#EXTM3U\n", b"<!DOCTYPE html>\n<body>\n</body>"] {
            assert!(entries(Kind::M3u, text).is_empty());
        }
    }

    #[test]
    fn hls_is_known_by_its_tags() {
        assert!(is_hls("#EXTM3U\r\n#EXT-X-TARGETDURATION:6\r\n"));
        assert!(!is_hls("#EXTM3U\n#EXTINF:6,x\na#EXT-X-\n"));
    }

    #[test]
    fn a_thousand_entries_are_kept() {
        assert_eq!(entries(Kind::M3u, "http://a/b\n".repeat(5_000).as_bytes()).len(), MOST_ENTRIES);
    }
}
