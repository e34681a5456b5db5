//! Standard output: for a person at a terminal, or for a program.

use std::io::{IsTerminal, Stdout, Write, stdout};

use crate::failure::Failure;

/// How a piece of text looks on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
}

/// Where results go.
pub struct Out {
    stdout: Stdout,
    /// A person looks at it.
    pub terminal: bool,
    /// Colours are wanted.
    pub colour: bool,
    /// The last line stands unfinished and is drawn over.
    redrawing: bool,
}

impl Out {
    pub fn stdout() -> Out {
        let stdout = stdout();
        let terminal = stdout.is_terminal();
        let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Out { stdout, terminal, colour, redrawing: false }
    }

    /// Writes a line; above the one that is redrawn, if there is one.
    pub fn line(&mut self, line: &str) -> Result<(), Failure> {
        let erase = if std::mem::take(&mut self.redrawing) { "\r\x1b[2K" } else { "" };
        writeln!(self.stdout, "{erase}{line}")?;
        Ok(self.stdout.flush()?)
    }

    /// Draws the last line anew. The terminal cuts it off at its edge: automatic wrapping is off meanwhile.
    pub fn redraw(&mut self, line: &str) -> Result<(), Failure> {
        self.redrawing = true;
        write!(self.stdout, "\r\x1b[?7l{line}\x1b[K\x1b[?7h")?;
        Ok(self.stdout.flush()?)
    }

    /// Leaves the redrawn line as it is.
    pub fn finish(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.redrawing) {
            writeln!(self.stdout)?;
        }
        Ok(())
    }

    /// The text in colour, where colour is wanted.
    pub fn paint(&self, look: Look, text: &str) -> String {
        if self.colour { paint(look, text) } else { text.to_owned() }
    }
}

/// The text in colour.
pub fn paint(look: Look, text: &str) -> String {
    let code = match look {
        Look::Bold => 1,
        Look::Dim => 2,
        Look::Red => 31,
        Look::Green => 32,
        Look::Yellow => 33,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// A text from outside without anything that would steer the terminal, turn around what stands beside it, or stand
/// there unseen.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_unseen(c) { '\u{fffd}' } else { c }).collect()
}

/// Characters that only arrange others. The two that join letters in some scripts stay.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
