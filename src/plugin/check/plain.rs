//! A plugin as a plain child of ours, for finding out whether its confinement is in its way. Only here: the daemon
//! starts none like this.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::task::JoinHandle;

use super::super::process::{Launch, PATH, Pipes};

/// Leads a process group of its own. Ends with this handle.
pub(super) struct Plain {
    child: Child,
    ended: JoinHandle<()>,
    over: bool,
    reaped: bool,
}

impl Plain {
    /// With the environment that a plugin has.
    pub(super) fn start(launch: &Launch) -> io::Result<(Plain, Pipes)> {
        let tmp = launch.cache.join("tmp");
        std::fs::create_dir_all(&tmp)?;
        let mut command = Command::new(&launch.program);
        command.args(&launch.arguments).current_dir(&launch.package).process_group(0);
        command.env_clear().env("PATH", PATH).env("LANG", "C.UTF-8").env("TMPDIR", tmp);
        command.env("SEGUE_PLUGIN_PROTOCOL", "1").env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let pid = Pid::from_raw(child.id().cast_signed());
        // Not reaped by this, so that the group's number stays its own.
        let ended = tokio::task::spawn_blocking(move || {
            let options = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
            while waitid(Id::Pid(pid), options) == Err(Errno::EINTR) {}
        });
        let plain = Plain { child, ended, over: false, reaped: false };
        let ((stdin, stdout), stderr) = pipes.ok_or_else(|| io::Error::other("no pipes"))?;
        let pipes = Pipes {
            stdin: ChildStdin::from_std(stdin)?,
            stdout: ChildStdout::from_std(stdout)?,
            stderr: ChildStderr::from_std(stderr)?,
        };
        Ok((plain, pipes))
    }

    pub(super) async fn ended(&mut self) {
        if !self.over {
            let _ = (&mut self.ended).await;
            self.over = true;
        }
    }

    /// Ends it with all that stayed in its group, and says how it ended.
    pub(super) async fn kill(mut self) -> String {
        self.kill_group();
        self.ended().await;
        self.reaped = true;
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    fn kill_group(&self) {
        let _ = killpg(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGKILL);
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // After it was reaped its number may be somebody else's.
        if !self.reaped {
            self.kill_group();
            let _ = self.child.wait();
        }
    }
}
