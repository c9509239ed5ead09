//! The table of IP addresses that are not public.
//!
//! Responsible for the rule that the guard applies to every address. For IPv6 everything outside `2000::/3` is
//! closed, so a block that IANA assigns later is closed as well.
//!
//! Source: the IANA special-purpose registries for IPv4 and IPv6 (snapshot 2026-07-18; compare once a year) and the
//! multicast registries. `::ffff:0:0/96` and `64:ff9b::/96` (NAT64) are judged by the IPv4 address inside.
//!
//! Known limit: a network's own NAT64 prefix (RFC 6052) looks like any address in `2000::/3`. Only that network can
//! close it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// A range of addresses that are not public. `N` is the beginning of the network: 4 octets or 3 segments.
struct ClosedRange<N> {
    network: N,
    /// The prefix length in bits.
    prefix_len: u32,
    name: &'static str,
}

/// Creates a range, so that a table has one line per range.
const fn range<N: Copy>(network: N, prefix_len: u32, name: &'static str) -> ClosedRange<N> {
    ClosedRange {
        network,
        prefix_len,
        name,
    }
}

/// The IPv4 ranges that are not public. Everything else in IPv4 is public.
const CLOSED_IPV4_RANGES: [ClosedRange<[u8; 4]>; 19] = [
    range([0, 0, 0, 0], 8, "this network"),
    range([10, 0, 0, 0], 8, "private"),
    range([100, 64, 0, 0], 10, "carrier NAT"),
    range([127, 0, 0, 0], 8, "loopback"),
    range([169, 254, 0, 0], 16, "link-local"),
    range([172, 16, 0, 0], 12, "private"),
    range([192, 0, 0, 0], 24, "protocol assignments"),
    range([192, 0, 2, 0], 24, "documentation"),
    range([192, 31, 196, 0], 24, "AS112"),
    range([192, 52, 193, 0], 24, "AMT"),
    range([192, 88, 99, 0], 24, "6to4 relay"),
    range([192, 168, 0, 0], 16, "private"),
    range([192, 175, 48, 0], 24, "AS112"),
    range([198, 18, 0, 0], 15, "benchmarking"),
    range([198, 51, 100, 0], 24, "documentation"),
    range([203, 0, 113, 0], 24, "documentation"),
    range([224, 0, 0, 0], 4, "multicast"),
    range([240, 0, 0, 0], 4, "reserved"),
    // Not in a registry: the host side of virtual machines in Azure.
    range([168, 63, 129, 16], 32, "cloud host"),
];

/// The closed ranges inside `2000::/3`. Everything outside of it is closed anyway.
const CLOSED_IPV6_RANGES: [ClosedRange<[u16; 3]>; 5] = [
    range([0x2001, 0, 0], 23, "protocol assignments, Teredo"),
    range([0x2001, 0xdb8, 0], 32, "documentation"),
    range([0x2002, 0, 0], 16, "6to4"),
    range([0x2620, 0x4f, 0x8000], 48, "AS112"),
    range([0x3fff, 0, 0], 20, "documentation"),
];

/// Returns the IPv4 address inside a mapped or NAT64 address, and any other address unchanged.
pub fn unwrap_embedded_ipv4(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = ip else { return ip };
    let [.., a, b, c, d] = v6.octets();
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => {
            Ipv4Addr::new(a, b, c, d).into()
        }
        _ => ip,
    }
}

/// Returns the range that makes an address private, such as `private (10.0.0.0/8)`, or `None` if the address is
/// public.
pub fn find_closed_range(ip: IpAddr) -> Option<String> {
    match unwrap_embedded_ipv4(ip) {
        IpAddr::V4(v4) => find_closed_ipv4(v4).map(|range| {
            let (what, bits) = (range.name, range.prefix_len);
            let net = Ipv4Addr::from(range.network);
            match ip {
                IpAddr::V4(_) => format!("{what} ({net}/{bits})"),
                IpAddr::V6(_) => format!("{what} ({v4} inside, {net}/{bits})"),
            }
        }),
        IpAddr::V6(v6) => find_closed_ipv6(v6),
    }
}

fn find_closed_ipv4(ip: Ipv4Addr) -> Option<&'static ClosedRange<[u8; 4]>> {
    let bits = u32::from(ip);
    CLOSED_IPV4_RANGES
        .iter()
        .find(|range| (bits ^ u32::from_be_bytes(range.network)) >> (32 - range.prefix_len) == 0)
}

