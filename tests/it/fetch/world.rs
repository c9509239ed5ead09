//! A network of our own, with listeners on the addresses no judge may reach: every spelling, on every way a URL can come,
//! and nothing is dialled. Needs user and network namespaces; skipped with the reason where there are none.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;

use dicta::clock::{Clock, FakeClock};
use dicta::net::{AddressGuard, AddressPolicy, FetchError, FetchLimits, Resolver};
use futures_util::StreamExt as _;
use serde_json::json;

use super::spellings::{HOSTS, TEXTS};
use super::{Fetcher, LOOPBACK, Names, plain::RecordedHops};
use crate::support::tls::{Response, TlsServer};

/// The addresses at which the canaries listen.
const PRIVATE: [&str; 7] = [
    "127.0.0.1",
    "10.1.2.3",
    "169.254.169.254",
    "100.64.0.1",
    "::1",
    "fd00::1",
    "64:ff9b::7f00:1",
];

const PORTS: [u16; 3] = [80, 443, 8443];

/// Set in that network.
const INSIDE: &str = "DICTA_TEST_WORLD";

/// The shell's word for "there is no such network here".
const NO_NETWORK: i32 = 77;

/// Makes the network and goes on in it.
const SETUP: &str = r#"
ip link set lo up || exit 77
for at in 10.1.2.3/32 169.254.169.254/32 100.64.0.1/32; do ip addr add $at dev lo || exit 77; done
for at in fd00::1/128 64:ff9b::7f00:1/128; do ip -6 addr add $at dev lo nodad || exit 77; done
exec "$@"
"#;

#[test]
fn private_addresses_are_unreachable_in_a_real_network() {
    let ours = std::env::current_exe().expect("a running test");
    let asked = Command::new("unshare")
        .args(["-Urn", "sh", "-c", SETUP, "sh"])
        .arg(ours)
        .args(["--exact", "--nocapture"])
        .arg("fetch::world::every_spelling_of_a_private_address_is_refused")
        .env(INSIDE, "1")
        .output();
    let output = match asked {
        Ok(output) => output,
        Err(error) => return println!("skipped: unshare cannot be run: {error}"),
    };
    let stdout_text = String::from_utf8_lossy(&output.stdout);
    let blamed = String::from_utf8_lossy(&output.stderr);
    let began = stdout_text.contains("running 1 test");
    if !began && (output.status.code() == Some(NO_NETWORK) || blamed.contains("unshare")) {
        return println!("skipped: no network namespace here: {}", blamed.trim());
    }
    assert!(output.status.success() && began, "{stdout_text}\n{blamed}");
    assert!(
        stdout_text.contains("0 connections at"),
        "{stdout_text}\n{blamed}"
    );
}

fn canaries() -> Vec<TcpListener> {
    let mut canaries = Vec::new();
    for address in PRIVATE {
        let address: IpAddr = address.parse().expect("an address");
        for port in PORTS {
            let at = SocketAddr::from((address, port));
            let canary = TcpListener::bind(at).unwrap_or_else(|error| panic!("{at}: {error}"));
            canary.set_nonblocking(true).expect("a plain socket");
            canaries.push(canary);
        }
    }
    canaries
}

fn urls() -> Vec<String> {
    let mut urls: Vec<String> = TEXTS.iter().map(|t| t.replace("{P}", "8443")).collect();
    for host in HOSTS.iter().chain(&PRIVATE[..4]) {
        urls.push(format!("https://{host}/"));
        urls.push(format!("https://{host}:8443/x?y#z"));
    }
    for host in &PRIVATE[4..] {
        urls.push(format!("https://[{host}]/"));
        urls.push(format!("http://[{host}]/"));
    }
    urls
}

/// A canary does hear what is dialled; or zero would mean nothing.
fn a_canary_hears(canaries: &[TcpListener]) {
    for canary in canaries {
        let at = canary.local_addr().expect("bound");
        let _called = std::net::TcpStream::connect(at).unwrap_or_else(|e| panic!("{at}: {e}"));
        assert!(canary.accept().is_ok(), "{at} accepts no connection");
    }
}

/// The part that the test above runs in its own network. Elsewhere it does nothing.
#[tokio::test]
async fn every_spelling_of_a_private_address_is_refused() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let canaries = canaries();
    a_canary_hears(&canaries);
    let urls = urls();
    assert!(urls.len() > 300, "{}", urls.len());
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
    let mut tried = 0;

    // As given, and by a name of one IPv4 or IPv6 address, or of one next to a public one.
    let public: [IpAddr; 2] = [
        "93.184.216.34".parse().expect("an address"),
        "2606:4700::1111".parse().expect("an address"),
    ];
    for address in PRIVATE {
        let address: IpAddr = address.parse().expect("an address");
        let mixed = vec![public[0], address, public[1]];
        for answer in [vec![address], mixed] {
            let names = Names::answering(move |_, _| answer.clone());
            let resolver: Arc<dyn Resolver> = names;
            let guard = AddressGuard::new(AddressPolicy::default(), resolver);
            for url in &urls {
                let recorded_hops = RecordedHops::default();
                let ended = guard
                    .get(url, &clock, FetchLimits::default(), &recorded_hops)
                    .await;
                assert!(
                    matches!(ended, Err(FetchError::Refused(_))),
                    "{url:?}: {ended:?}"
                );
                tried += 1;
            }
        }
    }

    // As where a page that may be opened points, with each code.
    let listed = urls.clone();
    let server = TlsServer::answering(&["wiki.test"], move |request| {
        let mut words = request.path.trim_start_matches('/').split('/');
        let mut number = || words.next()?.parse::<usize>().ok();
        match (number(), number()) {
            (Some(code), Some(at)) if at < listed.len() => {
                Response::redirect(u16::try_from(code).unwrap_or(302), &listed[at])
            }
            _ => Response::page("text/plain", "home"),
        }
    });
    let names = Names::answering(|host, _| match host {
        "wiki.test" => vec![LOOPBACK],
        _ => vec!["10.1.2.3".parse().expect("an address")],
    });
    let port = server.port();
    let settings = json!({
        "allow_hosts": [format!("wiki.test:{port}")],
        "ca_file": server.ca_file(),
        "seen": "off",
    });
    let fetcher = Fetcher::new(&settings, &names);
    let ways = [301, 302, 303, 307, 308].into_iter();
    let ways = ways.flat_map(|code| (0..urls.len()).map(move |at| (code, at)));
    let fetcher = &fetcher;
    let redirected = futures_util::stream::iter(ways)
        .map(|(code, at)| async move {
            let url = format!("https://wiki.test:{port}/{code}/{at}");
            fetcher.call(&url).await.expect("not rejected")
        })
        .buffer_unordered(8);
    let answers: Vec<_> = redirected.collect().await;
    for (answer, hops) in &answers {
        // What comes back is an error, or the server's own page: some of these are paths of it.
        assert!(answer.is_error || answer.text == "home", "{hops:?}");
        let dialled = hops.iter().filter(|hop| hop.status.is_some());
        for hop in dialled {
            assert!(
                hop.url.starts_with(&format!("https://wiki.test:{port}/")),
                "{hop:?}"
            );
        }
    }
    tried += answers.len();

    for canary in &canaries {
        let at = canary.local_addr();
        assert!(canary.accept().is_err(), "{at:?} was dialled");
    }
    println!(
        "{tried} tries, 0 connections at {} canaries",
        canaries.len()
    );
}
