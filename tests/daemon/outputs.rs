//! Where sound goes to: listed, chosen while music plays, and lost.

use crate::support::daemon::Setup;
use crate::support::prelude::*;

fn two_cards() -> (Card, Card) {
    let dac = Card::new().clock(Clock::Real).plug();
    let phones = Card::new().clock(Clock::Real).beside(&dac, "phones").plug();
    (dac, phones)
}

fn setup(dac: &Card) -> Setup {
    Daemon::new().card(dac)
}

fn serve(server: &Server, name: &str, source: &Recording) -> String {
    server.serve(name, source.encode(Codec::Flac))
}

async fn device(daemon: &Daemon) -> String {
    daemon.player.get_property("Device").await.unwrap()
}

async fn wait_device(daemon: &Daemon, wanted: &str) {
    until_async(&format!("the device “{wanted}”"), async || device(daemon).await == wanted).await;
}

/// Waits until so much more of the music is heard.
async fn hear_more(daemon: &Daemon, micros: i64) {
    let now = daemon.position().await;
    daemon.wait_position(now + micros).await;
}

async fn listed(daemon: &Daemon, name: &str) -> Dict {
    let all = daemon.output_devices().await;
    all.into_iter().find(|one| get::<String>(one, "name") == name).unwrap_or_else(|| panic!("no {name}"))
}

#[tokio::test]
async fn music_moves_to_another_device_and_back_and_keeps_its_place() {
    let ((dac, phones), server) = (two_cards(), Server::start());
    let source = Recording::music(80, 44_100, 16, 5.0);
    let mut daemon = setup(&dac).start().await;
    daemon.play_uris(&[serve(&server, "/a.flac", &source)]).await;
    daemon.wait_position(1_000_000).await;
    daemon.select_output("phones").await.unwrap();
    wait_device(&daemon, "phones").await;
    hear_more(&daemon, 1_000_000).await;
    let from = daemon.record.len();
    let (status, _, error) = daemon.segue(&["outputs", "select", "configured"]).await;
    assert_eq!((status, error.as_str()), (0, ""));
    daemon.record.wait_from(from, "another device", |said| *said == Said::OutputsChanged).await;
    daemon.wait_end(0).await;
    let [first, last] = &dac.sessions()[..] else { panic!("{} sessions", dac.sessions().len()) };
    let [middle] = &phones.sessions()[..] else { panic!("{} sessions", phones.sessions().len()) };
    let end = first.heard.trimmed().frames();
    assert_exact(&first.heard.trimmed(), &source.cut(0..end));
    let start = goes_on_at(&middle.heard, &source);
    assert_not_skipped(end, start, first.period);
    let end = start + middle.heard.trimmed().frames();
    let start = goes_on_at(&last.heard, &source);
    assert_not_skipped(end, start, middle.period);
    assert_eq!(start + last.heard.trimmed().frames(), source.frames(), "heard to its end");
    assert_eq!(daemon.errors(), Vec::<String>::new());
}

