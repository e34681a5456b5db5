//! A block of metadata: `StreamTitle='…';StreamUrl='…';`, with quotes that nobody escapes.

use super::charset::shown;

/// What a station says is playing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamTitle {
    /// Usually `artist - title`; at most 1,024 characters, empty when the station takes a title back.
    pub text: String,
    /// Whatever the station means it for: often a page or a picture. Not checked.
    pub url: Option<String>,
}

impl StreamTitle {
    /// None where the block says nothing about a title.
    pub(in crate::stream) fn parse(block: &[u8]) -> Option<StreamTitle> {
        let text = shown(field(block, b"StreamTitle")?);
        let url = field(block, b"StreamUrl").map(shown).filter(|url| !url.is_empty());
        Some(StreamTitle { text, url })
    }
}

/// Whether bytes can be metadata: padding only, or a key and an opening quote at their beginning.
pub(super) fn plausible(block: &[u8]) -> bool {
    let block = block.trim_ascii_start();
    block.iter().all(|byte| *byte == 0) || key_length(block).is_some()
}

/// Length of `key='` at the beginning.
fn key_length(bytes: &[u8]) -> Option<usize> {
    let name = bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte)).count();
    (name > 0 && bytes[name..].starts_with(b"='")).then_some(name + 2)
}

/// The value of a key.
fn field<'a>(block: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let end = block.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut rest = block[..end].trim_ascii_start();
    while let Some(opening) = key_length(rest) {
        let name = &rest[..opening - 2];
        let (value, after) = value(&rest[opening..]);
        if name.eq_ignore_ascii_case(key) {
            return Some(value);
        }
        rest = after.trim_ascii_start();
    }
    None
}

/// A value and what follows it. A quote and a semicolon end it only where nothing or another key follows; a value
/// without an end goes to the end of the block.
fn value(bytes: &[u8]) -> (&[u8], &[u8]) {
    let ends = |at: &usize| {
        let after = bytes[at + 2..].trim_ascii();
        after.is_empty() || key_length(after).is_some()
    };
    let mut closing = bytes.windows(2).enumerate().filter(|(_, pair)| *pair == b"';").map(|(at, _)| at);
    match closing.clone().find(ends).or_else(|| closing.next_back()) {
        Some(at) => (&bytes[..at], &bytes[at + 2..]),
        None => (bytes.strip_suffix(b"'").unwrap_or(bytes), &[]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(block: &[u8], text: &str, url: Option<&str>) {
        let expected = StreamTitle { text: text.to_owned(), url: url.map(str::to_owned) };
        assert_eq!(StreamTitle::parse(block), Some(expected), "{}", String::from_utf8_lossy(block));
    }

    #[test]
    fn titles_are_read_however_they_are_quoted() {
        check(b"StreamTitle='A - B';StreamUrl='http://c/';\0\0\0", "A - B", Some("http://c/"));
        check(b"StreamTitle='Don't Stop';StreamUrl='';", "Don't Stop", None);
        check(b"StreamTitle='Rock';n';Roll';", "Rock';n';Roll", None);
        check(b"StreamTitle=''Heroes'';StreamUrl='';", "'Heroes'", None);
        check(b"StreamTitle='no end", "no end", None);
        check(b"StreamTitle='no semicolon'\0\0", "no semicolon", None);
        check(b"StreamTitle='rest';rubbish", "rest", None);
        check(b"StreamTitle='';", "", None);
        check(b"StreamTitle='", "", None);
        check(b"streamtitle='lower'; StreamURL='u' ;", "lower", Some("u' ;"));
        check(b"StreamUrl='first';StreamTitle='second';", "second", Some("first"));
        check(b"adw_ad='true';StreamTitle='x';", "x", None);
        check(b"StreamTitle='Sigur R\xf3s';", "Sigur Rós", None);
        check("StreamTitle='Sigur Rós';".as_bytes(), "Sigur Rós", None);
        check(b"StreamTitle='a\0b\x1b';", "ab", None);
    }

    #[test]
    fn a_block_without_a_title_is_none() {
        for block in [&b""[..], b"\0\0\0", b"StreamUrl='x';", b"rubbish", b"StreamTitle=;", b"='x';"] {
            assert_eq!(StreamTitle::parse(block), None);
        }
    }

    #[test]
    fn audio_is_not_taken_for_metadata() {
        assert!(plausible(b"") && plausible(b"\0\0") && plausible(b"StreamTitle='") && plausible(b" a='"));
        assert!(!plausible(b"\xff\xfb\x90\x64") && !plausible(b"OggS\0\x02") && !plausible(b"='"));
    }

    proptest! {
        #[test]
        fn no_block_breaks_the_parser(block in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = StreamTitle::parse(&block);
            let framed = [b"StreamTitle='", &block[..], b"';"].concat();
            let title = StreamTitle::parse(&framed).unwrap();
            prop_assert!(title.text.chars().count() <= 1_024 && !title.text.contains(char::is_control));
        }
    }
}
