//! One judge trace: body → gate → budget → call → reply → verdict, or tool calls and another turn.
//!
//! Responsible for the loop over turns and for reading the verdict at its end. [`super::tool_calls`] runs tool calls.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use super::branch::{RecordedTurn, TracePrefix, write_history_as_text};
use super::budget_limits::{emit_conclude_if_near, end_out_of_budget, end_out_of_turns};
use super::calibrated::{self, CalibratedVerdictError};
use super::call_history::TurnCalls;
use super::cell_setup::CellSetup;
use super::deadline::CellDeadline;
use super::evidence::EvidenceStore;
use super::gate::{GateAction, GateEdit, GateStop};
use super::reply_calls::{
    explain_cut, find_refusal_word, index_calls, is_truncated_json, keep_first_verdict,
    make_sendable,
};
use super::tool_calls::{
    FinishedToolCall, ToolCallRunner, VERDICT_RECEIVED, emit_received, emit_rejected,
    emit_repaired, emit_submitted_verdict,
};
use super::trace_gate::{TraceGate, person_ended_result};
use super::trace_state::{AnsweredCall, TraceState};
use super::usage_meter::{MeteredProvider, UsageMeter};
use super::{contradiction, hidden_text, similarity, verdict_parser, verdict_text};
use crate::event::{CallCx, TurnFact};
use crate::handlers::JudgeRequest;
use crate::model::surrogates::replace_lone_halves;
use crate::model::{
    Cause, CauseSet, CellResult, HistoryBlock, HistoryItem, InstallationSecret, ModelReply,
    Outcome, SUBMIT_VERDICT, StopReason, ToolResponse, TurnIx, Verdict, VerdictMode,
    is_json_object,
};
use crate::provider::{
    self, CompletedReply, Provider as _, ProviderError, RequestBody, TurnRequest,
};
use crate::tools;

/// The request to submit a verdict, for a judge with tools that replied in text.
const MISSING_CALL_NUDGE: &str = "That reply holds no call, so it states no verdict yet. Call `submit_verdict` now, or one of your tools \
                     if you still need a result.";

/// The request to submit a malformed verdict again.
const RESUBMIT_REQUEST: &str =
    "No verdict was recorded. Call `submit_verdict` once more, with corrected arguments.";

/// The judge trace of one cell.
pub(super) struct JudgeTrace<'a> {
    pub(super) setup: &'a CellSetup<'a>,
    pub(super) request: &'a JudgeRequest,
    pub(super) cx: &'a CallCx,
    pub(super) deadline: &'a CellDeadline,
    pub(super) meter: &'a UsageMeter<'a>,
    pub(super) gate: &'a TraceGate<'a>,
    pub(super) evidence: &'a dyn EvidenceStore,
    pub(super) secret: &'a InstallationSecret,
    /// The recorded beginning, if the trace is a branch.
    pub(super) prefix: Option<&'a TracePrefix>,
    /// The causes that tool calls are, for filters.
    pub(super) causes: &'a Mutex<CauseSet>,
}

