//! One tool call of a judge trace: received → repaired? → ( validated → started → hop* → finished ) | rejected.
//!
//! Responsible for running the calls of one turn and for recording their facts. [`super::call_history`] knows how
//! calls relate to each other.

use tokio::sync::watch;

use super::branch::{CallReplay, RecordedCall, TracePrefix};
use super::call_history::{CallHistory, IdenticalCall, ToolCallStatus, TurnCalls};
use super::evidence::{EvidenceKey, EvidenceLookup, EvidenceStore};
use super::gate::{ArgumentCheck, GateAction, GateEdit, GateStop};
use super::trace_gate::{TraceGate, person_ended_result};
use crate::event::{CallCx, FROZEN_RULE, ToolFact, ToolResponseSource};
use crate::model::SUBMIT_VERDICT;
use crate::model::{
    ArgumentChange, CallIx, CellResult, Outcome, RawJson, Rejection, ReplyCall, ToolResponse,
};
use crate::tools::{
    self, PreparedCall, SeenUrls, Tool, ToolExecution, ToolSet, ValidatedCall, parse_arguments,
};

/// The result of a call.
pub(super) struct FinishedToolCall {
    /// The response for the model.
    pub(super) response: ToolResponse,
    /// `true` if the call started. Otherwise dicta wrote the response itself.
    pub(super) started: bool,
    /// `true` if dicta repaired the arguments.
    pub(super) repaired: bool,
    /// The arguments in canonical form; `None` if they can't be parsed.
    pub(super) canonical: Option<RawJson>,
    /// The cell's result, if the cell ends here: a person ended it, or a recorded response is missing.
    pub(super) cell_end: Option<CellResult>,
}

/// The source of a response for a call that may start.
enum CallResponder {
    /// A person.
    Person(ToolResponse),
    /// An identical call of this trace.
    IdenticalCall(IdenticalCall),
    /// The recorded responses, or the tool itself.
    EvidenceOrTool {
        /// The recorded response, if there is one.
        recorded: Option<FoundResponse>,
        /// The sender of the response, for identical calls that wait for it.
        sender: watch::Sender<Option<ToolResponse>>,
    },
}

/// A recorded response and the run that recorded it.
struct FoundResponse {
    response: ToolResponse,
    source: ToolResponseSource,
}

/// The end of a call: the response, its status, and the cell's result if the cell ends with it.
struct ToolCallEnd {
    response: ToolResponse,
    status: ToolCallStatus,
    cell_end: Option<CellResult>,
}

impl ToolCallEnd {
    fn rejected(response: ToolResponse, cell_end: Option<CellResult>) -> Self {
        Self {
            response,
            status: ToolCallStatus::NeverRan,
            cell_end,
        }
    }
}

/// Runs the tool calls of one turn.
pub(super) struct ToolCallRunner<'a> {
    pub(super) cx: &'a CallCx,
    pub(super) gate: &'a TraceGate<'a>,
    pub(super) evidence: &'a dyn EvidenceStore,
    pub(super) tools: &'a ToolSet,
    /// The URLs that the judge has seen before this turn.
    pub(super) seen: &'a SeenUrls,
    /// The calls of the whole trace.
    pub(super) call_history: &'a CallHistory,
    /// The calls of this turn.
    pub(super) turn_calls: &'a TurnCalls<'a>,
    /// The recorded beginning, if the trace is a branch.
    pub(super) prefix: Option<&'a TracePrefix>,
}

