//! What callers and listeners see.

use std::collections::HashMap;

use futures_util::StreamExt;
use zbus::fdo::PropertiesProxy;
use zbus::{OwnedVariant, Variant};

use crate::bus::*;
use segue::control::dbus::{MPRIS_NAME, MPRIS_PATH, SEGUE_NAME, SEGUE_PATH};
use segue::control::{Command, LastError, Notice, QueueChange, Repeat, Status};
use segue::track::EntryId;

#[tokio::test]
async fn introspection_names_every_member() {
    let fixture = Fixture::ready().await;
    let connection = fixture.bus.connect().await;
    let listed = async |name: &'static str, path: &'static str| {
        let object = uncached(&connection, name, path, "org.freedesktop.DBus.Introspectable").await;
        object.introspect().await.unwrap()
    };
    let all = listed(MPRIS_NAME, MPRIS_PATH).await + &listed(SEGUE_NAME, SEGUE_PATH).await;
    for (interface, members) in [
        (
            "org.mpris.MediaPlayer2",
            "Raise Quit CanQuit CanRaise HasTrackList Identity SupportedUriSchemes SupportedMimeTypes Fullscreen \
             CanSetFullscreen",
        ),
        (
            "org.mpris.MediaPlayer2.Player",
            "Next Previous Pause PlayPause Stop Play Seek SetPosition OpenUri Seeked PlaybackStatus LoopStatus Rate \
             Shuffle Metadata Volume Position MinimumRate MaximumRate CanGoNext CanGoPrevious CanPlay CanPause \
             CanSeek CanControl",
        ),
        (
            "org.segue.Player1",
            "PlayUri PlayUris Play Pause PlayPause Next Previous Stop SeekBy ClearError State StateReason Position \
             PositionExact Volume VolumeControl Mute ReplayGain Mono CrossfadeMs Device Output Buffer LastError Current Error Event",
        ),
        ("org.segue.Queue1", "Add Remove Clear Play List Length Current Revision Repeat Changed"),
        ("org.segue.Outputs1", "List Select Changed"),
        ("org.segue.Catalog1", "Search"),
        ("org.segue.Plugins1", "List Inspect Rescan Trust Enable Disable Health Logs ReadLog Changed"),
    ] {
        let (_, rest) = all.split_once(&format!("<interface name=\"{interface}\">")).expect(interface);
        let (part, _) = rest.split_once("</interface>").unwrap();
        for member in members.split_whitespace() {
            assert!(part.contains(&format!("name=\"{member}\"")), "{interface} lacks {member}");
        }
    }
}

#[tokio::test]
async fn a_new_track_and_its_status_are_announced_in_one_signal() {
    let fixture = Fixture::ready().await;
    let connection = fixture.bus.connect().await;
    let properties = PropertiesProxy::new(&connection, MPRIS_NAME, MPRIS_PATH).await.unwrap();
    let mut signals = properties.receive_properties_changed().await.unwrap();
    for (entry, title) in [(1, "One"), (2, "Two")] {
        fixture.play(entry, title); // the second time the status stays as it is
        let signal = tokio::time::timeout(PATIENCE, signals.next()).await.unwrap().unwrap();
        let changed = signal.args().unwrap().changed_properties;
        assert_eq!(changed["PlaybackStatus"], Variant::from("Playing"));
        let metadata: HashMap<String, OwnedVariant> =
            changed["Metadata"].try_clone().unwrap().try_into().unwrap();
        assert_eq!(*metadata["xesam:title"], Variant::from(title));
        assert_eq!(*metadata["xesam:artist"], Variant::from(vec!["Ann", "Ben"]));
        assert_eq!(*metadata["mpris:length"], Variant::from(10_000_000_i64));
        assert_eq!(metadata["mpris:trackid"].value_signature(), "o");
        assert_eq!(*metadata["xesam:url"], Variant::from(format!("segue:demo:track:{entry}")));
        assert!(!changed.contains_key("Position"));
    }
    fixture.state.send_modify(|state| state.status = Status::Buffering); // no change by MPRIS's words
    fixture.state.send_modify(|state| state.volume = 0.25);
    let signal = tokio::time::timeout(PATIENCE, signals.next()).await.unwrap().unwrap();
    let changed = signal.args().unwrap().changed_properties;
    assert_eq!(changed.keys().copied().collect::<Vec<_>>(), ["Volume"]);
}

