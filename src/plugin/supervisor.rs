//! One task for each enabled plugin: starts it when it is needed, ends it when it is not, and sees to it
//! that there are never two processes of it.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::answers::Answers;
use super::backoff::{Backoff, Verdict};
use super::quota::Full;
use super::rpc::{Lease, Over};
use super::start::{self, Plan, Running, StartFailure};
use segue_protocol::manifest::IdleStop;
use segue_protocol::messages::RawResult;
use segue_protocol::{ErrorCode, Fault};

/// Commands that wait for the task; more make their senders wait.
const MAX_COMMANDS: usize = 64;
/// How long replies that were written before the end may take to be read.
const LAST_REPLIES: Duration = Duration::from_millis(500);
/// A process that closed its standard output should end by itself within this time.
const CLOSED_OUTPUT: Duration = Duration::from_secs(1);

/// A ping on its way.
type Answer<'a> = Pin<Box<dyn Future<Output = Result<RawResult, Fault>> + Send + 'a>>;
type Waiter = oneshot::Sender<Result<Lease, StartFailure>>;

enum Command {
    Lease(Waiter),
    /// A call was not answered in time.
    Suspect,
    Stop(Stop),
}

struct Stop {
    /// The daemon is about to exit.
    fast: bool,
    done: oneshot::Sender<()>,
}

/// The handle of a plugin's task.
pub(super) struct Supervisor {
    pub(super) plan: Arc<Plan>,
    /// What it said lately.
    pub(super) answers: Answers,
    commands: mpsc::Sender<Command>,
    running: Arc<AtomicBool>,
    open: Arc<AtomicUsize>,
}

/// A track of the plugin's is open: it is not idle.
pub(super) struct OpenTrack(Arc<AtomicUsize>);

impl Drop for OpenTrack {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Supervisor {
    pub(super) fn new(plan: Plan) -> Supervisor {
        let (commands, queue) = mpsc::channel(MAX_COMMANDS);
        let plan = Arc::new(plan);
        let (running, open) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let task = Task {
            plan: plan.clone(),
            backoff: Backoff::new(plan.limits),
            commands: queue,
            waiters: Vec::new(),
            running: running.clone(),
            open: open.clone(),
        };
        tokio::spawn(task.run());
        Supervisor { plan, answers: Answers::default(), commands, running, open }
    }

    /// The right to call, after starting the process where that is needed.
    pub(super) async fn lease(&self) -> Result<Lease, StartFailure> {
        let (waiter, lease) = oneshot::channel();
        let gone = || StartFailure::Refused(Fault::new(ErrorCode::PluginNotEnabled, "it was disabled"));
        self.commands.send(Command::Lease(waiter)).await.map_err(|_| gone())?;
        lease.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Tells that a call timed out. A full queue means that the task is awake anyway.
    pub(super) fn suspect(&self) {
        let _ = self.commands.try_send(Command::Suspect);
    }

    /// Ends the task; returns when the process and all its descendants are gone.
    pub(super) async fn stop(&self, fast: bool) {
        let (done, wait) = oneshot::channel();
        if self.commands.send(Command::Stop(Stop { fast, done })).await.is_ok() {
            let _ = wait.await;
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    pub(super) fn open_track(&self) -> OpenTrack {
        self.open.fetch_add(1, Ordering::AcqRel);
        OpenTrack(self.open.clone())
    }
}

struct Task {
    plan: Arc<Plan>,
    backoff: Backoff,
    commands: mpsc::Receiver<Command>,
    waiters: Vec<Waiter>,
    running: Arc<AtomicBool>,
    open: Arc<AtomicUsize>,
}

/// Why a run is to end.
enum End {
    Ended,
    Over(Over),
    Silent,
    Idle,
    /// One of its folders holds too much.
    Full(Full),
    Stop(Option<Stop>),
}

impl Task {
    async fn run(mut self) {
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
    async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Option<Stop>> {
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

    async fn watch(&mut self, running: &Running) -> End {
        let connection = &running.connection;
        let idle_stop = self.plan.manifest.idle_stop;
        let at_once = idle_stop == IdleStop::After(Duration::ZERO);
        let mut used = tokio::time::Instant::now();
        let mut sign_of_life: Option<Answer<'_>> = None;
        let mut measuring: Option<JoinHandle<Result<(), Full>>> = None;
        let patience = self.plan.manifest.timeouts.ping;
        let every = self.plan.limits.ping_every;
        let mut check = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        check.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let idle_at = match idle_stop {
                IdleStop::After(time) => Some(used + time),
                IdleStop::Never => None,
            };
            let idle = async {
                match idle_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let answer = async {
                match sign_of_life.as_mut() {
                    Some(ping) => ping.await,
                    None => std::future::pending().await,
                }
            };
            let measured = async {
                match measuring.as_mut() {
                    Some(measured) => measured.await,
                    None => std::future::pending().await,
                }
            };
            let busy = || connection.in_use() || self.open.load(Ordering::Acquire) > 0;
            tokio::select! {
                command = self.commands.recv() => match command {
                    // Served by a fresh process, which sees the present files for resolving names.
                    Some(Command::Lease(waiter)) if !busy() && running.process.is_outdated() => {
                        self.waiters.push(waiter);
                        return End::Idle;
                    }
                    Some(Command::Lease(waiter)) => {
                        used = tokio::time::Instant::now();
                        let _ = waiter.send(Ok(connection.lease()));
                    }
                    Some(Command::Suspect) if at_once => return End::Silent,
                    Some(Command::Suspect) => {
                        sign_of_life.get_or_insert_with(|| Box::pin(start::ping(connection, patience)));
                    }
                    Some(Command::Stop(stop)) => return End::Stop(Some(stop)),
                    None => return End::Stop(None),
                },
                () = running.process.ended() => return End::Ended,
                // A sign of life is no use: it does not keep the process from being stopped.
                _ = check.tick() => {
                    sign_of_life.get_or_insert_with(|| Box::pin(start::ping(connection, patience)));
                    let quota = self.plan.quota();
                    measuring.get_or_insert_with(|| tokio::task::spawn_blocking(move || quota.check()));
                }
                measured = measured => {
                    measuring = None;
                    if let Ok(Err(full)) = measured {
                        return End::Full(full);
                    }
                }
                over = connection.over() => return End::Over(over),
                answer = answer => {
                    sign_of_life = None;
                    match answer {
                        Err(fault) if fault.code == ErrorCode::PluginTimeout => return End::Silent,
                        Ok(pong) => match start::pong(&self.plan, &pong) {
                            Ok(now) => connection.set_capabilities(now),
                            Err(fault) => self.plan.counters.misshapen(&fault),
                        },
                        // Wrong, but alive.
                        Err(_) => {}
                    }
                }
                () = connection.idle.notified() => {
                    used = tokio::time::Instant::now();
                    if at_once && !busy() {
                        return End::Idle;
                    }
                }
                () = idle, if !(at_once && busy()) => {
                    if !busy() {
                        return End::Idle;
                    }
                    used = tokio::time::Instant::now();
                }
            }
        }
    }

    async fn finish(&mut self, running: Running, end: End, uptime: Duration) -> Option<Option<Stop>> {
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

fn disabled() -> Fault {
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
