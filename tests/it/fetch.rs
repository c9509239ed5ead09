//! `fetch_url` and the guard over real sockets: what comes back, and what is never dialled.

mod api;
mod cli;
mod limits;
mod plain;
mod redirects;
mod sending;
mod spellings;
mod world;

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dicta::clock::{BoxFuture, Clock, FakeClock};
use dicta::event::{CallCx, Emitter, EventKind, MemoryBlobs, RedactedEvent, Redactor, ToolFact};
use dicta::model::{CallIx, CellIx, Hop, JudgeTool, Rejection, ToolResponse, TurnIx};
use dicta::net::Resolver;
use dicta::tools::{FetchUrl, SeenUrls, ToolSet, prepare_call};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::support::tls::{Response, TlsServer};

const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

type Answers = Box<dyn Fn(&str, usize) -> Vec<IpAddr> + Send + Sync>;

/// A resolver that answers by name and by how often that name was asked, and counts.
pub(crate) struct Names {
    answers: Answers,
    asked: Mutex<Vec<String>>,
}

impl Names {
    pub(crate) fn answering(
        answers: impl Fn(&str, usize) -> Vec<IpAddr> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            answers: Box::new(answers),
            asked: Mutex::default(),
        })
    }

    /// Every name is at this address.
    pub(crate) fn all_at(address: IpAddr) -> Arc<Self> {
        Self::answering(move |_, _| vec![address])
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

impl Resolver for Names {
    fn lookup<'a>(&'a self, host: &'a str, _: u16) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut asked = self.asked.lock().expect("no panic");
        let before = asked.iter().filter(|name| *name == host).count();
        asked.push(host.to_owned());
        Box::pin(std::future::ready(Ok((self.answers)(host, before))))
    }
}

/// A judge's `fetch_url` and what a call of it needs.
pub(crate) struct Fetcher {
    set: ToolSet,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cancel: CancellationToken,
    pub(crate) seen: SeenUrls,
}

impl Fetcher {
    pub(crate) fn new(settings: &Value, names: &Arc<Names>) -> Self {
        let entry = JudgeTool {
            name: "fetch_url".to_owned(),
            settings: serde_json::from_value(settings.clone()).expect("an object"),
        };
        let names: Arc<dyn Resolver> = Arc::<Names>::clone(names);
        let tool = FetchUrl::new(&entry, names).expect("good settings");
        Self {
            set: ToolSet {
                tools: vec![Arc::new(tool)],
            },
            // No deadline ends a call on a slow machine. A test of deadlines moves the time.
            clock: Arc::new(FakeClock::new()),
            cancel: CancellationToken::new(),
            seen: SeenUrls::default(),
        }
    }

    /// One that may open `wiki.test` on the server's port, also if no text contains the address.
    pub(crate) fn of(server: &TlsServer, names: &Arc<Names>) -> Self {
        Self::new(&settings(server), names)
    }

    /// Calls it as a judge would.
    pub(crate) async fn call(&self, url: &str) -> Result<(ToolResponse, Vec<Hop>), Rejection> {
        let arguments = json!({ "url": url }).to_string();
        let prepared = prepare_call(&self.set, "fetch_url", &arguments, &self.seen).outcome?;
        let (to, mut facts) = mpsc::channel::<RedactedEvent>(64);
        let cx = CallCx {
            out: Emitter::new(
                to,
                Arc::new(MemoryBlobs::default()),
                Arc::new(Redactor::default()),
            ),
            clock: Arc::clone(&self.clock),
            cancel: self.cancel.clone(),
            cell: CellIx(0),
            turn: TurnIx(0),
        };
        let answer = self.set.tools[0].call(&prepared, CallIx(0), &cx).await;
        drop(cx);
        let mut hops = Vec::new();
        while let Some(envelope) = facts.recv().await {
            if let EventKind::Tool {
                fact: ToolFact::Hop(hop),
                ..
            } = envelope.kind
            {
                hops.push(hop);
            }
        }
        Ok((answer, hops))
    }

    /// The text of a call that was not rejected.
    pub(crate) async fn text(&self, url: &str) -> String {
        self.call(url).await.expect("not rejected").0.text
    }
}

