//! From a launch to a confined process, and what is known about it then.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::access::{Configuration, Launch, Stamp};
use super::contract::{INSIDE, KEEPER, Measured, PATH, Said};
use super::isolation::{Isolation, Means};
use super::pidfd::{self, PidFd};
use super::{child_setup, sandbox};

/// How long confining a plugin may take. The runner ends what takes longer.
const CONFINEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the kernel may take to end what was sent SIGKILL.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// What the runner or bubblewrap may say, in bytes.
const MAX_SAID: usize = 16_384;
/// Has a keeper end everything. The kernel sends it at the daemon's end.
pub(super) const END: Signal = Signal::SIGHUP;

/// The programs that confine plugins.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    pub(super) bubblewrap: PathBuf,
    pub(super) runner: PathBuf,
}

/// Why a plugin was not started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Nothing confines plugins.
    #[error("{} cannot be run ({why}), and without it no plugin is started: install segue again", path.display())]
    Runner {
        /// Where it should be.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// It may run only confined, and it is not.
    #[error("require_sandbox is set, and it cannot be confined here: {0}")]
    Unconfined(Box<Isolation>),
    /// The runner gave up.
    #[error("{0}")]
    Failed(String),
    /// No process or no pipe.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A process as the spawner hands it over.
pub(super) struct Started {
    pub(super) remains: Remains,
    pub(super) pidfd: OwnedFd,
    pub(super) first: Option<(u32, OwnedFd)>,
    pub(super) measured: Measured,
    /// Set when the plugin must be started again after the files for resolving names changed.
    pub(super) stamp: Option<Stamp>,
}

/// What must be ended and reaped.
pub(super) struct Remains {
    pub(super) child: Child,
    held_by: HeldBy,
}

/// What ends a plugin's descendants, and then itself.
enum HeldBy {
    /// The end of the namespace's first process, whose handle comes second. bubblewrap itself, the first handle,
    /// reaps it.
    Namespace(Option<OwnedFd>, Option<OwnedFd>),
    /// The keeper, when asked to.
    Keeper(Option<OwnedFd>),
}

impl Remains {
    /// Not reaped before this, so that the child's number is still its own.
    pub(super) fn end(mut self) -> String {
        match &self.held_by {
            HeldBy::Keeper(Some(keeper)) => {
                pidfd::send(keeper, END);
                wait_readable(keeper, KILL_TIMEOUT);
            }
            HeldBy::Namespace(Some(own), Some(first)) => {
                pidfd::send(first, Signal::SIGKILL);
                wait_readable(own, KILL_TIMEOUT);
            }
            HeldBy::Keeper(None) | HeldBy::Namespace(..) => {}
        }
        if let HeldBy::Namespace(..) = &self.held_by {
            // Also bubblewrap's child that does not ask yet to end with it.
            let _ = killpg(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGKILL);
        }
        let _ = self.child.kill();
        let status = self.child.wait();
        if let HeldBy::Namespace(_, Some(first)) = &self.held_by {
            wait_readable(first, KILL_TIMEOUT);
        }
        status.map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    /// Ends what did not become a plugin; returns what it said on standard error.
    fn last_words(mut self) -> String {
        let mut words = Vec::new();
        let stderr = self.child.stderr.take();
        self.end();
        if let Some(stderr) = stderr {
            let _ = stderr.take(2_048).read_to_end(&mut words);
        }
        String::from_utf8_lossy(&words).trim().to_owned()
    }
}

pub(super) fn wait_readable(fd: &impl AsFd, timeout: Duration) -> bool {
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    nix::poll::poll(&mut fds, timeout).is_ok_and(|ready| ready > 0)
}

/// Starts a plugin. It runs when this returns.
pub(super) fn start(launch: &Launch, tools: &Tools, isolation: &Isolation) -> Result<Started, LaunchError> {
    let runner = |why: String| LaunchError::Runner { path: tools.runner.clone(), why };
    std::fs::metadata(&tools.runner).map_err(|error| runner(error.to_string()))?;
    let (status, told) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(io::Error::from)?;
    let system = Configuration::of(launch.network);
    let stamp = launch.network.then(Stamp::now);
    let starting = match isolation.means {
        Means::Nothing => return Err(runner(isolation.why.clone())),
        Means::Bubblewrap => start_inside(launch, &system, tools, told)?,
        Means::Keeper => {
            std::fs::create_dir_all(sandbox::tmp_folder(launch))?;
            start_keeper(launch, &system, tools, told).map_err(|error| runner(error.to_string()))?
        }
    };
    let said = lines_from(status);
    let holds = said.iter().find_map(|said| match said {
        Said::Holds(measured) => Some(measured.clone()),
        Said::Failed(_) => None,
    });
    let failed = said.iter().find_map(|said| match said {
        Said::Failed(why) => Some(why.clone()),
        Said::Holds(_) => None,
    });
    match (holds, failed) {
        (Some(measured), None) => {
            let Starting { remains, pidfd, first } = starting;
            Ok(Started { remains, pidfd, first, measured, stamp })
        }
        (Some(measured), Some(why)) => {
            starting.remains.end();
            let isolation = Isolation { measured, ..isolation.clone() };
            if launch.require_sandbox && !isolation.is_enforced() {
                return Err(LaunchError::Unconfined(Box::new(isolation)));
            }
            Err(LaunchError::Failed(why))
        }
        (None, Some(why)) => {
            starting.remains.end();
            Err(LaunchError::Failed(why))
        }
        (None, None) => Err(LaunchError::Failed(format!(
            "it cannot be confined: {}",
            or_silence(starting.remains.last_words())
        ))),
    }
}

fn or_silence(words: String) -> String {
    if words.is_empty() { "nothing says why".to_owned() } else { words }
}

/// A process that is about to become a plugin.
struct Starting {
    remains: Remains,
    pidfd: OwnedFd,
    first: Option<(u32, OwnedFd)>,
}

/// The runner's arguments, and the plugin's command line behind them.
fn words(
    mode: &str,
    status: i32,
    task: &super::contract::Task,
    launch: &Launch,
) -> io::Result<Vec<OsString>> {
    let task = serde_json::to_string(task).map_err(io::Error::other)?;
    let mut words: Vec<OsString> =
        [mode, &status.to_string(), &task, "--"].into_iter().map(OsString::from).collect();
    words.push(launch.program.clone().into());
    words.extend(launch.arguments.iter().map(OsString::from));
    Ok(words)
}

fn start_keeper(
    launch: &Launch,
    system: &Configuration,
    tools: &Tools,
    told: OwnedFd,
) -> io::Result<Starting> {
    let task = sandbox::task(launch, system, false)?;
    let mut command = Command::new(&tools.runner);
    command.args(words(KEEPER, told.as_raw_fd(), &task, launch)?);
    prepare(&mut command, END, [Some(told.as_raw_fd()), None]);
    let child = command.spawn()?;
    let mut remains = Remains { child, held_by: HeldBy::Keeper(None) };
    let opened = PidFd::open_raw(remains.child.id()).and_then(|own| Ok((own.try_clone()?, own)));
    match opened {
        Ok((again, pidfd)) => {
            remains.held_by = HeldBy::Keeper(Some(again));
            Ok(Starting { remains, pidfd, first: None })
        }
        Err(error) => {
            remains.end();
            Err(error)
        }
    }
}

fn start_inside(
    launch: &Launch,
    system: &Configuration,
    tools: &Tools,
    told: OwnedFd,
) -> Result<Starting, LaunchError> {
    let (info, info_told) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(io::Error::from)?;
    let task = sandbox::task(launch, system, true)?;
    let mut command = Command::new(&tools.bubblewrap);
    command.args(sandbox::confinement(launch, system, &tools.runner, info_told.as_raw_fd()));
    command.arg(sandbox::runner_inside(&tools.runner));
    command.args(words(INSIDE, told.as_raw_fd(), &task, launch)?);
    prepare(&mut command, Signal::SIGKILL, [Some(told.as_raw_fd()), Some(info_told.as_raw_fd())]);
    let child = command.spawn()?;
    drop((told, info_told));
    let mut remains = Remains { child, held_by: HeldBy::Namespace(None, None) };
    let opened = PidFd::open_raw(remains.child.id()).and_then(|own| Ok((own, told_pid(info)?)));
    match opened {
        Ok((pidfd, pid)) => {
            // A program that has ended by now needs no handles; its number may be somebody else's already.
            let handles = PidFd::open_raw(pid).and_then(|first| Ok((first.try_clone()?, first)));
            let handles = handles.ok().filter(|_| parent(pid) == Some(remains.child.id()));
            let (first, again) = handles.unzip();
            remains.held_by = HeldBy::Namespace(pidfd.try_clone().ok(), again);
            Ok(Starting { remains, pidfd, first: first.map(|first| (pid, first)) })
        }
        Err(error) => {
            let words = remains.last_words();
            Err(LaunchError::Failed(format!("bubblewrap does not start it: {error} {words}")))
        }
    }
}

/// Whose child a process is.
fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Reads until `done` finds what it wants, the end, or the time is over.
fn read_until<T>(pipe: OwnedFd, mut done: impl FnMut(&[u8]) -> Option<T>) -> io::Result<T> {
    let until = Instant::now() + CONFINEMENT_TIMEOUT;
    let mut text = Vec::new();
    let mut pipe = File::from(pipe);
    let mut piece = [0; 1_024];
    loop {
        if !wait_readable(&pipe, until.saturating_duration_since(Instant::now())) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let read = pipe.read(&mut piece)?;
        text.extend_from_slice(&piece[..read]);
        if let Some(found) = done(&text) {
            return Ok(found);
        }
        if read == 0 || text.len() > MAX_SAID {
            return Err(io::ErrorKind::UnexpectedEof.into());
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
    read_until(info, |text| serde_json::from_slice::<Told>(text).ok().map(|told| told.child_pid))
}

/// What the runner said until it became the plugin or ended. One that hangs has said nothing.
fn lines_from(status: OwnedFd) -> Vec<Said> {
    let mut said = Vec::new();
    let ended = read_until(status, |text| -> Option<()> {
        said =
            text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        None
    });
    match ended {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => said,
        _ => vec![Said::Failed(format!("confining it took longer than {} s", CONFINEMENT_TIMEOUT.as_secs()))],
    }
}

fn prepare(command: &mut Command, death: Signal, keep: [Option<i32>; 2]) {
    // The runner gives the plugin its environment; bubblewrap and the runner need none.
    command.env_clear().env("PATH", PATH).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    child_setup::in_child(command, death, keep);
}

/// Runs a program that does nothing as a plugin would be run: first as it should be, then as it can be.
pub(super) fn try_out(tools: &Tools) -> Isolation {
    let nothing = Measured::default();
    let missing = |why: String| Isolation { means: Means::Nothing, measured: Measured::default(), why };
    if let Err(error) = std::fs::metadata(&tools.runner) {
        return missing(format!("{}: {error}", tools.runner.display()));
    }
    let mut isolation = Isolation { means: Means::Bubblewrap, measured: nothing, why: String::new() };
    let confined = if tools.bubblewrap.exists() {
        try_with(tools, &isolation)
    } else {
        Err("bubblewrap is not installed".to_owned())
    };
    match confined {
        Ok(measured) => Isolation { measured, ..isolation },
        Err(why) => {
            let why =
                if why.contains("bubblewrap") { why } else { format!("bubblewrap does not work: {why}") };
            isolation = Isolation { means: Means::Keeper, why, ..isolation };
            match try_with(tools, &isolation) {
                Ok(measured) => Isolation { measured, ..isolation },
                Err(why) => missing(why),
            }
        }
    }
}

fn try_with(tools: &Tools, isolation: &Isolation) -> Result<Measured, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let [package, data, cache] = ["package", "data", "cache"].map(|name| folder.path().join(name));
    for folder in [&package, &data, &cache] {
        std::fs::create_dir(folder).map_err(|error| error.to_string())?;
    }
    let launch = Launch {
        program: Path::new("/usr/bin/true").to_owned(),
        arguments: Vec::new(),
        package,
        data,
        cache,
        network: false,
        folders: Vec::new(),
        require_sandbox: false,
    };
    let started = start(&launch, tools, isolation).map_err(|error| error.to_string())?;
    let Started { remains, pidfd, measured, .. } = started;
    if !wait_readable(&pidfd, CONFINEMENT_TIMEOUT) {
        let words = remains.last_words();
        return Err(format!("a program that does nothing does not end: {words}"));
    }
    match remains.end() {
        status if status == "exit status: 0" => Ok(measured),
        status => Err(format!("a program that does nothing ends with {status}")),
    }
}
