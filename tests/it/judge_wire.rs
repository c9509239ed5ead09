//! Whole traces over real loopback HTTP, in each dialect, with and without tools.

mod anthropic;

mod decisions;
mod embeddings;

use std::sync::Arc;

use dicta::clock::{BoxFuture, Clock, FakeClock};
use dicta::event::{
    CallCx, Emitter, EventKind, MemoryBlobs, RedactedEvent, Redactor, RunEvent, RunState,
    StoredText, ToolFact, TurnFact,
};
use dicta::handlers::{JudgeBackend as _, JudgeRequest, JudgedParams};
use dicta::judge::{JudgeEngine, JudgeEngineDeps, NoEvidence, OpenGate};
use dicta::model::{
    CallIx, CellIx, CellResult, InstallationSecret, JudgeConfig, MessageRole, Millis, Outcome,
    ProviderKind, RawJson, Rejection, ToolDeclaration, ToolResponse, Transcript, TranscriptMessage,
    TranscriptPart, TurnIx,
};
use dicta::provider;
use dicta::tools::{SeenUrls, Tool, ToolSet, ValidatedCall};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::support::wire::{Dialect, Pause, Reply, Request, WireServer};

const ALL: [Dialect; 4] = [
    Dialect::Openai,
    Dialect::Gemini,
    Dialect::Anthropic,
    Dialect::Responses,
];

/// Answers every call with a page that names a release.
struct Page(ToolDeclaration);

impl Page {
    fn named(name: &str) -> Arc<dyn Tool> {
        Arc::new(Self(ToolDeclaration {
            name: name.to_owned(),
            description: "Opens a page.".to_owned(),
            schema: json!({"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}),
        }))
    }
}

impl Tool for Page {
    fn decl(&self) -> &ToolDeclaration {
        &self.0
    }
    fn prepare(&self, canonical: &RawJson, _seen: &SeenUrls) -> Result<ValidatedCall, Rejection> {
        Ok(ValidatedCall {
            tool: self.0.name.clone(),
            canonical: canonical.clone(),
            values: canonical.clone(),
            coerced: Vec::new(),
        })
    }
    fn call<'a>(
        &'a self,
        _prepared: &'a ValidatedCall,
        _call: CallIx,
        _cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        Box::pin(std::future::ready(ToolResponse::ok(
            "The newest release is 2.69.0.",
        )))
    }
}

struct Judged {
    result: CellResult,
    kinds: Vec<EventKind>,
    requests: Vec<Request>,
}

struct JudgeHarness {
    server: WireServer,
    engine: JudgeEngine,
    clock: FakeClock,
    cancel: CancellationToken,
}

impl JudgeHarness {
    fn new(dialect: Dialect, with_tools: bool, replies: Vec<Reply>) -> Self {
        let (kind, server) = match dialect {
            Dialect::Openai => (ProviderKind::Openai, WireServer::openai(replies)),
            Dialect::Gemini => (ProviderKind::Gemini, WireServer::gemini(replies)),
            Dialect::Anthropic => (ProviderKind::Anthropic, WireServer::anthropic(replies)),
            Dialect::Responses => (
                ProviderKind::OpenaiResponses,
                WireServer::responses(replies),
            ),
        };
        let mut config = JudgeConfig::new("wire", kind);
        "scripted".clone_into(&mut config.model);
        config.base_url = Some(server.base_url());
        let clock = FakeClock::new();
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let provider = provider::build_provider(&config, Some("sk-test-4711-abcdef"), shared)
            .expect("a known dialect");
        let tools = if with_tools {
            vec![Page::named("fetch_url")]
        } else {
            Vec::new()
        };
        let deps = JudgeEngineDeps {
            gate: Arc::new(OpenGate),
            evidence: Arc::new(NoEvidence),
            budget: Arc::default(),
            secret: InstallationSecret::new([5; 32]),
        };
        Self {
            server,
            engine: JudgeEngine::new(config, provider, ToolSet { tools }, deps),
            clock,
            cancel: CancellationToken::new(),
        }
    }

