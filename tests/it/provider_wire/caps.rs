//! No byte of a reply is unbounded, no time either: each cap has its name, and memory stays small.

use std::time::Instant;

use dicta::clock::Clock as _;
use dicta::model::{Millis, ProviderKind};
use dicta::provider::{self, ProviderError};

use super::harness::{ALL, ProviderHarness};
use crate::support::wire::{Pause, Reply, WireServer};

/// The peak of this process's memory in MiB. `None` if other tests run in it, or if the system doesn't state it.
fn peak() -> Option<u64> {
    std::env::var_os("NEXTEST")?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}

#[tokio::test]
async fn endless_reply_ends_at_its_limit_in_little_memory() {
    let row = "x".repeat(64 << 10);
    let cases = [
        ("an endless line", row.clone(), "1 MiB for a line"),
        (
            "endless data",
            format!("data: {row}\n"),
            "8 MiB for an event",
        ),
        (
            "empty data",
            "data:\n".repeat(500),
            "10,000 lines for an event",
        ),
        (
            "empty lines",
            "\r\n".repeat(500),
            "100,000 empty lines in a row",
        ),
        (
            "pings",
            ": ping\n\n".repeat(100),
            "100,000 empty lines in a row",
        ),
        (
            "an open object",
            format!("{{\n{row}\n"),
            "8 MiB for an event",
        ),
    ];
    for dialect in ALL {
        for (what, piece, cap) in &cases {
            let before = peak();
            let harness =
                ProviderHarness::of(dialect, vec![Reply::raw("").endless_of(piece.clone())]);
            let error = harness.send().await.expect_err(what);
            assert!(
                matches!(error, ProviderError::Cut { .. }),
                "{what}: {error}"
            );
            assert!(
                error.to_string().contains(cap),
                "{dialect:?}, {what}: {error}"
            );
            if let (Some(before), Some(after)) = (before, peak()) {
                assert!(
                    after - before <= 32,
                    "{what}: {before} MiB, then {after} MiB"
                );
            }
            harness.server.all_closed().await;
        }
    }
}

#[tokio::test]
async fn endless_headers_and_error_bodies_end() {
    // What the program itself takes for an exchange and for a refusal is not what is measured.
    let warm = ProviderHarness::openai(vec![Reply::text("x"), Reply::status(400)]);
    assert!(warm.send().await.is_ok() && warm.send().await.is_err());
    let before = peak();
    let mut harness = ProviderHarness::openai(vec![Reply::text("x").endless_head()]);
    let (result, _, waits) = harness.call().await;
    let error = result.expect_err("no head has no end");
    assert!(
        error.to_string().contains("did not answer in proper HTTP"),
        "{error}"
    );
    assert_eq!(
        waits,
        Vec::<u64>::new(),
        "what is not HTTP is not asked again"
    );
    let harness = ProviderHarness::openai(vec![Reply::status(400).endless_of("no ".repeat(1000))]);
    let error = harness.send().await.expect_err("refused");
    assert_eq!(error.status(), Some(400));
    assert!(error.to_string().len() < 1000, "{error}");
    if let (Some(before), Some(after)) = (before, peak()) {
        assert!(after - before <= 32, "{before} MiB, then {after} MiB");
    }
}

#[tokio::test]
async fn compressed_reply_is_not_unpacked() {
    let reply = Reply::text("x").header("content-encoding", "gzip");
    let harness = ProviderHarness::openai(vec![reply.endless()]);
    let error = harness.send().await.expect_err("a bomb");
    let why = "it is compressed (gzip), which was not asked for";
    assert!(error.to_string().contains(why), "{error}");
    assert_eq!(harness.server.requests()[0].header("accept-encoding"), None);
}

