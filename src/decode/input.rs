//! The bytes of a track, as the decoder reads them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use symphonia::core::io::MediaSource;

use super::error::DecodeError;
use super::mpeg::Index;
use super::quirks::mkv;

/// How much of the beginning of an input that cannot seek is kept until its format is known, in bytes.
const HEAD_CAP: usize = 256 * 1024;
/// So many bytes of an endless input without a sound are enough.
const SOUNDLESS: u64 = 1024 * 1024;

/// Bytes of a track; reading blocks until they are there or fails.
pub trait Input: Read + Seek + Send + Sync {
    /// Length of the whole track in bytes, if the server told.
    fn byte_len(&self) -> Option<u64>;
    /// Whether any byte can be reached at any time. `seek` is called only if so.
    fn is_seekable(&self) -> bool;
    /// Whether it may go on behind what its first recording says of its length, as a station does and what comes in
    /// pieces.
    fn is_endless(&self) -> bool {
        false
    }
    /// Offset of the first byte behind `from` that would have to be waited for; `from` itself if that is the one.
    fn at_hand(&self, from: u64) -> u64 {
        from
    }
    /// Called at an end, on an input that cannot seek: whether another recording follows, which is read from
    /// now on, and what is known about it.
    fn next_stretch(&mut self) -> Option<Hints> {
        None
    }
}

/// What is known about a track's format before its first byte.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// The server's `Content-Type`; parameters are ignored.
    pub content_type: Option<String>,
    /// The extension in the URL's path or the file's name, without the dot.
    pub extension: Option<String>,
}

/// A file on disk as [`Input`].
#[derive(Debug)]
pub struct FileInput {
    file: File,
    len: Option<u64>,
    seekable: bool,
}

impl FileInput {
    /// Takes an open file; anything but a regular file is read forward only.
    pub fn new(file: File) -> io::Result<FileInput> {
        let meta = file.metadata()?;
        let seekable = meta.is_file();
        Ok(FileInput { file, len: seekable.then_some(meta.len()), seekable })
    }
}

impl Read for FileInput {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.file.read(buf)
    }
}

impl Seek for FileInput {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        self.file.seek(pos)
    }
}

impl Input for FileInput {
    fn byte_len(&self) -> Option<u64> {
        self.len
    }
    fn is_seekable(&self) -> bool {
        self.seekable
    }
    fn at_hand(&self, from: u64) -> u64 {
        if self.seekable { u64::MAX } else { from }
    }
}

/// An input that several [`Handle`]s in turn read from, so that a reader can be thrown away and built anew.
#[derive(Clone)]
pub(super) struct Source {
    shared: Arc<Mutex<Shared>>,
    seekable: bool,
    endless: bool,
    len: Option<u64>,
}

/// A byte that is to be read as another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mask {
    pub(super) at: u64,
    pub(super) byte: u8,
}

struct Shared {
    input: Box<dyn Input>,
    /// Where the input itself stands.
    pos: u64,
    /// The first bytes of an input that cannot seek.
    head: Vec<u8>,
    recording: bool,
    /// What an endless input gave since the last sound; demuxers look for one as long as there are bytes.
    soundless: Option<u64>,
    /// How long it says to be, where that is more than there is.
    claimed: Option<u64>,
    /// What readers are not to see, in order.
    masks: Vec<Mask>,
    is_mkv_masked: bool,
    /// Where frames begin, in formats that do not tell.
    index: Option<Index>,
    /// The bytes that were read last, where someone wants them.
    window: Option<VecDeque<u8>>,
    /// How often a demuxer may still seek, where that is limited.
    seeks_left: Option<u32>,
    /// The first real failure, which demuxers tend to swallow.
    failure: Option<io::Error>,
}

impl Source {
    pub(super) fn new(input: Box<dyn Input>) -> Source {
        let (seekable, len) = (input.is_seekable(), input.byte_len());
        let endless = input.is_endless();
        let shared = Shared {
            input,
            pos: 0,
            head: Vec::new(),
            recording: !seekable,
            soundless: endless.then_some(0),
            claimed: None,
            masks: Vec::new(),
            is_mkv_masked: false,
            index: None,
            window: None,
            seeks_left: None,
            failure: None,
        };
        Source { shared: Arc::new(Mutex::new(shared)), seekable, endless, len }
    }

