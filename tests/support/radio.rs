//! A radio station on this machine: endless at the pace of its music, with titles between the bytes. It can be cut,
//! go silent, and be off the air.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::encode::Encoded;

/// Bytes of audio between two blocks of metadata.
const INTERVAL: usize = 4_096;
/// What a new listener gets at once, in seconds of music.
const BURST: f64 = 4.0;

/// How the station answers.
#[derive(Clone, Copy, PartialEq)]
pub enum Speaks {
    /// HTTP with `icy-` headers.
    Icecast,
    /// `ICY 200 OK`.
    Shoutcast,
}

/// What one listener gets: a recording and its title. Ogg carries its titles itself.
pub struct Show {
    pub file: Encoded,
    pub seconds: f64,
    pub title: &'static str,
    /// Another title after so many seconds of the music.
    pub then: Option<(f64, &'static str)>,
}

struct Inner {
    speaks: Speaks,
    /// Connection number n gets the n-th, and all further ones the last.
    shows: Vec<Show>,
    listeners: Mutex<Vec<TcpStream>>,
    served: AtomicUsize,
    off_the_air: AtomicBool,
    mute: AtomicBool,
    stopping: AtomicBool,
}

/// The station. It ends when it is dropped.
pub struct Radio {
    inner: Arc<Inner>,
    port: u16,
}

impl Radio {
    /// Goes on the air at a free port of 127.0.0.1. `/list.pls` is a playlist that leads to `/stream`.
    pub fn start(speaks: Speaks, shows: Vec<Show>) -> Radio {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let inner = Arc::new(Inner {
            speaks,
            shows,
            listeners: Mutex::default(),
            served: AtomicUsize::new(0),
            off_the_air: AtomicBool::new(false),
            mute: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&inner);
        thread::spawn(move || {
            for connection in listener.incoming() {
                if accepting.stopping.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(connection), inner) = (connection, Arc::clone(&accepting)) else { continue };
                // A listener that hangs up is no failure of the test by itself.
                thread::spawn(move || inner.serve(connection).ok());
            }
        });
        Radio { inner, port }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Ends all connections.
    pub fn cut(&self) {
        for listener in self.inner.listeners.lock().unwrap().drain(..) {
            let _ = listener.shutdown(Shutdown::Both);
        }
    }

    /// Whether listeners that come are told that there is no stream.
    pub fn off_the_air(&self, off: bool) {
        self.inner.off_the_air.store(off, Ordering::SeqCst);
    }

    /// Those who listen now hear nothing more; their connections stay open.
    pub fn fall_silent(&self) {
        self.inner.mute.store(true, Ordering::SeqCst);
    }

    /// How many got a stream so far.
    pub fn served(&self) -> usize {
        self.inner.served.load(Ordering::SeqCst)
    }
}

impl Drop for Radio {
    fn drop(&mut self) {
        self.inner.stopping.store(true, Ordering::SeqCst);
        self.cut();
        // Wakes the accepting thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Inner {
    fn serve(&self, mut to: TcpStream) -> std::io::Result<()> {
        to.set_nodelay(true)?;
        let mut lines = BufReader::new(to.try_clone()?).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        let mut wants_titles = false;
        for line in lines {
            let line = line?.to_ascii_lowercase();
            wants_titles |= line == "icy-metadata: 1";
            if line.is_empty() {
                break;
            }
        }
        if first.contains("/list.pls") {
            let list = "[playlist]\r\nNumberOfEntries=1\r\nFile1=/stream\r\n";
            let length = list.len();
            return write!(
                to,
                "HTTP/1.0 200 OK\r\nContent-Type: audio/x-scpls\r\nContent-Length: {length}\r\n\r\n{list}"
            );
        }
        if self.off_the_air.load(Ordering::SeqCst) {
            return match self.speaks {
                Speaks::Icecast => write!(to, "HTTP/1.0 404 File Not Found\r\n\r\nno source"),
                Speaks::Shoutcast => write!(to, "ICY 401 Service Unavailable\r\n\r\n"),
            };
        }
        self.listeners.lock().unwrap().push(to.try_clone()?);
        let number = self.served.fetch_add(1, Ordering::SeqCst);
        self.mute.store(false, Ordering::SeqCst);
        let show = &self.shows[number.min(self.shows.len() - 1)];
        let titles = wants_titles && show.file.content_type == "audio/mpeg";
        let status = if self.speaks == Speaks::Icecast { "HTTP/1.0 200 OK" } else { "ICY 200 OK" };
        write!(to, "{status}\r\nContent-Type: {}\r\nicy-name: Example FM\r\n", show.file.content_type)?;
        if titles {
            write!(to, "icy-metaint: {INTERVAL}\r\n")?;
        }
        to.write_all(b"\r\n")?;
        self.play(&mut to, show, titles)
    }

    fn play(&self, to: &mut TcpStream, show: &Show, titles: bool) -> std::io::Result<()> {
        let rate = show.file.bytes.len() as f64 / show.seconds;
        let began = Instant::now();
        for (number, piece) in show.file.bytes.chunks(INTERVAL).enumerate() {
            let due = Duration::from_secs_f64(((number * INTERVAL) as f64 / rate - BURST).max(0.0));
            thread::sleep(due.saturating_sub(began.elapsed()));
            while self.mute.load(Ordering::SeqCst) && !self.stopping.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(20));
            }
            to.write_all(piece)?;
            if titles && piece.len() == INTERVAL {
                let second = |number: usize| (number * INTERVAL) as f64 / rate;
                let begins = |at: f64| (second(number)..second(number + 1)).contains(&at);
                let text = match show.then {
                    _ if number == 0 => format!("StreamTitle='{}';", show.title),
                    Some((at, title)) if begins(at) => format!("StreamTitle='{title}';"),
                    _ => String::new(),
                };
                let units = text.len().div_ceil(16);
                let mut block = vec![units as u8];
                block.extend(text.bytes());
                block.resize(1 + units * 16, 0);
                to.write_all(&block)?;
            }
        }
        // The listener is kept waiting, as by a station whose source has gone.
        let _ = std::io::Read::read(to, &mut [0]);
        Ok(())
    }
}
