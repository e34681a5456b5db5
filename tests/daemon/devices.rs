//! A sound card that is gone, missing or taken costs time and no music.

use crate::support::prelude::*;

/// Of a processor that the daemon may use while it waits for a card.
const IDLE_SHARE: f64 = 0.05;

/// How much of a processor the daemon uses for so long.
async fn share(daemon: &Daemon, time: Duration) -> f64 {
    let (before, began) = (process::cpu(daemon.pid()), Instant::now());
    tokio::time::sleep(time).await;
    let spent = process::cpu(daemon.pid()).saturating_sub(before);
    spent.as_secs_f64() / began.elapsed().as_secs_f64()
}

async fn waits_for_the_device(daemon: &mut Daemon) {
    let what = async {
        while daemon.player.get_property::<String>("StateReason").await.unwrap() != "device" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, what).await.expect("the device was never the reason");
    assert_eq!(daemon.state().await, "paused", "paused by the device, until it is back");
}

#[tokio::test]
async fn a_card_that_is_unplugged_for_two_seconds_costs_no_music() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let source = Recording::music(50, 44_100, 16, 4.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    daemon.wait_position(1_000_000).await;
    card.fault(Fault::Unplug);
    waits_for_the_device(&mut daemon).await;
    let lost_at = daemon.position().await;
    let used = share(&daemon, Duration::from_secs(2)).await;
    assert!(used < IDLE_SHARE, "{:.1} % of a processor", used * 100.0);
    assert_eq!(daemon.position().await, lost_at, "the position moved in silence");
    card.heal();
    daemon.wait_end(0).await;
    let sessions = card.sessions();
    let [before, after] = &sessions[..] else { panic!("{} sessions", sessions.len()) };
    let heard = before.heard.trimmed();
    assert_exact(&heard, &source.cut(0..heard.frames()));
    // Where it went on, found behind the fade.
    let fade = 44_100 * 6 / 1_000;
    let went_on = after.heard.trimmed();
    let sound = &went_on.samples[2 * fade..2 * fade + 16];
    let found = source.samples.windows(16).step_by(2).position(|window| window == sound);
    // The first frame of a fade may be silent, which moves the start by one.
    let start = found.expect("what came after the return is not of this recording") - fade;
    let (end, period) = (heard.frames(), before.period);
    assert!(start <= end + 1, "{} frames were skipped", start - end);
    assert!(end - start.min(end) <= period, "{} frames were repeated, a period has {period}", end - start);
    let rest = source.cut(start..source.frames());
    assert_exact_outside(&went_on, &rest, &[0..fade]);
    assert_eq!(daemon.errors().len(), 1, "{:?}", daemon.errors());
}

