//! Heads of answers, of HTTP and of SHOUTcast.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use reqwest::header::{self, HeaderMap, HeaderName};
use reqwest::{Response, Version};

use super::NoAnswer;
use crate::stream::icy::{self, Station};
use crate::stream::incoming::{Incoming, WebBody};
use crate::stream::range::Head;

/// A response whose head has arrived.
pub(in crate::stream) struct Answer {
    pub body: Incoming,
    pub head: Head,
    pub content_type: Option<String>,
    /// The server's clock.
    pub date: Option<SystemTime>,
    /// Who answered, after redirects.
    pub host: String,
    /// It is a radio station: it speaks of itself in `icy-…` headers, or SHOUTcast's own protocol, and tells no
    /// length.
    pub radio: bool,
    /// What the station says about itself.
    pub station: Option<Station>,
}

/// Stations whose software cannot leave the length out tell this one or a greater.
const ENDLESS: u64 = i32::MAX as u64;

/// Reads the head, or SHOUTcast's, which comes as the beginning of a body.
pub(super) async fn answer(mut response: Response, host: String) -> Result<Answer, NoAnswer> {
    if response.version() != Version::HTTP_09 {
        let (status, length) = (response.status().as_u16(), response.content_length());
        let headers = std::mem::take(response.headers_mut());
        return Ok(answer_of(status, length, &headers, host, false, |interval| {
            Incoming::Web(Box::new(WebBody::new(response, Bytes::new(), interval)))
        }));
    }
    let mut read = BytesMut::new();
    let head = loop {
        match icy::parse_head(&read) {
            Ok(Some(head)) => break head,
            Ok(None) => {}
            Err(why) => return Err(NoAnswer::Failing(format!("{host} {why}"))),
        }
        match response.chunk().await {
            Ok(Some(bytes)) => read.extend_from_slice(&bytes),
            _ => return Err(NoAnswer::Failing(format!("{host} closed the connection within its head"))),
        }
    };
    let body = read.split_off(head.length).freeze();
    Ok(answer_of(head.status, None, &head.headers, host, true, |interval| {
        Incoming::Web(Box::new(WebBody::new(response, body, interval)))
    }))
}

/// `body` is given the distance of titles in it.
fn answer_of(
    status: u16,
    length: Option<u64>,
    headers: &HeaderMap,
    host: String,
    shoutcast: bool,
    body: impl FnOnce(Option<u64>) -> Incoming,
) -> Answer {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let interval = icy::interval(headers);
    // Chunks decide over a length that is told as well.
    let told = || text(header::CONTENT_LENGTH).filter(|_| !headers.contains_key(header::TRANSFER_ENCODING));
    let length = length.or_else(|| told()?.parse().ok());
    let radio = shoutcast || headers.keys().any(|name| name.as_str().starts_with("icy-"));
    // Where titles stand between the bytes, lengths and offsets count them too and are of no use.
    let plain = interval.is_none();
    let head = Head {
        status,
        length: length.filter(|length| plain && !(radio && *length >= ENDLESS)),
        content_range: text(header::CONTENT_RANGE).filter(|_| plain),
        accept_ranges: text(header::ACCEPT_RANGES).filter(|_| plain),
        etag: text(header::ETAG),
        last_modified: text(header::LAST_MODIFIED),
        retry_after: text(header::RETRY_AFTER),
        content_encoding: text(header::CONTENT_ENCODING),
    };
    let date = text(header::DATE).and_then(|value| httpdate::parse_http_date(&value).ok());
    // What a cache answers is as old as it says, and so is its date.
    let age =
        text(header::AGE).and_then(|age| age.trim().parse().ok()).map_or(Duration::ZERO, Duration::from_secs);
    Answer {
        head,
        content_type: text(header::CONTENT_TYPE),
        date: date.and_then(|date| date.checked_add(age)),
        host,
        // A length so great is none.
        radio: radio && length.is_none_or(|length| length >= ENDLESS),
        station: Station::of(headers),
        body: body(interval),
    }
}
