//! `segue` and `playerctl`, as a person types them.

use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::prelude::*;

#[tokio::test]
async fn without_a_daemon_each_command_says_what_to_do_and_ends_with_status_3() {
    let bus = Bus::start();
    for arguments in [
        &["status"][..],
        &["status", "--json"],
        &["play", "http://h/a.flac"],
        &["pause"],
        &["queue"],
        &["search", "words"],
        &["plugin", "list"],
        &["plugin", "logs", "demo", "-f"],
        &["plugin", "health"],
    ] {
        let (status, out, error) = segue(&bus.address(), arguments).await;
        assert_eq!(status, 3, "{arguments:?}: {out}{error}");
        assert!(error.contains("segued"), "{error}");
        assert_eq!(error.trim_end().lines().count(), 1, "one sentence: {error}");
    }
    let (status, _, error) = segue("unix:path=/no/such/bus", &["status"]).await;
    assert_eq!(status, 3, "{error}");
}

async fn done(daemon: &Daemon, arguments: &[&str]) -> String {
    let (status, out, error) = daemon.segue(arguments).await;
    assert_eq!(status, 0, "{arguments:?}: {error}");
    out
}

async fn status(daemon: &Daemon) -> serde_json::Value {
    serde_json::from_str(&done(daemon, &["status", "--json"]).await).unwrap()
}

#[tokio::test]
async fn the_client_steers_the_daemon() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let plugin = Plugin::new(&server, "tests");
    let source = Recording::music(90, 44_100, 16, 20.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let uris =
        ["one", "two"].map(|id| plugin.add(id, Track::at(&url, "audio/flac").titled(&format!("Song {id}"))));
    let mut daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
    assert_eq!(status(&daemon).await["state"], "stopped");
    done(&daemon, &["play", &uris[0], &uris[1]]).await;
    daemon.wait_state("playing").await;
    let shown = status(&daemon).await;
    assert_eq!(shown["state"], "playing", "{shown:#}");
    assert!(shown.to_string().contains("Song one"), "{shown:#}");
    done(&daemon, &["pause"]).await;
    assert_eq!(daemon.state().await, "paused");
    done(&daemon, &["resume"]).await;
    daemon.wait_state("playing").await;
    let first = daemon.current().await;
    done(&daemon, &["next"]).await;
    assert_ne!(daemon.current().await, first);
    done(&daemon, &["previous"]).await;
    assert_eq!(daemon.current().await, first);
    daemon.wait_state("playing").await;
    done(&daemon, &["seek", "+10"]).await;
    assert!(daemon.position().await >= 9_900_000, "{}", daemon.position().await);
    done(&daemon, &["volume", "40"]).await;
    assert_eq!(daemon.player.get_property::<f64>("Volume").await.unwrap(), 0.4);
    let queue = done(&daemon, &["queue"]).await;
    assert!(queue.contains("Song one") && queue.lines().count() >= 2, "{queue}");
    let found = done(&daemon, &["search", "song", "two"]).await;
    assert!(found.contains(&uris[1]), "{found}");
    let plugins = done(&daemon, &["plugin", "list"]).await;
    assert!(plugins.contains("tests") && plugins.contains("enabled"), "{plugins}");
    let plain = done(&daemon, &["status"]).await;
    assert!(plain.contains("Song one"), "{plain}");
    done(&daemon, &["stop"]).await;
    assert_eq!(daemon.state().await, "stopped");
}

#[tokio::test]
async fn following_a_log_ends_with_the_daemon_and_does_not_keep_it_from_ending() {
    let (card, server) = (Card::new().plug(), Server::start());
    let plugin = Plugin::new(&server, "tests");
    let mut daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
    plugin.whim("search", Whim::Crash(7));
    let _ = daemon.search("needle").await;
    let mut client = tokio::process::Command::new(env!("CARGO_BIN_EXE_segue"));
    client.args(["plugin", "logs", "tests", "-f"]).env("SEGUE_BUS", daemon.bus().address());
    client.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).kill_on_drop(true);
    let mut client = client.spawn().unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
    assert_eq!(line.as_deref(), Some("error crashing"));
    let ended = daemon.term().await;
    assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
    let output = tokio::time::timeout(PATIENCE, client.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[tokio::test]
async fn playerctl_steers_the_daemon() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let plugin = Plugin::new(&server, "tests");
    let source = Recording::music(91, 44_100, 16, 20.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let uris =
        ["one", "two"].map(|id| plugin.add(id, Track::at(&url, "audio/flac").titled(&format!("Song {id}"))));
    let mut daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
    let address = daemon.bus().address();
    let playerctl = async |arguments: &[&str]| {
        let mut command = tokio::process::Command::new("playerctl");
        command
            .args(["-p", "segue"])
            .args(arguments)
            .env("DBUS_SESSION_BUS_ADDRESS", &address)
            .kill_on_drop(true);
        let output = match tokio::time::timeout(PATIENCE, command.output()).await.unwrap() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            output => output.unwrap(),
        };
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    };
    daemon.add(&uris).await;
    if playerctl(&["play-pause"]).await.is_none() {
        eprintln!("SKIPPED: playerctl is not installed");
        return;
    }
    daemon.wait_state("playing").await;
    assert_eq!(playerctl(&["status"]).await.unwrap(), "Playing");
    assert_eq!(playerctl(&["metadata", "title"]).await.unwrap(), "Song one");
    let length = playerctl(&["metadata", "mpris:length"]).await.unwrap();
    assert_eq!(length, "20000000");
    playerctl(&["position", "10"]).await;
    let position: f64 = playerctl(&["position"]).await.unwrap().parse().unwrap();
    assert!((9.9..15.0).contains(&position), "{position}");
    playerctl(&["volume", "0.3"]).await;
    assert!((daemon.player.get_property::<f64>("Volume").await.unwrap() - 0.3).abs() < 1e-6);
    playerctl(&["next"]).await;
    assert_eq!(playerctl(&["metadata", "title"]).await.unwrap(), "Song two");
    playerctl(&["play-pause"]).await;
    assert_eq!(playerctl(&["status"]).await.unwrap(), "Paused");
}
