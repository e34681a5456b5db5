//! One file through the decoder, watched: how long it takes, what memory it wants, whether a panic escapes.

use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use segue::decode::{DecodeError, Decoder, Hints, Input};
use segue::track::SourceFormat;

/// No single call of the decoder takes longer, whatever else the machine has to do.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// So much sound is decoded of a file: an hour at 48 kHz. None of the published ones has more.
const MOST_FRAMES: u64 = 3600 * 48_000;
/// So much of a damaged one, which may tell any length and need few bytes for silence.
const BEGINNING: u64 = 60 * 48_000;

/// What was heard of a file.
#[derive(Clone, Debug)]
pub struct Heard {
    pub codec: String,
    /// Of the first frames.
    pub format: SourceFormat,
    /// The format changed on the way.
    pub changed: bool,
    pub frames: u64,
    /// Left-justified and interleaved; empty if not wanted.
    pub samples: Vec<i32>,
    /// Length as told after opening.
    pub told: Option<u64>,
    pub lost_packets: u64,
    /// What ended it before its end.
    pub failure: Option<String>,
    /// What a jump to its middle did wrong.
    pub jump: Option<String>,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub enum End {
    Heard(Box<Heard>),
    Refused(String),
    /// It was caught inside the decoder, and cost the track.
    Panicked,
    /// It got out of the decoder.
    Escaped,
    /// A call did not come back.
    Hangs,
    /// It gives more sound than is waited for.
    Long,
}

/// What is wanted of a run.
#[derive(Clone, Copy, PartialEq)]
pub enum Want {
    /// That it ends well; its beginning will do.
    Beginning,
    /// That all of it ends well.
    End,
    /// Its samples, and whether a jump to the middle lands right, where that can be told.
    Sound,
}

/// The bytes of a file, in memory: reading them costs the measured run nothing.
struct Bytes(Cursor<Arc<[u8]>>);

impl Read for Bytes {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl Seek for Bytes {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        self.0.seek(pos)
    }
}

impl Input for Bytes {
    fn byte_len(&self) -> Option<u64> {
        Some(self.0.get_ref().len() as u64)
    }
    fn is_seekable(&self) -> bool {
        true
    }
    fn at_hand(&self, _from: u64) -> u64 {
        u64::MAX
    }
}

/// Decodes the bytes on a thread of their own, which is left to itself if it does not come back.
pub fn watched(bytes: &Arc<[u8]>, extension: &str, want: Want) -> End {
    let (tell, told) = mpsc::channel();
    let (bytes, extension) = (bytes.clone(), extension.to_owned());
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let spawned = thread::Builder::new().name("decode".to_owned()).spawn(move || {
        let end = catch_unwind(AssertUnwindSafe(|| decode(&bytes, &extension, want, &counted)));
        let _ = tell.send(end.unwrap_or(End::Escaped));
    });
    let thread = spawned.expect("a thread");
    let mut seen = 0;
    loop {
        if let Ok(end) = told.recv_timeout(PATIENCE) {
            thread.join().expect("it has told its result");
            return end;
        }
        let now = calls.load(Ordering::Relaxed);
        if now == seen {
            return End::Hangs;
        }
        seen = now;
    }
}

fn open(bytes: &Arc<[u8]>, extension: &str) -> Result<Decoder, DecodeError> {
    let extension = (extension != "bit").then(|| extension.to_owned());
    let hints = Hints { content_type: None, extension };
    Decoder::open(Box::new(Bytes(Cursor::new(bytes.clone()))), &hints)
}

fn decode(bytes: &Arc<[u8]>, extension: &str, want: Want, calls: &AtomicU64) -> End {
    let mut decoder = match open(bytes, extension) {
        Ok(decoder) => decoder,
        Err(DecodeError::Panicked) => return End::Panicked,
        Err(e) => return End::Refused(e.to_string()),
    };
    let mut heard = Heard {
        codec: decoder.codec().to_owned(),
        format: decoder.format(),
        changed: false,
        frames: 0,
        samples: Vec::new(),
        told: decoder.total_frames(),
        lost_packets: 0,
        failure: None,
        jump: None,
    };
    let mut out = Vec::new();
    loop {
        match decoder.next(&mut out) {
            Ok(Some(frames)) => heard.frames += frames as u64,
            Ok(None) => break,
            Err(DecodeError::Panicked) => return End::Panicked,
            Err(e) => {
                heard.failure = Some(e.to_string());
                break;
            }
        }
        calls.fetch_add(1, Ordering::Relaxed);
        heard.changed |= decoder.format() != heard.format;
        if want == Want::Sound {
            heard.samples.append(&mut out);
        }
        out.clear();
        if heard.frames > if want == Want::Beginning { BEGINNING } else { MOST_FRAMES } {
            return End::Long;
        }
    }
    heard.lost_packets = decoder.lost_packets();
    drop(decoder);
    if want == Want::Sound && !heard.changed && heard.failure.is_none() {
        heard.jump = jump(bytes, extension, &heard, calls).err();
    }
    End::Heard(Box::new(heard))
}

/// Whether what follows a jump is what was heard there before. Codecs whose packets depend on those before are only
/// asked for the number of frames that are left.
fn jump(bytes: &Arc<[u8]>, extension: &str, heard: &Heard, calls: &AtomicU64) -> Result<(), String> {
    let target = heard.frames * 2 / 5;
    let mut decoder = open(bytes, extension).map_err(|e| e.to_string())?;
    let landed = decoder.seek(target).map_err(|e| format!("a jump to frame {target}: {e}"))?;
    if !landed.exact {
        return Ok(());
    }
    if landed.frame != target {
        return Err(format!("a jump to frame {target} landed at {}", landed.frame));
    }
    let (mut rest, mut frames) = (Vec::new(), 0);
    while let Some(more) = decoder.next(&mut rest).map_err(|e| format!("after a jump: {e}"))? {
        frames += more as u64;
        calls.fetch_add(1, Ordering::Relaxed);
    }
    if target + frames != heard.frames {
        return Err(format!("after a jump to frame {target} of {} come {frames} frames", heard.frames));
    }
    let from = target as usize * usize::from(heard.format.channels);
    if !heard.format.lossy && heard.samples[from..] != rest[..] {
        return Err(format!("after a jump to frame {target} other samples come"));
    }
    Ok(())
}

/// Memory of this process in KiB, from a line of /proc/self/status.
fn memory(line: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|text| text.strip_prefix(line))?;
    value.trim_start_matches(':').trim().strip_suffix(" kB")?.parse().ok()
}

/// What `run` adds at most to the memory of this process, in KiB. Nothing else may run meanwhile.
pub fn growth<T>(run: impl FnOnce() -> T) -> (T, u64) {
    // Sets the highest value so far to the present one.
    std::fs::write("/proc/self/clear_refs", "5").expect("the kernel's own account of memory");
    let before = memory("VmRSS").expect("VmRSS");
    let result = run();
    (result, memory("VmHWM").expect("VmHWM").saturating_sub(before))
}

#[test]
fn memory_that_is_touched_is_seen() {
    let (sum, grown) = growth(|| vec![1u8; 48 << 20].iter().map(|&byte| u64::from(byte)).sum::<u64>());
    assert_eq!(sum, 48 << 20);
    assert!(grown > 40 << 10, "{grown} KiB");
}
