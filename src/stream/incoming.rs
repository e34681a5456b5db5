//! Bytes as they come in: from a server or from the disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use reqwest::Response;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// What is read of a file at once.
const PIECE: usize = 64 * 1024;

/// Reads that may be under way at once. A disk that does not answer (a network drive, a dying card) holds the
/// thread that reads it, and the pool has few.
static READS: Semaphore = Semaphore::const_new(2);

/// The body of an answer.
pub(super) enum Incoming {
    /// From a server.
    Web(Response),
    /// From a file.
    File(FileBody),
}

impl Incoming {
    /// The next bytes; none at the end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// A sentence about why nothing comes.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        match self {
            Incoming::Web(response) => {
                let chunk = response.chunk().await;
                chunk.map_err(|error| format!("the connection was cut: {}", root(&error.without_url())))
            }
            Incoming::File(file) => {
                file.chunk().await.map_err(|error| format!("the file cannot be read: {error}"))
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

/// The first cause, which says more than "error decoding response body".
fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
