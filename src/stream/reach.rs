//! Which addresses a URL may lead to.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

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

/// The IPv4 address inside of a mapped (`::ffff:0:0/96`) or a translated (`64:ff9b::/96`) one. The old
/// compatible form (`::/96`) is taken along, except for `::` and `::1`.
fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = v6.segments();
    let prefix = [a, b, c, d, e, f];
    let translated = prefix == [0x64, 0xff9b, 0, 0, 0, 0];
    let compatible = prefix == [0; 6] && (high != 0 || low > 1);
    let v4 = Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    if translated || compatible { Some(v4) } else { v6.to_ipv4_mapped() }
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

/// Name resolution by the system, so that nsswitch and `.local` names keep working, less the addresses that
/// are out of reach.
pub(super) struct Names {
    pub reach: Reach,
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.reach;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let (kept, refused) = match reach {
                Reach::Anywhere => (found, None),
                Reach::Internet => {
                    let refused = found.iter().find_map(|address| refusal(address.ip()));
                    (found.into_iter().filter(|address| refusal(address.ip()).is_none()).collect(), refused)
                }
            };
            match refused {
                Some(why) if kept.is_empty() => Err(OutOfReach(why).into()),
                _ => Ok(Box::new(kept.into_iter()) as Addrs),
            }
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

/// Whether a failed look-up was an answer ("there is no such name") rather than the lack of one. The standard
/// library keeps only the text of the resolver's error; these are glibc's and musl's.
pub(super) fn no_such_name(error: &io::Error) -> bool {
    let text = error.to_string();
    ["Name or service not known", "No address associated with hostname", "Name does not resolve"]
        .iter()
        .any(|known| text.contains(known))
}

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
            "127.9.8.7",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "0.0.0.0",
            "0",
            "169.254.169.254",
            "[::1]",
            "[::]",
            "[fe80::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:a9fe:a9fe]",
            "[64:ff9b::7f00:1]",
            "[::7f00:1]",
        ] {
            assert!(!allowed(&format!("http://{host}/a.flac")), "{host}");
        }
        for host in ["1.1.1.1", "192.168.1.5", "[2606:4700::1111]", "[::ffff:8.8.8.8]", "example.org"] {
            assert!(allowed(&format!("https://{host}/a.flac")), "{host}");
        }
        assert!(!allowed("file:///etc/passwd"));
    }
}
