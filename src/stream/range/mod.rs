//! Whether an answer proves that it belongs to what was read so far: by its headers, and by the file that they tell
//! of. Pure.

use std::time::{Duration, SystemTime};

mod entity;
mod headers;

pub(super) use entity::Entity;
pub(super) use headers::{ContentRange, is_compression, retry_after};

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
}
