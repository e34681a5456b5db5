//! The head of a SHOUTcast server: `ICY 200 OK`, headers, an empty line.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// The most that a head may take, in bytes.
const HEAD_CAP: usize = 16 * 1024;

/// How such an answer begins.
const MAGIC: &[u8] = b"ICY ";

/// What a SHOUTcast server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::stream) struct Head {
    /// As in HTTP.
    pub status: u16,
    /// Those that are well formed.
    pub headers: HeaderMap,
    /// Bytes that the head takes; the body begins there.
    pub length: usize,
}

/// Reads a head off the beginning of `bytes`; none when more of it has to come.
///
/// # Errors
/// What is wrong with it, as the end of a sentence that begins with the host.
pub(in crate::stream) fn parse_head(bytes: &[u8]) -> Result<Option<Head>, &'static str> {
    let known = bytes.len().min(MAGIC.len());
    if !bytes[..known].eq_ignore_ascii_case(&MAGIC[..known]) {
        return Err("speaks neither HTTP nor SHOUTcast's protocol");
    }
    let Some(length) = end_of_head(&bytes[..bytes.len().min(HEAD_CAP)]) else {
        return if bytes.len() < HEAD_CAP { Ok(None) } else { Err("sent a head without an end") };
    };
    let mut lines = bytes[..length].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let status = lines.next().and_then(status).ok_or("sent a head without a status")?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(line[..colon].trim_ascii()).ok();
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok();
        if let (Some(name), Some(value)) = (name, value) {
            // The first one counts, and the others are not kept.
            headers.entry(name).or_insert(value);
        }
    }
    Ok(Some(Head { status, headers, length }))
}

/// Length of the head with its empty line, which may end in a bare line feed.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let feeds = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    feeds.map(|at| (at, &bytes[at + 1..])).find_map(|(at, rest)| match rest {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

/// SHOUTcast says 401 for a station that is off the air and 400 for one whose places are taken. Both pass.
fn status(line: &[u8]) -> Option<u16> {
    let rest = std::str::from_utf8(line.get(MAGIC.len()..)?).ok()?.trim();
    let (number, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    let number = (number.len() == 3).then(|| number.parse().ok()).flatten()?;
    let reason = reason.to_ascii_lowercase();
    let passes = reason.contains("unavailable") || reason.contains("full");
    Some(if matches!(number, 400 | 401) && passes { 503 } else { number })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_head_ends_at_its_empty_line_and_its_headers_are_kept() {
        let text = b"ICY 200 OK\r\nicy-notice1:<BR>\r\nicy-name:R\xe4dio\r\nbad name: x\r\nicy-metaint: 8192\r\n\r\nAUDIO";
        let head = parse_head(text).unwrap().unwrap();
        assert_eq!((head.status, &text[head.length..]), (200, &b"AUDIO"[..]));
        assert_eq!(head.headers["icy-metaint"], "8192");
        assert_eq!(head.headers["icy-name"].as_bytes(), b"R\xe4dio");
        assert_eq!(head.headers.len(), 3);
        for end in 0..head.length {
            assert_eq!(parse_head(&text[..end]), Ok(None), "{end}");
        }
        assert_eq!(parse_head(b"ICY 200 OK\n\nAUDIO").unwrap().unwrap().length, 12);
    }

    #[test]
    fn a_station_that_is_off_the_air_may_come_back() {
        let status = |line: &str| parse_head(format!("{line}\r\n\r\n").as_bytes()).unwrap().unwrap().status;
        assert_eq!(status("ICY 401 Service Unavailable"), 503);
        assert_eq!(status("ICY 400 Server Full"), 503);
        assert_eq!(status("ICY 401 Unauthorized"), 401);
        assert_eq!(status("ICY 404 Resource Not Found"), 404);
        assert_eq!(status("icy 200"), 200);
    }

    #[test]
    fn what_is_no_head_is_an_error() {
        for text in [
            &b"SSH-2.0-x\r\n\r\n"[..],
            b"X",
            b"ICY abc\r\n\r\n",
            b"ICY 20000\r\n\r\n",
            b"HTTP/2.0 200 OK\r\n\r\n",
        ] {
            assert!(parse_head(text).is_err(), "{}", String::from_utf8_lossy(text));
        }
        assert!(parse_head(b"\xff\xfb").is_err());
        let endless = [b"ICY 200 OK\r\n", &b"a: b\r\n".repeat(4_000)[..]].concat();
        assert!(parse_head(&endless).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_parser(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = parse_head(&bytes);
            let framed = [b"ICY 200 OK\r\n", &bytes[..], b"\r\n\r\n"].concat();
            prop_assert!(parse_head(&framed).unwrap().unwrap().length <= framed.len());
        }
    }
}
