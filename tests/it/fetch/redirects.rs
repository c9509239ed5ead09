//! Fetches that a page or a resolver tries to lead elsewhere: redirects and answers that change.

use std::net::IpAddr;

use super::{Fetcher, LOOPBACK, Names, wiki};
use crate::support::tls::{Response, TlsServer};

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// `wiki.test` is the server; `metadata.test` and `lan.test` are where no judge may go.
fn resolve_host(host: &str) -> Vec<IpAddr> {
    match host {
        "wiki.test" => vec![LOOPBACK],
        "metadata.test" => vec![ip("169.254.169.254")],
        "lan.test" => vec![ip("::ffff:10.1.2.3")],
        "mixed.test" => vec![ip("93.184.216.34"), ip("2606:4700::1111"), ip("fd00::1")],
        _ => vec![],
    }
}

#[tokio::test]
async fn redirect_of_every_code_to_a_private_address_is_refused() {
    let canary = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let canary_port = canary.local_addr().expect("bound").port();
    canary.set_nonblocking(true).expect("a plain socket");
    let targets = [
        ("https://10.0.0.1/".to_owned(), "address: "),
        ("https://[::1]/".to_owned(), "address: "),
        ("https://0x7f.1/".to_owned(), "address: "),
        ("//169.254.169.254/latest".to_owned(), "address: "),
        ("https://metadata.test/".to_owned(), "address: "),
        ("https://lan.test/".to_owned(), "address: "),
        ("https://mixed.test/".to_owned(), "address: "),
        ("https://localhost/".to_owned(), "name: "),
        (format!("https://127.0.0.1:{canary_port}/"), "port: "),
        (format!("http://127.0.0.1:{canary_port}/"), "scheme: "),
        ("file:///etc/passwd".to_owned(), "scheme: "),
        ("https://u:p@wiki.test/".to_owned(), "userinfo: "),
        ("//@wiki.test/".to_owned(), "userinfo: "),
        ("https:\\\\10.0.0.1/".to_owned(), "raw text: "),
        ("https://gone.test/".to_owned(), "unresolvable"),
    ];
    for code in [301, 302, 303, 307, 308] {
        for (target, rule) in &targets {
            let server = TlsServer::serving(
                &["wiki.test"],
                vec![("/", Response::redirect(code, target))],
            );
            let names = Names::answering(|host, _| resolve_host(host));
            let fetcher = Fetcher::of(&server, &names);
            let (answer, hops) = fetcher.call(&wiki(&server, "/")).await.expect("called");
            assert!(answer.is_error, "{code} {target}: {}", answer.text);
            let hop_results: Vec<_> = hops
                .iter()
                .map(|h| (h.status, h.refused.as_deref()))
                .collect();
            let [(Some(first), None), (None, Some(why))] = hop_results[..] else {
                panic!("{code} {target}: {hop_results:?}");
            };
            assert_eq!(first, code);
            assert!(why.starts_with(rule), "{code} {target}: {why}");
            assert_eq!(server.accepts(), 1, "{code} {target}");
        }
    }
    assert!(canary.accept().is_err(), "the canary was dialled");
}

#[tokio::test]
async fn redirect_from_https_to_http_is_refused() {
    let server = TlsServer::answering(&["wiki.test"], |request| {
        let port = request.headers.iter().find(|(name, _)| name == "host");
        let host = port.map_or("", |(_, host)| host.as_str());
        Response::redirect(301, &format!("http://{host}/plain"))
    });
    let fetcher = Fetcher::of(&server, &Names::all_at(LOOPBACK));
    assert_eq!(
        fetcher.text(&wiki(&server, "/")).await,
        "Error: only https URLs are allowed (got scheme 'http')"
    );
    assert_eq!(server.accepts(), 1);
}

#[tokio::test]
async fn fetch_follows_five_redirects_and_refuses_the_sixth() {
    let server = TlsServer::answering(&["wiki.test"], |request| {
        let left: u32 = request.path[1..].parse().unwrap_or(0);
        match left {
            0 => Response::page("text/plain", "arrived"),
            left => Response::redirect(302, &format!("/{}", left - 1)),
        }
    });
    let names = Names::all_at(LOOPBACK);
    let fetcher = Fetcher::of(&server, &names);
    assert_eq!(fetcher.text(&wiki(&server, "/5")).await, "arrived");
    assert_eq!((server.accepts(), names.asked().len()), (6, 6));
    let (answer, hops) = fetcher.call(&wiki(&server, "/6")).await.expect("called");
    assert!(
        answer
            .text
            .starts_with("Error: too many redirects fetching"),
        "{}",
        answer.text
    );
    assert_eq!(server.accepts(), 12);
    assert_eq!(hops.len(), 7);
    assert_eq!(hops[6].refused.as_deref(), Some("redirects: more than 5"));
}

#[tokio::test]
async fn name_is_resolved_once_per_hop_and_the_checked_address_is_used() {
    let server = TlsServer::serving(
        &["wiki.test"],
        vec![
            ("/", Response::page("text/plain", "right")),
            ("/turn", Response::redirect(307, "https://flip.test/")),
        ],
    );
    // The canary listens at the address of the second answer.
    let canary = std::net::TcpListener::bind(("127.0.0.2", server.port()));
    for _ in 0..50 {
        let names = Names::answering(|_, before| match before {
            0 => vec![LOOPBACK],
            _ => vec![ip("127.0.0.2")],
        });
        let fetcher = Fetcher::of(&server, &names);
        assert_eq!(fetcher.text(&wiki(&server, "/")).await, "right");
        assert_eq!(names.asked(), ["wiki.test"]);
    }
    if let Ok(canary) = canary {
        canary.set_nonblocking(true).expect("a plain socket");
        assert!(canary.accept().is_err(), "the second answer was dialled");
    }
    // And one that is private at the only moment that counts.
    let names = Names::answering(|host, before| match (host, before) {
        ("flip.test", 0) => vec![ip("192.168.0.1")],
        ("flip.test", _) => vec![ip("93.184.216.34")],
        _ => vec![LOOPBACK],
    });
    let fetcher = Fetcher::of(&server, &names);
    let (answer, hops) = fetcher.call(&wiki(&server, "/turn")).await.expect("called");
    assert!(answer.is_error);
    assert_eq!(names.asked(), ["wiki.test", "flip.test"]);
    assert_eq!(hops[1].address, Some(ip("192.168.0.1")));
}

#[tokio::test]
async fn one_private_address_among_public_ones_refuses_the_name() {
    let server = TlsServer::serving(&["wiki.test"], vec![]);
    let public = ip("93.184.216.34");
    for private in [
        "10.0.0.1",
        "127.0.0.1",
        "::1",
        "fe80::1",
        "64:ff9b::7f00:1",
        "168.63.129.16",
    ] {
        for at in 0..3 {
            let names = Names::answering(move |_, _| {
                let mut answers = vec![public; 2];
                answers.insert(at, ip(private));
                answers
            });
            let (answer, hops) = Fetcher::of(&server, &names)
                .call("https://mixed.test/")
                .await
                .expect("called");
            assert!(answer.text.contains("(address: "), "{}", answer.text);
            assert_eq!(hops[0].address, Some(ip(private)));
            assert_eq!(names.asked().len(), 1);
        }
    }
}
