//! Plugins: what is there, what it wants, what it may, how it is, and what it takes to write one.

mod call;
mod check;
mod health;
mod list;
mod logs;
mod new;
mod review;

use std::io::{BufRead, IsTerminal, Write, stderr, stdin};

use crate::args::PluginAction;
use crate::bus::{Daemon, text, texts};
use crate::failure::Failure;
use crate::out::{Out, clean};
use crate::status::dict_to_json;

/// What a plugin's author needs, done without the daemon; gives back what is not of this kind.
pub async fn without_daemon(
    out: &mut Out,
    action: PluginAction,
) -> Result<Result<(), Failure>, PluginAction> {
    match action {
        PluginAction::Check(args) => Ok(check::run(out, args).await),
        PluginAction::Call(args) => Ok(call::run(out, args).await),
        PluginAction::New(args) => Ok(new::run(out, &args)),
        other => Err(other),
    }
}

/// What needs the daemon.
pub async fn run(daemon: &Daemon, out: &mut Out, action: PluginAction) -> Result<(), Failure> {
    let plugins = daemon.plugins().await?;
    match action {
        PluginAction::List { json } => list::show(daemon, out, json).await,
        PluginAction::Inspect { id, json: true } => {
            out.line(&dict_to_json(&plugins.inspect(&id).await?).to_string())
        }
        PluginAction::Inspect { id, json: false } => review::show(out, &plugins.inspect(&id).await?),
        PluginAction::Logs { id, lines, follow, json } => {
            logs::show(daemon, out, &id, logs::Wanted { lines, follow, json }).await
        }
        PluginAction::Health { id, json } => health::show(daemon, out, id.as_deref(), json).await,
        PluginAction::Trust { id, fingerprint: Some(fingerprint), .. } => {
            Ok(plugins.trust(&id, &fingerprint).await?)
        }
        PluginAction::Trust { id, fingerprint: None, yes } => {
            let plugin = plugins.inspect(&id).await?;
            let fingerprint = text(&plugin, "fingerprint");
            if !yes {
                review::show(out, &plugin)?;
                ask(&format!("Trust {id} exactly as it is shown above?"))?;
            }
            plugins.trust(&id, &fingerprint).await?;
            if out.terminal {
                let scopes = texts(&plugin, "scopes").join(" ");
                let command = format!("segue plugin enable {id} {scopes}");
                out.line(&format!("{id} is trusted; let it run with `{}`", clean(command.trim_end())))?;
            }
            Ok(())
        }
        PluginAction::Enable { id, scopes, all } => {
            let scopes = if all { texts(&plugins.inspect(&id).await?, "scopes") } else { scopes };
            Ok(plugins.enable(&id, &scopes).await?)
        }
        PluginAction::Disable { id } => Ok(plugins.disable(&id).await?),
        PluginAction::Rescan => Ok(plugins.rescan().await?),
        // Done without the daemon.
        PluginAction::Check(_) | PluginAction::Call(_) | PluginAction::New(_) => Ok(()),
    }
}

/// Goes on after a yes only.
fn ask(question: &str) -> Result<(), Failure> {
    if !stdin().is_terminal() {
        return Err(Failure::Usage(
            "nobody can be asked here; give the fingerprint that `segue plugin inspect` shows, or --yes"
                .into(),
        ));
    }
    write!(stderr(), "{question} [y/N] ")?;
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Other("nothing was changed".into())),
    }
}
