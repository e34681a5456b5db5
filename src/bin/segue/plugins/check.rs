//! The contract check, told line by line.

use segue::plugin::check::{CheckError, Finding, Options, Report, Verdict, check};
use serde_json::{Value, json};

use crate::args::{CheckArgs, RunArgs};
use crate::failure::Failure;
use crate::out::{Look, Out, clean};

/// Lines of the plugin's log that are shown when something failed.
const LOG_LINES: usize = 10;

pub fn options(run: RunArgs) -> Options {
    Options { sandbox: !run.no_sandbox, config: run.config, folders: run.folders, ..Options::new(run.folder) }
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Failure {
        let sentence = clean(&error.to_string());
        match error {
            CheckError::NoPackage(_) | CheckError::Config(_) => Failure::Usage(sentence),
            CheckError::Package(_) | CheckError::NotConfined(_) | CheckError::Scratch { .. } => {
                Failure::Other(sentence)
            }
        }
    }
}

pub async fn run(out: &mut Out, args: CheckArgs) -> Result<(), Failure> {
    let options = Options {
        query: args.query,
        track: args.content_id,
        album: args.album_id,
        artist: args.artist_id,
        ..options(args.run)
    };
    let mut told = Ok(());
    let checked = check(&options, |finding| {
        if !args.json && told.is_ok() {
            told = line(out, finding);
        }
    });
    // Left off, it ends what it started and removes what it made.
    let report = tokio::select! {
        report = checked => report?,
        _ = tokio::signal::ctrl_c() => return Err(Failure::Other("interrupted; the plugin was ended".into())),
    };
    told?;
    if args.json {
        out.line(&to_json(&report).to_string())?;
    } else {
        summary(out, &report)?;
    }
    match report.count(Verdict::Fail) {
        0 => Ok(()),
        failed => Err(Failure::Other(format!(
            "{}: {failed} of {} failed",
            clean(&report.id),
            report.findings.len()
        ))),
    }
}

fn line(out: &mut Out, finding: &Finding) -> Result<(), Failure> {
    let look = match finding.verdict {
        Verdict::Pass => Look::Green,
        Verdict::Fail => Look::Red,
        Verdict::Skip => Look::Yellow,
    };
    let verdict = out.paint(look, finding.verdict.as_str());
    out.line(&format!("{verdict}  {:<14}  {}", finding.check, clean(&finding.words)))?;
    if finding.advice.is_empty() {
        Ok(())
    } else {
        out.line(&format!("{:22}→ {}", "", clean(&finding.advice)))
    }
}

fn summary(out: &mut Out, report: &Report) -> Result<(), Failure> {
    if !report.passed() && !report.log.is_empty() {
        let heading = out.paint(Look::Dim, "The last that it wrote on standard error:");
        out.line(&heading)?;
        for line in &report.log[report.log.len().saturating_sub(LOG_LINES)..] {
            out.line(&format!("  {:<5} {}", line.level.as_str(), clean(&line.text)))?;
        }
    }
    let [passed, failed, skipped] =
        [Verdict::Pass, Verdict::Fail, Verdict::Skip].map(|verdict| report.count(verdict));
    out.line(&format!("{}: {passed} passed, {failed} failed, {skipped} skipped", clean(&report.id)))
}

fn to_json(report: &Report) -> Value {
    let checks: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "check": finding.check,
                "verdict": finding.verdict.as_str(),
                "words": finding.words,
                "advice": finding.advice,
            })
        })
        .collect();
    let log: Vec<Value> =
        report.log.iter().map(|line| json!({"level": line.level.as_str(), "text": line.text})).collect();
    json!({"plugin": report.id, "passed": report.passed(), "checks": checks, "log": log})
}
