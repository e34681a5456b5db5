//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Parser, Subcommand, ValueEnum};

/// Steers segued, the headless audio player.
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    after_help = "Exit status: 0 done, 1 failed, 2 wrong use, 3 segued is not there."
)]
pub struct Args {
    /// Which bus segued is on: system, session or a D-Bus address [default: $SEGUE_BUS; else session if segued is there; else system]
    #[arg(long, global = true, value_name = "BUS")]
    pub bus: Option<String>,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Play these now, the queue goes on behind them; without any: play on
    Play {
        /// segue:<plugin>:track:<id>, http(s)://… or a file
        #[arg(value_name = "URI")]
        uris: Vec<String>,
    },
    /// Hold
    Pause,
    /// Play on
    Resume,
    /// Pause or play on
    Toggle,
    /// Stop
    Stop,
    /// To the next track
    Next,
    /// To the track before
    Previous,
    /// Move within the track
    Seek {
        /// +10 or -10 seconds from here, 90 or 1:30 from the start
        #[arg(allow_hyphen_values = true, value_name = "TIME")]
        to: SeekTo,
    },
    /// Show or set the volume
    Volume {
        /// From 0 to 100
        #[arg(value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
        percent: Option<u32>,
    },
    /// Silence without touching the volume
    Mute {
        #[arg(value_name = "on|off")]
        wanted: Switch,
    },
    /// Show or set what is done to the samples
    Sound {
        #[command(subcommand)]
        action: Option<SoundAction>,
    },
    /// Show where sound can go to, or choose
    Outputs {
        #[command(subcommand)]
        action: Option<OutputsAction>,
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// What is playing, and how it stands
    Status {
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
        /// Go on showing, with what happens
        #[arg(long)]
        follow: bool,
        /// With --follow: end when playback has ended
        #[arg(long, requires = "follow")]
        until_stopped: bool,
    },
    /// Show or change what plays next
    Queue {
        #[command(subcommand)]
        action: Option<QueueAction>,
    },
    /// Search in all enabled plugins
    Search {
        #[arg(required = true, value_name = "WORD")]
        words: Vec<String>,
        /// How many results at the most
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
    },
    /// Show plugins, decide what they may do
    Plugin {
        #[command(subcommand)]
        action: PluginAction,
    },
}

#[derive(Debug, Subcommand)]
pub enum OutputsAction {
    /// Let sound go there from now on, also after a restart
    #[command(arg_required_else_help = true)]
    Select {
        /// As `segue outputs` shows it; `configured` is what segue.toml says
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum SoundAction {
    /// Follow loudness tags
    Replaygain {
        #[arg(value_parser = ["off", "track", "album", "auto"])]
        mode: String,
    },
    /// Both ears hear both channels
    Mono {
        #[arg(value_name = "on|off")]
        wanted: Switch,
    },
    /// Let one track fade into the next, but not within an album; 0 turns it off
    Crossfade {
        /// From 0 to 12
        #[arg(value_name = "SECONDS", value_parser = crossfade_seconds)]
        seconds: f64,
    },
}

fn crossfade_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=12.0).contains(seconds));
    seconds.ok_or_else(|| "a number of seconds from 0 to 12".to_owned())
}

#[derive(Debug, Subcommand)]
pub enum QueueAction {
    /// Add at the end
    Add {
        #[arg(required = true, value_name = "URI")]
        uris: Vec<String>,
    },
    /// Empty the queue and stop
    Clear,
    /// Take entries out, by the numbers that `segue queue` shows
    Remove {
        #[arg(required = true, value_name = "NUMBER")]
        entries: Vec<u64>,
    },
    /// Play this entry, by the number that `segue queue` shows
    Play {
        #[arg(value_name = "NUMBER")]
        entry: u64,
    },
}

