//! The only fold of a run: the state after its events, applied in order. Live, replayed and read runs use the same
//! fold.
//!
//! Responsible for [`RunState`]. Does not panic on a damaged log: it counts an event about an unplanned cell and
//! ignores it otherwise.

use std::sync::Arc;

use indexmap::IndexMap;

use super::stats::RunStats;
use super::{
    BudgetStop, CellKey, DeltaPart, DroppedSetting, EventKind, GatePoint, GateRelease,
    HttpExchange, PendingPart, RecordedRequest, RecordedToolResponse, RunEvent, RunHeader,
    RunTotals, StoredText, ThrottleReason, ToolFact, ToolResponseSource, TurnFact,
};
use crate::model::LabelQuery;
use crate::model::{
    ArgumentChange, CallIx, CellIx, CellName, CellNameRef, CellResult, Digest, Hop, Millis,
    ModelReply, RawJson, TokenUsage, TranscriptRef, TurnIx, Verdict,
};

/// The number of cells that may be missing between two planned ranges, if a log lost events.
const MAX_GAP: usize = 1 << 20;

/// The limit on turns per judge trace and calls per turn. No judge reaches it, so a higher index comes from a damaged
/// log.
const MAX_INDEX: usize = 4096;

/// The state of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunState {
    /// The header, if `run_started` was applied.
    pub header: Option<Box<RunHeader>>,
    /// The transcripts that the run reached, in order.
    pub transcripts: Vec<TranscriptState>,
    /// The cells by number.
    pub cells: Vec<CellState>,
    /// The notes of the run, in order.
    pub notes: Vec<RunNote>,
    /// The limits of the run that were reached, in order.
    pub budgets: Vec<BudgetStop>,
    /// The statistics per judge and per tool.
    pub stats: RunStats,
    /// The totals; `None` if the run is running or was interrupted.
    pub totals: Option<Box<RunTotals>>,
    /// The number of events of unknown kinds.
    pub unknown: u64,
    /// The number of events about cells that were never planned.
    pub stray: u64,
    /// The last event that was applied.
    pub last: Option<LastEvent>,
}

/// The text of a `note` event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunNote {
    /// The cell it concerns, if it concerns one.
    pub cell: Option<CellIx>,
    /// A sentence.
    pub text: String,
}

/// The number and time of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastEvent {
    /// Its number in the log.
    pub seq: u64,
    /// Its time since the run began.
    pub at: Millis,
}

/// A transcript that the run reached.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptState {
    /// The transcript and its position in its file.
    pub source: TranscriptRef,
    /// The number of its first cell.
    pub first: CellIx,
    /// The number of its cells.
    pub cells: u32,
}

/// The phase of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CellPhase {
    /// The cell has not started.
    #[default]
    Planned,
    /// A request is sent, and no part of the reply has arrived.
    Waiting,
    /// The reply is arriving.
    Streaming,
    /// Tools run; the number of calls without a response.
    RunningTools(u16),
    /// The request waits for a limit before dicta sends it.
    Held {
        /// The limit.
        by: ThrottleReason,
        /// The expected end of the wait, in time since the run began, if it is known.
        until: Option<Millis>,
    },
    /// An attempt failed, and the next attempt waits.
    BackingOff {
        /// The start of the next attempt, in time since the run began.
        until: Millis,
    },
    /// The judge trace is paused at this gate.
    Paused(GatePoint),
    /// The cell has a result.
    Done,
}

/// The state of a cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CellState {
    /// The cell's place in the plan; `None` if the event that planned it is missing.
    pub planned: Option<PlanPosition>,
    /// The cache key, once the cell started and if it has one.
    pub cache_key: Option<Digest>,
    /// The phase.
    pub phase: CellPhase,
    /// The turns so far.
    pub judge_trace: Vec<TurnState>,
    /// The result, once the cell ended.
    pub result: Option<Arc<CellResult>>,
    /// The start of the cell, in time since the run began.
    pub started: Option<Millis>,
    /// The end of the cell, in time since the run began.
    pub ended: Option<Millis>,
    /// `true` if a person changed something.
    pub by_human: bool,
}

/// The place of a cell in the plan of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanPosition {
    /// Index into [`RunState::transcripts`].
    pub transcript: u32,
    /// The cell's eval, message, judge and repeat.
    pub key: CellKey,
}

