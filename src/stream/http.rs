//! Requests: the clients, redirects, reach, and what failed when no answer came.

mod answer;
mod failure;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response};
use tracing::warn;
use url::Url;

pub(super) use answer::Answer;
use answer::answer;
pub(super) use failure::{Missing, NoAnswer};
use failure::{forbidden, hung_up};

use super::Settings;
use super::names::{self, LookUp, Names};
use super::range::Asked;
use super::reach::{self, Within};
use crate::system::{clock, routes};
use crate::track::Reach;

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 10;
/// A request that fails sooner than this, without an answer, is made once more at once.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Hosts whose last answer is remembered.
const ANSWERS: usize = 8;
/// A clock that is off by less than this can judge certificates.
const ABOUT: Duration = Duration::from_secs(24 * 3600);

/// All that is needed for a request.
pub(super) struct Web {
    pub(super) settings: Arc<Settings>,
    // Apart, since a pooled connection remembers the name and not the address that was checked.
    internet: OnceLock<Client>,
    anywhere: OnceLock<Client>,
    pub(super) names: Arc<Names>,
    pub(super) surroundings: Surroundings,
    answers: Mutex<VecDeque<Answered>>,
    /// The date that a server told last was about ours.
    date_agrees: AtomicBool,
}

/// What the operating system is asked for. Tests put something else in its place.
#[derive(Clone)]
pub(super) struct Surroundings {
    /// Looks names up.
    pub look_up: LookUp,
    /// Whether the kernel says that the wall clock is synchronised.
    pub clock_is_set: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Whether any route leads off this machine.
    pub routes: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Surroundings {
    pub fn of_the_system() -> Self {
        Surroundings {
            look_up: names::by_the_system(),
            clock_is_set: Arc::new(clock::is_synchronised),
            routes: Arc::new(routes::lead_anywhere),
        }
    }
}

/// A host that answered.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    /// As in messages.
    pub host: String,
    /// As in URLs, to look it up and to connect to it.
    pub name: url::Host,
    pub port: u16,
    pub at: Instant,
}

impl Web {
    pub fn new(settings: Arc<Settings>, surroundings: Surroundings) -> Result<Self, String> {
        // Fails only when a provider is installed already, and then that one serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
        HeaderValue::from_str(&settings.user_agent)
            .map_err(|_| "user_agent holds characters that HTTP does not allow".to_owned())?;
        Ok(Web {
            settings,
            internet: OnceLock::new(),
            anywhere: OnceLock::new(),
            names: Names::new(Arc::clone(&surroundings.look_up)),
            surroundings,
            answers: Mutex::default(),
            date_agrees: AtomicBool::new(false),
        })
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
            if let Some(range) = asked.header() {
                if let Ok(range) = HeaderValue::from_str(&range) {
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
            self.answered(&url);
            let Some(next) = redirect(&response, &url, reach)? else {
                let answer = answer(response, host(&url)).await?;
                self.learn_date(answer.date);
                return Ok((answer, url));
            };
            url = next;
        }
        Err(forbidden(&url, "it redirects more than ten times"))
    }

    /// Whether what was missing is there for others, since then: other names are found, other hosts answer.
    pub fn others_have(&self, missing: &Missing, since: Instant) -> bool {
        match missing {
            Missing::Name(name) => self.names.another_answered(name, since),
            Missing::Host(host) => {
                self.answers().iter().any(|answered| answered.host != *host && answered.at >= since)
            }
            Missing::Time => false,
        }
    }

    /// The last hosts that answered, the newest first.
    pub(super) fn last_answers(&self) -> Vec<Answered> {
        self.answers().iter().cloned().collect()
    }

    pub(super) fn answered(&self, url: &Url) {
        let (Some(name), Some(port)) = (url.host(), url.port_or_known_default()) else { return };
        let answered = Answered { host: host(url), name: name.to_owned(), port, at: Instant::now() };
        let mut answers = self.answers();
        answers.retain(|known| known.host != answered.host);
        answers.push_front(answered);
        answers.truncate(ANSWERS);
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, VecDeque<Answered>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server's clock says how good ours is, where the kernel does not.
    fn learn_date(&self, date: Option<SystemTime>) {
        if let Some(date) = date {
            let now = SystemTime::now();
            let off = now.duration_since(date).or_else(|_| date.duration_since(now)).unwrap_or_default();
            self.date_agrees.store(off < ABOUT, Ordering::Relaxed);
        }
    }

    /// The wall clock, where the kernel says that it is synchronised.
    pub fn wall_clock(&self) -> Option<SystemTime> {
        (self.surroundings.clock_is_set)().then(SystemTime::now)
    }

    /// Whether the clock is good enough to judge a certificate by.
    fn clock_can_judge(&self) -> bool {
        (self.surroundings.clock_is_set)() || self.date_agrees.load(Ordering::Relaxed)
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
                let client = build(&web.settings, &web.names, reach)?;
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
}

fn build(settings: &Settings, names: &Arc<Names>, reach: Reach) -> Result<Client, reqwest::Error> {
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
            .dns_resolver(Within { names: Arc::clone(names), reach })
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
