//! Our values as D-Bus values, and D-Bus values as ours.

use std::collections::HashMap;
use std::time::Duration;

use zbus::{ObjectPath, Variant};

use super::Error;
use crate::control::{Buffer, Current, LastError, MAX_URIS_PER_CALL, Output, QueueChange, Repeat, Status};
use crate::track::{EntryId, TrackInfo};

/// `a{sv}`.
pub type Dict = HashMap<&'static str, Variant<'static>>;

/// One part of a queue's change: `(satt)`, the kind, the entries, and the entry that they stand before (0: the
/// end).
pub type Change = (&'static str, Vec<u64>, u64);

/// The longest single text from a caller, in bytes. URIs have their own, smaller limit.
pub const MAX_TEXT_BYTES: usize = 16 * 1024;

const NO_TRACK: &str = "/org/mpris/MediaPlayer2/TrackList/NoTrack";
const TRACK_PREFIX: &str = "/org/segue/track/";

/// A text as the bus carries it. D-Bus has no NUL in strings, and the bus hangs up on a peer that sends one.
pub fn text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Texts as the bus carries them.
pub fn texts(list: &[String]) -> Vec<String> {
    list.iter().map(|one| text(one)).collect()
}

/// Signed microseconds.
pub fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// The MPRIS track id of an entry, valid by construction.
pub fn track_path(entry: Option<EntryId>) -> ObjectPath<'static> {
    match entry {
        Some(entry) => ObjectPath::from_string_unchecked(format!("{TRACK_PREFIX}{entry}")),
        None => ObjectPath::from_static_str_unchecked(NO_TRACK),
    }
}

/// The entry that an MPRIS track id names.
pub fn entry_of_path(path: &str) -> Option<EntryId> {
    let number = path.strip_prefix(TRACK_PREFIX)?;
    number.bytes().all(|b| b.is_ascii_digit()).then(|| number.parse().ok().map(EntryId))?
}

/// On our own interfaces 0 is no entry.
pub fn entry_number(entry: Option<EntryId>) -> u64 {
    entry.map_or(0, |entry| entry.0)
}

/// The other way round.
pub fn entry_or_none(number: u64) -> Option<EntryId> {
    (number != 0).then_some(EntryId(number))
}

/// MPRIS metadata. `xesam:url` is the URI as queued, never the resolved URL: any local user can read the bus.
pub fn mpris_metadata(current: Option<&Current>) -> Dict {
    let mut dict = Dict::new();
    dict.insert("mpris:trackid", track_path(current.map(|current| current.entry)).into());
    let Some(Current { uri, info, .. }) = current else { return dict };
    dict.insert("xesam:url", text(uri).into());
    put(&mut dict, "mpris:length", info.duration.map(micros));
    put(&mut dict, "xesam:title", info.title.as_deref().map(text));
    put(&mut dict, "xesam:album", info.album.as_deref().map(text));
    put_list(&mut dict, "xesam:artist", &info.artists);
    put_list(&mut dict, "xesam:albumArtist", &info.album_artists);
    put_list(&mut dict, "xesam:genre", &info.genres);
    put(&mut dict, "xesam:trackNumber", info.track_no.map(small));
    put(&mut dict, "xesam:discNumber", info.disc_no.map(small));
    put(&mut dict, "xesam:contentCreated", info.date.as_deref().map(text));
    dict
}

/// A track on our own interfaces.
pub fn track(uri: &str, info: &TrackInfo) -> Dict {
    let mut dict = Dict::new();
    dict.insert("uri", text(uri).into());
    put(&mut dict, "title", info.title.as_deref().map(text));
    put_list(&mut dict, "artists", &info.artists);
    put(&mut dict, "album", info.album.as_deref().map(text));
    put_list(&mut dict, "album_artists", &info.album_artists);
    put(&mut dict, "track_no", info.track_no);
    put(&mut dict, "disc_no", info.disc_no);
    put(&mut dict, "date", info.date.as_deref().map(text));
    put_list(&mut dict, "genres", &info.genres);
    put(&mut dict, "duration_us", info.duration.map(micros));
    dict
}

