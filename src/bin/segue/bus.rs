//! segued's interfaces, seen from the other side.

use std::collections::HashMap;

use zbus::connection::Builder;
use zbus::fdo::{DBusProxy, PropertiesProxy};
use zbus::names::InterfaceName;
use zbus::{Connection, OwnedVariant, Variant, proxy};

use crate::failure::Failure;

/// `a{sv}`.
pub type Dict = HashMap<String, OwnedVariant>;

pub const NAME: &str = "org.segue.Segue1";
pub const PATH: &str = "/org/segue/Segue1";
const MPRIS_NAME: &str = "org.mpris.MediaPlayer2.segue";
const MPRIS_PATH: &str = "/org/mpris/MediaPlayer2";
const PLAYER: &str = "org.segue.Player1";
const QUEUE: &str = "org.segue.Queue1";
const MPRIS_PLAYER: &str = "org.mpris.MediaPlayer2.Player";

#[proxy(
    interface = "org.segue.Player1",
    default_service = "org.segue.Segue1",
    default_path = "/org/segue/Segue1"
)]
pub trait Player1 {
    fn play_uris(&self, uris: &[String]) -> zbus::Result<()>;
    fn seek_by(&self, offset: i64) -> zbus::Result<()>;
    #[zbus(signal)]
    fn error(&self, code: &str, message: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    fn event(&self, kind: &str, entry: u64, text: &str) -> zbus::Result<()>;
}

#[proxy(
    interface = "org.segue.Queue1",
    default_service = "org.segue.Segue1",
    default_path = "/org/segue/Segue1"
)]
pub trait Queue1 {
    fn add(&self, uris: &[String], before: u64) -> zbus::Result<Vec<u64>>;
    fn remove(&self, entries: &[u64]) -> zbus::Result<()>;
    fn clear(&self) -> zbus::Result<()>;
    fn play(&self, entry: u64) -> zbus::Result<()>;
    fn list(&self, from: u32, count: u32) -> zbus::Result<Vec<(u64, Dict)>>;
}

#[proxy(
    interface = "org.segue.Catalog1",
    default_service = "org.segue.Segue1",
    default_path = "/org/segue/Segue1"
)]
pub trait Catalog1 {
    #[allow(clippy::type_complexity)]
    fn search(
        &self,
        words: &str,
        options: HashMap<&str, Variant<'_>>,
    ) -> zbus::Result<(Vec<Dict>, HashMap<String, (i32, String)>)>;
}

#[proxy(
    interface = "org.segue.Outputs1",
    default_service = "org.segue.Segue1",
    default_path = "/org/segue/Segue1"
)]
pub trait Outputs1 {
    fn list(&self) -> zbus::Result<Vec<Dict>>;
    fn select(&self, device: &str) -> zbus::Result<()>;
}

#[proxy(
    interface = "org.segue.Plugins1",
    default_service = "org.segue.Segue1",
    default_path = "/org/segue/Segue1"
)]
pub trait Plugins1 {
    fn list(&self) -> zbus::Result<Vec<Dict>>;
    fn inspect(&self, id: &str) -> zbus::Result<Dict>;
    fn rescan(&self) -> zbus::Result<()>;
    fn trust(&self, id: &str, fingerprint: &str) -> zbus::Result<()>;
    fn enable(&self, id: &str, scopes: &[String]) -> zbus::Result<()>;
    fn disable(&self, id: &str) -> zbus::Result<()>;
    fn health(&self, id: &str) -> zbus::Result<Dict>;
    fn logs(&self, id: &str, count: u32) -> zbus::Result<Vec<(String, String)>>;
    fn read_log(&self, id: &str, after: u64, wait_ms: u32) -> zbus::Result<(u64, Vec<(String, String)>)>;
}

