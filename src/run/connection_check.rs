//! `dicta check --connect`: calls each judge once, in the same way as a run does.
//!
//! Responsible for the connection only. Does not record, and does not call the user's tools: a judge with tools gets
//! a stub tool instead, which returns one word.
//!
//! dicta builds the judge as for a run (key, provider, tools, engine) and asks it one small built-in question. The
//! report comes from the facts of the judge trace, so a new provider needs no code here.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::{CachePolicy, RunError, RunOptions};
use crate::clock::{BoxFuture, Clock};
use crate::diag::Diagnostic;
use crate::event::{
    BlobSource, CallCx, DroppedSetting, Emitter, EventKind, MemoryBlobs, RecordedRequest,
    RedactedEvent, StoredText, ToolFact, TurnFact,
};
use crate::handlers::{EvalTypeRegistry, Finding, JudgeRequest};
use crate::model::{
    CallIx, CellIx, CellResult, JudgeConfig, Millis, Outcome, RawJson, Rejection, ToolDeclaration,
    ToolResponse, Transcript, TurnIx, VerdictMode,
};
use crate::rubric;
use crate::run::judges::pool::{JudgePool, JudgeSlot};
use crate::run::prepare::{PreparedRun, prepare_run};
use crate::run::preview::{CellRequest, JudgePreview};
use crate::tools::{SeenUrls, Tool, ToolDeps, ValidatedCall};
use crate::transcript::{self, BadRecord};
use crate::workspace::{Env, Workspace, resolve_key};

/// The stub tool that replaces a judge's own tools.
const ECHO_TOOL: &str = "dicta_echo";
/// The response of the stub tool.
const ECHO_RESPONSE: &str = "pong";
/// The time limit of the check. The judge's own `timeout_s` applies if it is shorter.
const MAX_CHECK_TIME: Millis = Millis::from_secs(60);
/// The largest number of attempts of a request: one, and one more for each of two settings that the model may reject.
const MAX_ATTEMPTS: u8 = 3;
/// The judged text.
const TEST_TRANSCRIPT: &str = r#"{"id":"connect","messages":[{"role":"user","content":"Say hello."},{"role":"assistant","content":"Hello!"}]}"#;

/// The reason why dicta did not ask a judge.
#[derive(Debug, Error)]
pub enum ConnectionError {
    /// The run does not start, for example because the judge has no key.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The rubric of the built-in question does not load.
    #[error("the built-in question does not load: {}", join_messages(.0))]
    Question(Vec<Diagnostic>),
    /// The transcript of the built-in question does not load.
    #[error("the built-in answer does not load: {}", .0.why)]
    Answer(BadRecord),
    /// The run assigns the built-in question to no judge.
    #[error("the built-in question has no judge")]
    Unassigned,
    /// The built-in question ends without a judge.
    #[error("{}", .0.explanation)]
    Settled(Finding),
}

/// Joins the texts of the diagnostics in a line.
fn join_messages(problems: &[Diagnostic]) -> String {
    let all: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
    all.join("; ")
}

/// The result of trying a judge.
#[derive(Debug)]
pub struct ConnectionCheck {
    /// The judge's name.
    pub judge: JudgeConfig,
    /// The report, or the reason why dicta did not ask the judge.
    pub report: Result<ConnectionReport, ConnectionError>,
}

/// The result of a judge that was called.
#[derive(Debug, Clone, Default)]
pub struct ConnectionReport {
    /// `true` if a server replied, also with an error.
    pub reached: bool,
    /// The HTTP status of the last attempt that failed with one.
    pub status: Option<u16>,
    /// `true` if the reply was streamed.
    pub streamed: bool,
    /// The number of answered model calls.
    pub turns: u32,
    /// The number of HTTP attempts.
    pub attempts: u32,
    /// `true` if the judge has tools, so that the request declared the stub tool.
    pub has_tools: bool,
    /// The number of answered calls of the stub tool.
    pub answered_calls: u32,
    /// The rejected calls, each with its reason.
    pub rejected_calls: Vec<String>,
    /// The verdict format; `None` for a judge without prompts.
    pub verdict_format: Option<VerdictMode>,
    /// The keys of the request bodies; a nested key includes its parent (`generationConfig.seed`).
    pub sent_keys: BTreeSet<String>,
    /// The bytes of all request bodies.
    pub request_bytes: u64,
    /// The settings that were left out.
    pub dropped_settings: Vec<DroppedSetting>,
    /// The failed attempts, in order.
    pub failures: Vec<String>,
    /// The outcome, usage, cost and duration.
    pub result: Option<CellResult>,
}

