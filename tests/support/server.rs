//! An HTTP server on this machine that does what servers do, also the bad things, and notes what it was asked.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::encode::Encoded;
use super::transfer::{self, Transfer};

/// What a server can do to its clients.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// Answers 200 with the whole file, whatever was asked for.
    NoRanges,
    /// Ends so many bodies after so many bytes.
    CutAfter { bytes: usize, times: usize },
    /// Goes silent after so many bytes, with the connection open, in so many bodies.
    StallAfter { bytes: usize, times: usize },
    /// So long after the first request this path is refused, and bodies under way end.
    RefuseAfter(Duration, u16),
    /// Refuses so many requests, from this one on; the first is 0.
    RefuseRequests { from: usize, count: usize, status: u16 },
    /// At most so many bytes in a second.
    Throttle(usize),
    /// Each answer has another ETag.
    OtherEachTime,
}

/// A file, and what happens to those who fetch it.
#[derive(Clone)]
pub(super) struct Asset {
    pub(super) file: Encoded,
    pub(super) troubles: Vec<Trouble>,
    first_asked: Option<Instant>,
    asked: usize,
}

/// A request that was answered, or is being answered.
#[derive(Clone, Debug)]
pub struct Served {
    /// Without the query.
    pub path: String,
    /// The `Range` header.
    pub range: Option<String>,
    /// Of the answer.
    pub status: u16,
    /// Bytes of the body so far.
    pub sent: usize,
    /// The body is still being sent.
    pub open: bool,
    /// When it arrived.
    pub at: Instant,
}

/// What a client sent.
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: HashMap<String, String>,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

