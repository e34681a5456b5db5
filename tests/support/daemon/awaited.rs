//! What it announces, and waiting for that.

use std::time::Duration;

use super::Daemon;
use crate::support::PATIENCE;
use crate::support::client::Said;

impl Daemon {
    /// Waits for an event of this kind.
    pub async fn wait_event(&mut self, kind: &str) -> Said {
        self.wait_event_from(0, kind).await
    }

    /// Waits for an event of this kind at or after a place in the record.
    pub async fn wait_event_from(&mut self, from: usize, kind: &str) -> Said {
        let is_kind = |said: &Said| matches!(said, Said::Event { kind: other, .. } if other == kind);
        self.record.wait_from(from, &format!("the event {kind}"), is_kind).await
    }

    /// Waits for an error that was announced, and says its message.
    pub async fn wait_error(&mut self, words: &str) -> String {
        let fits = |said: &Said| matches!(said, Said::Error { message, .. } if message.contains(words));
        match self.record.wait_from(0, &format!("an error with “{words}”"), fits).await {
            Said::Error { message, .. } => message,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until it plays, pauses and so on.
    pub async fn wait_state(&mut self, state: &str) {
        let from = self.record.len();
        if self.state().await != state {
            self.record
                .wait_from(from, &format!("the state {state}"), |said| *said == Said::State(state.to_owned()))
                .await;
        }
    }

    /// Waits until the position is at least this, in microseconds.
    pub async fn wait_position(&self, micros: i64) {
        let looked = async {
            while self.position().await < micros {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looked)
            .await
            .unwrap_or_else(|_| panic!("the position never was {micros} µs"));
    }

    /// Plays these and waits until the queue has been heard to its end.
    pub async fn play_to_the_end(&mut self, uris: &[impl AsRef<str>]) {
        let from = self.record.len();
        self.play_uris(uris).await;
        self.wait_end(from).await;
    }

    /// Waits until the queue has been heard to its end.
    pub async fn wait_end(&mut self, from: usize) {
        self.wait_event_from(from, "finished").await;
        self.wait_state("stopped").await;
    }

    /// How often events of this kind were announced.
    pub fn events(&self, kind: &str) -> usize {
        let is_kind = |said: &&Said| matches!(said, Said::Event { kind: other, .. } if other == kind);
        self.record.all().iter().filter(is_kind).count()
    }

    /// The errors that were announced.
    pub fn errors(&self) -> Vec<String> {
        let message = |said| match said {
            Said::Error { message, .. } => Some(message),
            _ => None,
        };
        self.record.all().into_iter().filter_map(message).collect()
    }
}
