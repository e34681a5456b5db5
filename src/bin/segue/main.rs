//! `segue`: steers segued from the command line, over D-Bus; and helps those who write plugins, without segued.

mod args;
mod bar;
mod bus;
mod failure;
mod follow;
mod out;
mod outputs;
mod playback;
mod plugins;
mod queue;
mod search;
mod sound;
mod status;
mod track;

use std::process::ExitCode;

use args::{Args, Verb};
use bus::Daemon;
use clap::Parser;
use failure::Failure;
use out::Out;

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("segue: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(args)) {
        Ok(()) | Err(Failure::NobodyReads) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("segue: {failure}");
            failure.exit_code()
        }
    }
}

async fn run(args: Args) -> Result<(), Failure> {
    let mut out = Out::stdout();
    let verb = match args.verb {
        Verb::Plugin { action } => match plugins::without_daemon(&mut out, action).await {
            Ok(done) => return done,
            Err(action) => Verb::Plugin { action },
        },
        verb => verb,
    };
    let bus = args.bus.or_else(|| std::env::var("SEGUE_BUS").ok()).filter(|bus| !bus.is_empty());
    let daemon = Daemon::find(bus.as_deref()).await?;
    match verb {
        Verb::Play { uris } => playback::play(&daemon, uris).await,
        Verb::Pause => daemon.simply("Pause").await,
        Verb::Resume => daemon.simply("Play").await,
        Verb::Toggle => daemon.simply("PlayPause").await,
        Verb::Stop => daemon.simply("Stop").await,
        Verb::Next => daemon.simply("Next").await,
        Verb::Previous => daemon.simply("Previous").await,
        Verb::Seek { to } => playback::seek(&daemon, to).await,
        Verb::Volume { percent } => playback::volume(&daemon, &mut out, percent).await,
        Verb::Mute { wanted } => playback::mute(&daemon, wanted).await,
        Verb::Sound { action } => sound::run(&daemon, &mut out, action).await,
        Verb::Outputs { action, json } => outputs::run(&daemon, &mut out, action, json).await,
        Verb::Status { json, follow: false, .. } => status::show(&daemon, &mut out, json).await,
        Verb::Status { json, until_stopped, .. } => {
            follow::follow(&daemon, &mut out, json, until_stopped).await
        }
        Verb::Queue { action } => queue::run(&daemon, &mut out, action).await,
        Verb::Search { words, limit } => search::run(&daemon, &mut out, &words.join(" "), limit).await,
        Verb::Plugin { action } => plugins::run(&daemon, &mut out, action).await,
    }
}
