//! Watches a process while it runs, and serves those who call it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::Command;
use super::end::End;
use super::task::Task;
use crate::plugin::quota::Full;
use crate::plugin::start::{self, Running};
use segue_protocol::manifest::IdleStop;
use segue_protocol::messages::RawResult;
use segue_protocol::{ErrorCode, Fault};

/// A ping on its way.
type Answer<'a> = Pin<Box<dyn Future<Output = Result<RawResult, Fault>> + Send + 'a>>;

/// What is known of a process that runs, and what is being found out.
struct Signs<'a> {
    running: &'a Running,
    /// When it was called last, or a call ended.
    used: Instant,
    /// Whether it answers.
    ping: Option<Answer<'a>>,
    /// Whether its folders hold too much.
    measuring: Option<JoinHandle<Result<(), Full>>>,
}

impl<'a> Signs<'a> {
    fn ask(&mut self, patience: Duration) {
        let connection = &self.running.connection;
        self.ping.get_or_insert_with(|| Box::pin(start::ping(connection, patience)));
    }
}

impl Task {
    pub(super) async fn watch(&mut self, running: &Running) -> End {
        let connection = &running.connection;
        let idle_stop = self.plan.manifest.idle_stop;
        let at_once = self.stops_at_once();
        let open = Arc::clone(&self.open);
        let busy = || connection.in_use() || open.load(Ordering::Acquire) > 0;
        let mut signs = Signs { running, used: Instant::now(), ping: None, measuring: None };
        let every = self.plan.limits.ping_every;
        let mut check = interval_at(Instant::now() + every, every);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let idle = async {
                match idle_stop {
                    IdleStop::After(time) => sleep_until(signs.used + time).await,
                    IdleStop::Never => std::future::pending().await,
                }
            };
            let end = tokio::select! {
                command = self.commands.recv() => self.told(command, &mut signs, busy()),
                () = running.process.ended() => Some(End::Ended),
                // A sign of life is no use: it does not keep the process from being stopped.
                _ = check.tick() => {
                    signs.ask(self.plan.manifest.timeouts.ping);
                    let quota = self.plan.quota();
                    signs.measuring.get_or_insert_with(|| spawn_blocking(move || quota.check()));
                    None
                }
                measured = outcome(&mut signs.measuring) => {
                    signs.measuring = None;
                    // What could not be measured is measured again.
                    measured.ok().and_then(Result::err).map(End::Full)
                }
                over = connection.over() => Some(End::Over(over)),
                answer = outcome(&mut signs.ping) => {
                    signs.ping = None;
                    self.answered(running, answer)
                }
                () = connection.idle.notified() => {
                    signs.used = Instant::now();
                    (at_once && !busy()).then_some(End::Idle)
                }
                () = idle, if !(at_once && busy()) => {
                    let used = busy();
                    if used {
                        signs.used = Instant::now();
                    }
                    (!used).then_some(End::Idle)
                }
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// It runs for each call alone.
    fn stops_at_once(&self) -> bool {
        self.plan.manifest.idle_stop == IdleStop::After(Duration::ZERO)
    }

    /// Obeys a command; the end that it leads to.
    fn told(&mut self, command: Option<Command>, signs: &mut Signs<'_>, busy: bool) -> Option<End> {
        match command {
            // Served by a fresh process, which sees the present files for resolving names.
            Some(Command::Lease(waiter)) if !busy && signs.running.process.is_outdated() => {
                self.waiters.push(waiter);
                return Some(End::Idle);
            }
            Some(Command::Lease(waiter)) => {
                signs.used = Instant::now();
                let _ = waiter.send(Ok(signs.running.connection.lease()));
            }
            Some(Command::Suspect) if self.stops_at_once() => return Some(End::Silent),
            Some(Command::Suspect) => signs.ask(self.plan.manifest.timeouts.ping),
            Some(Command::Stop(stop)) => return Some(End::Stop(Some(stop))),
            None => return Some(End::Stop(None)),
        }
        None
    }

    /// Takes in what a ping was answered with; the end if it was not.
    fn answered(&self, running: &Running, answer: Result<RawResult, Fault>) -> Option<End> {
        match answer {
            Err(fault) if fault.code == ErrorCode::PluginTimeout => return Some(End::Silent),
            Ok(pong) => match start::pong(&self.plan, &pong) {
                Ok(now) => running.connection.set_capabilities(now),
                Err(fault) => self.plan.counters.misshapen(&fault),
            },
            // Wrong, but alive.
            Err(_) => {}
        }
        None
    }
}

/// What this work comes to; never, when there is none.
async fn outcome<F: Future + Unpin>(work: &mut Option<F>) -> F::Output {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}
