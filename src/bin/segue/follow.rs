//! `status --follow`: one line that moves, and above it what happens.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use tokio::time::MissedTickBehavior;

use crate::bus::{Daemon, text};
use crate::failure::Failure;
use crate::out::{Look, Out, clean};
use crate::status::{Status, json_line};

/// How often the line is drawn on a terminal.
const REDRAW: Duration = Duration::from_millis(200);
/// How often it is written elsewhere.
const REWRITE: Duration = Duration::from_secs(1);

/// Follows until it is interrupted, or until playback has ended.
///
/// The end is a stop after something began: a player that has not begun yet is no player at its end.
pub async fn follow(daemon: &Daemon, out: &mut Out, json: bool, until_stopped: bool) -> Result<(), Failure> {
    let result = watch(daemon, out, json, until_stopped).await;
    out.finish()?;
    result
}

async fn watch(daemon: &Daemon, out: &mut Out, json: bool, until_stopped: bool) -> Result<(), Failure> {
    let player = daemon.player().await?;
    let mut events = player.receive_event().await?;
    let mut errors = player.receive_error().await?;
    let mut changes = daemon.properties().await?.receive_properties_changed().await?;
    let drawn = out.terminal && !json;
    let mut ticks = tokio::time::interval(if drawn { REDRAW } else { REWRITE });
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut playback = Playback::default();
    let mut written = String::new();
    loop {
        tokio::select! {
            biased; // what happened before what came of it
            Some(event) = events.next() => {
                let event = event.args()?;
                happened(out, json, event.kind(), event.text(), Look::Dim)?;
            }
            Some(error) = errors.next() => {
                let error = error.args()?;
                happened(out, json, error.code(), error.message(), Look::Red)?;
            }
            Some(change) = changes.next() => {
                let change = change.args()?;
                if let Some(zbus::Variant::Str(state)) = change.changed_properties().get("State") {
                    playback.saw(state.as_str());
                }
            }
            _ = ticks.tick() => {
                let status = Status::read(daemon).await?;
                playback.saw(&status.state());
                if drawn {
                    out.redraw(&status.one_line(out))?;
                } else {
                    let line = if json { json_line(daemon, &status).await? } else { status.one_line(out) };
                    if line != written {
                        out.line(&line)?;
                        written = line;
                    }
                }
            }
            () = daemon.connection.closed() => return Err(Failure::NoDaemon("the bus is gone".into())),
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
        if until_stopped && playback == Playback::Ended {
            return ended(daemon, out, json).await;
        }
    }
}

/// Shows the end, and fails if it was not a good one.
async fn ended(daemon: &Daemon, out: &mut Out, json: bool) -> Result<(), Failure> {
    let status = Status::read(daemon).await?;
    if out.terminal && !json {
        out.redraw(&status.one_line(out))?;
    } else {
        out.line(&if json { json_line(daemon, &status).await? } else { status.one_line(out) })?;
    }
    match text(&status.player, "StateReason").as_str() {
        "error" => Err(Failure::Other("playback ended with an error".into())),
        _ => Ok(()),
    }
}

fn happened(out: &mut Out, json: bool, kind: &str, text: &str, look: Look) -> Result<(), Failure> {
    if json {
        return out.line(&json!({"event": kind, "text": text}).to_string());
    }
    let kind = out.paint(look, &format!("{:<9}", clean(kind)));
    out.line(&format!("{kind} {}", clean(text)))
}

/// How far playback has come since it is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Playback {
    #[default]
    NotBegun,
    Begun,
    Ended,
}

impl Playback {
    fn saw(&mut self, state: &str) {
        *self = match (*self, state) {
            (Playback::NotBegun, "stopped") => Playback::NotBegun,
            (_, "stopped") => Playback::Ended,
            _ => Playback::Begun,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn playback_ends_only_after_it_began() {
        let mut playback = Playback::default();
        playback.saw("stopped");
        assert_eq!(playback, Playback::NotBegun);
        for state in ["buffering", "playing", "paused", "playing"] {
            playback.saw(state);
            assert_eq!(playback, Playback::Begun);
        }
        playback.saw("stopped");
        assert_eq!(playback, Playback::Ended);
    }
}
