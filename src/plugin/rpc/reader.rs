//! Lines from standard output, each given to its caller.

use std::sync::Arc;

use segue_protocol::messages::Message;
use segue_protocol::{ErrorCode, Fault, Line, LineReader};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::ChildStdout;
use tokio::sync::watch;

use super::super::counters::Counters;
use super::super::redact::Redactor;
use super::pending::Pending;
use super::{Over, end};
use crate::track::PluginId;

/// Lines in a row that are no JSON-RPC, after which the process is stopped.
const MAX_JUNK_LINES: u32 = 3;
/// Longer lines are parsed away from the main thread.
pub(in super::super) const PARSED_INLINE: usize = 64 * 1024;
/// What one read takes at most.
const PIECE_BYTES: usize = 16 * 1024;

pub(super) struct Reader {
    pub(super) plugin: PluginId,
    pub(super) pending: Pending,
    pub(super) redactor: Redactor,
    pub(super) over: watch::Sender<Option<Over>>,
    pub(super) counters: Arc<Counters>,
}

impl Reader {
    pub(super) async fn run(self, stdout: ChildStdout) {
        let why = self.read(stdout).await;
        end(&self.over, why);
    }

    async fn read(&self, mut stdout: impl AsyncRead + Unpin) -> Over {
        let mut lines = LineReader::default();
        let mut piece = vec![0; PIECE_BYTES];
        let mut junk = 0;
        let mut said = false;
        loop {
            let read = match stdout.read(&mut piece).await {
                Ok(read) => read,
                Err(error) => return Over::Unusable(error.to_string()),
            };
            if read == 0 {
                // A plugin that ended in mid-line crashed; that its last words are no message says nothing more.
                if let Some(Line::Text(rest)) = lines.rest()
                    && let message @ Message::Reply(..) = parse(rest).await
                {
                    self.take(message);
                }
                return Over::Closed;
            }
            self.counters.received(read);
            let mut input = &piece[..read];
            while let Some(line) = lines.take(&mut input) {
                let message = match line {
                    Line::Text(text) => parse(text).await,
                    Line::TooLong | Line::NotUtf8 => Message::Junk,
                };
                junk = if message == Message::Junk { junk + 1 } else { 0 };
                // Once: a plugin that goes on and on fills no log.
                if matches!(message, Message::Request | Message::Junk) && !std::mem::replace(&mut said, true)
                {
                    self.warn(&message);
                }
                self.take(message);
                if junk >= MAX_JUNK_LINES {
                    return Over::Unusable(format!("{MAX_JUNK_LINES} lines in a row were no JSON-RPC"));
                }
            }
        }
    }

    fn take(&self, message: Message) {
        match message {
            Message::Reply(id, answer) => {
                let answer = answer.map_err(|fault| self.redactor.clean_fault(fault));
                if !self.pending.answer(id, answer) {
                    self.drop_reply();
                }
            }
            Message::Stray => self.drop_reply(),
            Message::Request => {}
            Message::Junk => {
                let text = "the plugin printed a line that is no JSON-RPC message";
                self.pending.fail_all(&Fault::new(ErrorCode::ParseError, text));
            }
        }
    }

    fn warn(&self, message: &Message) {
        match message {
            Message::Request => {
                tracing::warn!(plugin = %self.plugin, "a plugin cannot call the player: its messages are ignored");
            }
            _ => tracing::warn!(plugin = %self.plugin, "a line on standard output is no JSON-RPC message"),
        }
    }

    fn drop_reply(&self) {
        self.counters.dropped();
        tracing::debug!(plugin = %self.plugin, "a reply that nobody waits for was dropped");
    }
}

async fn parse(line: String) -> Message {
    if line.len() <= PARSED_INLINE {
        return Message::parse(line);
    }
    tokio::task::spawn_blocking(move || Message::parse(line)).await.unwrap_or(Message::Junk)
}
