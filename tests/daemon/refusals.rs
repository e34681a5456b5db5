//! Bad input gets a sentence and loses nothing.

use tokio::process::Command;

use crate::support::prelude::*;

async fn start_with(configuration: &str, more: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("segue.toml");
    std::fs::write(&file, configuration).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_segued"));
    command.arg("--config").arg(&file).args(more).env("STATE_DIRECTORY", folder.path()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("it started").unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test]
async fn a_wrong_configuration_is_told_with_line_and_column_and_exit_status_64() {
    for (text, place) in [
        ("[output]\ndevise = \"auto\"\n", "segue.toml:2:1"),
        ("[stream]\n\nbuffer = \"6 Mb\"\n", "segue.toml:3:10"),
        ("[dbus\n", "segue.toml:1:"),
    ] {
        for more in [&[][..], &["--check-config"]] {
            let (status, message) = start_with(text, more).await;
            assert_eq!(status, 64, "{message}");
            assert!(message.contains(place), "{message}");
        }
    }
    let (status, message) = start_with("[output]\nbuffer_ms = 300\n", &["--check-config"]).await;
    assert_eq!(status, 0, "{message}");
    let missing = Command::new(env!("CARGO_BIN_EXE_segued")).args(["--config", "/no/such/file"]).output();
    let missing = missing.await.unwrap();
    assert_eq!(missing.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/no/such/file"));
}

#[tokio::test]
async fn a_bad_uri_is_refused_and_nothing_is_queued() {
    let card = Card::new().plug();
    let daemon = Daemon::new().card(&card).start().await;
    for bad in ["nonsense", "segue:tests", "ftp://host/a.flac", "", "segue:UPPER:track:1"] {
        let outcome: zbus::Result<Vec<u64>> =
            daemon.queue.call("Add", &(vec!["http://h/a.flac", bad], 0u64)).await;
        let (name, sentence) = refusal(outcome);
        assert_eq!(name, "org.segue.Error.BadUri", "{bad}: {sentence}");
        assert!(sentence.len() > 20, "{sentence}");
    }
    let outcome: zbus::Result<Vec<u64>> = daemon.queue.call("Add", &(vec!["file:///etc/passwd"], 0u64)).await;
    assert_eq!(refusal(outcome).0, "org.segue.Error.FileNotAllowed");
    let outcome: zbus::Result<Vec<u64>> =
        daemon.queue.call("Add", &(vec!["segue:tests:album:1"], 0u64)).await;
    assert_eq!(refusal(outcome).0, "org.segue.Error.NotATrack");
    assert!(daemon.listed().await.is_empty());
}

#[tokio::test]
async fn arguments_of_wrong_types_are_refused_and_the_daemon_works_on() {
    let card = Card::new().plug();
    let daemon = Daemon::new().card(&card).start().await;
    for (proxy, method) in [(&daemon.queue, "Add"), (&daemon.queue, "Play"), (&daemon.player, "SeekBy")] {
        let (name, _) = refusal(proxy.call_method(method, &("wrong", 1.5f64)).await);
        assert_eq!(name, "org.freedesktop.DBus.Error.InvalidArgs", "{method}");
    }
    assert!(daemon.player.set_property("Volume", "loud").await.is_err());
    assert!(daemon.player.set_property("Volume", f64::NAN).await.is_err());
    let (name, _) = refusal(daemon.queue.call_method("Play", &77u64).await);
    assert_eq!(name, "org.segue.Error.NoSuchEntry");
    let (name, _) = refusal(daemon.plugins.call_method("Inspect", &"nobody").await);
    assert_eq!(name, "org.segue.Error.NoSuchPlugin");
    assert_eq!(daemon.state().await, "stopped");
}

#[tokio::test]
async fn the_queue_takes_a_hundred_thousand_entries_and_refuses_the_next() {
    let card = Card::new().plug();
    let daemon = Daemon::new().card(&card).start().await;
    let uris: Vec<String> = (0..99_999).map(|n| format!("http://h/{n}")).collect();
    assert_eq!(daemon.add(&uris).await.len(), 99_999);
    let two: zbus::Result<Vec<u64>> =
        daemon.queue.call("Add", &(vec!["http://h/a", "http://h/b"], 0u64)).await;
    let (name, sentence) = refusal(two);
    assert_eq!(name, "org.segue.Error.QueueFull");
    assert!(sentence.contains("100000") || sentence.contains("100,000"), "{sentence}");
    daemon.add(&["http://h/last"]).await;
    assert_eq!(daemon.queue.get_property::<u32>("Length").await.unwrap(), 100_000);
    let asked = Instant::now();
    daemon.position().await;
    assert!(asked.elapsed() < Duration::from_millis(500), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn a_url_that_is_not_audio_is_passed_over_with_an_error_that_names_it() {
    let (card, server) = (Card::new().plug(), Server::start());
    let page =
        server.serve_text("/login.html", "text/html", &"<html><body>Log in</body></html>\n".repeat(2_000));
    let gone = server.url("/gone.flac");
    let source = Recording::music(80, 44_100, 16, 1.0);
    let good = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_to_the_end(&[page, gone, good]).await;
    assert_exact(&card.music(), &source);
    daemon.wait_error("/login.html").await;
    daemon.wait_error("/gone.flac").await;
    assert_eq!(daemon.errors().len(), 2, "{:?}", daemon.errors());
}

#[tokio::test]
async fn a_track_of_a_plugin_that_is_not_there_is_passed_over_with_an_error_that_names_it() {
    let (card, server) = (Card::new().plug(), Server::start());
    let source = Recording::music(81, 44_100, 16, 1.0);
    let good = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_to_the_end(&["segue:nobody:track:1", &good]).await;
    assert_exact(&card.music(), &source);
    daemon.wait_error("nobody").await;
}

#[tokio::test]
async fn three_unplayable_tracks_in_a_row_stop_playback_with_an_error() {
    let (card, server) = (Card::new().plug(), Server::start());
    let source = Recording::music(82, 44_100, 16, 1.0);
    let good = server.serve("/a.flac", source.encode(Codec::Flac));
    let bad = [1, 2, 3, 4]
        .map(|n| server.serve_text(&format!("/{n}"), "text/html", &"<p>no music</p>".repeat(500)));
    let mut daemon = Daemon::new().card(&card).start().await;
    let all: Vec<&String> = bad.iter().chain([&good]).collect();
    daemon.play_uris(&all).await;
    daemon.wait_error("/3").await;
    daemon.wait_state("stopped").await;
    assert_eq!(daemon.player.get_property::<String>("StateReason").await.unwrap(), "error");
    assert_eq!(daemon.errors().len(), 3, "{:?}", daemon.errors());
    assert!(daemon.last_error().await.1.contains("/3"));
    assert!(card.sessions().is_empty());
    assert!(server.requests("/4").is_empty(), "it raced on");
    // The next command works.
    daemon.queue.call_method("Clear", &()).await.unwrap();
    daemon.play_to_the_end(&[&good]).await;
    assert_exact(&card.music(), &source);
}
