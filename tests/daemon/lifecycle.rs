//! Starting, ending, starting again.

use crate::support::prelude::*;

struct Home {
    card: Card,
    server: Server,
    plugin: Plugin,
    source: Recording,
    uris: Vec<String>,
}

fn home() -> Home {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let plugin = Plugin::new(&server, "tests");
    let source = Recording::music(60, 44_100, 16, 6.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let uris = ["a", "b", "c"].map(|id| plugin.add(id, Track::at(&url, "audio/flac"))).to_vec();
    Home { card, server, plugin, source, uris }
}

#[tokio::test]
async fn sigterm_ends_daemon_and_plugins_within_a_second_and_the_next_start_plays_on() {
    let home = home();
    let mut daemon = Daemon::new().card(&home.card).plugin(&home.plugin).start().await;
    daemon.play_uris(&home.uris).await;
    daemon.next().await;
    daemon.wait_position(1_000_000).await;
    assert_eq!(daemon.plugin_processes(&home.plugin).len(), 1);
    let (listed, current) = (daemon.listed().await, daemon.current().await);
    assert_eq!(current, listed[1].0);
    let before = daemon.position().await;
    let ended = daemon.term().await;
    assert!(ended.status.success(), "{:?}\n{}", ended.status, daemon.log());
    assert!(ended.took < Duration::from_secs(1), "it took {:?}", ended.took);
    daemon.start_again().await;
    assert_eq!(daemon.listed().await, listed);
    assert_eq!(daemon.current().await, current);
    daemon.wait_state("playing").await;
    let after = daemon.position().await;
    assert!((before - 100_000..before + 1_500_000).contains(&after), "from {before} to {after}");
    let ended = daemon.term().await;
    assert!(ended.took < Duration::from_secs(1), "it took {:?}", ended.took);
    assert_eq!(home.server.connections(), 0);
}

#[tokio::test]
async fn another_daemon_takes_neither_the_names_nor_the_state_of_the_first() {
    let home = home();
    let mut daemon = Daemon::new().card(&home.card).plugin(&home.plugin).start().await;
    daemon.play_uris(&home.uris[..1]).await;
    daemon.wait_state("playing").await;
    let mut same_state = daemon.start_another("state");
    assert!(!same_state.wait().await.unwrap().success());
    assert_eq!(daemon.logged("another segued keeps its state in"), 1, "{}", daemon.log());
    let mut same_bus = daemon.start_another("other-state");
    until("it to say that the names are taken", || daemon.logged("another program has the name") > 0).await;
    assert_eq!(daemon.state().await, "playing");
    same_bus.kill().await.unwrap();
    assert_eq!(daemon.state().await, "playing");
    assert!(!daemon.record.all().contains(&Said::OnTheBus(false)), "the names changed hands");
}

#[tokio::test]
async fn a_queue_that_another_version_wrote_is_set_aside_and_kept() {
    let mut daemon = Daemon::new().start().await;
    daemon.add(&["http://127.0.0.1:9/a.flac"]).await;
    daemon.term().await;
    let file = daemon.home().join("state/queue.json");
    let written = std::fs::read_to_string(&file).unwrap();
    let later = written.replacen("\"version\":1", "\"version\":99", 1);
    assert_ne!(later, written);
    std::fs::write(&file, &later).unwrap();
    daemon.start_again().await;
    assert!(daemon.listed().await.is_empty());
    assert_eq!(std::fs::read_to_string(file.with_extension("damaged.json")).unwrap(), later);
    // Numbers stay unused all the same.
    let entries = daemon.add(&["http://127.0.0.1:9/b.flac"]).await;
    assert_eq!(entries, [2]);
}

#[tokio::test]
async fn what_was_paused_is_paused_after_the_next_start_and_goes_on_from_there() {
    let home = home();
    let mut daemon = Daemon::new().card(&home.card).plugin(&home.plugin).start().await;
    daemon.play_uris(&home.uris[..1]).await;
    daemon.wait_position(1_000_000).await;
    daemon.set_volume(0.5).await;
    daemon.set_volume(1.0).await;
    daemon.pause().await;
    let position = daemon.position().await;
    assert!(daemon.term().await.took < Duration::from_secs(1));
    let heard_before = home.card.frames_heard();
    daemon.start_again().await;
    assert_eq!(daemon.state().await, "paused");
    assert!(
        (daemon.position().await - position).abs() < 10_000,
        "{position} became {}",
        daemon.position().await
    );
    assert_eq!(home.card.frames_heard(), heard_before, "it made a sound");
    daemon.play().await;
    daemon.wait_end(0).await;
    let last = home.card.sessions().pop().unwrap().heard.trimmed();
    let begin = home.source.frames() - last.frames();
    // Positions are kept in milliseconds.
    let at = begin as i64 * 1_000_000 / 44_100;
    assert!((at - position).abs() < 10_000, "paused at {position}, went on at {at}");
    assert_exact_outside(&last, &home.source.cut(begin..home.source.frames()), &[0..300]);
}

#[tokio::test]
async fn sigkill_leaves_no_plugin_behind_and_the_queue_is_kept() {
    let home = home();
    let mut daemon = Daemon::new().card(&home.card).plugin(&home.plugin).start().await;
    daemon.play_uris(&home.uris).await;
    daemon.wait_position(500_000).await;
    let listed = daemon.listed().await;
    let queue = daemon.home().join("state/queue.json");
    until("the queue to be kept", || queue.exists()).await;
    daemon.kill9().await;
    daemon.start_again().await;
    assert_eq!(daemon.listed().await, listed);
}

#[tokio::test]
async fn a_daemon_that_has_nothing_to_do_ends_at_once() {
    let card = Card::new().plug();
    let mut daemon = Daemon::new().card(&card).start().await;
    let ended = daemon.term().await;
    assert!(ended.status.success() && ended.took < Duration::from_secs(1), "{ended:?}");
}

#[tokio::test]
async fn music_plays_on_while_the_bus_is_gone_and_control_comes_back_with_it() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let source = Recording::music(61, 44_100, 16, 5.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    daemon.wait_position(500_000).await;
    daemon.bus_mut().stop();
    daemon.bus_mut().restart();
    let connection = daemon.bus().connect().await;
    let bus = zbus::fdo::DBusProxy::new(&connection).await.unwrap();
    let back = async {
        let name = zbus::names::BusName::try_from(crate::support::client::NAME).unwrap();
        while !bus.name_has_owner(name.clone()).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, back).await.expect("it did not come back to the bus");
    let (status, json, _) = daemon.segue(&["status", "--json"]).await;
    assert_eq!(status, 0);
    assert!(json.contains("\"playing\""), "{json}");
    card.wait_for("the end", |_| card.frames_heard() >= source.frames()).await;
    until("the end", || card.music().frames() >= source.frames()).await;
    assert_exact(&card.music(), &source);
}
