//! Places no judge may go, spelled in every way that parsers, resolvers and people have come up with. None is dialled.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use dicta::clock::{Clock, FakeClock};
use dicta::net::{AddressGuard, AddressPolicy, FetchError, FetchLimits};

use super::plain::RecordedHops;
use super::{LOOPBACK, Names};

/// Hosts that mean this machine, its network, or nothing good. Tried bare and with a port.
pub(super) const HOSTS: &[&str] = &[
    // dotted, short, octal, hexadecimal, one number, mixed, padded
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "127.1",
    "127.0.1",
    "0",
    "0.0.0.0",
    "0.0.0.1",
    "00000",
    "0x0",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0X7F000001",
    "0x7f.1",
    "0x7f.0.1",
    "0x7F.0x0.0x0.0x1",
    "0177.1",
    "0177.0.0.1",
    "0177.0.0.01",
    "0177.0x0.0.1",
    "00000177.0.0.1",
    "127.0.0.0x1",
    "127.0x1",
    "127.0.0.1.",
    "127.1.",
    "2130706433.",
    "0x7f000001.",
    "10.0.0.1",
    "10.1",
    "012.0.0.1",
    "0xa.1",
    "167772161",
    "172.16.0.1",
    "172.31.255.255",
    "0xac100001",
    "192.168.0.1",
    "192.168.1",
    "3232235521",
    "0300.0250.0.1",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "169.16689662",
    "0xa9.254.0251.254",
    "100.64.0.1",
    "100.100.100.200",
    "1681915904",
    "192.0.0.192",
    "168.63.129.16",
    "0xa83f8110",
    "198.18.0.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "4294967295",
    "192.88.99.1",
    // numbers no address has
    "256.0.0.1",
    "127.0.0.256",
    "4294967296",
    "1.2.3.4.5",
    "127.0.0.08",
    "0x",
    "127..1",
    "1.2.3.0x100",
    // other digits, other dots
    "１２７.０.０.１",
    "１２７。０。０。１",
    "127。0。0。1",
    "127．0．0．1",
    "127｡0｡0｡1",
    "①②⑦.⓪.⓪.①",
    "①⑦②.①⑥.⓪.①",
    "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
    "１６９．２５４．１６９．２５４",
    "⑯⑨。②⑤④。⑯⑨｡②⑤④",
    "²130706433",
    // percent signs
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "127.0.0.1%00",
    "127.0.0.1%2f.evil.example",
    "%6c%6f%63alhost",
    "loc%61lhost",
    "localhost%2e",
    "%5b::1%5d",
    // IPv6, bare and around IPv4
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::0001]",
    "[::]",
    "[0::0]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::FFFF:10.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:0.0.0.0]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b:1::10.0.0.1]",
    "[2002:7f00:1::]",
    "[2002:0a00:0001::1]",
    "[2002:a9fe:a9fe::]",
    "[2001:0:0:0:0:0:80ff:fffe]",
    "[2001::f5ff:fffe]",
    "[fe80::1]",
    "[fe80::5efe:127.0.0.1]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd00::1]",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "[ff02::1]",
    "[100::1]",
    "[100:0:0:1::1]",
    "[5f00::1]",
    "[3fff::1]",
    "[2001:db8::1]",
    "[2001:2::1]",
    "[2001:20::1]",
    "[fe80::1%25lo]",
    "[fe80::1%lo]",
    "[::1%25lo]",
    "[::1",
    "::1]",
    "[::1].",
    "[::1]x",
    "[127.0.0.1]",
    "[v1.fe80]",
    "[::ffff:127.1]",
    "[::ffff:0177.0.0.1]",
    // names
    "localhost",
    "LOCALHOST",
    "LocalHost.",
    "localhost..",
    "a.localhost",
    "a.b.localhost.",
    "localhost.localdomain",
    "ｌｏｃａｌｈｏｓｔ",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "loc\u{ad}alhost",
    "local\u{200b}host",
    "localhoſt",
    "ip6-localhost",
    "router",
    "intranet",
    "db",
    "printer.local",
    "x.internal",
    "metadata",
    "metadata.google.internal",
    "METADATA.google.INTERNAL.",
    "metadata.goog",
    "metadata.azure.com",
    "instance-data",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "x.home.arpa",
    "box.lan",
    "x.corp",
    "x.home",
    "duskgytldkxiuqc6.onion",
    "xn--",
    "xn--a.",
    "-",
    ".",
    "..",
    "a..b",
    "_",
    "*",
    "%",
    // Public names; the resolver of the test resolves each name to this machine.
    "evil.example.com",
    "127.0.0.1.nip.io",
    "localtest.me",
    "xn--bcher-kva.example.com",
    "bücher.example.com",
    "a_b.example.com",
    "127.0.0.1.example.com",
    "0x7f000001.example.com",
];

