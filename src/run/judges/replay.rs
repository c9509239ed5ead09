//! The `replay` judge, which repeats what a recorded run's judge did for the cell of the same name.
//!
//! Responsible for finding and emitting the recorded facts. Does not send or decide anything. It emits the facts
//! unchanged, copies large texts into this run, and returns the recorded result, marked with its run. The present bounds
//! decide its verdict. A cell that the recorded run does not contain is a `judge_error`, and so is a cell whose transcript
//! has another text now.

use std::collections::HashMap;
use std::sync::Arc;

use super::live_cell_names::{LiveCell, LiveCellNames};
use super::pool::{decide_again, mark_as_cached};
use crate::clock::BoxFuture;
use crate::event::{
    BlobSource, CallCx, EvalSpec, EventKind, EventTag, RunHeader, StoredText, ToolFact, TurnFact,
};
use crate::handlers::{JudgeBackend, JudgeRequest, JudgedParams};
use crate::model::{
    ArgumentChange, Cause, CauseSet, CellIx, CellName, CellResult, Digest, Outcome, RunId,
};
use crate::record::{PlannedCell, RecordError, RecordedPlan, RecordedRun};

/// The events that [`RecordedTraces`] reads; the reader skips the others without parsing them.
const REPLAYED_EVENT_TAGS: &[EventTag] = &[
    EventTag::RunStarted,
    EventTag::CellsPlanned,
    EventTag::Turn,
    EventTag::Tool,
    EventTag::CellFinished,
];

/// Recorded judge traces by decision and repeat, each with its judge.
///
/// A single judge's trace is used under any judge name, because the replay judge has another name. Of several judges,
/// the trace of the same name is used.
pub(in crate::run) struct RecordedTraces {
    run: RunId,
    traces: HashMap<CellName, Vec<RecordedJudgeTrace>>,
    /// The panel members by eval. A member that was not asked does not use another member's trace.
    panels: HashMap<PanelKey, Vec<String>>,
    blobs: Arc<dyn BlobSource>,
}

/// The eval that a panel judges.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PanelKey {
    rubric: String,
    eval: String,
}

/// A trace with the name of its judge.
struct RecordedJudgeTrace {
    judge: String,
    trace: RecordedTrace,
}

#[derive(Default)]
struct RecordedTrace {
    /// The digest of the transcript that the judge read.
    transcript: Option<Digest>,
    facts: Vec<EventKind>,
    result: Option<CellResult>,
}

impl RecordedTraces {
    /// Reads the judged cells of a run.
    pub(in crate::run) fn read(run: &RecordedRun) -> Result<Self, RecordError> {
        let mut plan = RecordedPlan::default();
        let mut traces: HashMap<CellName, Vec<RecordedJudgeTrace>> = HashMap::new();
        for event in run.events_with_tags(REPLAYED_EVENT_TAGS)? {
            let event = event?;
            // An event without a cell belongs to the plan.
            let Some(cell) = event.kind.cell() else {
                plan.apply(&event);
                continue;
            };
            // Checks have no trace to repeat.
            let planned = plan.cell(cell);
            let transcript = planned.map(|planned| planned.transcript.digest.clone());
            let Some((name, judge)) = planned.and_then(judged_cell_name) else {
                continue;
            };
            let trace = trace_entry(&mut traces, name, judge);
            trace.transcript = transcript;
            match event.kind {
                EventKind::CellFinished { result, .. } => {
                    trace.result = Some(Arc::unwrap_or_clone(result));
                }
                fact => trace.facts.push(fact),
            }
        }
        let header = match plan.header {
            Some(header) => *header,
            // This call fails with the reason why the log has no header.
            None => run.read_header()?,
        };
        Ok(Self {
            run: run.id.clone(),
            traces,
            panels: collect_panel_judges(&header),
            blobs: run.blobs(),
        })
    }