fn find_closed_ipv6(ip: Ipv6Addr) -> Option<String> {
    let bits = u128::from(ip);
    // `2000::/3`: the first three bits are 001.
    if bits >> 125 != 0b001 {
        let what = match ip.segments() {
            [0, 0, 0, 0, 0, 0, 0, 1] => "loopback",
            [0, 0, 0, 0, 0, 0, 0, 0] => "unspecified",
            [first, ..] if first & 0xfe00 == 0xfc00 => "private (fc00::/7)",
            [first, ..] if first & 0xffc0 == 0xfe80 => "link-local (fe80::/10)",
            [first, ..] if first & 0xff00 == 0xff00 => "multicast (ff00::/8)",
            _ => "not global unicast (outside 2000::/3)",
        };
        return Some(what.to_owned());
    }
    CLOSED_IPV6_RANGES.iter().find_map(|range| {
        let ([a, b, c], len, what) = (range.network, range.prefix_len, range.name);
        let net = Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0);
        ((bits ^ u128::from(net)) >> (128 - len) == 0).then(|| format!("{what} ({net}/{len})"))
    })
}

/// Returns `true` if the address belongs to this machine: a route to it then starts at it. Sends nothing, because
/// connecting a datagram socket only asks the kernel for the route.
pub fn is_own_address(ip: IpAddr) -> bool {
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = || {
        let socket = UdpSocket::bind((any, 0))?;
        // Any port serves: no packet is sent. 9 is `discard`.
        socket.connect((ip, 9))?;
        socket.local_addr()
    };
    // Without a route the address cannot be dialled either.
    from().is_ok_and(|from| from.ip() == ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row of the registries, those that are reachable included (the policy closes them too): (network, prefix length).
    /// Written from the registries, not from the tables above.
    const ROWS_4: [(&str, u32); 26] = [
        ("0.0.0.0", 8),
        ("0.0.0.0", 32),
        ("10.0.0.0", 8),
        ("100.64.0.0", 10),
        ("127.0.0.0", 8),
        ("169.254.0.0", 16),
        ("172.16.0.0", 12),
        ("192.0.0.0", 24),
        ("192.0.0.0", 29),
        ("192.0.0.8", 32),
        ("192.0.0.9", 32),
        ("192.0.0.10", 32),
        ("192.0.0.170", 31),
        ("192.0.2.0", 24),
        ("192.31.196.0", 24),
        ("192.52.193.0", 24),
        ("192.88.99.0", 24),
        ("192.88.99.2", 32),
        ("192.168.0.0", 16),
        ("192.175.48.0", 24),
        ("198.18.0.0", 15),
        ("198.51.100.0", 24),
        ("203.0.113.0", 24),
        ("224.0.0.0", 4),
        ("240.0.0.0", 4),
        ("255.255.255.255", 32),
    ];

    const ROWS_6: [(&str, u32); 26] = [
        ("::1", 128),
        ("::", 128),
        ("::", 96),
        ("::ffff:0:0:0", 96),
        ("64:ff9b:1::", 48),
        ("100::", 64),
        ("100:0:0:1::", 64),
        ("2001::", 23),
        ("2001::", 32),
        ("2001:1::1", 128),
        ("2001:1::3", 128),
        ("2001:2::", 48),
        ("2001:3::", 32),
        ("2001:4:112::", 48),
        ("2001:10::", 28),
        ("2001:20::", 28),
        ("2001:30::", 28),
        ("2001:db8::", 32),
        ("2002::", 16),
        ("2620:4f:8000::", 48),
        ("3fff::", 20),
        ("5f00::", 16),
        ("fc00::", 7),
        ("fe80::", 10),
        ("fec0::", 10),
        ("ff00::", 8),
    ];

    /// First, second, middle, last but one and last address of a block.
    fn samples_4() -> Vec<Ipv4Addr> {
        let mut all = vec![
            Ipv4Addr::new(168, 63, 129, 16),
            Ipv4Addr::new(192, 0, 0, 192),
        ];
        for (net, len) in ROWS_4 {
            let first = u32::from(net.parse::<Ipv4Addr>().unwrap());
            let last = first | u32::MAX.checked_shr(len).unwrap_or(0);
            let mid = first + (last - first) / 2;
            for bits in [
                first,
                last.min(first.saturating_add(1)),
                mid,
                first.max(last.saturating_sub(1)),
                last,
            ] {
                all.push(bits.into());
            }
        }
        all
    }

    #[test]
    fn reason_names_the_range_of_an_ipv6_address() {
        for (ip, reason) in [
            ("::1", "loopback"),
            ("::", "unspecified"),
            ("::2", "not global unicast (outside 2000::/3)"),
            ("fc00::1", "private (fc00::/7)"),
            ("fdff::1", "private (fc00::/7)"),
            ("fe00::1", "not global unicast (outside 2000::/3)"),
            ("fe80::1", "link-local (fe80::/10)"),
            ("febf::1", "link-local (fe80::/10)"),
            ("fec0::1", "not global unicast (outside 2000::/3)"),
            ("ff00::1", "multicast (ff00::/8)"),
            ("ffff::1", "multicast (ff00::/8)"),
            ("5f00::1", "not global unicast (outside 2000::/3)"),
            ("2002::1", "6to4 (2002::/16)"),
        ] {
            let found = find_closed_range(ip.parse().unwrap());
            assert_eq!(found.as_deref(), Some(reason), "{ip}");
        }
    }

    #[test]
    fn every_edge_of_every_registry_row_is_refused() {
        for ip in samples_4() {
            assert!(find_closed_range(ip.into()).is_some(), "{ip}");
        }
        for (net, len) in ROWS_6 {
            let first = u128::from(net.parse::<Ipv6Addr>().unwrap());
            let last = first | u128::MAX.checked_shr(len).unwrap_or(0);
            let mid = first + (last - first) / 2;
            for bits in [
                first,
                last.min(first.saturating_add(1)),
                mid,
                first.max(last.saturating_sub(1)),
                last,
            ] {
                let ip = Ipv6Addr::from(bits);
                assert!(
                    find_closed_range(ip.into()).is_some(),
                    "{ip} of {net}/{len}"
                );
            }
        }
    }

    #[test]
    fn a_closed_ipv4_address_is_refused_in_every_embedding() {
        for v4 in samples_4() {
            let bits = u128::from(u32::from(v4));
            let embeddings: [(&str, u128); 7] = [
                ("mapped", (0xffff << 32) | bits),
                ("compatible", bits),
                ("NAT64", (0x64_ff9b << 96) | bits),
                ("NAT64, local", (0x64_ff9b_0001 << 80) | bits),
                ("6to4", (0x2002 << 112) | (bits << 80)),
                ("Teredo", (0x2001 << 112) | (bits ^ 0xffff_ffff)),
                ("translated", (0xffff << 48) | bits),
            ];
            for (kind, bits) in embeddings {
                let ip = Ipv6Addr::from(bits);
                assert!(find_closed_range(ip.into()).is_some(), "{kind} {v4} = {ip}");
            }
        }
    }

    #[test]
    fn public_neighbours_of_closed_ranges_are_open() {
        let open = [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.31.195.255",
            "192.31.197.0",
            "192.52.192.255",
            "192.52.194.0",
            "192.88.98.255",
            "192.88.100.0",
            "192.167.255.255",
            "192.169.0.0",
            "192.175.47.255",
            "192.175.49.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "168.63.129.15",
            "168.63.129.17",
            "8.8.8.8",
            "2001:200::",
            "2001:db7:ffff::",
            "2001:db9::",
            "2003::",
            "2620:4f:7fff::",
            "2620:4f:8001::",
            "3ffe:ffff::",
            "2606:4700::1111",
            "3fff:1000::",
            "64:ff9b::8.8.8.8",
            "::ffff:8.8.8.8",
        ];
        for text in open {
            assert_eq!(find_closed_range(text.parse().unwrap()), None, "{text}");
        }
    }

    #[test]
    fn all_ipv4_networks_agree_with_an_independent_table() {
        // By /24: everything closed but the one /32 covers whole /24s.
        let closed = |a: u32, b: u32, c: u32| match (a, b, c) {
            (100, b, _) => (64..128).contains(&b),
            (172, b, _) => (16..32).contains(&b),
            _ => matches!(
                (a, b, c),
                (0 | 10 | 127 | 224.., _, _)
                    | (169, 254, _)
                    | (192, 168, _)
                    | (192, 0, 0 | 2)
                    | (192, 31, 196)
                    | (192, 52, 193)
                    | (192, 88, 99)
                    | (192, 175, 48)
                    | (198, 18 | 19, _)
                    | (198, 51, 100)
                    | (203, 0, 113)
            ),
        };
        for net in 0..(1u32 << 24) {
            let ours = find_closed_ipv4(Ipv4Addr::from(net << 8)).is_some();
            let (a, b, c) = (net >> 16, net >> 8 & 255, net & 255);
            assert_eq!(ours, closed(a, b, c), "{a}.{b}.{c}.0/24");
        }
    }

    #[test]
    fn the_reason_names_the_block() {
        let why = |text: &str| find_closed_range(text.parse().unwrap()).unwrap();
        assert_eq!(why("10.1.2.3"), "private (10.0.0.0/8)");
        assert_eq!(
            why("::ffff:127.0.0.1"),
            "loopback (127.0.0.1 inside, 127.0.0.0/8)"
        );
        assert_eq!(why("fe80::1"), "link-local (fe80::/10)");
    }

    #[test]
    fn own_addresses_are_recognized() {
        assert!(is_own_address("127.0.0.1".parse().unwrap()));
        assert!(!is_own_address("192.0.2.7".parse().unwrap()));
    }
}
