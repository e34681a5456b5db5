//! Where a plugin's URLs may lead, by real names; and what of them is written down.

use crate::lab::{Network, within};
use crate::name_server::NameServer;
use crate::support::prelude::*;

const DNS: &str = "10.9.0.53";
const HOST: &str = "10.9.0.80";
/// Nobody's.
const ELSEWHERE: &str = "10.9.0.99";

fn with_a_name_server(network: &Network) -> NameServer {
    network.add(DNS);
    network.add(HOST);
    network.name_servers(&[DNS]);
    let names = NameServer::start(DNS);
    names.host("music.example", &[HOST]);
    names
}

/// A daemon with a plugin that may use the network but not this machine, and its one track at this URL.
async fn daemon_with(server: &Server, card: &Card, url: &str) -> (Daemon, String) {
    let plugin = Plugin::new(server, "tests").granted(&["network"]);
    let uri = plugin.add("a", Track::at(url, "audio/flac"));
    (Daemon::new().card(card).plugin(&plugin).log_level("trace").start().await, uri)
}

#[test]
fn a_name_that_turns_to_this_machine_is_refused_to_a_plugin_without_the_local_network() {
    within(async |network| {
        let names = with_a_name_server(&network);
        names.host_at_first("rebinding.example", &[ELSEWHERE]);
        names.host("rebinding.example", &["127.0.0.1", "::1"]);
        let (server, card) = (Server::start_at("[::]:0"), Card::new().plug());
        server.serve("/a.flac", Recording::music(130, 44_100, 16, 1.0).encode(Codec::Flac));
        let url = server.url_by("rebinding.example", "/a.flac?key=secret");
        let (mut daemon, uri) = daemon_with(&server, &card, &url).await;
        daemon.play_uris(&[uri]).await;
        let error = daemon.wait_error("rebinding.example").await;
        assert!(error.contains("local-network") && !error.contains("secret"), "{error}");
        assert!(names.asked("rebinding.example") >= 2, "it was looked up again");
        assert!(server.requests("/a.flac").is_empty());
    });
}

#[test]
fn names_of_this_machine_are_refused_at_once_and_at_a_redirect() {
    within(async |network| {
        let names = with_a_name_server(&network);
        for (name, address) in [
            ("mapped.example", "::ffff:127.0.0.1"),
            ("six-to-four.example", "2002:7f00:1::1"),
            ("nat64.example", "64:ff9b::7f00:1"),
            ("link.example", "169.254.1.1"),
            ("link6.example", "fe80::1"),
            ("inside.example", "127.0.0.1"),
            // The hosts file has it without the dot only.
            ("localhost", "127.0.0.1"),
        ] {
            names.host(name, &[address]);
        }
        let (server, card) = (Server::start_at("[::]:0"), Card::new().plug());
        server.serve("/a.flac", Recording::music(131, 44_100, 16, 1.0).encode(Codec::Flac));
        let plugin = Plugin::new(&server, "tests").granted(&["network"]);
        let mut daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
        for host in [
            "mapped.example",
            "six-to-four.example",
            "nat64.example",
            "link.example",
            "link6.example",
            "inside.example",
            "localhost",
            "localhost.",
            "127.0.0.1",
        ] {
            let inside = server.url_by(host, "/a.flac");
            // At once, and from a host that may be asked.
            server.redirect(&format!("/to-{host}"), &inside);
            let outside = server.url_by("music.example", &format!("/to-{host}"));
            for (name, url) in [("at-once", inside), ("redirected", outside)] {
                let uri = plugin.add(&format!("{name}-{host}"), Track::at(url, "audio/flac"));
                daemon.play_uris(&[uri]).await;
                let error = daemon.wait_error(&format!("{name}-{host}:")).await;
                assert!(error.contains("local-network"), "{host}: {error}");
            }
        }
        assert!(server.requests("/a.flac").is_empty());
    });
}

#[test]
fn nothing_secret_is_logged_not_even_at_trace() {
    within(async |network| {
        with_a_name_server(&network);
        let (server, card) = (Server::start_at("[::]:0"), Card::new().plug());
        let source = Recording::music(132, 44_100, 16, 1.0);
        let cut = Trouble::CutAfter { bytes: 20_000, times: 1 };
        let refused = Trouble::RefuseRequests { from: 0, count: 1, status: 503 };
        server.serve_with("/a.flac", source.encode(Codec::Flac), &[cut, refused]);
        let plugin = Plugin::new(&server, "tests").granted(&["network"]);
        let secret = "/a.flac?key=hush-query#hush-fragment";
        let url = server.url_by("hush-user:hush-password@music.example", secret);
        let uri = plugin.add("a", Track::at(url.clone(), "audio/flac"));
        let mut daemon = Daemon::new().card(&card).plugin(&plugin).log_level("trace").start().await;
        daemon.play_to_the_end(&[uri]).await;
        // The user's own URL, which plays, one that is not there, and one whose host is not.
        let lost = server.url_by("hush-user:hush-password@music.example", "/lost?key=hush-query");
        let nowhere = "http://hush-user:hush-password@nowhere.example/a?key=hush-query".to_owned();
        daemon.play_to_the_end(&[url]).await;
        daemon.play_uris(&[lost]).await;
        daemon.wait_error("/lost").await;
        daemon.play_uris(&[nowhere]).await;
        let told = |said: &Said| matches!(said, Said::Event { text, .. } if text.contains("nowhere.example"));
        daemon.record.wait_from(0, "trouble with a host that is not there", told).await;
        daemon.stop().await;
        let log = daemon.log();
        assert!(log.contains("music.example") && log.contains("TRACE"), "{log}");
        for line in log.lines() {
            // What is in the queue is the user's, and the query of it belongs to no log either.
            assert!(!line.contains("hush-"), "{line}");
        }
        for error in daemon.errors() {
            assert!(!error.contains("hush-"), "{error}");
        }
    });
}
