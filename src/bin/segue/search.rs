//! Search in the plugins' catalogues.

use std::collections::HashMap;

use crate::bus::{Daemon, text};
use crate::failure::Failure;
use crate::out::{Look, Out, clean};
use crate::track;

pub async fn run(daemon: &Daemon, out: &mut Out, words: &str, limit: u32) -> Result<(), Failure> {
    let options = HashMap::from([("limit", limit.into())]);
    let (results, errors) = daemon.catalog().await?.search(words, options).await?;
    for result in &results {
        let length = track::length(result).map(track::time).unwrap_or_default();
        let name = out.paint(Look::Bold, &track::name(result));
        out.line(&format!("{length:>7}  {name}"))?;
        out.line(&format!("         {}", out.paint(Look::Dim, &clean(&text(result, "uri")))))?;
    }
    for (plugin, (_, message)) in &errors {
        eprintln!("segue: {}: {}", clean(plugin), clean(message));
    }
    if results.is_empty() && !errors.is_empty() {
        return Err(Failure::Other("no plugin could search".into()));
    }
    if results.is_empty() && out.terminal {
        out.line("Nothing found.")?;
    }
    Ok(())
}
