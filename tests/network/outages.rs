//! Name servers, servers and routes that go away while music plays, and come back.

use crate::lab::{Network, within};
use crate::name_server::{Mood, NameServer};
use crate::support::prelude::*;

const DNS: &str = "10.9.0.53";
const HOST: &str = "10.9.0.80";

fn with_a_name_server(network: &Network) -> NameServer {
    network.add(DNS);
    network.add(HOST);
    network.name_servers(&[DNS]);
    let names = NameServer::start(DNS);
    names.host("music.example", &[HOST]);
    names
}

/// What StateReason says.
async fn reason(daemon: &Daemon) -> String {
    daemon.player.get_property("StateReason").await.unwrap()
}

/// Waits until it is silent, and says that this is for want of a network.
async fn until_away(daemon: &mut Daemon) {
    daemon.wait_state("buffering").await;
    let waited = Instant::now();
    while reason(daemon).await != "network" {
        assert!(waited.elapsed() < PATIENCE, "the reason is {}", reason(daemon).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The service that the plugin asks does not answer either.
fn away(plugin: &Plugin) {
    plugin.whim("stream", Whim::Error(7, "the service cannot be reached"));
}

#[test]
fn a_name_server_that_is_gone_is_not_heard() {
    within(async |network| {
        let names = with_a_name_server(&network);
        let server = Server::start_at("[::]:0");
        let source = Recording::music(80, 44_100, 16, 14.0);
        let file = source.encode(Codec::Wav);
        // Twice as fast as it is played, in pieces of two seconds and a half: a connection for each.
        let troubles = [Trouble::Throttle(2 * 176_400), Trouble::CutAfter { bytes: 440_000, times: 100 }];
        server.serve_with("/a.wav", file, &troubles);
        let card = Card::new().clock(Clock::Real).plug();
        let mut daemon = Daemon::new().card(&card).start().await;
        let url = server.url_by("music.example", "/a.wav");
        daemon.play_uris(&[url]).await;
        daemon.wait_state("playing").await;
        let from = daemon.record.len();
        names.mood(Mood::Silent);
        daemon.wait_end(0).await;
        assert_exact(&card.music(), &source);
        let stalled = Said::State("buffering".to_owned());
        assert!(!daemon.record.all()[from..].contains(&stalled), "{:?}", daemon.record.all());
        assert!(daemon.logged("going on with the addresses that were found before") > 0);
    });
}

#[test]
fn ten_minutes_without_name_server_server_and_route_skip_nothing() {
    // Ten minutes for the card, which is twenty times as fast as the clock. The daemon's own time limits are by the
    // clock: for those it is half a minute.
    const SPEED: f64 = 20.0;
    const OUTAGE: Duration = Duration::from_secs(30);
    within(async |network| {
        let names = with_a_name_server(&network);
        let server = Server::start_at("[::]:0");
        let plugin = Plugin::new(&server, "tests").granted(&["network"]);
        // The third, in which it happens, is five times as long as what the buffer holds.
        let seconds = |n| if n == 2 { 60.0 } else { 8.0 };
        let sources: Vec<Recording> =
            (0..10).map(|n| Recording::music(90 + n, 44_100, 16, seconds(n))).collect();
        let uris: Vec<String> = sources
            .iter()
            .enumerate()
            .map(|(n, source)| {
                server.serve(&format!("/{n}.wav"), source.encode(Codec::Wav));
                let url = server.url_by("music.example", &format!("/{n}.wav"));
                plugin.add(&n.to_string(), Track::at(url, "audio/wav"))
            })
            .collect();
        let card = Card::new().clock(Clock::Times(SPEED)).plug();
        let setup = Daemon::new().card(&card).plugin(&plugin).config("[stream]\nbuffer = \"2 MiB\"");
        let mut daemon = setup.start().await;
        daemon.play_uris(&uris).await;
        let entries: Vec<u64> = daemon.listed().await.into_iter().map(|(entry, _)| entry).collect();
        let third = |said: &Said| matches!(said, Said::Event { kind, entry, .. } if kind == "joined" && *entry == entries[2]);
        daemon.record.wait_from(0, "the third track", third).await;
        away(&plugin);
        names.mood(Mood::Silent);
        network.remove(HOST);
        network.remove(DNS);
        let began = Instant::now();
        until_away(&mut daemon).await;
        assert_eq!(daemon.current().await, entries[2], "in the middle of the third");
        let (waiting, position) = (daemon.current().await, daemon.position().await);
        network.down();
        tokio::time::sleep_until((began + OUTAGE).into()).await;
        assert_eq!((daemon.state().await.as_str(), reason(&daemon).await.as_str()), ("buffering", "network"));
        assert_eq!((daemon.current().await, daemon.position().await), (waiting, position));
        // It comes back step by step.
        network.up();
        network.add(DNS);
        network.add(HOST);
        names.mood(Mood::Well);
        plugin.behave();
        daemon.wait_end(0).await;
        let all = sources.iter().skip(1).fold(sources[0].clone(), |all, next| all.then(next));
        assert_exact_but_for_gaps(&card.music(), &all);
        assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    });
}

#[test]
fn a_plugin_that_cannot_ask_its_service_is_waited_for_at_the_next_track() {
    within(async |network| {
        let names = with_a_name_server(&network);
        let server = Server::start_at("[::]:0");
        let plugin = Plugin::new(&server, "tests").granted(&["network"]);
        let sources: Vec<Recording> = (0..3).map(|n| Recording::music(110 + n, 44_100, 16, 4.0)).collect();
        let mut uris = Vec::new();
        for (n, source) in sources.iter().enumerate() {
            server.serve(&format!("/{n}.flac"), source.encode(Codec::Flac));
            let url = server.url_by("music.example", &format!("/{n}.flac"));
            uris.push(plugin.add(&n.to_string(), Track::at(url, "audio/flac")));
        }
        let card = Card::new().clock(Clock::Times(2.0)).plug();
        let mut daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
        // The second is asked for while the name server is away, though every host could be reached.
        daemon.play_uris(&uris[..1]).await;
        daemon.wait_state("playing").await;
        names.mood(Mood::Silent);
        away(&plugin);
        daemon.add(&uris[1..]).await;
        until_away(&mut daemon).await;
        let asked = plugin.calls("stream").len();
        while plugin.calls("stream").len() < asked + 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!((daemon.state().await.as_str(), reason(&daemon).await.as_str()), ("buffering", "network"));
        names.mood(Mood::Well);
        plugin.behave();
        daemon.wait_end(0).await;
        let all = sources[0].clone().then(&sources[1]).then(&sources[2]);
        assert_exact_but_for_gaps(&card.music(), &all);
        assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    });
}

#[test]
fn a_plugin_that_fails_while_the_network_is_there_stops_after_three_and_play_begins_at_the_first_of_them() {
    within(async |network| {
        with_a_name_server(&network);
        let server = Server::start_at("[::]:0");
        let plugin = Plugin::new(&server, "tests").granted(&["network"]);
        let sources: Vec<Recording> = (0..6).map(|n| Recording::music(120 + n, 44_100, 16, 1.0)).collect();
        let mut uris = Vec::new();
        for (n, source) in sources.iter().enumerate() {
            server.serve(&format!("/{n}.flac"), source.encode(Codec::Flac));
            let url = server.url_by("music.example", &format!("/{n}.flac"));
            uris.push(plugin.add(&n.to_string(), Track::at(url, "audio/flac")));
        }
        let card = Card::new().plug();
        let mut daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
        daemon.play_to_the_end(&uris[..1]).await;
        away(&plugin);
        let from = daemon.record.len();
        daemon.play_uris(&uris[1..]).await;
        let stopped = Said::State("stopped".to_owned());
        daemon.record.wait_from(from, "that it stops", |said| *said == stopped).await;
        for uri in &uris[1..4] {
            daemon.wait_error(uri).await;
        }
        assert_eq!(daemon.errors().len(), 3, "{:?}", daemon.errors());
        assert_eq!(reason(&daemon).await, "error");
        let listed = daemon.listed().await;
        let at = listed.iter().position(|(_, uri)| *uri == uris[1]).unwrap();
        assert_eq!(daemon.current().await, listed[at].0);
        plugin.behave();
        let from = daemon.record.len();
        daemon.play().await;
        daemon.wait_end(from).await;
        let all = sources[1..].iter().fold(sources[0].clone(), |all, next| all.then(next));
        assert_exact_but_for_gaps(&card.music(), &all);
    });
}
