//! Bytes as they come in: from a server or from the disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::hls::Hls;
use super::icy::{Demux, Piece};

/// What is read of a file at once.
const PIECE: usize = 64 * 1024;

/// Reads that may be under way at once. A disk that does not answer (a network drive, a dying card) holds the
/// thread that reads it, and the pool has few.
static READS: Semaphore = Semaphore::const_new(2);

/// The body of an answer.
pub(super) enum Incoming {
    /// From a server.
    Web(Box<WebBody>),
    /// From a file.
    File(FileBody),
    /// From many files of a server, one after another.
    Hls(Box<Hls>),
}

impl Incoming {
    /// The next bytes; none at the end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// A sentence about why nothing comes.
    pub async fn chunk(&mut self) -> Result<Option<Piece>, String> {
        match self {
            Incoming::Web(body) => body.piece().await,
            Incoming::Hls(hls) => hls.piece().await,
            Incoming::File(file) => {
                let chunk = file.chunk().await;
                let piece = chunk.map(|bytes| bytes.map(Piece::Audio));
                piece.map_err(|error| format!("the file cannot be read: {error}"))
            }
        }
    }
}

impl Incoming {
    /// Whether it minds itself how long nothing comes.
    pub fn minds_silence(&self) -> bool {
        matches!(self, Incoming::Hls(_))
    }

    /// Nobody read for a while, for which no server is to blame.
    pub fn waited(&mut self) {
        if let Incoming::Hls(hls) = self {
            hls.waited();
        }
    }

    /// Takes back bytes that could not be kept, where they would not come again by asking.
    pub fn give_back(&mut self, bytes: &[u8]) {
        if let Incoming::Hls(hls) = self {
            hls.give_back(bytes);
        }
    }
}

/// The body of a response, less the titles in it.
pub(super) struct WebBody {
    response: Response,
    /// What came and has not been given on.
    pending: Bytes,
    demux: Option<Demux>,
}

impl WebBody {
    /// `pending` is what of the body was read already; titles stand after each `interval` bytes of audio.
    pub fn new(response: Response, pending: Bytes, interval: Option<u64>) -> Self {
        WebBody { response, pending, demux: interval.map(Demux::new) }
    }

    /// At least so many bytes of the beginning, or all there are; they stay in the body. None where titles are
    /// between them.
    pub async fn first(&mut self, least: usize) -> Result<Option<&[u8]>, String> {
        if self.demux.is_some() {
            return Ok(None);
        }
        self.fill(least).await?;
        Ok(Some(&self.pending))
    }

    /// The whole body, where it is no longer than `most`.
    pub async fn text(&mut self, most: usize) -> Result<Option<Bytes>, String> {
        self.fill(most + 1).await?;
        Ok((self.pending.len() <= most).then(|| std::mem::take(&mut self.pending)))
    }

    /// Reads until so many bytes are pending or the body has ended.
    async fn fill(&mut self, least: usize) -> Result<(), String> {
        let mut held = BytesMut::from(std::mem::take(&mut self.pending));
        while held.len() < least {
            match self.response.chunk().await {
                Ok(Some(bytes)) => held.extend_from_slice(&bytes),
                Ok(None) => break,
                Err(error) => return Err(cut(error)),
            }
        }
        self.pending = held.freeze();
        Ok(())
    }

    /// The next bytes or title; none at the end. Dropping the future loses nothing.
    pub async fn piece(&mut self) -> Result<Option<Piece>, String> {
        loop {
            match &mut self.demux {
                None if !self.pending.is_empty() => {
                    return Ok(Some(Piece::Audio(std::mem::take(&mut self.pending))));
                }
                None => {}
                Some(demux) => {
                    if let Some(piece) = demux.next(&mut self.pending) {
                        return Ok(Some(piece));
                    }
                }
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.pending = bytes,
                Ok(None) => return Ok(None),
                Err(error) => return Err(cut(error)),
            }
        }
    }
}

/// A file from an offset on, read away from the main thread.
pub(super) struct FileBody {
    file: Arc<File>,
    at: u64,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl FileBody {
    pub fn new(file: Arc<File>, at: u64) -> Self {
        FileBody { file, at, reading: None }
    }

    async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        if self.reading.is_none() {
            let permit = READS.acquire().await.map_err(io::Error::other)?;
            let (file, at) = (Arc::clone(&self.file), self.at);
            self.reading = Some(tokio::task::spawn_blocking(move || {
                let _permit = permit;
                read_piece(&file, at)
            }));
        }
        let Some(reading) = &mut self.reading else { return Ok(None) };
        let piece = reading.await;
        self.reading = None;
        let bytes = piece.map_err(io::Error::other)??;
        self.at += bytes.len() as u64;
        Ok((!bytes.is_empty()).then_some(bytes))
    }
}

fn read_piece(file: &File, at: u64) -> io::Result<Bytes> {
    let mut piece = vec![0; PIECE];
    loop {
        match file.read_at(&mut piece, at) {
            Ok(count) => {
                piece.truncate(count);
                return Ok(piece.into());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn cut(error: reqwest::Error) -> String {
    format!("the connection was cut: {}", root(&error.without_url()))
}

/// The first cause, which says more than "error decoding response body".
fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
