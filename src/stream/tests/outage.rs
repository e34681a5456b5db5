//! Name servers that change their mind or say nothing, and machines without a route.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use super::super::names::{Family, LookUp, NoAddress};
use super::*;

/// Each name has one IPv4 address, by this function of the name and of how often it was asked for.
fn look_up(answer: impl Fn(&str, usize) -> Option<&'static str> + Send + Sync + 'static) -> LookUp {
    let asked = AtomicUsize::new(0);
    Arc::new(move |name, family| match family {
        Family::V6 => Err(NoAddress::NoSuchName),
        Family::V4 => match answer(name, asked.fetch_add(1, Ordering::SeqCst)) {
            Some(address) => Ok(vec![SocketAddr::new(address.parse().unwrap(), 0)]),
            None => Err(NoAddress::NoAnswer("no name server answers".to_owned())),
        },
    })
}

fn on_a_machine_with(look_up: LookUp, routes: bool) -> Surroundings {
    Surroundings { look_up, routes: Arc::new(move || routes), ..Surroundings::of_the_system() }
}

fn named(server: &Server, host: &str) -> Url {
    Url::parse(&format!("http://{host}:{}/a?key=secret", server.address.port())).unwrap()
}

#[tokio::test]
async fn a_name_that_first_leads_elsewhere_and_then_to_this_machine_is_refused() {
    let server = Server::start(|_, _, reply| reply.status(200, &[]));
    // 192.0.2.1 is nobody's: the first connection fails, and the name is looked up again.
    let surroundings =
        on_a_machine_with(look_up(|_, n| Some(if n == 0 { "192.0.2.1" } else { "127.0.0.1" })), true);
    let quick = Settings {
        connect_timeout: Duration::from_millis(200),
        backoff_min: Duration::from_secs(1),
        backoff_max: Duration::from_secs(6),
        give_up: Duration::from_secs(60),
        ..settings()
    };
    let streams = streams_on(quick, surroundings);
    let url = named(&server, "rebinding.example");
    let resolved = ResolvedStream { reach: Reach::Internet, ..ResolvedStream::plain(url) };
    let (reader, handle) = streams.open(resolved, Resolver::never(), "test".to_owned());
    event(&mut handle.changes(), |event| matches!(event, StreamEvent::Waiting(..))).await;
    let error = failure_in_time(reader, &handle).await;
    assert!(matches!(error, StreamError::Forbidden { .. }), "{error}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn what_a_connection_that_is_kept_leads_to_is_not_lent_to_who_may_not_go_there() {
    // The same name, kept open for who may reach this machine.
    let server = Server::start(|_, _, reply| {
        reply.body(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        reply.stall();
    });
    let streams = streams_on(settings(), on_a_machine_with(look_up(|_, _| Some("127.0.0.1")), true));
    let url = named(&server, "kept.example");
    let (reader, _handle) =
        streams.open(ResolvedStream::plain(url.clone()), Resolver::never(), "user".to_owned());
    assert_same(read_all(reader).await.0, b"ok");
    let resolved = ResolvedStream { reach: Reach::Internet, ..ResolvedStream::plain(url) };
    let (reader, _handle) = streams.open(resolved, Resolver::never(), "plugin".to_owned());
    assert!(matches!(failure(reader).await, StreamError::Forbidden { .. }));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_name_that_no_server_answers_for_is_waited_for_while_hosts_without_a_name_answer() {
    let data = data(200_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |_, request, reply| reply.range(request, &source));
    let back = Arc::new(AtomicBool::new(false));
    let there = Arc::clone(&back);
    let names = look_up(move |_, _| there.load(Ordering::SeqCst).then_some("127.0.0.1"));
    let streams = streams_on(settings(), on_a_machine_with(names, true));
    let (other, _handle) =
        streams.open(ResolvedStream::plain(server.url("/other")), Resolver::never(), "other".to_owned());
    let url = named(&server, "music.example");
    let (reader, handle) = streams.open(ResolvedStream::plain(url), Resolver::never(), "test".to_owned());
    assert_same(read_all(other).await.0, &data);
    event(&mut handle.changes(), |event| matches!(event, StreamEvent::Waiting(WaitReason::Network, _))).await;
    tokio::time::sleep(2 * settings().give_up).await;
    assert_eq!(handle.status().error, None);
    back.store(true, Ordering::SeqCst);
    assert_same(read_all(reader).await.0, &data);
}

#[tokio::test]
async fn a_name_that_no_server_answers_for_is_given_up_while_other_names_are_found() {
    let server = Server::start(|_, _, reply| {
        reply.head(200, &[]);
        reply.body(b"x");
    });
    let names = look_up(|name, _| (name == "other.example").then_some("127.0.0.1"));
    let streams = streams_on(settings(), on_a_machine_with(names, true));
    let (reader, handle) = streams.open(
        ResolvedStream::plain(named(&server, "broken.example")),
        Resolver::never(),
        "test".to_owned(),
    );
    let live = ResolvedStream { live: true, ..ResolvedStream::plain(named(&server, "other.example")) };
    let (_radio, _radio_handle) = streams.open(live, Resolver::never(), "radio".to_owned());
    let error = failure_in_time(reader, &handle).await;
    assert!(matches!(error, StreamError::NoData { .. }), "{error}");
    assert!(error.to_string().contains("broken.example"));
}

fn no_such_name() -> LookUp {
    Arc::new(|_, _| Err(NoAddress::NoSuchName))
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_the_tracks_fault_where_there_is_a_route_and_an_outage_where_there_is_none()
 {
    let url = Url::parse("http://mistyped.example/a?key=secret").unwrap();
    let streams = streams_on(settings(), on_a_machine_with(no_such_name(), true));
    let (reader, handle) =
        streams.open(ResolvedStream::plain(url.clone()), Resolver::never(), "test".to_owned());
    let error = failure_in_time(reader, &handle).await.to_string();
    assert!(error.contains("there is no host mistyped.example"), "{error}");
    let streams = streams_on(settings(), on_a_machine_with(no_such_name(), false));
    let (_reader, handle) = streams.open(ResolvedStream::plain(url), Resolver::never(), "test".to_owned());
    event(&mut handle.changes(), |event| matches!(event, StreamEvent::Waiting(WaitReason::Network, _))).await;
    tokio::time::sleep(2 * settings().give_up).await;
    assert_eq!(handle.status().error, None);
}

#[tokio::test]
async fn a_plugin_that_cannot_be_asked_while_the_network_is_away_is_asked_until_it_is_back() {
    let data = data(300_000);
    let source = Arc::clone(&data);
    let server = Server::start(move |number, request, reply| match (number, request.path.as_str()) {
        (0, _) => reply.part(request, &source, 100_000),
        (_, "/fresh") => reply.range(request, &source),
        _ => reply.status(403, &[]),
    });
    // The server is known by its address, and answers; but names are not found, so that the plugin fails.
    let back = Arc::new(AtomicBool::new(false));
    let there = Arc::clone(&back);
    let names = look_up(move |_, n| (n == 0 || there.load(Ordering::SeqCst)).then_some("127.0.0.1"));
    let streams = streams_on(settings(), on_a_machine_with(names, true));
    let named = named(&server, "music.example");
    let (fresh, returned) = (server.url("/fresh"), Arc::clone(&back));
    let resolver = Resolver::new(move |_| {
        if returned.load(Ordering::SeqCst) {
            return Ok(ResolvedStream::plain(fresh.clone()));
        }
        let message = "the service does not answer".to_owned();
        Err(ResolveError { kind: ResolveErrorKind::Unreachable(None), message })
    });
    let resolver_too = Arc::clone(&resolver) as Arc<dyn Resolve>;
    let (reader, handle) = streams.open(ResolvedStream::plain(named), resolver_too, "test".to_owned());
    let mut changes = handle.changes();
    event(&mut changes, |event| matches!(event, StreamEvent::Waiting(WaitReason::Network, _))).await;
    while resolver.calls() < 6 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(handle.status().error, None);
    assert_eq!(handle.status().waiting.unwrap().reason, WaitReason::Network);
    assert_eq!(server.requests().len(), 2, "the refused address is not asked for again");
    back.store(true, Ordering::SeqCst);
    assert_same(read_all(reader).await.0, &data);
}

#[tokio::test]
async fn whether_the_network_is_away_is_asked_of_routes_known_hosts_and_names() {
    let server = Server::start(|_, _, reply| reply.status(200, &[]));
    let away = async |streams: &Streams, reach| streams.network_is_away(reach).await;
    // Nothing is known: what may use this machine's own servers has them.
    let streams = streams_on(settings(), on_a_machine_with(look_up(|_, _| None), false));
    assert!(away(&streams, Reach::Internet).await && !away(&streams, Reach::Anywhere).await);
    let streams = streams_on(settings(), on_a_machine_with(look_up(|_, _| None), true));
    assert!(away(&streams, Reach::Internet).await && !away(&streams, Reach::Anywhere).await);
    let streams = streams_on(settings(), on_a_machine_with(no_such_name(), true));
    assert!(!away(&streams, Reach::Internet).await);
    // A host answered, and still does.
    let (reader, _handle) =
        streams.open(ResolvedStream::plain(server.url("/")), Resolver::never(), "test".to_owned());
    assert!(read_all(reader).await.0.unwrap().is_empty());
    assert!(!away(&streams, Reach::Anywhere).await);
    // Another is known by name, and names are not found any more.
    let back = Arc::new(AtomicBool::new(true));
    let there = Arc::clone(&back);
    let names = look_up(move |_, _| there.load(Ordering::SeqCst).then_some("127.0.0.1"));
    let streams = streams_on(settings(), on_a_machine_with(names, true));
    for url in [named(&server, "music.example"), server.url("/")] {
        let (reader, _handle) =
            streams.open(ResolvedStream::plain(url), Resolver::never(), "test".to_owned());
        assert!(read_all(reader).await.0.unwrap().is_empty());
    }
    assert!(!away(&streams, Reach::Anywhere).await);
    back.store(false, Ordering::SeqCst);
    assert!(away(&streams, Reach::Anywhere).await);
}
