//! From Play to sound, on networks as they are.

use std::process::Command;

use crate::lab::{Network, within};
use crate::name_server::{Mood, NameServer};
use crate::support::prelude::*;

const DNS: &str = "10.9.0.53";
const HOST: &str = "10.9.0.80";
const HOST_6: &str = "fd09::80";

/// A server on all addresses with a short track, and how it is reached by this name.
fn music(host: &str) -> (Server, Recording, String) {
    let server = Server::start_at("[::]:0");
    let source = Recording::music(70, 44_100, 16, 2.0);
    server.serve("/a.flac", source.encode(Codec::Flac));
    let url = server.url_by(host, "/a.flac?key=secret");
    (server, source, url)
}

/// Plays it to its end, bit for bit; says how long the first request took.
async fn plays(url: &str, server: &Server, source: &Recording) -> Duration {
    let card = Card::new().plug();
    let mut daemon = Daemon::new().card(&card).start().await;
    let asked = Instant::now();
    daemon.play_to_the_end(&[url]).await;
    assert_exact(&card.music(), source);
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    server.requests("/a.flac")[0].at - asked
}

/// How long the system takes for the IPv4 address alone.
fn for_ipv4_alone(name: &str) -> Duration {
    let began = Instant::now();
    let found = Command::new("getent").args(["ahostsv4", name]).output().unwrap();
    assert!(found.status.success(), "{found:?}");
    began.elapsed()
}

fn with_a_name_server(network: &Network, addresses: &[&str]) -> NameServer {
    network.add(DNS);
    network.name_servers(&[DNS]);
    let names = NameServer::start(DNS);
    for address in addresses {
        network.add(address);
    }
    names.host("music.example", addresses);
    names
}

/// A second by the rule, and what a machine that does much else at the time may take.
const A_SECOND: Duration = Duration::from_millis(1_000 + 1_500);

#[test]
fn an_aaaa_answer_that_never_comes_costs_a_second_at_most() {
    within(async |network| {
        let names = with_a_name_server(&network, &[HOST]);
        names.mood(Mood::LosesAaaa);
        let (server, source, url) = music("music.example");
        let alone = for_ipv4_alone("music.example");
        let took = plays(&url, &server, &source).await;
        assert!(took < alone + A_SECOND, "{took:?}, for IPv4 alone {alone:?}");
    });
}

#[test]
fn a_first_name_server_that_is_dead_costs_what_it_costs_others_and_a_second_at_most() {
    within(async |network| {
        with_a_name_server(&network, &[HOST]);
        network.name_servers(&["10.9.0.54", DNS]);
        let (server, source, url) = music("music.example");
        let alone = for_ipv4_alone("music.example");
        assert!(
            alone > Duration::from_secs(3),
            "the first name server is dead, and that took only {alone:?}"
        );
        let took = plays(&url, &server, &source).await;
        assert!(took < alone + A_SECOND, "{took:?}, for IPv4 alone {alone:?}");
    });
}

#[test]
fn a_host_that_has_only_ipv6_plays() {
    within(async |network| {
        with_a_name_server(&network, &[HOST_6]);
        let (server, source, url) = music("music.example");
        plays(&url, &server, &source).await;
    });
}

#[test]
fn a_host_that_has_only_ipv4_plays() {
    within(async |network| {
        with_a_name_server(&network, &[HOST]);
        let (server, source, url) = music("music.example");
        plays(&url, &server, &source).await;
    });
}

#[test]
fn a_host_whose_ipv6_address_is_dead_plays_over_ipv4() {
    within(async |network| {
        let names = with_a_name_server(&network, &[HOST]);
        names.host("music.example", &[HOST, "fd09::dead"]);
        // There is an address of our own, and so a way there.
        network.add(HOST_6);
        let (server, source, url) = music("music.example");
        let took = plays(&url, &server, &source).await;
        assert!(took < A_SECOND, "{took:?}");
    });
}

#[test]
fn the_hosts_file_and_nsswitch_are_honoured_also_for_local_names() {
    within(async |network| {
        let names = with_a_name_server(&network, &[HOST]);
        names.host("player.local", &["10.9.0.99"]);
        network.hosts(&format!("{HOST} player.local"));
        let (server, source, url) = music("player.local");
        plays(&url, &server, &source).await;
        // The C library asks each source for one family until one has it, and the file has no IPv6 address.
        assert_eq!(names.asked("player.local"), 0, "files come first");
        // Without name servers in nsswitch, none is asked.
        network.nsswitch("files");
        network.hosts(&format!("{HOST} music.example"));
        let url = server.url_by("music.example", "/a.flac");
        plays(&url, &server, &source).await;
        assert_eq!(names.asked("music.example"), 0);
    });
}

#[test]
fn a_network_that_comes_after_the_daemon_is_waited_for_at_the_first_track() {
    within(async |network| {
        network.down();
        let (server, source, url) = music("music.example");
        let other = server.url_by("music.example", "/b.flac");
        server.serve("/b.flac", source.encode(Codec::Flac));
        let card = Card::new().plug();
        let mut daemon = Daemon::new().card(&card).start().await;
        daemon.play_uris(&[url, other]).await;
        let first = daemon.current().await;
        daemon.wait_event("trouble").await;
        assert_eq!(daemon.state().await, "buffering");
        assert_eq!(daemon.player.get_property::<String>("StateReason").await.unwrap(), "network");
        // Step by step, as a machine comes up: first the link, then addresses, then a name server that knows.
        network.up();
        tokio::time::sleep(Duration::from_secs(2)).await;
        network.add(DNS);
        network.name_servers(&[DNS]);
        let names = NameServer::start(DNS);
        names.mood(Mood::Silent);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!((daemon.state().await.as_str(), daemon.current().await), ("buffering", first));
        network.add(HOST);
        names.host("music.example", &[HOST]);
        names.mood(Mood::Well);
        daemon.wait_end(0).await;
        assert_exact(&card.music(), &source.clone().then(&source));
        assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    });
}