    async fn judge(&self) -> Judged {
        self.judge_request(&question()).await
    }

    async fn judge_request(&self, request: &JudgeRequest) -> Judged {
        let (to, mut facts) = mpsc::channel::<RedactedEvent>(10_000);
        let cx = CallCx {
            out: Emitter::new(
                to,
                Arc::new(MemoryBlobs::default()),
                Arc::new(Redactor::default()),
            ),
            clock: Arc::new(self.clock.clone()),
            cancel: self.cancel.clone(),
            cell: CellIx(0),
            turn: TurnIx(0),
        };
        let result = self.engine.judge(request, &cx).await;
        drop(cx);
        let mut kinds = Vec::new();
        while let Ok(envelope) = facts.try_recv() {
            kinds.push(envelope.kind);
        }
        Judged {
            result,
            kinds,
            requests: self.server.requests(),
        }
    }
}

fn question() -> JudgeRequest {
    let say = |role, text: &'static str| TranscriptMessage {
        role,
        parts: vec![TranscriptPart::Text(text.into())],
        metadata: None,
    };
    JudgeRequest {
        cell: CellIx(0),
        transcript: Arc::new(Transcript {
            id: "t".into(),
            messages: vec![
                say(MessageRole::User, "Which release?"),
                say(MessageRole::Assistant, "Use 2.69.0."),
            ],
            ..Transcript::default()
        }),
        end: 2,
        params: JudgedParams {
            criteria: "Names the newest release.".to_owned(),
            ..JudgedParams::default()
        },
        allow_not_applicable: false,
        repeat: None,
        duplicate_index: 0,
        metadata: Vec::new(),
    }
}

fn verdict(passed: bool) -> Value {
    json!({
        "citations": [{"source": "message 1", "quote": "Use 2.69.0."}],
        "reasoning": "It names it.",
        "passed": passed,
        "score": if passed { 1.0 } else { 0.0 }
    })
}

fn all_keys(value: &Value, keys: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                keys.push(key.to_lowercase());
                all_keys(value, keys);
            }
        }
        Value::Array(list) => list.iter().for_each(|v| all_keys(v, keys)),
        _ => {}
    }
}

#[tokio::test]
async fn judge_without_tools_reaches_a_verdict_with_one_request() {
    for dialect in ALL {
        let harness =
            JudgeHarness::new(dialect, false, vec![Reply::text(verdict(true).to_string())]);
        let judged = harness.judge().await;
        assert_eq!(
            judged.result.outcome,
            Outcome::Pass,
            "{:?}",
            judged.result.error
        );
        assert_eq!(judged.requests.len(), 1);
        let mut keys = Vec::new();
        all_keys(&judged.requests[0].json(), &mut keys);
        assert!(
            keys.iter()
                .all(|k| !k.contains("tool") && !k.contains("function")),
            "{keys:?}"
        );
        let body = harness
            .engine
            .first_request_body(&question())
            .expect("a body");
        assert_eq!(
            body.text(),
            judged.requests[0].body,
            "what `dicta prompt` shows is what is sent"
        );
    }
}

#[tokio::test]
async fn judge_with_tools_reads_a_page_before_its_verdict() {
    for dialect in ALL {
        let url = json!({"url": "https://releases.example"});
        let replies = vec![
            Reply::call("fetch_url", url.clone()).saying("I have to look."),
            Reply::call("submit_verdict", verdict(true)).and_call("fetch_url", url),
            Reply::call("submit_verdict", verdict(false)),
        ];
        let judged = JudgeHarness::new(dialect, true, replies).judge().await;
        assert_eq!(
            judged.result.outcome,
            Outcome::Fail,
            "{:?}",
            judged.result.error
        );
        assert_eq!(judged.requests.len(), 3);
        assert_eq!(judged.requests[0].tools(), ["fetch_url", "submit_verdict"]);
        assert!(judged.requests[1].mentions("The newest release is 2.69.0."));
        assert!(judged.requests[2].mentions("not yet: read these results first"));
        let citations = judged.result.verdict.expect("a verdict").citations;
        assert!(citations.iter().all(|c| c.found));
    }
}

