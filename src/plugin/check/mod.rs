//! The contract check: runs a plugin as the daemon would and tries each rule that its author must keep. No daemon is
//! needed, and nothing is decided: the package may be one that nobody trusts yet.
//!
//! What the daemon refuses fails here, by the same parsers and the same rules; what the daemon would only suffer
//! from, such as a reply that is not flushed, is found here too. `bench` prepares what a start needs, `run` holds one
//! process with its bare pipes, and each of the other files tries one part of the contract.

mod bench;
mod by_hand;
mod calls;
mod ids;
mod manners;
mod package;
mod plain;
mod run;
mod session;
mod start;
mod urls;

use std::path::PathBuf;
use std::time::Duration;

pub use by_hand::{ByHand, CallFailure, Reply, Seen, call};

use super::log::LogLine;
use super::process::{Launcher, find_runner};
use bench::Bench;
use ids::Ids;
use session::Session;

/// What to check, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The package.
    pub folder: PathBuf,
    /// As the daemon confines it; else as a plain child, to see whether the confinement is in its way.
    pub sandbox: bool,
    /// The program that gives plugins namespaces of their own, an absolute path.
    pub bubblewrap: PathBuf,
    /// `segue-plugin-runner`, an absolute path.
    pub runner: PathBuf,
    /// Configuration and secrets, in the format of the daemon's `plugins/<id>.toml`.
    pub config: Option<PathBuf>,
    /// Granted for reading where the package asks for `files.read:*`.
    pub folders: Vec<PathBuf>,
    /// What to search for; empty: some short words.
    pub query: String,
    /// A track that it has, where its search finds none.
    pub track: Option<String>,
    /// An album that it has.
    pub album: Option<String>,
    /// An artist that it has.
    pub artist: Option<String>,
}

impl Options {
    /// The package in this folder, as the daemon would run it with all that it asks for.
    pub fn new(folder: impl Into<PathBuf>) -> Options {
        Options {
            folder: folder.into(),
            sandbox: true,
            bubblewrap: PathBuf::from("/usr/bin/bwrap"),
            runner: find_runner(),
            config: None,
            folders: Vec::new(),
            query: String::new(),
            track: None,
            album: None,
            artist: None,
        }
    }
}

/// How one part of the check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// As the contract wants it.
    Pass,
    /// Against the contract.
    Fail,
    /// Not tried.
    Skip,
}

impl Verdict {
    /// One lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Skip => "skip",
        }
    }
}

/// One line of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was tried; one of [`CHECKS`].
    pub check: &'static str,
    /// How it ended.
    pub verdict: Verdict,
    /// What was found.
    pub words: String,
    /// What to do; empty where there is nothing.
    pub advice: String,
}

/// The lines of a check, in their order. What a package does not offer has no line.
pub const CHECKS: [&str; 20] = [
    "manifest",
    "package",
    "start",
    "confinement",
    "flush",
    "handshake",
    "ping",
    "search",
    "get_track",
    "get_album",
    "get_artist",
    "stream",
    "url",
    "expiry",
    "unknown_method",
    "no_id",
    "two_at_once",
    "junk",
    "end_of_input",
    "stdout",
];

/// All that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The folder's name, which should be the plugin's id.
    pub id: String,
    /// In the order of [`CHECKS`].
    pub findings: Vec<Finding>,
    /// The newest lines that it wrote on standard error.
    pub log: Vec<LogLine>,
}

impl Report {
    /// Whether nothing failed.
    pub fn passed(&self) -> bool {
        self.findings.iter().all(|finding| finding.verdict != Verdict::Fail)
    }

    /// How many lines ended so.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }
}

/// There is nothing to check, or no way to check it.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// No package at all.
    #[error("{0} is no plugin package: name a folder with a plugin.json in it")]
    NoPackage(PathBuf),
    /// A broken rule, where the package is to be run at once.
    #[error("the package cannot be run: {0}; `segue plugin check` says more")]
    Package(String),
    /// The configuration given with it.
    #[error("the plugin's configuration cannot be used: {0}")]
    Config(String),
    /// The program that confines plugins is missing.
    #[error("plugins are not started here: {0}; with --no-sandbox it is run as a plain program")]
    NotConfined(String),
    /// The machine does not let us.
    #[error("{what} cannot be used: {source}; set TMPDIR to a folder where programs may run")]
    Scratch {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// Checks a package. `tell` gets each line as soon as it is known.
///
/// # Errors
/// No package, or nothing to run it with. What the plugin does wrong is no error but a line.
pub async fn check(options: &Options, mut tell: impl FnMut(&Finding)) -> Result<Report, CheckError> {
    let place = bench::place(options)?;
    let mut notes = Notes { findings: Vec::new(), tell: &mut tell };
    let Some(package) = package::check(&place, &mut notes).await else {
        notes.skip_the_rest("the package is not in order");
        return Ok(Report { id: place.name, findings: notes.findings, log: Vec::new() });
    };
    let launcher = Launcher::new(options.bubblewrap.clone(), options.runner.clone())
        .await
        .map_err(bench::scratch("a thread"))?;
    let bench = Bench::new(place.clone(), package, options, launcher.clone()).await?;
    let log = bench.log.clone();
    let mut session = Session::new(bench, notes);
    if start::check(&mut session).await {
        let ids = Ids::given(options);
        calls::check(&mut session, ids, &options.query).await;
        manners::check(&mut session).await;
    }
    let findings = session.end().await;
    launcher.settled().await;
    Ok(Report { id: place.name, findings, log: log.newest(usize::MAX) })
}

/// Where the lines are written down.
struct Notes<'a> {
    findings: Vec<Finding>,
    tell: &'a mut dyn FnMut(&Finding),
}

impl Notes<'_> {
    fn note(&mut self, check: &'static str, verdict: Verdict, words: String, advice: String) {
        let finding = Finding { check, verdict, words, advice };
        (self.tell)(&finding);
        self.findings.push(finding);
    }

    fn pass(&mut self, check: &'static str, words: impl Into<String>) {
        self.note(check, Verdict::Pass, words.into(), String::new());
    }

    fn fail(&mut self, check: &'static str, words: impl Into<String>, advice: impl Into<String>) {
        self.note(check, Verdict::Fail, words.into(), advice.into());
    }

    fn skip(&mut self, check: &'static str, words: impl Into<String>, advice: impl Into<String>) {
        self.note(check, Verdict::Skip, words.into(), advice.into());
    }

    /// One line for all that could not be tried, under the name of the first of it.
    fn skip_the_rest(&mut self, why: &str) {
        let next = self.findings.last().and_then(|last| CHECKS.iter().position(|name| *name == last.check));
        let rest = &CHECKS[next.map_or(0, |at| at + 1)..];
        if let Some(first) = rest.first() {
            self.skip(first, format!("not tried, nor what comes after it: {why}"), "");
        }
    }
}

/// As people read it.
fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
