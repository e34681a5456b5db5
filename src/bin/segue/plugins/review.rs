//! All that a person needs to decide about one plugin.

use serde_json::Value;

use crate::bus::{Dict, texts};
use crate::failure::Failure;
use crate::out::{Look, Out, clean};
use crate::status::to_json;

/// In this order, then the others by name, and what trusting means last.
const FIRST: [&str; 14] = [
    "id",
    "name",
    "version",
    "protocol",
    "state",
    "reason",
    "health",
    "health_reason",
    "isolation",
    "path",
    "fingerprint",
    "capabilities",
    "scopes",
    "granted",
];

pub fn show(out: &mut Out, plugin: &Dict) -> Result<(), Failure> {
    let mut keys: Vec<&str> = plugin.keys().map(String::as_str).collect();
    let place = |key: &str| match key {
        "warning" => usize::MAX,
        _ => FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len()),
    };
    keys.sort_by_key(|key| (place(key), *key));
    for key in keys {
        let Some(value) = plugin.get(key) else { continue };
        let value = match key {
            "scope_reasons" => continue, // told with their scopes
            "scopes" => scopes_with_reasons(plugin),
            _ => to_json(value),
        };
        if value == "" || value == Value::Array(Vec::new()) {
            continue;
        }
        let label = out.paint(Look::Dim, &format!("{:<14}", clean(&key.replace('_', " "))));
        match value {
            Value::Array(items) if items.len() > 1 => {
                for (index, item) in items.iter().enumerate() {
                    let label = if index == 0 { label.clone() } else { " ".repeat(14) };
                    out.line(&format!("{label} {}", readable(item)))?;
                }
            }
            value => out.line(&format!("{label} {}", readable(&value)))?,
        }
    }
    Ok(())
}

/// `network — why the author wants it`.
fn scopes_with_reasons(plugin: &Dict) -> Value {
    let reasons = texts(plugin, "scope_reasons");
    let scopes = texts(plugin, "scopes").into_iter().enumerate();
    scopes
        .map(|(at, scope)| match reasons.get(at) {
            Some(reason) => format!("{scope} — {reason}").into(),
            None => Value::from(scope),
        })
        .collect()
}

/// As a person reads it: a file as its name and length, a list in one line.
fn readable(value: &Value) -> String {
    match value {
        Value::String(text) => clean(text),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Array(items) => items.iter().map(readable).collect::<Vec<_>>().join(", "),
        other => clean(&other.to_string()),
    }
}