impl ToolCallRunner<'_> {
    /// Runs one call to its end. Every failure becomes a response that the model can react to.
    pub(super) async fn run(&self, ix: CallIx, call: &ReplyCall) -> FinishedToolCall {
        emit_received(self.cx, ix, call).await;
        // A verdict next to other calls is premature: the model hasn't read their results.
        if call.name == SUBMIT_VERDICT {
            let text = "Error: not yet: read these results first, then submit your verdict alone";
            emit_rejected(self.cx, ix, "not_yet", text).await;
            self.turn_calls.set_status(ix, ToolCallStatus::NeverRan);
            return FinishedToolCall {
                response: ToolResponse::error_text(text),
                started: false,
                repaired: false,
                canonical: parse_arguments(&call.name, &call.raw)
                    .ok()
                    .map(|arguments| arguments.canonical),
                cell_end: None,
            };
        }
        let prepared =
            tools::prepare_call_catching_panics(self.tools, &call.name, &call.raw, self.seen);
        emit_repaired(self.cx, ix, &prepared).await;
        let repaired = prepared.rewritten && !prepared.changes.is_empty();
        let canonical = prepared.canonical;
        let replay = self.prefix.and_then(|prefix| {
            let replay = prefix.find_call(self.cx.turn, ix)?;
            Some((prefix, replay))
        });
        let end = match (replay, prepared.outcome) {
            (Some((prefix, CallReplay::Recorded(recorded))), outcome) => {
                self.replay_call(ix, outcome.ok(), recorded, prefix).await
            }
            (Some((_, CallReplay::Answer(recorded, text))), outcome) => {
                self.answer_by_hand(ix, outcome.ok(), recorded, text).await
            }
            (Some((_, CallReplay::Arguments(args))), _) => {
                self.gate.record_call_edit("edited", args.get()).await;
                match self.prepare_edited_call(ix, &call.name, args.clone()).await {
                    Ok(ready) => self.start_call(ix, ready, repaired).await,
                    Err(rejection) => self.reject_call(ix, rejection).await,
                }
            }
            (Some((_, CallReplay::Live)) | None, Err(rejection)) => {
                self.reject_call(ix, rejection).await
            }
            (Some((_, CallReplay::Live)) | None, Ok(ready)) => {
                self.start_call(ix, ready, repaired).await
            }
        };
        // Set the status last: calls with `after:` wait for it.
        self.turn_calls.set_status(ix, end.status);
        FinishedToolCall {
            response: end.response,
            started: end.status != ToolCallStatus::NeverRan,
            repaired,
            canonical,
            cell_end: end.cell_end,
        }
    }

    /// Takes the end of a call from the recording. `ready` is the call as dicta prepares it today.
    async fn replay_call(
        &self,
        ix: CallIx,
        ready: Option<ValidatedCall>,
        recorded: &RecordedCall,
        prefix: &TracePrefix,
    ) -> ToolCallEnd {
        match recorded {
            RecordedCall::Answered {
                response,
                source,
                values,
                coerced,
            } => {
                let source = match source {
                    ToolResponseSource::Live => ToolResponseSource::Frozen {
                        run: prefix.run.clone(),
                    },
                    ToolResponseSource::ByHand => {
                        // What a person wrote stays an edit in each further branch.
                        self.gate.mark_edited();
                        ToolResponseSource::ByHand
                    }
                    other => other.clone(),
                };
                let (values, coerced) = (values.clone(), coerced.clone());
                self.cx
                    .emit_tool_fact(ix, ToolFact::Validated { values, coerced })
                    .await;
                self.end_replayed(ix, ready, response.clone(), source).await
            }
            RecordedCall::Rejected(rejection) => {
                emit_rejected(self.cx, ix, &rejection.rule, &rejection.text).await;
                ToolCallEnd::rejected(ToolResponse::error_text(&rejection.text), None)
            }
            // `CallReplay` makes such a call again.
            RecordedCall::Open => {
                ToolCallEnd::rejected(ToolResponse::error_text("Error: no response"), None)
            }
        }
    }

    /// Answers a call of the recording with the text of a person.
    async fn answer_by_hand(
        &self,
        ix: CallIx,
        ready: Option<ValidatedCall>,
        recorded: &RecordedCall,
        text: &str,
    ) -> ToolCallEnd {
        self.gate.record_call_edit("answered", text).await;
        let (values, coerced) = match (recorded, &ready) {
            (
                RecordedCall::Answered {
                    values, coerced, ..
                },
                _,
            ) => (Some(values.clone()), coerced.clone()),
            (_, Some(ready)) => (Some(ready.values.clone()), ready.coerced.clone()),
            // dicta rejected the call, so its arguments are unknown.
            (_, None) => (RawJson::parse("{}").ok(), Vec::new()),
        };
        if let Some(values) = values {
            self.cx
                .emit_tool_fact(ix, ToolFact::Validated { values, coerced })
                .await;
        }
        let response = ToolResponse::ok(text);
        self.end_replayed(ix, ready, response, ToolResponseSource::ByHand)
            .await
    }

    /// Records the end of a call that no tool answers now, and remembers it for later identical calls.
    async fn end_replayed(
        &self,
        ix: CallIx,
        ready: Option<ValidatedCall>,
        response: ToolResponse,
        source: ToolResponseSource,
    ) -> ToolCallEnd {
        self.cx.emit_tool_fact(ix, ToolFact::Started).await;
        if let Some(ready) = ready
            && !matches!(source, ToolResponseSource::SameTrace { .. })
            && let Some(tool) = self.tools.get(&ready.tool)
        {
            let key = EvidenceKey::new(&ready.tool, &tool.digest(), &ready.canonical);
            let sender = self
                .call_history
                .register_call(&**tool, &key, self.cx.turn, ix);
            sender.send_replace(Some(response.clone()));
        }
        let fact = ToolFact::Finished {
            answer: self.cx.out.store_tool_response(&response).await,
            source,
            elapsed: crate::model::Millis(0),
            retried: None,
        };
        self.cx.emit_tool_fact(ix, fact).await;
        let status = if response.is_error {
            ToolCallStatus::Failed
        } else {
            ToolCallStatus::Succeeded
        };
        ToolCallEnd {
            response,
            status,
            cell_end: None,
        }
    }

    async fn reject_call(&self, ix: CallIx, rejection: Rejection) -> ToolCallEnd {
        // A person may replace the error text that the model receives.
        let stop = GateStop::Rejected(&rejection);
        let pending = ToolResponse::error_text(&rejection.text);
        let at = (self.cx.turn, ix);
        let (text, cell) = match self.gate.pass_response(stop, at, &pending).await {
            GateAction::AnswerCall(answer)
            | GateAction::ContinueWith(GateEdit::ToolResponse(answer)) => (answer.text, None),
            GateAction::EndCell(outcome) => (rejection.text, Some(person_ended_result(outcome))),
            GateAction::Continue | GateAction::ContinueWith(_) => (rejection.text, None),
        };
        let answer = ToolResponse::error_text(text);
        emit_rejected(self.cx, ix, &rejection.rule, &answer.text).await;
        ToolCallEnd::rejected(answer, cell)
    }

    /// Takes a call from prepared arguments to its end.
    ///
    /// Every tool passes the same checks in this order: prerequisites, gate, identical calls, the limit on calls,
    /// recorded responses.
    async fn start_call(
        &self,
        ix: CallIx,
        mut ready: ValidatedCall,
        repaired: bool,
    ) -> ToolCallEnd {
        // Preparation rejects unknown names already, so this is only a safeguard.
        let Some(tool) = self.tools.get(&ready.tool) else {
            let rejection = Rejection {
                rule: "unknown_tool".to_owned(),
                text: format!("Error: unknown tool '{}'", ready.tool),
            };
            return self.reject_call(ix, rejection).await;
        };
        let tool = &**tool;
        if let Err(rejection) = self
            .turn_calls
            .check_prerequisites(ix, tool, self.call_history)
            .await
        {
            return self.reject_call(ix, rejection).await;
        }
        let mut by_hand = None;
        let check = ArgumentCheck {
            tools: self.tools,
            seen: self.seen,
        };
        let stop = GateStop::Call {
            call: &ready,
            check,
            repaired,
        };
        match self.gate.pass(stop).await {
            GateAction::ContinueWith(GateEdit::Args(args)) => {
                match self.prepare_edited_call(ix, &ready.tool, args).await {
                    Ok(edited) => ready = edited,
                    Err(rejection) => return self.reject_call(ix, rejection).await,
                }
            }
            GateAction::AnswerCall(answer)
            | GateAction::ContinueWith(GateEdit::ToolResponse(answer)) => {
                by_hand = Some(answer);
            }
            GateAction::EndCell(outcome) => {
                let text = "Error: ended by hand";
                emit_rejected(self.cx, ix, "ended", text).await;
                return ToolCallEnd::rejected(
                    ToolResponse::error_text(text),
                    Some(person_ended_result(outcome)),
                );
            }
            GateAction::Continue | GateAction::ContinueWith(_) => {}
        }
        // The key comes after the gate, because a person may have edited the arguments.
        let key = EvidenceKey::new(&ready.tool, &tool.digest(), &ready.canonical);
        let responder = match by_hand {
            Some(answer) => CallResponder::Person(answer),
            None => match self.find_responder(ix, tool, &key) {
                Ok(responder) => responder,
                Err(CallRefusal::RejectCall(rejection)) => {
                    return self.reject_call(ix, rejection).await;
                }
                Err(CallRefusal::EndCell(answer)) => {
                    emit_rejected(self.cx, ix, FROZEN_RULE, &answer.text).await;
                    let why = answer.text.trim_start_matches("Error: ");
                    let end = CellResult::from_error(Outcome::JudgeError, why);
                    return ToolCallEnd::rejected(*answer, Some(end));
                }
            },
        };
        // Only a call that passed all checks counts as started.
        let (values, coerced) = (ready.values.clone(), ready.coerced.clone());
        self.cx
            .emit_tool_fact(ix, ToolFact::Validated { values, coerced })
            .await;
        self.cx.emit_tool_fact(ix, ToolFact::Started).await;
        self.finish_call(ix, tool, &ready, key, responder).await
    }

    /// Prepares arguments that a person wrote, like those of the model.
    async fn prepare_edited_call(
        &self,
        ix: CallIx,
        tool: &str,
        args: RawJson,
    ) -> Result<ValidatedCall, Rejection> {
        // The same checks as for the model's arguments: a person can make mistakes too.
        let edited = tools::prepare_call_catching_panics(self.tools, tool, args.get(), self.seen);
        let mut changes = vec![ArgumentChange::by_hand()];
        changes.extend(edited.changes);
        let canonical = edited.canonical.unwrap_or(args);
        self.cx
            .emit_tool_fact(ix, ToolFact::Repaired { canonical, changes })
            .await;
        edited.outcome
    }

    /// Chooses the source of a response that no person gave.
    ///
    /// Identical calls come first, so that a replay counts calls as a live run does. Doesn't wait: no other call can
    /// come between the checks.
    fn find_responder(
        &self,
        ix: CallIx,
        tool: &dyn Tool,
        key: &EvidenceKey,
    ) -> Result<CallResponder, CallRefusal> {
        if let Some(same) = self.call_history.find_identical(tool, key, self.cx.turn) {
            return Ok(CallResponder::IdenticalCall(same));
        }
        // Before the recorded responses: a call that a live run rejected has none, and must be rejected with
        // the same text.
        let within = self.call_history.check_call_limit(tool, key);
        within.map_err(CallRefusal::RejectCall)?;
        // The transcript is what the judge judges: no run has recorded responses for it.
        let recorded = if tool.reads_transcript() {
            None
        } else {
            match self.evidence.get(self.cx.cell, key) {
                EvidenceLookup::Found { response, run } => Some(FoundResponse {
                    response,
                    source: ToolResponseSource::Frozen { run },
                }),
                EvidenceLookup::MissingError(answer) => {
                    return Err(CallRefusal::RejectCall(Rejection {
                        rule: FROZEN_RULE.to_owned(),
                        text: answer.text,
                    }));
                }
                EvidenceLookup::MissingEndsCell(answer) => {
                    return Err(CallRefusal::EndCell(Box::new(answer)));
                }
                EvidenceLookup::Miss => None,
            }
        };
        // Register before running, so that an identical call of this turn waits for the response.
        let sender = self.call_history.register_call(tool, key, self.cx.turn, ix);
        Ok(CallResponder::EvidenceOrTool { recorded, sender })
    }

    /// Ends a call that started: gets its response, passes the last stop, and records the result.
    async fn finish_call(
        &self,
        ix: CallIx,
        tool: &dyn Tool,
        ready: &ValidatedCall,
        key: EvidenceKey,
        responder: CallResponder,
    ) -> ToolCallEnd {
        let began = self.cx.clock.now();
        let (called, mut source) = get_tool_response(self.cx, ix, tool, ready, responder).await;
        let ToolExecution {
            response: mut answer,
            first_failure: retried,
        } = called;
        // Security: a server may repeat the secret that it got. The provider of the judge must not get it, too.
        if !tool.reads_transcript()
            && let Some(clean) = self.cx.out.redactor().redact(&answer.text)
        {
            answer.text = clean;
        }
        let elapsed = self.cx.clock.now().since(began);
        let mut cell = None;
        let (stop, at) = (GateStop::Answered(&answer), (self.cx.turn, ix));
        match self.gate.pass_response(stop, at, &answer).await {
            GateAction::AnswerCall(edited)
            | GateAction::ContinueWith(GateEdit::ToolResponse(edited)) => {
                answer = edited;
                source = ToolResponseSource::ByHand;
            }
            GateAction::EndCell(outcome) => cell = Some(person_ended_result(outcome)),
            GateAction::Continue | GateAction::ContinueWith(_) => {}
        }
        // A response by hand or of an identical call is not evidence of what the tool returns.
        if matches!(
            source,
            ToolResponseSource::Live | ToolResponseSource::Frozen { .. }
        ) {
            self.evidence.put(self.cx.cell, key, &answer);
        }
        let fact = ToolFact::Finished {
            answer: self.cx.out.store_tool_response(&answer).await,
            source,
            elapsed,
            retried,
        };
        self.cx.emit_tool_fact(ix, fact).await;
        let status = if answer.is_error {
            ToolCallStatus::Failed
        } else {
            ToolCallStatus::Succeeded
        };
        ToolCallEnd {
            response: answer,
            status,
            cell_end: cell,
        }
    }
}

