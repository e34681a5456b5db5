//! HTTP/1, byte by byte.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::server::TlsStream;

use super::script::{Act, fill};
use super::server::{Door, Inner, Question, Task};

/// The most that is written at a time.
const PIECE: usize = 16 * 1024;

/// A connection.
pub(super) enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Wire {
    fn tcp(&self) -> &TcpStream {
        match self {
            Wire::Plain(stream) => stream,
            Wire::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Waits, and fails when the client hangs up meanwhile.
    async fn wait(&mut self, time: Duration) -> io::Result<()> {
        let mut byte = [0; 1];
        tokio::select! {
            () = sleep(time) => Ok(()),
            read = self.read(&mut byte) => match read {
                Ok(1) => Err(io::Error::other("the client speaks out of turn")),
                Ok(_) => Err(io::ErrorKind::ConnectionAborted.into()),
                Err(error) => Err(error),
            },
        }
    }
}

/// Answers requests on one connection until a script does not await another.
pub(super) async fn converse(inner: Arc<Inner>, door: Door, connection: usize, mut wire: Wire) {
    while let Ok(question) = read_question(&mut wire).await {
        let Some(task) = inner.ask(door, connection, &question) else {
            let _ = wire.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await;
            break;
        };
        match play(&inner, &mut wire, &question, &task).await {
            Ok(true) => {}
            Ok(false) => break,
            // Without a goodbye, or a reset would look like an end.
            Err(_) => return,
        }
    }
    let _ = wire.shutdown().await;
}

async fn read_question(wire: &mut Wire) -> io::Result<Question> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(wire.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let path = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or("/").to_owned();
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers: HashMap<String, String> =
        headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    Ok(Question::new(&path, headers))
}

/// Plays a script; true when another request is awaited.
async fn play(inner: &Inner, wire: &mut Wire, question: &Question, task: &Task) -> io::Result<bool> {
    let total = task.file.bytes.len();
    let mut out = Out { inner, wire, at: question.from.unwrap_or(0).min(total), chunked: false, pace: None };
    let mut keep = false;
    for act in &task.script.acts {
        match act {
            Act::Head(more) => out.head(question, task, more).await?,
            Act::Say(text) => {
                let text = fill(text, question, total, &task.elsewhere);
                out.paced(text.as_bytes()).await?;
            }
            Act::Body(count) => {
                let end = out.at.saturating_add(*count).min(total);
                let from = std::mem::replace(&mut out.at, end);
                out.bytes(&task.file.bytes[from..end]).await?;
            }
            Act::Seek(offset) => out.at = (*offset).min(total),
            Act::Noise(count) => out.bytes(&vec![0x55; *count]).await?,
            Act::Chunked => out.chunked = true,
            Act::Pace(bytes) => out.pace = Some(*bytes),
            Act::Wait(time) => out.wire.wait(*time).await?,
            Act::Stall => out.wire.wait(Duration::from_secs(600)).await?,
            Act::Reset => {
                out.wire.tcp().set_zero_linger()?;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            Act::Next => keep = true,
            Act::GoAway => panic!("HTTP/1 has no such thing"),
        }
    }
    Ok(keep)
}

/// An answer on its way.
struct Out<'a> {
    inner: &'a Inner,
    wire: &'a mut Wire,
    /// Where in the file the next bytes are from.
    at: usize,
    chunked: bool,
    pace: Option<usize>,
}

impl Out<'_> {
    async fn head(&mut self, question: &Question, task: &Task, more: &str) -> io::Result<()> {
        let (status, mut lines) = proper_head(question, task);
        if !more.contains("Date:") {
            // Vouches for the clock of a machine whose kernel does not: else certificates would not be judged.
            lines.push(("Date", httpdate::fmt_http_date(std::time::SystemTime::now())));
        }
        let mut head = format!("HTTP/1.1 {status} Whatever\r\n");
        for (name, value) in lines {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        for line in fill(more, question, task.file.bytes.len(), &task.elsewhere).lines() {
            head.push_str(&format!("{}\r\n", line.trim()));
        }
        head.push_str("\r\n");
        self.inner.network().await;
        self.wire.write_all(head.as_bytes()).await
    }

    async fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.chunked {
            return self.paced(bytes).await;
        }
        for piece in bytes.chunks(PIECE) {
            self.wire.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
            self.paced(piece).await?;
            self.wire.write_all(b"\r\n").await?;
        }
        Ok(())
    }

    async fn paced(&mut self, bytes: &[u8]) -> io::Result<()> {
        let piece = self.pace.map_or(PIECE, |pace| (pace / 20).max(1));
        for piece in bytes.chunks(piece) {
            self.inner.network().await;
            self.wire.write_all(piece).await?;
            if let Some(pace) = self.pace {
                self.wire.wait(Duration::from_secs_f64(piece.len() as f64 / pace as f64)).await?;
            }
        }
        Ok(())
    }
}

/// What a good server says: status and headers.
pub(super) fn proper_head(question: &Question, task: &Task) -> (u16, Vec<(&'static str, String)>) {
    let total = task.file.bytes.len();
    let mut lines = vec![
        ("Content-Type", task.file.content_type.to_owned()),
        ("Accept-Ranges", "bytes".to_owned()),
        ("ETag", format!("\"{total:x}\"")),
    ];
    let status = match question.from {
        Some(from) if from >= total => {
            lines.push(("Content-Range", format!("bytes */{total}")));
            lines.push(("Content-Length", "0".to_owned()));
            416
        }
        Some(from) => {
            lines.push(("Content-Range", format!("bytes {from}-{}/{total}", total - 1)));
            lines.push(("Content-Length", (total - from).to_string()));
            206
        }
        None => {
            lines.push(("Content-Length", total.to_string()));
            200
        }
    };
    (status, lines)
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Wire::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Wire::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Wire::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Wire::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
