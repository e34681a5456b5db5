//! What the plugin host costs: calls beside the floor of a pipe in the same run, memory for running plugins and
//! for the longest reply. Prints ratios; the aims stand beside them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use segue::plugin::{Host, Settings, Who};
use segue::track::TrackRef;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

const ROUNDS: usize = 20_000;
const PLUGINS: usize = 20;
/// As long as the request for a ping.
const LINE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":10000,\"method\":\"ping\"}\n";

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path());
    // As in the daemon: one thread for everything.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let floor = floor(&program).await;
        let host = host(folder.path(), &program).await;
        running(&host).await;
        let ping = pings(&host).await;
        print("pipe ping-pong without JSON", &floor, None);
        print("ping to a compiled plugin", &ping, Some((&floor, 3.0)));
        in_flight(&host).await;
        long_reply(&host).await;
        host.shutdown().await;
    });
}

fn compile(folder: &Path) -> PathBuf {
    let program = folder.join("ponder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/ponder.c");
    let status = Command::new("gcc").args(["-O2", "-o"]).arg(&program).arg(source).status().unwrap();
    assert!(status.success(), "gcc is needed for this benchmark");
    program
}

async fn floor(program: &Path) -> Vec<Duration> {
    let mut child = tokio::process::Command::new(program)
        .arg("floor")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut times = Vec::with_capacity(ROUNDS);
    let mut line = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        stdin.write_all(LINE).await.unwrap();
        line.clear();
        lines.read_until(b'\n', &mut line).await.unwrap();
        times.push(began.elapsed());
    }
    times.sort_unstable();
    times
}

async fn host(folder: &Path, program: &Path) -> Host {
    let at = |name: &str| folder.join(name);
    for number in 0..PLUGINS {
        let package = at("plugins").join(format!("p{number}"));
        fs::create_dir_all(&package).unwrap();
        fs::copy(program, package.join("run")).unwrap();
        fs::set_permissions(package.join("run"), Permissions::from_mode(0o755)).unwrap();
        let manifest = format!(
            r#"{{"schema": 1, "id": "p{number}", "name": "P", "version": "1", "protocol": "segue.plugin/1",
                "executable": "run", "capabilities": ["get_album", "stream"], "idle_stop_s": -1}}"#
        );
        fs::write(package.join("plugin.json"), manifest).unwrap();
        fs::set_permissions(package.join("plugin.json"), Permissions::from_mode(0o644)).unwrap();
    }
    let settings = Settings::new(at("state"), at("cache"), at("config"));
    let host = Host::start(Settings { folders: vec![at("plugins")], ..settings }).await.unwrap();
    for plugin in host.list() {
        host.trust(&plugin.id, &plugin.fingerprint, &who()).await.unwrap();
    }
    host
}

async fn pings(host: &Host) -> Vec<Duration> {
    let plugin = "p0".parse().unwrap();
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        times.push(host.ping(&plugin).await.unwrap());
    }
    times.sort_unstable();
    times
}

fn print(what: &str, times: &[Duration], floor: Option<(&[Duration], f64)>) {
    let at =
        |times: &[Duration], percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e6;
    let [p50, p99] = [50, 99].map(|percent| at(times, percent));
    print!("{what:<40} p50 {p50:7.1} µs   p99 {p99:7.1} µs");
    if let Some((floor, aim)) = floor {
        let [half, most] = [50, 99].map(|percent| at(times, percent) / at(floor, percent));
        print!("   {half:.2} and {most:.2} of the floor (aim for p50: {aim})");
    }
    println!();
}

/// Sixteen calls at a time beside one after the other.
async fn in_flight(host: &Host) {
    let call = |number: usize| {
        let track = TrackRef { plugin: "p0".parse().unwrap(), content_id: number.to_string() };
        async move { host.resolve(&track).await.unwrap() }
    };
    let mut rates = Vec::new();
    for at_once in [1, 16] {
        let began = Instant::now();
        futures_util::stream::iter((0..ROUNDS).map(call)).buffer_unordered(at_once).count().await;
        rates.push(ROUNDS as f64 / began.elapsed().as_secs_f64());
    }
    let [one, sixteen] = rates[..] else { return };
    println!(
        "{:<40} {sixteen:.0} calls/s with 16 in flight, {one:.0} with one: {:.2}",
        "stream calls",
        sixteen / one
    );
}

/// The most memory while the longest line is read and becomes an album.
async fn long_reply(host: &Host) {
    let album = TrackRef { plugin: "p1".parse().unwrap(), content_id: "1".to_owned() };
    host.ping(&album.plugin).await.unwrap();
    let before = memory("VmRSS");
    // Sets the peak back to what is used now.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let info = host.album(&album).await.unwrap();
    let (peak, line) = (memory("VmHWM") - before, 10.0 * 1024.0);
    assert_eq!(info.tracks.len(), 10_000);
    drop(info);
    println!(
        "{:<40} {:.1} MiB at the peak: {:.2} of the line (aim: 3)",
        "a reply of 10 MiB",
        peak / 1024.0,
        peak / line
    );
}

/// Against the host that knows all of them and has run none.
async fn running(host: &Host) {
    let before = memory("RssAnon");
    for plugin in host.list() {
        host.enable(&plugin.id, &[], &who()).await.unwrap();
    }
    assert!(host.list().iter().all(|plugin| plugin.running));
    let more = memory("RssAnon") - before;
    println!(
        "{:<40} {more:.0} KiB more in the host, {:.0} KiB each",
        format!("{PLUGINS} running plugins"),
        more / PLUGINS as f64
    );
}

fn who() -> Who {
    Who { uid: None, via: "benchmark".to_owned() }
}

/// A line of this process's status, in KiB.
fn memory(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}
