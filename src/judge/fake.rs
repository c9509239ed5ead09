//! The fixtures of this module's tests: a scripted model, tools, gates, and a run that keeps its facts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Budget, EvidenceStore, Gate, JudgeEngine, JudgeEngineDeps, NoEvidence, OpenGate};
use crate::clock::{BoxFuture, Clock, FakeClock};
use crate::event::{
    CallCx, DeltaPart, Emitter, EventKind, MemoryBlobs, RedactedEvent, Redactor, ToolFact, TurnFact,
};
use crate::handlers::{JudgeBackend as _, JudgeRequest, JudgedParams};
use crate::model::{
    CallIx, CellIx, CellResult, Digest, InstallationSecret, JudgeConfig, MessageRole, ModelReply,
    ProviderKind, RawJson, Rejection, ReplyCall, StopReason, TokenUsage, ToolDeclaration,
    ToolResponse, Transcript, TranscriptMessage, TranscriptPart, TurnIx,
};
use crate::provider::{
    CompletedReply, ModelCapabilities, Provider, ProviderError, RequestBody, ToolChoice,
    TurnRequest,
};
use crate::tools::{SeenUrls, Tool, ToolSet, ValidatedCall};

/// The reply of a scripted model.
pub(super) enum ScriptedReply {
    Reply(ModelReply),
    Error(ProviderError),
    /// It never replies.
    Hang,
}

pub(super) fn text(text: &str) -> ScriptedReply {
    ScriptedReply::Reply(ModelReply {
        text: text.to_owned(),
        ..ModelReply::default()
    })
}

pub(super) fn calls(calls: &[(&str, &str)]) -> ScriptedReply {
    let calls = (1..).zip(calls).map(|(n, (name, raw))| ReplyCall {
        id: format!("call_{n}"),
        name: (*name).to_owned(),
        raw: (*raw).to_owned(),
    });
    ScriptedReply::Reply(ModelReply {
        calls: calls.collect(),
        stop: StopReason::ToolCalls,
        ..ModelReply::default()
    })
}

pub(super) const PASSED: &str = r#"{"citations":[],"reasoning":"ok","passed":true,"score":1}"#;

/// A scripted model that remembers its requests.
pub(super) struct Script {
    caps: ModelCapabilities,
    replies: Mutex<VecDeque<ScriptedReply>>,
    pub(super) asked: Mutex<Vec<(ToolChoice, Vec<String>)>>,
    pub(super) bodies: Mutex<Vec<String>>,
}

impl Script {
    pub(super) fn new(replies: Vec<ScriptedReply>) -> Arc<Self> {
        Self::with_forced_calls(replies, true)
    }

    /// A model that can or can't be forced to call a function.
    pub(super) fn with_forced_calls(replies: Vec<ScriptedReply>, forced_call: bool) -> Arc<Self> {
        Arc::new(Self {
            caps: ModelCapabilities {
                structured_output: false,
                forced_call,
                dropped: Vec::new(),
            },
            replies: Mutex::new(replies.into()),
            asked: Mutex::default(),
            bodies: Mutex::default(),
        })
    }
}

impl Provider for Script {
    fn capabilities(&self) -> &ModelCapabilities {
        &self.caps
    }

    fn build_body(&self, turn: &TurnRequest<'_>) -> Result<RequestBody, ProviderError> {
        let tools: Vec<String> = turn.tools.iter().map(|t| t.name.clone()).collect();
        self.asked
            .lock()
            .expect("no panic")
            .push((turn.tool_choice.clone(), tools));
        Ok(RequestBody {
            pieces: vec![format!("{:#?}", turn.history).into()],
            dropped: Vec::new(),
        })
    }

