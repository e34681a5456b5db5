//! How it is started: with which card, plugins and configuration.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Daemon, found, spawn};
use crate::support::bus::Bus;
use crate::support::card::{Card, PCM};
use crate::support::client::{Client, Record};
use crate::support::plugin::Plugin;

/// What the daemon is started with.
pub struct Setup {
    alsa_config: Option<PathBuf>,
    plugins: Vec<Plugin>,
    bundled: Vec<&'static str>,
    sections: String,
    device: Vec<&'static str>,
    output: String,
    more_folder: bool,
    log_level: &'static str,
    environment: Vec<(&'static str, PathBuf)>,
}

impl Daemon {
    /// How to start one: [`Setup::start`].
    #[allow(clippy::new_ret_no_self)]
    pub fn new() -> Setup {
        Setup {
            alsa_config: None,
            plugins: Vec::new(),
            bundled: Vec::new(),
            sections: String::new(),
            device: vec![PCM],
            output: String::new(),
            more_folder: false,
            log_level: "debug",
            environment: Vec::new(),
        }
    }
}

impl Setup {
    /// Sound goes to this card.
    pub fn card(mut self, card: &Card) -> Setup {
        self.alsa_config = Some(card.alsa_config());
        self
    }

    /// Installed, trusted and enabled with all scopes that it asks for.
    pub fn plugin(mut self, plugin: &Plugin) -> Setup {
        self.plugins.push(plugin.clone());
        self
    }

    /// One of the plugins that come with Segue, with all scopes of the fixtures' plugins.
    pub fn bundled(mut self, id: &'static str) -> Setup {
        self.bundled.push(id);
        self
    }

    /// More sections for segue.toml, but for `[output]`.
    pub fn config(mut self, sections: &str) -> Setup {
        self.sections.push_str(sections);
        self.sections.push('\n');
        self
    }

    /// These devices in order of preference, instead of the card.
    pub fn devices(mut self, names: &[&'static str]) -> Setup {
        self.device = names.to_vec();
        self
    }

    /// More lines for the section `[output]`.
    pub fn output(mut self, lines: &str) -> Setup {
        self.output.push_str(lines);
        self.output.push('\n');
        self
    }

    /// With a second folder of plugins, `more-plugins` in its home, which wins over the first.
    pub fn more_plugins(mut self) -> Setup {
        self.more_folder = true;
        self
    }

    /// A path in its environment, such as `SSL_CERT_FILE`.
    pub fn env(mut self, name: &'static str, path: &Path) -> Setup {
        self.environment.push((name, path.to_owned()));
        self
    }

    /// Logs from this level on instead of everything from `debug` on.
    pub fn log_level(mut self, level: &'static str) -> Setup {
        self.log_level = level;
        self
    }

    /// Starts it and waits until it is on the bus.
    pub async fn start(self) -> Daemon {
        let home = TempDir::with_prefix("segue-home-").unwrap();
        let bus = Bus::start();
        for folder in ["state", "cache", "config", "plugins", "more-plugins"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        let mut folders = vec![home.path().join("plugins")];
        folders.extend(self.more_folder.then(|| home.path().join("more-plugins")));
        for plugin in &self.plugins {
            plugin.install(&home.path().join("plugins"));
        }
        for id in &self.bundled {
            copy_package(id, &home.path().join("plugins"));
        }
        let alsa_config = self.alsa_config.unwrap_or_else(|| PathBuf::from("/usr/share/alsa/alsa.conf"));
        let configuration = format!(
            "[dbus]\nbus = \"{}\"\n[output]\ndevice = {:?}\n{}[plugins]\nfolders = {folders:?}\n[log]\nlevel = \"{}\"\n{}",
            bus.address(),
            self.device,
            self.output,
            self.log_level,
            self.sections,
        );
        fs::write(home.path().join("config/segue.toml"), configuration).unwrap();
        let connection = bus.connect().await;
        let record = Record::begin(&connection).await;
        let client = Client::new(connection).await;
        let environment = self.environment;
        let child = spawn(home.path(), &home.path().join("state"), &alsa_config, &environment);
        let process = found(&child);
        let mut daemon =
            Daemon { home, bus, alsa_config, environment, child: Some(child), process, client, record };
        daemon.until_on_the_bus(0).await;
        for plugin in &self.plugins {
            daemon.trust_and_enable(plugin.id(), plugin.scopes()).await;
        }
        for id in self.bundled {
            daemon.trust_and_enable(id, &Plugin::SCOPES).await;
        }
        daemon
    }
}

/// Copied, since a check-out may be writable for a group.
fn copy_package(id: &str, folder: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins").join(id);
    let copied = std::process::Command::new("cp").arg("-r").arg(from).arg(folder).status().unwrap();
    let closed = std::process::Command::new("chmod").args(["-R", "go-w"]).arg(folder).status().unwrap();
    assert!(copied.success() && closed.success());
}
