//! `segued`: arguments, logging, configuration, then [`App::run`].

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use segue::app::App;
use segue::config::Config;
use segue::system::{Places, allocator};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

/// `EX_CONFIG` is 78, but 64 (`EX_USAGE`) is what people and scripts are promised for a bad configuration.
const BAD_CONFIGURATION: u8 = 64;

/// Segue's daemon: plays what plugins resolve, straight to ALSA, controlled over D-Bus.
#[derive(Parser)]
#[command(name = "segued", version, about)]
struct Arguments {
    /// Configuration to read [default: segue.toml in $CONFIGURATION_DIRECTORY, /etc/segue or ~/.config/segue]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the configuration, say what is wrong with it, and end
    #[arg(long)]
    check_config: bool,
}

fn main() -> ExitCode {
    allocator::give_back_large_blocks();
    let arguments = Arguments::parse();
    let places = Places::find(|name| std::env::var(name).ok(), nix::unistd::geteuid().is_root());
    let config = match Config::load(arguments.config.as_deref(), &places) {
        Ok(config) => config,
        Err(error) => return complain(&error.to_string()),
    };
    if arguments.check_config {
        eprintln!("the configuration is good");
        return ExitCode::SUCCESS;
    }
    // journald adds the time by itself.
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let layer = if std::env::var_os("JOURNAL_STREAM").is_some() {
        layer.without_time().with_ansi(false).boxed()
    } else {
        layer.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed()
    };
    // Checked with the configuration.
    let filter = config.log.level.parse::<Targets>().unwrap_or_default();
    tracing_subscriber::registry().with(layer.with_filter(filter)).init();
    match App::new(config, places).run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn complain(message: &str) -> ExitCode {
    eprintln!("segued: {message}");
    ExitCode::from(BAD_CONFIGURATION)
}