#[tokio::test]
async fn slow_endless_reply_ends_after_fifteen_minutes() {
    // It says that it is alive, or a little more; each piece comes 50 s after the one before.
    for piece in [": ping\n\n", "data: {\"choices\":[]}\n\n"] {
        let pauses: Vec<Pause> = (0..20).map(|_| Pause::new()).collect();
        let mut reply = Reply::raw(piece.repeat(21)).split_every(piece.len());
        for (at, pause) in pauses.iter().enumerate() {
            reply = reply.pause_before(at + 1, pause);
        }
        let mut harness = ProviderHarness::openai(vec![reply]);
        harness.facts.close();
        let (clock, body) = (harness.clock.clone(), harness.body());
        let whole = Millis(15 * 60_000);
        let time = async {
            for pause in &pauses {
                pause.reached().await;
                let begun = Instant::now();
                // It has read all there is and waits for more.
                let waits = || (clock.now() + Millis(60_000)).min(whole);
                while clock.next_wake() != Some(waits()) {
                    assert!(begun.elapsed().as_secs() < 20, "{:?}", clock.next_wake());
                    tokio::task::yield_now().await;
                }
                clock.advance(Millis(50_000));
                pause.go();
            }
        };
        let calling = provider::call_with_retries(&*harness.provider, &body, &harness.cx);
        let result = tokio::select! {
            biased;
            result = calling => result,
            () = time => panic!("sixteen minutes passed"),
        };
        let error = result.expect_err("no end");
        assert!(
            error.to_string().contains("it did not end within 15 min"),
            "{error}"
        );
        assert_eq!(clock.now(), whole);
        assert_eq!(
            harness.server.requests().len(),
            1,
            "it is not asked for again"
        );
    }
}

#[tokio::test]
async fn stalled_error_body_is_not_awaited() {
    let pause = Pause::new();
    let reply = Reply::status(400).body("{\"error\":{\"message\":\"half a rea");
    let reply = reply.split_every(10).pause_before(2, &pause);
    let harness = ProviderHarness::openai(vec![reply]);
    let time = async {
        pause.reached().await;
        while harness.clock.now() < Millis(30_000) {
            tokio::task::yield_now().await;
            harness.clock.advance(Millis(100));
        }
    };
    let result = tokio::select! {
        result = harness.send() => result,
        () = time => panic!("half a minute of silence"),
    };
    assert_eq!(result.expect_err("refused").status(), Some(400));
}

#[tokio::test]
async fn redirect_is_not_followed_with_a_key() {
    let elsewhere = WireServer::openai(vec![Reply::text("thanks for the key")]);
    for status in [301, 302, 303, 307, 308] {
        let to = format!("{}/chat/completions", elsewhere.base_url());
        let mut harness =
            ProviderHarness::openai(vec![Reply::status(status).header("location", to)]);
        let (result, _, waits) = harness.call().await;
        let error = result.expect_err("a redirect");
        assert_eq!((error.status(), waits.len()), (Some(status), 0));
        assert!(
            error.to_string().contains("set base_url to that server"),
            "{error}"
        );
    }
    assert_eq!(elsewhere.requests().len(), 0);
}

#[tokio::test]
async fn untrusted_certificate_never_falls_back_to_plain_http() {
    // It speaks plain HTTP and would gladly take the request.
    let server = WireServer::openai(vec![Reply::text("in the open")]);
    let address = server.address();
    let mut harness = ProviderHarness::with(server, ProviderKind::Openai, |config| {
        config.base_url = Some(format!("https://{address}/v1"));
    });
    let (result, _, waits) = harness.call().await;
    let error = result.expect_err("no TLS there");
    assert!(matches!(error, ProviderError::Connect { .. }), "{error}");
    assert!(
        error.to_string().contains("no secure connection"),
        "{error}"
    );
    assert_eq!((harness.server.requests().len(), waits.len()), (0, 0));
}

#[tokio::test]
async fn connection_has_five_seconds_and_the_first_byte_two_minutes() {
    // With https, the silent server never answers the handshake, which belongs to the connection.
    for (scheme, limit) in [
        ("https", Millis::from_secs(5)),
        ("http", Millis::from_secs(120)),
    ] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("loopback");
        let address = listener.local_addr().expect("bound");
        let unused = WireServer::openai(Vec::new());
        let harness = ProviderHarness::with(unused, ProviderKind::Openai, |config| {
            config.base_url = Some(format!("{scheme}://{address}/v1"));
        });
        let clock = harness.clock.clone();
        let time = async {
            let _held = listener.accept().await.expect("a connection");
            let begun = Instant::now();
            while clock.next_wake() != Some(limit) {
                assert!(begun.elapsed().as_secs() < 20, "{:?}", clock.next_wake());
                tokio::task::yield_now().await;
            }
            clock.advance(Millis(limit.0 - 1));
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!(clock.next_wake(), Some(limit), "{scheme}: it ended early");
            clock.advance(Millis(1));
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            result = harness.send() => result,
            () = time => panic!("the time ends only with the test"),
        };
        result.expect_err("silence");
        assert_eq!(clock.now(), limit, "{scheme}");
    }
}