/// Answers requests by a function of the test's: status, content type, body.
pub type Answerer = Arc<dyn Fn(&Request) -> (u16, &'static str, Vec<u8>) + Send + Sync>;

/// A URL with an end.
#[derive(Clone, Debug)]
struct Token {
    good_until: Instant,
}

#[derive(Default)]
pub(super) struct Inner {
    assets: Mutex<HashMap<String, Asset>>,
    answerers: Mutex<HashMap<String, Answerer>>,
    redirects: Mutex<HashMap<String, String>>,
    pub(super) log: Mutex<Vec<Served>>,
    tokens: Mutex<Vec<Token>>,
    connections: AtomicUsize,
    stopping: AtomicBool,
}

/// The server. Its clones are handles of the same one; it ends with the last of them.
#[derive(Clone)]
pub struct Server {
    handle: Arc<Handle>,
}

struct Handle {
    inner: Arc<Inner>,
    port: u16,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on a free port of 127.0.0.1.
    pub fn start() -> Server {
        Server::start_at("127.0.0.1:0")
    }

    /// Listens here; on all addresses with `[::]:0`.
    pub fn start_at(address: &str) -> Server {
        let listener = TcpListener::bind(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        let inner = Arc::new(Inner::default());
        let accepting = inner.clone();
        let thread = std::thread::spawn(move || {
            for connection in listener.incoming() {
                if accepting.stopping() {
                    return;
                }
                let inner = accepting.clone();
                let Ok(connection) = connection else { continue };
                std::thread::spawn(move || {
                    inner.connections.fetch_add(1, Ordering::Relaxed);
                    // A client that hangs up is no failure of the test by itself.
                    let _ = inner.converse(connection);
                    inner.connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Server { handle: Arc::new(Handle { inner, port, thread: Some(thread) }) }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.handle.port)
    }

    /// The address of a path by this name of the machine.
    pub fn url_by(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.handle.port)
    }

    /// Offers a file without trouble, and says where.
    pub fn serve(&self, path: &str, file: Encoded) -> String {
        self.serve_with(path, file, &[])
    }

    /// Offers a file with trouble, and says where.
    pub fn serve_with(&self, path: &str, file: Encoded, troubles: &[Trouble]) -> String {
        let asset = Asset { file, troubles: troubles.to_vec(), first_asked: None, asked: 0 };
        self.handle.inner.assets.lock().unwrap().insert(path.to_owned(), asset);
        self.url(path)
    }

    /// Offers bytes that are no music.
    pub fn serve_text(&self, path: &str, content_type: &'static str, text: &str) -> String {
        self.serve(path, Encoded { bytes: Arc::new(text.as_bytes().to_vec()), content_type })
    }

    /// Answers all requests for this path by a function.
    pub fn answer(&self, path: &str, answerer: Answerer) {
        self.handle.inner.answerers.lock().unwrap().insert(path.to_owned(), answerer);
    }

    /// Sends all who ask for this path to another address.
    pub fn redirect(&self, path: &str, to: &str) {
        self.handle.inner.redirects.lock().unwrap().insert(path.to_owned(), to.to_owned());
    }

    /// Removes what was offered there.
    pub fn withdraw(&self, path: &str) {
        self.handle.inner.assets.lock().unwrap().remove(path);
    }

    /// An address that is good for so long. Then it answers 403, and bodies under way end.
    pub fn fresh_url(&self, path: &str, life: Duration) -> String {
        let mut tokens = self.handle.inner.tokens.lock().unwrap();
        tokens.push(Token { good_until: Instant::now() + life });
        format!("{}?token={}", self.url(path), tokens.len() - 1)
    }

    /// For who lives inside of the server and must not keep it alive.
    pub(super) fn weak(&self) -> WeakServer {
        WeakServer(Arc::downgrade(&self.handle))
    }

    /// Requests for this path, in order.
    pub fn requests(&self, path: &str) -> Vec<Served> {
        self.handle.inner.log.lock().unwrap().iter().filter(|served| served.path == path).cloned().collect()
    }

    /// Connections that are open now.
    pub fn connections(&self) -> usize {
        self.handle.inner.connections.load(Ordering::Relaxed)
    }
}

/// See [`Server::weak`].
pub(super) struct WeakServer(Weak<Handle>);

impl WeakServer {
    pub(super) fn upgrade(&self) -> Option<Server> {
        self.0.upgrade().map(|handle| Server { handle })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.inner.stopping.store(true, Ordering::Relaxed);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Inner {
    pub(super) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn converse(&self, connection: TcpStream) -> std::io::Result<()> {
        connection.set_write_timeout(Some(Duration::from_millis(50)))?;
        connection.set_read_timeout(Some(Duration::from_secs(5)))?;
        connection.set_nodelay(true)?;
        let request = read_request(&connection)?;
        let answerer = self.answerers.lock().unwrap().get(&request.path).cloned();
        if let Some(answerer) = answerer {
            let (status, content_type, body) = answerer(&request);
            return respond(connection, status, content_type, &body);
        }
        let elsewhere = self.redirects.lock().unwrap().get(&request.path).cloned();
        match elsewhere {
            Some(to) => redirect(connection, &to),
            None => self.send_asset(connection, &request),
        }
    }

    fn send_asset(&self, connection: TcpStream, request: &Request) -> std::io::Result<()> {
        let asked = self.assets.lock().unwrap().get_mut(&request.path).map(|asset| {
            let first = *asset.first_asked.get_or_insert_with(Instant::now);
            asset.asked += 1;
            (asset.clone(), first, asset.asked - 1)
        });
        let number = self.note(request);
        let Some((asset, first, nth)) = asked else {
            self.log.lock().unwrap()[number].status = 404;
            return respond(connection, 404, "text/plain", b"not here");
        };
        let ends = self.end_of(request, &asset, first);
        let transfer = Transfer { server: self, asset: &asset, nth, number, ends };
        let outcome = transfer::send(transfer, connection, request);
        self.log.lock().unwrap()[number].open = false;
        outcome
    }

    fn note(&self, request: &Request) -> usize {
        let mut log = self.log.lock().unwrap();
        let range = request.headers.get("range").cloned();
        let path = request.path.clone();
        log.push(Served { path, range, status: 0, sent: 0, open: true, at: Instant::now() });
        log.len() - 1
    }

    /// From when on it is refused, and with what.
    fn end_of(&self, request: &Request, asset: &Asset, first: Instant) -> Option<(Instant, u16)> {
        let token = request.query.get("token").map(|token| {
            let tokens = self.tokens.lock().unwrap();
            let known = token.parse().ok().and_then(|token: usize| tokens.get(token));
            (known.map_or(first, |token| token.good_until), 403)
        });
        let trouble = asset.troubles.iter().find_map(|trouble| match trouble {
            Trouble::RefuseAfter(time, status) => Some((first + *time, *status)),
            _ => None,
        });
        token.or(trouble)
    }
}

fn read_request(connection: &TcpStream) -> std::io::Result<Request> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or("/"));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = query.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Request { method, path, query, headers, body })
}

fn redirect(mut connection: TcpStream, to: &str) -> std::io::Result<()> {
    write!(
        connection,
        "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

pub(super) fn respond(
    mut to: TcpStream,
    status: u16,
    content_type: &str,
    body: &[u8],
) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        transfer::reason(status),
        body.len()
    );
    to.write_all(head.as_bytes())?;
    to.write_all(body)
}
