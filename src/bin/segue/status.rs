//! What is playing, for people and for programs.

use serde_json::{Map, Value, json};
use zbus::Variant;

use crate::bar;
use crate::bus::{Daemon, Dict, get, text, texts};
use crate::failure::Failure;
use crate::out::{Look, Out, clean};
use crate::track::{name_from_mpris, time};

/// Cells of the bar.
const WIDTH: usize = 32;

/// All that the status shows, read at one moment.
pub struct Status {
    pub player: Dict,
    pub metadata: Dict,
    buffer: Dict,
    output: Dict,
}

impl Status {
    pub async fn read(daemon: &Daemon) -> Result<Status, Failure> {
        let player = daemon.player_properties().await?;
        let metadata = daemon.metadata().await?;
        let buffer = get(&player, "Buffer").unwrap_or_default();
        let output = get(&player, "Output").unwrap_or_default();
        Ok(Status { player, metadata, buffer, output })
    }

    pub fn state(&self) -> String {
        text(&self.player, "State")
    }

    fn position(&self) -> i64 {
        get(&self.player, "Position").unwrap_or_default()
    }

    fn length(&self) -> Option<i64> {
        get(&self.metadata, "mpris:length")
    }

    fn has_track(&self) -> bool {
        self.metadata.contains_key("xesam:url")
    }

    fn symbol(&self) -> &'static str {
        match self.state().as_str() {
            "playing" => "▶",
            "buffering" => "…",
            "paused" => "⏸",
            _ => "■",
        }
    }

    fn times(&self) -> String {
        match self.length() {
            Some(length) => format!("{} / {}", time(self.position()), time(length)),
            None => time(self.position()),
        }
    }

    fn bar(&self, out: &Out) -> String {
        let complete = get(&self.buffer, "complete").unwrap_or(false);
        let fetched = if complete { i64::MAX } else { get(&self.buffer, "fetched_us").unwrap_or_default() };
        bar::draw(bar::cells(WIDTH, self.position(), fetched, self.length()), out.colour)
    }

    /// `playing`, `buffering (network)`.
    fn state_and_reason(&self) -> String {
        let (state, reason) = (self.state(), text(&self.player, "StateReason"));
        if reason.is_empty() || reason == "user" { state } else { format!("{state} ({reason})") }
    }

    /// One line, the most important first: a terminal cuts off what does not fit.
    pub fn one_line(&self, out: &Out) -> String {
        let name = if self.has_track() { name_from_mpris(&self.metadata) } else { "nothing".into() };
        let state = match self.state().as_str() {
            "playing" => String::new(),
            _ => format!("  {}", out.paint(Look::Yellow, &self.state_and_reason())),
        };
        let name = out.paint(Look::Bold, &name);
        format!("{} {}  {}  {name}{state}", self.symbol(), self.bar(out), self.times())
    }

    fn output_line(&self) -> String {
        let rate: u32 = get(&self.output, "rate").unwrap_or_default();
        let device = clean(&text(&self.player, "Device"));
        if rate == 0 {
            return format!("{device} (not open)");
        }
        let channels: u32 = get(&self.output, "channels").unwrap_or_default();
        let format = text(&self.output, "format");
        let exact = if get(&self.output, "bit_perfect").unwrap_or(false) {
            "bit-perfect".to_owned()
        } else {
            format!("not bit-perfect: {}", clean(&text(&self.output, "reason")))
        };
        let codec = match clean(&text(&self.output, "codec")) {
            // The card is still open, and nothing plays.
            codec if codec.is_empty() => String::new(),
            codec => format!(", {codec}"),
        };
        format!("{device}{codec} at {rate} Hz, {format}, {channels} channels, {exact}")
    }

    fn buffer_line(&self) -> String {
        let ahead: f64 = get(&self.buffer, "seconds_ahead").unwrap_or_default();
        let complete =
            if get(&self.buffer, "complete").unwrap_or(false) { ", track is all here" } else { "" };
        let renewed = match get::<u32>(&self.buffer, "re_resolved").unwrap_or_default() {
            0 => String::new(),
            times => format!(", URL renewed {times} ×"),
        };
        format!("{ahead:.1} s ahead{complete}{renewed}")
    }

    fn json(&self, queue: &Dict) -> Value {
        let or_null = |key| self.metadata.get(key).map_or(Value::Null, |value| to_json(value));
        let player = |key| self.player.get(key).map_or(Value::Null, |value| to_json(value));
        let (code, message): (String, String) = get(&self.player, "LastError").unwrap_or_default();
        json!({
            "state": player("State"),
            "reason": player("StateReason"),
            "entry": player("Current"),
            "uri": or_null("xesam:url"),
            "title": or_null("xesam:title"),
            "artists": or_null("xesam:artist"),
            "album": or_null("xesam:album"),
            "position_us": player("Position"),
            "position_exact": player("PositionExact"),
            "duration_us": or_null("mpris:length"),
            "volume": player("Volume"),
            "mute": player("Mute"),
            "device": player("Device"),
            "output": player("Output"),
            "buffer": player("Buffer"),
            "last_error": if code.is_empty() { Value::Null } else { json!({"code": code, "message": message}) },
            "queue": dict_to_json(queue),
        })
    }
}

