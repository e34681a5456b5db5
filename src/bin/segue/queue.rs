//! The queue, listed and changed.

use crate::args::QueueAction;
use crate::bus::{Daemon, get};
use crate::failure::Failure;
use crate::out::{Look, Out};
use crate::track;

/// How many entries are asked for at once; segued sends no more in one answer.
const PAGE: u32 = 1_000;

pub async fn run(daemon: &Daemon, out: &mut Out, action: Option<QueueAction>) -> Result<(), Failure> {
    let queue = daemon.queue().await?;
    match action {
        None => list(daemon, out).await,
        Some(QueueAction::Add { uris }) => {
            let uris: Vec<String> = uris.iter().map(|typed| track::uri(typed)).collect();
            queue.add(&uris, 0).await?;
            Ok(())
        }
        Some(QueueAction::Clear) => Ok(queue.clear().await?),
        Some(QueueAction::Remove { entries }) => Ok(queue.remove(&entries).await?),
        Some(QueueAction::Play { entry }) => Ok(queue.play(entry).await?),
    }
}

async fn list(daemon: &Daemon, out: &mut Out) -> Result<(), Failure> {
    let queue = daemon.queue().await?;
    let current: u64 = get(&daemon.queue_properties().await?, "Current").unwrap_or_default();
    let mut from = 0;
    loop {
        let page = queue.list(from, PAGE).await?;
        for (entry, info) in &page {
            let length = track::length(info).map(track::time).unwrap_or_default();
            let mark = if *entry == current { "▶" } else { " " };
            let line = format!("{mark} {entry:>4}  {length:>7}  {}", track::name(info));
            out.line(&if *entry == current { out.paint(Look::Bold, &line) } else { line })?;
        }
        let Ok(count @ 1..) = u32::try_from(page.len()) else { break };
        from += count;
    }
    if from == 0 && out.terminal {
        out.line("The queue is empty; `segue queue add URI` or `segue search WORDS` help.")?;
    }
    Ok(())
}
