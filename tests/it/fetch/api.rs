//! Tools of `kind: http` over real sockets: what is asked, what comes back, and what the guard does not let out.

use std::path::Path;
use std::sync::Arc;

use dicta::clock::{Clock, FakeClock};
use dicta::diag::yaml::{self, DiagnosticCollector, MappingDecoder};
use dicta::event::{CallCx, Emitter, EventKind, MemoryBlobs, RedactedEvent, Redactor, ToolFact};
use dicta::model::{CallIx, CellIx, Hop, RawJson, ToolResponse, TurnIx};
use dicta::net::Resolver;
use dicta::tools::ValidatedCall;
use dicta::tools::kinds::SOURCE_KINDS;
use dicta::tools::params::ToolParams;
use dicta::tools::source::{SourceCx, ToolExecutor, ToolInput, ToolSource};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::plain::{canary, reply, serve};
use super::{LOOPBACK, Names};

/// A source and a tool of it.
fn open(
    source: &str,
    tool: &str,
    names: &Arc<Names>,
) -> (Arc<dyn ToolSource>, Arc<dyn ToolExecutor>) {
    let text: Arc<str> = format!("source: {source}\ntool: {tool}\n").into();
    let doc = yaml::read_document(&text, Path::new("tools.yaml")).expect("YAML");
    let problems = DiagnosticCollector::from_doc(&doc);
    let resolver: Arc<dyn Resolver> = Arc::<Names>::clone(names);
    let cx = SourceCx {
        name: "api",
        folder: Path::new("/"),
        resolver: &resolver,
        secrets: &[],
    };
    let kind = SOURCE_KINDS
        .iter()
        .find(|kind| kind.source == "http")
        .expect("it is there");
    let read = kind.read.expect("in every build");
    let source =
        read(&mut MappingDecoder::new(&doc, "/source", &problems), &cx).expect("a good source");
    let mut fields = MappingDecoder::new(&doc, "/tool", &problems);
    let input = ToolInput::Parameters(ToolParams::default());
    let work = Arc::clone(&source).read_tool("http", &mut fields, &input);
    let work = work.unwrap_or_else(|| panic!("{:?}", problems.take()));
    (source, work)
}

fn cx() -> (CallCx, mpsc::Receiver<RedactedEvent>) {
    let (to, facts) = mpsc::channel::<RedactedEvent>(64);
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
    let out = Emitter::new(
        to,
        Arc::new(MemoryBlobs::default()),
        Arc::new(Redactor::default()),
    );
    let cx = CallCx {
        out,
        clock,
        cancel: CancellationToken::new(),
        cell: CellIx(0),
        turn: TurnIx(0),
    };
    (cx, facts)
}

async fn call(work: &Arc<dyn ToolExecutor>, values: &str) -> (ToolResponse, Vec<Hop>) {
    let (cx, mut facts) = cx();
    let values = RawJson::parse(values).expect("JSON");
    let prepared = ValidatedCall {
        tool: "t".to_owned(),
        canonical: values.clone(),
        values,
        coerced: Vec::new(),
    };
    let answer = work.call(&prepared, CallIx(0), &cx).await;
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
    (answer, hops)
}

