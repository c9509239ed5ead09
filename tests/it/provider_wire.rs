//! The provider against a server that misbehaves: no fault becomes a reply, no wait is slept through, no key gets out.

use std::sync::Arc;

use dicta::clock::{Clock, FakeClock};
use dicta::event::{CallCx, DeltaPart, Emitter, Envelope, Kind, MemoryBlobs, Redactor, TurnFact};
use dicta::model::{
    Answer, Block, CellIx, Item, JudgeConfig, Millis, ProviderKind, ReplyCall, StopReason,
    ToolDecl, TurnIx, Usage,
};
use dicta::provider::{self, Body, Choice, Finished, Provider, ProviderError, TurnRequest};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::support::wire::{Dialect, Pause, Reply, WireServer};

const KEY: &str = "sk-test-4711-abcdef";

/// One judge on one server, and the facts it tells.
struct Bench {
    server: WireServer,
    provider: Arc<dyn Provider>,
    clock: FakeClock,
    cx: CallCx,
    facts: mpsc::Receiver<Envelope>,
}

impl Bench {
    fn new(server: WireServer, kind: ProviderKind) -> Self {
        Self::with(server, kind, |_| {})
    }

    fn with(server: WireServer, kind: ProviderKind, change: impl FnOnce(&mut JudgeConfig)) -> Self {
        let mut config = JudgeConfig::new("wire", kind);
        config.model = "scripted".to_owned();
        config.base_url = Some(server.base_url());
        change(&mut config);
        let clock = FakeClock::new();
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let provider =
            provider::build(&config, Some(KEY), Arc::clone(&shared)).expect("a known dialect");
        let (to, facts) = mpsc::channel(10_000);
        let blobs = Arc::new(MemoryBlobs::default());
        let cx = CallCx {
            out: Emitter::new(to, blobs, Arc::new(Redactor::default())),
            clock: shared,
            cancel: CancellationToken::new(),
            cell: CellIx(3),
            turn: TurnIx(0),
        };
        Self {
            server,
            provider,
            clock,
            cx,
            facts,
        }
    }

    fn openai(replies: Vec<Reply>) -> Self {
        Self::new(WireServer::openai(replies), ProviderKind::Openai)
    }

    fn gemini(replies: Vec<Reply>) -> Self {
        Self::new(WireServer::gemini(replies), ProviderKind::Gemini)
    }

    fn of(dialect: Dialect, replies: Vec<Reply>) -> Self {
        match dialect {
            Dialect::Openai => Self::openai(replies),
            Dialect::Gemini => Self::gemini(replies),
        }
    }

    fn body(&self) -> Body {
        self.body_of(&asked(), &[], Choice::NoTools)
    }

    fn body_of(&self, history: &[Item], tools: &[ToolDecl], choice: Choice) -> Body {
        let turn = TurnRequest {
            history,
            tools,
            choice,
        };
        self.provider.body(&turn).expect("a body")
    }

    async fn send(&self) -> Result<Finished, ProviderError> {
        self.provider.send(&self.body(), 1, &self.cx).await
    }

    /// Runs a whole call, moving time on by exactly what each failed attempt says it waits. Returns the result, the
    /// facts and the waits.
    async fn call(
        &mut self,
    ) -> (
        Result<(u8, Finished), ProviderError>,
        Vec<TurnFact>,
        Vec<u64>,
    ) {
        let body = self.body();
        let (provider, cx) = (Arc::clone(&self.provider), self.cx.clone());
        let mut running = tokio::spawn(async move { provider::call(&*provider, &body, &cx).await });
        let (mut facts, mut waits) = (Vec::new(), Vec::new());
        let result = loop {
            tokio::select! {
                biased;
                Some(envelope) = self.facts.recv() => {
                    let fact = turn_fact(envelope);
                    if let TurnFact::AttemptFailed { retry_in: Some(wait), .. } = &fact {
                        waits.push(wait.0);
                        self.clock.advance(*wait);
                    }
                    facts.push(fact);
                }
                result = &mut running => break result.expect("no panic"),
            }
        };
        while let Ok(envelope) = self.facts.try_recv() {
            facts.push(turn_fact(envelope));
        }
        (result, facts, waits)
    }
}

