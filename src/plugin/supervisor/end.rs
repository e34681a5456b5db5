//! Ends a process, and tells a crash from an end that was wanted.

use std::time::{Duration, Instant};

use super::Stop;
use super::task::Task;
use crate::plugin::quota::Full;
use crate::plugin::rpc::Over;
use crate::plugin::start::Running;
use segue_protocol::{ErrorCode, Fault};

/// How long replies that were written before the end may take to be read.
const LAST_REPLIES: Duration = Duration::from_millis(500);

/// A process that closed its standard output should end by itself within this time.
const CLOSED_OUTPUT: Duration = Duration::from_secs(1);

/// Why a run is to end.
pub(super) enum End {
    Ended,
    Over(Over),
    Silent,
    Idle,
    /// One of its folders holds too much.
    Full(Full),
    Stop(Option<Stop>),
}

impl Task {
    pub(super) async fn finish(
        &mut self,
        running: Running,
        end: End,
        uptime: Duration,
    ) -> Option<Option<Stop>> {
        let id = self.plan.manifest.id.clone();
        let why = match end {
            End::Idle => {
                let stopping = self.meanwhile(stop_orderly(running, self.plan.limits.stop_grace)).await;
                self.backoff.ended_well(uptime);
                tracing::debug!(plugin = %id, "stopped: nobody uses it");
                return stopping.err();
            }
            End::Full(full) => {
                let fault = Fault::new(ErrorCode::PluginFaulted, full.to_string());
                tracing::warn!(plugin = %id, %full, "a plugin is stopped");
                running.connection.close(&fault);
                let stopping = self.meanwhile(stop_orderly(running, self.plan.limits.stop_grace)).await;
                self.plan.counters.crashed(fault.message);
                return stopping.err();
            }
            End::Stop(stop) => {
                running.connection.close(&disabled());
                let limits = self.plan.limits;
                if stop.as_ref().is_none_or(|stop| stop.fast) {
                    stop_fast(running, limits.exit_grace).await;
                } else {
                    stop_orderly(running, limits.stop_grace).await;
                }
                return Some(stop);
            }
            End::Ended => None,
            End::Over(Over::Closed) => {
                let ended = tokio::time::timeout(CLOSED_OUTPUT, running.process.ended()).await;
                ended.err().map(|_| "it closed its standard output".to_owned())
            }
            End::Over(Over::Unusable(why)) => Some(why),
            End::Silent => Some("it does not answer".to_owned()),
        };
        let in_use = running.connection.in_use();
        let (status, connection) = running.kill().await;
        // What it wrote before its end still counts.
        let _ = tokio::time::timeout(LAST_REPLIES, connection.over()).await;
        let by_itself = why.is_none();
        let why = why.unwrap_or_else(|| format!("the process ended ({status})"));
        connection.close(&Fault::new(ErrorCode::PluginCrashed, why.clone()));
        if by_itself && !in_use && status == "exit status: 0" {
            self.backoff.ended_well(uptime);
            tracing::debug!(plugin = %id, "ended by itself");
        } else {
            self.backoff.crashed(Instant::now(), uptime);
            tracing::warn!(plugin = %id, why, "a plugin crashed");
            self.plan.counters.crashed(why);
        }
        None
    }
}

pub(super) fn disabled() -> Fault {
    Fault::new(ErrorCode::PluginNotEnabled, "it was stopped")
}

/// Close standard input, wait, SIGTERM, wait, SIGKILL.
async fn stop_orderly(running: Running, grace: Duration) {
    running.connection.close_input();
    if tokio::time::timeout(grace, running.process.ended()).await.is_err() {
        running.process.terminate();
        let _ = tokio::time::timeout(grace, running.process.ended()).await;
    }
    let (_, connection) = running.kill().await;
    connection.close(&disabled());
}

/// The same at the daemon's exit.
async fn stop_fast(running: Running, grace: Duration) {
    running.connection.close_input();
    running.process.terminate();
    let _ = tokio::time::timeout(grace, running.process.ended()).await;
    running.kill().await;
}
