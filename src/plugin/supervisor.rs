//! One task for each enabled plugin: starts it when it is needed, ends it when it is not, and sees to it
//! that there are never two processes of it.

mod end;
mod running;
mod task;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot};

use self::task::Task;
use super::answers::Answers;
use super::backoff::Backoff;
use super::rpc::Lease;
use super::start::{Plan, StartFailure};
use segue_protocol::{ErrorCode, Fault};

/// Commands that wait for the task; more make their senders wait.
const MAX_COMMANDS: usize = 64;
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