/// Reports whether a judge calls no server.
pub fn is_built_in(judge: &JudgeConfig) -> bool {
    !judge.provider.is_model()
}

/// Calls these judges at the same time, each with its own deadline. Skips built-in judges.
pub async fn check_connections(
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    judges: &[&JudgeConfig],
    cancel: &CancellationToken,
) -> Vec<ConnectionCheck> {
    let asked = judges.iter().filter(|judge| !is_built_in(judge));
    let tries = asked.map(|judge| async move {
        let report = check_connection(workspace, registry, env, clock, judge, cancel).await;
        ConnectionCheck {
            judge: (*judge).clone(),
            report,
        }
    });
    join_all(tries).await
}

/// Estimates the calls of a check of these judges. Skips judges without a key and judges that cannot be prepared,
/// because the check calls neither and reports the reason.
pub async fn preview_connections(
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    judges: &[&JudgeConfig],
) -> Vec<(JudgeConfig, JudgePreview)> {
    let mut previews = Vec::new();
    let called = judges
        .iter()
        .filter(|judge| !is_built_in(judge) && resolve_key(judge, env).is_ok());
    for judge in called {
        let preview = preview_connection(workspace, registry, env, clock, judge).await;
        previews.extend(preview.ok().map(|preview| ((*judge).clone(), preview)));
    }
    previews
}

async fn preview_connection(
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    judge: &JudgeConfig,
) -> Result<JudgePreview, ConnectionError> {
    let prepared = prepare_check(workspace, registry, env, clock, judge, false).await?;
    let slot = find_slot(&prepared.judge_pool)?;
    let request = build_test_request(&prepared.judge_pool)?;
    let mut preview = JudgePreview::default();
    preview.add_cell(judge, CellRequest::new(slot, &request), None);
    // Without recorded usage there is no duration, so the concurrency does not matter.
    preview.finish(judge, 1);
    Ok(preview)
}

/// Prepares a run of the built-in question by one judge. With `sending: false`, the key may be missing.
async fn prepare_check(
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    judge: &JudgeConfig,
    sending: bool,
) -> Result<PreparedRun, ConnectionError> {
    // The judge's own limits apply if they are smaller, so that the check ends soon.
    let config = JudgeConfig {
        timeout: judge.timeout.min(MAX_CHECK_TIME),
        max_attempts: Some(judge.max_attempts.unwrap_or(MAX_ATTEMPTS).min(MAX_ATTEMPTS)),
        ..judge.clone()
    };
    prepare_only_judge(workspace, registry, env, clock, config, sending).await
}

/// Prepares a run with one judge and the built-in question as its only eval. No rubric and no transcript of the
/// workspace takes part, and its limits apply.
pub(super) async fn prepare_only_judge(
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    config: JudgeConfig,
    sending: bool,
) -> Result<PreparedRun, ConnectionError> {
    let tools = !config.tools.is_empty();
    let name = config.name.clone();
    let mut test_workspace = Workspace {
        rubrics: vec![Arc::new(build_test_rubric(tools, registry)?)],
        transcripts: Vec::new(),
        labels: Vec::new(),
        replayed_evidence_run: None,
        files: Vec::new(),
        warnings: Vec::new(),
        ..workspace.clone()
    };
    test_workspace.judges.insert(name.clone(), config);
    // A cached verdict would prove nothing about the connection, so the cache is off.
    let options = RunOptions {
        judge: Some(name),
        cache: CachePolicy::Off,
        tools: ToolDeps {
            stub_tool: Some(Arc::new(EchoTool(echo_tool_decl()))),
            ..ToolDeps::default()
        },
        ..RunOptions::default()
    };
    let workspace = Arc::new(test_workspace);
    Ok(prepare_run(workspace, registry, env, clock, options, sending).await?)
}

