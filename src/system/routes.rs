//! Whether the kernel knows a way off this machine.

use std::fs;

/// RTF_UP of route(4): the route is usable.
const UP: u32 = 0x1;
/// RTF_REJECT: it leads nowhere, on purpose.
const REJECT: u32 = 0x200;
/// RTF_LOCAL: it leads to an address of this machine.
const LOCAL: u32 = 0x8000_0000;

/// Whether any route leads off this machine, be it only to the local network. True where the kernel does not tell.
pub fn lead_anywhere() -> bool {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/net/{name}"));
    match (read("route"), read("ipv6_route")) {
        (Err(_), Err(_)) => true,
        (v4, v6) => v4.is_ok_and(|table| leads_v4(&table)) || v6.is_ok_and(|table| leads_v6(&table)),
    }
}

/// Interface, destination, gateway, flags, …
fn leads_v4(table: &str) -> bool {
    table.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace();
        let interface = words.next().unwrap_or("lo");
        let flags = words.nth(2).and_then(|flags| u32::from_str_radix(flags, 16).ok());
        interface != "lo" && flags.is_some_and(|flags| flags & UP != 0 && flags & REJECT == 0)
    })
}

/// Destination, its length, source, its length, next hop, metric, references, uses, flags, interface. Each interface
/// that is up has a link-local route and one for multicast, which lead to no server.
fn leads_v6(table: &str) -> bool {
    table.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [destination, .., flags, interface] = words.as_slice() else { return false };
        let beyond_the_link = !destination.starts_with("fe8") && !destination.starts_with("ff");
        let flags = u32::from_str_radix(flags, 16).unwrap_or(REJECT);
        *interface != "lo" && beyond_the_link && flags & UP != 0 && flags & (REJECT | LOCAL) == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

    #[test]
    fn a_route_of_either_family_that_leaves_the_machine_is_one() {
        assert!(!leads_v4(HEAD));
        assert!(!leads_v4(&format!("{HEAD}lo\t0000007F\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n")));
        assert!(leads_v4(&format!("{HEAD}eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n")));
        assert!(leads_v4(&format!("{HEAD}wlan0\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n")));
        assert!(!leads_v4(&format!("{HEAD}eth0\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0\n")));
        let v6 = |destination: &str, flags: &str, interface: &str| {
            let zero = "0".repeat(32);
            leads_v6(&format!(
                "{destination} 40 {zero} 00 {zero} 00000100 00000001 00000000 {flags} {interface}\n"
            ))
        };
        assert!(v6("fd000000000000000000000000000000", "00000001", "eth0"));
        assert!(v6("00000000000000000000000000000000", "00000003", "eth0"));
        assert!(!v6("fe800000000000000000000000000000", "00000001", "eth0"));
        assert!(!v6("ff000000000000000000000000000000", "00000001", "eth0"));
        assert!(!v6("fd000000000000000000000000000002", "80200001", "eth0"));
        assert!(!v6("00000000000000000000000000000001", "80200001", "lo"));
        assert!(!v6("00000000000000000000000000000000", "00200200", "lo"));
        assert!(!leads_v6(""));
    }
}
