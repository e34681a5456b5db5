//! Play, seek, volume.

use zbus::OwnedObjectPath;

use crate::args::{SeekTo, Switch};
use crate::bus::{Daemon, get};
use crate::failure::Failure;
use crate::out::Out;
use crate::track;

pub async fn play(daemon: &Daemon, uris: Vec<String>) -> Result<(), Failure> {
    if uris.is_empty() {
        return daemon.simply("Play").await;
    }
    let uris: Vec<String> = uris.iter().map(|typed| track::uri(typed)).collect();
    Ok(daemon.player().await?.play_uris(&uris).await?)
}

pub async fn seek(daemon: &Daemon, to: SeekTo) -> Result<(), Failure> {
    let position = match to {
        SeekTo::Relative(offset) => return Ok(daemon.player().await?.seek_by(offset).await?),
        SeekTo::Absolute(position) => position,
    };
    // MPRIS ignores what it cannot do; a person wants to know.
    let metadata = daemon.metadata().await?;
    let Some(track) = get::<OwnedObjectPath>(&metadata, "mpris:trackid").filter(|_| metadata.len() > 1)
    else {
        return Err(Failure::Other("nothing is playing; start something with `segue play URI`".into()));
    };
    if let Some(length) = get::<i64>(&metadata, "mpris:length").filter(|length| position > *length) {
        return Err(Failure::Other(format!("the track ends at {}", track::time(length))));
    }
    let mpris = daemon.mpris().await?;
    if !mpris.can_seek().await? {
        return Err(Failure::Other("one cannot seek in this track: its server gives no byte ranges".into()));
    }
    Ok(mpris.set_position(&track, position).await?)
}

pub async fn volume(daemon: &Daemon, out: &mut Out, percent: Option<u32>) -> Result<(), Failure> {
    if let Some(percent) = percent {
        return daemon.set_player("Volume", (f64::from(percent) / 100.0).into()).await;
    }
    let player = daemon.player_properties().await?;
    let volume = get::<f64>(&player, "Volume").unwrap_or_default();
    let muted = if get(&player, "Mute").unwrap_or(false) { " (muted)" } else { "" };
    let by = match get::<String>(&player, "VolumeControl").as_deref() {
        Some("hardware") => ", by the card",
        Some("fixed") => ", fixed",
        _ => "",
    };
    out.line(&format!("{:.0} %{muted}{by}", volume * 100.0))
}

pub async fn mute(daemon: &Daemon, wanted: Switch) -> Result<(), Failure> {
    daemon.set_player("Mute", (wanted == Switch::On).into()).await
}