    pub(super) fn is_seekable(&self) -> bool {
        self.seekable
    }

    pub(super) fn is_endless(&self) -> bool {
        self.endless
    }

    pub(super) fn len(&self) -> Option<u64> {
        self.len
    }

    /// A reader at byte 0. Whether it says that it can seek is decided by `seekable`, now and later.
    pub(super) fn handle(&self, seekable: &Arc<AtomicBool>) -> Handle {
        Handle { source: self.clone(), pos: 0, seekable: seekable.clone() }
    }

    /// A reader at this byte, which only runs forward.
    pub(super) fn handle_at(&self, pos: u64) -> Handle {
        Handle { source: self.clone(), pos, seekable: Arc::new(AtomicBool::new(false)) }
    }

    /// Shows all bytes that are read from now on to this index, or to none.
    pub(super) fn set_index(&self, index: Option<Index>) {
        self.lock().index = index;
    }

    /// Lets readers believe that it reaches up to here at least.
    pub(super) fn claim(&self, end: Option<u64>) {
        self.lock().claimed = end;
    }

    /// Changes these bytes for all who read from now on, and no others.
    pub(super) fn mask(&self, masks: Vec<Mask>) {
        let mut shared = self.lock();
        (shared.masks, shared.is_mkv_masked) = (masks, false);
    }

    /// Hides what misleads the demuxer of a Matroska file from all who read from now on.
    pub(super) fn mask_mkv(&self) {
        if self.lock().is_mkv_masked {
            return;
        }
        let handle = &mut self.handle(&Arc::new(AtomicBool::new(true)));
        // A failure is met again by who reads the file next.
        if let Ok(masks) = mkv::masks(handle, self.len.unwrap_or(u64::MAX)) {
            let mut shared = self.lock();
            (shared.masks, shared.is_mkv_masked) = (masks, true);
        }
    }

    /// Takes the index away; it is to be set again.
    pub(super) fn take_index(&self) -> Option<Index> {
        self.lock().index.take()
    }

    /// What the first frame of an MP3 says about its loudness, where an index saw it.
    pub(super) fn gain_db(&self) -> Option<f32> {
        self.lock().index.as_ref()?.gain_db()
    }

    /// As of the input.
    pub(super) fn at_hand(&self, from: u64) -> u64 {
        self.lock().input.at_hand(from)
    }

    /// Whether nothing of the track would have to be waited for.
    pub(super) fn is_at_hand(&self) -> bool {
        self.at_hand(0) >= self.len.unwrap_or(u64::MAX)
    }

    /// The format is known: the beginning need not be kept any longer.
    pub(super) fn stop_recording(&self) {
        self.lock().recording = false;
    }

    /// Goes on to the recording that follows this one in the same input; its first byte is byte 0 of new handles.
    pub(super) fn next_stretch(&self) -> Option<Hints> {
        let mut shared = self.lock();
        let hints = if self.seekable { None } else { shared.input.next_stretch() }?;
        (shared.pos, shared.head, shared.recording) = (0, Vec::new(), true);
        Some(hints)
    }

    /// There was a sound.
    pub(super) fn sounds(&self) {
        let mut shared = self.lock();
        shared.soundless = shared.soundless.map(|_| 0);
    }

    /// Keeps the last [`mkv::WINDOW`] bytes from now on.
    pub(super) fn keep_window(&self) {
        self.lock().window.get_or_insert_default();
    }

    /// From now on a demuxer may seek so often and no more, or as often as it likes.
    pub(super) fn limit_seeks(&self, most: Option<u32>) {
        self.lock().seeks_left = most;
    }

    pub(super) fn window(&self) -> Vec<u8> {
        self.lock().window.iter().flatten().copied().collect()
    }

    pub(super) fn take_failure(&self) -> Option<io::Error> {
        self.lock().failure.take()
    }