/// The state of one model call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnState {
    /// The request body.
    pub request: RecordedRequest,
    /// `true` while the request waits for a person, and if the trace ended there: the model did not get it.
    pub unsent: bool,
    /// The settings that dicta left out of the request.
    pub dropped: Vec<DroppedSetting>,
    /// The attempts, by number.
    pub attempts: IndexMap<u8, AttemptState>,
    /// The reply, once an attempt succeeded.
    pub finished: Option<AttemptReply>,
    /// The provider's native items.
    pub native: Vec<StoredText>,
    /// `true` if a fork can send the native items again.
    pub resendable: bool,
    /// The usage, failed attempts included.
    pub usage: Option<TokenUsage>,
    /// The tool calls of the reply.
    pub calls: Vec<CallState>,
    /// The verdict that the judge read from the reply.
    pub verdict: Option<Verdict>,
    /// The text without a valid verdict, if the judge found none.
    pub unparsed: Option<UnparsedVerdict>,
    /// The start of the turn, in time since the run began.
    pub started: Millis,
    /// The time of the first delta of the newest attempt; `None` if the reply was not streamed.
    pub first_delta_at: Option<Millis>,
    /// The time at which the reply was complete.
    pub finished_at: Option<Millis>,
}

/// The reply of a model, and the attempt that brought it.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptReply {
    /// The number of the attempt, from 1.
    pub attempt: u8,
    /// The reply.
    pub reply: ModelReply,
}

/// A text in which the judge found no valid verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnparsedVerdict {
    /// The reason, as a sentence.
    pub why: String,
    /// The text.
    pub raw: StoredText,
}

/// The state of one HTTP attempt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttemptState {
    /// The text so far.
    pub text: String,
    /// The reasoning so far.
    pub thought: String,
    /// The arguments so far, by call.
    pub args: IndexMap<CallIx, String>,
    /// The failure, if it failed.
    pub failed: Option<AttemptFailure>,
    /// The reason for the wait after a failure.
    pub wait_why: Option<String>,
    /// The HTTP exchange, once it is over.
    pub exchange: Option<HttpExchange>,
}

/// The failure of an HTTP attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFailure {
    /// The HTTP status, if the server replied.
    pub status: Option<u16>,
    /// The reason, as a sentence.
    pub why: String,
    /// The wait until the next attempt; `None` if the turn makes none.
    pub retry_in: Option<Millis>,
}

/// The state of one tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallState {
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The raw arguments.
    pub raw: String,
    /// The canonical arguments, if they differ from the raw ones.
    pub canonical: Option<RawJson>,
    /// The changes of the argument repair.
    pub changes: Vec<ArgumentChange>,
    /// The validated arguments.
    pub values: Option<RawJson>,
    /// The changes of `coerce: true` to the canonical arguments.
    pub coerced: Vec<ArgumentChange>,
    /// The temporary failure of the first try, if the tool ran twice.
    pub retried: Option<String>,
    /// The rejection, if dicta refused the call.
    pub rejected: Option<CallRejection>,
    /// `true` once the tool started.
    pub started: bool,
    /// The requests of a fetch.
    pub hops: Vec<Hop>,
    /// The response for the judge that waits for a person's decision.
    pub pending: Option<RecordedToolResponse>,
    /// The tool response, once there is one.
    pub finished: Option<FinishedCall>,
    /// `true` if no recorded tool response exists for this call and the run uses recorded ones.
    pub evidence_missed: bool,
    /// The time of the event that received it.
    pub received_at: Millis,
    /// The time at which the tool started, once it runs.
    pub started_at: Option<Millis>,
}

/// The rule that rejected a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRejection {
    /// The name of the rule.
    pub rule: String,
    /// The text that the model receives.
    pub text: String,
}

/// A tool response, its source and its duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedCall {
    /// The tool response.
    pub response: RecordedToolResponse,
    /// The source of the response.
    pub source: ToolResponseSource,
    /// The duration of the call.
    pub elapsed: Millis,
}

