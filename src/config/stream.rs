//! `[stream]`: how tracks are fetched.

use std::path::PathBuf;

use serde::Deserialize;

use super::{A_DAY_S, Complaint};

/// `[stream]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stream {
    /// Memory for the bytes of all open tracks together.
    pub buffer: Size,
    /// A folder in which more of them is kept, instead of in memory.
    pub spool: Option<PathBuf>,
    /// How much of that.
    pub spool_size: Size,
    /// Name, connection and TLS handshake together may take so many seconds.
    pub connect_s: u64,
    /// A connection that brings no byte for so many seconds is made anew.
    pub silence_s: u64,
    /// A server that can be reached but gives nothing for so many seconds: the track is given up.
    pub give_up_s: u64,
}

impl Default for Stream {
    fn default() -> Self {
        Stream {
            buffer: Size(6 << 20),
            spool: None,
            spool_size: Size(64 << 20),
            connect_s: 5,
            silence_s: 8,
            give_up_s: 60,
        }
    }
}

/// A size in bytes, written `6 MiB`, `512 KiB` or as a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a size such as \"6 MiB\"")]
        enum Written {
            Bytes(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Bytes(bytes) => Ok(Size(bytes)),
            Written::Text(text) => parse_size(&text).ok_or_else(|| {
                serde::de::Error::custom(format!("“{text}” is not a size; write for example \"6 MiB\""))
            }),
        }
    }
}

fn parse_size(text: &str) -> Option<Size> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit: u64 = match text[digits..].trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit).map(Size)
}

impl Stream {
    pub(super) fn complaint(&self) -> Option<Complaint> {
        let complain = |key, message: String| Some(Complaint { table: "stream", key, message });
        if !(2 << 20..=1 << 30).contains(&self.buffer.0) {
            return complain("buffer", "from \"2 MiB\" to \"1 GiB\"".to_owned());
        }
        if self.spool.as_ref().is_some_and(|folder| !folder.is_absolute()) {
            return complain("spool", "the absolute path of a folder, best on a tmpfs".to_owned());
        }
        let spool_sizes = self.buffer.0..=1 << 34;
        if self.spool.is_some() && !spool_sizes.contains(&self.spool_size.0) {
            return complain("spool_size", "from the size of `buffer` to \"16 GiB\"".to_owned());
        }
        let times =
            [("connect_s", self.connect_s), ("silence_s", self.silence_s), ("give_up_s", self.give_up_s)];
        let wrong = times.into_iter().find(|(_, seconds)| !(1..=A_DAY_S).contains(seconds));
        wrong.and_then(|(key, _)| complain(key, format!("from 1 to {A_DAY_S} seconds")))
    }
}
