//! A decoder that computes and computes costs its track, and a second one a restart.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::support::prelude::*;

/// The daemon gives a decoder ten seconds of the processor, of which a loaded machine has little to give.
const LONG: Duration = Duration::from_secs(300);
/// So much of nothing, in a file that takes no space, to look for the next frame or the next chunk in.
const NOTHING: u64 = 1 << 40;

fn with_nothing_behind(path: &Path) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(NOTHING).unwrap();
}

/// MP3 without a word about its length, and then no frame for ever.
fn mp3(folder: &Path, source: &Recording) -> PathBuf {
    let (wav, path) = (folder.join("source.wav"), folder.join("bad.mp3"));
    std::fs::write(&wav, source.to_wav()).unwrap();
    let lame = Command::new("lame").args(["--quiet", "-t", "-b", "192"]).arg(&wav).arg(&path).status();
    assert!(lame.unwrap().success());
    with_nothing_behind(&path);
    path
}

/// FLAC without a table to seek by, in whose second half, by its bytes, there is no frame.
fn flac(folder: &Path, source: &Recording) -> PathBuf {
    let (wav, path) = (folder.join("source.wav"), folder.join("bad.flac"));
    std::fs::write(&wav, source.to_wav()).unwrap();
    let flac = Command::new("flac").args(["--silent", "--no-seektable", "-o"]).arg(&path).arg(&wav).status();
    assert!(flac.unwrap().success());
    with_nothing_behind(&path);
    path
}

/// A WAV of empty chunks.
fn wav(folder: &Path) -> PathBuf {
    let path = folder.join("bad.wav");
    std::fs::write(&path, b"RIFF\xff\xff\xff\xffWAVE").unwrap();
    with_nothing_behind(&path);
    path
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

async fn until_long(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// How many threads of the daemon run only when nothing else wants to.
fn idle_threads(pid: i32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let policy = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(38).map(str::to_owned)
    };
    tasks.flatten().filter_map(policy).filter(|policy| policy == "5").count()
}

#[tokio::test]
async fn a_decoder_that_runs_away_costs_its_track_and_a_second_one_a_restart() {
    let card = Card::new().clock(Clock::Times(4.0)).plug();
    let folder = tempfile::tempdir().unwrap();
    let source = Recording::music(70, 44_100, 16, 3.0);
    let bad = mp3(folder.path(), &source);
    let good = folder.path().join("good.flac");
    std::fs::write(&good, source.encode(Codec::Flac).bytes.as_slice()).unwrap();
    let files = format!("[files]\nfolders = [{:?}]\n", folder.path());
    let mut daemon = Daemon::new().card(&card).config(&files).start().await;
    let ids = daemon.add(&[uri(&bad), uri(&good), uri(&wav(folder.path())), uri(&good)]).await;
    daemon.play().await;
    let gave_up = |daemon: &Daemon| daemon.errors().iter().filter(|e| e.contains("come to an end")).count();
    until_long("the track is given up", || gave_up(&daemon) == 1).await;
    assert!(daemon.errors()[0].contains("bad.mp3"), "{:?}", daemon.errors());
    // It may have ended by now, since its bytes are taken away.
    assert!(idle_threads(daemon.pid()) <= 1);
    let is_good = || daemon.events("joined") == 1;
    until_long("the next track is heard", is_good).await;
    assert_eq!(daemon.current().await, ids[1]);
    let status = tokio::time::timeout(LONG, daemon.ended()).await.expect("the daemon ends by itself");
    assert_eq!(status.code(), Some(1), "for a restart");
    let heard = card.music();
    assert_exact(&heard.cut(heard.frames() - source.frames()..heard.frames()), &source);
    daemon.start_again().await;
    assert_eq!(daemon.listed().await.len(), 4, "the queue is kept");
    daemon.wait_state("buffering").await;
}

#[tokio::test]
async fn a_decoder_that_runs_away_in_a_seek_costs_its_track_alone() {
    let card = Card::new().clock(Clock::Times(4.0)).plug();
    let folder = tempfile::tempdir().unwrap();
    // Long enough that the decoder does not come to its end by itself.
    let bad = flac(folder.path(), &Recording::music(71, 44_100, 16, 60.0));
    let source = Recording::music(72, 44_100, 16, 3.0);
    let good = folder.path().join("good.flac");
    std::fs::write(&good, source.encode(Codec::Flac).bytes.as_slice()).unwrap();
    let files = format!("[files]\nfolders = [{:?}]\n", folder.path());
    let mut daemon = Daemon::new().card(&card).config(&files).start().await;
    let ids = daemon.add(&[uri(&bad), uri(&good)]).await;
    daemon.play().await;
    daemon.wait_position(500_000).await;
    daemon.set_position(30_000_000).await;
    daemon.wait_state("buffering").await;
    // It can still be asked for something else, and answers at once.
    let asked = Instant::now();
    daemon.set_position(40_000_000).await;
    daemon.pause().await;
    daemon.play().await;
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    let gave_up = |daemon: &Daemon| daemon.errors().iter().filter(|e| e.contains("come to an end")).count();
    until_long("the track is given up", || gave_up(&daemon) == 1).await;
    assert!(daemon.errors()[0].contains("bad.flac"), "{:?}", daemon.errors());
    // It may have ended by now, since its bytes are taken away.
    assert!(idle_threads(daemon.pid()) <= 1);
    daemon.wait_end(0).await;
    assert_eq!((gave_up(&daemon), daemon.current().await), (1, ids[0]));
    let heard = card.music();
    assert_exact(&heard.cut(heard.frames() - source.frames()..heard.frames()), &source);
}