#[tokio::test]
async fn a_volume_that_is_set_from_the_bus_is_announced_once() {
    let mut fixture = Fixture::ready().await;
    let connection = fixture.bus.connect().await;
    let player = mpris(&connection).await;
    let properties = PropertiesProxy::new(&connection, MPRIS_NAME, MPRIS_PATH).await.unwrap();
    let mut signals = properties.receive_properties_changed().await.unwrap();
    player.set_property("Volume", 7.0).await.unwrap();
    assert_eq!(fixture.next_command().await, Command::SetVolume(1.0));
    player.set_property("LoopStatus", "Playlist").await.unwrap();
    assert_eq!(fixture.next_command().await, Command::SetRepeat(Repeat::Queue));
    fixture.play(1, "One");
    let mut seen = Vec::new();
    while seen.last().map(String::as_str) != Some("Metadata") {
        let signal = tokio::time::timeout(PATIENCE, signals.next()).await.unwrap().unwrap();
        let mut keys: Vec<_> =
            signal.args().unwrap().changed_properties.into_keys().map(str::to_owned).collect();
        keys.retain(|key| ["Volume", "LoopStatus", "Metadata"].contains(&key.as_str()));
        seen.extend(keys);
    }
    assert_eq!(seen, ["Volume", "LoopStatus", "Metadata"]);
}

#[tokio::test]
async fn the_track_id_of_an_empty_player_is_a_valid_object_path() {
    let fixture = Fixture::ready().await;
    let connection = fixture.bus.connect().await;
    let metadata: HashMap<String, OwnedVariant> =
        mpris(&connection).await.get_property("Metadata").await.unwrap();
    assert_eq!(metadata["mpris:trackid"].value_signature(), "o");
    assert_eq!(
        metadata["mpris:trackid"].to_string(),
        "objectpath \"/org/mpris/MediaPlayer2/TrackList/NoTrack\""
    );
}

#[tokio::test]
async fn wrong_arguments_are_refused_and_reach_nobody() {
    let mut fixture = Fixture::ready().await;
    let connection = fixture.bus.connect().await;
    let (mpris, queue) = (mpris(&connection).await, segue(&connection, "org.segue.Queue1").await);
    let player = segue(&connection, "org.segue.Player1").await;
    let invalid = "org.freedesktop.DBus.Error.InvalidArgs";
    assert_eq!(error_name(mpris.call_method("SetPosition", &("/org/segue/track/1", 5_i64)).await), invalid);
    assert_eq!(error_name(mpris.call_method("Seek", &"far").await), invalid);
    assert_eq!(error_name(queue.call_method("Add", &("segue:demo:track:1", 0_u64)).await), invalid);
    let bad = "org.segue.Error.BadArgument";
    assert_eq!(error_name(queue.call_method("Add", &(Vec::<&str>::new(), 0_u64)).await), bad);
    assert_eq!(error_name(queue.call_method("Add", &(vec!["x"; 100_001], 0_u64)).await), bad);
    assert_eq!(error_name(player.call_method("PlayUri", &"x".repeat(1 << 20)).await), bad);
    assert!(mpris.set_property("Volume", f64::NAN).await.is_err());
    assert!(mpris.set_property("Volume", "loud").await.is_err());
    assert!(mpris.set_property("LoopStatus", "Sometimes").await.is_err());
    assert!(mpris.set_property("Shuffle", true).await.is_err());
    mpris.call_method("Play", &()).await.unwrap();
    assert_eq!(fixture.next_command().await, Command::Play, "something wrong got through");
}

#[tokio::test]
async fn a_refusal_of_the_player_is_an_error_of_ours_and_no_error_where_mpris_wants_none() {
    let fixture = Fixture::ready().await;
    let connection = fixture.bus.connect().await;
    let queue = segue(&connection, "org.segue.Queue1").await;
    assert_eq!(error_name(queue.call_method("Remove", &vec![3_u64]).await), "org.segue.Error.NoSuchEntry");
    let player = segue(&connection, "org.segue.Player1").await;
    assert_eq!(error_name(player.call_method("Next", &()).await), "org.segue.Error.EmptyQueue");
    mpris(&connection).await.call_method("Next", &()).await.unwrap();
}

