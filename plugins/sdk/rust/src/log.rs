//! Lines for `segue plugin logs`. The mark in front sets the level.

use std::fmt::Display;
use std::io::Write;

/// Something failed.
pub fn error(text: impl Display) {
    write("E!", &text);
}

/// Bad, and it goes on.
pub fn warn(text: impl Display) {
    write("W!", &text);
}

/// Of interest to whoever looks.
pub fn info(text: impl Display) {
    write("I!", &text);
}

/// Of interest to the author.
pub fn debug(text: impl Display) {
    write("D!", &text);
}

fn write(mark: &str, text: &dyn Display) {
    let text = text.to_string();
    let lines: String = text.lines().map(|line| format!("{mark} {line}\n")).collect();
    // Nobody to tell: the player drains standard error as long as it lives.
    let _ = std::io::stderr().lock().write_all(lines.as_bytes());
}
