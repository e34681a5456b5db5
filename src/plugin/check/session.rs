//! The check as a conversation: one process that is started again when a rule has cost it its life.

use std::collections::HashSet;
use std::time::Duration;

use segue_protocol::manifest::Capability;
use segue_protocol::messages::RawResult;
use segue_protocol::{ErrorCode, Fault};
use serde::Serialize;

use super::bench::Bench;
use super::run::{Run, Silence, Stray};
use super::{Finding, Notes, seconds};

/// Words of one kind in a finding.
const MAX_SHOWN: usize = 3;

pub(super) struct Session<'a> {
    pub(super) bench: Bench,
    pub(super) notes: Notes<'a>,
    /// What it offers now.
    pub(super) capabilities: Vec<Capability>,
    pub(super) run: Option<Run>,
    strays: Vec<Stray>,
}

/// Why a call brought no result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trouble {
    pub(super) words: String,
    pub(super) advice: String,
    /// The code, where it answered.
    pub(super) code: Option<ErrorCode>,
}

impl Trouble {
    pub(super) fn new(words: impl Into<String>, advice: impl Into<String>) -> Trouble {
        Trouble { words: words.into(), advice: advice.into(), code: None }
    }

    /// It answered with an error, or with the wrong shape.
    pub(super) fn of(fault: &Fault) -> Trouble {
        let (words, advice) = match fault.code {
            ErrorCode::PluginProtocolError => (
                fault.message.clone(),
                "answer with exactly the fields of the protocol; a name that begins with x_ is yours",
            ),
            ErrorCode::PluginIdentityMismatch => (
                fault.message.clone(),
                "make it and plugin.json say the same; scopes are those that initialize gave it",
            ),
            ErrorCode::AuthRequired => (
                format!("it answered with {}: {}", fault.code, fault.message),
                "give what it needs to log in with --config",
            ),
            ErrorCode::ContentNotFound => (
                format!("it answered with {}: {}", fault.code, fault.message),
                "name something that it has with --content-id, --album-id or --artist-id",
            ),
            _ => (
                format!("it answered with {}: {}", fault.code, fault.message),
                "make it answer, or give it what it needs with --config",
            ),
        };
        Trouble { code: Some(fault.code), ..Trouble::new(words, advice) }
    }
}

impl<'a> Session<'a> {
    pub(super) fn new(bench: Bench, notes: Notes<'a>) -> Session<'a> {
        let capabilities = bench.manifest.capabilities.clone();
        Session { bench, notes, capabilities, run: None, strays: Vec::new() }
    }

    /// Calls, after starting it again where that is needed.
    pub(super) async fn ask<P: Serialize>(
        &mut self,
        method: &str,
        params: Option<P>,
        patience: Duration,
    ) -> Result<RawResult, Trouble> {
        let run = self.running().await?;
        match run.ask(method, params, patience).await {
            Ok(answer) => answer.map_err(|fault| Trouble::of(&fault)),
            Err(silence) => Err(self.mourn(silence).await),
        }
    }

    /// A process that has shaken hands.
    pub(super) async fn running(&mut self) -> Result<&mut Run, Trouble> {
        if self.run.is_none() {
            let again = "it must start as often as it is needed; look at its standard error";
            let started = self.bench.start().await;
            let mut run =
                started.map_err(|why| Trouble::new(format!("it does not start again: {why}"), again))?;
            let patience = self.bench.manifest.timeouts.initialize;
            let answer = run.ask("initialize", Some(self.bench.initialize()), patience).await;
            self.run = Some(run);
            if let Err(silence) = answer {
                let trouble = self.mourn(silence).await;
                return Err(Trouble::new(format!("when it was started again: {}", trouble.words), again));
            }
        }
        self.run.as_mut().ok_or_else(|| Trouble::new("it does not run", ""))
    }

    /// Ends a run that is of no more use, and tells what became of it.
    pub(super) async fn mourn(&mut self, silence: Silence) -> Trouble {
        let how = self.finish().await;
        match silence {
            Silence::Late(patience) => Trouble::new(
                format!("no answer within {}", seconds(patience)),
                "answer each call, also with an error; more time can be asked for with timeouts_ms",
            ),
            Silence::Unflushed => Trouble::new(
                "the answer came only when standard input was closed",
                "flush standard output after each line",
            ),
            Silence::Ended => Trouble::new(
                format!("it gave no answer: {how}"),
                "it must live until its standard input is closed; look at its standard error",
            ),
            Silence::Unread(why) => Trouble::new(
                format!("the call could not be written: {why}"),
                "read standard input to its end",
            ),
        }
    }

    /// Ends the run. Says how it ended, with its last words.
    pub(super) async fn finish(&mut self) -> String {
        let Some(run) = self.run.take() else { return "it does not run".to_owned() };
        let before = self.bench.log.after(0).0;
        let (status, strays) = run.finish().await;
        self.strays.extend(strays);
        let (after, _) = self.bench.log.after(before);
        match self.bench.log.newest(1).first() {
            Some(line) if after > 0 => {
                format!(
                    "{status}; the last that it said was “{}”",
                    line.text.chars().take(200).collect::<String>()
                )
            }
            _ => status,
        }
    }

    /// Ends it all; the verdict on standard output is known only now.
    pub(super) async fn end(mut self) -> Vec<Finding> {
        let _ = self.finish().await;
        let mut seen = HashSet::new();
        self.strays.retain(|stray| seen.insert(stray.clone()));
        if self.strays.is_empty() {
            self.notes.pass("stdout", "nothing but replies to what was asked");
        } else {
            let shown: Vec<String> =
                self.strays.iter().take(MAX_SHOWN).map(|stray| self.bench.redacted(&stray.words)).collect();
            let more = self.strays.len() - shown.len();
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            self.notes.fail(
                "stdout",
                format!("it printed {}{more}", shown.join("; ")),
                "print nothing but one reply to each call; what is for people goes to standard error",
            );
        }
        self.notes.findings
    }
}
