//! `segue sound`: what is done to the samples.

use super::args::{SoundAction, Switch};
use super::bus::{Daemon, get};
use super::failure::Failure;
use super::out::Out;

pub async fn run(daemon: &Daemon, out: &mut Out, action: Option<SoundAction>) -> Result<(), Failure> {
    match action {
        None => show(daemon, out).await,
        Some(SoundAction::Replaygain { mode }) => daemon.set_player("ReplayGain", mode.into()).await,
        Some(SoundAction::Mono { wanted }) => daemon.set_player("Mono", (wanted == Switch::On).into()).await,
        Some(SoundAction::Crossfade { seconds }) => {
            let ms = (seconds * 1000.0).round() as u32;
            daemon.set_player("CrossfadeMs", ms.into()).await
        }
    }
}

async fn show(daemon: &Daemon, out: &mut Out) -> Result<(), Failure> {
    let player = daemon.player_properties().await?;
    let mode = get::<String>(&player, "ReplayGain").unwrap_or_default();
    let mono = if get(&player, "Mono").unwrap_or(false) { "on" } else { "off" };
    let crossfade = match get::<u32>(&player, "CrossfadeMs").unwrap_or_default() {
        0 => "off".to_owned(),
        ms => format!("{} s", f64::from(ms) / 1000.0),
    };
    for (what, value) in [("ReplayGain", mode.as_str()), ("Mono", mono), ("Crossfade", &crossfade)] {
        out.line(&format!("{what:<10} {value}"))?;
    }
    Ok(())
}
