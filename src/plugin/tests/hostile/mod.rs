//! A plugin tries what it must not, under each rule set; and what was measured before it ran is what it finds.

mod languages;
mod names;
mod older;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Child, Command, Stdio};

use super::*;
use Rule::{Allowed, Denied, Net, Unless};

/// What is to come of an attempt.
#[derive(Clone, Copy)]
enum Rule {
    /// It must work.
    Allowed,
    /// It must fail, whatever confines the plugin.
    Denied,
    /// It must work with the scope `network`, and without it fail unless the gap is reported.
    Net,
    /// It must fail unless the gap is reported, and work when it is.
    Unless(Gap),
}

/// Every attempt of `tries.py`.
const TABLE: &[(&str, Rule)] = &[
    ("an internet connection", Net),
    ("an internet datagram", Net),
    ("an IPv6 socket", Net),
    ("a raw internet socket", Denied),
    ("a UNIX socket by path", Unless(Gap::Unix)),
    ("a UNIX socket by name", Unless(Gap::Unix)),
    ("the bus", Unless(Gap::Unix)),
    ("any UNIX socket", Unless(Gap::Unix)),
    ("a netlink socket", Unless(Gap::Netlink)),
    ("a packet socket", Unless(Gap::Packet)),
    ("a vsock socket", Unless(Gap::Vsock)),
    ("io_uring", Unless(Gap::IoUring)),
    ("a pair of sockets", Allowed),
    ("reading /etc/passwd", Unless(Gap::Files)),
    ("listing /", Unless(Gap::Files)),
    ("listing /etc", Unless(Gap::Files)),
    ("listing the home folder", Unless(Gap::Files)),
    ("the daemon's memory by its file", Unless(Gap::Memory)),
    ("the daemon's memory by a call", Unless(Gap::Memory)),
    ("the keeper's memory by a call", Unless(Gap::Memory)),
    ("attaching to the daemon", Unless(Gap::Memory)),
    ("the daemon's descriptors", Unless(Gap::Files)),
    ("the daemon's environment", Unless(Gap::Files)),
    ("reading the trust file", Unless(Gap::Files)),
    ("writing the trust file", Unless(Gap::Changes)),
    ("replacing the trust file", Unless(Gap::Changes)),
    ("seeing the trust file", Unless(Gap::Names)),
    ("changing the trust file's mode", Unless(Gap::Modes)),
    ("changing the trust file's times", Unless(Gap::Modes)),
    ("listing the state", Unless(Gap::Files)),
    ("reading the configuration", Unless(Gap::Files)),
    ("writing the configuration", Unless(Gap::Changes)),
    ("writing its own copy", Denied),
    ("replacing its own copy", Unless(Gap::Changes)),
    ("a new file beside its own copy", Denied),
    ("changing its own copy's mode", Unless(Gap::Modes)),
    ("reading another plugin's data", Unless(Gap::Files)),
    ("writing another plugin's data", Unless(Gap::Changes)),
    ("reading another plugin's copy", Unless(Gap::Files)),
    ("reading a granted file", Allowed),
    ("writing a granted file", Unless(Gap::Changes)),
    ("writing its own data", Allowed),
    ("a new file in /", Unless(Gap::Changes)),
    ("a new file in /dev", Unless(Gap::Changes)),
    ("a new file in /usr", Unless(Gap::Changes)),
    ("the terminal", Denied),
    ("taking back its place before the memory killer", Unless(Gap::Files)),
    ("64 MiB in /dev/shm", Unless(Gap::Changes)),
    ("a file of 300 MiB", Denied),
    ("1 GiB of memory", Unless(Gap::Hunger)),
    ("a higher limit", Unless(Gap::Descriptors)),
    ("300 descriptors", Unless(Gap::Descriptors)),
    ("200 processes", Unless(Gap::Processes)),
    ("a core file's limit", Denied),
    ("real-time priority", Unless(Gap::Realtime)),
    ("the daemon's limits", Unless(Gap::Kernel)),
    ("the daemon's priority", Unless(Gap::Kernel)),
    ("the daemon's processors", Unless(Gap::Kernel)),
    ("a signal to the daemon", Unless(Gap::Signals)),
    ("a signal to the keeper", Unless(Gap::Signals)),
    ("a user namespace", Unless(Gap::Namespaces)),
    ("a user namespace by clone", Unless(Gap::Namespaces)),
    ("a namespace by clone3", Unless(Gap::Namespaces)),
    ("mounting", Denied),
    ("loading a BPF program", Denied),
    ("a keyring", Unless(Gap::Kernel)),
    ("memory that stays", Unless(Gap::Kernel)),
    ("a call by its x32 number", Unless(Gap::Kernel)),
];

