//! A network of the test's own, without any right on the machine.
//!
//! The test runs itself again in user, network and mount namespaces of its own. So everything that it starts, and it
//! itself, are on the same network, which has one interface and nothing behind it: addresses on it are this machine's
//! (and reached), whatever else is sent there is lost without a word, as behind a router without an uplink.

use std::any::type_name;
use std::fs;
use std::future::Future;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Tells the test that it is in its own network.
const INSIDE: &str = "SEGUE_TEST_HAS_A_NETWORK";
/// Longer than any of these tests takes.
const PATIENCE: Duration = Duration::from_secs(400);
/// What has to work for that: Debian without bubblewrap's namespaces, and many containers, have it not.
const PROBE: &str = "ip link set lo up && ip link add net0 type veth peer name far0 && \
    for file in resolv.conf hosts nsswitch.conf; do mount --bind /etc/$file /etc/$file || exit 1; done";

/// Runs a test in a network of its own. Where namespaces are not to be had it says so and does nothing.
pub fn within<T, F>(test: T)
where
    T: FnOnce(Network) -> F,
    F: Future<Output = ()>,
{
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test(Network::make()));
        return;
    }
    let probe = unshare().args(["sh", "-c", PROBE]).output();
    if let Some(why) = lacking(probe) {
        eprintln!("SKIPPED, since this machine lets nobody make a network of his own: {why}");
        return;
    }
    // The path of the closure is that of the test.
    let name = type_name::<T>().trim_end_matches("::{{closure}}");
    let name = name.split_once("::").unwrap().1;
    let mut command = unshare();
    command.arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture", "--test-threads=1"]);
    let mut inside = command.env(INSIDE, "yes").stdin(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = inside.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            inside.kill().unwrap();
            panic!("{name} does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{name} failed in its own network; see above");
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "--mount", "--"]);
    command
}

fn lacking(probe: std::io::Result<Output>) -> Option<String> {
    match probe {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

/// The network that this process is in.
pub struct Network {
    files: TempDir,
}

impl Network {
    /// Up, with a route to everywhere and no addresses; names by files, then by name servers, of which there are none.
    fn make() -> Network {
        let network = Network { files: TempDir::with_prefix("segue-network-").unwrap() };
        for (file, content) in [
            ("resolv.conf", "# none\n"),
            ("hosts", "127.0.0.1 localhost\n::1 localhost\n"),
            ("nsswitch.conf", "hosts: files dns\n"),
        ] {
            let path = network.files.path().join(file);
            fs::write(&path, content).unwrap();
            run("mount", &["--bind", path.to_str().unwrap(), &format!("/etc/{file}")]);
        }
        ip("link set lo up");
        ip("link add net0 type veth peer name far0");
        // What is sent to nobody's address is lost, rather than called unreachable after three seconds.
        ip("link set net0 arp off");
        ip("link set far0 up");
        network.up();
        network
    }

    /// An address of this machine.
    pub fn add(&self, address: &str) {
        match address.contains(':') {
            true => ip(&format!("-6 addr add {address}/128 dev net0 nodad")),
            false => ip(&format!("addr add {address}/32 dev net0")),
        }
    }

    /// It is nobody's any more: what is sent there is lost.
    pub fn remove(&self, address: &str) {
        let length = if address.contains(':') { 128 } else { 32 };
        ip(&format!("addr del {address}/{length} dev net0"));
    }

    /// There is a way to everywhere.
    pub fn up(&self) {
        ip("link set net0 up");
        ip("route add default dev net0");
        ip("-6 route add default dev net0");
    }

    /// There is none, as without a cable. Addresses of IPv6 are gone, those of IPv4 are not.
    pub fn down(&self) {
        ip("link set net0 down");
    }

    /// resolv.conf.
    pub fn name_servers(&self, addresses: &[&str]) {
        let lines: String = addresses.iter().map(|address| format!("nameserver {address}\n")).collect();
        self.write("resolv.conf", &lines);
    }

    /// The hosts file, besides localhost.
    pub fn hosts(&self, lines: &str) {
        self.write("hosts", &format!("127.0.0.1 localhost\n::1 localhost\n{lines}\n"));
    }

    /// What nsswitch.conf says of hosts.
    pub fn nsswitch(&self, sources: &str) {
        self.write("nsswitch.conf", &format!("hosts: {sources}\n"));
    }

    /// In place, since the file of this inode is what the system reads.
    fn write(&self, file: &str, content: &str) {
        let path: &Path = self.files.path();
        fs::write(path.join(file), content).unwrap();
    }
}

fn ip(arguments: &str) {
    run("ip", &arguments.split(' ').collect::<Vec<_>>());
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
}