/// Returns the judge of the check.
pub(super) fn find_slot(judge_pool: &JudgePool) -> Result<&JudgeSlot, ConnectionError> {
    let slot = judge_pool.slot(0);
    slot.ok_or(ConnectionError::Unassigned)
}

/// Builds the request of the built-in question.
fn build_test_request(judge_pool: &JudgePool) -> Result<JudgeRequest, ConnectionError> {
    let transcript = parse_test_transcript()?;
    // The test question is the only eval, so it has the position 0.
    let request = judge_pool.plan.build_request(&transcript, 0, None, None);
    request.map_err(ConnectionError::Settled)
}

async fn check_connection(
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    judge: &JudgeConfig,
    cancel: &CancellationToken,
) -> Result<ConnectionReport, ConnectionError> {
    let prepared = prepare_check(workspace, registry, env, clock, judge, true).await?;
    // Step: collect the facts. The blobs stay in memory, because a check records no run.
    let mut report = ConnectionReport {
        has_tools: !judge.tools.is_empty(),
        dropped_settings: prepared
            .header
            .judges
            .first()
            .map(|spec| spec.dropped.clone())
            .unwrap_or_default(),
        ..ConnectionReport::default()
    };
    let blobs = Arc::new(MemoryBlobs::default());
    let (to, mut facts) = tokio::sync::mpsc::channel::<RedactedEvent>(256);
    let slot = find_slot(&prepared.judge_pool)?;
    let request = build_test_request(&prepared.judge_pool)?;
    // An engine that cannot render the request has no verdict format to report.
    if let Some(engine) = &slot.engine {
        report.verdict_format = engine.verdict_mode(&request).ok();
    }
    // The redactor removes keys from the facts, because the report quotes errors of servers.
    let cx = CallCx {
        out: Emitter::new(to, blobs.clone(), Arc::new(prepared.redactor)),
        clock: Arc::clone(clock),
        cancel: cancel.child_token(),
        cell: CellIx(0),
        turn: TurnIx(0),
    };
    // The call and the listener run at the same time, because the channel is bounded.
    let asking = async {
        // A panic in one judge must not end the checks of the others.
        let judging = AssertUnwindSafe(slot.judge.judge(&request, &cx)).catch_unwind();
        let result = judging.await.unwrap_or_else(|_| {
            CellResult::from_error(Outcome::JudgeError, "the judge failed inside dicta")
        });
        // The channel closes when its last sender is dropped.
        drop(cx);
        result
    };
    let listening = async {
        let mut deltas = 0_u32;
        while let Some(envelope) = facts.recv().await {
            report.apply_event(&envelope.kind, &*blobs, &mut deltas);
        }
        // A reply that is not streamed produces no deltas, or one with the whole text.
        report.streamed = judge.stream && deltas > 0;
    };
    let (result, ()) = tokio::join!(asking, listening);
    report.result = Some(result);
    // The engine now leaves out settings that the server rejected during the call.
    if let Some(engine) = &slot.engine
        && let Ok(body) = engine.first_request_body(&request)
    {
        report.add_dropped(&body.dropped);
    }
    Ok(report)
}

impl ConnectionReport {
    fn apply_event(&mut self, kind: &EventKind, blobs: &dyn BlobSource, deltas: &mut u32) {
        match kind {
            EventKind::Turn { fact, .. } => self.apply_turn(fact, blobs, deltas),
            EventKind::Tool { fact, .. } => match fact {
                ToolFact::Finished { answer, .. } if !answer.is_error => {
                    // The response to the submitted verdict counts as a response too, so compare the text.
                    let echoed =
                        matches!(&answer.text, StoredText::Text(text) if text == ECHO_RESPONSE);
                    self.answered_calls += u32::from(echoed);
                }
                ToolFact::Rejected { text, .. } => self.rejected_calls.push(text.clone()),
                _ => {}
            },
            _ => {}
        }
    }

