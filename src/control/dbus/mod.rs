//! The bus: MPRIS for every remote control, `org.segue.*1` for all that MPRIS has no word for.
//!
//! There is a file for each interface. A handler sends a [`Command`](super::Command) and awaits the player's
//! answer; the player answers at once. Only Catalog1 and Plugins1 wait for plugins and disks, in tasks of their
//! own, so that they hold up nobody. This is the only place that knows zbus.

mod caller;
mod catalog;
mod connection;
mod errors;
mod mpris;
mod mpris_player;
mod outputs;
mod player;
mod plugins;
mod queue;
mod signals;
mod slots;
mod values;

use std::str::FromStr;
use std::sync::Arc;

use tokio::sync::{Mutex, broadcast, watch};

use super::{Answer, Command, Controller, Notice, State};
pub use connection::serve;
use errors::Error;

/// The name under which remote controls look for players.
pub const MPRIS_NAME: &str = "org.mpris.MediaPlayer2.segue";
/// Where the MPRIS interfaces are.
pub const MPRIS_PATH: &str = "/org/mpris/MediaPlayer2";
/// Our own name.
pub const SEGUE_NAME: &str = "org.segue.Segue1";
/// Where our own interfaces are.
pub const SEGUE_PATH: &str = "/org/segue/Segue1";

/// What the bus shows and steers.
#[derive(Clone)]
pub struct Services {
    /// Where requests go.
    pub controller: Controller,
    /// What is visible. A change that a command makes is to be sent here before the command is answered.
    pub state: watch::Receiver<State>,
    /// What happens. The server subscribes each time that it gets a connection.
    pub notices: broadcast::Sender<Notice>,
    /// What Outputs1 shows.
    pub devices: crate::output::devices::Devices,
    /// What Catalog1 asks and Plugins1 shows.
    pub plugins: crate::plugin::Host,
}

/// Which bus to be on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bus {
    /// The system's, for a service.
    System,
    /// The user's, for a desktop.
    Session,
    /// The one at this D-Bus address, for example `unix:path=/run/bus`.
    Address(String),
}

/// A text that names no bus.
#[derive(Debug, thiserror::Error)]
#[error("“{0}” names no bus: write “system”, “session”, or an address such as “unix:path=/run/my-bus”")]
pub struct BusError(String);

impl FromStr for Bus {
    type Err = BusError;

    fn from_str(text: &str) -> Result<Self, BusError> {
        match text {
            "system" => Ok(Bus::System),
            "session" => Ok(Bus::Session),
            address if is_address(address) => Ok(Bus::Address(address.to_owned())),
            other => Err(BusError(other.to_owned())),
        }
    }
}

/// Of several addresses, by `;`, one has to be good.
fn is_address(text: &str) -> bool {
    let good = |one: &str| one.parse::<zbus::Address>().is_ok() && !one.trim_end().ends_with('=');
    text.split(';').any(good)
}

impl std::fmt::Display for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bus::System => f.write_str("the system bus"),
            Bus::Session => f.write_str("the session bus"),
            Bus::Address(address) => write!(f, "the bus at {address}"),
        }
    }
}

/// What an interface's listeners were told last. Each interface has its own.
///
/// zbus announces a property by itself after it was set from the bus. The setter holds this lock until the new
/// value is noted here, so the change is not announced a second time with all the others.
type Announced = Arc<Mutex<State>>;

/// The player, as one interface sees it.
#[derive(Clone)]
struct Player {
    controller: Controller,
    state: watch::Receiver<State>,
    announced: Announced,
}

impl Player {
    fn new(services: &Services) -> Player {
        let announced = Arc::new(Mutex::new(services.state.borrow().clone()));
        Player { controller: services.controller.clone(), state: services.state.clone(), announced }
    }

    /// The newest state. Not to be held over an await.
    fn now(&self) -> watch::Ref<'_, State> {
        self.state.borrow()
    }

    async fn ask(&self, command: Command) -> Result<Answer, Error> {
        Ok(self.controller.ask(command).await?)
    }

    async fn tell(&self, command: Command) -> Result<(), Error> {
        self.ask(command).await.map(|_| ())
    }

    /// Changes a property; `note` copies the part of the new state that zbus announces by itself.
    async fn set(&self, command: Command, note: fn(&mut State, &State)) -> Result<(), Error> {
        let mut announced = self.announced.lock().await;
        self.tell(command).await?;
        note(&mut announced, &self.now());
        Ok(())
    }

    /// Microseconds from the start and whether that is exact; 0 when the player does not know.
    async fn position(&self) -> (i64, bool) {
        match self.ask(Command::Position).await {
            Ok(Answer::Position { micros, exact }) => (micros, exact),
            _ => (0, true),
        }
    }
}