    /// Returns the recorded facts and result of a cell. The error is a sentence.
    fn find(&self, live: &LiveCell) -> Result<(&[EventKind], &CellResult), String> {
        let name = &live.name;
        let decision = strip_judge(name.clone());
        let ended = |by: &RecordedJudgeTrace| by.trace.result.is_some().then(|| by.judge.clone());
        // Step: find the recorded judges of this cell. A trace without a result ended early.
        let all = self.traces.get(&decision).map_or(&[][..], Vec::as_slice);
        let mut judges: Vec<String> = all.iter().filter_map(ended).collect();
        // Sort, so that the message does not depend on the order of the answers.
        judges.sort_unstable();
        // Step: choose the trace. A panel member gets only its own trace.
        let eval = PanelKey {
            rubric: name.rubric.clone(),
            eval: name.eval.clone(),
        };
        let members = self.panels.get(&eval).map_or(&[][..], Vec::as_slice);
        let member = name
            .judge
            .as_ref()
            .is_some_and(|judge| members.contains(judge));
        // One recorded judge fits any name; with several, the names must be equal.
        let at = match &judges[..] {
            [_] if !member => all.iter().position(|by| by.trace.result.is_some()),
            _ => all
                .iter()
                .position(|by| Some(&by.judge) == name.judge.as_ref()),
        };
        let found = at.and_then(|at| all.get(at)).map(|by| &by.trace);
        let run = self.run.letters();
        if let Some(trace) = found
            && let Some(result) = &trace.result
        {
            if trace.transcript.as_ref() != Some(&live.transcript) {
                return Err(format!(
                    "run {run} judged another text of the transcript {}, so its verdict is not about this one; name \
                     another judge",
                    decision.transcript
                ));
            }
            return Ok((&trace.facts, result));
        }
        Err(match judges.len() {
            0 | 1 => format!("run {run} holds no trace of {decision}"),
            _ => format!(
                "in run {run} several judges judged {decision} ({}); give the judge that replays it the name of one of them",
                judges.join(", ")
            ),
        })
    }

    async fn replay_cell(&self, live: &LiveCell, params: &JudgedParams, cx: &CallCx) -> CellResult {
        let (facts, result) = match self.find(live) {
            Ok(found) => found,
            Err(why) => return CellResult::from_error(Outcome::JudgeError, why),
        };
        for fact in facts {
            // A trace can be long, so check before each fact.
            if cx.cancel.is_cancelled() {
                return CellResult::cancelled();
            }
            for blob in collect_blobs(fact) {
                // A blob that is missing there is also missing here, and readers report it.
                if let Ok(bytes) = self.blobs.get(&blob.hash) {
                    cx.out.store_blob(&bytes).await;
                }
            }
            // The cell has another number in this run.
            cx.out.send(renumber(fact.clone(), cx.cell)).await;
        }
        // The recorded run may have had other bounds. They decide no error, and not what a person decided.
        let is_judgment = result.outcome.is_judgment();
        let mut result = match result.verdict.as_deref() {
            Some(verdict) if is_judgment && !result.by_human => {
                decide_again(result, verdict, params)
            }
            _ => result.clone(),
        };
        result.tool_causes = result.tool_causes.union(find_tool_causes(facts));
        mark_as_cached(&self.run, result)
    }
}

fn collect_panel_judges(header: &RunHeader) -> HashMap<PanelKey, Vec<String>> {
    let panel_names = |spec: &EvalSpec| {
        let rubric = header.rubrics.get(spec.rubric as usize)?.id.clone();
        let judges = spec.panel.as_ref()?.judges.iter();
        let names = judges.filter_map(|judge| header.judges.get(*judge as usize));
        let names = names.map(|judge| judge.config.name.clone()).collect();
        let eval = spec.id.clone();
        Some((PanelKey { rubric, eval }, names))
    };
    header.evals.iter().filter_map(panel_names).collect()
}

fn strip_judge(name: CellName) -> CellName {
    CellName {
        judge: None,
        ..name
    }
}

/// Returns the name of a judged cell without its judge, and the judge's name; `None` for a cell without a judge.
fn judged_cell_name(cell: PlannedCell<'_>) -> Option<(CellName, String)> {
    let mut name = cell.name()?;
    let judge = name.judge.take()?;
    Some((name, judge))
}

/// Returns the trace of `judge` in `traces`; adds an empty one if it is missing.
fn trace_entry(
    traces: &mut HashMap<CellName, Vec<RecordedJudgeTrace>>,
    name: CellName,
    judge: String,
) -> &mut RecordedTrace {
    let all = traces.entry(name).or_default();
    let position = all
        .iter()
        .position(|known| known.judge == judge)
        .unwrap_or_else(|| {
            all.push(RecordedJudgeTrace {
                judge,
                trace: RecordedTrace::default(),
            });
            all.len() - 1
        });
    &mut all[position].trace
}

/// The replay judge of one run, with the names of the live cells.
pub(in crate::run) struct ReplayJudge {
    pub(in crate::run) replay: Arc<RecordedTraces>,
    pub(in crate::run) names: Arc<LiveCellNames>,
}