    fn apply_turn(&mut self, fact: &TurnFact, blobs: &dyn BlobSource, deltas: &mut u32) {
        match fact {
            TurnFact::Started { request, dropped } => {
                self.add_request_body(request, blobs);
                self.add_dropped(dropped);
            }
            TurnFact::AttemptStarted { .. } => self.attempts += 1,
            TurnFact::Delta { .. } => *deltas += 1,
            // A wait at the rate limiter says nothing about the server.
            TurnFact::Held { .. } => {}
            TurnFact::AttemptFailed { status, why, .. } => {
                self.reached |= status.is_some();
                // A later failure without a status, such as a broken connection, keeps the known status.
                self.status = status.or(self.status);
                self.failures.push(why.clone());
            }
            TurnFact::Finished { .. } => {
                self.reached = true;
                self.turns += 1;
            }
            TurnFact::VerdictReached(_) | TurnFact::VerdictUnparsed { .. } => self.reached = true,
        }
    }

    fn add_dropped(&mut self, dropped: &[DroppedSetting]) {
        for one in dropped {
            if !self.dropped_settings.contains(one) {
                self.dropped_settings.push(one.clone());
            }
        }
    }

    fn add_request_body(&mut self, request: &RecordedRequest, blobs: &dyn BlobSource) {
        let mut text = String::new();
        for piece in request {
            match piece {
                StoredText::Text(part) => text.push_str(part),
                StoredText::Blob(blob) => {
                    let bytes = blobs.get(&blob.hash).unwrap_or_default();
                    text.push_str(&String::from_utf8_lossy(&bytes));
                }
            }
        }
        self.request_bytes += text.len() as u64;
        // A body that is not a JSON object has no keys to list.
        let Ok(Value::Object(body)) = serde_json::from_str(&text) else {
            return;
        };
        for (key, value) in body {
            match value {
                // Gemini nests its settings in `generationConfig`, so list one level of nested keys.
                Value::Object(inner) if !inner.is_empty() => {
                    let inner = inner.keys().map(|name| format!("{key}.{name}"));
                    self.sent_keys.extend(inner);
                }
                _ => {
                    self.sent_keys.insert(key);
                }
            }
        }
    }
}

/// Builds the rubric with the question, its only eval.
fn build_test_rubric(
    tools: bool,
    registry: &EvalTypeRegistry,
) -> Result<rubric::Rubric, ConnectionError> {
    let first = if tools {
        format!(
            "Before you decide, call the tool {ECHO_TOOL} once with the text ping and read what it answers. "
        )
    } else {
        String::new()
    };
    let criteria = format!(
        "{first}The answer is a greeting. (This only tries the connection: keep the reasoning to a few words.)"
    );
    let text = json!({
        "id": "connect",
        "evals": [{"id": "connect", "type": "llm_judge", "params": {"criteria": criteria}}]
    });
    let path = Path::new("connect.yaml");
    let (rubric, problems) = rubric::load(Arc::from(text.to_string()), path, registry);
    rubric.ok_or(ConnectionError::Question(problems))
}

fn parse_test_transcript() -> Result<Arc<Transcript<'static>>, ConnectionError> {
    let parsed = transcript::parse_native(TEST_TRANSCRIPT.as_bytes(), 1, "connect");
    let parsed = parsed.map_err(ConnectionError::Answer)?;
    Ok(Arc::new(parsed.into_owned()))
}

fn echo_tool_decl() -> ToolDeclaration {
    ToolDeclaration {
        name: ECHO_TOOL.to_owned(),
        description: "Answers at once; for testing that tools can be called.".to_owned(),
        schema: json!({
            "type": "object",
            "properties": {"text": {"type": "string", "description": "Any text."}},
            "required": ["text"],
            "additionalProperties": false,
        }),
    }
}

/// Returns one word for any arguments, and calls nothing.
struct EchoTool(ToolDeclaration);

impl Tool for EchoTool {
    fn decl(&self) -> &ToolDeclaration {
        &self.0
    }

    // The stub accepts any arguments: the check tests the call, not the model's arguments.
    fn prepare(&self, canonical: &RawJson, _seen: &SeenUrls) -> Result<ValidatedCall, Rejection> {
        Ok(ValidatedCall::unchanged(&self.0.name, canonical))
    }

    fn call<'a>(
        &'a self,
        _prepared: &'a ValidatedCall,
        _call: CallIx,
        _cx: &'a CallCx,
    ) -> BoxFuture<'a, ToolResponse> {
        Box::pin(std::future::ready(ToolResponse::ok(ECHO_RESPONSE)))
    }
}
