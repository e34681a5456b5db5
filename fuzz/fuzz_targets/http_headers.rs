//! Content-Range, Retry-After and dates: no value breaks a parser, and an answer is believed only where it fits what
//! was asked for. The lines are header values in turn; the first byte chooses the status, the second the question.
#![no_main]
#![allow(dead_code, unused_imports)] // the program uses what is not fuzzed

use libfuzzer_sys::fuzz_target;

// The program's own files, without the libraries that the rest of it needs.
#[path = "../../src/stream"]
mod stream {
    pub mod range;

    use std::time::SystemTime;

    use range::{Asked, ContentRange, Entity, Head, Verdict, judge, retry_after};

    pub fn check(data: &[u8]) {
        let [status, question, text @ ..] = data else { return };
        let Ok(text) = std::str::from_utf8(text) else { return };
        let mut lines = text.split('\n');
        let mut line = || lines.next().map(str::to_owned);
        let known = Entity::new(line().and_then(|total| total.parse().ok()), line().as_deref(), line().as_deref());
        let head = Head {
            status: [200, 206, 416, 401, 429, 503, 500, 301][usize::from(status % 8)],
            length: line().and_then(|length| length.parse().ok()),
            content_range: line(),
            accept_ranges: line(),
            etag: line(),
            last_modified: line(),
            retry_after: line(),
            content_encoding: line(),
        };
        if let Some(ContentRange::Part { first, last, total }) = head.content_range.as_deref().and_then(ContentRange::parse) {
            assert!(first <= last && total.is_none_or(|total| last < total));
            let shown = total.map_or("*".to_owned(), |total| total.to_string());
            let again = ContentRange::parse(&format!("bytes {first}-{last}/{shown}"));
            assert_eq!(again, Some(ContentRange::Part { first, last, total }));
        }
        let _ = httpdate::parse_http_date(text);
        let _ = retry_after(text, SystemTime::UNIX_EPOCH);
        let asked = if *question == 0 { Asked::Whole } else { Asked::From(u64::from(*question) - 1) };
        match judge(asked, &known, &head, SystemTime::UNIX_EPOCH) {
            Verdict::Serve { from, end, entity, .. } => {
                assert!(from == 0 || asked == Asked::From(from));
                assert!(end.is_none_or(|end| end >= from));
                assert_eq!(known.difference(&entity), None);
            }
            Verdict::Ended { total } => assert!(matches!(asked, Asked::From(at) if at >= total)),
            _ => {}
        }
    }
}

fuzz_target!(|data: &[u8]| stream::check(data));
