//! Doors, files, and what was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;

use super::certificates::Authority;
use super::http1::{self, Wire};
use super::http2;
use super::script::Script;
use crate::support::encode::Encoded;

/// Two downloads of a file at the same time are so long a coincidence: the client hung up, and the server has not
/// noticed yet.
const COINCIDENCE: Duration = Duration::from_millis(1500);

/// Where a client comes in. Each is a port of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Door {
    /// Plain HTTP.
    Http,
    /// Plain HTTP: another origin.
    Elsewhere,
    /// TLS with a certificate that holds.
    Tls,
    /// The same with HTTP/2.
    Http2,
    /// TLS, signed by an authority that nobody knows.
    Stranger,
    /// TLS with a certificate for another host.
    WrongName,
    /// TLS with a certificate of the past.
    Expired,
    /// Hangs up when it is greeted.
    HangsUp,
    /// Plain HTTP although `https` is said.
    PlainTls,
    /// Says something that is no TLS when it is greeted.
    Garbage,
}

impl Door {
    const ALL: [Door; 10] = [
        Door::Http,
        Door::Elsewhere,
        Door::Tls,
        Door::Http2,
        Door::Stranger,
        Door::WrongName,
        Door::Expired,
        Door::HangsUp,
        Door::PlainTls,
        Door::Garbage,
    ];

    fn scheme(self) -> &'static str {
        if matches!(self, Door::Http | Door::Elsewhere) { "http" } else { "https" }
    }
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub door: Door,
    pub headers: HashMap<String, String>,
    /// The first byte that was asked for; none for the whole.
    pub from: Option<usize>,
    pub at: Instant,
    /// Which of the connections that were ever made it came on.
    pub connection: usize,
}

/// What a client wants.
#[derive(Clone, Debug)]
pub struct Question {
    pub path: String,
    pub headers: HashMap<String, String>,
    pub from: Option<usize>,
}

impl Question {
    pub(super) fn new(path: &str, headers: HashMap<String, String>) -> Question {
        let path = path.split('?').next().unwrap_or_default().to_owned();
        let from = headers.get("range").and_then(|range| range.strip_prefix("bytes="));
        let from = from.and_then(|range| range.split('-').next()?.parse().ok());
        Question { path, headers, from }
    }
}

struct Asset {
    file: Encoded,
    scripts: Vec<Script>,
    seen: Vec<Seen>,
    /// By number, the bodies that are being sent.
    open: Vec<usize>,
    begun: usize,
    /// Longer than a coincidence.
    twice: bool,
}

/// What all connections share.
pub(super) struct Inner {
    ports: HashMap<Door, u16>,
    assets: Mutex<HashMap<String, Asset>>,
    connections: Mutex<usize>,
    /// Whether anything gets through.
    network: watch::Sender<bool>,
}