#[proxy(
    interface = "org.mpris.MediaPlayer2.Player",
    default_service = "org.mpris.MediaPlayer2.segue",
    default_path = "/org/mpris/MediaPlayer2"
)]
pub trait Mpris {
    fn set_position(&self, track: &zbus::ObjectPath<'_>, position: i64) -> zbus::Result<()>;

    #[zbus(property)]
    fn can_seek(&self) -> zbus::Result<bool>;
}

/// A connection to the bus that segued is on.
pub struct Daemon {
    pub connection: Connection,
}

impl Daemon {
    /// Connects to the given bus; without one, to the session's if segued is there, else to the system's.
    pub async fn find(bus: Option<&str>) -> Result<Daemon, Failure> {
        let builder = match bus {
            Some("session") => Builder::session(),
            Some("system") => Builder::system(),
            Some(address) => Builder::address(address),
            None => match Builder::session().build().await {
                Ok(connection) if is_owned(&connection).await => return Ok(Daemon { connection }),
                _ => Builder::system(),
            },
        };
        match builder.build().await {
            Ok(connection) => Ok(Daemon { connection }),
            Err(error) => Err(Failure::no_bus(&error)),
        }
    }

    /// Calls a method of Player1 that takes and gives nothing.
    pub async fn simply(&self, method: &str) -> Result<(), Failure> {
        self.connection.call_method(Some(NAME), PATH, Some(PLAYER), method, &()).await?;
        Ok(())
    }

    pub async fn player(&self) -> Result<Player1Proxy<'static>, Failure> {
        Ok(Player1Proxy::new(&self.connection).await?)
    }

    pub async fn queue(&self) -> Result<Queue1Proxy<'static>, Failure> {
        Ok(Queue1Proxy::new(&self.connection).await?)
    }

    pub async fn catalog(&self) -> Result<Catalog1Proxy<'static>, Failure> {
        Ok(Catalog1Proxy::new(&self.connection).await?)
    }

    pub async fn outputs(&self) -> Result<Outputs1Proxy<'static>, Failure> {
        Ok(Outputs1Proxy::new(&self.connection).await?)
    }

    pub async fn plugins(&self) -> Result<Plugins1Proxy<'static>, Failure> {
        Ok(Plugins1Proxy::new(&self.connection).await?)
    }

    pub async fn mpris(&self) -> Result<MprisProxy<'static>, Failure> {
        Ok(MprisProxy::new(&self.connection).await?)
    }

    /// Properties of our own object.
    pub async fn properties(&self) -> Result<PropertiesProxy<'static>, Failure> {
        Ok(PropertiesProxy::new(&self.connection, NAME, PATH).await?)
    }

    pub async fn player_properties(&self) -> Result<Dict, Failure> {
        let name = InterfaceName::from_static_str_unchecked(PLAYER);
        Ok(self.properties().await?.get_all(name).await?)
    }

    pub async fn queue_properties(&self) -> Result<Dict, Failure> {
        let name = InterfaceName::from_static_str_unchecked(QUEUE);
        Ok(self.properties().await?.get_all(name).await?)
    }

    pub async fn set_player(&self, property: &str, value: Variant<'_>) -> Result<(), Failure> {
        let name = InterfaceName::from_static_str_unchecked(PLAYER);
        Ok(self.properties().await?.set(name, property, &value).await?)
    }

    /// The current track as MPRIS tells it.
    pub async fn metadata(&self) -> Result<Dict, Failure> {
        let name = InterfaceName::from_static_str_unchecked(MPRIS_PLAYER);
        let properties = PropertiesProxy::new(&self.connection, MPRIS_NAME, MPRIS_PATH).await?;
        let metadata = properties.get(name, "Metadata").await?;
        Ok(metadata.try_into()?)
    }
}

async fn is_owned(connection: &Connection) -> bool {
    let name = zbus::names::WellKnownName::from_static_str_unchecked(NAME);
    match DBusProxy::new(connection).await {
        Ok(bus) => bus.name_has_owner(name.into()).await.unwrap_or(false),
        Err(_) => false,
    }
}

/// A value of a dictionary, if it is there and of that type.
pub fn get<T>(dict: &Dict, key: &str) -> Option<T>
where
    T: TryFrom<OwnedVariant>,
{
    dict.get(key)?.try_clone().ok()?.try_into().ok()
}

/// A text of a dictionary, empty if it is not there.
pub fn text(dict: &Dict, key: &str) -> String {
    get(dict, key).unwrap_or_default()
}

/// A list of texts of a dictionary, empty if it is not there.
pub fn texts(dict: &Dict, key: &str) -> Vec<String> {
    get(dict, key).unwrap_or_default()
}
