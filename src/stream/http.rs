//! Requests: the clients, redirects, reach, and what failed when no answer came.

use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::{Bytes, BytesMut};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Version};
use tracing::warn;
use url::Url;

use super::Settings;
use super::icy::{self, Station};
use super::incoming::{Incoming, WebBody};
use super::range::{Asked, Head};
use super::reach::{self, Names, OutOfReach};
use crate::track::Reach;

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 10;
/// A request that fails sooner than this, without an answer, is made once more at once.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Hosts whose last answer is remembered.
const ANSWERS: usize = 8;

/// Why no usable answer came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// No host was reached: no route, no name, no connection in time.
    Unreachable(String),
    /// The host was reached, but gave no answer.
    Failing(String),
    /// The host cannot prove who it is.
    Insecure {
        /// The host in question.
        host: String,
        /// What is wrong with its certificate and what to do.
        why: String,
    },
    /// The address is against the rules.
    Forbidden {
        /// The host in question.
        host: String,
        /// The rule.
        why: String,
    },
}

/// A response whose head has arrived.
pub(super) struct Answer {
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

/// All that is needed for a request.
pub(super) struct Web {
    settings: Arc<Settings>,
    // Apart, since a pooled connection remembers the name and not the address that was checked.
    internet: OnceLock<Client>,
    anywhere: OnceLock<Client>,
    answers: Mutex<VecDeque<(String, Instant)>>,
}

impl Web {
    pub fn new(settings: Arc<Settings>) -> Result<Self, String> {
        // Fails only when a provider is installed already, and then that one serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
        HeaderValue::from_str(&settings.user_agent)
            .map_err(|_| "user_agent holds characters that HTTP does not allow".to_owned())?;
        Ok(Web { settings, internet: OnceLock::new(), anywhere: OnceLock::new(), answers: Mutex::default() })
    }

    /// One GET through redirects, and where they led. `headers` go to the origin of `url` only. With `titles` a radio station is asked
    /// to put titles between its bytes.
    pub async fn get(
        self: &Arc<Self>,
        url: &Url,
        headers: &HeaderMap,
        reach: Reach,
        asked: Asked,
        validator: Option<&str>,
        titles: bool,
    ) -> Result<(Answer, Url), NoAnswer> {
        let client = self.client(reach).await?;
        let origin = url.origin();
        let mut own = true;
        let mut url = url.clone();
        reach::check_url(&url, reach).map_err(|why| forbidden(&url, why))?;
        for _ in 0..=MAX_REDIRECTS {
            // Once they have left their origin, headers do not come back.
            own &= url.origin() == origin;
            let mut all = if own { headers.clone() } else { HeaderMap::new() };
            all.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            if titles {
                all.insert(HeaderName::from_static("icy-metadata"), HeaderValue::from_static("1"));
            }
            if let Asked::From(offset) = asked {
                if let Ok(range) = HeaderValue::from_str(&format!("bytes={offset}-")) {
                    all.insert(header::RANGE, range);
                }
                if let Some(Ok(validator)) = validator.map(HeaderValue::from_str) {
                    all.insert(header::IF_RANGE, validator);
                }
            }
            let asked_at = Instant::now();
            let mut sent = client.get(url.clone()).headers(all.clone()).send().await;
            if sent.as_ref().is_err_and(|error| hung_up(error) && asked_at.elapsed() < AT_ONCE) {
                // A kept connection that the server closed just then: nobody is to hear of that.
                sent = client.get(url.clone()).headers(all).send().await;
            }
            let response = sent.map_err(|error| self.failure(&url, error))?;
            self.answered(&host(&url));
            let Some(next) = redirect(&response, &url, reach)? else {
                return Ok((answer(response, host(&url)).await?, url));
            };
            url = next;
        }
        Err(forbidden(&url, "it redirects more than ten times"))
    }

