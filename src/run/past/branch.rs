//! A branch: a run of one cell that continues a recorded judge trace from one of its steps.
//!
//! Responsible for the recorded prefix, for the form in which the judge can get it, and for the files of the old run. Does
//! not judge.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::resume::ResumedRun;
use crate::event::{
    BlobSource, BranchPoint, CallState, CellState, EventKind, EventTag, ParentCause, ParentRun,
    PendingPart, RunPurpose, StepId, StepPart, StoredText, TurnState, list_trace_steps,
};
use crate::handlers::EvalTypeRegistry;
use crate::judge::{
    BranchChange, EvidenceMissPolicy, RecordedCall, RecordedTurn, RequestEdit, TracePrefix,
};
use crate::model::{
    CellIx, JudgeConfig, RawJson, Rejection, RunId, SUBMIT_VERDICT, TokenUsage, ToolResponse,
    TranscriptRef,
};
use crate::provider::CompletedReply;
use crate::record::{RecordError, RecordedRun, RunStore};
use crate::run::{CachePolicy, DecisionFilter, RunError, RunOptions, RunUsageError};
use crate::workspace::Workspace;

/// The trace that a run continues, and the change that it makes.
#[derive(Debug, Clone, PartialEq)]
pub struct BranchOrder {
    /// The run with the trace.
    pub run: RunId,
    /// The cell.
    pub cell: CellIx,
    /// The step from which the branch continues.
    pub at: StepId,
    /// The change at that step.
    pub change: Option<BranchChange>,
    /// Another judge, by its name.
    pub judge: Option<String>,
    /// Another model of the judge.
    pub model: Option<String>,
}

/// A branch before its start.
pub(in crate::run) struct BranchPlan {
    resumed: ResumedRun,
    order: BranchOrder,
    /// The name of the decision.
    decision: String,
    /// The judge of the recorded trace.
    judge: JudgeConfig,
    prefix: TracePrefix,
    notes: Vec<String>,
}

impl BranchPlan {
    /// Reads the recorded trace.
    pub(in crate::run) fn read(store: &RunStore, order: &BranchOrder) -> Result<Self, RunError> {
        let run = store
            .resolve(&order.run.0)
            .map_err(RunUsageError::ResumedRun)?;
        let resumed = ResumedRun::read(&run).map_err(RunUsageError::ResumedRun)?;
        let state = run.read_state()?;
        let error = |why: String| -> RunError {
            RunUsageError::NotBranchable {
                run: run.id.clone(),
                why,
            }
            .into()
        };
        let (Some(name), Some(cell)) = (
            state.cell_name(order.cell),
            state.cells.get(order.cell.index()),
        ) else {
            return Err(error(format!("it has no cell {}", order.cell.0)));
        };
        let judge = cell.planned.and_then(|planned| planned.key.judge);
        let judge = judge.and_then(|judge| resumed.header.judges.get(judge as usize));
        let Some(judge) = judge.map(|spec| spec.config.clone()) else {
            return Err(error(format!("no judge judged {name}")));
        };
        check_step(cell, order).map_err(error)?;
        let parent = resumed.header.branch_point();
        let prefix = TracePrefix {
            run: run.id.clone(),
            at: order.at,
            turns: Vec::new(),
            next_request: None,
            next_edit: None,
            text_turns: parent.as_ref().map_or(0, |parent| parent.text_turns),
            change: order.change.clone(),
            inherited: find_inherited_change(&run, parent.as_ref(), order)?,
        };
        let mut plan = Self {
            order: order.clone(),
            decision: name.decision_name().to_string(),
            judge,
            prefix,
            notes: Vec::new(),
            resumed,
        };
        let edits = read_edits(&run, order.cell, &*plan.resumed.blobs)?;
        plan.read_turns(cell, &edits).map_err(error)?;
        Ok(plan)
    }

    /// Reads the turns up to the step. `edits` are those of a person in the cell's trace.
    fn read_turns(&mut self, cell: &CellState, edits: &[RequestEdit]) -> Result<(), String> {
        let find_edit = |request: &[String]| {
            let request = request.concat();
            edits.iter().rfind(|edit| edit.after == request).cloned()
        };
        let kept = count_kept_turns(cell, self.order.at);
        let blobs = Arc::clone(&self.resumed.blobs);
        for turn in cell.judge_trace.iter().take(kept) {
            let mut recorded = read_turn(turn, &*blobs)?;
            recorded.edit = find_edit(&recorded.request);
            self.prefix.turns.push(recorded);
        }
        if let Some(next) = cell.judge_trace.get(kept) {
            let request = read_pieces(&next.request, &*blobs)?;
            self.prefix.next_edit = find_edit(&request);
            self.prefix.next_request = Some(request);
        }
        Ok(())
    }