    fn send<'a>(
        &'a self,
        body: &'a RequestBody,
        attempt: u8,
        cx: &'a CallCx,
    ) -> BoxFuture<'a, Result<CompletedReply, ProviderError>> {
        Box::pin(async move {
            self.bodies.lock().expect("no panic").push(body.text());
            let say = {
                let mut replies = self.replies.lock().expect("no panic");
                // An error is given again to every further attempt.
                if let Some(ScriptedReply::Error(error)) = replies.front() {
                    return Err(error.clone());
                }
                replies.pop_front()
            };
            let reply = match say.expect("the script has a reply left") {
                ScriptedReply::Reply(reply) => reply,
                ScriptedReply::Error(error) => return Err(error),
                ScriptedReply::Hang => std::future::pending().await,
            };
            let mut deltas = cx.coalesce_deltas(attempt);
            deltas.push(DeltaPart::Text, &reply.text).await;
            deltas.finish().await;
            let native = serde_json::value::to_raw_value(&json!({"n": attempt})).expect("JSON");
            Ok(CompletedReply {
                native: vec![Arc::<RawValue>::from(native)],
                reply,
                usage: TokenUsage {
                    input: Some(100),
                    output: Some(10),
                    calls: 1,
                    ..TokenUsage::default()
                },
            })
        })
    }
}

/// The behavior of a fake tool.
#[derive(Clone, Copy)]
pub(super) enum FakeToolBehavior {
    Echo,
    Fail,
    /// Fails with this text, as a server wrote it.
    FailWith(&'static str),
    Panic,
    Hang,
    /// Responds once this many calls run, the first of them last; an error if they never do.
    Together(usize),
    /// Fails temporarily this often, then responds.
    Flaky(usize),
}

/// A tool with a text parameter `url` that counts its calls.
pub(super) struct FakeTool {
    decl: ToolDeclaration,
    behavior: FakeToolBehavior,
    rules: FakeToolRules,
    pub(super) ran: Mutex<Vec<String>>,
}

/// The rules of a tool except its behavior.
pub(super) struct FakeToolRules {
    /// Part of its digest.
    pub(super) statement: &'static str,
    pub(super) read_only: bool,
    pub(super) cache: bool,
    pub(super) after: Vec<String>,
    pub(super) max_calls: Option<u32>,
    /// The secrets that its digest omits.
    pub(super) secrets: Vec<(String, String)>,
}

impl Default for FakeToolRules {
    fn default() -> Self {
        Self {
            statement: "",
            read_only: true,
            cache: true,
            after: Vec::new(),
            max_calls: None,
            secrets: Vec::new(),
        }
    }
}

impl FakeTool {
    pub(super) fn new(name: &str, behavior: FakeToolBehavior) -> Arc<Self> {
        Self::with(name, behavior, FakeToolRules::default())
    }

    pub(super) fn with(name: &str, behavior: FakeToolBehavior, rules: FakeToolRules) -> Arc<Self> {
        Arc::new(Self {
            rules,
            decl: ToolDeclaration {
                name: name.to_owned(),
                description: "opens a page".to_owned(),
                schema: json!({"type": "object", "properties": {"url": {"type": "string"}}}),
            },
            behavior,
            ran: Mutex::default(),
        })
    }
}

impl Tool for FakeTool {
    fn decl(&self) -> &ToolDeclaration {
        &self.decl
    }

    fn digest(&self) -> Digest {
        Digest::hash_parts([
            self.decl.digest().0.as_bytes(),
            self.rules.statement.as_bytes(),
        ])
    }

    fn secrets_outside_digest(&self) -> Vec<(String, String)> {
        self.rules.secrets.clone()
    }

    fn is_read_only(&self) -> bool {
        self.rules.read_only
    }

    fn is_cached(&self) -> bool {
        self.rules.read_only && self.rules.cache
    }

    fn prerequisites(&self) -> &[String] {
        &self.rules.after
    }

    fn max_calls(&self) -> Option<u32> {
        self.rules.max_calls
    }