    /// Whether a host other than `host` has answered since `since`.
    pub fn another_answered(&self, host: &str, since: Instant) -> bool {
        self.answers().iter().any(|(name, at)| name != host && *at >= since)
    }

    fn answered(&self, host: &str) {
        let mut answers = self.answers();
        answers.retain(|(name, _)| name != host);
        answers.push_front((host.to_owned(), Instant::now()));
        answers.truncate(ANSWERS);
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, VecDeque<(String, Instant)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client is built when it is first needed and off the main thread: it reads all certificates.
    async fn client(self: &Arc<Self>, reach: Reach) -> Result<Client, NoAnswer> {
        let slot = |web: &Web| match reach {
            Reach::Internet => web.internet.get().cloned(),
            Reach::Anywhere => web.anywhere.get().cloned(),
        };
        if let Some(client) = slot(self) {
            return Ok(client);
        }
        let web = Arc::clone(self);
        let built = tokio::task::spawn_blocking(move || {
            let slot = match reach {
                Reach::Internet => &web.internet,
                Reach::Anywhere => &web.anywhere,
            };
            if slot.get().is_none() {
                let client = build(&web.settings, reach)?;
                let _ = slot.set(client);
            }
            Ok::<_, reqwest::Error>(slot.get().cloned())
        });
        match built.await {
            Ok(Ok(Some(client))) => Ok(client),
            Ok(Err(error)) => Err(NoAnswer::Failing(format!("HTTP cannot be set up: {error}"))),
            _ => Err(NoAnswer::Failing("HTTP cannot be set up".to_owned())),
        }
    }

    /// Finds out from the chain of causes what kind of failure it was.
    fn failure(&self, url: &Url, error: reqwest::Error) -> NoAnswer {
        let (timeout, connect) = (error.is_timeout(), error.is_connect());
        let name = host(url);
        let error = error.without_url();
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        let mut last = String::new();
        while let Some(this) = cause {
            last = this.to_string();
            if let Some(out) = this.downcast_ref::<OutOfReach>() {
                return forbidden(url, out.0);
            }
            if let Some(tls) = this.downcast_ref::<rustls::Error>() {
                return tls_failure(&name, tls);
            }
            if let Some(io) = this.downcast_ref::<io::Error>().map(innermost) {
                if let Some(found) = io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                    return tls_failure(&name, found);
                }
                if error.is_dns() && reach::no_such_name(io) {
                    return NoAnswer::Failing(format!("there is no host {name}"));
                }
                if io.kind() == io::ErrorKind::UnexpectedEof && connect {
                    self.answered(&name);
                    return NoAnswer::Failing(format!("{name} hung up while TLS was being set up"));
                }
                if matches!(io.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset) {
                    self.answered(&name);
                    return NoAnswer::Failing(format!("{name}: {io}"));
                }
            }
            cause = this.source();
        }
        let text = if timeout { format!("{name} did not answer in time") } else { format!("{name}: {last}") };
        if connect || error.is_dns() { NoAnswer::Unreachable(text) } else { NoAnswer::Failing(text) }
    }
}

/// A certificate that is not valid *yet* means that our clock is behind: wait for it.
fn tls_failure(name: &str, error: &rustls::Error) -> NoAnswer {
    use rustls::CertificateError::{NotValidYet, NotValidYetContext};
    match error {
        rustls::Error::InvalidCertificate(NotValidYet | NotValidYetContext { .. }) => {
            NoAnswer::Unreachable(format!(
                "the certificate of {name} is not valid yet; the clock of this machine is probably not set"
            ))
        }
        rustls::Error::InvalidCertificate(problem) => {
            NoAnswer::Insecure { host: name.to_owned(), why: certificate_problem(problem) }
        }
        rustls::Error::InvalidMessage(_) => NoAnswer::Failing(format!(
            "{name} answers https with something else; perhaps its address begins with http:"
        )),
        rustls::Error::PeerIncompatible(_) => NoAnswer::Failing(format!(
            "{name} knows no TLS version that is still secure (1.2 or 1.3): {error}"
        )),
        rustls::Error::AlertReceived(alert) => {
            NoAnswer::Failing(format!("{name} refuses the TLS connection ({alert:?})"))
        }
        error => NoAnswer::Failing(format!("{name}: {error}")),
    }
}

/// An I/O error may be wrapped in others, as the TLS connector does, and `source` leaves those out.
fn innermost(mut error: &io::Error) -> &io::Error {
    while let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<io::Error>()) {
        error = inner;
    }
    error
}

