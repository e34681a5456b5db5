//! Which addresses a URL may lead to.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use super::names::Names;
use crate::track::Reach;

/// Why `address` is not part of the Internet.
pub(crate) fn refusal(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => refusal_v4(v4),
        IpAddr::V6(v6) => match embedded(v6) {
            Some(v4) => refusal_v4(v4),
            None if v6.is_loopback() => Some(LOOPBACK),
            None if v6.is_unspecified() => Some(UNSPECIFIED),
            None if v6.is_unicast_link_local() => Some(LINK_LOCAL),
            None => None,
        },
    }
}

const LOOPBACK: &str = "it is this machine, and the plugin was not granted the scope local-network";
const LINK_LOCAL: &str = "it is a link-local address, and the plugin was not granted the scope local-network";
const UNSPECIFIED: &str = "it is not an address of a host";

fn refusal_v4(v4: Ipv4Addr) -> Option<&'static str> {
    if v4.is_loopback() {
        Some(LOOPBACK)
    } else if v4.is_link_local() {
        Some(LINK_LOCAL)
    } else if v4.octets()[0] == 0 {
        // Linux connects 0.0.0.0 to this machine.
        Some(UNSPECIFIED)
    } else {
        None
    }
}

/// The IPv4 address inside of an IPv6 one: mapped (`::ffff:0:0/96`), translated by NAT64 (`64:ff9b::/96`, and what
/// networks use of their own, `64:ff9b:1::/48`), or tunnelled by 6to4 (`2002::/16`). The old compatible form (`::/96`)
/// is taken along, except for `::` and `::1`.
fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => v4(high, low),
        _ => None,
    }
}

/// Checks the URL itself: hosts that are addresses do not pass through name resolution.
pub(super) fn check_url(url: &Url, reach: Reach) -> Result<(), &'static str> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err("only http and https can be played");
    }
    let literal = match url.host() {
        Some(Host::Ipv4(v4)) => IpAddr::V4(v4),
        Some(Host::Ipv6(v6)) => IpAddr::V6(v6),
        Some(Host::Domain(_)) => return Ok(()),
        None => return Err("it names no host"),
    };
    match reach {
        Reach::Anywhere => Ok(()),
        Reach::Internet => refusal(literal).map_or(Ok(()), Err),
    }
}

/// Of these addresses those that are within reach; an error when all of them are out of it.
pub(super) fn within(found: Vec<SocketAddr>, reach: Reach) -> Result<Vec<SocketAddr>, OutOfReach> {
    let Reach::Internet = reach else { return Ok(found) };
    let refused = found.iter().find_map(|address| refusal(address.ip()));
    let kept: Vec<_> = found.into_iter().filter(|address| refusal(address.ip()).is_none()).collect();
    match refused {
        Some(why) if kept.is_empty() => Err(OutOfReach(why)),
        _ => Ok(kept),
    }
}

/// Name look-ups for a client. What it returns is what is connected to: nothing looks the name up again in between.
pub(super) struct Within {
    pub names: Arc<Names>,
    pub reach: Reach,
}

impl Resolve for Within {
    fn resolve(&self, name: Name) -> Resolving {
        let (names, reach) = (Arc::clone(&self.names), self.reach);
        Box::pin(async move {
            let found = names.find(name.as_str()).await?;
            Ok(Box::new(within(found, reach)?.into_iter()) as Addrs)
        })
    }
}

/// All addresses of a name are out of reach.
#[derive(Debug)]
pub(super) struct OutOfReach(pub &'static str);

impl fmt::Display for OutOfReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for OutOfReach {}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(url: &str) -> bool {
        check_url(&Url::parse(url).unwrap(), Reach::Internet).is_ok()
    }

    #[test]
    fn this_machine_is_refused_however_it_is_written() {
        for host in [
            "127.0.0.1",
            "127.0.0.1.",
            "127.9.8.7",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "%31%32%37.0.0.1",
            "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
            "127\u{3002}0\u{3002}0\u{3002}1",
            "0.0.0.0",
            "0",
            "169.254.169.254",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::]",
            "[fe80::1]",
            "[febf::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:a9fe:a9fe]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b:1::7f00:1]",
            "[64:ff9b:1:abcd::169.254.1.1]",
            "[2002:7f00:1::]",
            "[2002:7f00:1:5:a:b:c:d]",
            "[2002:a9fe:101::1]",
            "[::7f00:1]",
        ] {
            assert!(!allowed(&format!("http://{host}/a.flac")), "{host}");
        }
        for host in [
            "1.1.1.1",
            "192.168.1.5",
            "[2606:4700::1111]",
            "[fd12::5]",
            "[::ffff:8.8.8.8]",
            "[64:ff9b::8.8.8.8]",
            "[2002:808:808::1]",
            "example.org",
        ] {
            assert!(allowed(&format!("https://{host}/a.flac")), "{host}");
        }
        assert!(!allowed("file:///etc/passwd"));
    }

    #[test]
    fn an_address_with_an_interface_is_no_url() {
        for url in ["http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::1%lo]/"] {
            assert!(Url::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn of_a_name_with_addresses_here_and_there_only_those_there_are_used() {
        let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect()
        };
        let found = addresses(&["127.0.0.1", "192.0.2.1", "::1", "fe80::1", "2001:db8::1"]);
        let kept = within(found.clone(), Reach::Internet).unwrap();
        assert_eq!(kept, addresses(&["192.0.2.1", "2001:db8::1"]));
        assert_eq!(within(found.clone(), Reach::Anywhere).unwrap(), found);
        assert!(within(addresses(&["127.0.0.1", "::1"]), Reach::Internet).is_err());
    }
}
