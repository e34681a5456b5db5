//! A machine whose wall clock is not set yet.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;

use rustls::pki_types::PrivatePkcs8KeyDer;

use super::*;

/// Valid from 2090 to 2099, and from 2001 to 2002; both for localhost, signed by themselves.
const EARLY: &[u8] = include_bytes!("certificates/early.der");
const LATE: &[u8] = include_bytes!("certificates/late.der");
const KEY: &[u8] = include_bytes!("certificates/key.der");

/// A server that shows this certificate to whoever connects.
fn tls_server(certificate: &'static [u8]) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.into()], PrivatePkcs8KeyDer::from(KEY).into())
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            // The client hangs up when it has seen the certificate.
            while session.complete_io(&mut connection.as_ref().unwrap()).is_ok_and(|(read, _)| read > 0) {}
        }
    });
    address
}

/// The system, but for the clock.
fn with_clock(is_set: bool) -> (Surroundings, Arc<AtomicBool>) {
    let set = Arc::new(AtomicBool::new(is_set));
    let asked = Arc::clone(&set);
    let clock_is_set = Arc::new(move || asked.load(Ordering::SeqCst));
    (Surroundings { clock_is_set, ..Surroundings::of_the_system() }, set)
}

fn secure(address: SocketAddr) -> ResolvedStream {
    ResolvedStream::plain(Url::parse(&format!("https://localhost:{}/a?key=secret", address.port())).unwrap())
}

#[tokio::test]
async fn certificates_are_not_judged_before_the_clock_is_set() {
    for (certificate, words) in [(EARLY, "good from 2090-01-01 on"), (LATE, "good until 2002-01-01")] {
        let (surroundings, clock) = with_clock(false);
        let streams = streams_on(settings(), surroundings);
        // Another host answers all the time, so that this is no outage; it does not tell the time.
        let other = Server::start(|_, _, reply| {
            reply.head(200, &[]);
            reply.body(b"x");
        });
        let live = ResolvedStream { live: true, ..ResolvedStream::plain(other.url("/radio")) };
        let (_radio, _handle) = streams.open(live, Resolver::never(), "radio".to_owned());
        let (reader, handle) =
            streams.open(secure(tls_server(certificate)), Resolver::never(), "test".to_owned());
        let mut changes = handle.changes();
        let waits = |event: &StreamEvent| matches!(event, StreamEvent::Waiting(WaitReason::Network, why) if why.contains("localhost") && why.contains("clock is not set"));
        event(&mut changes, waits).await;
        // Twice as long as a server that gives nothing is waited for.
        tokio::time::sleep(2 * settings().give_up).await;
        assert_eq!(handle.status().error, None);
        assert_eq!(handle.status().waiting.unwrap().reason, WaitReason::Network);
        clock.store(true, Ordering::SeqCst);
        let error = failure_in_time(reader, &handle).await.to_string();
        assert!(error.contains("localhost") && error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_servers_date_that_agrees_with_the_clock_vouches_for_it() {
    let (surroundings, _) = with_clock(false);
    let streams = streams_on(settings(), surroundings);
    let other = Server::start(|_, _, reply| {
        reply.status(200, &[("Date", &httpdate::fmt_http_date(SystemTime::now()))]);
    });
    let (reader, _handle) =
        streams.open(ResolvedStream::plain(other.url("/")), Resolver::never(), "other".to_owned());
    assert!(read_all(reader).await.0.unwrap().is_empty());
    let (reader, handle) = streams.open(secure(tls_server(LATE)), Resolver::never(), "test".to_owned());
    let error = failure_in_time(reader, &handle).await;
    assert!(matches!(error, StreamError::Insecure { .. }), "{error}");
}

/// How long an address is good that ends in a minute by our clock, where the server tells these dates.
async fn expires_in(
    clock_is_set: bool,
    headers: &'static [(&'static str, &'static str)],
) -> Option<Duration> {
    let server = Server::start(move |_, _, reply| {
        let mut headers = headers.to_vec();
        headers.extend([("Content-Length", "10"), ("Content-Type", "audio/flac")]);
        reply.head(200, &headers);
        reply.body(b"music");
        reply.stall();
    });
    let expiry = Expiry::WallClock(SystemTime::now() + Duration::from_secs(60));
    let resolved = ResolvedStream { expiry, ..ResolvedStream::plain(server.url("/")) };
    let streams = streams_on(settings(), with_clock(clock_is_set).0);
    let (_reader, handle) = streams.open(resolved, Resolver::never(), "test".to_owned());
    event(&mut handle.changes(), |event| matches!(event, StreamEvent::Head { .. })).await;
    handle.status().expires_in
}

#[tokio::test]
async fn an_expiry_by_the_wall_clock_counts_only_by_a_clock_that_can_be_believed() {
    assert_eq!(expires_in(false, &[]).await, None);
    let ours = expires_in(true, &[]).await.unwrap();
    assert!((Duration::from_secs(20)..=Duration::from_secs(60)).contains(&ours), "{ours:?}");
    // The server's clock says 2001: by that the address is good for decades.
    const SAYS_2001: [(&str, &str); 1] = [("Date", "Mon, 01 Jan 2001 00:00:00 GMT")];
    for clock_is_set in [true, false] {
        let theirs = expires_in(clock_is_set, &SAYS_2001).await.unwrap();
        assert!(theirs > Duration::from_secs(20 * 365 * 24 * 3600), "{theirs:?}");
    }
}

#[tokio::test]
async fn the_date_of_a_cached_answer_is_as_old_as_the_cache_says() {
    let date = |headers| expires_in(false, headers);
    let fresh = date(&[("Date", "Mon, 01 Jan 2001 00:00:00 GMT")]).await.unwrap();
    let cached = date(&[("Date", "Mon, 01 Jan 2001 00:00:00 GMT"), ("Age", "100000")]).await.unwrap();
    let older = (fresh - cached).as_secs();
    assert!((99_900..=100_100).contains(&older), "{older}");
}