impl RunState {
    /// Returns the state after all `events`.
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e RunEvent>) -> Self {
        let mut state = Self::default();
        for event in events {
            state.apply(event);
        }
        state
    }

    /// Applies the next event.
    pub fn apply(&mut self, event: &RunEvent) {
        self.stats.apply(event);
        self.apply_without_stats(event);
    }

    /// Applies the next event to everything except the statistics. For callers that have the statistics from an index.
    pub fn apply_without_stats(&mut self, event: &RunEvent) {
        self.last = Some(LastEvent {
            seq: event.seq,
            at: event.at,
        });
        match &event.kind {
            EventKind::RunStarted(header) => self.header = Some(header.clone()),
            EventKind::CellsPlanned {
                transcript,
                first,
                keys,
            } => self.apply_plan(transcript, *first, keys),
            EventKind::CellsSettled(results) => {
                for settled in results {
                    self.update_cell(settled.cell, |cell| {
                        cell.set_result(&settled.result, event.at);
                    });
                }
            }
            EventKind::CellStarted { cell, key } => self.update_cell(*cell, |c| {
                c.cache_key.clone_from(key);
                c.started = Some(event.at);
                c.phase = CellPhase::Waiting;
            }),
            EventKind::CellFinished { cell, result } => {
                self.update_cell(*cell, |c| c.set_result(result, event.at));
            }
            EventKind::Turn { cell, turn, fact } => {
                self.update_cell(*cell, |c| c.apply_turn_fact(*turn, fact, event.at));
            }
            EventKind::Tool {
                cell,
                turn,
                call,
                fact,
            } => {
                self.update_cell(*cell, |c| c.apply_tool_fact(*turn, *call, fact, event.at));
                // This follows the fact itself, because it needs the call's name.
                self.mark_missed(*cell, *turn, *call, fact);
            }
            EventKind::Paused { cell, at, pending } => {
                self.update_cell(*cell, |c| {
                    c.phase = CellPhase::Paused(*at);
                    if let Some(pending) = pending {
                        c.apply_pending(pending, event.at);
                    }
                });
            }
            EventKind::Resumed { cell, how } => self.update_cell(*cell, |c| c.apply_resumed(how)),
            EventKind::BudgetReached { .. } => {
                self.budgets.extend(BudgetStop::from_event(&event.kind));
            }
            EventKind::Note { cell, text } => self.notes.push(RunNote {
                cell: *cell,
                text: text.clone(),
            }),
            EventKind::RunFinished(totals) => self.totals = Some(totals.clone()),
            // Blobs are a matter of the store; no view shows them on their own.
            EventKind::BlobStored(_) | EventKind::RevisionPlanned { .. } => {}
            EventKind::Unknown(_) => self.unknown += 1,
        }
    }

    /// Returns the cell's name, if its plan and the header are known.
    pub fn cell_name(&self, cell: CellIx) -> Option<CellName> {
        Some(self.cell_name_ref(cell)?.to_owned())
    }

    /// As [`RunState::cell_name`], without a copy.
    pub fn cell_name_ref(&self, cell: CellIx) -> Option<CellNameRef<'_>> {
        let PlanPosition { transcript, key } = self.cells.get(cell.index())?.planned?;
        let transcript = &self.transcripts.get(transcript as usize)?.source;
        self.header.as_ref()?.cell_name(transcript, &key)
    }

    fn apply_plan(&mut self, transcript: &TranscriptRef, first: CellIx, keys: &[CellKey]) {
        let at = first.index();
        // A damaged log may repeat a plan, or name a number for which no memory would suffice.
        if at < self.cells.len() || at - self.cells.len() > MAX_GAP {
            self.stray += 1;
            return;
        }
        // If a plan is lost, empty cells keep the later cells at the position of their number.
        self.cells.resize_with(at, CellState::default);
        let place = u32::try_from(self.transcripts.len()).unwrap_or(u32::MAX);
        let cells = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        self.transcripts.push(TranscriptState {
            source: transcript.clone(),
            first,
            cells,
        });
        self.cells.extend(keys.iter().map(|key| CellState {
            planned: Some(PlanPosition {
                transcript: place,
                key: *key,
            }),
            ..CellState::default()
        }));
    }

    /// Marks a call without a recorded tool response, if the run uses recorded ones.
    fn mark_missed(&mut self, of: CellIx, turn: TurnIx, nth: CallIx, fact: &ToolFact) {
        let Some(header) = self
            .header
            .as_ref()
            // Nearly every fact ends here, before the lookups.
            .filter(|header| fact.is_evidence_miss(header))
        else {
            return;
        };
        let trace = self
            .cells
            .get_mut(of.index())
            .map(|cell| &mut cell.judge_trace);
        let made = trace.and_then(|trace| trace.get_mut(usize::from(turn.0)));
        let made = made.and_then(|turn| turn.calls.get_mut(usize::from(nth.0)));
        if let Some(made) = made {
            made.evidence_missed = header.has_evidence_for(&made.name);
        }
    }

    fn update_cell(&mut self, cell: CellIx, change: impl FnOnce(&mut CellState)) {
        match self.cells.get_mut(cell.index()) {
            Some(cell) => change(cell),
            None => self.stray += 1,
        }
    }
}