impl JudgeBackend for ReplayJudge {
    fn judge<'a>(&'a self, request: &'a JudgeRequest, cx: &'a CallCx) -> BoxFuture<'a, CellResult> {
        Box::pin(async move {
            match self.names.find(request.cell) {
                Some(live) => self.replay.replay_cell(&live, &request.params, cx).await,
                None => CellResult::from_error(Outcome::JudgeError, "this cell has no name"),
            }
        })
    }
}

/// Returns the causes that the tool calls of a trace are. Runs of earlier versions have calls without causes.
fn find_tool_causes(facts: &[EventKind]) -> CauseSet {
    let mut causes = CauseSet::EMPTY;
    for kind in facts {
        let EventKind::Tool { fact, .. } = kind else {
            continue;
        };
        match fact {
            ToolFact::Rejected { .. } => causes.insert(Cause::Refused),
            ToolFact::Finished { answer, .. } if answer.is_error => {
                causes.insert(Cause::FetchError);
            }
            // Without a change, only the spelling differs. A person's edit is not a repair.
            ToolFact::Repaired { changes, .. }
                if !changes.is_empty() && !changes.iter().any(ArgumentChange::is_by_hand) =>
            {
                causes.insert(Cause::Repaired);
            }
            _ => {}
        }
    }
    causes
}

fn renumber(mut kind: EventKind, to: CellIx) -> EventKind {
    if let EventKind::Turn { cell, .. } | EventKind::Tool { cell, .. } = &mut kind {
        *cell = to;
    }
    kind
}

/// Returns the blobs that a fact names.
fn collect_blobs(fact: &EventKind) -> Vec<&crate::model::Blob> {
    fn blob_of(piece: &StoredText) -> Option<&crate::model::Blob> {
        match piece {
            StoredText::Blob(blob) => Some(blob),
            StoredText::Text(_) => None,
        }
    }
    match fact {
        EventKind::Turn { fact, .. } => match fact {
            TurnFact::Started { request, .. } => request.iter().filter_map(blob_of).collect(),
            TurnFact::Finished { native, .. } => native.iter().filter_map(blob_of).collect(),
            TurnFact::VerdictUnparsed { raw, .. } => blob_of(raw).into_iter().collect(),
            _ => Vec::new(),
        },
        EventKind::Tool {
            fact: ToolFact::Finished { answer, .. },
            ..
        } => blob_of(&answer.text)
            .into_iter()
            .chain(&answer.raw)
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{RecordedToolResponse, ToolResponseSource};
    use crate::model::{CallIx, Millis, TurnIx};

    fn tool_fact(fact: ToolFact) -> EventKind {
        EventKind::Tool {
            cell: CellIx(0),
            turn: TurnIx(0),
            call: CallIx(0),
            fact,
        }
    }

    fn repair(changes: Vec<ArgumentChange>) -> EventKind {
        tool_fact(ToolFact::Repaired {
            canonical: serde_json::from_str("{}").expect("JSON"),
            changes,
        })
    }

    fn response(is_error: bool) -> EventKind {
        tool_fact(ToolFact::Finished {
            answer: RecordedToolResponse {
                text: StoredText::Text("page".to_owned()),
                is_error,
                bytes: 4,
                truncated: false,
                raw: None,
                content_type: None,
                hidden: 0,
                data_version: None,
            },
            source: ToolResponseSource::Live,
            elapsed: Millis(0),
            retried: None,
        })
    }

    #[test]
    fn replayed_trace_has_the_causes_of_its_calls() {
        let quoted = ArgumentChange {
            path: String::new(),
            what: "added quotes around 1 key".to_owned(),
        };
        let rejected = tool_fact(ToolFact::Rejected {
            rule: "parameters".to_owned(),
            text: "Error".to_owned(),
        });
        for (facts, expected) in [
            (vec![rejected.clone()], "refused"),
            (vec![repair(vec![quoted.clone()])], "repaired"),
            (vec![response(true)], "fetch-error"),
            (vec![repair(vec![quoted]), rejected], "refused repaired"),
            (vec![repair(Vec::new()), response(false)], ""),
            (vec![repair(vec![ArgumentChange::by_hand()])], ""),
        ] {
            let words: Vec<&str> = find_tool_causes(&facts).into();
            assert_eq!(words.join(" "), expected);
        }
    }
}