/// `wiki.test` on the server's port is allowed, its authority trusted, and every URL counts as seen.
pub(crate) fn settings(server: &TlsServer) -> Value {
    json!({
        "allow_hosts": [format!("wiki.test:{}", server.port())],
        "ca_file": server.ca_file(),
        "seen": "off",
    })
}

pub(crate) fn wiki(server: &TlsServer, path: &str) -> String {
    format!("https://wiki.test:{}{path}", server.port())
}

#[tokio::test]
async fn page_is_returned_as_text_with_hops_and_raw_body() {
    let page = "<title>Beam</title><p>The newest release is <b>2.69.0</b>.<script>x()</script>";
    let server = TlsServer::serving(
        &["wiki.test"],
        vec![("/", Response::page("text/html; charset=utf-8", page))],
    );
    let names = Names::all_at(LOOPBACK);
    let url = wiki(&server, "/");
    let (answer, hops) = Fetcher::of(&server, &names)
        .call(&url)
        .await
        .expect("not rejected");
    assert_eq!(answer.text, "Beam\n\nThe newest release is 2.69.0.");
    assert_eq!(
        (answer.is_error, answer.truncated, answer.bytes),
        (false, false, page.len() as u64)
    );
    assert!(answer.raw.is_some());
    let expected = Hop {
        url,
        address: Some(LOOPBACK),
        status: Some(200),
        refused: None,
    };
    assert_eq!(hops, [expected]);
    assert_eq!(names.asked(), ["wiki.test"]);
}

#[tokio::test]
async fn host_spelling_does_not_change_the_connected_address() {
    let server = TlsServer::serving(
        &["wiki.test", "xn--bcher-kva.test", "127.0.0.1"],
        vec![("/", Response::page("text/plain", "here"))],
    );
    let names = Names::all_at(LOOPBACK);
    let port = server.port();
    let mut open = settings(&server);
    open["allow_hosts"] = json!([
        format!("Wiki.Test.:{port}"),
        format!("bücher.test:{port}"),
        format!("127.0.0.1:{port}")
    ]);
    let fetcher = Fetcher::new(&open, &names);
    for host in [
        "WIKI.test",
        "wiki.test.",
        "bücher.test",
        "BÜCHER.test",
        "127.1",
    ] {
        let text = fetcher.text(&format!("https://{host}:{port}/")).await;
        assert_eq!(text, "here", "{host}");
    }
}

#[tokio::test]
async fn request_contains_nothing_of_the_user_or_of_an_earlier_hop() {
    let server = TlsServer::serving(
        &["wiki.test"],
        vec![
            (
                "/a",
                Response::redirect(302, "/b?x=1").header("set-cookie", "id=7"),
            ),
            ("/b?x=1", Response::page("text/plain", "there")),
        ],
    );
    let fetcher = Fetcher::of(&server, &Names::all_at(LOOPBACK));
    assert_eq!(fetcher.text(&wiki(&server, "/a#frag")).await, "there");
    assert_eq!(server.accepts(), 2, "each hop has a connection of its own");
    for request in server.requests() {
        let mut sent: Vec<&str> = request.headers.iter().map(|(n, _)| n.as_str()).collect();
        sent.sort_unstable();
        assert_eq!(sent, ["accept", "accept-encoding", "host", "user-agent"]);
        assert_eq!(request.host, "wiki.test");
    }
}

#[tokio::test]
async fn binary_content_is_described_by_type_and_size() {
    let server = TlsServer::serving(
        &["wiki.test"],
        vec![
            ("/pdf", Response::page("application/pdf", "%PDF-1.7")),
            ("/nul", Response::page("text/plain", "a\0b")),
        ],
    );
    let fetcher = Fetcher::of(&server, &Names::all_at(LOOPBACK));
    let (answer, _) = fetcher.call(&wiki(&server, "/pdf")).await.expect("called");
    assert_eq!(
        answer.text,
        "[application/pdf, 8 bytes: not shown, only text, JSON and XML are]"
    );
    assert_eq!((answer.is_error, answer.bytes), (false, 8));
    let (answer, _) = fetcher.call(&wiki(&server, "/nul")).await.expect("called");
    assert!(
        answer.text.starts_with("[text/plain, 3 bytes"),
        "{}",
        answer.text
    );
    assert!(answer.raw.is_some(), "what was stored is named");
}

