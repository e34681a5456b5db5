//! The way onto the bus, and back onto it.

use std::time::Duration;

use tokio::sync::watch;
use zbus::connection::Builder;
use zbus::fdo::RequestNameFlags;
use zbus::{Connection, Error};

use super::caller::Callers;
use super::catalog::Catalog1;
use super::mpris::Root;
use super::mpris_player::MprisPlayer;
use super::outputs::Outputs1;
use super::player::Player1;
use super::plugins::Plugins1;
use super::queue::Queue1;
use super::signals::{self, News, Told};
use super::{Bus, MPRIS_NAME, MPRIS_PATH, Player, SEGUE_NAME, SEGUE_PATH, Services};

/// First pause before the bus is tried again; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long the bus itself may take over an answer.
const BUS_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves for ever: connects, puts all objects in place, then takes both names.
///
/// A bus that is missing or goes away is waited for; that is said once. `ready` is true while the names are
/// taken.
pub async fn serve(bus: Bus, services: Services, ready: watch::Sender<bool>) {
    let mut pause = FIRST_PAUSE;
    let mut said = false;
    loop {
        let news = News {
            state: services.state.clone(),
            notices: services.notices.subscribe(),
            plugins: services.plugins.subscribe(),
        };
        match connect(&bus, &services).await {
            Ok((connection, told)) => {
                tracing::info!(%bus, "on the bus as {SEGUE_NAME} and {MPRIS_NAME}");
                ready.send_replace(true);
                pause = FIRST_PAUSE;
                let announced = tokio::select! {
                    announced = signals::announce(&connection, news, told) => announced,
                    () = connection.closed() => Ok(()),
                };
                ready.send_replace(false);
                if let Err(error) = announced {
                    tracing::debug!(%error, "announcing ended");
                }
                if services.state.has_changed().is_err() {
                    return; // the player is gone, so is what could be shown
                }
                tracing::warn!(%bus, "the bus is gone; music plays on, and the bus is waited for");
                said = true;
            }
            Err(error) if said => tracing::debug!(%bus, %error, "still not on the bus"),
            Err(error) => {
                said = true;
                warn_of(&bus, &error);
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn warn_of(bus: &Bus, error: &Error) {
    match error {
        Error::NameTaken => tracing::warn!(
            %bus,
            "another program has the name {SEGUE_NAME} or {MPRIS_NAME}; stop the other segued. \
             Trying again now and then"
        ),
        error => tracing::warn!(
            %bus, %error,
            "not on the bus: Segue plays on and cannot be controlled until the bus is there; trying again now and then"
        ),
    }
}

async fn connect(bus: &Bus, services: &Services) -> Result<(Connection, Told), Error> {
    let builder = match bus {
        Bus::System => Builder::system(),
        Bus::Session => Builder::session(),
        Bus::Address(address) => Builder::address(address.as_str()),
    };
    let callers = match bus {
        Bus::System => Callers::Shared,
        Bus::Session | Bus::Address(_) => Callers::Private,
    };
    let [mpris, player, queue, outputs] = [(); 4].map(|()| Player::new(services));
    let told = Told {
        mpris: mpris.announced.clone(),
        player: player.announced.clone(),
        queue: queue.announced.clone(),
    };
    let connection = builder
        .method_timeout(BUS_TIMEOUT)
        .serve_at(MPRIS_PATH, Root)
        .serve_at(MPRIS_PATH, MprisPlayer { player: mpris })
        .serve_at(SEGUE_PATH, Player1 { player })
        .serve_at(SEGUE_PATH, Queue1 { player: queue })
        .serve_at(SEGUE_PATH, Outputs1::new(outputs, services.devices.clone()))
        .serve_at(SEGUE_PATH, Catalog1::new(services.plugins.clone()))
        .serve_at(SEGUE_PATH, Plugins1::new(services.plugins.clone(), callers))
        .build()
        .await?;
    // Neither take the names from another segued nor let one take ours: it would play on, out of control.
    for name in [MPRIS_NAME, SEGUE_NAME] {
        connection.request_name_with_flags(name, RequestNameFlags::DO_NOT_QUEUE).await?;
    }
    Ok((connection, told))
}