fn turn_fact(envelope: Envelope) -> TurnFact {
    match envelope.kind {
        Kind::Turn { cell, turn, fact } => {
            assert_eq!((cell, turn), (CellIx(3), TurnIx(0)));
            fact
        }
        other => panic!("a provider tells of its turn alone: {other:?}"),
    }
}

fn asked() -> Vec<Item> {
    vec![Item::User(vec![
        Block::System("You judge.".to_owned()),
        Block::Text("Judge this.".to_owned()),
    ])]
}

fn decl(name: &str) -> ToolDecl {
    ToolDecl {
        name: name.to_owned(),
        description: "…".to_owned(),
        schema: json!({"type": "object"}),
    }
}

/// Every key of a JSON value, at any depth.
fn keys(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| [vec![key.clone()], keys(value)].concat())
            .collect(),
        Value::Array(all) => all.iter().flat_map(keys).collect(),
        _ => Vec::new(),
    }
}

const BOTH: [Dialect; 2] = [Dialect::Openai, Dialect::Gemini];

#[tokio::test]
async fn a_judge_without_tools_sends_no_tool_key() {
    for dialect in BOTH {
        let bench = Bench::of(dialect, vec![Reply::text("ok"), Reply::text("ok")]);
        for choice in [Choice::NoTools, Choice::Schema(json!({"type": "object"}))] {
            let body = bench.body_of(&asked(), &[], choice);
            let sent = bench.provider.send(&body, 1, &bench.cx).await;
            assert_eq!(sent.expect("a reply").reply.text, "ok");
        }
        for request in bench.server.requests() {
            let keys = keys(&request.json());
            let of_tools = keys.iter().filter(|key| {
                let key = key.to_lowercase();
                key.contains("tool") || key.contains("function")
            });
            assert_eq!(of_tools.collect::<Vec<_>>(), Vec::<&String>::new());
        }
    }
}

#[tokio::test]
async fn the_key_travels_in_its_header_alone() {
    for (dialect, header, value) in [
        (Dialect::Openai, "authorization", format!("Bearer {KEY}")),
        (Dialect::Gemini, "x-goog-api-key", KEY.to_owned()),
    ] {
        let refusal = json!({"error": {"message": format!("bad key {KEY}"), "code": 401}});
        let bench = Bench::of(dialect, vec![Reply::status(401).body(refusal.to_string())]);
        let error = bench.send().await.expect_err("refused");
        assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
        assert!(error.to_string().contains("bad key [redacted]"), "{error}");
        let request = &bench.server.requests()[0];
        assert_eq!(request.header(header), Some(value.as_str()));
        assert!(!request.body.contains(KEY) && !request.path.contains(KEY));
    }
}

#[tokio::test]
async fn a_reply_is_the_same_however_its_bytes_arrive() {
    let reply = || {
        Reply::call("fetch_url", json!({"url": "https://a.example/é"}))
            .and_call("fetch_url", json!({"url": "b"}))
            .saying("Let me look 😀.")
            .thinking("hm")
    };
    for dialect in BOTH {
        let splits = [1, 2, 3, 7, 64, 100_000];
        let replies = splits.iter().map(|n| reply().split_every(*n)).collect();
        let bench = Bench::of(dialect, replies);
        for split in splits {
            let finished = bench.send().await.expect("a reply");
            let read = &finished.reply;
            assert_eq!(read.text, "Let me look 😀.", "{dialect:?} by {split}");
            assert_eq!(read.thought, "hm");
            assert_eq!(read.calls.len(), 2);
            assert_eq!(read.calls[0].raw, r#"{"url":"https://a.example/é"}"#);
            assert_eq!(read.stop, StopReason::ToolCalls);
            assert_eq!(finished.usage.input, Some(100));
        }
    }
}

/// What a fault must become.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Cut,
    Malformed,
    InStream,
    Status(u16),
}

fn fault_of(error: &ProviderError) -> Fault {
    match error {
        ProviderError::Cut { .. } => Fault::Cut,
        ProviderError::Malformed(_) => Fault::Malformed,
        ProviderError::InStream { .. } => Fault::InStream,
        ProviderError::Status { status, .. } => Fault::Status(*status),
        other => panic!("not a fault of a reply: {other:?}"),
    }
}