#[tokio::test]
async fn a_position_outside_of_the_current_track_moves_nothing() {
    let mut fixture = Fixture::ready().await;
    let connection = fixture.bus.connect().await;
    let player = mpris(&connection).await;
    fixture.play(4, "Four");
    let path = |path: &'static str| zbus::ObjectPath::from_static_str(path).unwrap();
    for (track, position) in [
        ("/org/segue/track/4", -1_i64),
        ("/org/segue/track/4", 10_000_001),
        ("/org/segue/track/5", 1),
        ("/org/mpris/MediaPlayer2/TrackList/NoTrack", 1),
    ] {
        player.call_method("SetPosition", &(path(track), position)).await.unwrap();
    }
    player.call_method("SetPosition", &(path("/org/segue/track/4"), 10_000_000_i64)).await.unwrap();
    assert_eq!(fixture.next_command().await, Command::SetPosition(EntryId(4), 10_000_000));
    player.set_property("Rate", 0.0).await.unwrap();
    assert_eq!(fixture.next_command().await, Command::Pause);
}

#[tokio::test]
async fn our_own_interfaces_tell_what_they_hold() {
    let mut fixture = Fixture::ready().await;
    let connection = fixture.bus.connect().await;
    let queue = segue(&connection, "org.segue.Queue1").await;
    let added: Vec<u64> =
        queue.call("Add", &(vec!["segue:demo:track:a", "http://host/b"], 9_u64)).await.unwrap();
    assert_eq!(added, [1, 2]);
    let uris = vec!["segue:demo:track:a".into(), "http://host/b".into()];
    assert_eq!(fixture.next_command().await, Command::Add { uris, before: Some(EntryId(9)) });
    let listed: Vec<(u64, HashMap<String, OwnedVariant>)> =
        queue.call("List", &(0_u32, 10_u32)).await.unwrap();
    assert_eq!(listed[0].0, 7);
    assert_eq!(*listed[0].1["title"], Variant::from("Seven"));
    let player = segue(&connection, "org.segue.Player1").await;
    assert_eq!(player.get_property::<i64>("Position").await.unwrap(), 1_500_000);
    let buffer: HashMap<String, OwnedVariant> = player.get_property("Buffer").await.unwrap();
    assert_eq!(*buffer["complete"], Variant::from(false));
    let (code, message): (String, String) = player.get_property("LastError").await.unwrap();
    assert_eq!((code.as_str(), message.as_str()), ("", ""));
}

#[tokio::test]
async fn notices_come_in_order_and_a_nul_in_a_text_hangs_up_nobody() {
    let fixture = Fixture::ready().await;
    let connection = fixture.bus.connect().await;
    let player = segue(&connection, "org.segue.Player1").await;
    let queue = segue(&connection, "org.segue.Queue1").await;
    let mpris = mpris(&connection).await;
    let mut seeked = mpris.receive_signal("Seeked").await.unwrap();
    let mut errors = player.receive_signal("Error").await.unwrap();
    let mut events = player.receive_signal("Event").await.unwrap();
    let mut changes = queue.receive_signal("Changed").await.unwrap();
    fixture.play(1, "a\0b");
    let send = |notice| fixture.notices.send(notice).unwrap();
    send(Notice::Seeked(42));
    send(Notice::Error(LastError { code: "stream".into(), message: "no\0".into() }));
    send(Notice::Event { kind: "playing", entry: Some(EntryId(1)), text: "\0".into() });
    let change = QueueChange::Added { entries: vec![EntryId(5)], before: None };
    send(Notice::Queue { revision: 8, change });
    assert_eq!(seeked.next().await.unwrap().body().deserialize::<i64>().unwrap(), 42);
    let body = errors.next().await.unwrap().body();
    assert_eq!(body.deserialize::<(String, String)>().unwrap().1, "no\u{fffd}");
    let body = events.next().await.unwrap().body();
    assert_eq!(
        body.deserialize::<(String, u64, String)>().unwrap(),
        ("playing".into(), 1, "\u{fffd}".into())
    );
    let body = changes.next().await.unwrap().body();
    let (revision, what): (u64, Vec<(String, Vec<u64>, u64)>) = body.deserialize().unwrap();
    assert_eq!((revision, what), (8, vec![("added".into(), vec![5], 0)]));
}

#[tokio::test]
async fn a_bus_that_comes_late_goes_and_comes_back_is_waited_for() {
    let mut fixture = Fixture::on(PrivateBus::not_yet_started()).await;
    fixture.bus.start().await;
    for round in 1..=2 {
        fixture.until_ready(true).await;
        let connection = fixture.bus.connect().await;
        fixture.play(round, "Again"); // also while away the state moves on
        let player = mpris(&connection).await;
        player.call_method("Pause", &()).await.unwrap();
        assert_eq!(fixture.next_command().await, Command::Pause);
        let status: String = player.get_property("PlaybackStatus").await.unwrap();
        assert_eq!(status, "Playing");
        fixture.bus.kill().await;
        fixture.until_ready(false).await;
        fixture.bus.start().await;
    }
}

