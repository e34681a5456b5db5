//! Starting and ending processes. Nothing else in the program does.
//!
//! All processes are started by one thread that lives as long as the program: the kernel ends a child
//! with PDEATHSIG when the *thread* that forked it ends. Reaping goes through that thread as well, so that
//! no process is started before the one it replaces is gone.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::oneshot;

use super::child_setup;
use super::pidfd::{self, PidFd};
use super::sandbox::{Launch, PATH, confinement};

/// How long bubblewrap may take until it tells its child's process id.
const CONFINEMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the kernel may take to end what was sent SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Processes of one plugin that are looked for where no namespace holds them.
const MAX_DESCENDANTS: usize = 1_024;

/// What keeps plugins in bounds on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// bubblewrap: own user, process and mount namespaces, and no network unless granted.
    Bubblewrap,
    /// A plain child; why it is not confined.
    Advisory(String),
}

impl std::fmt::Display for Isolation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Isolation::Bubblewrap => f.write_str("enforced (bubblewrap)"),
            Isolation::Advisory(why) => write!(f, "advisory ({why})"),
        }
    }
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
    confined: bool,
    answer: oneshot::Sender<io::Result<Started>>,
}

/// A process as the spawner hands it over.
struct Started {
    remains: Remains,
    pidfd: OwnedFd,
    first: Option<(u32, OwnedFd)>,
}

/// What must be ended and reaped.
struct Remains {
    child: Child,
    /// The first process of the PID namespace, whose end is the end of all.
    first: Option<OwnedFd>,
}

