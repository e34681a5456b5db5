//! Plugins: what is there, what it wants, what it may.

use std::io::{BufRead, IsTerminal, Write, stderr, stdin};

use serde_json::Value;

use crate::args::PluginAction;
use crate::bus::{Daemon, Dict, text, texts};
use crate::failure::Failure;
use crate::out::{Look, Out, clean};
use crate::status::{joined, to_json};

/// In this order, then the others by name.
const FIRST: [&str; 9] =
    ["id", "name", "version", "state", "reason", "path", "fingerprint", "capabilities", "scopes"];

pub async fn run(daemon: &Daemon, out: &mut Out, action: PluginAction) -> Result<(), Failure> {
    let plugins = daemon.plugins().await?;
    match action {
        PluginAction::List => list(daemon, out).await,
        PluginAction::Inspect { id } => review(out, &plugins.inspect(&id).await?),
        PluginAction::Trust { id, fingerprint: Some(fingerprint), .. } => {
            Ok(plugins.trust(&id, &fingerprint).await?)
        }
        PluginAction::Trust { id, fingerprint: None, yes } => {
            let plugin = plugins.inspect(&id).await?;
            let fingerprint = text(&plugin, "fingerprint");
            if !yes {
                review(out, &plugin)?;
                ask(&format!("Trust {id} exactly as it is shown above?"))?;
            }
            plugins.trust(&id, &fingerprint).await?;
            if out.terminal {
                out.line(&format!("{id} is trusted; let it run with `segue plugin enable {id} --all`"))?;
            }
            Ok(())
        }
        PluginAction::Enable { id, scopes, all } => {
            let scopes = if all { texts(&plugins.inspect(&id).await?, "scopes") } else { scopes };
            Ok(plugins.enable(&id, &scopes).await?)
        }
        PluginAction::Disable { id } => Ok(plugins.disable(&id).await?),
        PluginAction::Rescan => Ok(plugins.rescan().await?),
    }
}

async fn list(daemon: &Daemon, out: &mut Out) -> Result<(), Failure> {
    let plugins = daemon.plugins().await?.list().await?;
    for plugin in &plugins {
        let state = text(plugin, "state");
        let look = match state.as_str() {
            "enabled" => Look::Green,
            "faulted" | "changed" | "invalid" => Look::Red,
            _ => Look::Yellow,
        };
        let (id, version) = (clean(&text(plugin, "id")), clean(&text(plugin, "version")));
        let reason = clean(&text(plugin, "reason"));
        let state = out.paint(look, &format!("{:<10}", clean(&state)));
        let granted = joined(plugin, "granted");
        let rest = if reason.is_empty() { granted } else { reason };
        out.line(format!("{id:<16} {version:<10} {state} {rest}").trim_end())?;
    }
    if plugins.is_empty() && out.terminal {
        out.line("No plugins are installed.")?;
    }
    Ok(())
}

fn review(out: &mut Out, plugin: &Dict) -> Result<(), Failure> {
    let mut keys: Vec<&str> = plugin.keys().map(String::as_str).collect();
    keys.sort_by_key(|key| (FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len()), *key));
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

/// Goes on after a yes only.
fn ask(question: &str) -> Result<(), Failure> {
    if !stdin().is_terminal() {
        return Err(Failure::Usage(
            "nobody can be asked here; give the fingerprint that `segue plugin inspect` shows, or --yes"
                .into(),
        ));
    }
    write!(stderr(), "{question} [y/N] ")?;
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Other("nothing was changed".into())),
    }
}
