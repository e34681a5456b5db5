//! Headers of partial answers, and whether an answer proves that it belongs to what was read so far. Pure.

use std::time::{Duration, SystemTime};

/// The value of a `Content-Range` header in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentRange {
    /// `bytes first-last/total`, with `last` included.
    Part {
        /// Offset of the first byte.
        first: u64,
        /// Offset of the last byte.
        last: u64,
        /// Length of the whole, unless it is `*`.
        total: Option<u64>,
    },
    /// `bytes */total`, in answers of 416.
    Unsatisfied {
        /// Length of the whole.
        total: u64,
    },
}

impl ContentRange {
    /// None for anything that is not exactly one well-formed byte range.
    pub fn parse(value: &str) -> Option<Self> {
        let value = value.trim();
        let (unit, rest) = value.split_once(|c: char| c.is_ascii_whitespace())?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (range, total) = rest.trim().split_once('/')?;
        let total = match total.trim() {
            "*" => None,
            digits => Some(number(digits)?),
        };
        if range.trim() == "*" {
            return total.map(|total| ContentRange::Unsatisfied { total });
        }
        let (first, last) = range.split_once('-')?;
        let (first, last) = (number(first.trim())?, number(last.trim())?);
        let fits = first <= last && last < u64::MAX && total.is_none_or(|total| last < total);
        fits.then_some(ContentRange::Part { first, last, total })
    }
}

/// Decimal digits only: `str::parse` would also take a sign.
fn number(digits: &str) -> Option<u64> {
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
}

/// The time that `Retry-After` asks for: seconds or a date.
pub(super) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Some(seconds) = number(value) {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

/// What tells one version of a file from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entity {
    /// Length in bytes.
    pub total: Option<u64>,
    /// Only a strong one: a weak one does not promise equal bytes.
    pub etag: Option<String>,
    /// As the server wrote it.
    pub last_modified: Option<String>,
}

impl Entity {
    /// A weak or malformed tag counts as none.
    pub fn new(total: Option<u64>, etag: Option<&str>, last_modified: Option<&str>) -> Self {
        let strong = |tag: &&str| tag.len() >= 2 && tag.starts_with('"') && tag.ends_with('"');
        Entity {
            total,
            etag: etag.map(str::trim).filter(strong).map(str::to_owned),
            last_modified: last_modified.map(|value| value.trim().to_owned()),
        }
    }

    /// What to send as `If-Range`.
    pub fn validator(&self) -> Option<&str> {
        self.etag.as_deref().or(self.last_modified.as_deref())
    }

    /// What differs, if anything proves that `other` is not the same file. A server that leaves a validator
    /// out of a partial answer is believed: it was sent `If-Range`, and 206 means that it matched.
    pub fn difference(&self, other: &Entity) -> Option<String> {
        if let (Some(ours), Some(theirs)) = (self.total, other.total)
            && ours != theirs
        {
            return Some(format!("its length went from {ours} to {theirs} bytes"));
        }
        match (&self.etag, &other.etag) {
            (Some(ours), Some(theirs)) if ours != theirs => Some("its ETag changed".to_owned()),
            (Some(_), Some(_)) => None,
            _ => match (&self.last_modified, &other.last_modified) {
                (Some(ours), Some(theirs)) if ours != theirs => Some("its date changed".to_owned()),
                _ => None,
            },
        }
    }

    /// Takes over what was not known yet.
    pub fn complete_from(&mut self, other: Entity) {
        self.total = self.total.or(other.total);
        self.etag = self.etag.take().or(other.etag);
        self.last_modified = self.last_modified.take().or(other.last_modified);
    }
}

/// The parts of a response's head that decide whether it is believed.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    /// For example 206.
    pub status: u16,
    /// `Content-Length`.
    pub length: Option<u64>,
    /// `Content-Range` as sent.
    pub content_range: Option<String>,
    /// `Accept-Ranges` as sent.
    pub accept_ranges: Option<String>,
    /// `ETag` as sent.
    pub etag: Option<String>,
    /// `Last-Modified` as sent.
    pub last_modified: Option<String>,
    /// `Retry-After` as sent.
    pub retry_after: Option<String>,
    /// `Content-Encoding` as sent.
    pub content_encoding: Option<String>,
}