/// What is wrong with a certificate, and what to do about it.
fn certificate_problem(problem: &rustls::CertificateError) -> String {
    use rustls::CertificateError as Problem;
    match problem {
        Problem::Expired => {
            "its certificate has expired; if that cannot be, see to the clock of this machine".to_owned()
        }
        Problem::ExpiredContext { time, not_after } => format!(
            "its certificate was good until {}, and here it is {}; if that is not the day, see to the clock of this machine",
            day(*not_after),
            day(*time)
        ),
        Problem::NotValidYet => {
            "its certificate is not valid yet; if that cannot be, see to the clock of this machine".to_owned()
        }
        Problem::NotValidYetContext { time, not_before } => format!(
            "its certificate is good from {} on, and here it is {}; if that is not the day, see to the clock of this machine",
            day(*not_before),
            day(*time)
        ),
        Problem::UnknownIssuer => "its certificate is signed by nobody whom this machine knows; \
            if the server is to be trusted, add its authority's certificate to those of this machine \
            (ca-certificates), else something between here and there listens in"
            .to_owned(),
        Problem::NotValidForName => "its certificate is for another host; check the address".to_owned(),
        Problem::NotValidForNameContext { presented, .. } => {
            let names: Vec<&str> = presented.iter().take(3).map(String::as_str).collect();
            format!("its certificate is for another host ({}); check the address", names.join(", "))
        }
        Problem::Revoked => "its certificate was revoked; do not trust it".to_owned(),
        other => format!("its certificate is not good ({other}); tell who runs the server"),
    }
}

/// As people write it: 2026-12-01.
fn day(time: rustls::pki_types::UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|_| "a day out of reach".to_owned(), |time| time.strftime("%Y-%m-%d").to_string())
}

/// Whether the connection ended before an answer came, which was not for want of a connection or of time.
fn hung_up(error: &reqwest::Error) -> bool {
    error.is_request() && !error.is_connect() && !error.is_timeout()
}

fn build(settings: &Settings, reach: Reach) -> Result<Client, reqwest::Error> {
    let builder = || {
        Client::builder()
            .user_agent(&settings.user_agent)
            .connect_timeout(settings.connect_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            // A proxy would resolve names out of our sight.
            .no_proxy()
            // Old SHOUTcast servers answer `ICY 200 OK`, which then comes as the beginning of a body.
            .http09_responses()
            .dns_resolver(Names { reach })
            .tcp_keepalive(Duration::from_secs(30))
            // Else a dead connection would be used again and again, since HTTP/2 shares it.
            .http2_keep_alive_interval(settings.silence)
            .http2_keep_alive_timeout(settings.silence)
            .pool_idle_timeout(Duration::from_secs(30))
            .pool_max_idle_per_host(2)
            // What a connection holds beside our store.
            .http2_initial_stream_window_size(512 * 1024)
            .http2_initial_connection_window_size(1024 * 1024)
    };
    builder().build().or_else(|error| {
        warn!(%error, "no certificates were found, so https cannot be played; install ca-certificates");
        builder().tls_certs_only([]).build()
    })
}

/// Where a response redirects to.
fn redirect(response: &Response, from: &Url, reach: Reach) -> Result<Option<Url>, NoAnswer> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = response.headers().get(header::LOCATION);
    let location = location.and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
    match location.and_then(|location| from.join(location).ok()) {
        None => Err(NoAnswer::Failing(format!("{} redirects to nowhere", host(from)))),
        Some(next) => {
            check_hop(from, &next, reach).map(|()| Some(next.clone())).map_err(|why| forbidden(&next, why))
        }
    }
}

