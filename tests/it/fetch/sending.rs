//! Requests with methods, headers and bodies through the guard, and origins that a source opened.

use std::sync::Arc;

use dicta::clock::{Clock, FakeClock};
use dicta::model::Millis;
use dicta::net::{
    AddressGuard, AddressPolicy, FetchError, FetchLimits, FetchReply, GuardRule, GuardedRequest,
    HostRule, Resolver,
};

use super::plain::{RecordedHops, canary, reply, serve};
use super::{LOOPBACK, Names};
use crate::support::tls::{Hold, Response, Step, TlsServer};

fn clock() -> Arc<dyn Clock> {
    Arc::new(FakeClock::new())
}

fn headers() -> Vec<(String, String)> {
    [("Authorization", "Bearer s3cret"), ("X-Own", "1")]
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .into()
}

/// Sends a request and ignores the events of its hops.
async fn send(
    guard: &AddressGuard,
    asking: GuardedRequest<'_>,
    clock: Arc<dyn Clock>,
) -> Result<FetchReply, FetchError> {
    let recorded_hops = RecordedHops::default();
    guard
        .send(&asking, &clock, FetchLimits::default(), &recorded_hops)
        .await
}

fn opened(urls: &[String], names: &Arc<Names>) -> AddressGuard {
    let policy = AddressPolicy {
        origins: urls
            .iter()
            .map(|u| url::Url::parse(u).expect("a URL").origin())
            .collect(),
        ..AddressPolicy::default()
    };
    let names: Arc<dyn Resolver> = Arc::<Names>::clone(names);
    AddressGuard::new(policy, names)
}

#[tokio::test]
async fn headers_are_sent_only_to_the_first_origin() {
    let (second, heard_second) = serve(|request| {
        let back = request.lines().find_map(|l| l.strip_prefix("x-never: "));
        assert_eq!(back, None);
        let port = request.split('?').nth(1).and_then(|r| r.split(' ').next());
        let to = format!("location: http://127.0.0.1:{}/end\r\n", port.unwrap_or("1"));
        reply(302, &to, "")
    });
    let (first, heard_first) = serve(move |request| match request {
        r if r.starts_with("GET /start ") => reply(307, "location: /same\r\n", ""),
        r if r.starts_with("GET /same ") => {
            let port = r.split("127.0.0.1:").nth(1).and_then(|r| r.lines().next());
            let to = format!(
                "location: http://127.0.0.1:{second}/x?{}\r\n",
                port.unwrap_or("1")
            );
            reply(302, &to, "")
        }
        _ => reply(200, "content-type: text/plain\r\n", "end"),
    });
    let urls = [first, second].map(|port| format!("http://127.0.0.1:{port}"));
    let guard = opened(&urls, &Names::all_at(LOOPBACK));
    let url = format!("{}/start", urls[0]);
    let headers = headers();
    let asking = GuardedRequest {
        method: "GET",
        url: &url,
        headers: &headers,
        body: None,
    };
    let recorded_hops = RecordedHops::default();
    let page = guard
        .send(&asking, &clock(), FetchLimits::default(), &recorded_hops)
        .await
        .expect("opened");
    assert_eq!(page.read_body().await.expect("a body").bytes, b"end");
    let secret = |request: &String| request.contains("s3cret") || request.contains("x-own");
    let at_first: Vec<bool> = heard_first
        .lock()
        .expect("no panic")
        .iter()
        .map(secret)
        .collect();
    assert_eq!(
        at_first,
        [true, true, false],
        "after a detour nothing is sent again"
    );
    assert!(!heard_second.lock().expect("no panic").iter().any(secret));
    assert_eq!(recorded_hops.0.lock().expect("no panic").len(), 4);
}

#[tokio::test]
async fn unsafe_methods_are_not_redirected() {
    for code in [301, 302, 303, 307, 308] {
        let server =
            TlsServer::serving(&["wiki.test"], vec![("/", Response::redirect(code, "/b"))]);
        let policy = AddressPolicy {
            allow: vec![HostRule {
                host: "wiki.test".to_owned(),
                port: Some(server.port()),
            }],
            ..AddressPolicy::default()
        };
        let pem = std::fs::read(server.ca_file()).expect("a file");
        let guard = AddressGuard::new(policy, Names::all_at(LOOPBACK))
            .with_ca(&pem)
            .expect("a certificate");
        let url = super::wiki(&server, "/");
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let asking = GuardedRequest {
                method,
                url: &url,
                headers: &[],
                body: Some(b"{}"),
            };
            let sent = send(&guard, asking, clock());
            let page = sent.await.expect("a reply");
            assert_eq!((page.status, page.header("location")), (code, Some("/b")));
        }
        let methods: Vec<String> = server.requests().into_iter().map(|r| r.method).collect();
        assert_eq!(methods, ["POST", "PUT", "PATCH", "DELETE"]);
    }
}

