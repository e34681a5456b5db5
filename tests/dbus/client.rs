//! `segue`, as a shell sees it.

use std::process::{Output, Stdio};
use std::time::Duration;

use segue::control::{Command, Notice, Reason, Status};
use segue::dsp::ReplayGain;
use segue::track::EntryId;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{ChildStdout, Command as Program};

use crate::bus::*;

pub fn segue(fixture: &Fixture, arguments: &[&str]) -> Program {
    let mut program = Program::new(env!("CARGO_BIN_EXE_segue"));
    program.args(arguments).env("SEGUE_BUS", fixture.bus.address()).kill_on_drop(true).stdin(Stdio::null());
    program
}

pub async fn run(fixture: &Fixture, arguments: &[&str]) -> Output {
    tokio::time::timeout(PATIENCE, segue(fixture, arguments).output()).await.unwrap().unwrap()
}

pub async fn done(fixture: &Fixture, arguments: &[&str]) -> String {
    let output = run(fixture, arguments).await;
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub async fn next_line(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
    line.expect("the client ended too early")
}

#[tokio::test]
async fn each_verb_becomes_its_command() {
    let mut fixture = Fixture::ready().await;
    fixture.play(4, "Four");
    for (arguments, expected) in [
        (&["play"][..], Command::Play),
        (&["play", "segue:demo:track:1", "http://h/2"], {
            Command::PlayUris(vec!["segue:demo:track:1".into(), "http://h/2".into()])
        }),
        (&["pause"], Command::Pause),
        (&["resume"], Command::Play),
        (&["toggle"], Command::PlayPause),
        (&["stop"], Command::Stop),
        (&["previous"], Command::Previous),
        (&["seek", "-10"], Command::SeekBy(-10_000_000)),
        (&["seek", "+1:00"], Command::SeekBy(60_000_000)),
        (&["seek", "0:09"], Command::SetPosition(EntryId(4), 9_000_000)),
        (&["volume", "40"], Command::SetVolume(0.4)),
        (&["mute", "on"], Command::SetMute(true)),
        (&["sound", "replaygain", "auto"], Command::SetReplayGain(ReplayGain::Auto)),
        (&["sound", "mono", "on"], Command::SetMono(true)),
        (&["sound", "crossfade", "2.5"], Command::SetCrossfade(Duration::from_millis(2_500))),
        (&["outputs", "select", "null"], Command::SelectOutput(Some("null".into()))),
        (&["outputs", "select", "configured"], Command::SelectOutput(None)),
        (&["queue", "clear"], Command::Clear),
        (&["queue", "play", "7"], Command::PlayEntry(EntryId(7))),
        (&["queue", "add", "segue:demo:track:1"], {
            Command::Add { uris: vec!["segue:demo:track:1".into()], before: None }
        }),
    ] {
        done(&fixture, arguments).await;
        assert_eq!(fixture.next_command().await, expected, "{arguments:?}");
    }
    assert_eq!(done(&fixture, &["volume"]).await, "40 %\n");
    assert!(done(&fixture, &["queue"]).await.contains("   7           Seven"));
}

#[tokio::test]
async fn the_exit_status_tells_what_kind_of_failure_it_was() {
    let fixture = Fixture::ready().await;
    let refused = run(&fixture, &["queue", "remove", "3"]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("there is no entry 3"), "{refused:?}");
    assert_eq!(run(&fixture, &["seek", "soon"]).await.status.code(), Some(2));
    assert_eq!(run(&fixture, &["status", "--until-stopped"]).await.status.code(), Some(2));
    let empty = PrivateBus::started().await;
    for address in [empty.address(), "unix:path=/nowhere".into(), "nonsense".into()] {
        let gone = segue(&fixture, &["--bus", &address, "pause"]).output().await.unwrap();
        assert_eq!(gone.status.code(), Some(3), "{gone:?}");
        let said = String::from_utf8(gone.stderr).unwrap();
        assert!(said.lines().count() == 1 && said.contains("start it by running `segued`"), "{said}");
    }
}

#[tokio::test]
async fn status_as_json_can_be_read_by_programs() {
    let fixture = Fixture::ready().await;
    let read =
        async || serde_json::from_str::<serde_json::Value>(&done(&fixture, &["status", "--json"]).await);
    let empty = read().await.unwrap();
    assert_eq!((empty["state"].as_str(), &empty["title"]), (Some("stopped"), &serde_json::Value::Null));
    fixture.play(4, "Four");
    let playing = read().await.unwrap();
    assert_eq!(playing["title"], "Four");
    assert_eq!(playing["artists"], serde_json::json!(["Ann", "Ben"]));
    assert_eq!(playing["position_us"], 1_500_000);
    assert_eq!(playing["duration_us"], 10_000_000);
    assert_eq!(playing["buffer"]["complete"], false);
    assert_eq!(playing["queue"]["Repeat"], "off");
}

#[tokio::test]
async fn following_ends_when_playback_ends_and_not_before_it_began() {
    let fixture = Fixture::ready().await;
    let mut program = segue(&fixture, &["status", "--follow", "--until-stopped"]);
    let mut client = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let first = next_line(&mut lines).await;
    assert!(first.starts_with("■") && first.contains("stopped"), "{first}");

    fixture.play(4, "Four\x1b[2J");
    let playing = next_line(&mut lines).await;
    assert_eq!(playing, "▶ ━━━━━···························  0:01 / 0:10  Four\u{fffd}[2J — Ann, Ben");
    let text = "the URL ran out and was renewed".to_owned();
    fixture.notices.send(Notice::Event { kind: "renewed", entry: Some(EntryId(4)), text }).unwrap();
    assert_eq!(next_line(&mut lines).await, "renewed   the URL ran out and was renewed");

    fixture.state.send_modify(|state| {
        state.status = Status::Stopped;
        state.reason = Reason::EndOfQueue;
    });
    let last = next_line(&mut lines).await;
    assert!(last.ends_with("stopped (end-of-queue)"), "{last}");
    let status = tokio::time::timeout(PATIENCE, client.wait()).await.unwrap().unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn following_fails_when_playback_gave_up() {
    let fixture = Fixture::ready().await;
    fixture.play(4, "Four");
    let mut program = segue(&fixture, &["status", "--follow", "--until-stopped"]);
    let mut client = program.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    next_line(&mut lines).await;
    fixture.state.send_modify(|state| {
        state.status = Status::Stopped;
        state.reason = Reason::Error;
    });
    let status = tokio::time::timeout(PATIENCE, client.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[tokio::test]
async fn a_plugin_comes_to_play_from_the_shell_alone() {
    let fixture = Fixture::ready().await;
    assert!(done(&fixture, &["plugin", "list"]).await.contains("untrusted"));
    let review = done(&fixture, &["plugin", "inspect", "demo"]).await;
    assert!(review.contains("fingerprint") && review.contains("network — "), "{review}");
    let unasked = run(&fixture, &["plugin", "trust", "demo"]).await;
    assert_eq!(unasked.status.code(), Some(2), "nobody was there to say yes: {unasked:?}");
    done(&fixture, &["plugin", "trust", "demo", "--yes"]).await;
    done(&fixture, &["plugin", "enable", "demo", "--all"]).await;
    assert!(done(&fixture, &["plugin", "list"]).await.contains("enabled"));
    let found = done(&fixture, &["search", "first", "light"]).await;
    assert!(found.contains("First Light") && found.contains("segue:demo:track:"), "{found}");
    done(&fixture, &["plugin", "disable", "demo"]).await;
    let gone = run(&fixture, &["plugin", "inspect", "nobody"]).await;
    assert_eq!(gone.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&gone.stderr).contains("no plugin"), "{gone:?}");
}