/// Whether a redirect may be followed.
fn check_hop(from: &Url, next: &Url, reach: Reach) -> Result<(), &'static str> {
    if from.scheme() == "https" && next.scheme() == "http" {
        return Err("a redirect from https to http would give the connection away");
    }
    reach::check_url(next, reach)
}

/// Reads the head, or SHOUTcast's, which comes as the beginning of a body.
async fn answer(mut response: Response, host: String) -> Result<Answer, NoAnswer> {
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
        length: length.filter(|_| plain),
        content_range: text(header::CONTENT_RANGE).filter(|_| plain),
        accept_ranges: text(header::ACCEPT_RANGES).filter(|_| plain),
        etag: text(header::ETAG),
        last_modified: text(header::LAST_MODIFIED),
        retry_after: text(header::RETRY_AFTER),
        content_encoding: text(header::CONTENT_ENCODING),
    };
    Answer {
        head,
        content_type: text(header::CONTENT_TYPE),
        date: text(header::DATE).and_then(|value| httpdate::parse_http_date(&value).ok()),
        host,
        radio: radio && length.is_none(),
        station: Station::of(headers),
        body: body(interval),
    }
}

fn forbidden(url: &Url, why: &str) -> NoAnswer {
    NoAnswer::Forbidden { host: host(url), why: why.to_owned() }
}

/// Host and port as a person knows them.
pub(super) fn host(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) if url.scheme() == "file" => "this machine".to_owned(),
        (None, _) => "no host".to_owned(),
    }
}

/// The headers of a resolved stream, less those that belong to the connection and to ranges.
pub(super) fn headers(pairs: &[(String, String)], track: &str) -> HeaderMap {
    const OURS: [&str; 10] = [
        "range",
        "if-range",
        "accept-encoding",
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "te",
        "upgrade",
        "keep-alive",
    ];
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
        match parsed {
            Some((name, _)) if OURS.contains(&name.as_str()) => {}
            Some((name, mut value)) => {
                value.set_sensitive(true);
                map.append(name, value);
            }
            None => warn!(track, "a header of the stream is not valid HTTP and is left out"),
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_secure_and_within_reach() {
        let hop = |from: &str, location: &str, reach| {
            let from = Url::parse(from).unwrap();
            check_hop(&from, &from.join(location).unwrap(), reach).is_ok()
        };
        assert!(hop("https://a.example/x?key=1", "/y", Reach::Internet));
        assert!(hop("http://a.example/", "https://b.example/", Reach::Internet));
        assert!(!hop("https://a.example/", "http://a.example/", Reach::Anywhere));
        assert!(!hop("http://a.example/", "//127.0.0.1/", Reach::Internet));
        assert!(!hop("http://a.example/", "http://[::ffff:127.0.0.1]:80/", Reach::Internet));
        assert!(hop("http://a.example/", "http://127.0.0.1/", Reach::Anywhere));
        assert!(!hop("http://a.example/", "file:///etc/passwd", Reach::Anywhere));
    }

    #[test]
    fn headers_of_the_connection_cannot_be_set_from_outside() {
        let pairs = [
            ("Range", "bytes=5-"),
            ("Authorization", "Bearer x"),
            ("Host", "other"),
            ("bad name", "x"),
            ("a", "b\r\nc: d"),
        ];
        let map = headers(&pairs.map(|(name, value)| (name.to_owned(), value.to_owned())), "test");
        assert_eq!(map.len(), 1);
        assert!(map[header::AUTHORIZATION].is_sensitive());
        assert!(!format!("{map:?}").contains("Bearer"));
    }
}
