//! Bodies, headers and servers that would take for ever or fill the memory. Time is fake where time is the matter.

use std::io::Write as _;
use std::sync::Arc;

use dicta::clock::FakeClock;
use dicta::model::Millis;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Fetcher, LOOPBACK, Names, wiki};
use crate::support::tls::{Hold, Response, Step, TlsServer};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n";

fn bytes(text: &str) -> Step {
    Step::Bytes(text.into())
}

fn serving(steps: Vec<Step>) -> TlsServer {
    TlsServer::serving(&["wiki.test"], vec![("/", Response::raw(steps))])
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

#[tokio::test]
async fn long_page_is_truncated_with_a_note() {
    let server = TlsServer::serving(
        &["wiki.test"],
        vec![
            ("/long", Response::page("text/plain", "x".repeat(60_000))),
            ("/huge", Response::page("text/plain", "y".repeat(3 << 20))),
        ],
    );
    let fetcher = Fetcher::of(&server, &Names::all_at(LOOPBACK));
    for (path, received) in [("/long", 60_000), ("/huge", 2 << 20)] {
        let (answer, _) = fetcher.call(&wiki(&server, path)).await.expect("called");
        assert!(answer.text.ends_with("\n\n[truncated at 50000 bytes]"));
        assert_eq!(answer.text.len(), 50_000 + 28);
        assert_eq!((answer.truncated, answer.bytes), (true, received), "{path}");
    }
}

#[tokio::test]
async fn endless_body_is_truncated_at_the_limit() {
    let server = serving(vec![bytes(HEAD), Step::Forever(vec![b'x'; 16 << 10])]);
    let fetcher = Fetcher::of(&server, &Names::all_at(LOOPBACK));
    let (answer, _) = fetcher.call(&wiki(&server, "/")).await.expect("called");
    assert_eq!((answer.is_error, answer.truncated), (false, true));
    assert_eq!(answer.bytes, 2 << 20);
}

#[tokio::test]
async fn large_gzip_page_is_truncated_at_eight_mebibytes() {
    let lines = (0..400_000).map(|number| format!("line {number} of a long page\n"));
    let page: String = lines.collect();
    let wire = gzip(page.as_bytes());
    // Neither the limit of received bytes nor that of the ratio applies to this page.
    assert!(page.len() > 10 << 20 && wire.len() < 2 << 20);
    assert!(page.len() / wire.len() < 100);
    let server = TlsServer::serving(
        &["wiki.test"],
        vec![(
            "/",
            Response::page("text/plain", wire).header("content-encoding", "gzip"),
        )],
    );
    let fetcher = Fetcher::of(&server, &Names::all_at(LOOPBACK));
    let (answer, _) = fetcher.call(&wiki(&server, "/")).await.expect("called");
    assert_eq!((answer.is_error, answer.truncated), (false, true));
    assert_eq!(answer.bytes, 8 << 20);
}

#[tokio::test]
async fn gzip_is_read_and_a_gzip_bomb_is_refused() {
    let server = TlsServer::serving(
        &["wiki.test"],
        vec![
            (
                "/honest",
                Response::page("text/plain", gzip(b"small")).header("content-encoding", "gzip"),
            ),
            (
                "/bomb",
                Response::page("text/plain", gzip(&vec![0; 64 << 20]))
                    .header("content-encoding", "gzip"),
            ),
            (
                "/layers",
                Response::page("text/plain", gzip(&gzip(b"small")))
                    .header("content-encoding", "gzip")
                    .header("content-encoding", "gzip"),
            ),
            (
                "/brotli",
                Response::page("text/plain", "?").header("content-encoding", "br"),
            ),
        ],
    );
    let fetcher = Fetcher::of(&server, &Names::all_at(LOOPBACK));
    for (path, expected) in [
        ("/honest", "small"),
        ("/bomb", "the body expands more than 100-fold"),
        ("/layers", "content-encoding `gzip, gzip` was not asked for"),
        ("/brotli", "content-encoding `br` was not asked for"),
    ] {
        let text = fetcher.text(&wiki(&server, path)).await;
        assert!(text.ends_with(expected), "{path}: {text}");
    }
}

#[tokio::test]
async fn endless_and_large_headers_are_refused() {
    let many = "x: y\r\n".repeat(101);
    let large = format!("x: {}\r\n", "y".repeat(4000)).repeat(20);
    let start = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n";
    for steps in [
        vec![bytes(start), Step::Forever(b"x: y\r\n".to_vec())],
        vec![bytes(start), bytes("x: "), Step::Forever(vec![b'y'; 4096])],
        vec![bytes(&format!("{start}{many}\r\n"))],
        vec![bytes(&format!("{start}{large}\r\n"))],
    ] {
        let server = serving(steps);
        let fetcher = Fetcher::of(&server, &Names::all_at(LOOPBACK));
        let (answer, hops) = fetcher.call(&wiki(&server, "/")).await.expect("called");
        assert!(answer.is_error, "{}", answer.text);
        assert!(
            answer.text.starts_with("Error: URL error fetching "),
            "{}",
            answer.text
        );
        assert_eq!(hops.len(), 1);
    }
}

#[tokio::test]
async fn slow_body_ends_at_the_deadline() {
    let hold = Arc::new(Hold::default());
    let mut steps = vec![bytes(HEAD)];
    for _ in 0..20 {
        steps.extend([bytes("x"), Step::Hold(Arc::clone(&hold))]);
    }
    let server = serving(steps);
    let clock = FakeClock::new();
    let mut fetcher = Fetcher::of(&server, &Names::all_at(LOOPBACK));
    fetcher.clock = Arc::new(clock.clone());
    let url = wiki(&server, "/");
    let drip = async {
        // A byte a second: no wait for a byte is long, and yet it ends after ten.
        for _ in 0..9 {
            hold.reached().await;
            clock.advance(Millis::from_secs(1));
            hold.go();
        }
        hold.reached().await;
        clock.advance(Millis::from_secs(1));
    };
    let (called, ()) = tokio::join!(fetcher.call(&url), drip);
    let (answer, _) = called.expect("not rejected");
    assert_eq!(
        answer.text,
        format!("Error: timeout after 10s fetching {url}")
    );
    // One deadline for the whole: a retry would double it.
    assert!(!answer.transient);
}

#[tokio::test]
async fn endless_headers_end_at_the_deadline() {
    let hold = Arc::new(Hold::default());
    let server = serving(vec![
        bytes("HTTP/1.1 200 OK\r\nx: "),
        Step::Hold(Arc::clone(&hold)),
    ]);
    let clock = FakeClock::new();
    let mut fetcher = Fetcher::of(&server, &Names::all_at(LOOPBACK));
    fetcher.clock = Arc::new(clock.clone());
    let url = wiki(&server, "/");
    let late = async {
        hold.reached().await;
        clock.advance(Millis::from_secs(10));
    };
    let (text, ()) = tokio::join!(fetcher.text(&url), late);
    assert_eq!(text, format!("Error: timeout after 10s fetching {url}"));
}

#[tokio::test]
async fn stalled_handshake_ends_at_the_deadline() {
    // Its certificate file is wanted, its socket is not.
    let trusted = TlsServer::serving(&["wiki.test"], vec![]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback");
    let port = listener.local_addr().expect("bound").port();
    let clock = FakeClock::new();
    let mut open = super::settings(&trusted);
    open["allow_hosts"] = serde_json::json!([format!("wiki.test:{port}")]);
    let mut fetcher = Fetcher::new(&open, &Names::all_at(LOOPBACK));
    fetcher.clock = Arc::new(clock.clone());
    let url = format!("https://wiki.test:{port}/");
    let silent = async {
        let connection = listener.accept().await.expect("a connection");
        clock.advance(Millis::from_secs(10));
        connection
    };
    let (text, _held) = tokio::join!(fetcher.text(&url), silent);
    assert_eq!(text, format!("Error: timeout after 10s fetching {url}"));
}

#[tokio::test]
async fn stalled_name_lookup_ends_after_five_seconds() {
    struct Silent;
    impl dicta::net::Resolver for Silent {
        fn lookup<'a>(
            &'a self,
            _: &'a str,
            _: u16,
        ) -> dicta::clock::BoxFuture<'a, std::io::Result<Vec<std::net::IpAddr>>> {
            Box::pin(std::future::pending())
        }
    }
    let clock = FakeClock::new();
    let guard =
        dicta::net::AddressGuard::new(dicta::net::AddressPolicy::default(), Arc::new(Silent));
    let ours: Arc<dyn dicta::clock::Clock> = Arc::new(clock.clone());
    let recorded_hops = super::plain::RecordedHops::default();
    let limits = dicta::net::FetchLimits::default();
    let fetching = guard.get("https://beam.apache.org/", &ours, limits, &recorded_hops);
    let late = async { clock.advance(Millis::from_secs(5)) };
    let (ended, ()) = tokio::join!(fetching, late);
    let error = ended.expect_err("nobody answers");
    assert!(error.is_transient(), "{error}");
    let text = error.to_string();
    assert!(text.ends_with("waiting for the name's addresses"), "{text}");
}
