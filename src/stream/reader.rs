//! The blocking side of a stream.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use super::shared::Shared;

/// A stream as the decode thread sees it: blocking, with seeks where the server allows them.
///
/// Errors carry a [`StreamError`](super::StreamError). Dropping it ends the stream and frees its memory.
pub struct Reader {
    shared: Arc<Shared>,
    /// Set for a file of the disk, which is not held in the store.
    file: Option<File>,
}

impl Reader {
    pub(super) fn over_store(shared: Arc<Shared>) -> Self {
        Reader { shared, file: None }
    }

    pub(super) fn over_file(shared: Arc<Shared>, file: File) -> Self {
        Reader { shared, file: Some(file) }
    }

    /// Length in bytes. Blocks until the first answer came or the stream ended.
    pub fn byte_len(&self) -> Option<u64> {
        self.shared.known()?.total
    }

    /// Whether seeks to any place can succeed. Blocks like [`Reader::byte_len`].
    pub fn is_seekable(&self) -> bool {
        self.shared.known().is_some_and(|known| known.ranges && known.total.is_some())
    }

    /// Offset of the first byte behind `from` that would have to be waited for; `from` itself if that is the one.
    pub fn at_hand(&self, from: u64) -> u64 {
        if self.file.is_some() { u64::MAX } else { self.shared.extent(from) }
    }

    /// Media type as the server says. Blocks like [`Reader::byte_len`].
    pub fn content_type(&self) -> Option<String> {
        self.shared.known()?.content_type
    }

    /// Whether it is a station, which has no end. Blocks like [`Reader::byte_len`].
    pub fn is_live(&self) -> bool {
        self.shared.known().is_some_and(|known| known.live)
    }

    /// Whether it may go on behind the end that its first bytes tell: a station does, and what comes in pieces of
    /// which each tells its own. Blocks like [`Reader::byte_len`].
    pub fn may_go_on(&self) -> bool {
        self.is_live() || self.shared.is_pieced()
    }

    /// Where the reader came to the end of a stretch and another recording follows: reads on in that one, and
    /// tells its media type as far as known. None at the end of everything.
    pub fn next_stretch(&mut self) -> Option<Option<String>> {
        self.shared.next_stretch()
    }
}

impl Read for Reader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return self.shared.read(out) };
        let at = self.shared.position()?;
        let count = file.read(out)?;
        self.shared.note_position(at + count as u64);
        Ok(count)
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = self.shared.position()?;
        if let Some(file) = &mut self.file {
            let now = file.seek(to)?;
            self.shared.note_position(now);
            return Ok(now);
        }
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(0) => return Ok(at),
            SeekFrom::Current(by) => at.checked_add_signed(by),
            SeekFrom::End(by) => {
                let total = self.byte_len();
                // Why there is no length may be that reading is over.
                self.shared.position()?;
                total
                    .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "the stream has no known end"))?
                    .checked_add_signed(by)
            }
        };
        let target = target
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a seek to before the first byte"))?;
        self.shared.seek(target)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.abort();
    }
}
