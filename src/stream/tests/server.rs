//! A small HTTP server whose faults are scripted.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use url::Url;

/// What a client asked for.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    pub headers: HashMap<String, String>,
    /// N of `Range: bytes=N-`, with or without an end.
    pub from: Option<u64>,
    /// After the last byte of the range, where the client says so.
    pub to: Option<u64>,
}

type Script = dyn Fn(usize, &Request, &mut Reply) + Send + Sync;

/// Serves until the process ends.
pub struct Server {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// `script` answers request number n, counted from 0.
    pub fn start(script: impl Fn(usize, &Request, &mut Reply) + Send + Sync + 'static) -> Self {
        Server::bind("127.0.0.1:0", script)
    }

    pub fn bind(address: &str, script: impl Fn(usize, &Request, &mut Reply) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let server = Server { address: listener.local_addr().unwrap(), requests: Arc::default() };
        let (requests, script): (_, Arc<Script>) = (Arc::clone(&server.requests), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (requests, script) = (Arc::clone(&requests), Arc::clone(&script));
                thread::spawn(move || serve(stream.unwrap(), &requests, script.as_ref()));
            }
        });
        server
    }

    pub fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://{}{path}", self.address)).unwrap()
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The offsets asked for; None where the whole was asked for.
    pub fn ranges(&self) -> Vec<Option<u64>> {
        self.requests().iter().map(|request| request.from).collect()
    }
}

fn serve(stream: TcpStream, requests: &Mutex<Vec<Request>>, script: &Script) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    if lines.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let range =
        headers.get("range").map(|value| value.strip_prefix("bytes=").unwrap().split_once('-').unwrap());
    let from = range.map(|(from, _)| from.parse().unwrap());
    let to = range.and_then(|(_, last)| last.parse::<u64>().ok()).map(|last| last + 1);
    let request = Request { path: first.split(' ').nth(1).unwrap().to_owned(), headers, from, to };
    let number = {
        let mut all = requests.lock().unwrap();
        all.push(request.clone());
        all.len() - 1
    };
    script(number, &request, &mut Reply { stream });
}

/// Writes an answer. A failed write means that the client has gone, which is its right.
pub struct Reply {
    stream: TcpStream,
}

impl Reply {
    pub fn head(&mut self, status: u16, headers: &[(&str, &str)]) {
        let mut head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        self.body(format!("{head}\r\n").as_bytes());
    }

    pub fn body(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// An answer without a body.
    pub fn status(&mut self, status: u16, headers: &[(&str, &str)]) {
        let mut all = headers.to_vec();
        all.push(("Content-Length", "0"));
        self.head(status, &all);
    }

    /// The proper head for a range, or for the whole when none was asked for.
    pub fn range_head(&mut self, request: &Request, data: &[u8], etag: &str) {
        let total = data.len();
        match request.from {
            Some(from) if from as usize >= total => {
                self.status(416, &[("Content-Range", &format!("bytes */{total}"))]);
            }
            Some(from) => {
                let (range, length) = (format!("bytes {from}-{}/{total}", total - 1), total - from as usize);
                let headers = [
                    ("Content-Range", range.as_str()),
                    ("Content-Length", &length.to_string()),
                    ("ETag", etag),
                    ("Content-Type", "audio/flac"),
                ];
                self.head(206, &headers);
            }
            None => {
                let headers = [
                    ("Content-Length", total.to_string().as_str()),
                    ("ETag", etag),
                    ("Accept-Ranges", "bytes"),
                    ("Content-Type", "audio/flac"),
                ]
                .map(|(name, value)| (name, value.to_owned()));
                let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                self.head(200, &headers);
            }
        }
    }

    /// A proper answer.
    pub fn range(&mut self, request: &Request, data: &[u8]) {
        self.part(request, data, data.len());
    }

    /// A proper head, but at most `count` bytes of the body; then the connection closes.
    pub fn part(&mut self, request: &Request, data: &[u8], count: usize) {
        self.range_head(request, data, "\"one\"");
        let from = request.from.unwrap_or(0) as usize;
        self.body(&data[from.min(data.len())..(from + count).min(data.len())]);
    }

    /// Says nothing more until the client closes.
    pub fn stall(&mut self) {
        let _ = self.stream.read(&mut [0; 1]);
    }
}