#[tokio::test]
async fn allowed_origin_allows_only_itself() {
    let (port, heard) = serve(|_| reply(200, "", "in"));
    let origin = format!("http://wiki.test:{port}");
    let guard = opened(std::slice::from_ref(&origin), &Names::all_at(LOOPBACK));
    let badge = guard.policy_warning().expect("a badge");
    assert!(badge.contains(&origin), "{badge}");
    let get = async |url: String| {
        let recorded_hops = RecordedHops::default();
        let page = guard
            .get(&url, &clock(), FetchLimits::default(), &recorded_hops)
            .await;
        page.map(|page| page.status)
    };
    assert_eq!(get(format!("{origin}/x")).await, Ok(200));
    for (url, rule) in [
        (format!("https://wiki.test:{port}/"), GuardRule::Port),
        ("http://wiki.test/".to_owned(), GuardRule::Scheme),
        (format!("http://other.test:{port}/"), GuardRule::Scheme),
        (format!("http://wiki.test.:{port}/"), GuardRule::Scheme),
        (format!("http://127.0.0.1:{port}/"), GuardRule::Scheme),
        (format!("http://u:p@wiki.test:{port}/"), GuardRule::Userinfo),
        ("https://wiki.test/".to_owned(), GuardRule::Address),
    ] {
        let Err(FetchError::Refused(refusal)) = get(url.clone()).await else {
            panic!("{url} was asked");
        };
        assert_eq!(refusal.rule, rule, "{url}");
    }
    assert_eq!(heard.lock().expect("no panic").len(), 1);
}

#[tokio::test]
async fn connection_headers_and_unknown_methods_are_not_sent() {
    let (port, heard) = serve(|_| reply(200, "", "in"));
    let url = format!("http://127.0.0.1:{port}/");
    let guard = opened(std::slice::from_ref(&url), &Names::all_at(LOOPBACK));
    for (method, name, value) in [
        ("GET", "Host", "evil.example"),
        ("POST", "Transfer-Encoding", "chunked"),
        ("GET", "x", "a\r\nHost: b"),
        ("CONNECT", "x", "y"),
        ("GET x", "x", "y"),
    ] {
        let headers = [(name.to_owned(), value.to_owned())];
        let asking = GuardedRequest {
            method,
            url: &url,
            headers: &headers,
            body: None,
        };
        let sent = send(&guard, asking, clock());
        assert!(sent.await.is_err(), "{method} {name}");
    }
    assert!(heard.lock().expect("no panic").is_empty());
}

#[tokio::test]
async fn changing_dns_answers_are_resolved_once_and_the_checked_address_is_used() {
    let (port, heard) = serve(|_| reply(200, "", "right"));
    // The canary listens at the address of every second answer.
    let turned = "127.0.0.2".parse().expect("an address");
    let canary = canary(turned, port);
    let origin = format!("http://wiki.test:{port}/");
    for _ in 0..1000 {
        let names = Names::answering(move |_, before| match before {
            0 => vec![LOOPBACK],
            _ => vec![turned],
        });
        let guard = opened(std::slice::from_ref(&origin), &names);
        let recorded_hops = RecordedHops::default();
        let page = guard
            .get(&origin, &clock(), FetchLimits::default(), &recorded_hops)
            .await;
        assert_eq!(page.expect("opened").status, 200);
        assert_eq!(names.asked(), ["wiki.test"]);
    }
    assert_eq!(heard.lock().expect("no panic").len(), 1000);
    match canary {
        Some(canary) => assert!(canary.accept().is_err(), "the second answer was dialled"),
        None => println!("skipped the canary: this machine has no 127.0.0.2 to listen at"),
    }
}