impl RunHeader {
    /// Returns the query for the label of a cell's decision; `None` for a decision about one message, because a label
    /// is about a whole transcript.
    pub fn label_query<'a>(
        &'a self,
        transcript: &'a TranscriptRef,
        key: &CellKey,
    ) -> Option<LabelQuery<'a>> {
        if key.message.is_some() {
            return None;
        }
        let eval = self.evals.get(key.eval as usize)?;
        Some(LabelQuery {
            transcript: &transcript.id,
            transcript_digest: Some(&transcript.digest),
            rubric: &self.rubrics.get(eval.rubric as usize)?.id,
            eval: &eval.id,
            question: eval.question.as_ref(),
            later_name: None,
            is_shot: eval.is_shot(&transcript.id),
        })
    }

    /// Returns a cell's name from its transcript and key, if the header describes its eval and judge.
    pub fn cell_name<'a>(
        &'a self,
        transcript: &'a TranscriptRef,
        key: &CellKey,
    ) -> Option<CellNameRef<'a>> {
        let eval = self.evals.get(key.eval as usize)?;
        let rubric = self.rubrics.get(eval.rubric as usize)?;
        let judge = match key.judge {
            Some(judge) => Some(self.judges.get(judge as usize)?.config.name.as_str()),
            None => None,
        };
        Some(CellNameRef {
            transcript: &transcript.id,
            rubric: &rubric.id,
            eval: &eval.id,
            message: key.message,
            judge,
            repeat: key.repeat,
        })
    }
}

impl CellState {
    fn set_result(&mut self, result: &Arc<CellResult>, at: Millis) {
        self.by_human |= result.by_human;
        self.result = Some(Arc::clone(result));
        self.ended = Some(at);
        self.phase = CellPhase::Done;
    }

    fn apply_resumed(&mut self, how: &GateRelease) {
        // A person who only lets the trace continue changes nothing.
        self.by_human |= how.is_edit();
        self.phase = CellPhase::Waiting;
    }

    /// Returns the turn with that number and adds missing turns; `None` for a number above [`MAX_INDEX`].
    fn turn_mut(&mut self, turn: TurnIx) -> Option<&mut TurnState> {
        let at = usize::from(turn.0);
        if at >= self.judge_trace.len() && at < MAX_INDEX {
            self.judge_trace.resize_with(at + 1, TurnState::default);
        }
        self.judge_trace.get_mut(at)
    }

    fn apply_turn_fact(&mut self, turn: TurnIx, fact: &TurnFact, at: Millis) {
        // The phase is a copy, because `turn_mut` borrows the whole cell until the end of the match.
        let mut phase = self.phase;
        let Some(state) = self.turn_mut(turn) else {
            return;
        };
        match fact {
            TurnFact::Started { request, dropped } => {
                // `clone_from` reuses the memory of an earlier value.
                state.request.clone_from(request);
                state.unsent = false;
                state.dropped.clone_from(dropped);
                state.started = at;
                phase = CellPhase::Waiting;
            }
            TurnFact::Held { by, about } => {
                let until = about.map(|about| at + about);
                phase = CellPhase::Held { by: *by, until };
            }
            TurnFact::AttemptStarted { attempt } => {
                state.attempts.entry(*attempt).or_default();
                phase = CellPhase::Waiting;
            }
            TurnFact::Delta {
                attempt,
                part,
                text,
            } => {
                state
                    .attempts
                    .entry(*attempt)
                    .or_default()
                    .push(*part, text);
                state.first_delta_at.get_or_insert(at);
                // The first delta shows that the server has begun to reply.
                phase = CellPhase::Streaming;
            }
            TurnFact::AttemptFailed {
                attempt,
                status,
                why,
                retry_in,
                billed,
                wait_why,
                exchange,
            } => {
                // The deltas of a failed attempt are void.
                state.first_delta_at = None;
                let failed = state.attempts.entry(*attempt).or_default();
                failed.failed = Some(AttemptFailure {
                    status: *status,
                    why: why.clone(),
                    retry_in: *retry_in,
                });
                failed.wait_why.clone_from(wait_why);
                failed.exchange.clone_from(exchange);
                if let Some(billed) = billed {
                    // A server may charge for a failed attempt, so its tokens count for the turn.
                    state.usage = Some(state.usage.unwrap_or_default().plus(*billed));
                }
                if let Some(wait) = retry_in {
                    phase = CellPhase::BackingOff { until: at + *wait };
                }
            }
            TurnFact::Finished {
                attempt,
                native,
                resendable,
                reply,
                usage,
                exchange,
            } => {
                // Older logs have no exchange; without it, no empty attempt is created.
                if exchange.is_some() {
                    let done = state.attempts.entry(*attempt).or_default();
                    done.exchange.clone_from(exchange);
                }
                state.finished = Some(AttemptReply {
                    attempt: *attempt,
                    reply: reply.clone(),
                });
                state.native.clone_from(native);
                state.resendable = *resendable;
                state.finished_at = Some(at);
                state.usage = Some(state.usage.unwrap_or_default().plus(*usage));
            }
            TurnFact::VerdictReached(verdict) => state.verdict = Some((**verdict).clone()),
            TurnFact::VerdictUnparsed { why, raw } => {
                state.unparsed = Some(UnparsedVerdict {
                    why: why.clone(),
                    raw: raw.clone(),
                });
            }
        }
        self.phase = phase;
    }

