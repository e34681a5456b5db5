//! Starts the process when somebody needs it, and has it served until it ends.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::mpsc;

use super::end::disabled;
use super::{Command, Stop, Waiter};
use crate::plugin::backoff::{Backoff, Verdict};
use crate::plugin::start::{self, Plan, Running, StartFailure};
use segue_protocol::{ErrorCode, Fault};

/// The task itself.
pub(super) struct Task {
    pub(super) plan: Arc<Plan>,
    pub(super) backoff: Backoff,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) waiters: Vec<Waiter>,
    pub(super) running: Arc<AtomicBool>,
    pub(super) open: Arc<AtomicUsize>,
}

impl Task {
    pub(super) async fn run(mut self) {
        loop {
            if self.waiters.is_empty() {
                match self.commands.recv().await {
                    Some(Command::Lease(waiter)) => self.waiters.push(waiter),
                    Some(Command::Suspect) => continue,
                    Some(Command::Stop(stop)) => {
                        let _ = stop.done.send(());
                        return;
                    }
                    None => return,
                }
            }
            let stop = match self.bring_up().await {
                Ok(Some(running)) => self.serve(running).await,
                Ok(None) => None,
                Err(stop) => Some(stop),
            };
            if let Some(stop) = stop {
                // What was given up while starting is gone before this is answered.
                self.plan.launcher.settled().await;
                self.refuse_waiters(&StartFailure::Refused(disabled()));
                if let Some(stop) = stop {
                    let _ = stop.done.send(());
                }
                return;
            }
        }
    }

    /// Does `work` while taking commands. Ends early when the plugin is to be stopped.
    pub(super) async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Option<Stop>> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                command = self.commands.recv() => match command {
                    Some(Command::Lease(waiter)) => self.waiters.push(waiter),
                    Some(Command::Suspect) => {}
                    Some(Command::Stop(stop)) => return Err(Some(stop)),
                    None => return Err(None),
                },
            }
        }
    }

    async fn bring_up(&mut self) -> Result<Option<Running>, Option<Stop>> {
        match self.backoff.verdict(Instant::now()) {
            Verdict::StartAfter(wait) => self.meanwhile(tokio::time::sleep(wait)).await?,
            Verdict::Refuse { retry_in, faulted } => {
                let why = if faulted { "it crashed too often" } else { "it crashed and is given a rest" };
                let text = format!("{why}; it may start again in {} s", retry_in.as_secs().max(1));
                let mut fault = Fault::new(ErrorCode::PluginFaulted, text);
                fault.retry_after = Some(retry_in);
                self.refuse_waiters(&StartFailure::Refused(fault));
                return Ok(None);
            }
        }
        let began = Instant::now();
        let started = self.meanwhile(start::start(self.plan.clone())).await?;
        match started {
            Ok(running) => Ok(Some(running)),
            Err(failure) => {
                if let Some(why) = failure.words() {
                    tracing::warn!(plugin = %self.plan.manifest.id, why, "a plugin does not start");
                    self.plan.counters.crashed(why);
                }
                if matches!(failure, StartFailure::Failed(_)) {
                    self.backoff.crashed(Instant::now(), began.elapsed());
                }
                self.refuse_waiters(&failure);
                Ok(None)
            }
        }
    }

    /// Whoever asked before the failure shares it, so that no caller waits for several attempts.
    fn refuse_waiters(&mut self, failure: &StartFailure) {
        for waiter in self.waiters.drain(..) {
            let _ = waiter.send(Err(failure.clone()));
        }
    }

    /// Serves until the run ends. `Some` when the task is to end too.
    async fn serve(&mut self, running: Running) -> Option<Option<Stop>> {
        self.running.store(true, Ordering::Release);
        tracing::debug!(plugin = %self.plan.manifest.id, "started");
        for waiter in self.waiters.drain(..) {
            let _ = waiter.send(Ok(running.connection.lease()));
        }
        let end = self.watch(&running).await;
        let uptime = running.since.elapsed();
        let result = self.finish(running, end, uptime).await;
        self.running.store(false, Ordering::Release);
        result
    }
}
