//! Builds the parts, joins their channels, and owns the order in which they start and end.

use std::time::Duration;

use anyhow::Context;
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{broadcast, watch};

use crate::config::{Config, Stream};
use crate::control::dbus::{self, Bus, Services};
use crate::control::{State, controller};
use crate::output::{self, Output};
use crate::playback::{self, Parts, Playback};
use crate::plugin::{self, Host};
use crate::stream::{self, Streams};
use crate::system::{self, Places};

/// A slow reader of notices misses the oldest beyond so many, and is told.
const NOTICES: usize = 256;
/// Without a bus the daemon counts as started after this time.
const BUS_PATIENCE: Duration = Duration::from_secs(5);

/// The daemon, from its first thread to its last.
pub struct App {
    config: Config,
    places: Places,
}

impl App {
    /// An app with these settings; nothing is started yet.
    pub fn new(config: Config, places: Places) -> App {
        App { config, places }
    }

    /// Runs until SIGTERM or SIGINT, then ends every part within a second.
    pub fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(4)
            .thread_keep_alive(Duration::from_secs(10))
            .build()
            .context("cannot start the runtime")?;
        let outcome = runtime.block_on(self.serve());
        runtime.shutdown_timeout(Duration::from_millis(100));
        outcome
    }

    async fn serve(self) -> anyhow::Result<()> {
        let App { config, places } = self;
        let (quit, quitting) = watch::channel(false);
        // Before anything else, so that a signal during the start is not lost.
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;

        let _claim = system::claim(&places.state)?;
        let kept = playback::restore(places.state.clone(), &config.player, config.sound.settings());
        let plugins = Host::start(plugin_settings(&config, &places)).await.context("plugins")?;
        let streams = Streams::new(stream_settings(&config)).context("streams")?;
        let (output, sound) = Output::start(output_settings(&config)).context("the output thread")?;
        let devices = output.devices();
        let (controller, requests) = controller();
        let (state, states) = watch::channel(State::default());
        let (notices, _) = broadcast::channel(NOTICES);
        let playback = Playback::new(Parts {
            plugins: plugins.clone(),
            streams,
            output,
            sound,
            folders: config.files.folders.clone(),
            requests,
            state,
            notices: notices.clone(),
            kept,
        })
        .context("playback")?;
        let mut player = tokio::spawn(playback.run(quitting));

        let bus = match config.dbus.bus.as_str() {
            "auto" if places.has_session_bus => Bus::Session,
            "auto" => Bus::System,
            named => named.parse().context("[dbus] bus")?,
        };
        let (named, on_the_bus) = watch::channel(false);
        let services = Services { controller, state: states, notices, devices, plugins: plugins.clone() };
        let bus = tokio::spawn(dbus::serve(bus, services, named));
        tokio::spawn(say_ready(on_the_bus));
        tokio::spawn(keep_watchdog_quiet());

        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            ended = &mut player => {
                plugins.shutdown().await;
                ended.context("playback broke down")?;
                anyhow::bail!("playback ended by itself; the daemon is to be started again");
            }
        }
        tracing::info!("ending");
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
        let _ = quit.send(true);
        bus.abort();
        let (ended, ()) = tokio::join!(player, plugins.shutdown());
        ended.context("playback did not end well")
    }
}

fn plugin_settings(config: &Config, places: &Places) -> plugin::Settings {
    let folders = if config.plugins.folders.is_empty() {
        places.plugins.clone()
    } else {
        config.plugins.folders.clone()
    };
    plugin::Settings {
        folders,
        follow_packages: config.plugins.follow_packages,
        require_sandbox: config.plugins.require_sandbox,
        ..plugin::Settings::new(places.state.clone(), places.cache.clone(), places.config.clone())
    }
}

fn stream_settings(config: &Config) -> stream::Settings {
    let Stream { buffer, spool, spool_size, connect_s, silence_s, give_up_s } = config.stream.clone();
    stream::Settings {
        buffer: buffer.0,
        spool: spool.map(|folder| (folder, spool_size.0)),
        connect_timeout: Duration::from_secs(connect_s),
        silence: Duration::from_secs(silence_s),
        give_up: Duration::from_secs(give_up_s),
        ..stream::Settings::default()
    }
}

fn output_settings(config: &Config) -> output::Settings {
    output::Settings {
        device: config.output.device.0.clone(),
        buffer: config.card_buffer(),
        release_after: config.release_after(),
        keep_alive: config.output.keep_alive,
        lead_in: Duration::from_millis(config.output.lead_in_ms),
        volume: output::VolumeSettings {
            mode: config.output.volume,
            control: config.output.mixer.clone(),
            mixer: config.output.mixer_device.clone(),
        },
    }
}

/// READY: the state is loaded, and the bus names are taken or have been waited for long enough.
async fn say_ready(mut on_the_bus: watch::Receiver<bool>) {
    let _ = tokio::time::timeout(BUS_PATIENCE, on_the_bus.wait_for(|named| *named)).await;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "ready");
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}

/// Tells systemd's watchdog that the main thread still turns, twice in each of its periods.
async fn keep_watchdog_quiet() {
    let Some(period) = sd_notify::watchdog_enabled() else { return };
    let mut ticks = tokio::time::interval(period / 2);
    loop {
        ticks.tick().await;
        let _ = sd_notify::notify(&[NotifyState::Watchdog]);
    }
}