    fn apply_pending(&mut self, pending: &PendingPart, at: Millis) {
        match pending {
            PendingPart::Response(pending) => {
                let turn = self.judge_trace.get_mut(usize::from(pending.turn.0));
                let call = turn.and_then(|turn| turn.calls.get_mut(usize::from(pending.call.0)));
                if let Some(call) = call {
                    call.pending = Some(pending.response.clone());
                }
            }
            PendingPart::Request(pending) => {
                if let Some(turn) = self.turn_mut(pending.turn) {
                    turn.request.clone_from(&pending.request);
                    turn.unsent = true;
                    turn.started = at;
                }
            }
        }
    }

    fn apply_tool_fact(&mut self, turn: TurnIx, call: CallIx, fact: &ToolFact, at: Millis) {
        let Some(turn) = self.turn_mut(turn) else {
            return;
        };
        let calls = &mut turn.calls;
        let nth = usize::from(call.0);
        // A lost event must not shift the positions of later calls.
        if nth >= calls.len() && nth < MAX_INDEX {
            calls.resize_with(nth + 1, CallState::default);
        }
        let Some(call) = calls.get_mut(nth) else {
            return;
        };
        call.apply(fact, at);
        // Tools of one turn run at the same time, so the phase counts all of them.
        let running = calls
            .iter()
            .filter(|c| c.started && c.finished.is_none())
            .count();
        self.phase = match u16::try_from(running).unwrap_or(u16::MAX) {
            0 => CellPhase::Waiting,
            n => CellPhase::RunningTools(n),
        };
    }
}

impl AttemptState {
    fn push(&mut self, part: DeltaPart, text: &str) {
        match part {
            DeltaPart::Text => self.text.push_str(text),
            DeltaPart::Thought => self.thought.push_str(text),
            DeltaPart::Args(call) => self.args.entry(call).or_default().push_str(text),
        }
    }
}

impl CallState {
    /// Returns the response that the judge got, or gets after a person's decision.
    pub fn shown_response(&self) -> Option<&RecordedToolResponse> {
        let got = self.finished.as_ref().map(|finished| &finished.response);
        got.or(self.pending.as_ref())
    }

    /// Reports whether a person changed the arguments.
    pub fn is_edited_by_hand(&self) -> bool {
        self.changes.iter().any(ArgumentChange::is_by_hand)
    }

    fn apply(&mut self, fact: &ToolFact, at: Millis) {
        match fact {
            ToolFact::Received { id, name, raw } => {
                self.received_at = at;
                self.id.clone_from(id);
                self.name.clone_from(name);
                self.raw.clone_from(raw);
            }
            ToolFact::Repaired { canonical, changes } => {
                self.canonical = Some(canonical.clone());
                self.changes.clone_from(changes);
            }
            ToolFact::Validated { values, coerced } => {
                self.values = Some(values.clone());
                self.coerced.clone_from(coerced);
            }
            ToolFact::Rejected { rule, text } => {
                self.pending = None;
                self.rejected = Some(CallRejection {
                    rule: rule.clone(),
                    text: text.clone(),
                });
            }
            ToolFact::Started => {
                self.started = true;
                self.started_at = Some(at);
            }
            ToolFact::Hop(hop) => self.hops.push(hop.clone()),
            ToolFact::Finished {
                answer,
                source,
                elapsed,
                retried,
            } => {
                self.pending = None;
                self.finished = Some(FinishedCall {
                    response: answer.clone(),
                    source: source.clone(),
                    elapsed: *elapsed,
                });
                self.retried.clone_from(retried);
            }
        }
    }
}