/// The server. It ends when it is dropped.
pub struct FaultServer {
    inner: Arc<Inner>,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl FaultServer {
    /// Opens all doors on 127.0.0.1. Certificates that hold are signed by `authority`.
    pub fn start(authority: &Authority) -> FaultServer {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listeners = {
            let _within = runtime.enter();
            Door::ALL.map(|door| (door, bind()))
        };
        let ports = listeners.iter().map(|(door, listener)| (*door, listener.local_addr().unwrap().port()));
        let inner = Arc::new(Inner {
            ports: ports.collect(),
            assets: Mutex::default(),
            connections: Mutex::default(),
            network: watch::channel(true).0,
        });
        let stranger = Authority::new("An authority that nobody knows");
        let now = (2020, 2090);
        let acceptors = HashMap::from([
            (Door::Tls, authority.acceptor("127.0.0.1", now, "http/1.1")),
            (Door::Http2, authority.acceptor("127.0.0.1", now, "h2")),
            (Door::Stranger, stranger.acceptor("127.0.0.1", now, "http/1.1")),
            (Door::WrongName, authority.acceptor("music.example", now, "http/1.1")),
            (Door::Expired, authority.acceptor("127.0.0.1", (2001, 2002), "http/1.1")),
        ]);
        let stop = Arc::new(Notify::new());
        let (shared, stopped) = (Arc::clone(&inner), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                for (door, listener) in listeners {
                    tokio::spawn(listen(Arc::clone(&shared), door, listener, acceptors.get(&door).cloned()));
                }
                stopped.notified().await;
            });
        });
        FaultServer { inner, stop, thread: Some(thread) }
    }

    /// Offers a file, and says where.
    pub fn serve(&self, door: Door, name: &str, file: Encoded, scripts: Vec<Script>) -> String {
        let asset = Asset { file, scripts, seen: Vec::new(), open: Vec::new(), begun: 0, twice: false };
        self.inner.assets.lock().unwrap().insert(name.to_owned(), asset);
        self.url(door, name)
    }

    /// Where a file is behind a door.
    pub fn url(&self, door: Door, name: &str) -> String {
        format!("{}://{}/{name}", door.scheme(), self.host(door))
    }

    /// As it stands in a URL, with the port.
    pub fn host(&self, door: Door) -> String {
        format!("127.0.0.1:{}", self.inner.ports[&door])
    }

    /// The requests for a file, in order.
    pub fn seen(&self, name: &str) -> Vec<Seen> {
        self.inner.assets.lock().unwrap()[name].seen.clone()
    }

    /// Takes the network away, until what it returns is dropped: nothing is sent on any connection, and new ones to
    /// this door are not answered at all.
    pub fn cut_off(&self, door: Door) -> CutOff {
        self.inner.network.send_replace(false);
        let address = self.host(door).parse().unwrap();
        // What does not fit into the queue of a listener is dropped, as if there were no host.
        let mut queued = Vec::new();
        while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
            queued.push(stream);
        }
        CutOff { inner: Arc::clone(&self.inner), _queued: queued }
    }

    /// Whether a file was fetched twice at the same time.
    pub fn fetched_twice_at_once(&self, name: &str) -> bool {
        self.inner.assets.lock().unwrap()[name].twice
    }
}

/// See [`FaultServer::cut_off`].
pub struct CutOff {
    inner: Arc<Inner>,
    _queued: Vec<std::net::TcpStream>,
}

impl Drop for CutOff {
    fn drop(&mut self) {
        self.inner.network.send_replace(true);
    }
}

impl Drop for FaultServer {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A listener with a short queue, whose connections hold little that was not sent yet.
fn bind() -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(32 * 1024).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket.listen(8).unwrap()
}

async fn listen(inner: Arc<Inner>, door: Door, listener: TcpListener, tls: Option<TlsAcceptor>) {
    loop {
        inner.network().await;
        let Ok((stream, _)) = listener.accept().await else { return };
        inner.network().await;
        let _ = stream.set_nodelay(true);
        let number = {
            let mut connections = inner.connections.lock().unwrap();
            *connections += 1;
            *connections
        };
        tokio::spawn(receive(Arc::clone(&inner), door, number, stream, tls.clone()));
    }
}

async fn receive(
    inner: Arc<Inner>,
    door: Door,
    number: usize,
    mut stream: TcpStream,
    tls: Option<TlsAcceptor>,
) {
    match (door, tls) {
        (Door::HangsUp, _) => {
            let _ = stream.read(&mut [0; 512]).await;
        }
        (Door::PlainTls, _) => {
            let _ = stream.read(&mut [0; 512]).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
        }
        (Door::Garbage, _) => {
            let _ = stream.read(&mut [0; 512]).await;
            // A handshake record as far as its head goes.
            let _ = stream.write_all(&[0x16, 0x03, 0x03, 0x00, 0x40]).await;
            let _ = stream.write_all(&[0x5a; 64]).await;
            let _ = stream.read(&mut [0; 512]).await;
        }
        (_, None) => http1::converse(inner, door, number, Wire::Plain(stream)).await,
        (Door::Http2, Some(tls)) => {
            if let Ok(stream) = tls.accept(stream).await {
                http2::converse(inner, number, stream).await;
            }
        }
        (_, Some(tls)) => {
            if let Ok(stream) = tls.accept(stream).await {
                http1::converse(inner, door, number, Wire::Tls(Box::new(stream))).await;
            }
        }
    }
}

