//! All installed plugins, one on a line.

use serde_json::Value;

use crate::bus::{Daemon, Dict, text};
use crate::failure::Failure;
use crate::out::{Look, Out, clean};
use crate::status::{dict_to_json, joined};

pub async fn show(daemon: &Daemon, out: &mut Out, json: bool) -> Result<(), Failure> {
    let plugins = daemon.plugins().await?.list().await?;
    if json {
        let all: Vec<Value> = plugins.iter().map(dict_to_json).collect();
        return out.line(&Value::from(all).to_string());
    }
    if plugins.is_empty() {
        return if out.terminal { out.line("No plugins are installed.") } else { Ok(()) };
    }
    let widths = [width(&plugins, "id"), width(&plugins, "version").max("VERSION".len())];
    if out.terminal {
        let heading =
            row(widths, ["ID", "VERSION", "STATE     ", "HEALTH    ", "ISOLATION ", "GRANTED, OR WHY"]);
        let heading = out.paint(Look::Dim, &heading);
        out.line(&heading)?;
    }
    plugins.iter().try_for_each(|plugin| line(out, widths, plugin))
}

fn line(out: &mut Out, widths: [usize; 2], plugin: &Dict) -> Result<(), Failure> {
    let state = text(plugin, "state");
    let look = match state.as_str() {
        "enabled" => Look::Green,
        "changed" | "invalid" => Look::Red,
        _ => Look::Yellow,
    };
    let health = text(plugin, "health");
    // In a word: `segue plugin inspect` says by what and why.
    let isolation = text(plugin, "isolation");
    let isolation = isolation.split_whitespace().next().unwrap_or_default();
    let cell = |text: &str| format!("{:<10}", clean(text));
    let reason =
        [text(plugin, "reason"), text(plugin, "health_reason")].into_iter().find(|why| !why.is_empty());
    let rest = reason.map_or_else(|| joined(plugin, "granted"), |why| clean(&why));
    let line = row(
        widths,
        [
            &clean(&text(plugin, "id")),
            &clean(&text(plugin, "version")),
            &out.paint(look, &cell(&state)),
            &out.paint(health_look(&health), &cell(&health)),
            &cell(isolation),
            &rest,
        ],
    );
    out.line(line.trim_end())
}

/// Of the first two columns.
fn row([id_width, version_width]: [usize; 2], cells: [&str; 6]) -> String {
    let [id, version, state, health, isolation, rest] = cells;
    format!("{id:<id_width$}  {version:<version_width$}  {state} {health} {isolation} {rest}")
}

/// Of a column, in characters.
fn width(plugins: &[Dict], key: &str) -> usize {
    plugins.iter().map(|plugin| text(plugin, key).chars().count()).max().unwrap_or_default().min(64)
}

/// How health is coloured.
pub fn health_look(health: &str) -> Look {
    match health {
        "healthy" => Look::Green,
        "degraded" => Look::Yellow,
        "unhealthy" => Look::Red,
        _ => Look::Dim,
    }
}
