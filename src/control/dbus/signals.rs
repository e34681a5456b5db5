//! From what changes to what is announced.
//!
//! The state comes through a watch channel: of many changes in a row the listeners see the newest, in one
//! PropertiesChanged for each interface. What must not be lost comes as notices, one by one.

use std::borrow::Cow;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use zbus::fdo::Properties;
use zbus::names::InterfaceName;
use zbus::object_server::{Interface, SignalEmitter};
use zbus::{Connection, Variant};

use super::mpris_player::MprisPlayer;
use super::outputs::Outputs1;
use super::player::Player1;
use super::plugins::Plugins1;
use super::queue::Queue1;
use super::values::{Dict, change, entry_number, text};
use super::{Announced, MPRIS_PATH, SEGUE_PATH, mpris_player, player, queue};
use crate::control::{Notice, State};
use crate::output::devices::HotPlug;
use crate::track::PluginId;

/// What differs between two states, as properties.
pub struct Changes<'a> {
    old: &'a State,
    new: &'a State,
    dict: Dict,
}

impl<'a> Changes<'a> {
    pub fn between(old: &'a State, new: &'a State) -> Self {
        Changes { old, new, dict: Dict::new() }
    }

    /// Adds the property if its value differs.
    pub fn compare<T>(&mut self, property: &'static str, value: impl Fn(&State) -> T)
    where
        T: PartialEq + Into<Variant<'static>>,
    {
        let new = value(self.new);
        if value(self.old) != new {
            self.put(property, new);
        }
    }

    /// Adds the property.
    pub fn put(&mut self, property: &'static str, value: impl Into<Variant<'static>>) {
        self.dict.insert(property, value.into());
    }

    pub fn into_dict(self) -> Dict {
        self.dict
    }
}

/// What each interface told its listeners last.
pub struct Told {
    pub mpris: Announced,
    pub player: Announced,
    pub queue: Announced,
}

/// Where what is announced comes from.
pub struct News {
    pub state: watch::Receiver<State>,
    pub notices: broadcast::Receiver<Notice>,
    pub plugins: broadcast::Receiver<PluginId>,
}

/// Announces until the connection or the player is gone.
pub async fn announce(connection: &Connection, news: News, told: Told) -> zbus::Result<()> {
    let mpris = SignalEmitter::new(connection, MPRIS_PATH)?;
    let segue = SignalEmitter::new(connection, SEGUE_PATH)?;
    let News { mut state, mut notices, mut plugins } = news;
    state.mark_changed(); // whatever happened since the objects were made
    let mut cards = HotPlug::watch();
    let output = |state: &State| (state.output.device.clone(), state.selected_output.clone());
    let mut in_use = output(&state.borrow());
    loop {
        tokio::select! {
            biased; // a new track before what happens in it
            changed = state.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
                let now = state.borrow_and_update().clone();
                properties(&mpris, MprisPlayer::name(), &told.mpris, &now, mpris_player::changes).await?;
                properties(&segue, Player1::name(), &told.player, &now, player::changes).await?;
                properties(&segue, Queue1::name(), &told.queue, &now, queue::changes).await?;
                if in_use != output(&now) {
                    in_use = output(&now);
                    Outputs1::changed(&segue).await?;
                }
            }
            notice = notices.recv() => match notice {
                Ok(notice) => announce_notice(&mpris, &segue, notice).await?,
                Err(RecvError::Lagged(missed)) => {
                    tracing::info!(missed, "the bus is slow; the queue is announced as a whole");
                    let revision = state.borrow().queue.revision;
                    Queue1::changed(&segue, revision, vec![("replaced", Vec::new(), 0)]).await?;
                }
                Err(RecvError::Closed) => return Ok(()),
            },
            () = cards.changed() => Outputs1::changed(&segue).await?,
            plugin = plugins.recv() => match plugin {
                Ok(plugin) => Plugins1::changed(&segue, plugin.as_str()).await?,
                Err(RecvError::Lagged(_)) => Plugins1::changed(&segue, "").await?,
                Err(RecvError::Closed) => return Ok(()),
            },
        }
    }
}

async fn properties(
    emitter: &SignalEmitter<'_>,
    interface: InterfaceName<'static>,
    announced: &Announced,
    now: &State,
    changes: fn(&State, &State) -> Dict,
) -> zbus::Result<()> {
    let mut announced = announced.lock().await;
    let changed = changes(&announced, now);
    announced.clone_from(now);
    if changed.is_empty() {
        return Ok(());
    }
    Properties::properties_changed(emitter, interface, changed, Cow::Borrowed(&[])).await
}

async fn announce_notice(
    mpris: &SignalEmitter<'_>,
    segue: &SignalEmitter<'_>,
    notice: Notice,
) -> zbus::Result<()> {
    match notice {
        Notice::Seeked(position) => MprisPlayer::seeked(mpris, position).await,
        Notice::Error(error) => Player1::error(segue, &text(&error.code), &text(&error.message)).await,
        Notice::Queue { revision, change: what } => {
            Queue1::changed(segue, revision, vec![change(&what)]).await
        }
        Notice::Event { kind, entry, text: sentence } => {
            Player1::event(segue, kind, entry_number(entry), &text(&sentence)).await
        }
    }
}