/// Texts whose very shape is the trick. `{P}` is a canary's port.
pub(super) const TEXTS: &[&str] = &[
    "",
    " ",
    "/",
    "//",
    "//127.0.0.1/",
    "127.0.0.1",
    "localhost/",
    "https:",
    "https:/",
    "https://",
    "https:///127.0.0.1/",
    "https:////127.0.0.1/",
    "https:127.0.0.1",
    "https:/127.0.0.1",
    "https:\\\\127.0.0.1\\",
    "https:/\\127.0.0.1",
    "https://\\127.0.0.1/",
    "https://127.0.0.1\\@public.example.org/",
    "https://public.example.org\\@127.0.0.1/",
    "https://public.example.org@127.0.0.1/",
    "https://public.example.org:443@127.0.0.1:{P}/",
    "https://@127.0.0.1/",
    "https://:@127.0.0.1/",
    "https://a:b@localhost/",
    "https://1.1.1.1 &@127.0.0.1# @3.3.3.3/",
    "https://127.0.0.1#@public.example.org/",
    "https://127.0.0.1?@public.example.org/",
    "https://public.example.org%40127.0.0.1/",
    "https://127.0.0.1:443:{P}/",
    "https://127.0.0.1:+443/",
    "https://127.0.0.1:-1/",
    "https://127.0.0.1: 443/",
    "https://127.0.0.1:0443/",
    "https://127.0.0.1:٤٤٣/",
    "https://127.0.0.1:0/",
    "https://127.0.0.1:65536/",
    "https://127.0.0.1:/",
    " https://127.0.0.1/",
    "https://127.0.0.1/ ",
    "https://127.0.0.1\t/",
    "ht\ntps://127.0.0.1/",
    "https://127.0.\r\n0.1/",
    "https://127.0.0.1\0.example.org/",
    "https\u{ff1a}//127.0.0.1/",
    "https:/\u{2044}127.0.0.1/",
    "https://127.0.0.1\u{ff0f}x/",
    "https://127.0.0.1\u{2025}/",
    "https://\u{202e}127.0.0.1/",
    "https://\u{feff}127.0.0.1/",
    "hTTpS://127.0.0.1/",
    "http://127.0.0.1:{P}/",
    "HTTP://127.0.0.1:{P}/",
    "http://[::1]:{P}/",
    "httpss://127.0.0.1/",
    "ftp://127.0.0.1/",
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "gopher://127.0.0.1:{P}/_x",
    "dict://127.0.0.1:{P}/",
    "ws://127.0.0.1:{P}/",
    "wss://127.0.0.1/",
    "data:text/html,x",
    "javascript:fetch('https://127.0.0.1')",
    "blob:https://127.0.0.1/x",
    "view-source:https://127.0.0.1/",
    "jar:https://127.0.0.1!/",
    "url:https://127.0.0.1/",
    "https://[::1]:{P}/",
    "https://[::ffff:127.0.0.1]:{P}/",
    "https://0:{P}/",
    "https://127.1:{P}/",
    "https://localhost:{P}/",
];

/// A listener that must never be called on; `None` where this machine does not allow it.
fn canary(address: impl Into<SocketAddr>) -> Option<TcpListener> {
    let listener = TcpListener::bind(address.into()).ok()?;
    listener.set_nonblocking(true).ok()?;
    Some(listener)
}

#[tokio::test]
async fn no_spelling_of_a_private_address_is_connected() {
    let high = canary((Ipv4Addr::UNSPECIFIED, 0)).expect("any port");
    let port = high.local_addr().expect("bound").port();
    // Where port 443 may be taken, what slips through is seen; where not, a refusal is still demanded of each.
    let canaries: Vec<TcpListener> = [
        canary((Ipv4Addr::LOCALHOST, 443)),
        canary((Ipv6Addr::LOCALHOST, 443)),
        canary((Ipv6Addr::LOCALHOST, port)),
    ]
    .into_iter()
    .flatten()
    .chain([high])
    .collect();

    let port = port.to_string();
    let mut urls: Vec<String> = TEXTS.iter().map(|t| t.replace("{P}", &port)).collect();
    for host in HOSTS {
        urls.push(format!("https://{host}/"));
        urls.push(format!("https://{host}:{port}/x?y#z"));
    }
    assert!(HOSTS.len() > 120 && urls.len() > 400, "{}", urls.len());

    let names = Names::all_at(LOOPBACK);
    let guard = AddressGuard::new(AddressPolicy::default(), names);
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
    for url in &urls {
        let recorded_hops = RecordedHops::default();
        let ended = guard
            .get(url, &clock, FetchLimits::default(), &recorded_hops)
            .await;
        assert!(
            matches!(ended, Err(FetchError::Refused(_))),
            "{url:?}: {ended:?}"
        );
        let hops = recorded_hops.0.into_inner().expect("no panic");
        let [hop] = hops.as_slice() else {
            panic!("{url:?}: {hops:?}");
        };
        assert!(hop.status.is_none() && hop.refused.is_some(), "{hop:?}");
    }
    for canary in canaries {
        let at = canary.local_addr();
        assert!(canary.accept().is_err(), "{at:?} was dialled");
    }
}

#[tokio::test]
async fn private_address_is_refused_under_any_public_name() {
    for address in [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "100.64.0.1",
        "::1",
        "fd00::1",
        "64:ff9b::7f00:1",
        "::ffff:192.168.0.1",
        "2002:7f00:1::",
        "2001::f5ff:fffe",
        "168.63.129.16",
        "0.0.0.0",
    ] {
        let address: IpAddr = address.parse().expect("an address");
        let names = Names::all_at(address);
        let resolver: Arc<dyn dicta::net::Resolver> = Arc::<Names>::clone(&names);
        let guard = AddressGuard::new(AddressPolicy::default(), resolver);
        let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
        let recorded_hops = RecordedHops::default();
        let url = "https://beam.apache.org/";
        let ended = guard
            .get(url, &clock, FetchLimits::default(), &recorded_hops)
            .await;
        let Err(FetchError::Refused(refusal)) = ended else {
            panic!("{address}: {ended:?}");
        };
        assert_eq!(refusal.address, Some(address));
        assert_eq!(names.asked(), ["beam.apache.org"]);
    }
}