async fn waits_at_the_start_for(fault: Fault) {
    let (card, server) = (Card::new().clock(Clock::Times(4.0)).fault(fault).plug(), Server::start());
    let source = Recording::music(51, 44_100, 16, 4.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    waits_for_the_device(&mut daemon).await;
    let used = share(&daemon, Duration::from_secs(2)).await;
    assert!(used < IDLE_SHARE, "{:.1} % of a processor", used * 100.0);
    assert!(card.events_of("open_failed").len() >= 2, "it did not try again");
    card.heal();
    daemon.wait_end(0).await;
    assert_exact_outside(&card.music(), &source, &[0..44_100 * 6 / 1_000]);
    assert_eq!(daemon.errors().len(), 1, "{:?}", daemon.errors());
}

#[tokio::test]
async fn a_card_that_is_missing_at_the_start_is_waited_for() {
    waits_at_the_start_for(Fault::Unplug).await;
}

#[tokio::test]
async fn a_card_that_is_busy_at_the_start_is_waited_for() {
    waits_at_the_start_for(Fault::Busy).await;
}

#[tokio::test]
async fn pause_while_the_card_is_gone_cancels_the_return() {
    let (card, server) = (Card::new().clock(Clock::Times(4.0)).fault(Fault::Unplug).plug(), Server::start());
    let source = Recording::music(52, 44_100, 16, 2.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    waits_for_the_device(&mut daemon).await;
    daemon.pause().await;
    card.heal();
    // Longer than the next attempt would take.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(daemon.state().await, "paused");
    assert_eq!(card.frames_heard(), 0);
    daemon.play().await;
    daemon.wait_end(0).await;
    assert_exact_outside(&card.music(), &source, &[0..44_100 * 6 / 1_000]);
}

#[tokio::test]
async fn stop_while_the_card_is_gone_cancels_the_return_and_play_asks_for_it_again() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let source = Recording::music(54, 44_100, 16, 3.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    daemon.wait_position(500_000).await;
    card.fault(Fault::Unplug);
    waits_for_the_device(&mut daemon).await;
    daemon.stop().await;
    daemon.wait_state("stopped").await;
    assert_eq!(daemon.last_error().await, (String::new(), String::new()), "nobody waits for it any more");
    card.heal();
    let heard = card.frames_heard();
    // Longer than the next attempt would take.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((daemon.state().await.as_str(), card.frames_heard()), ("stopped", heard));
    // Away again: Play waits for it, and a pause in between does not end that.
    card.fault(Fault::Unplug);
    daemon.play().await;
    waits_for_the_device(&mut daemon).await;
    daemon.pause().await;
    daemon.play().await;
    waits_for_the_device(&mut daemon).await;
    card.heal();
    daemon.wait_end(0).await;
    assert_exact_outside(&card.sessions()[1].heard.trimmed(), &source, &[0..44_100 * 6 / 1_000]);
}

/// Lines of the log from this level on, without their times.
fn complaints(daemon: &Daemon) -> Vec<String> {
    let is_one = |line: &&str| line.contains("WARN") || line.contains("ERROR");
    daemon.log().lines().filter(is_one).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_card_that_another_program_takes_in_a_pause_costs_two_lines_of_the_log() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let source = Recording::music(55, 44_100, 16, 3.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).output("release_after_s = 0").start().await;
    daemon.play_uris(&[url]).await;
    daemon.wait_position(500_000).await;
    daemon.pause().await;
    card.wait_for("let go of", |events| events.iter().any(|event| event.kind == "close")).await;
    card.fault(Fault::Busy);
    let before = daemon.log().len();
    daemon.play().await;
    waits_for_the_device(&mut daemon).await;
    card.wait_for("tries", |events| events.iter().filter(|event| event.kind == "open_failed").count() >= 4)
        .await;
    let busy = daemon.log()[before..].to_owned();
    card.heal();
    daemon.wait_end(0).await;
    assert_eq!(busy.matches("is used by another program").count(), 1, "one line when it starts: {busy}");
    let after = daemon.log()[before + busy.len()..].to_owned();
    assert_eq!(after.matches("sound goes to dac").count(), 1, "one line when it ends: {after}");
    assert_eq!(complaints(&daemon).len(), 1, "{:?}", complaints(&daemon));
    let [before, after] = &card.sessions()[..] else { panic!("{} sessions", card.sessions().len()) };
    let paused = before.heard.trimmed().frames();
    // With the first frame of its fade, which is silent.
    let heard = before.heard.trimmed().then(&after.heard);
    assert_exact_outside(&heard, &source, &[paused..paused + 44_100 * 6 / 1_000]);
}

#[tokio::test]
async fn an_xrun_is_counted_and_costs_no_frame() {
    let (card, server) = (Card::new().clock(Clock::Real).plug(), Server::start());
    let source = Recording::music(53, 44_100, 16, 3.0);
    let url = server.serve("/a.flac", source.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_uris(&[url]).await;
    daemon.wait_position(1_000_000).await;
    card.fault(Fault::Xrun);
    card.wait_for("an xrun", |events| events.iter().any(|event| event.kind == "xrun")).await;
    daemon.wait_position(2_000_000).await;
    assert_eq!(get::<u64>(&daemon.output().await, "xruns"), 1);
    daemon.wait_end(0).await;
    let at = card.events_of("xrun")[0].number("consumed") as usize;
    assert_exact_outside(&card.music(), &source, &[at..at + 44_100 * 6 / 1_000]);
}
