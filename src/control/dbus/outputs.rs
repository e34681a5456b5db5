//! `org.segue.Outputs1`: where sound can go to.
//!
//! Each call is a task of its own: looking at cards takes their drivers' time.

use std::sync::Arc;

use tokio::sync::Semaphore;
use zbus::interface;
use zbus::object_server::SignalEmitter;

use super::Player;
use super::errors::Error;
use super::values::{Dict, check_text, text, texts};
use crate::control::Command;
use crate::output::devices::{Devices, OutputDevice, Unavailable};

pub struct Outputs1 {
    player: Player,
    devices: Devices,
    /// One looks at a time: a device can be opened once.
    looking: Arc<Semaphore>,
}

impl Outputs1 {
    pub fn new(player: Player, devices: Devices) -> Outputs1 {
        Outputs1 { player, devices, looking: Arc::new(Semaphore::new(1)) }
    }

    /// Runs what blocks on drivers where that harms nobody.
    async fn look<T: Send + 'static>(&self, look: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let _turn = self.looking.acquire().await;
        let failed = |_| Error::Busy("the sound cards could not be looked at; try again".to_owned());
        tokio::task::spawn_blocking(look).await.map_err(failed)
    }
}

#[interface(name = "org.segue.Outputs1", introspection_docs = false)]
impl Outputs1 {
    /// All devices, the likeliest first.
    #[zbus(out_args("outputs"))]
    async fn list(&self) -> Result<Vec<Dict>, Error> {
        let selected = self.player.now().selected_output.clone();
        let (devices, name) = (self.devices.clone(), selected.clone());
        let listed = self.look(move || devices.list(name.as_deref())).await?;
        Ok(listed.iter().map(|device| dict(device, selected.as_deref())).collect())
    }

    /// Sound goes to this device from now on; an empty name is what the configuration says.
    async fn select(&self, device: String) -> Result<(), Error> {
        check_text("device", &device)?;
        if device.is_empty() {
            return self.player.tell(Command::SelectOutput(None)).await;
        }
        let (devices, name) = (self.devices.clone(), device.clone());
        let usable = self.look(move || devices.check(&name)).await?;
        usable.map_err(|reason| Error::NoSuchOutput(text(&reason.to_string())))?;
        self.player.tell(Command::SelectOutput(Some(device))).await
    }

    /// Devices came or went, or another one is in use.
    #[zbus(signal)]
    pub async fn changed(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;
}

fn dict(device: &OutputDevice, selected: Option<&str>) -> Dict {
    let mut dict = Dict::from([
        ("name", text(&device.name).into()),
        ("description", text(&device.description).into()),
        ("kind", device.kind.as_str().into()),
        ("current", device.current.into()),
        ("selected", (Some(device.name.as_str()) == selected).into()),
        ("mixer", text(device.mixer.as_deref().unwrap_or_default()).into()),
    ]);
    let state = match &device.abilities {
        Ok(abilities) => {
            let formats: Vec<String> = abilities.formats.iter().map(|format| (*format).to_owned()).collect();
            dict.insert("rates", abilities.rates.clone().into());
            dict.insert("formats", texts(&formats).into());
            dict.insert("channels_min", u32::from(abilities.channels.0).into());
            dict.insert("channels_max", u32::from(abilities.channels.1).into());
            if device.current { "open" } else { "free" }
        }
        Err(Unavailable::Busy(_)) => "busy",
        Err(Unavailable::Unusable(reason)) => {
            dict.insert("reason", text(reason).into());
            "unusable"
        }
    };
    dict.insert("state", state.into());
    dict
}