    /// What a reader was told is a copy of the input's own failure: that one says more.
    pub(super) fn cause(&self, told: io::Error) -> DecodeError {
        DecodeError::Input(self.take_failure().unwrap_or(told))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic inside the input leaves nothing half done that matters: the track is given up then.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn read_at(&mut self, pos: u64, buf: &mut [u8], seekable: bool) -> io::Result<usize> {
        if pos < self.head.len() as u64 {
            let from = &self.head[pos as usize..];
            let n = from.len().min(buf.len());
            buf[..n].copy_from_slice(&from[..n]);
            return Ok(n);
        }
        if !self.recording && !self.head.is_empty() {
            self.head = Vec::new();
        }
        if pos != self.pos {
            if seekable {
                self.pos = self.input.seek(SeekFrom::Start(pos))?;
            } else {
                self.read_up_to(pos)?;
            }
            if pos != self.pos {
                return Ok(0);
            }
        }
        self.read_next(buf)
    }

    /// Changes what is masked of these bytes from `pos` on.
    fn mask(&self, pos: u64, bytes: &mut [u8]) {
        let masks = &self.masks;
        let first = masks.partition_point(|mask| mask.at < pos);
        let behind = pos.saturating_add(bytes.len() as u64);
        for mask in masks[first..].iter().take_while(|mask| mask.at < behind) {
            bytes[(mask.at - pos) as usize] = mask.byte;
        }
    }

    /// Gets an input that cannot seek to `pos`, as far as its beginning is kept; less far at its end.
    fn read_up_to(&mut self, pos: u64) -> io::Result<()> {
        if !self.recording || pos < self.pos || pos > HEAD_CAP as u64 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "these bytes are out of reach"));
        }
        let mut buf = [0; 4096];
        while self.pos < pos {
            let most = buf.len().min((pos - self.pos) as usize);
            if self.read_next(&mut buf[..most])? == 0 {
                break;
            }
        }
        Ok(())
    }

    fn read_next(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.soundless.is_some_and(|bytes| bytes > SOUNDLESS) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "there is no sound in what comes"));
        }
        let n = self.input.read(buf)?;
        self.soundless = self.soundless.map(|bytes| bytes + n as u64);
        if self.recording && self.head.len() as u64 == self.pos {
            if self.head.len() + n <= HEAD_CAP {
                self.head.extend_from_slice(&buf[..n]);
            } else {
                self.recording = false;
            }
        }
        self.pos += n as u64;
        Ok(n)
    }
}

/// One reader's place in a [`Source`]. Seeking costs nothing until the next read.
pub(super) struct Handle {
    source: Source,
    pos: u64,
    seekable: Arc<AtomicBool>,
}

impl Read for Handle {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut shared = self.source.lock();
        match shared.read_at(self.pos, buf, self.source.seekable) {
            Ok(n) => {
                if let Some(index) = &mut shared.index {
                    index.pass(self.pos, &buf[..n]);
                }
                shared.mask(self.pos, &mut buf[..n]);
                self.pos += n as u64;
                if let Some(window) = &mut shared.window {
                    window.extend(&buf[..n]);
                    let over = window.len().saturating_sub(mkv::WINDOW);
                    window.drain(..over);
                }
                Ok(n)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Err(e),
            Err(e) => {
                let told = io::Error::new(e.kind(), e.to_string());
                shared.failure.get_or_insert(e);
                Err(told)
            }
        }
    }
}

impl Seek for Handle {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if let Some(left) = &mut self.source.lock().seeks_left {
            *left = left.checked_sub(1).ok_or_else(|| io::Error::other("the search leads nowhere"))?;
        }
        let pos = match to {
            SeekFrom::Start(pos) => Some(pos),
            SeekFrom::Current(by) => self.pos.checked_add_signed(by),
            SeekFrom::End(by) => self.byte_len().and_then(|len| len.checked_add_signed(by)),
        };
        self.pos =
            pos.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "seek outside the track"))?;
        Ok(self.pos)
    }
}

impl MediaSource for Handle {
    fn is_seekable(&self) -> bool {
        // Without a length the demuxers' arithmetic for jumps has nothing to work with.
        self.source.seekable && self.source.len.is_some() && self.seekable.load(Ordering::Relaxed)
    }
    fn byte_len(&self) -> Option<u64> {
        let claimed = self.source.lock().claimed.unwrap_or(0);
        self.source.len.map(|len| len.max(claimed))
    }
}