/// What is left to a plugin where the kernel has everything that is asked of it: Landlock with the scope of signals,
/// seccomp, and processes counted for each user namespace.
fn expected_gaps(means: Means) -> Vec<Gap> {
    let is_root = nix::unistd::Uid::effective().is_root();
    match means {
        Means::Bubblewrap if is_root => vec![Gap::Processes],
        Means::Bubblewrap => vec![],
        _ => vec![Gap::Names, Gap::Modes, Gap::Processes],
    }
}

/// Ends a child of the test's own.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A real bus, and where it listens.
fn bus() -> (Ended, String) {
    let mut daemon = Command::new("dbus-daemon")
        .args(["--session", "--nofork", "--print-address"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("dbus-daemon is installed");
    let mut address = String::new();
    BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let path = address.split(['=', ',']).nth(1).expect("a path").to_owned();
    (Ended(daemon), path)
}

/// Runs the hostile plugin under one rule set: what it could do, and what had been measured.
async fn tried(
    keeper: bool,
    network: bool,
    change: impl FnOnce(&mut Settings),
) -> (serde_json::Map<String, Value>, Isolation) {
    // Not below /tmp, where a plugin has a folder of its own and would find what it put there itself.
    let bench = Bench::below(Path::new("/var/tmp"));
    let (_bus, bus) = bus();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = UnixListener::bind(bench.path("socket")).unwrap();
    let name = bench.path("abstract").to_str().unwrap().to_owned();
    let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let granted = bench.path("granted");
    fs::create_dir(&granted).unwrap();
    fs::write(granted.join("song"), "la").unwrap();
    bench.python("other", "", json!({}));
    let mut scopes = vec![json!({"scope": format!("files.read:{}", granted.display()), "reason": "songs"})];
    if network {
        scopes.push(json!({"scope": "network", "reason": "tries"}));
    }
    bench.python(
        "demo",
        include_str!("tries.py"),
        json!({"scopes": scopes, "timeouts_ms": {"stream": 30_000}}),
    );
    let mut settings = if keeper { bench.unconfined() } else { bench.settings() };
    change(&mut settings);
    let host = Host::start(settings).await.unwrap();
    allow(&host, "other").await.unwrap();
    let other = bench.path("state/plugin-data/other/secret");
    fs::write(&other, "s").unwrap();
    let other_copy = bench.path("state/packages").join(&host.inspect("other").unwrap().summary.fingerprint);
    let config = bench.path("config/plugins/other.toml");
    fs::write(&config, "[secrets]\npassword = \"1234\"\n").unwrap();
    let facts = [
        ("daemon", toml::Value::from(i64::from(std::process::id()))),
        ("port", i64::from(port.local_addr().unwrap().port()).into()),
        ("socket", bench.path("socket").to_str().unwrap().into()),
        ("abstract", name.as_str().into()),
        ("bus", bus.as_str().into()),
        ("home", std::env::current_dir().unwrap().to_str().unwrap().into()),
        ("trust", bench.path("state/trust.json").to_str().unwrap().into()),
        ("config", config.to_str().unwrap().into()),
        ("other", other.to_str().unwrap().into()),
        ("other_copy", other_copy.join("other/run").to_str().unwrap().into()),
        ("granted", granted.join("song").to_str().unwrap().into()),
    ];
    let facts: toml::Table = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let file = toml::Table::from_iter([("config".to_owned(), toml::Value::Table(facts))]);
    fs::write(bench.path("config/plugins/demo.toml"), file.to_string()).unwrap();
    allow(&host, "demo").await.unwrap();
    assert_eq!(ask(&host, "demo", "all").await.unwrap(), "done");
    let isolation = host.enabled(&id("demo")).unwrap().plan.isolation();
    assert_eq!(host.inspect("demo").unwrap().summary.isolation, isolation.to_string());
    if !isolation.gaps().contains(&Gap::Changes) {
        assert_eq!(fs::read_to_string(&other).unwrap(), "s");
    }
    assert_eq!(ask(&host, "other", "1").await.unwrap(), "1");
    host.shutdown().await;
    drop((port, socket, hidden));
    let found = fs::read(bench.path("state/plugin-data/demo/found.json")).unwrap();
    (serde_json::from_slice(&found).unwrap(), isolation)
}

/// Compares what a plugin could do with the table and with what was reported.
async fn check(keeper: bool, network: bool) {
    let (found, isolation) = tried(keeper, network, |_| {}).await;
    if !keeper && isolation.means() != Means::Bubblewrap {
        eprintln!("skipped: {isolation}");
        return;
    }
    let mut wrong = Vec::new();
    let mut worked_gaps = BTreeSet::new();
    for (name, rule) in TABLE {
        let Some(outcome) = found.get(*name) else {
            assert!(name.contains("x32") && !cfg!(target_arch = "x86_64"), "{name} was not tried");
            continue;
        };
        let worked = outcome == "done";
        let harmless = !keeper
            && match *name {
                // The namespaces' first process, not the keeper.
                "a signal to the keeper" => true,
                // Shows what is in the confinement.
                "listing /" | "listing /etc" => isolation.to_string().contains("no Landlock"),
                _ => false,
            };
        let expected = match rule {
            _ if harmless => continue,
            Allowed => true,
            Denied => false,
            Net => network || isolation.gaps().contains(&Gap::Internet),
            Unless(gap) => isolation.gaps().contains(gap),
        };
        if worked != expected {
            wrong.push(format!("{name}: {outcome}"));
        }
        if let (true, Unless(gap)) = (worked, rule) {
            worked_gaps.insert(*gap);
        }
    }
    assert_eq!(found.len(), TABLE.len() - usize::from(!cfg!(target_arch = "x86_64")));
    assert!(wrong.is_empty(), "under {isolation}: {wrong:#?}");
    let reported: BTreeSet<Gap> = isolation.gaps().iter().copied().collect();
    assert_eq!(worked_gaps, reported, "what is reported is what could be done");
    if has_everything(&isolation) {
        assert_eq!(isolation.gaps(), expected_gaps(isolation.means()));
    } else {
        eprintln!("this kernel lacks something: {isolation}");
    }
    assert_eq!(isolation.is_enforced(), !keeper);
}

fn has_everything(isolation: &Isolation) -> bool {
    let text = isolation.to_string();
    text.contains(", seccomp") && [6, 7, 8, 9, 10].iter().any(|abi| text.contains(&format!("Landlock {abi}")))
}

#[tokio::test]
async fn within_bubblewrap_a_hostile_plugin_gets_nothing() {
    check(false, false).await;
}

#[tokio::test]
async fn within_bubblewrap_a_hostile_plugin_with_network_gets_the_internet_only() {
    check(false, true).await;
}

#[tokio::test]
async fn under_the_keeper_a_hostile_plugin_gets_what_is_reported() {
    check(true, false).await;
}

#[tokio::test]
async fn under_the_keeper_a_hostile_plugin_with_network_gets_what_is_reported() {
    check(true, true).await;
}

#[tokio::test]
async fn what_is_enforced_runs_although_that_is_required() {
    let bench = Bench::new();
    bench.python("demo", "", json!({}));
    let host = Host::start(Settings { require_sandbox: true, ..bench.settings() }).await.unwrap();
    if !confined(&host) {
        eprintln!("skipped: {}", host.list()[0].isolation);
        return;
    }
    allow(&host, "demo").await.unwrap();
    assert_eq!(ask(&host, "demo", "1").await.unwrap(), "1");
    host.shutdown().await;
}

#[tokio::test]
async fn without_the_runner_no_plugin_starts_and_the_error_says_what_to_install() {
    let bench = Bench::new();
    bench.python("demo", "", json!({}));
    let settings = Settings { runner: bench.path("missing"), ..bench.settings() };
    let host = Host::start(settings).await.unwrap();
    assert!(host.list()[0].isolation.starts_with("missing"), "{}", host.list()[0].isolation);
    let Err(HostError::Handshake(error)) = allow(&host, "demo").await else { panic!("enabled") };
    assert!(error.message.contains("install segue again"), "{error}");
}