    /// Returns the workspace and the options of the branch: the files of the old run, and one cell.
    ///
    /// Decides here in which form the judge gets the prefix, because that depends on the judge.
    pub(in crate::run) fn restore_workspace(
        &mut self,
        today: &Workspace,
        registry: &EvalTypeRegistry,
        options: RunOptions,
    ) -> Result<(Workspace, RunOptions), RunError> {
        let (max_cost_usd, concurrency) = (options.max_cost_usd, options.concurrency);
        let given = RunOptions {
            filter: None,
            judge: None,
            repeat: None,
            ..options
        };
        let (mut was, options) = self.resumed.restore_workspace(today, registry, given)?;
        let name = self.order.judge.clone();
        let name = name.unwrap_or_else(|| self.judge.name.clone());
        if let Some(model) = &self.order.model {
            let Some(config) = was.judges.get_mut(&name) else {
                return Err(self.error(format!("no judge is called `{name}`")));
            };
            config.model.clone_from(model);
        }
        let config = was.find_judge(&name).cloned();
        if let Some(config) = config {
            self.choose_form(&config);
        }
        // A call that is made again must not get the recorded response. All other calls get the facts of the old run.
        let refetches = self.order.change == Some(BranchChange::Refetch);
        was.replayed_evidence_run = (!refetches).then(|| self.resumed.run.0.clone());
        let options = RunOptions {
            filter: Some(DecisionFilter::from_names([self.decision.clone()])),
            judge: Some(name),
            repeat: Some(1),
            limit: None,
            sample: None,
            evidence_run: None,
            evidence_miss: EvidenceMissPolicy::Live,
            // A branch neither uses recorded verdicts nor becomes one.
            cache: CachePolicy::Off,
            purpose: RunPurpose::Branch,
            parent: Some(ParentRun {
                run: self.resumed.run.clone(),
                cell: Some(self.order.cell),
                turn: Some(self.order.at.turn),
                cause: ParentCause::Fork,
            }),
            // The run knows only this transcript.
            has_chosen_transcripts: true,
            max_cost_usd,
            concurrency,
            ..options
        };
        Ok((was, options))
    }

    /// Chooses whether the judge gets the prefix as its own messages, as a text, or only a part of it.
    fn choose_form(&mut self, judge: &JudgeConfig) {
        if self.order.judge.is_some() {
            // Without the request before the edit, the texts of the old judge would replace those of this one.
            self.prefix.next_edit.take_if(|edit| edit.before.is_none());
        }
        let turns = self.prefix.turns.len();
        if turns <= self.prefix.text_turns {
            self.prefix.text_turns = self.prefix.text_turns.min(turns);
            return;
        }
        let was = &self.judge;
        let is_same = (was.provider, &was.model, &was.base_url)
            == (judge.provider, &judge.model, &judge.base_url);
        if !is_same {
            self.prefix.text_turns = turns;
            self.notes.push(format!(
                "judge {} can't take over the messages of {} ({}); it gets the first {} as a text",
                judge.name,
                was.name,
                was.model,
                name_turns(turns),
            ));
            return;
        }
        let skipped = self.prefix.text_turns;
        let mut later = self.prefix.turns.iter().enumerate().skip(skipped);
        let Some((blocked, _)) = later.find(|(_, turn)| !turn.resendable) else {
            return;
        };
        let number = blocked + 1;
        if self.order.change.is_none() {
            self.prefix.turns.truncate(blocked);
            self.prefix.next_request = None;
            self.prefix.next_edit = None;
            self.order.at = StepId {
                turn: crate::model::TurnIx(u16::try_from(blocked).unwrap_or(u16::MAX)),
                part: StepPart::Prompt,
            };
            self.prefix.at = self.order.at;
            self.notes.push(format!(
                "the reply of turn {number} can't be sent again, because its recording is redacted or incomplete; the \
                 branch continues from {}",
                self.order.at
            ));
        } else {
            self.prefix.text_turns = turns;
            self.notes.push(format!(
                "the reply of turn {number} can't be sent again, because its recording is redacted or incomplete; the \
                 judge gets the first {} as a text",
                name_turns(turns)
            ));
        }
    }

    /// Returns the entry of [`RunHeader::plan`] that describes the branch.
    pub(in crate::run) fn plan_entry(&self) -> Option<(String, serde_json::Value)> {
        let inherited = self.prefix.inherited.as_ref();
        let change = self.order.change.as_ref().or(inherited);
        let judge = self.order.judge.clone();
        let judge = judge.filter(|name| *name != self.judge.name);
        // The model that the user wrote is a change, unless the recorded judge already has it.
        let model = self.order.model.clone();
        let model = model.filter(|model| judge.is_some() || *model != self.judge.model);
        BranchPoint {
            step: self.order.at.to_string(),
            turns: self.prefix.turns.len(),
            set: change.map(|change| change.part().to_owned()),
            text_turns: self.prefix.text_turns,
            judge,
            model,
        }
        .to_plan_entry()
    }