#[tokio::test]
async fn broken_arguments_are_sent_back_as_valid_json() {
    for dialect in ALL {
        // Gemini's arguments are JSON by its protocol; what can be broken there is their kind.
        let broken = match dialect {
            Dialect::Openai | Dialect::Anthropic | Dialect::Responses => {
                Reply::raw_call("fetch_url", "{\"url\": ")
            }
            Dialect::Gemini => Reply::call("nope", json!({})),
        };
        let judged = JudgeHarness::new(
            dialect,
            true,
            vec![broken, Reply::call("submit_verdict", verdict(true))],
        )
        .judge()
        .await;
        assert_eq!(
            judged.result.outcome,
            Outcome::Pass,
            "{:?}",
            judged.result.error
        );
        let rejected = judged.kinds.iter().any(|k| {
            matches!(
                k,
                EventKind::Tool {
                    fact: ToolFact::Rejected { .. },
                    ..
                }
            )
        });
        let repaired = judged.kinds.iter().any(|k| {
            matches!(
                k,
                EventKind::Tool {
                    fact: ToolFact::Repaired { .. },
                    ..
                }
            )
        });
        assert!(rejected || repaired);
    }
}

#[tokio::test]
async fn cut_stream_and_prose_never_become_a_verdict() {
    for dialect in ALL {
        let judged = JudgeHarness::new(dialect, false, vec![Reply::text("PASS. I would pass it.")])
            .judge()
            .await;
        assert_eq!(
            (judged.result.outcome, judged.result.score),
            (Outcome::Unparsed, None)
        );
        let raw = judged.kinds.iter().find_map(|k| match k {
            EventKind::Turn {
                fact: TurnFact::VerdictUnparsed { raw, .. },
                ..
            } => Some(raw.clone()),
            _ => None,
        });
        assert_eq!(
            raw,
            Some(StoredText::Text("PASS. I would pass it.".to_owned())),
            "the raw text is shown"
        );
    }
}

#[tokio::test]
async fn run_state_holds_the_whole_trace() {
    for dialect in ALL {
        let replies = vec![
            Reply::call("fetch_url", json!({"url": "https://releases.example"})),
            Reply::call("submit_verdict", verdict(true)),
        ];
        let judged = JudgeHarness::new(dialect, true, replies).judge().await;
        let mut state = RunState::default();
        state.cells.resize_with(1, Default::default);
        for (seq, kind) in (0..).zip(judged.kinds) {
            state.apply(&RunEvent {
                seq,
                at: Millis(seq),
                kind,
            });
        }
        let trace = &state.cells[0].judge_trace;
        assert_eq!((state.stray, trace.len()), (0, 2));
        assert!(trace[0].calls[0].finished.is_some() && trace[1].verdict.is_some());
        assert_eq!(trace[1].verdict.as_ref(), judged.result.verdict.as_deref());
        for (turn, request) in trace.iter().zip(&judged.requests) {
            let sent: String = turn
                .request
                .iter()
                .map(|piece| match piece {
                    StoredText::Text(text) => text.clone(),
                    StoredText::Blob(_) => panic!("short pieces stand inline"),
                })
                .collect();
            assert_eq!(sent, request.body, "what is recorded is what was sent");
        }
    }
}

#[tokio::test]
async fn cancelled_trace_closes_its_connection() {
    for dialect in ALL {
        let pause = Pause::new();
        let reply = Reply::text(verdict(true).to_string()).pause_before(1, &pause);
        let harness = JudgeHarness::new(dialect, false, vec![reply]);
        let (judged, ()) = tokio::join!(harness.judge(), async {
            pause.reached().await;
            harness.cancel.cancel();
        });
        assert_eq!(judged.result.outcome, Outcome::Cancelled);
        pause.go();
        harness.server.all_closed().await;
    }
}