/// One line of JSON.
pub async fn json_line(daemon: &Daemon, status: &Status) -> Result<String, Failure> {
    Ok(status.json(&daemon.queue_properties().await?).to_string())
}

pub async fn show(daemon: &Daemon, out: &mut Out, json: bool) -> Result<(), Failure> {
    let status = Status::read(daemon).await?;
    if json {
        return out.line(&json_line(daemon, &status).await?);
    }
    let queue = daemon.queue_properties().await?;
    if status.has_track() {
        let name = out.paint(Look::Bold, &name_from_mpris(&status.metadata));
        out.line(&format!("{} {name}", status.symbol()))?;
        let album = clean(&text(&status.metadata, "xesam:album"));
        if !album.is_empty() {
            out.line(&format!("  {album}"))?;
        }
        out.line(&format!("  {}  {}", status.bar(out), status.times()))?;
    }
    let mut row = |what: &str, text: &str| out.line(&format!("{what:<7} {text}"));
    row("State", &status.state_and_reason())?;
    if status.has_track() {
        row("Buffer", &status.buffer_line())?;
    }
    row("Output", &status.output_line())?;
    let volume = get::<f64>(&status.player, "Volume").unwrap_or_default() * 100.0;
    let muted = if get(&status.player, "Mute").unwrap_or(false) { ", muted" } else { "" };
    row("Volume", &format!("{volume:.0} %{muted}"))?;
    let length: u32 = get(&queue, "Length").unwrap_or_default();
    row("Queue", &format!("{length} entries, repeat {}", text(&queue, "Repeat")))?;
    let (code, message): (String, String) = get(&status.player, "LastError").unwrap_or_default();
    if !code.is_empty() {
        let message = out.paint(Look::Red, &clean(&message));
        out.line(&format!("Error   {message}"))?;
    }
    Ok(())
}

/// A value of the bus as JSON.
pub fn to_json(value: &Variant<'_>) -> Value {
    match value {
        Variant::Bool(value) => json!(value),
        Variant::U8(value) => json!(value),
        Variant::I16(value) => json!(value),
        Variant::U16(value) => json!(value),
        Variant::I32(value) => json!(value),
        Variant::U32(value) => json!(value),
        Variant::I64(value) => json!(value),
        Variant::U64(value) => json!(value),
        Variant::F64(value) => json!(value),
        Variant::Str(value) => json!(value.as_str()),
        Variant::ObjectPath(value) => json!(value.as_str()),
        Variant::Variant(value) => to_json(value),
        Variant::Array(values) => values.iter().map(to_json).collect(),
        Variant::Structure(values) => values.fields().iter().map(to_json).collect(),
        Variant::Dict(dict) => {
            let key = |key: &Variant<'_>| match to_json(key) {
                Value::String(key) => key,
                other => other.to_string(),
            };
            Value::Object(dict.iter().map(|(k, v)| (key(k), to_json(v))).collect::<Map<_, _>>())
        }
        other => json!(other.to_string()),
    }
}

/// A dictionary of the bus as JSON.
pub fn dict_to_json(dict: &Dict) -> Value {
    Value::Object(dict.iter().map(|(key, value)| (key.clone(), to_json(value))).collect::<Map<_, _>>())
}

/// Texts of a dictionary in one line.
pub fn joined(dict: &Dict, key: &str) -> String {
    clean(&texts(dict, key).join(", "))
}