#[derive(Debug, Subcommand)]
pub enum PluginAction {
    /// All installed plugins
    List {
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// What a plugin is, what it wants and what holds it back
    Inspect {
        id: String,
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// What a plugin wrote on standard error
    Logs {
        id: String,
        /// So many of the newest lines
        #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=1000))]
        lines: u32,
        /// Go on with what it writes from now on
        #[arg(short, long)]
        follow: bool,
        /// As JSON, an object on each line
        #[arg(long)]
        json: bool,
    },
    /// How plugins are, and how their calls went
    Health {
        id: Option<String>,
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// Trust this version of a plugin; it still has to be enabled
    Trust {
        id: String,
        /// What `segue plugin inspect` showed; without it the review is shown and you are asked
        fingerprint: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Let a trusted plugin run
    Enable {
        id: String,
        /// What it may do
        #[arg(value_name = "SCOPE", conflicts_with = "all")]
        scopes: Vec<String>,
        /// All that it asks for
        #[arg(long)]
        all: bool,
    },
    /// Stop a plugin and keep it stopped
    Disable { id: String },
    /// Look again at what is installed
    Rescan,
    /// Run a plugin as segued would, and try the whole contract on it; needs no segued
    #[command(after_help = "Exit status: 0 nothing failed, 1 something failed, 2 no plugin package.")]
    Check(CheckArgs),
    /// Call a method of a plugin by hand: the reply goes to standard output, all else to standard error
    #[command(
        after_help = "Exit status: 0 a result came, 1 an error or nothing came, 2 no plugin package, or no JSON."
    )]
    Call(CallArgs),
    /// Write a plugin to begin with, which passes the check at once; needs no segued
    New(NewArgs),
}

/// What a plugin is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    Python,
    Sh,
    Rust,
}

#[derive(Debug, clap::Args)]
pub struct NewArgs {
    /// Its id, such as my-radio, or a name of which one is made
    pub name: String,
    #[arg(long, value_enum, default_value_t = Language::Python)]
    pub lang: Language,
    /// Where its folder is made
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
    /// With --lang rust: the folder of the SDK, plugins/sdk/rust in Segue's sources
    #[arg(long, value_name = "DIR")]
    pub sdk: Option<PathBuf>,
}

/// How a plugin is run without segued.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The plugin's folder
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Its configuration and secrets, as in plugins/ID.toml
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A folder that it may read, where it asks for files.read:*
    #[arg(long = "folder", value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Without confinement, to see whether that is in its way
    #[arg(long)]
    pub no_sandbox: bool,
}

#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// What to search for; else some short words are tried
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub query: String,
    /// A track that it has, if its search cannot find one
    #[arg(long, value_name = "ID")]
    pub content_id: Option<String>,
    /// An album that it has
    #[arg(long, value_name = "ID")]
    pub album_id: Option<String>,
    /// An artist that it has
    #[arg(long, value_name = "ID")]
    pub artist_id: Option<String>,
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct CallArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// Such as search; initialize is called before it
    pub method: String,
    /// As JSON, such as '{"query": "bach"}'
    pub params: Option<String>,
    /// Seconds to wait for the reply; else what the plugin's manifest and the protocol give
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub timeout: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

/// Where to move to, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeekTo {
    Relative(i64),
    Absolute(i64),
}

impl FromStr for SeekTo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("“{text}” is no time; write +10, -10, 90 or 1:30");
        let (sign, digits) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(rest), _) => (Some(1), rest),
            (_, Some(rest)) => (Some(-1), rest),
            _ => (None, text),
        };
        let mut seconds = 0.0;
        for part in digits.split(':') {
            if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit() || b == b'.') || part.len() > 9 {
                return Err(bad());
            }
            seconds = seconds * 60.0 + part.parse::<f64>().map_err(|_| bad())?;
        }
        let micros = (seconds * 1e6).round() as i64;
        Ok(match sign {
            Some(sign) => SeekTo::Relative(sign * micros),
            None => SeekTo::Absolute(micros),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, expected) in [
            ("+10", SeekTo::Relative(10_000_000)),
            ("-10", SeekTo::Relative(-10_000_000)),
            ("90", SeekTo::Absolute(90_000_000)),
            ("1:30", SeekTo::Absolute(90_000_000)),
            ("+1:00:00.5", SeekTo::Relative(3_600_500_000)),
        ] {
            assert_eq!(text.parse(), Ok(expected));
        }
        for bad in ["", "+", "1:", "x", "--1", "1e9", "inf", "1:-3"] {
            assert!(bad.parse::<SeekTo>().is_err(), "{bad}");
        }
    }
}
