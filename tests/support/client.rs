//! The daemon as the bus shows it, and everything that it said.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::StreamExt;
use tokio::sync::watch;
use zbus::message::Type;
use zbus::proxy::{Builder, CacheProperties};
use zbus::{Connection, MatchRule, Message, MessageStream, OwnedVariant, Proxy};

use super::PATIENCE;

/// The daemon's names on the bus.
pub const NAME: &str = "org.segue.Segue1";
pub const MPRIS_NAME: &str = "org.mpris.MediaPlayer2.segue";
const PATH: &str = "/org/segue/Segue1";
const MPRIS_PATH: &str = "/org/mpris/MediaPlayer2";

/// `a{sv}`.
pub type Dict = HashMap<String, OwnedVariant>;

/// Something that the daemon announced.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Player1.Event.
    Event { kind: String, entry: u64, text: String },
    /// Player1.Error.
    Error { code: String, message: String },
    /// Player1.State became this.
    State(String),
    /// Player1.Volume became this, and nothing was said of the state.
    Volume(f64),
    /// Outputs1.Changed.
    OutputsChanged,
    /// MPRIS Seeked, in microseconds.
    Seeked(i64),
    /// The name on the bus is there, or gone.
    OnTheBus(bool),
}

/// Everything that was announced since the recording began, and when.
#[derive(Clone)]
pub struct Record {
    said: Arc<Mutex<Vec<(Instant, Said)>>>,
    count: watch::Receiver<usize>,
}

impl Record {
    /// Records until the connection ends.
    pub async fn begin(connection: &Connection) -> Record {
        let rule = MatchRule::builder().msg_type(Type::Signal).build().unwrap();
        let mut signals =
            MessageStream::for_match_rule(rule, connection, NonZeroUsize::new(4096)).await.unwrap();
        let said: Arc<Mutex<Vec<(Instant, Said)>>> = Arc::default();
        let (counter, count) = watch::channel(0);
        let kept = said.clone();
        tokio::spawn(async move {
            while let Some(Ok(signal)) = signals.next().await {
                if let Some(said) = understand(&signal) {
                    kept.lock().unwrap().push((Instant::now(), said));
                    counter.send_modify(|count| *count += 1);
                }
            }
        });
        Record { said, count }
    }

    /// All of it.
    pub fn all(&self) -> Vec<Said> {
        self.said.lock().unwrap().iter().map(|(_, said)| said.clone()).collect()
    }

    /// How much there is: a place to wait from.
    pub fn len(&self) -> usize {
        self.said.lock().unwrap().len()
    }

    /// When the first that fits was said.
    pub fn when(&self, fits: impl Fn(&Said) -> bool) -> Option<Instant> {
        self.said.lock().unwrap().iter().find(|(_, said)| fits(said)).map(|(when, _)| *when)
    }

    /// Waits for something to be said, at or after the place `from`.
    pub async fn wait_from(&mut self, from: usize, what: &str, fits: impl Fn(&Said) -> bool) -> Said {
        let looked = async {
            loop {
                self.count.borrow_and_update();
                let found = self.all().into_iter().skip(from).find(|said| fits(said));
                if let Some(found) = found {
                    return found;
                }
                if self.count.changed().await.is_err() {
                    panic!("the connection ended while this was waited for: {what}");
                }
            }
        };
        let outcome = tokio::time::timeout(PATIENCE, looked).await;
        outcome.unwrap_or_else(|_| {
            panic!("waited {PATIENCE:?} in vain: {what}; the daemon said {:#?}", self.all())
        })
    }
}