/// Records that a call arrived.
pub(super) async fn emit_received(cx: &CallCx, ix: CallIx, call: &ReplyCall) {
    let fact = ToolFact::Received {
        id: call.id.clone(),
        name: call.name.clone(),
        raw: call.raw.clone(),
    };
    cx.emit_tool_fact(ix, fact).await;
}

/// Records the repair of a call's arguments, if they were rewritten.
pub(super) async fn emit_repaired(cx: &CallCx, ix: CallIx, prepared: &PreparedCall) {
    if let (true, Some(canonical)) = (prepared.rewritten, &prepared.canonical) {
        let fact = ToolFact::Repaired {
            canonical: canonical.clone(),
            changes: prepared.changes.clone(),
        };
        cx.emit_tool_fact(ix, fact).await;
    }
}

/// Records that a call was rejected.
pub(super) async fn emit_rejected(cx: &CallCx, ix: CallIx, rule: &str, text: &str) {
    let fact = ToolFact::Rejected {
        rule: rule.to_owned(),
        text: text.to_owned(),
    };
    cx.emit_tool_fact(ix, fact).await;
}

/// The response to a `submit_verdict` call that was read.
pub(super) const VERDICT_RECEIVED: &str = "The verdict was received.";

/// Records the facts of a `submit_verdict` that was read; it has the same states as any call.
pub(super) async fn emit_submitted_verdict(cx: &CallCx, ix: CallIx, values: RawJson) {
    // A verdict's arguments aren't coerced.
    let coerced = Vec::new();
    cx.emit_tool_fact(ix, ToolFact::Validated { values, coerced })
        .await;
    cx.emit_tool_fact(ix, ToolFact::Started).await;
    let answer = ToolResponse::ok(VERDICT_RECEIVED);
    let fact = ToolFact::Finished {
        answer: cx.out.store_tool_response(&answer).await,
        source: ToolResponseSource::Live,
        // The tool only confirms, so it takes no time.
        elapsed: crate::model::Millis(0),
        retried: None,
    };
    cx.emit_tool_fact(ix, fact).await;
}

