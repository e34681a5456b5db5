//! What a plugin writes on standard error: always read, so that it never blocks; the newest lines are kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::broadcast;

use super::redact::Redactor;
use crate::track::PluginId;

/// Lines kept for each plugin.
pub const MAX_LINES: usize = 1_000;
/// Bytes kept of each line.
pub const MAX_LINE_BYTES: usize = 2_048;
/// Bytes of a line that are looked at, so that a secret across the cut is still found.
const MAX_RAW_BYTES: usize = 16 * 1024;
/// Lines that a slow follower may fall behind before it misses the oldest of them.
const MAX_FOLLOWED: usize = 256;

/// How serious a line says it is, by a leading `E!`, `W!`, `I!` or `D!`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// `E!`
    Error,
    /// `W!`
    Warn,
    /// `I!`, or no mark.
    Info,
    /// `D!`
    Debug,
}

impl LogLevel {
    /// One lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        }
    }
}

/// A line of a plugin's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// From its mark.
    pub level: LogLevel,
    /// Without the mark, secrets replaced, at most [`MAX_LINE_BYTES`] bytes.
    pub text: String,
}

/// The newest lines, shared between the process that writes and whoever reads.
#[derive(Clone)]
pub(super) struct Log {
    kept: Arc<Mutex<Kept>>,
    fresh: broadcast::Sender<LogLine>,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<LogLine>,
    /// Lines that were ever written: the newest one's number.
    written: u64,
}

impl Default for Log {
    fn default() -> Self {
        Log { kept: Arc::default(), fresh: broadcast::channel(MAX_FOLLOWED).0 }
    }
}

impl Log {
    pub(super) fn newest(&self, count: usize) -> Vec<LogLine> {
        let lines = &self.kept.lock().unwrap_or_else(PoisonError::into_inner).lines;
        lines.iter().skip(lines.len().saturating_sub(count)).cloned().collect()
    }

    /// The number of the newest line, and the kept lines whose numbers are higher than `number`. A number that was
    /// never given is from before a restart: then it is all of them.
    pub(super) fn after(&self, number: u64) -> (u64, Vec<LogLine>) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = if number > kept.written { kept.written } else { kept.written - number };
        let skipped = kept.lines.len().saturating_sub(usize::try_from(fresh).unwrap_or(usize::MAX));
        (kept.written, kept.lines.iter().skip(skipped).cloned().collect())
    }

    /// Lines as they are written, from now on.
    pub(super) fn follow(&self) -> broadcast::Receiver<LogLine> {
        self.fresh.subscribe()
    }

    fn push(&self, line: LogLine) {
        let told = (self.fresh.receiver_count() > 0).then(|| line.clone());
        self.keep(line);
        // Afterwards: whoever it wakes finds the line.
        if let Some(line) = told {
            let _ = self.fresh.send(line);
        }
    }

    fn keep(&self, line: LogLine) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.lines.len() == MAX_LINES {
            kept.lines.pop_front();
        }
        kept.lines.push_back(line);
        kept.written += 1;
    }

    /// Reads to the end. Ends early only when reading fails.
    pub(super) async fn drain(
        self,
        plugin: PluginId,
        mut source: impl AsyncRead + Unpin,
        redactor: Redactor,
    ) {
        let mut piece = vec![0; 8 * 1024];
        let mut line = Vec::new();
        while let Ok(read) = source.read(&mut piece).await {
            if read == 0 {
                break;
            }
            for part in piece[..read].split_inclusive(|byte| *byte == b'\n') {
                let (text, ends) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
                let room = MAX_RAW_BYTES - line.len();
                line.extend_from_slice(&text[..text.len().min(room)]);
                if ends {
                    self.take(&plugin, &line, &redactor);
                    line.clear();
                }
            }
        }
        if !line.is_empty() {
            self.take(&plugin, &line, &redactor);
        }
    }

    fn take(&self, plugin: &PluginId, raw: &[u8], redactor: &Redactor) {
        let line = parse(raw, redactor);
        // The daemon's own log is not filled by a plugin unless somebody asks for it.
        tracing::debug!(%plugin, level = ?line.level, "{}", line.text);
        self.push(line);
    }
}

fn parse(raw: &[u8], redactor: &Redactor) -> LogLine {
    let mut text = redactor.clean(String::from_utf8_lossy(raw).trim_end_matches('\r'));
    text = text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect();
    let marks =
        [("E!", LogLevel::Error), ("W!", LogLevel::Warn), ("I!", LogLevel::Info), ("D!", LogLevel::Debug)];
    let mut level = LogLevel::Info;
    for (mark, meaning) in marks {
        if let Some(rest) = text.strip_prefix(mark) {
            (level, text) = (meaning, rest.trim_start().to_owned());
            break;
        }
    }
    let mut end = text.len().min(MAX_LINE_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    LogLine { level, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_gets_each_line_once_and_after_a_restart_all() {
        let log = Log::default();
        let line = |n: u64| LogLine { level: LogLevel::Info, text: n.to_string() };
        assert_eq!(log.after(0), (0, vec![]));
        (1..=3).for_each(|n| log.push(line(n)));
        assert_eq!(log.after(0), (3, vec![line(1), line(2), line(3)]));
        assert_eq!(log.after(2), (3, vec![line(3)]));
        assert_eq!(log.after(3), (3, vec![]));
        assert_eq!(log.after(4).1.len(), 3, "the number is another run's");
        (4..=MAX_LINES as u64 + 10).for_each(|n| log.push(line(n)));
        let (newest, lines) = log.after(3);
        assert_eq!((newest, lines.len(), &lines[0]), (1_010, MAX_LINES, &line(11)));
        assert_eq!(log.after(1_008), (1_010, vec![line(1_009), line(1_010)]));
    }

    #[test]
    fn a_line_is_cut_at_a_character_after_its_secrets_are_gone() {
        let raw = format!("E! {}hunter2-and-more{}", "é".repeat(1_020), "x".repeat(3_000));
        let line = parse(raw.as_bytes(), &Redactor::new(["hunter2-and-more".to_owned()]));
        assert_eq!(line.level, LogLevel::Error);
        assert!(line.text.len() <= MAX_LINE_BYTES && !line.text.contains("hunter"));
        let odd = format!("a{}", "é".repeat(2_000));
        assert_eq!(parse(odd.as_bytes(), &Redactor::default()).text.len(), MAX_LINE_BYTES - 1);
    }
}
