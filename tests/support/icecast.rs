//! The real icecast2 on a free port, and a source that plays a recording to it over and over at real-time pace.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::encode::Encoded;
use super::until;

/// `source:segue` and `admin:segue`.
const SOURCE: &str = "c291cmNlOnNlZ3Vl";
const ADMIN: &str = "YWRtaW46c2VndWU=";
/// How far the source is ahead of real time, so that a new listener gets something at once.
const AHEAD: Duration = Duration::from_secs(6);
/// What a source sends at once, in bytes.
const PIECE: usize = 2_048;

/// The server.
pub struct Icecast {
    folder: TempDir,
    port: u16,
    server: Option<Child>,
}

impl Icecast {
    /// None, with a word about it, where the program is missing; in CI it must not be.
    pub async fn start() -> Option<Icecast> {
        if Command::new("icecast2").arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            assert!(std::env::var_os("CI").is_none(), "icecast2 is missing; ./dev test installs it");
            eprintln!("skipped, since icecast2 is missing");
            return None;
        }
        let folder = TempDir::with_prefix("segue-icecast-").unwrap();
        // It refuses to run as root, and then runs as nobody.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = folder.path().display();
        let config = format!(
            "<icecast>
                <limits><clients>20</clients><sources>4</sources><burst-size>131072</burst-size>
                    <queue-size>524288</queue-size><source-timeout>10</source-timeout></limits>
                <authentication><source-password>segue</source-password>
                    <admin-user>admin</admin-user><admin-password>segue</admin-password></authentication>
                <hostname>localhost</hostname>
                <listen-socket><port>{port}</port><bind-address>127.0.0.1</bind-address></listen-socket>
                <fileserve>0</fileserve>
                <paths><basedir>{path}</basedir><logdir>{path}</logdir><webroot>/usr/share/icecast2/web</webroot>
                    <adminroot>/usr/share/icecast2/admin</adminroot></paths>
                <logging><accesslog>access.log</accesslog><errorlog>error.log</errorlog><loglevel>3</loglevel></logging>
                <security><chroot>0</chroot></security>
            </icecast>"
        );
        fs::write(folder.path().join("icecast.xml"), config).unwrap();
        let mut icecast = Icecast { folder, port, server: None };
        icecast.begin().await;
        Some(icecast)
    }

    /// Starts it, also again after [`Icecast::end`].
    pub async fn begin(&mut self) {
        let mut command = Command::new("icecast2");
        command.arg("-c").arg(self.folder.path().join("icecast.xml"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if nix::unistd::geteuid().is_root() {
            command.uid(65_534).gid(65_534);
        }
        self.server = Some(command.spawn().unwrap());
        let port = self.port;
        until("icecast2 listens", || TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
    }

    /// Ends it, and with it all connections.
    pub fn end(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// The address of a mount.
    pub fn url(&self, mount: &str) -> String {
        format!("http://127.0.0.1:{}{mount}", self.port)
    }

    /// Plays this to a mount until the source is dropped, and comes back when the server does.
    pub fn source(&self, mount: &'static str, file: Encoded, seconds: f64) -> Source {
        let stop = Arc::new(AtomicBool::new(false));
        let (port, stopped) = (self.port, Arc::clone(&stop));
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                // The server may not be there yet, or not any more.
                let _ = play(port, mount, &file, seconds, &stopped);
                thread::sleep(Duration::from_millis(50));
            }
        });
        Source { stop, thread: Some(thread) }
    }

    /// Waits until a mount has its source. Debian's icecast2 (2.4.4) sometimes breaks down when a source comes: then it
    /// is started again, as who runs a station would.
    pub async fn wait_on_the_air(&mut self, mount: &str) {
        let path = format!("/admin/listclients?mount={mount}");
        let deadline = Instant::now() + super::PATIENCE;
        while !self.ask(&path, ADMIN).contains("<source") {
            assert!(Instant::now() < deadline, "the source did not come on the air");
            if self.server.as_mut().is_some_and(|server| server.try_wait().unwrap().is_some()) {
                eprintln!("icecast2 broke down; it is started again");
                self.begin().await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Says what plays at a mount that has a source.
    pub fn set_title(&self, mount: &str, title: &str) {
        let song: String = title.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let path = format!("/admin/metadata?mount={mount}&mode=updinfo&charset=UTF-8&song={song}");
        let answer = self.ask(&path, SOURCE);
        assert!(answer.contains("Metadata update successful"), "{answer}");
    }

    /// The numbers of those who listen to a mount.
    pub fn listeners(&self, mount: &str) -> Vec<u64> {
        let answer = self.ask(&format!("/admin/listclients?mount={mount}"), ADMIN);
        let ids = answer.split("<ID>").skip(1).filter_map(|rest| rest.split('<').next()?.parse().ok());
        ids.collect()
    }

    /// Throws a listener out.
    pub fn kick(&self, mount: &str, listener: u64) {
        let answer = self.ask(&format!("/admin/killclient?mount={mount}&id={listener}"), ADMIN);
        assert!(answer.contains("removed"), "{answer}");
    }

    fn ask(&self, path: &str, as_whom: &str) -> String {
        let mut answer = Vec::new();
        // One that has just broken down refuses, and gives nothing.
        if let Ok(mut connection) = TcpStream::connect(("127.0.0.1", self.port)) {
            let _ = write!(connection, "GET {path} HTTP/1.0\r\nAuthorization: Basic {as_whom}\r\n\r\n");
            let _ = connection.read_to_end(&mut answer);
        }
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Icecast {
    fn drop(&mut self) {
        self.end();
        if thread::panicking() {
            let log = fs::read(self.folder.path().join("error.log")).unwrap_or_default();
            eprintln!("icecast2 says:\n{}", String::from_utf8_lossy(&log));
        }
    }
}

/// A source client. It ends when it is dropped.
pub struct Source {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Source {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn play(port: u16, mount: &str, file: &Encoded, seconds: f64, stop: &AtomicBool) -> std::io::Result<()> {
    let mut to = TcpStream::connect(("127.0.0.1", port))?;
    to.set_read_timeout(Some(Duration::from_secs(5)))?;
    to.set_write_timeout(Some(Duration::from_secs(5)))?;
    write!(
        to,
        "PUT {mount} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {SOURCE}\r\nContent-Type: {}\r\n\
         Ice-Name: Example FM\r\nIce-Genre: Tests\r\nIce-Bitrate: 192\r\nIce-Public: 0\r\nExpect: 100-continue\r\n\r\n",
        file.content_type
    )?;
    let mut status = String::new();
    BufReader::new(to.try_clone()?).read_line(&mut status)?;
    if !status.contains(" 100") && !status.contains(" 200") {
        return Err(std::io::Error::other(status));
    }
    let (began, mut sent) = (Instant::now(), 0);
    for piece in std::iter::repeat_with(|| file.bytes.chunks(PIECE)).flatten() {
        let due = Duration::from_secs_f64(seconds * sent as f64 / file.bytes.len() as f64);
        thread::sleep(due.saturating_sub(began.elapsed() + AHEAD));
        if stop.load(Ordering::SeqCst) {
            break;
        }
        to.write_all(piece)?;
        sent += piece.len();
    }
    Ok(())
}