/// A file that is asked for, and what is to be done about it.
pub(super) struct Task {
    pub file: Encoded,
    pub script: Script,
    /// The same file on another origin.
    pub elsewhere: String,
    _open: Open,
}

impl Inner {
    /// Waits until something gets through.
    pub(super) async fn network(&self) {
        // The sender lives as long as this.
        let _ = self.network.subscribe().wait_for(|there| *there).await;
    }

    /// Notes a request; none where there is no such file.
    pub(super) fn ask(self: &Arc<Self>, door: Door, connection: usize, question: &Question) -> Option<Task> {
        let name = question.path.split('/').nth(1)?;
        let mut assets = self.assets.lock().unwrap();
        let asset = assets.get_mut(name)?;
        let nth = asset.seen.len().min(asset.scripts.len() - 1);
        asset.seen.push(Seen {
            door,
            headers: question.headers.clone(),
            from: question.from,
            at: Instant::now(),
            connection,
        });
        let number = asset.begun;
        asset.begun += 1;
        let before = asset.open.clone();
        asset.open.push(number);
        if !before.is_empty() {
            tokio::spawn(Arc::clone(self).look_again(name.to_owned(), before, number));
        }
        Some(Task {
            file: asset.file.clone(),
            script: asset.scripts[nth].clone(),
            elsewhere: format!("http://127.0.0.1:{}{}", self.ports[&Door::Elsewhere], question.path),
            _open: Open { inner: Arc::clone(self), name: name.to_owned(), number },
        })
    }

    /// Whether one of these bodies is still being sent beside this one when it is no coincidence any more.
    async fn look_again(self: Arc<Self>, name: String, before: Vec<usize>, number: usize) {
        tokio::time::sleep(COINCIDENCE).await;
        let mut assets = self.assets.lock().unwrap();
        if let Some(asset) = assets.get_mut(&name) {
            let still = |number: &usize| asset.open.contains(number);
            asset.twice |= still(&number) && before.iter().any(still);
        }
    }
}

/// A body that is being sent.
struct Open {
    inner: Arc<Inner>,
    name: String,
    number: usize,
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(asset) = self.inner.assets.lock().unwrap().get_mut(&self.name) {
            asset.open.retain(|number| *number != self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::fault::head;
    use crate::support::{encode::Codec, until};

    fn ask(server: &FaultServer, path: &str) -> std::net::TcpStream {
        let mut stream = std::net::TcpStream::connect(server.host(Door::Http)).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nRange: bytes=5-\r\n\r\n").unwrap();
        stream.read_exact(&mut [0; 100]).unwrap();
        stream
    }

    #[tokio::test]
    async fn two_downloads_at_the_same_time_are_seen_and_one_after_another_are_none() {
        let server = FaultServer::start(&Authority::new("test"));
        let file = Encoded { bytes: Arc::new(vec![7; 1_000]), content_type: Codec::Wav.content_type() };
        for name in ["once", "twice"] {
            server.serve(Door::Http, name, file.clone(), vec![head("").body(10).stall()]);
        }
        drop(ask(&server, "once"));
        let (_again, _one, _two) = (ask(&server, "once"), ask(&server, "twice"), ask(&server, "twice"));
        until("the second download to be seen", || server.fetched_twice_at_once("twice")).await;
        assert!(!server.fetched_twice_at_once("once"));
        assert_eq!(server.seen("once").iter().map(|seen| seen.from).collect::<Vec<_>>(), [Some(5), Some(5)]);
    }
}