    fn prepare(&self, canonical: &RawJson, _seen: &SeenUrls) -> Result<ValidatedCall, Rejection> {
        let value: serde_json::Value =
            serde_json::from_str(canonical.get()).expect("canonical is JSON");
        if !value["url"].is_string() {
            return Err(Rejection {
                rule: "schema".to_owned(),
                text: "Error: url must be text".to_owned(),
            });
        }
        Ok(ValidatedCall::unchanged(&self.decl.name, canonical))
    }

    fn call<'a>(
        &'a self,
        prepared: &'a ValidatedCall,
        _call: CallIx,
        _cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        Box::pin(async move {
            self.ran
                .lock()
                .expect("no panic")
                .push(prepared.values.get().to_owned());
            // Lets the other calls of the turn begin.
            tokio::task::yield_now().await;
            match self.behavior {
                FakeToolBehavior::Echo => {
                    ToolResponse::ok(format!("page of {}", prepared.values.get()))
                }
                FakeToolBehavior::Fail => ToolResponse::error("HTTP 404 fetching it"),
                FakeToolBehavior::FailWith(text) => ToolResponse::error(text),
                FakeToolBehavior::Panic => panic!("boom"),
                FakeToolBehavior::Flaky(times) => match self.ran.lock().expect("no panic").len() {
                    ran if ran <= times => ToolResponse::error("HTTP 503 fetching it").transient(),
                    _ => ToolResponse::ok(format!("page of {}", prepared.values.get())),
                },
                FakeToolBehavior::Hang => std::future::pending().await,
                FakeToolBehavior::Together(n) => {
                    let arguments = prepared.values.get();
                    let first = self.ran.lock().expect("no panic")[0] == arguments;
                    for _ in 0..if first { 2000 } else { 1000 } {
                        tokio::task::yield_now().await;
                    }
                    match self.ran.lock().expect("no panic").len() {
                        ran if ran >= n => ToolResponse::ok(format!("page of {arguments}")),
                        ran => ToolResponse::error(format_args!("only {ran} ran")),
                    }
                }
            }
        })
    }
}

/// A judge, a cell and the facts of its run.
pub(super) struct JudgeFixture {
    pub(super) config: JudgeConfig,
    pub(super) tools: ToolSet,
    pub(super) gate: Arc<dyn Gate>,
    pub(super) evidence: Arc<dyn EvidenceStore>,
    pub(super) budget: Arc<Budget>,
    pub(super) clock: FakeClock,
    pub(super) cancel: CancellationToken,
    pub(super) redactor: Arc<Redactor>,
    pub(super) request: JudgeRequest,
}

impl JudgeFixture {
    pub(super) fn new(tools: &[Arc<FakeTool>]) -> Self {
        let mut config = JudgeConfig::new("test", ProviderKind::Openai);
        config.model = "m".to_owned();
        Self {
            config,
            tools: ToolSet {
                tools: tools
                    .iter()
                    .map(|t| Arc::clone(t) as Arc<dyn Tool>)
                    .collect(),
            },
            gate: Arc::new(OpenGate),
            evidence: Arc::new(NoEvidence),
            budget: Arc::default(),
            clock: FakeClock::new(),
            cancel: CancellationToken::new(),
            redactor: Arc::default(),
            request: judge_request("Names 2.69.", "Use 2.69, it is the newest."),
        }
    }

    pub(super) fn engine(&self, provider: Arc<dyn Provider>) -> JudgeEngine {
        let deps = JudgeEngineDeps {
            gate: Arc::clone(&self.gate),
            evidence: Arc::clone(&self.evidence),
            budget: Arc::clone(&self.budget),
            secret: InstallationSecret::new([1; 32]),
        };
        JudgeEngine::new(self.config.clone(), provider, self.tools.clone(), deps)
    }

    /// Judges with a scripted model; returns the result and the facts.
    pub(super) async fn judge(&self, script: &Arc<Script>) -> (CellResult, Vec<EventKind>) {
        self.judge_with(&self.engine(Arc::clone(script) as Arc<dyn Provider>))
            .await
    }