fn understand(signal: &Message) -> Option<Said> {
    let header = signal.header();
    let body = signal.body();
    match header.member()?.as_str() {
        "Event" => {
            let (kind, entry, text) = body.deserialize().ok()?;
            Some(Said::Event { kind, entry, text })
        }
        "Error" => {
            let (code, message) = body.deserialize().ok()?;
            Some(Said::Error { code, message })
        }
        "Changed" if header.interface()?.as_str() == "org.segue.Outputs1" => Some(Said::OutputsChanged),
        "Seeked" => Some(Said::Seeked(body.deserialize().ok()?)),
        "NameOwnerChanged" => {
            let (name, _, owner): (String, String, String) = body.deserialize().ok()?;
            (name == NAME).then_some(Said::OnTheBus(!owner.is_empty()))
        }
        "PropertiesChanged" => {
            let (interface, changed, _): (String, Dict, Vec<String>) = body.deserialize().ok()?;
            let of_player = |key| changed.get(key).filter(|_| interface == "org.segue.Player1");
            match (of_player("State"), of_player("Volume")) {
                (Some(state), _) => Some(Said::State(state.try_clone().ok()?.try_into().ok()?)),
                (None, volume) => Some(Said::Volume(volume?.try_clone().ok()?.try_into().ok()?)),
            }
        }
        _ => None,
    }
}

/// A value of a dictionary.
#[track_caller]
pub fn get<T: TryFrom<OwnedVariant>>(dict: &Dict, key: &str) -> T {
    try_get(dict, key).unwrap_or_else(|| panic!("no {key} of that type in {dict:?}"))
}

/// A value of a dictionary, if it is there and of that type.
pub fn try_get<T: TryFrom<OwnedVariant>>(dict: &Dict, key: &str) -> Option<T> {
    dict.get(key)?.try_clone().ok()?.try_into().ok()
}

/// The daemon's interfaces.
pub struct Client {
    /// To the daemon's bus.
    pub connection: Connection,
    /// org.segue.Player1.
    pub player: Proxy<'static>,
    /// org.segue.Queue1.
    pub queue: Proxy<'static>,
    /// org.segue.Outputs1.
    pub outputs: Proxy<'static>,
    /// org.segue.Catalog1.
    pub catalog: Proxy<'static>,
    /// org.segue.Plugins1.
    pub plugins: Proxy<'static>,
    /// org.mpris.MediaPlayer2.Player.
    pub mpris: Proxy<'static>,
}