#[tokio::test]
async fn server_sent_events_arrive_at_once_and_silence_times_out() {
    let hold = Arc::new(Hold::default());
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let steps = vec![
        Step::Bytes([head, "data: one\n\n"].concat().into()),
        Step::Hold(Arc::clone(&hold)),
        Step::Bytes("data: two\n\n".into()),
        Step::Hold(Arc::clone(&hold)),
    ];
    let server = TlsServer::serving(&["wiki.test"], vec![("/", Response::raw(steps))]);
    let policy = AddressPolicy {
        allow: vec![HostRule {
            host: "wiki.test".to_owned(),
            port: Some(server.port()),
        }],
        ..AddressPolicy::default()
    };
    let pem = std::fs::read(server.ca_file()).expect("a file");
    let guard = AddressGuard::new(policy, Names::all_at(LOOPBACK))
        .with_ca(&pem)
        .expect("a certificate");
    let fake = FakeClock::new();
    let ours: Arc<dyn Clock> = Arc::new(fake.clone());
    let accept = [(
        "Accept".to_owned(),
        "application/json, text/event-stream".to_owned(),
    )];
    let url = super::wiki(&server, "/");
    let asking = GuardedRequest {
        method: "POST",
        url: &url,
        headers: &accept,
        body: Some(b"{}"),
    };
    let sent = send(&guard, asking, ours);
    let page = sent.await.expect("a reply");
    let mut chunks = page
        .into_stream(Millis::from_secs(60), 1 << 20)
        .expect("not encoded");
    let one = chunks
        .next_chunk()
        .await
        .expect("in time")
        .expect("a piece");
    assert_eq!(&*one, b"data: one\n\n");
    // Longer than any fetch may take, and no limit of a stream.
    fake.advance(Millis::from_secs(59));
    hold.go();
    let two = chunks
        .next_chunk()
        .await
        .expect("in time")
        .expect("a piece");
    assert_eq!(&*two, b"data: two\n\n");
    let silence = async { fake.advance(Millis::from_secs(60)) };
    let (ended, ()) = tokio::join!(chunks.next_chunk(), silence);
    assert!(ended.expect_err("nothing came").is_transient());
    let encoding = server.requests()[0]
        .headers
        .iter()
        .find(|(n, _)| n == "accept-encoding")
        .cloned();
    assert_eq!(encoding.map(|(_, v)| v).as_deref(), Some("identity"));
}

#[tokio::test]
async fn no_redirect_reaches_a_private_address_in_any_spelling() {
    use super::spellings::{HOSTS, TEXTS};
    let trap = canary(std::net::Ipv4Addr::UNSPECIFIED.into(), 0).expect("any port");
    let trap_port = trap.local_addr().expect("bound").port().to_string();
    let mut urls: Vec<String> = TEXTS.iter().map(|t| t.replace("{P}", &trap_port)).collect();
    for host in HOSTS {
        urls.push(format!("https://{host}/"));
        urls.push(format!("//{host}:{trap_port}/x"));
    }
    // What no header line can hold is tried directly elsewhere.
    urls.retain(|url| !url.is_empty() && !url.contains(['\r', '\n', '\0']));
    assert!(urls.len() > 300, "{}", urls.len());
    let places = urls.clone();
    let (port, _) = serve(move |request| {
        let mut parts = request.split(['/', ' ']).skip(2);
        let mut number = || parts.next().and_then(|n| n.parse::<usize>().ok());
        match (number(), number()) {
            (Some(code), Some(at)) => {
                let to = format!("location: {}\r\n", places[at]);
                reply(u16::try_from(code).expect("a status"), &to, "")
            }
            _ => reply(200, "", "own"),
        }
    });
    let origin = format!("http://wiki.test:{port}");
    let guard = opened(std::slice::from_ref(&origin), &Names::all_at(LOOPBACK));
    for code in [301, 302, 303, 307, 308] {
        for (at, url) in urls.iter().enumerate() {
            let recorded_hops = RecordedHops::default();
            let from = format!("{origin}/{code}/{at}");
            let ended = guard
                .get(&from, &clock(), FetchLimits::default(), &recorded_hops)
                .await;
            let hops = recorded_hops.0.into_inner().expect("no panic");
            match ended {
                Err(FetchError::Refused(_)) => {
                    assert!(
                        hops.last().is_some_and(|h| h.refused.is_some()),
                        "{url:?}: {hops:?}"
                    );
                }
                // A text that is a path of the server itself.
                Ok(page) => assert!(page.url.starts_with(&origin), "{code} {url:?}: {page:?}"),
                Err(other) => panic!("{code} {url:?}: {other}"),
            }
        }
    }
    assert!(trap.accept().is_err(), "the canary was dialled");
}
