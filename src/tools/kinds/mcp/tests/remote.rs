//! The small server over streamable HTTP, in memory: rmcp's client on a way out that leads nowhere.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::{StreamExt as _, stream};

use super::super::http::{McpHttpReply, McpHttpSender};
use super::*;
use crate::net::{FetchError, GuardedRequest, HopObserver};

/// The way in which replies arrive.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    Json,
    Events,
}

/// A request: its method, and its headers.
type Asked = (String, Vec<(String, String)>);

/// The server, and what passed the way.
struct Served {
    server: Mutex<Server>,
    style: Style,
    /// Counts sessions; the newest is the one that lives.
    session: AtomicU32,
    asked: Mutex<Vec<Asked>>,
    /// Replies to tool calls that replace the server's.
    instead: Mutex<Vec<(u16, &'static str)>>,
}

impl Served {
    fn new(style: Style) -> Arc<Self> {
        Arc::new(Self {
            server: Mutex::default(),
            style,
            session: AtomicU32::new(0),
            asked: Mutex::default(),
            instead: Mutex::default(),
        })
    }

    fn expire(&self) {
        self.session.fetch_add(1, Ordering::SeqCst);
    }

    fn heard(&self, method: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|(m, _)| m == method).count()
    }

    fn reply(&self, asking: &GuardedRequest<'_>) -> McpHttpReply {
        let message: Value = serde_json::from_slice(asking.body.unwrap_or(b"null")).unwrap();
        let method = message["method"]
            .as_str()
            .unwrap_or(asking.method)
            .to_owned();
        self.asked
            .lock()
            .unwrap()
            .push((method.clone(), asking.headers.to_vec()));
        if method == "initialize" {
            self.expire();
        }
        let session = format!("s{}", self.session.load(Ordering::SeqCst));
        let given = asking
            .headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case("mcp-session-id"));
        if given.is_some_and(|(_, given)| *given != session) {
            return plain(404, "no such session");
        }
        if method == "tools/call"
            && let Some((status, body)) = self.instead.lock().unwrap().pop()
        {
            return plain(status, body);
        }
        let answers = self.server.lock().unwrap().answer(&message);
        if message["id"].is_null() || message["method"].is_null() {
            return plain(202, "");
        }
        if answers.is_empty() {
            // One that never answers.
            return McpHttpReply {
                body: stream::pending().boxed(),
                content_type: Some("text/event-stream".to_owned()),
                ..plain(200, "")
            };
        }
        let (kind, body) = match self.style {
            Style::Json => ("application/json", answers[answers.len() - 1].to_string()),
            Style::Events => {
                let mut body = ": hello\r\n\r\n".to_owned();
                for answer in &answers {
                    write!(body, "event: message\r\ndata: {answer}\r\n\r\n")
                        .expect("a text takes it");
                }
                ("text/event-stream; charset=utf-8", body)
            }
        };
        let pieces: Vec<_> = body
            .as_bytes()
            .chunks(700)
            .map(|c| Ok(c.to_vec().into()))
            .collect();
        McpHttpReply {
            status: 200,
            content_type: Some(kind.to_owned()),
            session: (method == "initialize").then_some(session),
            location: None,
            body: stream::iter(pieces).boxed(),
        }
    }
}

fn plain(status: u16, body: &'static str) -> McpHttpReply {
    McpHttpReply {
        status,
        content_type: Some("text/plain".to_owned()),
        session: None,
        location: (status == 302).then(|| "http://169.254.169.254/".to_owned()),
        body: stream::iter([Ok(body.as_bytes().into())]).boxed(),
    }
}

struct ThisWay(Arc<Served>);

impl McpHttpSender for ThisWay {
    fn send<'a>(
        &'a self,
        asking: GuardedRequest<'a>,
        hops: &'a dyn HopObserver,
    ) -> BoxFuture<'a, Result<McpHttpReply, FetchError>> {
        Box::pin(async move {
            let reply = self.0.reply(&asking);
            let hop = crate::model::Hop {
                url: asking.url.to_owned(),
                address: None,
                status: Some(reply.status),
                refused: None,
            };
            hops.record_hop(hop).await;
            Ok(reply)
        })
    }
}

fn source_of(served: &Arc<Served>) -> Arc<dyn ToolSource> {
    let settings = json!({
        "url": "https://mcp.example/mcp?api_key=hush-hush-key", "headers": {"Authorization": "Bearer hush-hush-token"}
    });
    let text: Arc<str> = settings.to_string().into();
    let doc = yaml::read_document(&text, Path::new("tools.yaml")).expect("YAML");
    let problems = DiagnosticCollector::from_doc(&doc);
    let mut keys = ConfigKeys {
        fields: &mut MappingDecoder::new(&doc, "", &problems),
        failed: false,
    };
    let settings = config::read_mcp_config(&mut keys, Path::new("/")).unwrap();
    let mut link = McpServer::new("far", settings, Arc::new(crate::net::SystemResolver));
    link.way = Some(Arc::new(ThisWay(Arc::clone(served))));
    Arc::new(McpSource {
        server: Arc::new(link),
    })
}