impl Client {
    /// Makes proxies; the daemon need not be there yet.
    pub async fn new(connection: Connection) -> Client {
        let proxy = async |name: &'static str, path: &'static str, interface: &'static str| {
            let builder: Builder<'_, Proxy<'_>> = Builder::new(&connection);
            let builder = builder.destination(name).path(path).interface(interface);
            builder.cache_properties(CacheProperties::No).build().await.unwrap()
        };
        Client {
            player: proxy(NAME, PATH, "org.segue.Player1").await,
            queue: proxy(NAME, PATH, "org.segue.Queue1").await,
            outputs: proxy(NAME, PATH, "org.segue.Outputs1").await,
            catalog: proxy(NAME, PATH, "org.segue.Catalog1").await,
            plugins: proxy(NAME, PATH, "org.segue.Plugins1").await,
            mpris: proxy(MPRIS_NAME, MPRIS_PATH, "org.mpris.MediaPlayer2.Player").await,
            connection,
        }
    }

    /// Adds to the end of the queue and says the entries.
    pub async fn add(&self, uris: &[impl AsRef<str>]) -> Vec<u64> {
        self.insert(uris, 0).await
    }

    /// Adds before an entry.
    pub async fn insert(&self, uris: &[impl AsRef<str>], before: u64) -> Vec<u64> {
        let uris: Vec<&str> = uris.iter().map(AsRef::as_ref).collect();
        self.queue.call("Add", &(uris, before)).await.unwrap()
    }

    /// Adds these behind the current entry and plays the first.
    pub async fn play_uris(&self, uris: &[impl AsRef<str>]) {
        let uris: Vec<&str> = uris.iter().map(AsRef::as_ref).collect();
        self.player.call_method("PlayUris", &uris).await.unwrap();
    }

    async fn simply(&self, method: &str) {
        self.player.call_method(method, &()).await.unwrap_or_else(|error| panic!("{method}: {error}"));
    }

    pub async fn play(&self) {
        self.simply("Play").await;
    }

    pub async fn pause(&self) {
        self.simply("Pause").await;
    }

    pub async fn stop(&self) {
        self.simply("Stop").await;
    }

    pub async fn next(&self) {
        self.simply("Next").await;
    }

    pub async fn previous(&self) {
        self.simply("Previous").await;
    }

    /// Moves by so many microseconds.
    pub async fn seek_by(&self, micros: i64) {
        self.player.call_method("SeekBy", &micros).await.unwrap();
    }

    /// Moves within the current track, to so many microseconds.
    pub async fn set_position(&self, micros: i64) {
        let track = format!("/org/segue/track/{}", self.current().await);
        let track = zbus::ObjectPath::try_from(track).unwrap();
        self.mpris.call_method("SetPosition", &(track, micros)).await.unwrap();
    }

    pub async fn set_volume(&self, volume: f64) {
        self.player.set_property("Volume", volume).await.unwrap();
    }

    /// stopped, buffering, playing or paused.
    pub async fn state(&self) -> String {
        self.player.get_property("State").await.unwrap()
    }

    /// Microseconds.
    pub async fn position(&self) -> i64 {
        self.player.get_property("Position").await.unwrap()
    }

    /// The current entry, 0 for none.
    pub async fn current(&self) -> u64 {
        self.queue.get_property("Current").await.unwrap()
    }

    /// Player1.Output.
    pub async fn output(&self) -> Dict {
        self.player.get_property("Output").await.unwrap()
    }

    /// Player1.Buffer.
    pub async fn buffer(&self) -> Dict {
        self.player.get_property("Buffer").await.unwrap()
    }

    /// Code and message.
    pub async fn last_error(&self) -> (String, String) {
        self.player.get_property("LastError").await.unwrap()
    }

    /// MPRIS metadata.
    pub async fn metadata(&self) -> Dict {
        self.mpris.get_property("Metadata").await.unwrap()
    }

    /// The entries and URIs of the queue.
    pub async fn listed(&self) -> Vec<(u64, String)> {
        let entries: Vec<(u64, Dict)> = self.queue.call("List", &(0u32, 1_000u32)).await.unwrap();
        entries.into_iter().map(|(entry, track)| (entry, get(&track, "uri"))).collect()
    }

    /// Outputs1.List.
    pub async fn output_devices(&self) -> Vec<Dict> {
        self.outputs.call("List", &()).await.unwrap()
    }

    /// Lets sound go there.
    pub async fn select_output(&self, name: &str) -> zbus::Result<()> {
        self.outputs.call_method("Select", &name).await.map(|_| ())
    }

    /// Results, and errors by plugin.
    #[allow(clippy::type_complexity)]
    pub async fn search(&self, words: &str) -> zbus::Result<(Vec<Dict>, HashMap<String, (i32, String)>)> {
        self.catalog.call("Search", &(words, HashMap::<&str, OwnedVariant>::new())).await
    }

    /// Trusts a plugin as it is and lets it run with these scopes.
    pub async fn trust_and_enable(&self, id: &str, scopes: &[&str]) {
        let review: Dict = self.plugins.call("Inspect", &id).await.unwrap();
        let fingerprint: String = get(&review, "fingerprint");
        self.plugins.call_method("Trust", &(id, &fingerprint)).await.unwrap();
        self.plugins.call_method("Enable", &(id, scopes)).await.unwrap();
    }
}

/// The name and the sentence of the error that a call was refused with.
#[track_caller]
pub fn refusal<T: std::fmt::Debug>(outcome: zbus::Result<T>) -> (String, String) {
    use zbus::DBusError;
    match outcome.expect_err("the call should have been refused") {
        zbus::Error::MethodError(name, sentence, _) => (name.to_string(), sentence.unwrap_or_default()),
        zbus::Error::FDO(error) => {
            (error.name().to_string(), error.description().unwrap_or_default().to_owned())
        }
        other => panic!("no refusal but {other}"),
    }
}