#[tokio::test]
async fn http_tool_sends_its_values_and_returns_readable_json() {
    let (port, heard) = serve(|_| {
        reply(
            200,
            "content-type: application/json\r\n",
            r#"{"n":12345678901234567890123,"a":[]}"#,
        )
    });
    let source = format!(
        "{{baseUrl: 'http://127.0.0.1:{port}/v1', allowPrivate: true, headers: {{X-Api-Key: k3y}}, queryParams: {{lang: en}}}}"
    );
    let names = Names::all_at(LOOPBACK);
    let tool = "{method: POST, path: '/items/{{.id}}', parameters: [{name: id}, {name: text}]}";
    let (source, work) = open(&source, tool, &names);
    let (answer, hops) = call(&work, r#"{"id": "a/b", "text": "hi"}"#).await;
    assert_eq!(
        answer.text,
        "{\n  \"n\": 12345678901234567890123,\n  \"a\": []\n}"
    );
    assert!(answer.raw.is_some() && !answer.is_error);
    let request = heard.lock().expect("no panic")[0].clone();
    assert!(
        request.starts_with("POST /v1/items/a%2Fb?lang=en HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("x-api-key: k3y\r\n") && request.ends_with("\r\n\r\n{\"text\":\"hi\"}"),
        "{request}"
    );
    assert_eq!(
        (hops.len(), hops[0].address, hops[0].status),
        (1, Some(LOOPBACK), Some(200))
    );
    assert_eq!(source.secrets(), ["k3y"]);
    let (cx, _facts) = cx();
    assert_eq!(
        source.probe(&cx).await.as_deref(),
        Ok("reachable, HTTP 200")
    );
}

#[tokio::test]
async fn http_tool_reports_an_error_status_with_the_body() {
    let (port, _) = serve(|request| {
        let status = request
            .split(['/', ' ', '?'])
            .nth(2)
            .and_then(|s| s.parse().ok());
        let headers = "content-type: text/plain\r\nlocation: /elsewhere\r\n";
        reply(
            status.unwrap_or(200),
            headers,
            if status == Some(204) {
                ""
            } else {
                "no such item"
            },
        )
    });
    let source = format!(
        "{{baseUrl: 'http://127.0.0.1:{port}', allowPrivate: true, queryParams: {{key: s3cret}}}}"
    );
    let tool = "{method: POST, path: '/{{.s}}', parameters: [{name: s}]}";
    let (_, work) = open(&source, tool, &Names::all_at(LOOPBACK));
    let asked = format!("POST http://127.0.0.1:{port}");
    for (status, expected, transient) in [
        (
            404,
            format!("Error: HTTP 404 from {asked}/404:\nno such item"),
            false,
        ),
        (
            429,
            format!("Error: HTTP 429 from {asked}/429:\nno such item"),
            true,
        ),
        (
            503,
            format!("Error: HTTP 503 from {asked}/503:\nno such item"),
            true,
        ),
        (
            302,
            format!("Error: HTTP 302 from {asked}/302: the redirect to /elsewhere is not followed"),
            false,
        ),
        (204, "[HTTP 204, an empty body]".to_owned(), false),
    ] {
        let (answer, _) = call(&work, &format!("{{\"s\": {status}}}")).await;
        assert_eq!(answer.text, expected);
        assert_eq!(
            (answer.is_error, answer.transient),
            (status != 204, transient),
            "{status}"
        );
    }
    // No server listens any more: such a failure may pass.
    let (_, work) = open(
        "{baseUrl: 'http://127.0.0.1:9', allowPrivate: true}",
        "{method: GET}",
        &Names::all_at(LOOPBACK),
    );
    let (answer, _) = call(&work, "{}").await;
    assert!(answer.is_error && answer.transient, "{}", answer.text);
}

#[tokio::test]
async fn http_source_passes_the_address_guard() {
    let trap = canary(LOOPBACK, 0).expect("any port");
    let trap_port = trap.local_addr().expect("bound").port();
    let (port, _) = serve(move |_| {
        reply(
            302,
            &format!("location: http://127.0.0.1:{trap_port}/\r\n"),
            "",
        )
    });
    // What it opens is its own origin and no other.
    let source = format!(
        "{{baseUrl: 'http://127.0.0.1:{port}', allowPrivate: true, headers: {{Authorization: Bearer x}}}}"
    );
    let (_, work) = open(&source, "{method: GET}", &Names::all_at(LOOPBACK));
    let (answer, hops) = call(&work, "{}").await;
    assert!(
        answer.is_error && answer.text.contains("refusing to ask"),
        "{}",
        answer.text
    );
    assert_eq!(hops.len(), 2);
    assert!(
        hops[1]
            .refused
            .as_deref()
            .is_some_and(|r| r.starts_with("scheme: "))
    );
    assert!(
        answer.text.ends_with(
            "source `api` may ask its own origin and public https, and no setting opens another"
        ),
        "{}",
        answer.text
    );
    // A public name that turns out private, with the setting that would admit it.
    let (_, work) = open(
        "{baseUrl: https://api.example.com}",
        "{method: GET}",
        &Names::all_at(LOOPBACK),
    );
    let (answer, _) = call(&work, "{}").await;
    assert_eq!(
        answer.text,
        "Error: refusing to ask 'api.example.com' (address: 127.0.0.1 is loopback (127.0.0.0/8)); \
         `allowPrivate: true` on source `api` would admit it"
    );
    assert!(trap.accept().is_err(), "the canary was dialled");
}