#[tokio::test]
async fn each_fault_is_its_own_error_and_never_a_reply() {
    let verdict = || Reply::text(r#"{"passed": true, "score": 1.0, "reasoning": "all good"}"#);
    let boom = || json!({"code": 503, "message": "boom"});
    let both = [
        ("broken connection", verdict().cut_at(200), Fault::Cut),
        (
            "broken before the first byte",
            verdict().cut_at(0),
            Fault::Cut,
        ),
        ("ended inside an event", verdict().end_at(200), Fault::Cut),
        ("empty", verdict().end_at(0), Fault::Cut),
        ("no finish reason", verdict().finish(""), Fault::Cut),
        (
            "half an object",
            verdict().then_malformed(),
            Fault::Malformed,
        ),
        (
            "error in the stream",
            verdict().then_error(boom()),
            Fault::InStream,
        ),
        (
            "200 with an error",
            Reply::raw(r#"{"error":{"message":"boom"}}"#),
            Fault::InStream,
        ),
        (
            "200 with a page",
            Reply::raw("<html>hello</html>\n"),
            Fault::Malformed,
        ),
        ("400", Reply::status(400), Fault::Status(400)),
        ("401", Reply::status(401), Fault::Status(401)),
        (
            "404 as a page",
            Reply::status(404).body("<html>"),
            Fault::Status(404),
        ),
        ("429", Reply::status(429), Fault::Status(429)),
        ("500", Reply::status(500), Fault::Status(500)),
        (
            "503 cut short",
            Reply::status(503).cut_at(5),
            Fault::Status(503),
        ),
        (
            "a redirect",
            Reply::status(307).header("location", "http://other.example/"),
            Fault::Status(307),
        ),
    ];
    for dialect in BOTH {
        for (what, reply, expected) in &both {
            let bench = Bench::of(dialect, vec![reply.clone()]);
            let error = bench.send().await.expect_err(what);
            assert_eq!(fault_of(&error), *expected, "{dialect:?}: {what}: {error}");
            assert_eq!(bench.server.requests().len(), 1, "one send is one attempt");
        }
    }
    // Whole replies break in the same ways.
    for (what, reply, expected) in [
        ("cut", verdict().cut_at(60), Fault::Cut),
        ("ended early", verdict().end_at(60), Fault::Cut),
        ("a page", Reply::raw("<html>"), Fault::Malformed),
        (
            "an error",
            Reply::raw(r#"{"error":"boom"}"#),
            Fault::InStream,
        ),
    ] {
        for (kind, server) in [
            (
                ProviderKind::Openai,
                WireServer::openai(vec![reply.clone()]),
            ),
            (
                ProviderKind::Gemini,
                WireServer::gemini(vec![reply.clone()]),
            ),
        ] {
            let bench = Bench::with(server, kind, |config| config.stream = false);
            let error = bench.send().await.expect_err(what);
            assert_eq!(fault_of(&error), expected, "{kind:?}: {what}: {error}");
        }
    }
}

#[tokio::test]
async fn a_missing_end_mark_is_forgiven_where_a_reason_came() {
    let bench = Bench::openai(vec![Reply::text("fine").no_done()]);
    assert_eq!(bench.send().await.expect("a reply").reply.text, "fine");
}

#[tokio::test]
async fn a_cut_reply_says_what_it_cost() {
    let usage =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\n";
    let bench = Bench::openai(vec![Reply::text("x").then_raw(usage)]);
    let error = bench.send().await.expect_err("no finish reason");
    let billed = Usage {
        input: Some(7),
        output: Some(1),
        calls: 1,
        ..Usage::default()
    };
    assert_eq!(error.billed(), Some(billed));
}

#[tokio::test]
async fn a_reply_that_is_not_streamed_is_read_too() {
    for (kind, server) in [
        (
            ProviderKind::Openai,
            WireServer::openai(vec![Reply::text("whole")]),
        ),
        (
            ProviderKind::Gemini,
            WireServer::gemini(vec![Reply::text("whole")]),
        ),
    ] {
        let mut bench = Bench::with(server, kind, |config| config.stream = false);
        let (result, facts, _) = bench.call().await;
        let (attempt, finished) = result.expect("a reply");
        assert_eq!((attempt, finished.reply.text.as_str()), (1, "whole"));
        assert_eq!(deltas(&facts, 1, DeltaPart::Text), "whole");
        assert!(!bench.server.requests()[0].wants_stream());
    }
}

fn deltas(facts: &[TurnFact], of: u8, which: DeltaPart) -> String {
    let texts = facts.iter().filter_map(|fact| match fact {
        TurnFact::Delta {
            attempt,
            part,
            text,
        } if *attempt == of && *part == which => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn failures(facts: &[TurnFact]) -> Vec<(u8, Option<u16>, &str)> {
    let failures = facts.iter().filter_map(|fact| match fact {
        TurnFact::AttemptFailed {
            attempt,
            status,
            why,
            ..
        } => Some((*attempt, *status, why.as_str())),
        _ => None,
    });
    failures.collect()
}

#[tokio::test]
async fn a_429_is_tried_again_after_the_wait_it_asks_for() {
    let mut bench = Bench::openai(vec![
        Reply::status(429).header("retry-after", "2"),
        Reply::text("ok"),
    ]);
    let (result, facts, waits) = bench.call().await;
    let (attempt, finished) = result.expect("the second attempt");
    assert_eq!((attempt, finished.reply.text.as_str()), (2, "ok"));
    assert!((2000..=2200).contains(&waits[0]), "{waits:?}");
    assert_eq!(failures(&facts)[0].1, Some(429));
    assert_eq!(facts[0], TurnFact::AttemptStarted { attempt: 1 });
    assert_eq!(facts[2], TurnFact::AttemptStarted { attempt: 2 });
}

#[tokio::test]
async fn gemini_says_its_wait_in_the_body() {
    let details =
        json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"}]);
    let body = json!({"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": details}});
    let mut bench = Bench::gemini(vec![
        Reply::status(429).body(body.to_string()),
        Reply::text("ok"),
    ]);
    let (result, _, waits) = bench.call().await;
    assert_eq!(result.expect("the second attempt").0, 2);
    assert!((3500..=3850).contains(&waits[0]), "{waits:?}");
}

#[tokio::test]
async fn four_attempts_are_all() {
    let mut bench = Bench::openai((0..9).map(|_| Reply::status(500)).collect());
    let (result, facts, waits) = bench.call().await;
    let error = result.expect_err("never better");
    assert_eq!(error.status(), Some(500));
    assert_eq!(failures(&facts).len(), 4);
    assert_eq!(waits.len(), 3, "nothing is waited for after the last");
    assert_eq!(bench.server.requests().len(), 4);
    assert!(
        error.to_string().contains("500 from http://127.0.0.1"),
        "{error}"
    );
}

#[tokio::test]
async fn what_waiting_does_not_mend_is_not_tried_again() {
    let quota =
        r#"{"error":{"message":"you exceeded your current quota","code":"insufficient_quota"}}"#;
    let daily = json!({"error": {"code": 429, "message": "daily", "details": [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "RequestsPerDay"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}]}});
    for (what, reply) in [
        ("a bad request", Reply::status(400)),
        ("a bad key", Reply::status(401)),
        ("no such model", Reply::status(404)),
        ("an empty account", Reply::status(429).body(quota)),
        ("a daily quota", Reply::status(429).body(daily.to_string())),
        (
            "a server that says so",
            Reply::status(503).header("x-should-retry", "false"),
        ),
        (
            "an error by the client's fault",
            Reply::text("x").then_error(json!({"code": 400, "message": "bad"})),
        ),
    ] {
        let mut bench = Bench::openai(vec![reply]);
        let (result, _, waits) = bench.call().await;
        assert!(result.is_err(), "{what}");
        assert_eq!(waits, Vec::<u64>::new(), "{what}");
        assert_eq!(bench.server.requests().len(), 1, "{what}");
    }
    let mut bench = Bench::openai(vec![Reply::status(429).header("retry-after", "300")]);
    let (result, _, waits) = bench.call().await;
    let error = result.expect_err("too long");
    assert!(
        error.to_string().contains("asks to wait 5 min 00 s"),
        "{error}"
    );
    assert_eq!(waits, Vec::<u64>::new());
}

#[tokio::test]
async fn a_cut_attempt_is_void_and_the_next_one_counts() {
    let mut bench = Bench::openai(vec![
        Reply::text("the first that was never finished").cut_at(600),
        Reply::text("the second"),
    ]);
    let (result, facts, _) = bench.call().await;
    let (attempt, finished) = result.expect("the second attempt");
    assert_eq!((attempt, finished.reply.text.as_str()), (2, "the second"));
    let first = deltas(&facts, 1, DeltaPart::Text);
    assert!(!first.is_empty() && "the first that was never finished".starts_with(&first));
    assert_eq!(deltas(&facts, 2, DeltaPart::Text), "the second");
    let failed = facts
        .iter()
        .position(|f| matches!(f, TurnFact::AttemptFailed { .. }));
    let late = facts
        .iter()
        .rposition(|f| matches!(f, TurnFact::Delta { attempt: 1, .. }));
    assert!(late < failed, "what is void was told before");
}

#[tokio::test]
async fn a_setting_the_server_does_not_take_is_left_out_and_remembered() {
    let refused = json!({"error": {"message": "Unsupported value: 'temperature' does not support 0 with this model.",
        "type": "invalid_request_error", "param": "temperature", "code": "unsupported_value"}});
    let renamed = json!({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter"}});
    let mut bench = Bench::openai(vec![
        Reply::status(400).body(refused.to_string()),
        Reply::status(400).body(renamed.to_string()),
        Reply::text("ok"),
        Reply::text("ok"),
    ]);
    let (result, facts, waits) = bench.call().await;
    assert_eq!(result.expect("the third attempt").0, 3);
    assert_eq!(waits, [0, 0]);
    let why = failures(&facts);
    assert!(
        why[0].2.ends_with("asking again without `temperature`"),
        "{why:?}"
    );
    assert!(
        why[1].2.ends_with("asking again without `max_tokens`"),
        "{why:?}"
    );
    let requests = bench.server.requests();
    assert_eq!(requests[0].json()["temperature"], json!(0.0));
    assert_eq!(requests[2].json().get("temperature"), None);
    assert_eq!(requests[2].json()["max_completion_tokens"], json!(4096));
    let next = bench.body();
    let dropped: Vec<&str> = next.dropped.iter().map(|d| d.what.as_str()).collect();
    assert_eq!(dropped, ["temperature", "max_tokens"]);
    assert!(bench.send().await.is_ok());
    let last = bench.server.requests().pop().expect("four").json();
    assert_eq!(last.get("temperature"), None);
    assert_eq!(last["max_completion_tokens"], json!(4096));
}

#[tokio::test]
async fn text_is_told_while_the_model_thinks() {
    let pause = Pause::new();
    // Pieces: the role, then the text in one.
    let reply = Reply::text("first").piece_len(5).pause_before(2, &pause);
    let mut bench = Bench::openai(vec![reply]);
    let body = bench.body();
    let (provider, cx) = (Arc::clone(&bench.provider), bench.cx.clone());
    let running = tokio::spawn(async move { provider::call(&*provider, &body, &cx).await });
    assert_eq!(
        bench.facts.recv().await.map(turn_fact),
        Some(TurnFact::AttemptStarted { attempt: 1 })
    );
    pause.reached().await;
    // Gathered for 33 ms; the server says nothing more until it is let go.
    let told = loop {
        tokio::task::yield_now().await;
        if bench.clock.next_wake().is_some_and(|at| at < Millis(5000)) {
            bench.clock.advance(Millis(33));
        }
        if let Ok(envelope) = bench.facts.try_recv() {
            break turn_fact(envelope);
        }
    };
    assert_eq!(
        told,
        TurnFact::Delta {
            attempt: 1,
            part: DeltaPart::Text,
            text: "first".to_owned()
        }
    );
    pause.go();
    assert!(running.await.expect("no panic").is_ok());
}

#[tokio::test]
async fn a_cancelled_call_leaves_nothing_behind() {
    for dialect in BOTH {
        let pause = Pause::new();
        let reply = Reply::text("some text")
            .piece_len(2)
            .pause_before(2, &pause);
        let mut bench = Bench::of(dialect, vec![reply]);
        let cancel = bench.cx.cancel.clone();
        let stop = async {
            pause.reached().await;
            cancel.cancel();
        };
        let ((result, facts, _), ()) = tokio::join!(bench.call(), stop);
        assert!(matches!(result, Err(ProviderError::Cancelled)));
        assert_eq!(failures(&facts), [(1, None, "cancelled")]);
        pause.go();
        bench.server.all_closed().await;
        assert_eq!(bench.server.requests().len(), 1);
    }
    // While it waits for the next attempt, too.
    let bench = Bench::openai(vec![Reply::status(429)]);
    let (cancel, body) = (bench.cx.cancel.clone(), bench.body());
    let mut facts = bench.facts;
    let stop = async {
        while let Some(envelope) = facts.recv().await {
            if matches!(turn_fact(envelope), TurnFact::AttemptFailed { .. }) {
                return cancel.cancel();
            }
        }
    };
    let (result, ()) = tokio::join!(provider::call(&*bench.provider, &body, &bench.cx), stop);
    assert!(matches!(result, Err(ProviderError::Cancelled)));
}

#[tokio::test]
async fn an_endless_reply_ends_at_the_cap_and_is_not_asked_for_again() {
    let mut bench = Bench::openai(vec![Reply::text("x").endless().finish("").no_done()]);
    // Nobody reads the deltas of 64 MiB here; a sequencer that is gone swallows them.
    bench.facts.close();
    let body = bench.body();
    let result = provider::call(&*bench.provider, &body, &bench.cx).await;
    let error = result.expect_err("no end");
    assert_eq!(fault_of(&error), Fault::Cut);
    assert!(error.to_string().contains("larger than 64 MiB"), "{error}");
    assert_eq!(bench.server.requests().len(), 1);
}

#[tokio::test]
async fn a_silent_server_is_given_up_on_our_clock() {
    let pause = Pause::new();
    let reply = Reply::text("some text")
        .piece_len(2)
        .pause_before(3, &pause);
    let bench = Bench::openai(vec![reply]);
    let waiting = async {
        pause.reached().await;
        while bench.clock.now() < Millis(600_000) {
            tokio::task::yield_now().await;
            bench.clock.advance(Millis(1000));
        }
    };
    let result = tokio::select! {
        result = bench.send() => result,
        () = waiting => panic!("ten minutes of silence"),
    };
    let error = result.expect_err("silence");
    assert_eq!(fault_of(&error), Fault::Cut, "{error}");
}

#[tokio::test]
async fn no_server_is_a_connection_error_that_names_the_address() {
    let server = WireServer::openai(Vec::new());
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = free.local_addr().expect("bound");
    drop(free);
    let mut bench = Bench::with(server, ProviderKind::Openai, |config| {
        config.base_url = Some(format!("http://user:secret-word@{address}/v1?key=hidden"));
    });
    let (result, facts, waits) = bench.call().await;
    let error = result.expect_err("nobody listens");
    let text = error.to_string();
    assert!(matches!(error, ProviderError::Connect { .. }), "{text}");
    assert!(text.contains(&address.to_string()), "{text}");
    assert!(
        !text.contains("secret-word") && !text.contains("hidden"),
        "{text}"
    );
    assert_eq!((failures(&facts).len(), waits.len()), (4, 3));
}

#[tokio::test]
async fn past_arguments_that_are_no_json_never_reach_the_server() {
    let bench = Bench::openai(vec![
        Reply::raw_call("fetch_url", r#"{"url": "https://a.example"#),
        Reply::raw_call("fetch_url", "nonsense"),
        Reply::raw_call("fetch_url", ""),
        Reply::verdict(json!({"passed": true})),
    ]);
    let tools = [decl("fetch_url"), decl("submit_verdict")];
    let mut history = asked();
    for canonical in [r#"{"url":"https://a.example"}"#, "nonsense", ""] {
        let body = bench.body_of(&history, &tools, Choice::Auto);
        let finished = bench.provider.send(&body, 1, &bench.cx).await;
        let Finished { native, reply, .. } = finished.expect("a call");
        let mut view = reply;
        canonical.clone_into(&mut view.calls[0].raw);
        history.push(Item::Model { native, view });
        history.push(Item::Answers(vec![Answer::ok("the page")]));
    }
    let only = Choice::Only("submit_verdict".to_owned());
    let body = bench.body_of(&history, &tools, only);
    let last = bench
        .provider
        .send(&body, 1, &bench.cx)
        .await
        .expect("no 500");
    assert_eq!(last.reply.calls[0].raw, r#"{"passed":true}"#);
    let sent = bench.server.requests().pop().expect("four").json();
    let arguments: Vec<&str> = (2..8)
        .step_by(2)
        .map(|at| {
            let arguments = &sent["messages"][at]["tool_calls"][0]["function"]["arguments"];
            arguments.as_str().expect("a string")
        })
        .collect();
    assert_eq!(arguments, [r#"{"url":"https://a.example"}"#, "{}", "{}"]);
}

#[tokio::test]
async fn signatures_survive_tool_turns() {
    let bench = Bench::gemini(vec![
        Reply::call("f", json!({"n": 1}))
            .and_call("f", json!({"n": 2}))
            .signed("SIG/1+="),
        Reply::call("f", json!({})).signed("SIG2"),
        Reply::text("done"),
    ]);
    let mut history = asked();
    let tools = [decl("f")];
    for _ in 0..2 {
        let body = bench.body_of(&history, &tools, Choice::Auto);
        let sent = bench.provider.send(&body, 1, &bench.cx).await;
        let Finished { native, reply, .. } = sent.expect("calls");
        let answers = reply
            .calls
            .iter()
            .map(|call: &ReplyCall| Answer::ok(&call.raw))
            .collect();
        history.push(Item::Model {
            native,
            view: reply,
        });
        history.push(Item::Answers(answers));
    }
    let body = bench.body_of(&history, &tools, Choice::Auto);
    assert!(bench.provider.send(&body, 1, &bench.cx).await.is_ok());
    let sent = bench.server.requests().pop().expect("three").json();
    assert_eq!(
        sent["contents"][1],
        json!({"role": "model", "parts": [
            {"functionCall": {"name": "f", "args": {"n": 1}}, "thoughtSignature": "SIG/1+="},
            {"functionCall": {"name": "f", "args": {"n": 2}}}]})
    );
    assert_eq!(
        sent["contents"][2]["parts"],
        json!([
            {"functionResponse": {"name": "f", "response": {"output": "{\"n\":1}"}}},
            {"functionResponse": {"name": "f", "response": {"output": "{\"n\":2}"}}}])
    );
    assert_eq!(sent["contents"][3]["parts"][0]["thoughtSignature"], "SIG2");
}

#[tokio::test]
async fn a_users_headers_are_sent_and_their_values_hidden() {
    let server = WireServer::openai(vec![Reply::status(403).body("no: gateway-secret-1")]);
    let bench = Bench::with(server, ProviderKind::Openai, |config| {
        config
            .headers
            .insert("Authorization".into(), "Basic gateway-secret-1".into());
        config
            .headers
            .insert("X-Gateway".into(), "gateway-secret-1".into());
    });
    let error = bench.send().await.expect_err("refused");
    assert!(
        !format!("{error:?}").contains("gateway-secret-1"),
        "{error:?}"
    );
    let request = &bench.server.requests()[0];
    assert_eq!(
        request.header("authorization"),
        Some("Basic gateway-secret-1")
    );
    assert_eq!(request.header("x-gateway"), Some("gateway-secret-1"));
}

#[test]
fn a_provider_of_a_later_version_says_so() {
    for (kind, name) in [
        (ProviderKind::Anthropic, "anthropic"),
        (ProviderKind::OpenaiResponses, "openai-responses"),
        (ProviderKind::Vertex, "vertex"),
    ] {
        let config = JudgeConfig::new("j", kind);
        let built = provider::build(&config, None, Arc::new(FakeClock::new()));
        assert_eq!(
            built.err().map(|error| error.to_string()),
            Some(format!(
                "provider `{name}` is not in this version yet; use openai or gemini"
            ))
        );
    }
}
