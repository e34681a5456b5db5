//! Whether the network is away, when somebody else fails who depends on it: a plugin that cannot ask its service.
//!
//! A stream finds out by itself, since it connects to its own server. For a plugin these are asked, in this order:
//!
//! 1. The kernel: no route leads off this machine. That says nothing for a plugin that may use this machine's own
//!    servers (scope `local-network`).
//! 2. The hosts that answered last, whenever that was: whether their names are still found, and whether one of them
//!    still takes connections. No request is made.
//! 3. Where none is known, as after a boot: whether the name servers say anything about a name that every one of them
//!    can answer for.
//!
//! As long as nothing of this shows that the network is there, it is away.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Host;

use super::http::{Answered, Web};
use super::names::NoAddress;
use super::reach;
use crate::track::Reach;

/// Hosts that are tried.
const TRIED: usize = 4;
/// Part of the name system itself: each name server that is connected to the internet finds it.
const WELL_KNOWN: &str = "a.root-servers.net";

/// What one host shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// Nobody says anything about its name.
    NoName,
    /// It takes no connection, or is not one to ask.
    NoHost,
    /// It is there; with whether that took a look-up.
    Reached { named: bool },
}

impl Web {
    /// Whether the network is away for who may reach so far.
    pub(super) async fn network_is_away(self: &Arc<Self>, reach: Reach) -> bool {
        if reach == Reach::Internet && !(self.surroundings.routes)() {
            return true;
        }
        let mut hosts = self.last_answers();
        hosts.retain(|host| match host.name {
            Host::Ipv4(address) => reach == Reach::Anywhere || reach::refusal(address.into()).is_none(),
            Host::Ipv6(address) => reach == Reach::Anywhere || reach::refusal(address.into()).is_none(),
            Host::Domain(_) => true,
        });
        hosts.truncate(TRIED);
        if !hosts.is_empty() {
            return away_by(&join_all(hosts.iter().map(|host| self.try_host(host, reach))).await);
        }
        // Without a host that answered, who may use servers of this machine may use only those.
        reach == Reach::Internet && self.try_name(WELL_KNOWN).await.is_err()
    }

    async fn try_host(self: &Arc<Self>, host: &Answered, reach: Reach) -> Sign {
        let (addresses, named) = match &host.name {
            Host::Ipv4(address) => (vec![SocketAddr::new((*address).into(), 0)], false),
            Host::Ipv6(address) => (vec![SocketAddr::new((*address).into(), 0)], false),
            Host::Domain(name) => match self.try_name(name).await {
                Ok(addresses) => (addresses, true),
                Err(()) => return Sign::NoName,
            },
        };
        let Ok(addresses) = reach::within(addresses, reach) else { return Sign::NoHost };
        let connecting = async {
            for mut address in addresses {
                address.set_port(host.port);
                match TcpStream::connect(address).await {
                    Ok(_) => return true,
                    // It says no, so it is there.
                    Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => return true,
                    Err(_) => {}
                }
            }
            false
        };
        match timeout(self.settings.connect_timeout, connecting).await {
            Ok(true) => Sign::Reached { named },
            _ => Sign::NoHost,
        }
    }

    /// Its addresses, perhaps none; an error when nobody says anything about it.
    async fn try_name(self: &Arc<Self>, name: &str) -> Result<Vec<SocketAddr>, ()> {
        match timeout(self.settings.connect_timeout, self.names.ask(name)).await {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(NoAddress::NoSuchName)) => Ok(Vec::new()),
            Ok(Err(NoAddress::NoAnswer(_))) | Err(_) => Err(()),
        }
    }
}

/// Names that nobody answers for are an outage, too: others' connections that are known by their addresses do not help
/// a plugin that has to look its service up.
fn away_by(signs: &[Sign]) -> bool {
    let found_by_name = signs.contains(&Sign::Reached { named: true });
    let reached = found_by_name || signs.contains(&Sign::Reached { named: false });
    !reached || signs.contains(&Sign::NoName) && !found_by_name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_is_there_when_a_host_is_and_names_are_found() {
        let (name, address) = (Sign::Reached { named: true }, Sign::Reached { named: false });
        assert!(!away_by(&[name]));
        assert!(!away_by(&[address]));
        assert!(!away_by(&[Sign::NoHost, address]));
        assert!(!away_by(&[Sign::NoName, Sign::NoHost, name]));
        assert!(away_by(&[]));
        assert!(away_by(&[Sign::NoHost, Sign::NoHost]));
        assert!(away_by(&[Sign::NoName]));
        assert!(away_by(&[address, Sign::NoName]));
    }
}