/// Returns the response of a call that started, and its source.
async fn get_tool_response(
    cx: &CallCx,
    ix: CallIx,
    tool: &dyn Tool,
    ready: &ValidatedCall,
    responder: CallResponder,
) -> (ToolExecution, ToolResponseSource) {
    let plain = |answer| ToolExecution {
        response: answer,
        first_failure: None,
    };
    match responder {
        CallResponder::Person(answer) => (plain(answer), ToolResponseSource::ByHand),
        CallResponder::IdenticalCall(mut same) => {
            let (turn, call) = (same.turn, same.call);
            let answer = same.response.wait_for(Option::is_some).await;
            match answer.ok().and_then(|answer| answer.clone()) {
                Some(answer) => (plain(answer), ToolResponseSource::SameTrace { turn, call }),
                // That call is gone without an answer.
                None => (
                    tools::execute_tool_call(tool, ready, ix, cx).await,
                    ToolResponseSource::Live,
                ),
            }
        }
        CallResponder::EvidenceOrTool { recorded, sender } => {
            let (called, source) = if let Some(FoundResponse { response, source }) = recorded {
                (plain(response), source)
            } else {
                let source = if tool.reads_transcript() {
                    ToolResponseSource::Transcript
                } else {
                    ToolResponseSource::Live
                };
                (tools::execute_tool_call(tool, ready, ix, cx).await, source)
            };
            // Wake the identical calls. A clone is necessary, because several of them can wait.
            sender.send_replace(Some(called.response.clone()));
            (called, source)
        }
    }
}

/// The reason why a call doesn't start.
enum CallRefusal {
    /// Only this call is rejected.
    RejectCall(Rejection),
    /// The cell ends: a recorded response is missing, and the policy is `end`.
    EndCell(Box<ToolResponse>),
}

#[cfg(test)]
mod tests;