#[tokio::test]
async fn fetch_errors_have_the_texts_of_evalbench() {
    let server = TlsServer::serving(
        &["wiki.test"],
        vec![("/ok", Response::page("text/plain", "ok"))],
    );
    let names = Names::answering(|host, _| match host {
        "gone.test" => vec![],
        _ => vec![LOOPBACK],
    });
    let fetcher = Fetcher::of(&server, &names);
    let missing = wiki(&server, "/missing");
    assert_eq!(
        fetcher.text(&missing).await,
        format!("Error: HTTP 404 fetching {missing}")
    );
    assert_eq!(
        fetcher.text("http://wiki.test/").await,
        "Error: only https URLs are allowed (got scheme 'http')"
    );
    assert_eq!(
        fetcher.text("https://gone.test/").await,
        "Error: refusing to fetch 'gone.test' (unresolvable: the name has no address)"
    );
    assert_eq!(
        fetcher.text("https://other.test/").await,
        "Error: refusing to fetch 'other.test' (address: 127.0.0.1 is loopback (127.0.0.0/8)); \
         fetch_url's setting `allow_hosts: [\"other.test\"]` would admit it"
    );
    // A server whose certificate no authority signed.
    let mut without_authority = settings(&server);
    without_authority
        .as_object_mut()
        .expect("object")
        .remove("ca_file");
    let text = Fetcher::new(&without_authority, &names)
        .text(&wiki(&server, "/ok"))
        .await;
    assert!(
        text.starts_with("Error: URL error fetching ") && text.contains("no secure connection"),
        "{text}"
    );
    assert!(server.requests().iter().all(|r| r.path != "/ok"));
}

#[tokio::test]
async fn unseen_host_is_rejected_before_the_name_lookup() {
    let server = TlsServer::serving(
        &["wiki.test"],
        vec![("/a", Response::page("text/plain", "a"))],
    );
    let names = Names::all_at(LOOPBACK);
    let url = wiki(&server, "/a");
    for (setting, noted, other) in [
        ("host", "see wiki.test for it", "seen: off"),
        ("url", url.as_str(), "seen: off"),
    ] {
        let mut strict = settings(&server);
        strict["seen"] = json!(setting);
        let mut fetcher = Fetcher::new(&strict, &names);
        let rejection = fetcher.call(&url).await.expect_err("nobody named it");
        assert_eq!(rejection.rule, "seen");
        assert!(rejection.text.contains(other), "{}", rejection.text);
        let lookups = names.asked().len();
        fetcher.seen.add_text(noted);
        assert_eq!(fetcher.text(&url).await, "a");
        assert_eq!(names.asked().len(), lookups + 1);
    }
}

#[tokio::test]
async fn cancelled_fetch_ends_at_once() {
    use crate::support::tls::{Hold, Step};
    let hold = Arc::new(Hold::default());
    let steps = vec![Step::Hold(Arc::clone(&hold))];
    let server = TlsServer::serving(&["wiki.test"], vec![("/", Response::raw(steps))]);
    let fetcher = Fetcher::of(&server, &Names::all_at(LOOPBACK));
    let url = wiki(&server, "/");
    let cancel = async {
        hold.reached().await;
        let now = Instant::now();
        fetcher.cancel.cancel();
        now
    };
    let (text, cancelled) = tokio::join!(fetcher.text(&url), cancel);
    let took = cancelled.elapsed();
    assert_eq!(text, format!("Error: cancelled while fetching {url}"));
    // The campaign runs few tests at once, and its page states this limit. Otherwise, other tests use the machine, too.
    let limit = match std::env::var_os("DICTA_CAMPAIGN") {
        Some(_) => Duration::from_millis(250),
        None => Duration::from_secs(5),
    };
    assert!(took < limit, "{took:?} after the cancellation");
}
