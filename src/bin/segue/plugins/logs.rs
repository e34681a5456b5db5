//! What a plugin wrote on standard error.

use serde_json::json;

use crate::bus::Daemon;
use crate::failure::Failure;
use crate::out::{Look, Out, clean};

/// How long one question for further lines may wait, in milliseconds. segued itself waits no longer.
const WAIT_MS: u32 = 20_000;

/// What of a log is wanted, and how.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The newest so many.
    pub lines: u32,
    /// Go on with what is written from now on.
    pub follow: bool,
    /// An object on each line.
    pub json: bool,
}

pub async fn show(daemon: &Daemon, out: &mut Out, id: &str, wanted: Wanted) -> Result<(), Failure> {
    let plugins = daemon.plugins().await?;
    if !wanted.follow {
        let lines = plugins.logs(id, wanted.lines).await?;
        return print(out, wanted, &lines);
    }
    let (mut newest, lines) = plugins.read_log(id, 0, 0).await?;
    print(out, wanted, &lines[lines.len().saturating_sub(wanted.lines as usize)..])?;
    loop {
        let more = tokio::select! {
            more = plugins.read_log(id, newest, WAIT_MS) => more?,
            () = daemon.connection.closed() => return Err(Failure::NoDaemon("the bus is gone".into())),
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        newest = more.0;
        print(out, wanted, &more.1)?;
    }
}

fn print(out: &mut Out, wanted: Wanted, lines: &[(String, String)]) -> Result<(), Failure> {
    for (level, text) in lines {
        if wanted.json {
            out.line(&json!({"level": level, "text": text}).to_string())?;
            continue;
        }
        let look = match level.as_str() {
            "error" => Some(Look::Red),
            "warn" => Some(Look::Yellow),
            "debug" => Some(Look::Dim),
            _ => None,
        };
        let line = format!("{:<5} {}", clean(level), clean(&text.replace('\t', "    ")));
        out.line(&look.map_or_else(|| line.clone(), |look| out.paint(look, &line)))?;
    }
    Ok(())
}
