//! Starting and ending processes. Nothing else in the program does.
//!
//! All processes are started by one thread that lives as long as the program: the kernel tells a child (PDEATHSIG)
//! when the *thread* that forked it ends. Reaping goes through that thread as well, so that no process is started
//! before the one it replaces is gone.
//!
//! A plugin is started through `segue-plugin-runner`, within bubblewrap where that works and under a keeper
//! elsewhere (`spawn`). What it may touch (`access`) becomes mounts (`sandbox`) and rules (the runner's), by the
//! task that both programs know (`contract`). The runner tells what holds (`isolation`) before the plugin runs.

mod access;
mod child_setup;
mod contract;
mod isolation;
mod pidfd;
mod sandbox;
mod spawn;
pub(super) mod strays;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc;

use nix::sys::signal::Signal;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::oneshot;

pub(super) use access::Launch;
pub use contract::Gap;
pub(super) use contract::PATH;
pub use isolation::{Isolation, Means};
pub use spawn::LaunchError;

use access::Stamp;
use pidfd::PidFd;
use spawn::{END, KILL_TIMEOUT, Remains, Started, Tools};

/// The runner's file name.
const RUNNER: &str = "segue-plugin-runner";
/// Where packages install the runner.
const RUNNER_FOLDER: &str = "/usr/lib/segue";

/// Where the runner is: beside this program or in the folder above, as in a build folder, else where packages put
/// it.
pub(super) fn find_runner() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let near = own.ancestors().skip(1).take(2).map(|folder| folder.join(RUNNER));
    near.into_iter().find(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(RUNNER_FOLDER).join(RUNNER))
}

enum Job {
    Start(Box<StartJob>),
    /// Answered with how it ended.
    Reap(Box<Remains>, Option<oneshot::Sender<String>>),
    /// Answered when everything before it is done.
    Barrier(oneshot::Sender<()>),
}

struct StartJob {
    launch: Launch,
    isolation: Isolation,
    answer: oneshot::Sender<Result<Started, LaunchError>>,
}

/// Starts processes, confined where that works.
#[derive(Clone)]
pub(super) struct Launcher {
    jobs: mpsc::Sender<Job>,
    expected: Isolation,
}

impl Launcher {
    /// Starts the spawner thread and finds out, by trying, what confines plugins here.
    pub(super) async fn new(bubblewrap: PathBuf, runner: PathBuf) -> io::Result<Launcher> {
        let (jobs, queue) = mpsc::channel();
        let (tried, expected) = oneshot::channel();
        std::thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            let tools = Tools { bubblewrap, runner };
            let _ = tried.send(spawn::try_out(&tools));
            // Ends with the last launcher, that is, after the host's shutdown.
            for job in queue {
                work(job, &tools);
            }
        })?;
        let expected = expected.await.map_err(io::Error::other)?;
        Ok(Launcher { jobs, expected })
    }

    /// What confines plugins here, as a trial without scopes has shown.
    pub(super) fn isolation(&self) -> &Isolation {
        &self.expected
    }

    /// Starts a process. It ends when the handle is dropped.
    pub(super) async fn start(&self, launch: Launch) -> Result<(Process, Pipes), LaunchError> {
        let (answer, started) = oneshot::channel();
        let job = Job::Start(Box::new(StartJob { launch, isolation: self.expected.clone(), answer }));
        self.jobs.send(job).map_err(|_| io::Error::other("the spawner thread is gone"))?;
        let mut started = started.await.map_err(io::Error::other)??;
        let child = &mut started.remains.child;
        let pid = child.id();
        let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let connect = || {
            let handle = PidFd::new(pid, started.pidfd)?;
            let first = started.first.map(|(pid, fd)| PidFd::new(pid, fd)).transpose()?;
            let ((stdin, stdout), stderr) = pipes.ok_or_else(|| io::Error::other("no pipes"))?;
            let pipes = Pipes {
                stdin: ChildStdin::from_std(stdin)?,
                stdout: ChildStdout::from_std(stdout)?,
                stderr: ChildStderr::from_std(stderr)?,
            };
            Ok::<_, io::Error>((handle, first, pipes))
        };
        match connect() {
            Ok((handle, first, pipes)) => {
                let isolation = Isolation { measured: started.measured, ..self.expected.clone() };
                let (remains, jobs, stamp) = (Some(started.remains), self.jobs.clone(), started.stamp);
                Ok((Process { remains, jobs, handle, first, isolation, stamp }, pipes))
            }
            Err(error) => {
                let _ = self.jobs.send(Job::Reap(Box::new(started.remains), None));
                Err(error.into())
            }
        }
    }

    /// Returns when every process whose handle was dropped before is gone.
    pub(super) async fn settled(&self) {
        let (done, wait) = oneshot::channel();
        if self.jobs.send(Job::Barrier(done)).is_ok() {
            let _ = wait.await;
        }
    }
}

fn work(job: Job, tools: &Tools) {
    match job {
        Job::Start(job) => {
            let started = spawn::start(&job.launch, tools, &job.isolation);
            // Nobody waits for it any more.
            if let Err(Ok(started)) = job.answer.send(started) {
                started.remains.end();
            }
        }
        Job::Reap(remains, answer) => {
            let status = remains.end();
            if let Some(answer) = answer {
                let _ = answer.send(status);
            }
        }
        Job::Barrier(done) => {
            let _ = done.send(());
        }
    }
}

/// The three descriptors of a plugin.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// A running plugin with all its descendants.
pub(super) struct Process {
    remains: Option<Remains>,
    jobs: mpsc::Sender<Job>,
    /// bubblewrap or the keeper.
    handle: PidFd,
    /// The first process of bubblewrap's namespace; without one there is a keeper.
    first: Option<PidFd>,
    isolation: Isolation,
    stamp: Option<Stamp>,
}

impl Process {
    /// What keeps this very process in bounds.
    pub(super) fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// Whether it sees files for resolving names that are not the present ones.
    pub(super) fn is_outdated(&self) -> bool {
        self.stamp.as_ref().is_some_and(|stamp| *stamp != Stamp::now())
    }

    /// Returns when the plugin's own process has ended. Descendants may still live until the handle is
    /// dropped or [`Process::kill`] returns.
    pub(super) async fn ended(&self) {
        self.handle.ended().await;
    }

    /// Asks the plugin, not the confinement around it, to end.
    pub(super) fn terminate(&self) {
        let Some(first) = &self.first else {
            // The keeper passes it on.
            self.handle.signal(Signal::SIGTERM);
            return;
        };
        for pid in children(first.pid()) {
            if let Ok(fd) = PidFd::open_raw(pid) {
                // Asked again: only a process that is still that child is meant.
                if children(first.pid()).contains(&pid) {
                    pidfd::send(&fd, Signal::SIGTERM);
                }
            }
        }
    }

    /// Ends it with all descendants and returns how it ended, when all are gone.
    pub(super) async fn kill(mut self) -> String {
        let Some(remains) = self.remains.take() else { return String::new() };
        // What holds the plugin ends after it, and has then reaped what it held.
        match &self.first {
            Some(first) => first.signal(Signal::SIGKILL),
            None => self.handle.signal(END),
        }
        let _ = tokio::time::timeout(KILL_TIMEOUT, self.handle.ended()).await;
        let (answer, status) = oneshot::channel();
        let _ = self.jobs.send(Job::Reap(Box::new(remains), Some(answer)));
        status.await.unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(remains) = self.remains.take() {
            let _ = self.jobs.send(Job::Reap(Box::new(remains), None));
        }
    }
}

/// Children of a process, from the kernel's own list.
fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}