impl Asked {
    /// As a `Range` header.
    pub fn header(self) -> Option<String> {
        match self {
            Asked::Whole => None,
            Asked::From(from) => Some(format!("bytes={from}-")),
            Asked::Part { from, to } => Some(format!("bytes={from}-{}", to.saturating_sub(1))),
        }
    }
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Without a `Range` header.
    Whole,
    /// `Range: bytes=N-`.
    From(u64),
    /// `Range: bytes=N-M`, of which at least one byte is asked for.
    Part {
        /// Offset of the first byte.
        from: u64,
        /// Offset after the last byte.
        to: u64,
    },
}

/// What to do with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The body holds the bytes `from..end`.
    Serve {
        /// Offset of the body's first byte.
        from: u64,
        /// Offset after its last byte; None when the body ends where the server ends it.
        end: Option<u64>,
        /// What the answer says about the file.
        entity: Entity,
        /// Whether the server serves ranges.
        ranges: bool,
    },
    /// Nothing lies at the offset: the file ends there.
    Ended {
        /// Length of the file.
        total: u64,
    },
    /// Another file than the one that was begun.
    Changed(String),
    /// The answer contradicts the question: ask without a range.
    NotAsAsked(String),
    /// The body is compressed although that was declined: its bytes are not those of the file.
    Compressed(String),
    /// The address is no longer good: resolve again.
    Refused,
    /// Busy: not before this time.
    Later(Option<Duration>),
    /// A failure that may pass.
    Failing,
    /// A failure that will not pass.
    Final,
}

/// Judges an answer by what was asked and what is known of the file.
pub(super) fn judge(asked: Asked, known: &Entity, head: &Head, now: SystemTime) -> Verdict {
    if let (200 | 206, Some(coding)) = (head.status, head.content_encoding.as_deref())
        && is_compression(coding)
    {
        return Verdict::Compressed(coding.trim().to_owned());
    }
    match head.status {
        200 => whole(asked, known, head),
        206 => part(asked, known, head),
        416 => unsatisfied(asked, known, head),
        401 | 403 | 404 | 410 => Verdict::Refused,
        429 | 503 => Verdict::Later(head.retry_after.as_deref().and_then(|value| retry_after(value, now))),
        408 | 425 | 500..=599 => Verdict::Failing,
        _ => Verdict::Final,
    }
}

/// Whether a `Content-Encoding` means that bytes were changed. Some servers write other things there, such as a
/// character set, and send the file as it is.
pub(super) fn is_compression(value: &str) -> bool {
    const CODINGS: [&str; 7] = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"];
    value.split(',').any(|coding| CODINGS.iter().any(|known| coding.trim().eq_ignore_ascii_case(known)))
}

fn whole(asked: Asked, known: &Entity, head: &Head) -> Verdict {
    let entity = Entity::new(head.length, head.etag.as_deref(), head.last_modified.as_deref());
    if let Some(difference) = known.difference(&entity) {
        return Verdict::Changed(difference);
    }
    let offered =
        head.accept_ranges.as_deref().is_some_and(|value| value.trim().eq_ignore_ascii_case("bytes"));
    // Who was asked for a range and sent the whole does not serve ranges, whatever the header says.
    let ranges = offered && asked == Asked::Whole;
    Verdict::Serve { from: 0, end: head.length, entity, ranges }
}