#[tokio::test]
async fn playerctl_works_unmodified() {
    let mut fixture = Fixture::ready().await;
    fixture.play(1, "One");
    let playerctl = async |arguments: &[&str]| {
        let mut program = tokio::process::Command::new("playerctl");
        program.args(["--player", "segue"]).args(arguments);
        program.env("DBUS_SESSION_BUS_ADDRESS", fixture.bus.address()).output().await
    };
    let Ok(output) = playerctl(&["metadata", "--format", "{{title}}|{{artist}}|{{mpris:length}}"]).await
    else {
        eprintln!("skipped: playerctl is not installed");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "One|Ann, Ben|10000000");
    assert_eq!(String::from_utf8_lossy(&playerctl(&["status"]).await.unwrap().stdout).trim(), "Playing");
    let position = playerctl(&["position"]).await.unwrap().stdout; // playerctl adds the time since it asked
    assert!(position.starts_with(b"1.5"), "{}", String::from_utf8_lossy(&position));
    assert!(playerctl(&["pause"]).await.unwrap().status.success());
    assert!(playerctl(&["position", "5-"]).await.unwrap().status.success());
    assert!(playerctl(&["volume", "0.3"]).await.unwrap().status.success());
    assert_eq!(fixture.next_command().await, Command::Pause);
    assert_eq!(fixture.next_command().await, Command::SeekBy(-5_000_000));
    assert_eq!(fixture.next_command().await, Command::SetVolume(0.3));
}

#[tokio::test]
async fn a_plugin_is_reviewed_trusted_enabled_and_searched_over_the_bus() {
    let fixture = Fixture::ready().await;
    let connection = fixture.bus.connect().await;
    let plugins = segue(&connection, "org.segue.Plugins1").await;
    let catalog = segue(&connection, "org.segue.Catalog1").await;
    let mut changes = plugins.receive_signal("Changed").await.unwrap();
    type Dict = HashMap<String, OwnedVariant>;
    type Found = (Vec<Dict>, HashMap<String, (i32, String)>);

    let list: Vec<Dict> = plugins.call("List", &()).await.unwrap();
    assert_eq!((&*list[0]["id"], &*list[0]["state"]), (&Variant::from("demo"), &Variant::from("untrusted")));
    let review: Dict = plugins.call("Inspect", &"demo").await.unwrap();
    let scopes: Vec<String> = review["scopes"].try_clone().unwrap().try_into().unwrap();
    let fingerprint: String = review["fingerprint"].try_clone().unwrap().try_into().unwrap();
    assert!(review.contains_key("warning") && review.contains_key("files"), "{review:?}");

    let refusal = |result| error_name(result);
    let other = "0".repeat(64);
    assert_eq!(refusal(plugins.call_method("Inspect", &"none").await), "org.segue.Error.NoSuchPlugin");
    assert_eq!(refusal(plugins.call_method("Trust", &("demo", &other)).await), "org.segue.Error.Plugin");
    assert_eq!(refusal(plugins.call_method("Enable", &("demo", &scopes)).await), "org.segue.Error.Plugin");
    assert_eq!(
        refusal(catalog.call_method("Search", &(" ", Dict::new())).await),
        "org.segue.Error.BadArgument"
    );
    let nothing: Found = catalog.call("Search", &("a", Dict::new())).await.unwrap();
    assert!(nothing.0.is_empty());

    plugins.call_method("Trust", &("demo", &fingerprint)).await.unwrap();
    plugins.call_method("Enable", &("demo", &scopes)).await.unwrap();
    let changed = tokio::time::timeout(PATIENCE, changes.next()).await.unwrap().unwrap();
    assert_eq!(changed.body().deserialize::<&str>().unwrap(), "demo");
    let options = HashMap::from([("limit", Variant::from(1_u32)), ("plugin", Variant::from("demo"))]);
    let found: Found = catalog.call("Search", &("segue", options)).await.unwrap();
    assert!(found.1.is_empty(), "{found:?}");
    let uri: String = found.0[0]["uri"].try_clone().unwrap().try_into().unwrap();
    assert!(uri.starts_with("segue:demo:"), "{uri}");
    plugins.call_method("Disable", &"demo").await.unwrap();
    let audit = std::fs::read_to_string(fixture.bus.folder.path().join("state/audit.jsonl")).unwrap();
    let uid = nix::unistd::Uid::effective().as_raw();
    assert!(audit.contains(&format!("\"uid\":{uid}")) && audit.contains("D-Bus"), "{audit}");
}