impl JudgeTrace<'_> {
    /// Runs the trace to its end.
    pub(super) async fn run(&self) -> CellResult {
        match self.run_turns().await {
            Ok(result) | Err(result) => result,
        }
    }

    /// Runs the turns. `Err` is an early end, so that `?` ends the trace.
    async fn run_turns(&self) -> Result<CellResult, CellResult> {
        let mut prompt = self.setup.prompt.to_item();
        if let Some(prefix) = self.prefix {
            prompt = prefix.change_prompt(prompt);
            if let Some(text) = prefix.prompt_edit() {
                self.gate.record_request_edit(None, text).await;
            }
        }
        let mut state = TraceState::new(prompt, self.request, &self.setup.tools);
        // A branch at the last turn gets one turn of its own.
        let recorded = self.prefix.map_or(0, |prefix| prefix.turns.len());
        let max_turns = u16::try_from(recorded + 1).map_or(self.setup.max_turns, |least| {
            self.setup.max_turns.max(least)
        });
        // Each turn: request, reply, then the verdict or tool calls.
        for turn in 0..max_turns {
            let cx = CallCx {
                turn: TurnIx(turn),
                ..self.cx.clone()
            };
            if let Some(prefix) = self.prefix
                && turn > 0
                && usize::from(turn) == prefix.text_turns
            {
                write_history_as_text(&mut state.history);
            }
            let recorded = self.prefix.and_then(|prefix| prefix.turn(cx.turn));
            let last = turn + 1 == max_turns
                || recorded.is_none()
                    && emit_conclude_if_near(self.meter, self.setup.verdict_mode, &cx).await;
            let finished = match recorded {
                Some(recorded) => self.replay_turn(recorded, &mut state, last, &cx).await,
                None => self.ask_model(&mut state, last, &cx).await?,
            };
            // Count the reply before any return, so that the next check includes it.
            state.size.add_reply(&finished);
            // A reply that was cut or refused never counts, even if it contains a verdict.
            if let Some(why) = explain_cut(&finished) {
                return Err(end_unparsed(&cx, Outcome::Truncated, &why, &finished.reply).await);
            }
            if let Some(word) = find_refusal_word(&finished.reply.stop) {
                let why = format!("the model refused to answer: {word}");
                return Err(CellResult::from_error(Outcome::JudgeError, why));
            }
            if self.may_ask_again(&state, last, &finished.reply) {
                // Gemini ends some replies after its thinking, or at once. The same request is sent again, because
                // protocols refuse an empty message of the model in the history.
                state.asked_after_empty_reply = true;
                continue;
            }
            // Without tools the first reply is the verdict.
            if self.setup.verdict_mode != VerdictMode::Call {
                return self.read_text_verdict(&cx, &state, &finished.reply).await;
            }
            if finished.reply.calls.is_empty() {
                self.handle_missing_call(&cx, &mut state, last, finished)
                    .await?;
            } else if finished
                .reply
                .calls
                .iter()
                // A verdict counts only alone; next to other calls it is rejected as premature.
                .all(|c| c.name == SUBMIT_VERDICT)
            {
                let called = self.read_called_verdict(&cx, &mut state, last, finished);
                if let Some(result) = called.await? {
                    return Ok(result);
                }
            } else {
                self.run_tool_calls(&cx, &mut state, last, finished).await?;
            }
        }
        Err(end_out_of_turns(self.meter, max_turns))
    }

    /// Takes a turn from the recording, and notes if dicta would send another request today.
    async fn replay_turn(
        &self,
        recorded: &RecordedTurn,
        state: &mut TraceState,
        last: bool,
        cx: &CallCx,
    ) -> CompletedReply {
        if let Some(prefix) = self.prefix
            && let Ok(body) = self.build_request(state, last)
        {
            // Some judges receive the first turns as a text, and have other requests.
            let has_messages = usize::from(cx.turn.0) >= prefix.text_turns;
            match &recorded.edit {
                Some(edit) if has_messages || edit.before.is_some() => {
                    let before = body.text();
                    if state.repeat_recorded_edit(body, edit).text() == before {
                        prefix.note_lost_edit(cx).await;
                    }
                }
                Some(_) => prefix.note_lost_edit(cx).await,
                None if has_messages => prefix.note_difference(&body, cx).await,
                None => {}
            }
        }
        if let Some(edit) = &recorded.edit {
            let before = edit.before.as_deref().map(|before| (cx.turn, before));
            self.gate.record_request_edit(before, &edit.after).await;
        }
        recorded.replay(cx).await
    }

    fn add_cause(&self, cause: Cause) {
        let mut causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        causes.insert(cause);
    }

    /// Returns whether a reply is empty and the model gets the same request once more.
    fn may_ask_again(&self, state: &TraceState, last: bool, reply: &ModelReply) -> bool {
        // A Decisions endpoint has no turns.
        let has_turns = self.setup.questions.is_empty();
        let is_empty = reply.text.trim().is_empty() && reply.calls.is_empty();
        is_empty && has_turns && !last && !state.asked_after_empty_reply
    }

    /// Builds one turn's request.
    fn build_request(&self, state: &TraceState, last: bool) -> Result<RequestBody, ProviderError> {
        // If the provider can't force a call, the other tools aren't declared, so that the model can't call
        // them.
        let alone = last
            && self.setup.verdict_mode == VerdictMode::Call
            && !self.setup.provider.capabilities().forced_call;
        let tools = match &self.setup.tool_decls[..] {
            [.., submit] if alone => std::slice::from_ref(submit),
            all => all,
        };
        let request = TurnRequest {
            history: &state.history,
            tools,
            tool_choice: self.setup.tool_choice(last),
        };
        let body = self.setup.provider.build_body(&request)?;
        Ok(state.repeat_edits(body))
    }

    /// Builds and sends one turn's request, and records it and its reply.
    async fn ask_model(
        &self,
        state: &mut TraceState,
        last: bool,
        cx: &CallCx,
    ) -> Result<CompletedReply, CellResult> {
        let body = self.build_request(state, last);
        let mut body = body.map_err(|error| provider_error_result(&error))?;
        let prefix = self.prefix;
        let prefix_turns = prefix.map_or(0, |prefix| prefix.turns.len());
        if let Some(prefix) = prefix
            && let Some(edit) = prefix.next_edit(cx.turn)
        {
            let before = body.text();
            body = state.repeat_recorded_edit(body, edit);
            if body.text() == before {
                prefix.note_lost_edit(cx).await;
            } else {
                let before = Some((cx.turn, before.as_str()));
                self.gate.record_request_edit(before, &body.text()).await;
            }
        }
        if let Some(prefix) = prefix.filter(|prefix| prefix.text_turns == 0) {
            prefix.note_difference(&body, cx).await;
        }
        // Check the size before the gate and the budget: such a request is never sent.
        state.size.check_request(&body)?;
        // A person may edit the body or end the cell here.
        match self.gate.pass_request(&body, cx.turn).await {
            GateAction::ContinueWith(GateEdit::Body(edited)) => {
                body = state.replace_body(body, edited);
            }
            GateAction::EndCell(outcome) => return Err(person_ended_result(outcome)),
            GateAction::Continue | GateAction::ContinueWith(_) | GateAction::AnswerCall(_) => {}
        }
        // After the gate, because an edited body has another estimate.
        if let Err(reached) = self.meter.admit(&body).await {
            return Err(end_out_of_budget(reached, cx).await);
        }
        let request = cx.out.store_pieces(&body.pieces).await;
        let dropped = body.dropped.clone();
        cx.turn(TurnFact::Started { request, dropped }).await;
        let metered = MeteredProvider {
            inner: self.setup.provider,
            meter: self.meter,
            deadline: self.deadline,
            awaits_first_request: AtomicBool::new(usize::from(cx.turn.0) == prefix_turns),
        };
        let (attempt, finished) = match provider::call_with_retries(&metered, &body, cx).await {
            Ok(result) => result,
            Err(error) => {
                return Err(match self.meter.limit_reached() {
                    // The budget rejected a retry, so the outcome is `budget` and not a judge error.
                    Some(reached) => end_out_of_budget(reached, cx).await,
                    None => provider_error_result(&error),
                });
            }
        };
        // Read before the next turn of this cell replaces it.
        let exchange_info = metered.last_exchange(cx.cell);
        metered.forget_exchange(cx.cell);
        let mut native = Vec::with_capacity(finished.native.len());
        // An item that contains a secret is recorded redacted, so a resumed trace couldn't send it back.
        let mut resendable = true;
        for item in &finished.native {
            resendable &= cx.out.redactor().redact(item.get()).is_none();
            native.push(cx.out.store_text(item.get()).await);
        }
        cx.turn(TurnFact::Finished {
            attempt,
            native,
            resendable,
            reply: finished.reply.clone(),
            usage: finished.usage,
            exchange: exchange_info.map(|info| info.exchange),
        })
        .await;
        Ok(finished)
    }

    /// Reads the verdict of a judge without tools from the reply's text.
    async fn read_text_verdict(
        &self,
        cx: &CallCx,
        state: &TraceState,
        reply: &ModelReply,
    ) -> Result<CellResult, CellResult> {
        // A Decisions endpoint replies with probabilities and not with a verdict.
        if !self.setup.questions.is_empty() {
            return self.read_calibrated_verdict(cx, state, reply).await;
        }
        if self.setup.provider_kind.is_embeddings() {
            let count = self.request.params.compared_texts.len();
            return match similarity::read_reply(&reply.text, count) {
                Ok(verdict) => self.accept_verdict(cx, state, reply, verdict).await,
                Err(why) => Err(end_unparsed(cx, Outcome::Unparsed, &why, reply).await),
            };
        }
        if !reply.calls.is_empty() {
            let why = "the reply calls a function, but this judge has no tools";
            return Err(end_unparsed(cx, Outcome::Unparsed, why, reply).await);
        }
        let verdict = verdict_text::parse_verdict_text(
            &reply.text,
            &self.setup.verdict_format,
            self.setup.verdict_mode,
            |object| state.sources.contains_anywhere(object),
        );
        match verdict {
            Ok(verdict) => self.accept_verdict(cx, state, reply, verdict).await,
            Err(why) => {
                let why = match &reply.stop {
                    // An unknown stop reason often explains why the text lacks a verdict.
                    StopReason::Other(word) => format!("{why} (the model stopped with {word})"),
                    _ => why.to_string(),
                };
                Err(end_unparsed(cx, Outcome::Unparsed, &why, reply).await)
            }
        }
    }

    /// Reads the verdict of a judge that answers with probabilities.
    async fn read_calibrated_verdict(
        &self,
        cx: &CallCx,
        state: &TraceState,
        reply: &ModelReply,
    ) -> Result<CellResult, CellResult> {
        match calibrated::read_answers(
            self.setup.provider_kind,
            &self.setup.verdict_format,
            &self.setup.questions,
            &reply.text,
        ) {
            Ok(verdict) => self.accept_verdict(cx, state, reply, verdict).await,
            Err(CalibratedVerdictError::Refused(why)) => {
                Err(CellResult::from_error(Outcome::JudgeError, why))
            }
            Err(CalibratedVerdictError::Unparsed(why)) => {
                Err(end_unparsed(cx, Outcome::Unparsed, &why, reply).await)
            }
        }
    }

    /// Reads the verdict of a reply in which every call is `submit_verdict`.
    ///
    /// Returns `None` if the verdict is malformed and the judge gets one more turn, with the reason.
    async fn read_called_verdict(
        &self,
        cx: &CallCx,
        state: &mut TraceState,
        last: bool,
        finished: CompletedReply,
    ) -> Result<Option<CellResult>, CellResult> {
        let reply = &finished.reply;
        let can_resubmit = !last && !state.asked_to_resubmit;
        let mut stated: Option<Verdict> = None;
        let mut fault: Option<(Outcome, String)> = None;
        // Read every call, because each one needs its events, even after a fault.
        let mut responses = Vec::with_capacity(reply.calls.len());
        let mut canonical_arguments = Vec::with_capacity(reply.calls.len());
        for (ix, call) in index_calls(reply) {
            emit_received(cx, ix, call).await;
            let prepared = tools::prepare_call_catching_panics(
                &self.setup.tools,
                &call.name,
                &call.raw,
                &state.seen,
            );
            emit_repaired(cx, ix, &prepared).await;
            canonical_arguments.push(prepared.canonical.clone());
            let read = match &prepared.outcome {
                // A tool's arguments may be taken out of prose. A verdict in prose may be an example or a hypothesis.
                Ok(_) if prepared.has_surrounding_text => {
                    Err("the verdict's arguments have text around their JSON object".to_owned())
                }
                Ok(ready) => self.parse_verdict_arguments(
                    &call.raw,
                    ready.values.get(),
                    prepared.has_duplicate_keys,
                ),
                Err(rejection) => Err(rejection.text.trim_start_matches("Error: ").to_owned()),
            };
            let read = match read {
                // The repair closed cut-off JSON. The verdict comes last in it, so it may not be what the
                // model wrote.
                Ok(_) if prepared.was_truncated => Err((
                    Outcome::Truncated,
                    "the verdict's arguments were cut off and had to be closed".to_owned(),
                )),
                Ok(verdict) => Ok(verdict),
                Err(_) if prepared.was_truncated || is_truncated_json(&call.raw) => Err((
                    Outcome::Truncated,
                    "the verdict's arguments were cut off: they end before they are closed"
                        .to_owned(),
                )),
                Err(why) => Err((Outcome::Unparsed, why)),
            };
            // Models sometimes submit the same verdict twice; only a different result is a fault.
            let same = |one: &Verdict, two: &Verdict| {
                let met =
                    |v: &Verdict| v.parts.iter().map(|p| (p.met, p.count)).collect::<Vec<_>>();
                (one.passed, one.score, one.applicable) == (two.passed, two.score, two.applicable)
                    && met(one) == met(two)
            };
            let read = match (read, &stated) {
                (Ok(verdict), Some(first)) if !same(first, &verdict) => Err((
                    Outcome::Unparsed,
                    "the reply submits two verdicts that disagree".to_owned(),
                )),
                (read, _) => read,
            };
            match read {
                Ok(verdict) => {
                    if let Ok(ready) = prepared.outcome {
                        emit_submitted_verdict(cx, ix, ready.values).await;
                    }
                    responses.push(ToolResponse::ok(VERDICT_RECEIVED));
                    keep_first_verdict(&mut stated, verdict, prepared.changes);
                }
                Err((outcome, why)) => {
                    // The first fault explains the cell; later ones often follow from it.
                    let text = if can_resubmit {
                        format!("Error: {why}. {RESUBMIT_REQUEST}")
                    } else {
                        format!("Error: {why}")
                    };
                    self.add_cause(Cause::Refused);
                    emit_rejected(cx, ix, "verdict", &text).await;
                    responses.push(ToolResponse::error_text(text));
                    fault.get_or_insert((outcome, why));
                }
            }
        }
        // One faulty call makes the whole reply unparsed, even next to a valid one.
        match (stated, fault) {
            (Some(verdict), None) => {
                Ok(Some(self.accept_verdict(cx, state, reply, verdict).await?))
            }
            (_, Some(_)) if can_resubmit => {
                state.asked_to_resubmit = true;
                let mut reply = finished.reply;
                for (call, canonical) in reply.calls.iter_mut().zip(canonical_arguments) {
                    make_sendable(call, canonical);
                }
                state.history.push(HistoryItem::Model {
                    native: finished.native,
                    reply,
                });
                state.history.push(HistoryItem::ToolResponses(responses));
                Ok(None)
            }
            (_, Some((outcome, why))) => Err(end_unparsed(cx, outcome, &why, reply).await),
            (None, None) => {
                Err(end_unparsed(cx, Outcome::Unparsed, "the reply holds no verdict", reply).await)
            }
        }
    }

    /// Parses a verdict's arguments, first as they arrived if they are an object, then as they were prepared.
    ///
    /// The first pass rejects a field that is stated twice, of which the preparation keeps only one.
    fn parse_verdict_arguments(
        &self,
        raw: &str,
        prepared: &str,
        has_duplicate_keys: bool,
    ) -> Result<Verdict, String> {
        let format = &self.setup.verdict_format;
        if is_json_object(raw) {
            // serde_json refuses an escape of half a surrogate pair, which vendors' parsers accept.
            verdict_parser::parse_verdict_object(&replace_lone_halves(raw), format)
                .map_err(|why| why.to_string())?;
        } else if has_duplicate_keys {
            return Err("the verdict states a field more than once".to_owned());
        }
        verdict_parser::parse_verdict_object(prepared, format).map_err(|why| why.to_string())
    }

    /// Checks the reasoning and the citations of a verdict, passes the gate with it, and applies the eval's bounds.
    async fn accept_verdict(
        &self,
        cx: &CallCx,
        state: &TraceState,
        reply: &ModelReply,
        mut verdict: Verdict,
    ) -> Result<CellResult, CellResult> {
        // Before the gate, so that a person sees which citations were found.
        // A schema leaves a model no other place for a refusal, and its `passed` then means nothing.
        if let Some(refusal) = contradiction::find_refusal(&verdict) {
            let why = format!("the model refused to judge: {refusal}");
            return Err(end_unparsed(cx, Outcome::JudgeError, &why, reply).await);
        }
        if self.setup.verdict_mode == VerdictMode::Call
            && verdict.contradiction.is_none()
            && verdict.applicable != Some(false)
            && let Some(passed) = verdict.passed
        {
            verdict.contradiction = contradiction::find_in_accompanying_text(&reply.text, passed);
        }
        state.sources.mark_found(&mut verdict.citations);
        verdict.hidden = hidden_text::describe_hidden_text(self.request, &state.hidden_text);
        self.request
            .params
            .parts_spec
            .fill_part_names(&mut verdict.parts);
        match self.gate.pass(GateStop::Verdict(&verdict)).await {
            GateAction::ContinueWith(GateEdit::Verdict(mut edited)) => {
                let overall = |v: &Verdict| (v.passed, v.score);
                if overall(&edited) != overall(&verdict) && edited.parts == verdict.parts {
                    // A person overruled the whole, so the parts no longer say why.
                    edited.parts.clear();
                }
                verdict = *edited;
            }
            GateAction::EndCell(outcome) => return Err(person_ended_result(outcome)),
            GateAction::Continue | GateAction::ContinueWith(_) | GateAction::AnswerCall(_) => {}
        }
        // Record the verdict without bounds, so that dicta can rescore it later.
        cx.turn(TurnFact::VerdictReached(Box::new(verdict.clone())))
            .await;
        Ok(verdict_parser::apply_bounds(&verdict, &self.request.params))
    }

    /// Handles a text reply of a judge with tools: it is asked once more if turns remain.
    async fn handle_missing_call(
        &self,
        cx: &CallCx,
        state: &mut TraceState,
        last: bool,
        finished: CompletedReply,
    ) -> Result<(), CellResult> {
        let empty = finished.reply.text.trim().is_empty();
        let end = match (&finished.reply.stop, empty) {
            // dicta reminds the model only after a text, so an empty reply ends the cell.
            (StopReason::Other(word), true) => {
                let why = format!("the reply is empty (the model stopped with {word})");
                Some((Outcome::Unparsed, why))
            }
            (_, true) => Some((Outcome::Unparsed, "the reply is empty".to_owned())),
            (_, false) if last => {
                let ended = end_out_of_turns(self.meter, self.setup.max_turns);
                let why = ended.error.unwrap_or_default();
                Some((
                    ended.outcome,
                    format!("{why}: the last reply does not call {SUBMIT_VERDICT}"),
                ))
            }
            (_, false) => None,
        };
        if let Some((outcome, why)) = end {
            return Err(end_unparsed(cx, outcome, &why, &finished.reply).await);
        }
        state.history.push(HistoryItem::Model {
            native: finished.native,
            reply: finished.reply,
        });
        let nudge = HistoryItem::User(vec![HistoryBlock::Text(MISSING_CALL_NUDGE.to_owned())]);
        state.history.push(nudge);
        Ok(())
    }

    /// Runs the tool calls of a reply at once and adds their responses to the history in call order.
    ///
    /// Only calls with `after:` wait for others.
    async fn run_tool_calls(
        &self,
        cx: &CallCx,
        state: &mut TraceState,
        last: bool,
        finished: CompletedReply,
    ) -> Result<(), CellResult> {
        // The model called tools although only the verdict was allowed. Record each call as rejected.
        if last {
            for (ix, call) in index_calls(&finished.reply) {
                emit_received(cx, ix, call).await;
                let text =
                    format!("Error: no turns are left; only {SUBMIT_VERDICT} alone was allowed");
                emit_rejected(cx, ix, "turn_limit", &text).await;
            }
            return Err(end_out_of_turns(self.meter, self.setup.max_turns));
        }
        let turn_calls = TurnCalls::from_reply(&finished.reply);
        let runner = ToolCallRunner {
            cx,
            gate: self.gate,
            evidence: self.evidence,
            tools: &self.setup.tools,
            seen: &state.seen,
            call_history: &state.call_history,
            turn_calls: &turn_calls,
            prefix: self.prefix,
        };
        let calls = index_calls(&finished.reply).map(|(ix, call)| runner.run(ix, call));
        let mut done: Vec<FinishedToolCall> = futures_util::future::join_all(calls).await;
        // Only now do these calls count as earlier ones for `after:`.
        state.call_history.end_turn(&turn_calls);
        // Ends the borrow of `finished.reply`, which is moved below.
        drop(turn_calls);
        for done in &done {
            if !done.started {
                self.add_cause(Cause::Refused);
            } else if done.response.is_error {
                self.add_cause(Cause::FetchError);
            }
            if done.repaired {
                self.add_cause(Cause::Repaired);
            }
        }
        // In call order, so that the result doesn't depend on which call ended first.
        if let Some(end) = done.iter_mut().find_map(|d| d.cell_end.take()) {
            return Err(end);
        }
        let mut reply = finished.reply;
        let mut answers = Vec::with_capacity(done.len());
        for (call, done) in reply.calls.iter_mut().zip(done) {
            make_sendable(call, done.canonical);
            let tool = self.setup.tools.get(&call.name);
            let call = AnsweredCall {
                tool: &call.name,
                arguments: &call.raw,
                reads_transcript: tool.is_some_and(|tool| tool.reads_transcript()),
                started: done.started,
            };
            let delimiter = &self.setup.prompt.delimiter;
            answers.push(state.format_for_model(call, done.response, delimiter, self.secret));
        }
        state.history.push(HistoryItem::Model {
            native: finished.native,
            reply,
        });
        state.history.push(HistoryItem::ToolResponses(answers));
        Ok(())
    }
}

/// Records a reply that states no verdict, and returns the cell's result.
async fn end_unparsed(cx: &CallCx, outcome: Outcome, why: &str, reply: &ModelReply) -> CellResult {
    // The text and all calls, as `name(arguments)`, so that the recording shows the whole reply.
    let mut raw = reply.text.clone();
    for call in &reply.calls {
        if !raw.is_empty() {
            raw.push('\n');
        }
        raw.push_str(&call.name);
        raw.push('(');
        raw.push_str(&call.raw);
        raw.push(')');
    }
    let fact = TurnFact::VerdictUnparsed {
        why: why.to_owned(),
        raw: cx.out.store_text(&raw).await,
    };
    cx.turn(fact).await;
    CellResult::from_error(outcome, why)
}

/// Returns the result of a cell that a provider error ends.
fn provider_error_result(error: &ProviderError) -> CellResult {
    let outcome = match error {
        ProviderError::Cut { .. } => Outcome::Truncated,
        ProviderError::Cancelled => return CellResult::cancelled(),
        _ => Outcome::JudgeError,
    };
    CellResult::from_error(outcome, error.to_string())
}

#[cfg(test)]
mod tests;
