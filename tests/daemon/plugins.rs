//! A plugin that dies, is silent or prints junk costs its call and nothing else.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::prelude::*;

#[tokio::test]
async fn music_goes_on_when_its_plugin_is_killed_and_the_next_call_starts_it_again() {
    let (card, server) = (Card::new().clock(Clock::Times(2.0)).plug(), Server::start());
    let plugin = Plugin::new(&server, "tests");
    let source = Recording::music(40, 44_100, 16, 8.0);
    let file = source.encode(Codec::Flac);
    let slow = Trouble::Throttle(file.bytes.len() / 3);
    let url = server.serve_with("/a.flac", file, &[slow]);
    let uri = plugin.add("a", Track::at(url, "audio/flac").titled("Needle"));
    let mut daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
    daemon.play_uris(&[uri]).await;
    daemon.wait_position(500_000).await;
    let running = daemon.plugin_processes(&plugin);
    assert_eq!(running.len(), 1, "{:?}", daemon.children());
    kill(Pid::from_raw(running[0].pid), Signal::SIGKILL).unwrap();
    while get::<bool>(&daemon.plugins.call("Inspect", &"tests").await.unwrap(), "running") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (results, errors) = daemon.search("needle").await.unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(results.len(), 1);
    let again = daemon.plugin_processes(&plugin);
    assert_eq!(again.len(), 1);
    assert_ne!(again, running);
    daemon.wait_end(0).await;
    assert_exact(&card.music(), &source);
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    assert_eq!(process::zombies(daemon.pid()), 0);
}

#[tokio::test]
async fn a_call_of_a_silent_plugin_fails_after_its_time_out_and_the_bus_answers_meanwhile() {
    let (card, server) = (Card::new().plug(), Server::start());
    let limit = Duration::from_millis(900);
    let plugin = Plugin::new(&server, "tests").timeout("search", limit);
    plugin.add("a", Track::at(server.url("/a.flac"), "audio/flac").titled("Needle"));
    let daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
    plugin.whim("search", Whim::Silent);
    let began = Instant::now();
    let mut search = std::pin::pin!(daemon.search("needle"));
    let mut slowest = Duration::ZERO;
    let mut asked = 0;
    let outcome = loop {
        let question = async {
            let asked = Instant::now();
            daemon.position().await;
            let took = asked.elapsed();
            tokio::time::sleep(Duration::from_millis(20)).await;
            took
        };
        tokio::select! {
            outcome = &mut search => break outcome,
            took = question => {
                slowest = slowest.max(took);
                asked += 1;
            }
        }
    };
    let took = began.elapsed();
    let (results, errors) = outcome.unwrap();
    assert!(results.is_empty());
    let (code, message) = &errors["tests"];
    assert_eq!(*code, -2, "{message}");
    assert!(message.contains("tests") && message.contains("search"), "{message}");
    assert!(took >= limit && took < limit + Duration::from_secs(3), "{took:?}");
    assert!(
        asked >= 5 && slowest < Duration::from_millis(300),
        "{asked} answers, the slowest after {slowest:?}"
    );
    plugin.behave();
    let (results, errors) = daemon.search("needle").await.unwrap();
    assert_eq!((results.len(), errors.len()), (1, 0), "{errors:?}");
}

#[tokio::test]
async fn a_track_whose_plugin_is_silent_is_passed_over_with_an_error_that_names_it() {
    let (card, server) = (Card::new().plug(), Server::start());
    let mute = Plugin::new(&server, "mute").timeout("stream", Duration::from_millis(700));
    let good = Plugin::new(&server, "good");
    let source = Recording::music(41, 44_100, 16, 1.0);
    let lost = mute.add("lost", Track::at(server.url("/nothing"), "audio/flac"));
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let heard = good.add("a", Track::at(url, "audio/flac"));
    let mut daemon = Daemon::new().card(&card).plugin(&mute).plugin(&good).start().await;
    mute.whim("stream", Whim::Silent);
    daemon.play_to_the_end(&[&lost, &heard]).await;
    assert_exact(&card.music(), &source);
    let message = daemon.wait_error("mute").await;
    assert!(message.contains(&lost), "{message}");
}

#[tokio::test]
async fn junk_on_standard_output_costs_the_calls_in_flight_and_no_more() {
    let (card, server) = (Card::new().plug(), Server::start());
    let plugin = Plugin::new(&server, "tests");
    plugin.add("a", Track::at(server.url("/a.flac"), "audio/flac").titled("Needle"));
    let daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
    plugin.whim("search", Whim::Junk("DEBUG: searching...".to_owned()));
    let (_, errors) = daemon.search("needle").await.unwrap();
    assert_eq!(errors["tests"].0, -32_700, "{errors:?}");
    let before = daemon.plugin_processes(&plugin);
    plugin.behave();
    let (results, errors) = daemon.search("needle").await.unwrap();
    assert_eq!((results.len(), errors.len()), (1, 0), "{errors:?}");
    assert_eq!(daemon.plugin_processes(&plugin), before, "it was started again");
}

#[tokio::test]
async fn a_plugin_that_crashes_in_a_call_costs_that_call() {
    let (card, server) = (Card::new().plug(), Server::start());
    let plugin = Plugin::new(&server, "tests");
    let daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
    plugin.whim("search", Whim::Crash(7));
    let (_, errors) = daemon.search("needle").await.unwrap();
    assert_eq!(errors["tests"].0, -1, "{errors:?}");
    plugin.behave();
    let (_, errors) = daemon.search("needle").await.unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(process::zombies(daemon.pid()), 0);

    let (status, health, error) = daemon.segue(&["plugin", "health", "tests", "--json"]).await;
    assert_eq!(status, 0, "{error}");
    let health: serde_json::Value = serde_json::from_str(&health).unwrap();
    assert_eq!(health["health"], "degraded", "{health}");
    assert!(health["reason"].as_str().unwrap().contains("PLUGIN_CRASHED"), "{health}");
    assert_eq!((&health["errors"], &health["restarts"]), (&1.into(), &1.into()), "{health}");
    let (_, list, _) = daemon.segue(&["plugin", "list"]).await;
    assert!(list.contains("degraded"), "{list}");
    let (status, log, error) = daemon.segue(&["plugin", "logs", "tests"]).await;
    assert_eq!((status, log.as_str()), (0, "error crashing\n"), "{error}");
}

#[tokio::test]
async fn a_plugin_that_was_changed_is_not_run_until_it_is_reviewed_again() {
    let (card, server) = (Card::new().plug(), Server::start());
    let plugin = Plugin::new(&server, "tests");
    let daemon = Daemon::new().card(&card).plugin(&plugin).start().await;
    assert!(daemon.search("x").await.unwrap().1.is_empty());
    let program = daemon.home().join("plugins/tests/relay");
    let changed = std::fs::read_to_string(&program).unwrap() + "# one line more\n";
    std::fs::write(&program, changed).unwrap();
    daemon.plugins.call_method("Rescan", &()).await.unwrap();
    let review: Dict = daemon.plugins.call("Inspect", &"tests").await.unwrap();
    assert_eq!(get::<String>(&review, "state"), "changed");
    until("its process to be gone", || daemon.plugin_processes(&plugin).is_empty()).await;
    let calls = plugin.calls("search").len();
    let _ = daemon.search("x").await;
    assert_eq!(plugin.calls("search").len(), calls, "it was run");
    daemon.trust_and_enable("tests", &Plugin::SCOPES).await;
    assert!(daemon.search("x").await.unwrap().1.is_empty());
}
