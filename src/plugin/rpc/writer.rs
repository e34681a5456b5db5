//! Requests to standard input, each with a deadline.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, watch};

use super::super::counters::Counters;
use super::{Over, end};

pub(super) async fn write_requests(
    mut stdin: ChildStdin,
    mut queue: mpsc::Receiver<Vec<u8>>,
    timeout: Duration,
    over: watch::Sender<Option<Over>>,
    counters: Arc<Counters>,
) {
    while let Some(line) = queue.recv().await {
        let why = match tokio::time::timeout(timeout, stdin.write_all(&line)).await {
            Ok(Ok(())) => {
                counters.sent(line.len());
                continue;
            }
            Ok(Err(error)) => format!("its standard input is closed ({error})"),
            Err(_) => "it does not read its standard input".to_owned(),
        };
        end(&over, Over::Unusable(why));
        return;
    }
}
