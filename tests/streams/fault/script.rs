//! The language in which a server is told what to do with one request.

use std::time::{Duration, SystemTime};

use super::server::Question;

/// One step of an answer.
#[derive(Clone, Debug)]
pub enum Act {
    /// The head that a good server would send, with these header lines more.
    Head(String),
    /// These bytes, after the placeholders were replaced.
    Say(String),
    /// So many bytes of the file, from where the last ones ended: at first from where the request says.
    Body(usize),
    /// What follows of the file comes from here on.
    Seek(usize),
    /// So many bytes that are not of the file.
    Noise(usize),
    /// What is sent from now on is sent as chunks.
    Chunked,
    /// From now on at most so many bytes are sent in a second.
    Pace(usize),
    /// Nothing, for so long.
    Wait(Duration),
    /// Nothing, until the client hangs up.
    Stall,
    /// The connection ends with RST: on HTTP/2, the stream.
    Reset,
    /// HTTP/2: the connection takes no more requests, and ends when this one is answered.
    GoAway,
    /// The next request is awaited on this connection and answered by this; without one the next script answers.
    Next,
}

/// What is done with one request. Then the connection is closed.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub acts: Vec<Act>,
}

/// As a good server would: the part that was asked for, or the whole.
pub fn proper() -> Script {
    head("").rest()
}

/// A good head, with more header lines.
pub fn head(more: &str) -> Script {
    Script::default().act(Act::Head(more.to_owned()))
}

/// A status line and header lines as given, without those that a good server would send.
pub fn say(status: &str, headers: &str) -> Script {
    let lines: String = headers.lines().map(|line| format!("{}\r\n", line.trim())).collect();
    Script::default().raw(&format!("HTTP/1.1 {status}\r\n{lines}\r\n"))
}

impl Script {
    fn act(mut self, act: Act) -> Script {
        self.acts.push(act);
        self
    }

    /// Bytes as they are, with these placeholders: `{from}` and `{last}` of what was asked for, `{left}` its length,
    /// `{total}` the file's, `{soon}` the date of two seconds from now, `{path}` that of the request, and
    /// `{elsewhere}` the same on another origin.
    pub fn raw(self, text: &str) -> Script {
        self.act(Act::Say(text.to_owned()))
    }

    pub fn body(self, bytes: usize) -> Script {
        self.act(Act::Body(bytes))
    }

    /// What is left of the file.
    pub fn rest(self) -> Script {
        self.act(Act::Body(usize::MAX))
    }

    /// Then what another script does.
    pub fn and(mut self, other: Script) -> Script {
        self.acts.extend(other.acts);
        self
    }

    pub fn from(self, offset: usize) -> Script {
        self.act(Act::Seek(offset))
    }

    pub fn noise(self, bytes: usize) -> Script {
        self.act(Act::Noise(bytes))
    }

    pub fn chunked(self) -> Script {
        self.act(Act::Chunked)
    }

    /// The last chunk, and the end of the trailers.
    pub fn last_chunk(self) -> Script {
        self.raw("0\r\n\r\n")
    }

    pub fn pace(self, bytes_a_second: usize) -> Script {
        self.act(Act::Pace(bytes_a_second))
    }

    pub fn wait(self, millis: u64) -> Script {
        self.act(Act::Wait(Duration::from_millis(millis)))
    }

    pub fn stall(self) -> Script {
        self.act(Act::Stall)
    }

    pub fn reset(self) -> Script {
        self.act(Act::Reset)
    }

    pub fn go_away(self) -> Script {
        self.act(Act::GoAway)
    }

    pub fn next(self) -> Script {
        self.act(Act::Next)
    }
}

/// Replaces the placeholders.
pub(super) fn fill(text: &str, question: &Question, total: usize, elsewhere: &str) -> String {
    let from = question.from.unwrap_or(0).min(total);
    let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(2));
    [
        ("{from}", from.to_string()),
        ("{last}", total.saturating_sub(1).to_string()),
        ("{left}", (total - from).to_string()),
        ("{total}", total.to_string()),
        ("{soon}", soon),
        ("{path}", question.path.clone()),
        ("{elsewhere}", elsewhere.to_owned()),
    ]
    .iter()
    .fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
}
