use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::*;

/// Names the folder of the test that this process is the victim of.
const VICTIM: &str = "SEGUE_TEST_VICTIM";

/// A plugin that leaves a descendant in a session of its own, which holds the pipes.
fn leaves_a_descendant(mark: &str) -> String {
    format!(
        "def stream(id, p):\n    subprocess.Popen(['/usr/bin/python3', '-c', 'import time; time.sleep(600)', '{mark}'], start_new_session=True)\n    answer(id, url('ok'))"
    )
}

#[tokio::test]
async fn descendants_end_with_the_host_also_after_setsid_and_holding_the_pipes() {
    let bench = Bench::new();
    let mark = format!("segue-{}", std::process::id());
    bench.python("demo", &leaves_a_descendant(&mark), json!({}));
    let host = bench.enabled("demo").await;
    if !confined(&host) {
        eprintln!("skipped: {}", host.list()[0].isolation);
        return;
    }
    for crash in [false, true] {
        assert_eq!(ask(&host, "demo", "1").await.unwrap(), "ok");
        present(&mark).await;
        if crash {
            host.shutdown().await;
        } else {
            host.disable("demo", &who()).await.unwrap();
            host.enable("demo", &[], &who()).await.unwrap();
        }
        assert!(processes_with(&mark).is_empty());
    }
    assert!(processes_with(bench.folder.path().to_str().unwrap()).is_empty());
    assert_eq!(zombies("bwrap"), 0);
}

#[tokio::test]
async fn a_plugin_that_ignores_everything_is_ended_at_the_daemons_exit() {
    let bench = Bench::new();
    let hook = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ndef stream(id, p):\n    answer(id, url('ok'))\n    time.sleep(600)";
    bench.python("demo", hook, json!({}));
    let host = bench.enabled("demo").await;
    ask(&host, "demo", "1").await.unwrap();
    let began = Instant::now();
    host.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(processes_with(bench.folder.path().to_str().unwrap()).is_empty());
}

#[tokio::test]
async fn sigterm_reaches_the_plugin_so_that_it_can_end_in_order() {
    let bench = Bench::new();
    let hook = r#"
def bye(*_):
    open(INIT["dirs"]["data"] + "/bye", "w").write("x"); os._exit(0)
signal.signal(signal.SIGTERM, bye)
def stream(id, p):
    answer(id, url('ok'))
    time.sleep(600)
"#;
    bench.python("demo", hook, json!({}));
    let host = bench.enabled("demo").await;
    ask(&host, "demo", "1").await.unwrap();
    host.disable("demo", &who()).await.unwrap();
    assert!(bench.path("state/plugin-data/demo/bye").exists());
    host.shutdown().await;
}

#[tokio::test]
async fn without_confinement_descendants_end_too() {
    let bench = Bench::new();
    let mark = format!("segue-plain-{}", std::process::id());
    bench.python("demo", &leaves_a_descendant(&mark), json!({}));
    let host = Host::start(bench.unconfined()).await.unwrap();
    allow(&host, "demo").await.unwrap();
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "ok");
    present(&mark).await;
    host.disable("demo", &who()).await.unwrap();
    gone(&mark).await;
    host.shutdown().await;
}

/// A process that was just started shows its command line a moment after its starter goes on.
async fn present(mark: &str) {
    let began = Instant::now();
    while processes_with(mark).is_empty() {
        assert!(began.elapsed() < LONG, "{mark} never lived");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What was sent SIGKILL needs a moment.
async fn gone(mark: &str) {
    let began = Instant::now();
    while !processes_with(mark).is_empty() {
        assert!(began.elapsed() < LONG, "{mark} lives on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Runs this very test in a process of its own, which is then killed.
#[tokio::test]
async fn a_killed_daemon_leaves_no_plugin_and_no_descendant_behind() {
    let mark = "segue-orphan";
    if let Ok(folder) = std::env::var(VICTIM) {
        let at = |name: &str| Path::new(&folder).join(name);
        let settings = Settings {
            folders: vec![at("plugins")],
            runner: runner(),
            ..Settings::new(at("state"), at("cache"), at("config"))
        };
        let host = Host::start(settings).await.unwrap();
        let confined = host.list()[0].isolation.starts_with("enforced");
        ask(&host, "demo", "1").await.unwrap();
        eprintln!("victim is ready, confined: {confined}");
        return std::future::pending().await;
    }
    let bench = Bench::new();
    let mark = format!("{mark}-{}", std::process::id());
    bench.python("demo", &leaves_a_descendant(&mark), json!({}));
    bench.enabled("demo").await.shutdown().await;
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("plugin::tests::exit::a_killed_daemon_leaves_no_plugin_and_no_descendant_behind")
        .env(VICTIM, bench.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(victim.stderr.take().unwrap());
    let ready = stderr.lines().map_while(Result::ok).find(|line| line.contains("victim is ready"));
    let confined = ready.expect("the victim starts").contains("true");
    present(&mark).await;
    victim.kill().unwrap();
    victim.wait().unwrap();
    gone(&format!("{}/state/packages", bench.folder.path().display())).await;
    if confined {
        gone(&mark).await;
    } else {
        eprintln!("skipped: nothing here ends what called setsid");
        processes_with(&mark).into_iter().for_each(|pid| {
            let _ = nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(pid.cast_signed()),
                nix::sys::signal::Signal::SIGKILL,
            );
        });
    }
}