fn part(asked: Asked, known: &Entity, head: &Head) -> Verdict {
    // A part that says that it begins with the first byte is the beginning of the whole.
    let offset = match asked {
        Asked::From(offset) | Asked::Part { from: offset, .. } => offset,
        Asked::Whole => 0,
    };
    let range = head.content_range.as_deref().and_then(ContentRange::parse);
    let Some(ContentRange::Part { first, last, total }) = range else {
        return Verdict::NotAsAsked("it sent a part without saying which".to_owned());
    };
    if first != offset {
        return Verdict::NotAsAsked(format!("it was asked for byte {offset} and sent byte {first}"));
    }
    let end = last + 1;
    if head.length.is_some_and(|length| length != end - first) {
        return Verdict::NotAsAsked("its Content-Length contradicts its Content-Range".to_owned());
    }
    let entity = Entity::new(total, head.etag.as_deref(), head.last_modified.as_deref());
    match known.difference(&entity) {
        Some(difference) => Verdict::Changed(difference),
        None => Verdict::Serve { from: first, end: Some(end), entity, ranges: true },
    }
}

fn unsatisfied(asked: Asked, known: &Entity, head: &Head) -> Verdict {
    let Asked::From(offset) = asked else { return Verdict::Failing };
    let told = match head.content_range.as_deref().and_then(ContentRange::parse) {
        Some(ContentRange::Unsatisfied { total }) => Some(total),
        _ => None,
    };
    match (told, known.total) {
        (Some(told), Some(known)) if told != known => {
            Verdict::Changed(format!("its length went from {known} to {told} bytes"))
        }
        (Some(total), _) | (None, Some(total)) if offset >= total => Verdict::Ended { total },
        _ => Verdict::NotAsAsked(format!("it says that nothing lies at byte {offset}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(status: u16, content_range: &str) -> Head {
        Head { status, content_range: Some(content_range.to_owned()), ..Head::default() }
    }

    fn judged(asked: Asked, known: &Entity, head: &Head) -> Verdict {
        judge(asked, known, head, SystemTime::UNIX_EPOCH)
    }

    proptest! {
        #[test]
        fn any_range_that_is_written_is_read_back(first in 0u64..1 << 60, length in 1u64..1 << 40, rest in prop::option::of(0u64..1 << 40)) {
            let last = first + length - 1;
            let total = rest.map(|rest| last + 1 + rest);
            let shown = total.map_or("*".to_owned(), |total| total.to_string());
            prop_assert_eq!(
                ContentRange::parse(&format!("bytes {first}-{last}/{shown}")),
                Some(ContentRange::Part { first, last, total })
            );
        }

        #[test]
        fn no_header_value_makes_the_parser_fail_or_lie(value in "(bytes )?[-0-9*/ ]{0,30}") {
            if let Some(ContentRange::Part { first, last, total }) = ContentRange::parse(&value) {
                prop_assert!(first <= last);
                prop_assert!(total.is_none_or(|total| last < total));
            }
        }

        #[test]
        fn a_part_is_served_only_from_the_byte_that_was_asked_for(asked in 0u64..200, first in 0u64..200, length in 1u64..100) {
            let total = first + length + 7;
            let answer = head(206, &format!("bytes {first}-{}/{total}", first + length - 1));
            let verdict = judged(Asked::From(asked), &Entity::default(), &answer);
            match verdict {
                Verdict::Serve { from, end, .. } => {
                    prop_assert_eq!(asked, first);
                    prop_assert_eq!(from, asked);
                    prop_assert_eq!(end, Some(first + length));
                }
                _ => prop_assert_ne!(asked, first),
            }
        }

        #[test]
        fn a_file_of_another_length_is_never_served(ours in 1u64..1000, theirs in 1u64..1000, whole: bool) {
            let known = Entity { total: Some(ours), ..Entity::default() };
            let verdict = if whole {
                judged(Asked::From(0), &known, &Head { status: 200, length: Some(theirs), ..Head::default() })
            } else {
                judged(Asked::From(0), &known, &head(206, &format!("bytes 0-{}/{theirs}", theirs - 1)))
            };
            prop_assert_eq!(matches!(verdict, Verdict::Serve { .. }), ours == theirs);
            prop_assert_eq!(matches!(verdict, Verdict::Changed(_)), ours != theirs);
        }
    }

    #[test]
    fn malformed_ranges_are_refused() {
        for value in [
            "",
            "bytes",
            "bytes 5-4/10",
            "bytes 0-10/10",
            "bytes +0-1/2",
            "bytes 0-1",
            "items 0-1/2",
            "bytes */*",
        ] {
            assert_eq!(ContentRange::parse(value), None, "{value}");
        }
        assert_eq!(ContentRange::parse("bytes */10"), Some(ContentRange::Unsatisfied { total: 10 }));
    }

    #[test]
    fn weak_tags_are_no_proof_and_dates_stand_in_for_them() {
        let ours = Entity::new(None, Some("W/\"a\""), Some("Mon, 01 Jan 2024 00:00:00 GMT"));
        assert_eq!(ours.validator(), Some("Mon, 01 Jan 2024 00:00:00 GMT"));
        let other = Entity::new(None, Some("W/\"b\""), Some("Mon, 01 Jan 2024 00:00:00 GMT"));
        assert_eq!(ours.difference(&other), None);
        let later = Entity::new(None, Some("W/\"a\""), Some("Tue, 02 Jan 2024 00:00:00 GMT"));
        assert!(ours.difference(&later).is_some());
    }

    #[test]
    fn a_strong_tag_decides_over_the_date() {
        let ours = Entity::new(None, Some("\"a\""), Some("Mon, 01 Jan 2024 00:00:00 GMT"));
        let touched = Entity::new(None, Some("\"a\""), Some("Tue, 02 Jan 2024 00:00:00 GMT"));
        assert_eq!(ours.difference(&touched), None);
        assert!(ours.difference(&Entity::new(None, Some("\"b\""), None)).is_some());
    }

    #[test]
    fn a_compressed_body_is_never_served() {
        let answer = |status, coding: &str| Head {
            content_encoding: Some(coding.to_owned()),
            length: Some(9),
            ..head(status, "bytes 0-8/9")
        };
        for coding in ["gzip", " GZIP", "identity, br", "x-compress"] {
            for status in [200, 206] {
                let verdict = judged(Asked::From(0), &Entity::default(), &answer(status, coding));
                assert!(matches!(verdict, Verdict::Compressed(_)), "{status} {coding}");
            }
        }
        for coding in ["", "identity", "utf-8", "none"] {
            let verdict = judged(Asked::From(0), &Entity::default(), &answer(206, coding));
            assert!(matches!(verdict, Verdict::Serve { .. }), "{coding}");
        }
    }

    #[test]
    fn a_part_from_the_first_byte_on_is_the_beginning_of_the_whole() {
        let served =
            |first| judged(Asked::Whole, &Entity::default(), &head(206, &format!("bytes {first}-8/9")));
        assert!(matches!(served(0), Verdict::Serve { from: 0, end: Some(9), .. }));
        assert!(matches!(served(1), Verdict::NotAsAsked(_)));
    }

    #[test]
    fn an_answer_of_416_ends_the_file_only_when_the_lengths_agree() {
        let known = Entity { total: Some(100), ..Entity::default() };
        assert_eq!(
            judged(Asked::From(100), &known, &head(416, "bytes */100")),
            Verdict::Ended { total: 100 }
        );
        assert!(matches!(judged(Asked::From(50), &known, &head(416, "bytes */40")), Verdict::Changed(_)));
        assert!(matches!(judged(Asked::From(50), &known, &head(416, "bytes */100")), Verdict::NotAsAsked(_)));
        assert_eq!(
            judged(Asked::From(0), &Entity::default(), &head(416, "bytes */0")),
            Verdict::Ended { total: 0 }
        );
    }

    #[test]
    fn retry_after_takes_seconds_and_dates() {
        let now = httpdate::parse_http_date("Mon, 01 Jan 2024 00:00:00 GMT").unwrap();
        assert_eq!(retry_after("7", now), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Mon, 01 Jan 2024 00:00:09 GMT", now), Some(Duration::from_secs(9)));
        assert_eq!(retry_after("Sun, 31 Dec 2023 00:00:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", now), None);
    }
}