impl Remains {
    /// Not reaped before this, so that the group's number is still its own.
    fn end(mut self) -> String {
        kill_group(self.child.id());
        if let Some(first) = &self.first {
            pidfd::send(first, Signal::SIGKILL);
        }
        let _ = self.child.kill();
        let status = self.child.wait();
        if let Some(first) = &self.first {
            wait_readable(first, KILL_TIMEOUT);
        }
        status.map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

fn kill_group(pid: u32) {
    let _ = killpg(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
}

fn wait_readable(fd: &impl AsFd, timeout: Duration) -> bool {
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    nix::poll::poll(&mut fds, timeout).is_ok_and(|ready| ready > 0)
}

/// Starts processes, confined where that works.
#[derive(Clone)]
pub(super) struct Launcher {
    jobs: mpsc::Sender<Job>,
    isolation: Isolation,
}

impl Launcher {
    /// Starts the spawner thread and finds out, by trying, whether bubblewrap works here.
    pub(super) async fn new(bubblewrap: &Path) -> io::Result<Launcher> {
        let (jobs, queue) = mpsc::channel();
        let bubblewrap = bubblewrap.to_owned();
        let (tried, isolation) = oneshot::channel();
        std::thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            let _ = tried.send(try_bubblewrap(&bubblewrap));
            // Ends with the last launcher, that is, after the host's shutdown.
            for job in queue {
                work(job, &bubblewrap);
            }
        })?;
        let isolation = isolation.await.map_err(io::Error::other)?;
        Ok(Launcher { jobs, isolation })
    }

    pub(super) fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// Starts a process. It ends when the handle is dropped.
    pub(super) async fn start(&self, launch: Launch) -> io::Result<(Process, Pipes)> {
        let (answer, started) = oneshot::channel();
        let confined = self.isolation == Isolation::Bubblewrap;
        let job = Job::Start(Box::new(StartJob { launch, confined, answer }));
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
            Ok((handle, first, pipes))
        };
        match connect() {
            Ok((handle, first, pipes)) => {
                let (remains, jobs) = (Some(started.remains), self.jobs.clone());
                Ok((Process { remains, jobs, handle, first, left: Vec::new() }, pipes))
            }
            Err(error) => {
                let _ = self.jobs.send(Job::Reap(Box::new(started.remains), None));
                Err(error)
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
    handle: PidFd,
    first: Option<PidFd>,
    /// Descendants that were seen before the plugin was asked to end.
    left: Vec<OwnedFd>,
}

impl Process {
    /// Returns when the plugin's own process has ended. Descendants may still live until the handle is
    /// dropped or [`Process::kill`] returns.
    pub(super) async fn ended(&self) {
        self.handle.ended().await;
    }

    /// Asks the plugin, not the confinement around it, to end.
    pub(super) fn terminate(&self) {
        let Some(first) = &self.first else {
            let group = Pid::from_raw(self.handle.pid().cast_signed());
            let _ = killpg(group, Signal::SIGTERM);
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

    /// Remembers what descends from the plugin now, where no namespace does that.
    pub(super) fn note_descendants(&mut self) {
        if self.first.is_none() {
            self.left.extend(descendants(self.handle.pid()));
        }
    }

    /// Ends it with all descendants and returns how it ended, when all are gone.
    pub(super) async fn kill(mut self) -> String {
        let Some(remains) = self.remains.take() else { return String::new() };
        // Without a namespace those that left the group are found as long as their parents live.
        self.note_descendants();
        kill_group(self.handle.pid());
        self.left.iter().for_each(|process| pidfd::send(process, Signal::SIGKILL));
        self.handle.signal(Signal::SIGKILL);
        if let Some(first) = &self.first {
            first.signal(Signal::SIGKILL);
            let _ = tokio::time::timeout(KILL_TIMEOUT, first.ended()).await;
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

/// Whose child a process is.
fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Handles of all that descends from a process now.
fn descendants(pid: u32) -> Vec<OwnedFd> {
    let mut waiting = children(pid);
    let mut found = Vec::new();
    while let Some(next) = waiting.pop() {
        if found.len() < MAX_DESCENDANTS
            && let Ok(handle) = PidFd::open_raw(next)
        {
            waiting.extend(children(next));
            found.push(handle);
        }
    }
    found
}

fn work(job: Job, bubblewrap: &Path) {
    match job {
        Job::Start(job) => {
            let StartJob { launch, confined, answer } = *job;
            let started = if confined { start_confined(&launch, bubblewrap) } else { start_plain(&launch) };
            if let Err(Ok(unwanted)) = answer.send(started) {
                let _ = unwanted.remains.end();
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

fn start_plain(launch: &Launch) -> io::Result<Started> {
    let mut command = Command::new(&launch.program);
    command.args(&launch.arguments).current_dir(&launch.package);
    let tmp = launch.cache.join("tmp");
    std::fs::create_dir_all(&tmp)?;
    prepare(&mut command, &tmp, None);
    let mut child = command.spawn()?;
    match PidFd::open_raw(child.id()) {
        Ok(pidfd) => Ok(Started { remains: Remains { child, first: None }, pidfd, first: None }),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}

fn start_confined(launch: &Launch, bubblewrap: &Path) -> io::Result<Started> {
    let mut words = vec![launch.program.clone().into_os_string()];
    words.extend(launch.arguments.iter().map(Into::into));
    start_bubblewrap(bubblewrap, Some(launch), &words)
}

fn start_bubblewrap(
    bubblewrap: &Path,
    launch: Option<&Launch>,
    program: &[std::ffi::OsString],
) -> io::Result<Started> {
    let (info, told) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let mut command = Command::new(bubblewrap);
    command.args(confinement(launch, told.as_raw_fd())).args(program).current_dir("/");
    prepare(&mut command, Path::new("/tmp"), Some(told.as_raw_fd()));
    let child = command.spawn()?;
    drop(told);
    let mut remains = Remains { child, first: None };
    let opened = PidFd::open_raw(remains.child.id()).and_then(|own| Ok((own, told_pid(info)?)));
    match opened {
        Ok((pidfd, pid)) => {
            // A program that has ended by now needs no handles; its number may be somebody else's already.
            let handles = PidFd::open_raw(pid).and_then(|first| Ok((first, PidFd::open_raw(pid)?)));
            let handles = handles.ok().filter(|_| parent(pid) == Some(remains.child.id()));
            let (first, again) = handles.unzip();
            remains.first = again;
            Ok(Started { remains, pidfd, first: first.map(|first| (pid, first)) })
        }
        Err(error) => {
            let mut words = String::new();
            if let Some(stderr) = remains.child.stderr.take() {
                let _ = remains.child.kill();
                let _ = stderr.take(2_048).read_to_string(&mut words);
            }
            remains.end();
            Err(io::Error::other(format!("bubblewrap does not start: {error} {}", words.trim())))
        }
    }
}

/// bubblewrap writes `{"child-pid": N, …}` before it starts anything.
fn told_pid(info: OwnedFd) -> io::Result<u32> {
    #[derive(serde::Deserialize)]
    struct Told {
        #[serde(rename = "child-pid")]
        child_pid: u32,
    }
    let mut text = Vec::new();
    let mut pipe = File::from(info);
    let mut piece = [0; 1_024];
    loop {
        if !wait_readable(&pipe, CONFINEMENT_TIMEOUT) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let read = pipe.read(&mut piece)?;
        text.extend_from_slice(&piece[..read]);
        if let Ok(told) = serde_json::from_slice::<Told>(&text) {
            return Ok(told.child_pid);
        }
        if read == 0 || text.len() > 16_384 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn prepare(command: &mut Command, tmp: &Path, keep: Option<i32>) {
    command.env_clear().env("PATH", PATH).env("LANG", "C.UTF-8").env("TMPDIR", tmp);
    command.env("SEGUE_PLUGIN_PROTOCOL", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0);
    child_setup::in_child(command, keep);
}

/// Runs `true` as a plugin would be run.
fn try_bubblewrap(bubblewrap: &Path) -> Isolation {
    if !bubblewrap.exists() {
        return Isolation::Advisory("bubblewrap is not installed".to_owned());
    }
    let started = match start_bubblewrap(bubblewrap, None, &["/usr/bin/true".into()]) {
        Ok(started) => started,
        Err(error) => return Isolation::Advisory(error.to_string()),
    };
    let Started { mut remains, pidfd, first: _ } = started;
    wait_readable(&pidfd, CONFINEMENT_TIMEOUT);
    let mut words = String::new();
    let stderr = remains.child.stderr.take();
    let status = remains.end();
    if status == "exit status: 0" {
        return Isolation::Bubblewrap;
    }
    if let Some(stderr) = stderr {
        let _ = stderr.take(2_048).read_to_string(&mut words);
    }
    Isolation::Advisory(format!("bubblewrap: {status} {}", words.trim()))
}