    /// Returns the prefix for the judge.
    pub(in crate::run) fn prefix(&self) -> Arc<TracePrefix> {
        Arc::new(self.prefix.clone())
    }

    /// Returns the old run with only the transcript of the cell, and that transcript.
    pub(in crate::run) fn into_transcript(
        self,
    ) -> Result<(ResumedRun, TranscriptRef, Vec<String>), RunError> {
        let cell = self.order.cell;
        let Some(transcript) = self.resumed.find_transcript(cell) else {
            return Err(self.error(format!("it has no transcript of cell {}", cell.0)));
        };
        Ok((self.resumed, transcript, self.notes))
    }

    fn error(&self, why: String) -> RunError {
        let run = self.resumed.run.clone();
        RunUsageError::NotBranchable { run, why }.into()
    }
}

fn name_turns(turns: usize) -> String {
    crate::model::pluralize(turns as u64, "turn")
}

/// Checks that the trace has the step and that the change fits it.
fn check_step(cell: &CellState, order: &BranchOrder) -> Result<(), String> {
    let steps = list_trace_steps(cell);
    if !steps.iter().any(|step| step.id == order.at) {
        let all: Vec<String> = steps.iter().map(|step| step.id.to_string()).collect();
        return Err(if all.is_empty() {
            "the cell has no judge trace".to_owned()
        } else {
            format!(
                "the trace has no step {}; it has {}",
                order.at,
                all.join(", ")
            )
        });
    }
    let made = match order.at.part {
        StepPart::Call(_) | StepPart::Response(_) => crate::event::find_call(cell, order.at),
        _ => None,
    };
    let is_tool_call = made.is_some_and(|made| made.name != SUBMIT_VERDICT);
    match &order.change {
        Some(BranchChange::Answer(_) | BranchChange::Arguments(_) | BranchChange::Refetch)
            if !is_tool_call =>
        {
            Err(format!(
                "step {} is not a tool call; name one such as `1.call.1` to change its answer or arguments",
                order.at
            ))
        }
        Some(BranchChange::Prompt(_) | BranchChange::Criteria(_))
            if order.at.turn.0 != 0 || order.at.part != StepPart::Prompt =>
        {
            Err(format!(
                "the prompt and the criteria are in the first request; write `1.prompt` and not `{}`",
                order.at
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the number of turns whose replies the branch takes from the recording.
fn count_kept_turns(cell: &CellState, at: StepId) -> usize {
    let turn = usize::from(at.turn.0);
    let keeps_reply = matches!(at.part, StepPart::Call(_) | StepPart::Response(_))
        && cell.judge_trace.get(turn).is_some_and(|turn| {
            // A reply with a verdict ends the trace, so the branch asks for another one.
            turn.finished.is_some() && turn.calls.iter().any(|call| call.name != SUBMIT_VERDICT)
        });
    turn + usize::from(keeps_reply)
}

fn read_turn(turn: &TurnState, blobs: &dyn BlobSource) -> Result<RecordedTurn, String> {
    let Some(finished) = &turn.finished else {
        return Err("its trace ends before that step".to_owned());
    };
    let mut native: Vec<Arc<RawValue>> = Vec::with_capacity(turn.native.len());
    for item in &turn.native {
        let text = read_text(item, blobs)?;
        let item = RawValue::from_string(text);
        native.push(Arc::from(item.map_err(|error| {
            format!("an item of a recorded reply is not JSON: {error}")
        })?));
    }
    let calls = turn.calls.iter().map(|call| read_call(call, blobs));
    Ok(RecordedTurn {
        request: read_pieces(&turn.request, blobs)?,
        edit: None,
        attempt: finished.attempt,
        // Recordings of other programs have replies without native items.
        resendable: turn.resendable && !native.is_empty(),
        finished: CompletedReply {
            native,
            reply: finished.reply.clone(),
            usage: TokenUsage::default(),
        },
        calls: calls.collect::<Result<_, _>>()?,
    })
}

fn read_call(call: &CallState, blobs: &dyn BlobSource) -> Result<RecordedCall, String> {
    if let Some(rejected) = &call.rejected {
        return Ok(RecordedCall::Rejected(Rejection {
            rule: rejected.rule.clone(),
            text: rejected.text.clone(),
        }));
    }
    let (Some(finished), Some(values)) = (&call.finished, &call.values) else {
        return Ok(RecordedCall::Open);
    };
    let recorded = &finished.response;
    Ok(RecordedCall::Answered {
        response: ToolResponse {
            text: read_text(&recorded.text, blobs)?,
            is_error: recorded.is_error,
            bytes: recorded.bytes,
            truncated: recorded.truncated,
            // The recorded body stays in that run.
            raw: None,
            content_type: recorded.content_type.clone(),
            hidden: recorded.hidden,
            data_version: recorded.data_version.clone(),
            transient: false,
        },
        source: finished.source.clone(),
        values: values.clone(),
        coerced: call.coerced.clone(),
    })
}

/// Returns the texts that a person wrote in the trace of a cell. Edited requests are among them, each with the request
/// before the edit if the pause recorded it.
fn read_edits(
    run: &RecordedRun,
    cell: CellIx,
    blobs: &dyn BlobSource,
) -> Result<Vec<RequestEdit>, RecordError> {
    let mut edits = Vec::new();
    let mut before = None;
    for event in run.events_with_tags(&[EventTag::Paused, EventTag::Resumed])? {
        match event?.kind {
            EventKind::Paused {
                cell: at, pending, ..
            } if at == cell => {
                before = match pending.as_deref() {
                    Some(PendingPart::Request(pending)) => {
                        let pieces = read_pieces(&pending.request, blobs).ok();
                        pieces.map(|pieces| pieces.concat())
                    }
                    _ => None,
                };
            }
            EventKind::Resumed { cell: at, how } if at == cell => {
                let before = before.take();
                // A lost blob is not the request of a turn, because reading that turn fails.
                let after = how
                    .edit
                    .as_ref()
                    .and_then(|edit| read_text(edit, blobs).ok());
                edits.extend(after.map(|after| RequestEdit { before, after }));
            }
            _ => {}
        }
    }
    Ok(edits)
}

fn read_pieces(pieces: &[StoredText], blobs: &dyn BlobSource) -> Result<Vec<String>, String> {
    pieces.iter().map(|piece| read_text(piece, blobs)).collect()
}

fn read_text(text: &StoredText, blobs: &dyn BlobSource) -> Result<String, String> {
    match text {
        StoredText::Text(text) => Ok(text.clone()),
        StoredText::Blob(blob) => {
            let bytes = blobs.get(&blob.hash).map_err(|error| error.to_string())?;
            String::from_utf8(bytes).map_err(|_| format!("blob {} is not text", blob.hash.short()))
        }
    }
}

/// Returns the change of the first request that the old run made, because it is a branch itself.
fn find_inherited_change(
    run: &RecordedRun,
    parent: Option<&BranchPoint>,
    order: &BranchOrder,
) -> Result<Option<BranchChange>, RunError> {
    let part = parent.and_then(|parent| parent.set.as_deref());
    let part = part.filter(|part| matches!(*part, "prompt" | "criteria"));
    let replaces = matches!(
        order.change,
        Some(BranchChange::Prompt(_) | BranchChange::Criteria(_))
    );
    let Some(part) = part.filter(|_| !replaces) else {
        return Ok(None);
    };
    let blobs = run.blobs();
    let mut found = None;
    run.for_each_event(|event| {
        if let EventKind::Resumed { cell, how } = &event.kind
            && *cell == order.cell
            && found.is_none()
        {
            found = how
                .edit
                .as_ref()
                .and_then(|edit| read_text(edit, &*blobs).ok());
        }
    })?;
    Ok(found.map(|text| match part {
        "prompt" => BranchChange::Prompt(text),
        _ => BranchChange::Criteria(text),
    }))
}

/// Parses the content of a file for `--set PART=FILE`. The error is a sentence.
pub fn parse_branch_change(part: &str, text: &str) -> Result<BranchChange, String> {
    match part {
        // A judge would be asked without a question. An answer of a tool can be empty.
        "prompt" | "criteria" | "rubric" if text.trim().is_empty() => {
            Err(format!("the {part} must not be empty"))
        }
        "answer" => Ok(BranchChange::Answer(text.to_owned())),
        "prompt" => Ok(BranchChange::Prompt(text.to_owned())),
        "criteria" | "rubric" => Ok(BranchChange::Criteria(text.to_owned())),
        "arguments" => match RawJson::parse(text) {
            Ok(json) if crate::model::is_json_object(text) => Ok(BranchChange::Arguments(json)),
            Ok(_) => {
                Err("the arguments must be a JSON object, such as {\"url\": \"…\"}".to_owned())
            }
            Err(error) => Err(format!("the arguments are not JSON: {error}")),
        },
        other => Err(format!(
            "`{other}` can't be set; write answer, arguments, prompt or criteria"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_question_is_refused_and_empty_answer_is_set() {
        for part in ["prompt", "criteria", "rubric"] {
            let refused = parse_branch_change(part, " \n").expect_err("it is empty");
            assert_eq!(refused, format!("the {part} must not be empty"));
        }
        let answer = parse_branch_change("answer", "").expect("a tool can answer nothing");
        assert_eq!(answer, BranchChange::Answer(String::new()));
    }
}
