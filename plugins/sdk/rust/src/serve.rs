//! The loop: lines in, calls on a few threads, whole lines out.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use segue_protocol::manifest::Manifest;
use segue_protocol::{Line as Text, LineReader};
use serde::Deserialize;

use crate::answer::{Call, Line};
use crate::{Plugin, log};

/// Calls that run at the same time.
const THREADS: usize = 4;
/// Calls that wait for a thread. The player never has more than 17 on their way.
const WAITING: usize = 32;
/// How long calls may go on when nobody will ask any more.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Serves until the player closes standard input. `manifest` is the text of `plugin.json`, from which id, version and
/// capabilities are taken.
pub fn run(manifest: &str, plugin: impl Plugin + 'static) -> ExitCode {
    let manifest = match parse(manifest) {
        Ok(manifest) => manifest,
        Err(error) => {
            log::error(error);
            return ExitCode::FAILURE;
        }
    };
    std::panic::set_hook(Box::new(|panic| log::error(panic)));
    match protocol_pipes() {
        Ok((input, output)) => {
            let (plugin, output) = (Box::new(plugin), Mutex::new(output));
            Server { manifest, plugin, output, started: AtomicBool::new(false) }.serve(input)
        }
        Err(error) => {
            log::error(format_args!("standard input and output cannot be used: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn parse(text: &str) -> Result<Manifest, String> {
    #[derive(Deserialize)]
    struct Id {
        id: String,
    }
    let Id { id } = serde_json::from_str(text).map_err(|error| format!("plugin.json: {error}"))?;
    Manifest::parse(text.as_bytes(), &id).map_err(|error| error.to_string())
}

/// The pipes to and from the player, out of the reach of the plugin, its libraries and children: what they print goes
/// to standard error, and where they read there is nothing. (A child that inherits standard input eats requests.)
fn protocol_pipes() -> io::Result<(File, File)> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // A pipe without a writer is always at its end, and needs no /dev.
    let (empty, _) = io::pipe()?;
    nix::unistd::dup2_stdin(empty)?;
    nix::unistd::dup2_stdout(io::stderr())?;
    Ok((input, output))
}

struct Server {
    manifest: Manifest,
    plugin: Box<dyn Plugin>,
    output: Mutex<File>,
    started: AtomicBool,
}

impl Server {
    fn serve(self, input: File) -> ExitCode {
        let server = Arc::new(self);
        let (calls, queue) = sync_channel::<Call>(WAITING);
        let queue = Arc::new(Mutex::new(queue));
        let (ended, ends) = channel::<()>();
        for _ in 0..THREADS {
            let (server, queue, ended) = (server.clone(), queue.clone(), ended.clone());
            thread::spawn(move || {
                server.work(&queue);
                let _ = ended.send(());
            });
        }
        drop(ended);
        if let Err(error) = server.read(input, &calls) {
            log::error(format_args!("standard input: {error}"));
        }
        drop(calls);
        let until = Instant::now() + LAST_ANSWERS;
        while ends.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
        ExitCode::SUCCESS
    }

    fn work(&self, queue: &Mutex<Receiver<Call>>) {
        loop {
            let call = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(call) = call else { return };
            self.write(&call.answer(&self.manifest, &*self.plugin));
        }
    }

    fn read(&self, mut input: File, calls: &SyncSender<Call>) -> io::Result<()> {
        let mut lines = LineReader::default();
        let mut piece = [0; 16 * 1024];
        loop {
            let read = match input.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let mut bytes = &piece[..read];
            while let Some(line) = lines.take(&mut bytes) {
                self.take(line, calls);
            }
            if read == 0 {
                if let Some(line) = lines.rest() {
                    self.take(line, calls);
                }
                return Ok(());
            }
        }
    }

    fn take(&self, line: Text, calls: &SyncSender<Call>) {
        let line = match line {
            Text::Text(text) => Line::read(&text),
            Text::TooLong | Text::NotUtf8 => Line::junk(),
        };
        match line {
            Line::Call(call) if call.is_start() && self.started.swap(true, Ordering::Relaxed) => {
                self.write(&call.again());
            }
            // The start comes before everything else; a ping waits for nothing.
            Line::Call(call) if call.is_start() || call.is_ping() => {
                self.write(&call.answer(&self.manifest, &*self.plugin));
            }
            Line::Call(call) => {
                let _ = calls.send(call);
            }
            Line::Answer(answer) => self.write(&answer),
            Line::Silence => {}
        }
    }

    /// One write for a whole line, so that the player sees it at once and unmixed.
    fn write(&self, line: &[u8]) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if output.write_all(line).is_err() {
            // Nobody listens any more.
            std::process::exit(0);
        }
    }
}
