//! One file on its way to one client, with all that can go wrong.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::server::{Asset, Inner, Request, Trouble, respond};

/// The most that is written at a time.
const PIECE: usize = 16 * 1024;
/// Throttled bodies are sent in pieces at this distance.
const BEAT: Duration = Duration::from_millis(20);

pub(super) struct Transfer<'a> {
    pub(super) server: &'a Inner,
    pub(super) asset: &'a Asset,
    /// Which request for this file it is, from 0.
    pub(super) nth: usize,
    /// In the server's log.
    pub(super) number: usize,
    /// From when on it is refused, and with what.
    pub(super) ends: Option<(Instant, u16)>,
}

pub(super) fn send(transfer: Transfer<'_>, connection: TcpStream, request: &Request) -> std::io::Result<()> {
    if let Some(status) = transfer.refusal() {
        transfer.note_status(status);
        return respond(connection, status, "text/plain", b"refused");
    }
    let total = transfer.asset.file.bytes.len();
    let asked = request.headers.get("range").and_then(|range| parse_range(range, total));
    let asked = asked.filter(|_| !transfer.has(&Trouble::NoRanges));
    match asked {
        Some(range) if range.start >= total => {
            transfer.note_status(416);
            respond(connection, 416, "text/plain", b"beyond the end")
        }
        Some(range) => transfer.send_body(connection, 206, range, request),
        None => transfer.send_body(connection, 200, 0..total, request),
    }
}

/// `bytes=from-` or `bytes=from-to`.
fn parse_range(header: &str, total: usize) -> Option<Range<usize>> {
    let (from, to) = header.strip_prefix("bytes=")?.split_once('-')?;
    let end = to.parse::<usize>().map_or(total, |last| (last + 1).min(total));
    Some(from.parse().ok()?..end)
}

impl Transfer<'_> {
    fn has(&self, trouble: &Trouble) -> bool {
        self.asset.troubles.contains(trouble)
    }

    fn throttle(&self) -> Option<usize> {
        self.asset.troubles.iter().find_map(|trouble| match trouble {
            Trouble::Throttle(bytes) => Some(*bytes),
            _ => None,
        })
    }

    /// Where this body ends too early, or goes silent.
    fn break_at(&self) -> Option<(usize, bool)> {
        self.asset.troubles.iter().find_map(|trouble| match trouble {
            Trouble::CutAfter { bytes, times } if self.nth < *times => Some((*bytes, false)),
            Trouble::StallAfter { bytes, times } if self.nth < *times => Some((*bytes, true)),
            _ => None,
        })
    }

    fn refusal(&self) -> Option<u16> {
        if let Some((end, status)) = self.ends
            && Instant::now() >= end
        {
            return Some(status);
        }
        self.asset.troubles.iter().find_map(|trouble| match trouble {
            Trouble::RefuseRequests { from, count, status } if (*from..from + count).contains(&self.nth) => {
                Some(*status)
            }
            _ => None,
        })
    }

    fn note_status(&self, status: u16) {
        self.server.log.lock().unwrap()[self.number].status = status;
    }

    fn send_body(
        &self,
        mut to: TcpStream,
        status: u16,
        range: Range<usize>,
        request: &Request,
    ) -> std::io::Result<()> {
        self.note_status(status);
        to.write_all(self.head(status, &range).as_bytes())?;
        if request.method == "HEAD" {
            return Ok(());
        }
        let broken = self.break_at();
        let end = broken.map_or(range.end, |(bytes, _)| range.end.min(range.start + bytes));
        let throttle = self.throttle();
        let piece = throttle.map_or(PIECE, |bytes| (bytes * BEAT.as_millis() as usize / 1000).max(1));
        let mut at = range.start;
        let mut beat = Instant::now();
        while at < end {
            let next = (at + piece).min(end);
            let bytes = &self.asset.file.bytes[at..next];
            self.write(&mut to, bytes)?;
            self.server.log.lock().unwrap()[self.number].sent += bytes.len();
            at = next;
            if throttle.is_some() {
                beat += BEAT;
                self.sleep(&to, beat.saturating_duration_since(Instant::now()))?;
            }
        }
        match broken {
            Some((_, true)) if end < range.end => self.sleep(&to, Duration::from_secs(600)),
            _ => Ok(()),
        }
    }

    fn head(&self, status: u16, range: &Range<usize>) -> String {
        let file = &self.asset.file;
        let mut head =
            format!("HTTP/1.1 {status} {}\r\nContent-Type: {}\r\n", reason(status), file.content_type);
        if !self.has(&Trouble::NoRanges) {
            head.push_str("Accept-Ranges: bytes\r\n");
        }
        let version = if self.has(&Trouble::OtherEachTime) { self.nth } else { 0 };
        head.push_str(&format!("ETag: \"{:x}-{version}\"\r\n", file.bytes.len()));
        if status == 206 {
            let (from, last, total) = (range.start, range.end - 1, file.bytes.len());
            head.push_str(&format!("Content-Range: bytes {from}-{last}/{total}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n", range.len()));
        head.push_str("Connection: close\r\n\r\n");
        head
    }

    /// Writes, and notices meanwhile that its time is over.
    fn write(&self, to: &mut TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
        while !bytes.is_empty() {
            self.check_time()?;
            match to.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn check_time(&self) -> std::io::Result<()> {
        let over = self.ends.is_some_and(|(end, _)| Instant::now() >= end);
        if over || self.server.stopping() { Err(ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// Waits, and notices that the client hung up.
    fn sleep(&self, to: &TcpStream, time: Duration) -> std::io::Result<()> {
        let until = Instant::now() + time;
        let mut connection = to;
        loop {
            self.check_time()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            to.set_read_timeout(Some(left.min(Duration::from_millis(50))))?;
            match connection.read(&mut [0; 64]) {
                Ok(0) => return Err(ErrorKind::ConnectionAborted.into()),
                Ok(_) => {}
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_timeout(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

pub(super) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        403 => "Forbidden",
        404 => "Not Found",
        410 => "Gone",
        416 => "Range Not Satisfiable",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "Whatever",
    }
}