    pub(super) async fn judge_with(&self, engine: &JudgeEngine) -> (CellResult, Vec<EventKind>) {
        let (out, mut facts) = mpsc::channel::<RedactedEvent>(10_000);
        let cx = CallCx {
            out: Emitter::new(
                out,
                Arc::new(MemoryBlobs::default()),
                Arc::clone(&self.redactor),
            ),
            clock: Arc::new(self.clock.clone()) as Arc<dyn Clock>,
            cancel: self.cancel.clone(),
            cell: CellIx(0),
            turn: TurnIx(0),
        };
        let result = engine.judge(&self.request, &cx).await;
        drop(cx);
        let mut kinds = Vec::new();
        while let Ok(envelope) = facts.try_recv() {
            kinds.push(envelope.kind);
        }
        (result, kinds)
    }
}

/// A cell whose output is one assistant message.
pub(super) fn judge_request(criteria: &str, output: &str) -> JudgeRequest {
    let say = |role, text: &str| TranscriptMessage {
        role,
        parts: vec![TranscriptPart::Text(text.to_owned().into())],
        metadata: None,
    };
    JudgeRequest {
        cell: CellIx(0),
        transcript: Arc::new(Transcript {
            id: "t".into(),
            messages: vec![
                say(MessageRole::User, "Which one?"),
                say(MessageRole::Assistant, output),
            ],
            ..Transcript::default()
        }),
        end: 2,
        params: JudgedParams {
            criteria: criteria.to_owned(),
            ..JudgedParams::default()
        },
        allow_not_applicable: false,
        repeat: None,
        duplicate_index: 0,
        metadata: Vec::new(),
    }
}

/// Formats the facts as short words in order.
pub(super) fn format_facts(kinds: &[EventKind]) -> Vec<String> {
    kinds
        .iter()
        .filter_map(|kind| {
            Some(match kind {
                EventKind::Turn { turn, fact, .. } => {
                    let word = match fact {
                        TurnFact::Started { .. } => "started",
                        TurnFact::Finished { .. } => "finished",
                        TurnFact::VerdictReached(_) => "verdict",
                        TurnFact::VerdictUnparsed { .. } => "unparsed",
                        TurnFact::Held { .. }
                        | TurnFact::AttemptStarted { .. }
                        | TurnFact::Delta { .. } => return None,
                        TurnFact::AttemptFailed { .. } => "attempt failed",
                    };
                    format!("{} {word}", turn.0)
                }
                EventKind::Tool {
                    turn, call, fact, ..
                } => {
                    let word = match fact {
                        ToolFact::Received { name, .. } => format!("received {name}"),
                        ToolFact::Repaired { .. } => "repaired".to_owned(),
                        ToolFact::Validated { .. } => "validated".to_owned(),
                        ToolFact::Rejected { rule, .. } => format!("rejected {rule}"),
                        ToolFact::Started => "running".to_owned(),
                        ToolFact::Hop(_) => "hop".to_owned(),
                        ToolFact::Finished { answer, source, .. } => {
                            let source = match source {
                                crate::event::ToolResponseSource::Live => "live",
                                crate::event::ToolResponseSource::Frozen { .. } => "frozen",
                                crate::event::ToolResponseSource::SameTrace { .. } => "same trace",
                                crate::event::ToolResponseSource::ByHand => "by hand",
                                crate::event::ToolResponseSource::Transcript => "transcript",
                            };
                            format!(
                                "answered {source}{}",
                                if answer.is_error { " error" } else { "" }
                            )
                        }
                    };
                    format!("{}.{} {word}", turn.0, call.0)
                }
                EventKind::Paused { at, .. } => format!("paused {at:?}"),
                EventKind::Resumed { how, .. } => format!("resumed {}", how.what),
                EventKind::BudgetReached { .. } => "budget reached".to_owned(),
                _ => return None,
            })
        })
        .collect()
}