/// `Player1.Output`.
pub fn output(output: &Output) -> Dict {
    Dict::from([
        ("rate", output.rate.into()),
        ("format", text(&output.format).into()),
        ("channels", output.channels.into()),
        ("bit_perfect", output.bit_perfect.into()),
        ("reason", text(&output.reason).into()),
        ("codec", text(&output.codec).into()),
        ("xruns", output.xruns.into()),
    ])
}

/// `Player1.Buffer`.
pub fn buffer(buffer: &Buffer) -> Dict {
    let mut dict = Dict::from([
        ("bytes", buffer.bytes.into()),
        ("cap", buffer.cap.into()),
        ("seconds_ahead", buffer.seconds_ahead.into()),
        ("fetched_us", buffer.fetched_micros.into()),
        ("complete", buffer.complete.into()),
        ("re_resolved", buffer.re_resolved.into()),
    ]);
    let left = buffer.url_expires_in.map(|left| i64::try_from(left.as_millis()).unwrap_or(i64::MAX));
    put(&mut dict, "url_expires_in_ms", left);
    dict
}

/// Code and message; both empty without an error.
pub fn last_error(error: Option<&LastError>) -> (String, String) {
    error.map_or_else(Default::default, |error| (text(&error.code), text(&error.message)))
}

/// A change of the queue as its signal carries it.
pub fn change(change: &QueueChange) -> Change {
    let numbers = |entries: &[EntryId]| entries.iter().map(|entry| entry.0).collect();
    match change {
        QueueChange::Added { entries, before } => ("added", numbers(entries), entry_number(*before)),
        QueueChange::Removed(entries) => ("removed", numbers(entries), 0),
        QueueChange::Cleared => ("cleared", Vec::new(), 0),
        QueueChange::Info(entry) => ("info", vec![entry.0], 0),
    }
}

/// MPRIS has no word for buffering; to its users the track plays.
pub fn playback_status(status: Status) -> &'static str {
    match status {
        Status::Stopped => "Stopped",
        Status::Buffering | Status::Playing => "Playing",
        Status::Paused => "Paused",
    }
}

/// MPRIS words for repeat modes.
pub fn loop_status(repeat: Repeat) -> &'static str {
    match repeat {
        Repeat::Off => "None",
        Repeat::Track => "Track",
        Repeat::Queue => "Playlist",
    }
}

/// How much URIs' count and length from a caller may be. What they say is for the player to judge.
pub fn check_uris(uris: &[String]) -> Result<(), Error> {
    if uris.is_empty() {
        return Err(Error::BadArgument("the list of URIs is empty; name at least one".into()));
    }
    if uris.len() > MAX_URIS_PER_CALL {
        let count = uris.len();
        return Err(Error::BadArgument(format!(
            "{count} URIs are too many for one call; send at most {MAX_URIS_PER_CALL}"
        )));
    }
    uris.iter().try_for_each(|uri| check_text("URI", uri))
}

/// Refuses texts that no person would write.
pub fn check_text(what: &str, text: &str) -> Result<(), Error> {
    if text.len() > MAX_TEXT_BYTES {
        let bytes = text.len();
        return Err(Error::BadArgument(format!(
            "the {what} has {bytes} bytes; at most {MAX_TEXT_BYTES} are accepted"
        )));
    }
    Ok(())
}

/// Refuses what is no number.
pub fn check_volume(volume: f64) -> Result<f64, Error> {
    if volume.is_finite() {
        Ok(volume.clamp(0.0, 1.0))
    } else {
        Err(Error::BadArgument("the volume must be a number from 0 to 1".into()))
    }
}

/// A track or disc number as MPRIS wants it.
fn small(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Adds what is known.
pub fn put<T: Into<Variant<'static>>>(dict: &mut Dict, key: &'static str, value: Option<T>) {
    if let Some(value) = value {
        dict.insert(key, value.into());
    }
}

/// Adds a list that is not empty.
pub fn put_list(dict: &mut Dict, key: &'static str, list: &[String]) {
    if !list.is_empty() {
        dict.insert(key, texts(list).into());
    }
}
