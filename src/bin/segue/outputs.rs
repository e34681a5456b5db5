//! `segue outputs`: where sound can go to.

use serde_json::Value;

use crate::args::OutputsAction;
use crate::bus::{Daemon, Dict, get, text, texts};
use crate::failure::Failure;
use crate::out::{Look, Out, clean};
use crate::status::dict_to_json;

/// Stands for what the configuration says; no device of ALSA's is called so.
const CONFIGURED: &str = "configured";

pub async fn run(
    daemon: &Daemon,
    out: &mut Out,
    action: Option<OutputsAction>,
    json: bool,
) -> Result<(), Failure> {
    let outputs = daemon.outputs().await?;
    if let Some(OutputsAction::Select { name }) = action {
        let device = if name == CONFIGURED { "" } else { &name };
        return Ok(outputs.select(device).await?);
    }
    let devices = outputs.list().await?;
    if json {
        let all: Vec<Value> = devices.iter().map(dict_to_json).collect();
        return out.line(&Value::from(all).to_string());
    }
    if devices.is_empty() && out.terminal {
        return out.line("There is no sound device; connect one.");
    }
    devices.iter().try_for_each(|device| show(out, device))
}

fn show(out: &mut Out, device: &Dict) -> Result<(), Failure> {
    let is = |key| get(device, key).unwrap_or(false);
    let mark = if is("current") { "▶" } else { " " };
    let chosen = if is("selected") { ", selected" } else { "" };
    let name = clean(&text(device, "name"));
    let name = if is("current") { out.paint(Look::Bold, &name) } else { name };
    out.line(&format!("{mark} {name} ({}, {}{chosen})", text(device, "kind"), text(device, "state")))?;
    let reason = text(device, "reason");
    let details = [text(device, "description"), abilities(device), mixer(device), reason];
    for detail in details.iter().filter(|detail| !detail.is_empty()) {
        out.line(&format!("    {}", clean(detail)))?;
    }
    Ok(())
}

/// `44.1, 48, 96 kHz; S32_LE, S16_LE; 2 channels`; empty where that is not known.
fn abilities(device: &Dict) -> String {
    let rates: Vec<u32> = get(device, "rates").unwrap_or_default();
    if rates.is_empty() {
        return String::new();
    }
    let rates: Vec<String> = rates.iter().map(|rate| (f64::from(*rate) / 1000.0).to_string()).collect();
    let channels = match (get::<u32>(device, "channels_min"), get::<u32>(device, "channels_max")) {
        (Some(1), Some(1)) => "1 channel".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{most} channels"),
        (Some(least), Some(most)) => format!("{least} to {most} channels"),
        _ => String::new(),
    };
    format!("{} kHz; {}; {channels}", rates.join(", "), texts(device, "formats").join(", "))
}

fn mixer(device: &Dict) -> String {
    match text(device, "mixer") {
        name if name.is_empty() => name,
        name => format!("volume control “{name}”"),
    }
}