#[tokio::test]
async fn json_and_event_replies_are_equal_in_a_session() {
    for style in [Style::Json, Style::Events] {
        let served = Served::new(style);
        let mut world = World::new();
        let source = source_of(&served);
        let found = source.discover_tools(&world.cx).await.unwrap();
        assert_eq!(found.len(), 16);
        let response = world.call(&found, "echo", json!({"text": "héllo"})).await;
        assert_eq!(
            (response.text.as_str(), response.is_error),
            ("héllo", false)
        );
        // The call's own request is a hop of the call.
        let hops = world.hops();
        assert_eq!(hops.len(), 1);
        assert_eq!(hops[0].status, Some(200));
        let asked = served.asked.lock().unwrap();
        let (_, headers) = asked.last().unwrap();
        for (name, value) in [
            ("authorization", "Bearer hush-hush-token"),
            ("mcp-session-id", "s1"),
            ("mcp-protocol-version", "2025-06-18"),
        ] {
            assert!(
                headers
                    .iter()
                    .any(|(n, v)| n.eq_ignore_ascii_case(name) && v == value),
                "{name}: {headers:?}"
            );
        }
        // No stream for the server's own news is asked for.
        assert!(asked.iter().all(|(method, _)| method != "GET"));
    }
}

#[tokio::test]
async fn server_requests_are_refused_on_their_own_stream() {
    let served = Served::new(Style::Events);
    let world = World::new();
    let found = source_of(&served).discover_tools(&world.cx).await.unwrap();
    // The stream of the reply ends early here; the call must report it instead of waiting.
    let calling = world.call(&found, "ask", json!({}));
    let answer = world.at_its_limit(calling).await;
    assert!(answer.is_error, "{answer:?}");
    assert_eq!(
        served
            .server
            .lock()
            .unwrap()
            .asking
            .as_ref()
            .map(|(_, replies)| replies.len()),
        None
    );
}

#[tokio::test]
async fn expired_session_is_restarted_silently() {
    let served = Served::new(Style::Json);
    let world = World::new();
    let found = source_of(&served).discover_tools(&world.cx).await.unwrap();
    served.expire();
    let response = world.call(&found, "echo", json!({"text": "again"})).await;
    assert_eq!(response.text, "again");
    assert_eq!(served.heard("initialize"), 2);
}

#[tokio::test]
async fn refusals_are_reported_and_only_transient_ones_retried() {
    let served = Served::new(Style::Json);
    let world = World::new();
    let found = source_of(&served).discover_tools(&world.cx).await.unwrap();
    for (status, body, says, transient) in [
        (503, "busy", "HTTP 503: busy", true),
        (429, "", "HTTP 429", true),
        (401, "who are you", "belongs in `headers`", false),
        (302, "", "redirects are not followed", false),
        (200, "<html>", "no MCP message", false),
        (
            400,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad\nrequest"}}"#,
            "bad",
            false,
        ),
    ] {
        served.instead.lock().unwrap().push((status, body));
        let response = world.call(&found, "echo", json!({"text": "x"})).await;
        assert!(
            response.is_error && response.text.contains(says),
            "{status}: {}",
            response.text
        );
        assert_eq!(response.transient, transient, "{status}: {}", response.text);
        assert!(!response.text.contains("hush-hush"), "{}", response.text);
    }
    // A tool that may change something is not tried again.
    served.instead.lock().unwrap().push((503, ""));
    assert!(!world.call(&found, "pid", json!({})).await.transient);
    // And the connection has survived all of it.
    assert_eq!(
        world.call(&found, "echo", json!({"text": "x"})).await.text,
        "x"
    );
    assert_eq!(served.heard("initialize"), 1);
}

#[tokio::test]
async fn oversized_or_missing_reply_fails_only_its_call() {
    for style in [Style::Json, Style::Events] {
        let served = Served::new(style);
        let world = World::new();
        let found = source_of(&served).discover_tools(&world.cx).await.unwrap();
        let calling = world.call(&found, "huge", json!({}));
        let response = world.at_its_limit(calling).await;
        assert!(response.is_error, "{}", response.text);
        let calling = world.call(&found, "slow", json!({}));
        let late = world.at_its_limit(calling).await;
        assert!(
            late.text.contains("no answer after 30") && late.transient,
            "{}",
            late.text
        );
        while served.heard("notifications/cancelled") == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            world.call(&found, "echo", json!({"text": "x"})).await.text,
            "x"
        );
    }
}
