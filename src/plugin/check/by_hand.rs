//! One call by hand.

use std::time::{Duration, Instant};

use segue_protocol::messages::Message;
use segue_protocol::{ErrorCode, Fault, Line};
use serde_json::Value;

use super::super::log::{Log, LogLine};
use super::super::package::Package;
use super::super::process::Launcher;
use super::bench::{self, Bench};
use super::run::{Heard, Run};
use super::{CheckError, Options, calls, seconds};

/// How long the plugin may take to end afterwards.
const END: Duration = Duration::from_secs(2);

/// The call.
#[derive(Clone, Debug)]
pub struct ByHand {
    /// Its method; any word.
    pub method: String,
    /// Its parameters.
    pub params: Option<Value>,
    /// How long to wait; without it, what the manifest and the protocol give.
    pub patience: Option<Duration>,
}

/// What happens meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen<'a> {
    /// A line that was written to the plugin, without its end and without secrets.
    Sent(&'a str),
    /// A line of the plugin's other than the reply.
    Received(&'a str),
    /// A line on standard error.
    Log(LogLine),
}

/// The reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The line as it came.
    pub line: String,
    /// The error that it is, or what of it the daemon would refuse.
    pub fault: Option<Fault>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum CallFailure {
    /// It could not be tried.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The plugin did not answer.
    #[error("{0}")]
    Plugin(String),
}

/// Starts the plugin as a check does, with `initialize` before the call, and ends it again.
///
/// # Errors
/// No package that can be run, or no reply.
pub async fn call(
    options: &Options,
    by_hand: &ByHand,
    mut see: impl FnMut(Seen<'_>),
) -> Result<Reply, CallFailure> {
    let place = bench::place(options)?;
    let folder = place.folder.clone();
    let read = tokio::task::spawn_blocking(move || Package::read(&folder)).await;
    let read = read.map_err(|error| CheckError::Package(error.to_string()))?;
    let package = read.map_err(|error| CheckError::Package(error.to_string()))?;
    let launcher = Launcher::new(options.bubblewrap.clone(), options.runner.clone())
        .await
        .map_err(bench::scratch("a thread"))?;
    let bench = Bench::new(place, package, options, launcher.clone()).await?;
    let run = bench.start().await;
    let run = run.map_err(|why| CallFailure::Plugin(format!("the plugin cannot be started: {why}")))?;
    let mut caller =
        Caller { bench: &bench, run, log: Tail { log: bench.log.clone(), told: 0 }, see: &mut see };
    let outcome = caller.both(by_hand).await;
    let Caller { mut run, mut log, see, .. } = caller;
    run.close_input();
    run.ends_within(END).await;
    let (status, _) = run.finish().await;
    log.tell(see);
    launcher.settled().await;
    outcome.map_err(|why| CallFailure::Plugin(format!("{why}; {status}")))
}

/// Tells each line of the log once.
struct Tail {
    log: Log,
    told: u64,
}

impl Tail {
    fn tell(&mut self, see: &mut dyn FnMut(Seen<'_>)) {
        let (newest, lines) = self.log.after(self.told);
        self.told = newest;
        lines.into_iter().for_each(|line| see(Seen::Log(line)));
    }
}

struct Caller<'a> {
    bench: &'a Bench,
    run: Run,
    log: Tail,
    see: &'a mut dyn FnMut(Seen<'_>),
}

impl Caller<'_> {
    async fn both(&mut self, by_hand: &ByHand) -> Result<Reply, String> {
        let timeouts = self.bench.manifest.timeouts;
        let initialize = serde_json::to_value(self.bench.initialize()).map_err(|error| error.to_string())?;
        if by_hand.method == "initialize" {
            let params = by_hand.params.clone().unwrap_or(initialize);
            return self
                .one("initialize", Some(params), by_hand.patience.unwrap_or(timeouts.initialize))
                .await;
        }
        let shaken = self.one("initialize", Some(initialize), timeouts.initialize).await?;
        (self.see)(Seen::Received(&shaken.line));
        if let Some(fault) = shaken.fault.filter(|fault| fault.code != ErrorCode::MethodNotFound) {
            return Err(format!("initialize was answered with {}: {}", fault.code, fault.message));
        }
        let known = [
            ("ping", timeouts.ping),
            ("search", timeouts.search),
            ("get_track", timeouts.get_track),
            ("get_album", timeouts.get_album),
            ("get_artist", timeouts.get_artist),
        ];
        let usual =
            known.iter().find(|(method, _)| *method == by_hand.method).map_or(timeouts.stream, |row| row.1);
        self.one(&by_hand.method, by_hand.params.clone(), by_hand.patience.unwrap_or(usual)).await
    }

    async fn one(
        &mut self,
        method: &str,
        params: Option<Value>,
        patience: Duration,
    ) -> Result<Reply, String> {
        let (id, line) = self.run.request(method, params).map_err(|error| error.to_string())?;
        (self.see)(Seen::Sent(&self.bench.redacted(line.trim_end())));
        self.run.write(&line).await.map_err(|error| format!("{method} could not be written: {error}"))?;
        let until = Instant::now() + patience;
        let mut fresh = self.bench.log.follow();
        loop {
            self.log.tell(self.see);
            let heard = tokio::select! {
                heard = self.run.hear(until) => heard,
                // Told at the top.
                _ = fresh.recv() => continue,
            };
            self.log.tell(self.see);
            match heard {
                Heard::End => return Err(format!("{method} got no answer")),
                Heard::Nothing => return Err(format!("{method} got no answer within {}", seconds(patience))),
                Heard::Line(Line::TooLong) => (self.see)(Seen::Received("a line of more than 10 MiB")),
                Heard::Line(Line::NotUtf8) => (self.see)(Seen::Received("a line that is not UTF-8")),
                Heard::Line(Line::Text(text)) => match Message::parse(text.clone()) {
                    Message::Reply(found, answer) if found == id => {
                        let fault = match answer {
                            Ok(result) => calls::refusal(method, &result, &self.bench.manifest.id),
                            Err(fault) => Some(fault),
                        };
                        return Ok(Reply { line: text, fault });
                    }
                    _ => (self.see)(Seen::Received(&text)),
                },
            }
        }
    }
}
