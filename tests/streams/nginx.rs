//! The real nginx, with what it does to those who ask too much or too late.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

use tempfile::TempDir;

use crate::gaps::{heard_since, heard_with_gaps};
use crate::support::prelude::*;

/// What links are signed with.
const SECRET: &str = "known to nginx and the plugin";

/// A server of our own, without any privilege. It ends when it is dropped.
struct Nginx {
    folder: TempDir,
    port: u16,
    child: Child,
}

impl Nginx {
    /// None, with a word about it, where there is no nginx; CI has to have one.
    async fn start() -> Option<Nginx> {
        let program = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"];
        let Some(program) = program.into_iter().find(|program| Path::new(program).exists()) else {
            assert!(std::env::var_os("CI").is_none(), "there is no nginx; ./dev setup installs it");
            eprintln!("skipped: there is no nginx (Debian: nginx-light)");
            return None;
        };
        let folder = TempDir::with_prefix("segue-nginx-").unwrap();
        fs::create_dir(folder.path().join("files")).unwrap();
        loop {
            // Free a moment ago; taken by somebody else, nginx ends and another one is tried.
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            fs::write(folder.path().join("nginx.conf"), configuration(port)).unwrap();
            let mut child = Command::new(program)
                .arg("-p")
                .arg(folder.path())
                .args(["-c", "nginx.conf", "-e", "error.log"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let began = Instant::now();
            while TcpStream::connect(("127.0.0.1", port)).is_err() && child.try_wait().unwrap().is_none() {
                assert!(began.elapsed() < PATIENCE, "nginx does not listen");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            match child.try_wait().unwrap() {
                None => return Some(Nginx { folder, port, child }),
                Some(status) => {
                    let log = fs::read_to_string(folder.path().join("error.log")).unwrap_or_default();
                    assert!(log.contains("Address already in use"), "nginx ended, {status}: {log}");
                }
            }
        }
    }

    fn file(&self, name: &str, source: &Recording, codec: Codec) {
        fs::write(self.folder.path().join("files").join(name), &*source.encode(codec).bytes).unwrap();
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Status of each answered request for paths that begin so. nginx writes them when they are over.
    fn statuses(&self, path: &str) -> Vec<u16> {
        let log = fs::read_to_string(self.folder.path().join("access.log")).unwrap_or_default();
        let lines = log.lines().filter_map(|line| line.split_once(' '));
        lines
            .filter(|(_, asked)| asked.starts_with(path))
            .map(|(status, _)| status.parse().unwrap())
            .collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All that nginx writes is below its own folder.
fn configuration(port: u16) -> String {
    format!(
        r#"
daemon off;
# One process, which runs as whoever starts it.
master_process off;
pid nginx.pid;
events {{ worker_connections 64; }}
http {{
    types {{ audio/flac flac; audio/wav wav; }}
    log_format short '$status $uri';
    access_log access.log short;
    client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
    limit_req_zone $server_port zone=requests:1m rate=20r/m;
    limit_conn_zone $server_port zone=connections:1m;
    server {{
        listen 127.0.0.1:{port} sndbuf=64k;
        location /signed/ {{
            secure_link $arg_md5,$arg_expires;
            secure_link_md5 "$secure_link_expires$uri {SECRET}";
            if ($secure_link = "") {{ return 403; }}
            if ($secure_link = "0") {{ return 410; }}
            limit_rate 2m;
            # Who does not read is cut off.
            send_timeout 1s;
            alias files/;
        }}
        location /few/ {{
            limit_req zone=requests;
            limit_req_status 429;
            alias files/;
        }}
        location /one/ {{
            limit_conn connections 1;
            limit_rate 200k;
            alias files/;
        }}
    }}
}}
"#
    )
}

/// A link as `secure_link_md5` wants it, good for so many seconds and the rest of the last one.
fn sign(url: &str, path: &str, life: Duration) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let expires = (now + life).as_secs();
    let text = format!("{expires}{path} {SECRET}");
    let program = "import base64,hashlib,sys\n\
        print(base64.urlsafe_b64encode(hashlib.md5(sys.argv[1].encode()).digest()).decode().rstrip('='))";
    let made = Command::new("/usr/bin/python3").args(["-c", program, &text]).output().unwrap();
    let md5 = String::from_utf8(made.stdout).unwrap();
    format!("{url}?md5={}&expires={expires}", md5.trim())
}

#[tokio::test]
async fn nginx_with_links_that_expire_and_a_short_patience_plays_without_a_break() {
    let Some(nginx) = Nginx::start().await else { return };
    let (card, minds) = (Card::new().clock(Clock::Times(4.0)).plug(), Server::start());
    let plugin = Plugin::new(&minds, "signer");
    let source = Recording::music(9_000, 44_100, 16, 40.0);
    nginx.file("a.wav", &source, Codec::Wav);
    let (url, path, life) = (nginx.url("/signed/a.wav"), "/signed/a.wav", Duration::from_secs(3));
    let uri = plugin.add("a", Track::made(move || (sign(&url, path, life), life), "audio/wav"));
    let mut daemon = Daemon::new()
        .card(&card)
        .plugin(&plugin)
        .output("buffer_ms = 1000")
        .config("[stream]\nbuffer = \"2 MiB\"\n")
        .start()
        .await;
    daemon.play_uris(&[uri]).await;
    daemon.wait_position(5_000_000).await;
    daemon.pause().await;
    until("nginx to cut off who does not read", || !nginx.statuses("/signed/").is_empty()).await;
    daemon.play().await;
    daemon.wait_end(0).await;
    let paused_at = card.events_of("drop")[0].number("consumed") as usize;
    assert_exact_outside(&card.music(), &source, &[paused_at..paused_at + 44_100 * 6 / 1_000]);
    assert!(
        !daemon
            .record
            .all()
            .iter()
            .skip_while(|said| **said != Said::State("playing".to_owned()))
            .any(|said| *said == Said::State("buffering".to_owned()))
    );
    drop(daemon);
    let statuses = nginx.statuses("/signed/");
    assert!(statuses.len() > 1 && statuses.iter().all(|status| *status == 206), "{statuses:?}");
    assert!(plugin.calls("stream").len() > 1, "its links live three seconds");
    // The links are checked at all.
    let mut asked = TcpStream::connect(("127.0.0.1", nginx.port)).unwrap();
    asked.write_all(b"GET /signed/a.wav HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    asked.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[tokio::test]
async fn nginx_that_allows_few_requests_and_one_connection_is_waited_for() {
    let Some(nginx) = Nginx::start().await else { return };
    let card = Card::new().plug();
    let sources: Vec<Recording> = (0..3).map(|nth| Recording::music(9_001 + nth, 44_100, 16, 2.0)).collect();
    for (name, source) in ["a.flac", "b.flac", "c.flac"].iter().zip(&sources) {
        nginx.file(name, source, Codec::Flac);
    }
    nginx.file("long.wav", &Recording::music(9_009, 8_000, 16, 60.0), Codec::Wav);
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_to_the_end(&[nginx.url("/few/a.flac"), nginx.url("/few/b.flac")]).await;
    assert!(nginx.statuses("/few/b").contains(&429), "{:?}", nginx.statuses("/few/"));

    // Somebody else has the only connection.
    let mut other = TcpStream::connect(("127.0.0.1", nginx.port)).unwrap();
    other.write_all(b"GET /one/long.wav HTTP/1.0\r\n\r\n").unwrap();
    other.read_exact(&mut [0; 8_192]).unwrap();
    let from = daemon.record.len();
    daemon.queue.call_method("Clear", &()).await.unwrap();
    daemon.play_uris(&[nginx.url("/one/c.flac")]).await;
    until("nginx to refuse a second connection", || nginx.statuses("/one/c").contains(&503)).await;
    drop(other);
    daemon.wait_end(from).await;
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    let all = sources.into_iter().reduce(|all, next| all.then(&next)).unwrap();
    heard_with_gaps(&heard_since(&card, 0).unwrap(), &all, false).unwrap();
}
