//! What single headers say.

use std::time::{Duration, SystemTime};

/// The value of a `Content-Range` header in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stream) enum ContentRange {
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
pub(in crate::stream) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Some(seconds) = number(value) {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

/// Whether a `Content-Encoding` means that bytes were changed. Some servers write other things there, such as a
/// character set, and send the file as it is.
pub(in crate::stream) fn is_compression(value: &str) -> bool {
    const CODINGS: [&str; 7] = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"];
    value.split(',').any(|coding| CODINGS.iter().any(|known| coding.trim().eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
    fn retry_after_takes_seconds_and_dates() {
        let now = httpdate::parse_http_date("Mon, 01 Jan 2024 00:00:00 GMT").unwrap();
        assert_eq!(retry_after("7", now), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Mon, 01 Jan 2024 00:00:09 GMT", now), Some(Duration::from_secs(9)));
        assert_eq!(retry_after("Sun, 31 Dec 2023 00:00:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", now), None);
    }
}