#[tokio::test]
async fn music_moves_to_a_device_of_another_rate_and_back() {
    let (dac, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let phones = Card::new().clock(Clock::Real).rates(&[48_000]).beside(&dac, "phones").plug();
    let source = Recording::music(81, 44_100, 16, 6.0);
    let mut daemon = setup(&dac).start().await;
    daemon.play_uris(&[serve(&server, "/a.flac", &source)]).await;
    daemon.wait_position(1_000_000).await;
    daemon.select_output("phones").await.unwrap();
    wait_device(&daemon, "phones").await;
    hear_more(&daemon, 1_500_000).await;
    assert!(!get::<bool>(&daemon.output().await, "bit_perfect"));
    daemon.select_output("dac").await.unwrap();
    daemon.wait_end(0).await;
    let dac = dac.sessions();
    let (first, last) = (dac.first().unwrap(), dac.last().unwrap());
    let end = first.heard.trimmed().frames();
    let start = goes_on_at(&last.heard, &source);
    // What the other device played, in frames of the source.
    let between = phones.frames_heard() * 44_100 / 48_000;
    let slack = first.period + 441;
    assert!(start <= end + between + 1, "skipped: {end} and {between} before {start}");
    assert!(start + 2 * slack >= end + between, "repeated: {end} and {between} before {start}");
    assert_eq!(start + last.heard.trimmed().frames(), source.frames(), "heard to its end");
}

#[tokio::test]
async fn music_from_a_server_without_ranges_moves_to_a_device_of_another_rate() {
    let (dac, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let phones = Card::new().clock(Clock::Real).rates(&[48_000]).beside(&dac, "phones").plug();
    let source = Recording::music(85, 44_100, 16, 5.0);
    let url = server.serve_with("/a.flac", source.encode(Codec::Flac), &[Trouble::NoRanges]);
    let next = serve(&server, "/b.flac", &Recording::music(86, 44_100, 16, 1.0));
    let mut daemon = setup(&dac).start().await;
    daemon.play_uris(&[url, next]).await;
    daemon.wait_position(1_000_000).await;
    daemon.select_output("phones").await.unwrap();
    wait_device(&daemon, "phones").await;
    daemon.wait_end(0).await;
    let heard =
        dac.sessions().first().unwrap().heard.trimmed().seconds() + phones.frames_heard() as f64 / 48_000.0;
    assert!(heard > 5.8, "the rest of the track is missing: {heard:.2} s of 6 s were heard");
    assert_eq!(daemon.errors(), Vec::<String>::new());
    assert!(server.requests("/a.flac").len() == 2, "it is read once more");
}

#[tokio::test]
async fn a_device_that_is_chosen_in_a_pause_goes_on_where_the_other_was_held() {
    let ((dac, phones), server) = (two_cards(), Server::start());
    let source = Recording::music(90, 44_100, 16, 3.0);
    let mut daemon = setup(&dac).start().await;
    daemon.play_uris(&[serve(&server, "/a.flac", &source)]).await;
    daemon.wait_position(1_000_000).await;
    daemon.pause().await;
    daemon.select_output("phones").await.unwrap();
    dac.wait_for("let go of", |events| events.iter().any(|event| event.kind == "close")).await;
    assert_eq!((daemon.state().await.as_str(), phones.frames_heard()), ("paused", 0));
    daemon.play().await;
    daemon.wait_end(0).await;
    assert_not_skipped(dac.music().frames(), goes_on_at(&phones.sessions()[0].heard, &source), 0);
}

#[tokio::test]
async fn a_device_that_cannot_be_used_is_refused_and_music_plays_on() {
    let ((dac, phones), server) = (two_cards(), Server::start());
    phones.fault(Fault::Busy);
    let source = Recording::music(82, 44_100, 16, 2.0);
    let mut daemon = setup(&dac).start().await;
    daemon.play_uris(&[serve(&server, "/a.flac", &source)]).await;
    daemon.wait_position(200_000).await;
    let (name, sentence) = refusal(daemon.select_output("kitchen").await);
    assert!(name.ends_with("NoSuchOutput") && sentence.contains("“kitchen”"), "{name}: {sentence}");
    let (_, sentence) = refusal(daemon.select_output("phones").await);
    assert!(sentence.contains("“phones” is used by another program"), "{sentence}");
    let (status, _, error) = daemon.segue(&["outputs", "select", "kitchen"]).await;
    assert!(status == 1 && error.contains("“kitchen”"), "{status}: {error}");
    // What is in use already is not interrupted either.
    daemon.select_output("dac").await.unwrap();
    daemon.select_output("").await.unwrap();
    daemon.wait_end(0).await;
    assert_exact(&dac.music(), &source);
    assert_eq!(dac.sessions().len(), 1);
}

#[tokio::test]
async fn a_choice_outlives_the_daemon_and_a_chosen_device_that_is_missing_is_stood_in_for() {
    let ((dac, phones), server) = (two_cards(), Server::start());
    let source = Recording::music(83, 44_100, 16, 1.0);
    let url = serve(&server, "/a.flac", &source);
    let mut daemon = setup(&dac).output("release_after_s = 1").start().await;
    daemon.select_output("phones").await.unwrap();
    daemon.term().await;
    daemon.start_again().await;
    daemon.play_to_the_end(&[&url]).await;
    assert_exact(&phones.music(), &source);
    daemon.term().await;
    phones.fault(Fault::Unplug);
    daemon.start_again().await;
    daemon.play_to_the_end(&[&url]).await;
    assert_exact(&dac.music(), &source);
    let said = daemon.wait_event("trouble").await;
    assert!(format!("{said:?}").contains("“phones” is not there"), "{said:?}");
    phones.heal();
    wait_device(&daemon, "").await;
    daemon.play_to_the_end(&[&url]).await;
    assert_eq!(phones.sessions().len(), 2, "back where it was wanted");
    daemon.select_output("").await.unwrap();
    daemon.play_to_the_end(&[&url]).await;
    assert_eq!(dac.sessions().len(), 2, "back to the configuration");
}

#[tokio::test]
async fn the_second_device_stands_in_for_one_that_is_unplugged_until_a_format_ends() {
    let ((dac, phones), server) = (two_cards(), Server::start());
    let long = Recording::music(84, 44_100, 16, 5.0);
    let other = Recording::music(85, 48_000, 16, 1.0);
    let urls = [serve(&server, "/a.flac", &long), serve(&server, "/b.flac", &other)];
    let mut daemon = setup(&dac).devices(&["dac", "phones"]).start().await;
    daemon.play_uris(&urls).await;
    daemon.wait_position(1_000_000).await;
    dac.fault(Fault::Unplug);
    wait_device(&daemon, "phones").await;
    dac.heal();
    hear_more(&daemon, 1_000_000).await;
    assert_eq!(device(&daemon).await, "phones", "no jump in the middle of a track");
    daemon.wait_end(0).await;
    let [before, after] = &dac.sessions()[..] else { panic!("{} sessions", dac.sessions().len()) };
    let [between] = &phones.sessions()[..] else { panic!("{} sessions", phones.sessions().len()) };
    let end = before.heard.trimmed().frames();
    let start = goes_on_at(&between.heard, &long);
    assert_not_skipped(end, start, before.period);
    assert_eq!(start + between.heard.trimmed().frames(), long.frames(), "heard to its end");
    assert_exact(&after.heard.trimmed(), &other);
    assert_eq!(daemon.errors().len(), 1, "{:?}", daemon.errors());
}

#[tokio::test]
async fn a_device_that_is_back_within_moments_is_not_left_for_the_next() {
    let ((dac, phones), server) = (two_cards(), Server::start());
    let source = Recording::music(86, 44_100, 16, 3.0);
    let mut daemon = setup(&dac).devices(&["dac", "phones"]).start().await;
    daemon.play_uris(&[serve(&server, "/a.flac", &source)]).await;
    daemon.wait_position(1_000_000).await;
    dac.fault(Fault::Unplug);
    dac.wait_for("it was looked for", |events| events.iter().any(|e| e.kind == "open_failed")).await;
    dac.heal();
    daemon.wait_end(0).await;
    assert_eq!((dac.sessions().len(), phones.sessions().len()), (2, 0));
}

#[tokio::test]
async fn a_device_that_holds_more_than_the_one_before_loses_nothing_in_a_pause() {
    let (dac, server) = (Card::new().clock(Clock::Real).buffer(8 * 44_100 / 20).plug(), Server::start());
    let phones = Card::new().clock(Clock::Real).beside(&dac, "phones").plug();
    let source = Recording::music(87, 44_100, 16, 4.0);
    let mut daemon = setup(&dac).start().await;
    daemon.play_uris(&[serve(&server, "/a.flac", &source)]).await;
    daemon.wait_position(500_000).await;
    daemon.select_output("phones").await.unwrap();
    wait_device(&daemon, "phones").await;
    hear_more(&daemon, 500_000).await;
    daemon.pause().await;
    daemon.play().await;
    daemon.wait_end(0).await;
    // With the first frame of its fade, which is silent.
    let heard = dac.music().then(&phones.sessions()[0].heard);
    let fade = 44_100 * 6 / 1_000;
    let moved = dac.music().frames();
    let paused = phones.events_of("drop")[0].number("consumed") as usize + moved;
    assert_exact_outside(&heard, &source, &[moved..moved + fade, paused..paused + fade]);
}

#[tokio::test]
async fn devices_are_listed_with_what_they_can_do_and_the_one_that_plays_is_left_alone() {
    let dac = Card::new().clock(Clock::Real).rates(&[44_100, 96_000]).channels(&[2]).mixer("").plug();
    let phones = Card::new().formats(&["S16_LE"]).beside(&dac, "phones").plug();
    let server = Server::start();
    let source = Recording::music(88, 44_100, 16, 2.0);
    let mut daemon = setup(&dac).devices(&["dac", "phones"]).start().await;
    daemon.play_uris(&[serve(&server, "/a.flac", &source)]).await;
    daemon.wait_position(200_000).await;
    let playing = listed(&daemon, "dac").await;
    assert_eq!(get::<String>(&playing, "state"), "open");
    assert!(get::<bool>(&playing, "current"));
    assert_eq!(get::<String>(&playing, "mixer"), "Digital");
    assert_eq!(get::<Vec<u32>>(&playing, "rates"), [44_100, 96_000]);
    assert_eq!((get::<u32>(&playing, "channels_min"), get::<u32>(&playing, "channels_max")), (2, 2));
    let other = listed(&daemon, "phones").await;
    assert_eq!(get::<String>(&other, "state"), "free");
    assert_eq!(get::<Vec<String>>(&other, "formats"), ["S16_LE"]);
    phones.fault(Fault::Busy);
    assert_eq!(get::<String>(&listed(&daemon, "phones").await, "state"), "busy");
    phones.fault(Fault::Unplug);
    let gone = listed(&daemon, "phones").await;
    assert!(get::<String>(&gone, "reason").contains("is not there"), "{gone:?}");
    let (status, text, _) = daemon.segue(&["outputs"]).await;
    assert_eq!(status, 0);
    assert!(text.contains("▶ dac (named, open)\n    44.1, 96 kHz; S32_LE"), "{text}");
    assert!(
        text.contains("volume control “Digital”") && text.contains("  phones (named, unusable)"),
        "{text}"
    );
    let (_, json, _) = daemon.segue(&["outputs", "--json"]).await;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(
        json.as_array().unwrap().iter().any(|one| one["name"] == "dac" && one["current"] == true),
        "{json}"
    );
    daemon.wait_end(0).await;
    assert_exact(&dac.music(), &source);
    assert_eq!(dac.events_of("open").len(), 1, "it was opened to be looked at");
}

#[tokio::test]
async fn the_volume_is_that_of_the_device_in_use_and_moving_sets_none() {
    let dac = Card::new().clock(Clock::Real).mixer("").plug();
    let phones = Card::new().clock(Clock::Real).mixer("").beside(&dac, "phones").plug();
    let plain = Card::new().clock(Clock::Real).beside(&dac, "plain").plug();
    dac.turn_knob(207, true);
    phones.turn_knob(150, true);
    let server = Server::start();
    let source = Recording::music(89, 44_100, 16, 6.0);
    let mut daemon = setup(&dac).output("mixer_device = \"dac\"").start().await;
    daemon.play_uris(&[serve(&server, "/a.flac", &source)]).await;
    let stands_at = async |wanted: std::ops::Range<f64>, control: &str| {
        until_async(&format!("{wanted:?} by {control}"), async || {
            let by: String = daemon.player.get_property("VolumeControl").await.unwrap();
            let volume: f64 = daemon.player.get_property("Volume").await.unwrap();
            by == control && wanted.contains(&volume)
        })
        .await;
    };
    stands_at(0.99..1.01, "hardware").await;
    daemon.select_output("phones").await.unwrap();
    stands_at(0.30..0.36, "hardware").await;
    daemon.select_output("plain").await.unwrap();
    stands_at(0.99..1.01, "software").await;
    daemon.set_volume(0.5).await;
    daemon.select_output("phones").await.unwrap();
    stands_at(0.30..0.36, "hardware").await;
    daemon.select_output("plain").await.unwrap();
    stands_at(0.49..0.51, "software").await;
    daemon.wait_end(0).await;
    assert_eq!((dac.mixer_writes(), phones.mixer_writes()), (0, 0));
    assert!(plain.frames_heard() > 0);
}
