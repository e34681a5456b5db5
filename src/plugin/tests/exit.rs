use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::*;

/// Names the folder of the test that this process is the victim of.
const VICTIM: &str = "SEGUE_TEST_VICTIM";

/// A plugin that leaves a descendant in a session of its own, which forked twice and holds the pipes.
fn leaves_a_descendant(mark: &str) -> String {
    format!(
        r#"
def leave():
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.execv('/usr/bin/python3', ['python3', '-c', 'import time; time.sleep(600)', '{mark}'])
        os._exit(0)
    os.waitpid(child, 0)
def stream(id, p): leave(); answer(id, url('ok'))
"#
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
async fn under_the_keeper_descendants_end_too() {
    let bench = Bench::new();
    let mark = format!("segue-plain-{}", std::process::id());
    let hooks = leaves_a_descendant(&mark) + "\ndef search(id, p): leave(); os._exit(5)";
    bench.python("demo", &hooks, json!({}));
    let host = Host::start(bench.unconfined()).await.unwrap();
    allow(&host, "demo").await.unwrap();
    // Stopped by a person, and when it ends by itself.
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "ok");
    present(&mark).await;
    host.disable("demo", &who()).await.unwrap();
    assert!(processes_with(&mark).is_empty());
    host.enable("demo", &[], &who()).await.unwrap();
    let _ = host.search(&search("x", 1, Some("demo"))).await;
    gone(&mark).await;
    // At the daemon's exit.
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "ok");
    present(&mark).await;
    host.shutdown().await;
    assert!(processes_with(&mark).is_empty());
    assert!(processes_with(bench.folder.path().to_str().unwrap()).is_empty());
    assert_eq!(zombies("segue-plugin-ru"), 0);
}

/// Nobody who looks for its processes one after the other would catch it.
#[tokio::test]
async fn under_the_keeper_a_process_that_forks_away_from_its_end_is_caught() {
    let bench = Bench::new();
    let mark = format!("segue-runaway-{}", std::process::id());
    let runaway = "import os\nwhile True:\n    if os.fork(): os._exit(0)";
    let hook = format!(
        "def stream(id, p):\n    subprocess.Popen(['/usr/bin/python3', '-c', {runaway:?}, '{mark}'], start_new_session=True)\n    answer(id, url('ok'))"
    );
    bench.python("demo", &hook, json!({}));
    let host = Host::start(bench.unconfined()).await.unwrap();
    if host.list()[0].gaps.contains(&Gap::Signals) {
        eprintln!("skipped: {}", host.list()[0].isolation);
        return;
    }
    allow(&host, "demo").await.unwrap();
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "ok");
    present(&mark).await;
    host.disable("demo", &who()).await.unwrap();
    assert!(processes_with(&mark).is_empty());
    host.shutdown().await;
}

#[tokio::test]
async fn under_the_keeper_a_plugin_is_asked_to_end_and_its_status_is_passed_on() {
    let bench = Bench::new();
    let hook = r#"
def bye(*_):
    open(INIT["dirs"]["data"] + "/bye", "w").write("x"); os._exit(0)
signal.signal(signal.SIGTERM, bye)
def stream(id, p):
    if p["content_id"] == "kill": os.kill(os.getpid(), signal.SIGKILL)
    if p["content_id"] == "exit": os._exit(3)
    answer(id, url('ok'))
    time.sleep(600)
"#;
    bench.python("demo", hook, json!({}));
    let host = Host::start(bench.unconfined()).await.unwrap();
    allow(&host, "demo").await.unwrap();
    for (content_id, status) in [("kill", "signal: 9"), ("exit", "exit status: 3")] {
        let error = ask(&host, "demo", content_id).await.unwrap_err();
        assert!(error.message.contains(status), "{error}");
    }
    ask(&host, "demo", "1").await.unwrap();
    host.disable("demo", &who()).await.unwrap();
    assert!(bench.path("state/plugin-data/demo/bye").exists());
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

/// Whether the victim is to do without bubblewrap.
const KEEPER: &str = "SEGUE_TEST_KEEPER";

#[tokio::test]
async fn a_killed_daemon_leaves_no_plugin_and_no_descendant_behind() {
    killed("a_killed_daemon_leaves_no_plugin_and_no_descendant_behind", false).await;
}

#[tokio::test]
async fn under_the_keeper_a_killed_daemon_leaves_nothing_behind_either() {
    killed("under_the_keeper_a_killed_daemon_leaves_nothing_behind_either", true).await;
}

/// Runs the very test of this name in a process of its own, which is then killed.
async fn killed(name: &str, keeper: bool) {
    if let Ok(folder) = std::env::var(VICTIM) {
        return be_the_victim(Path::new(&folder)).await;
    }
    let bench = Bench::new();
    let mark = format!("segue-orphan-{keeper}-{}", std::process::id());
    bench.python("demo", &leaves_a_descendant(&mark), json!({}));
    bench.enabled("demo").await.shutdown().await;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture"]).arg(format!("plugin::tests::exit::{name}"));
    command.env(VICTIM, bench.folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    if keeper {
        command.env(KEEPER, "1");
    }
    let mut victim = command.spawn().unwrap();
    let stderr = BufReader::new(victim.stderr.take().unwrap());
    let ready = stderr.lines().map_while(Result::ok).find(|line| line.contains("victim is ready"));
    assert!(ready.is_some(), "the victim starts");
    present(&mark).await;
    victim.kill().unwrap();
    victim.wait().unwrap();
    gone(&format!("{}/state/packages", bench.folder.path().display())).await;
    gone(&mark).await;
}

async fn be_the_victim(folder: &Path) {
    let at = |name: &str| folder.join(name);
    let mut settings = Settings {
        folders: vec![at("plugins")],
        runner: runner(),
        ..Settings::new(at("state"), at("cache"), at("config"))
    };
    if std::env::var_os(KEEPER).is_some() {
        settings.bubblewrap = at("missing");
    }
    let host = Host::start(settings).await.unwrap();
    ask(&host, "demo", "1").await.unwrap();
    eprintln!("victim is ready");
    std::future::pending().await
}

#[tokio::test]
async fn a_plugin_that_is_being_enabled_and_stays_mute_holds_up_no_shutdown() {
    let bench = Bench::new();
    bench.python("demo", "def initialize(id, p): open(p['dirs']['data'] + '/asked', 'w').close()", json!({}));
    let host = bench.host().await;
    let enabling = tokio::spawn({
        let host = host.clone();
        async move { allow(&host, "demo").await }
    });
    let asked = async {
        while !bench.path("state/plugin-data/demo/asked").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, asked).await.unwrap();
    let began = std::time::Instant::now();
    host.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(10), "not as long as a handshake may take");
    assert!(matches!(enabling.await.unwrap(), Err(HostError::Stopping)));
    assert!(processes_with(bench.path("state/packages").to_str().unwrap()).is_empty());
}
