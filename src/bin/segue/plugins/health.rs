//! How plugins are, and what was counted.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::list::health_look;
use crate::bus::{Daemon, Dict, get, text};
use crate::failure::Failure;
use crate::out::{Look, Out, clean};
use crate::status::dict_to_json;

/// Of one plugin all, of all plugins the most important.
pub async fn show(daemon: &Daemon, out: &mut Out, id: Option<&str>, json: bool) -> Result<(), Failure> {
    let plugins = daemon.plugins().await?;
    if let Some(id) = id {
        let health = plugins.health(id).await?;
        return if json { out.line(&dict_to_json(&health).to_string()) } else { details(out, &health) };
    }
    let mut all = Vec::new();
    let mut seen = HashSet::new();
    for plugin in plugins.list().await? {
        let id = text(&plugin, "id");
        // A shadowed package has the id of the one that wins.
        if seen.insert(id.clone()) {
            // It may have been removed meanwhile, or be no plugin at all.
            if let Ok(health) = plugins.health(&id).await {
                all.push((id, health));
            }
        }
    }
    if json {
        let all: Map<String, Value> =
            all.iter().map(|(id, health)| (id.clone(), dict_to_json(health))).collect();
        return out.line(&Value::Object(all).to_string());
    }
    table(out, &all)
}

fn table(out: &mut Out, all: &[(String, Dict)]) -> Result<(), Failure> {
    let width = all.iter().map(|(id, _)| id.chars().count()).max().unwrap_or_default().min(64);
    if out.terminal && !all.is_empty() {
        let heading = row(
            width,
            "ID",
            "HEALTH    ",
            ["CALLS", "ERRORS", "TIMEOUTS", "RESTARTS"],
            ["P50", "P99"],
            "WHY",
        );
        let heading = out.paint(Look::Dim, &heading);
        out.line(&heading)?;
    }
    for (id, health) in all {
        let count = |key: &str| get::<u64>(health, key).unwrap_or_default().to_string();
        let word = text(health, "health");
        let line = row(
            width,
            &clean(id),
            &out.paint(health_look(&word), &format!("{:<10}", clean(&word))),
            ["calls", "errors", "timeouts", "restarts"].map(count).each_ref().map(String::as_str),
            ["p50_us", "p99_us"].map(|key| time(health, key)).each_ref().map(String::as_str),
            &clean(&text(health, "reason")),
        );
        out.line(line.trim_end())?;
    }
    Ok(())
}

fn row(width: usize, id: &str, health: &str, counts: [&str; 4], times: [&str; 2], why: &str) -> String {
    let [calls, errors, timeouts, restarts] = counts;
    let [p50, p99] = times;
    format!(
        "{id:<width$}  {health} {calls:>7} {errors:>7} {timeouts:>8} {restarts:>8} {p50:>9} {p99:>9}  {why}"
    )
}

fn details(out: &mut Out, health: &Dict) -> Result<(), Failure> {
    let mut line = |what: &str, value: &str| {
        let label = out.paint(Look::Dim, &format!("{what:<14}"));
        out.line(&format!("{label} {value}"))
    };
    line("health", &clean(&text(health, "health")))?;
    let reason = text(health, "reason");
    if !reason.is_empty() {
        line("why", &clean(&reason))?;
    }
    line("running", if get(health, "running").unwrap_or(false) { "yes" } else { "no" })?;
    line("isolation", &clean(&text(health, "isolation")))?;
    for (what, key) in [
        ("calls", "calls"),
        ("errors", "errors"),
        ("time-outs", "timeouts"),
        ("restarts", "restarts"),
        ("late replies", "late_replies"),
        ("bytes received", "bytes_received"),
        ("bytes sent", "bytes_sent"),
    ] {
        line(what, &get::<u64>(health, key).unwrap_or_default().to_string())?;
    }
    line("half within", &time(health, "p50_us"))?;
    line("99 % within", &time(health, "p99_us"))
}

/// `1.5 ms`.
fn time(health: &Dict, key: &str) -> String {
    match get::<i64>(health, key) {
        None => "–".to_owned(),
        Some(micros) if micros < 1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        Some(micros) => format!("{:.1} s", micros as f64 / 1e6),
    }
}
