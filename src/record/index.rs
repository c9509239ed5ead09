//! The recorded verdicts by cache key, and the recorded tool calls of a run.
//!
//! Responsible for reading them from logs. Does not decide whether a verdict is still valid. Verdicts and responses
//! that a person changed are excluded.

use std::collections::{HashMap, HashSet};

use super::recorded_plan::{PlannedCell, RecordedPlan};
use super::{RecordError, RecordedRun};
use crate::event::{
    EventKind, EventTag, RecordedToolResponse, RunEvent, StoredText, ToolFact, ToolResponseSource,
};
use crate::model::{CallIx, CellIx, CellResult, Digest, Outcome, RawJson, RunId, TurnIx};

const CALL_EVENT_TAGS: &[EventTag] = &[
    EventTag::RunStarted,
    EventTag::CellsPlanned,
    EventTag::CellStarted,
    EventTag::CellFinished,
    EventTag::Tool,
    EventTag::Resumed,
];

/// A recorded verdict that a cell with the same cache key may use.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheEntry {
    /// The run that judged it.
    pub run: RunId,
    /// The number of the cell in that run.
    pub cell: CellIx,
    /// The result: a verdict or `not_applicable`.
    pub result: CellResult,
    /// The tool responses that the verdict depends on, in order. All of them must still be valid.
    pub evidence: Vec<EvidenceUsed>,
}

/// A tool response that a verdict depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceUsed {
    /// The name of the tool.
    pub tool: String,
    /// The tool's digest at that time, if the run recorded it.
    pub tool_digest: Option<Digest>,
    /// The canonical arguments.
    pub canonical_args: RawJson,
    /// The BLAKE3 digest of the text that the model received, as recorded.
    pub response_digest: Digest,
}

/// A tool call and its response, as a run recorded it.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedToolCall {
    /// The cell whose judge made the call.
    pub cell: CellIx,
    /// The name of that cell, if its plan is known.
    pub cell_name: Option<String>,
    /// The name of the tool.
    pub tool: String,
    /// The tool's digest at that time, if the run recorded it.
    pub tool_digest: Option<Digest>,
    /// The canonical arguments.
    pub canonical_args: RawJson,
    /// The response; its texts may be blobs of that run.
    pub response: RecordedToolResponse,
}

/// The newest recorded verdict per cache key.
#[derive(Debug, Clone, Default)]
pub struct CacheIndex {
    entries: HashMap<Digest, CacheEntry>,
}

impl CacheIndex {
    /// Reads `runs`, newest first as [`super::RunStore::runs`] returns them. Also returns a sentence for each run
    /// that could not be read.
    pub fn read(runs: &[RecordedRun]) -> (Self, Vec<String>) {
        let (mut index, mut problems) = (Self::default(), Vec::new());
        // Oldest first, so that newer verdicts overwrite older ones.
        for run in runs.iter().rev() {
            if let Err(error) = index.add(run) {
                problems.push(error.to_string());
            }
        }
        (index, problems)
    }

    /// Returns the newest verdict with this key.
    pub fn get(&self, key: &Digest) -> Option<&CacheEntry> {
        self.entries.get(key)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Reports whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a run that is newer than all runs before it.
    pub fn add(&mut self, run: &RecordedRun) -> Result<(), RecordError> {
        let mut reading = RunCallReader::default();
        let (mut keys, mut results) = (HashMap::new(), Vec::new());
        for event in run.events_with_tags(CALL_EVENT_TAGS)? {
            let event = event?;
            match &event.kind {
                EventKind::CellStarted {
                    cell,
                    key: Some(key),
                } => {
                    keys.insert(*cell, key.clone());
                }
                EventKind::CellFinished { cell, result } => {
                    results.push((*cell, (**result).clone()));
                }
                _ => reading.apply(&event),
            }
        }
        let mut used: HashMap<CellIx, Vec<EvidenceUsed>> = HashMap::new();
        for call in &reading.calls {
            used.entry(call.cell).or_default().push(EvidenceUsed {
                tool: call.tool.clone(),
                tool_digest: call.tool_digest.clone(),
                canonical_args: call.canonical_args.clone(),
                response_digest: digest_piece(&call.response.text),
            });
        }
        for (cell, result) in results {
            // Errors are not cached: the next run tries again.
            let decided = result.outcome.is_verdict() || result.outcome == Outcome::NotApplicable;
            // A person's edit must not become the judge's verdict in later runs.
            if !decided || result.by_human || reading.edited_cells.contains(&cell) {
                continue;
            }
            if let Some(key) = keys.remove(&cell) {
                let entry = CacheEntry {
                    run: run.id.clone(),
                    cell,
                    result,
                    evidence: used.remove(&cell).unwrap_or_default(),
                };
                self.entries.insert(key, entry);
            }
        }
        Ok(())
    }
}

impl RecordedRun {
    /// Returns every tool call with a response, in the order of the responses, for `--replay-tools`. Excludes responses
    /// that a person wrote.
    pub fn recorded_calls(&self) -> Result<Vec<RecordedToolCall>, RecordError> {
        let mut reading = RunCallReader::default();
        for event in self.events_with_tags(CALL_EVENT_TAGS)? {
            reading.apply(&event?);
        }
        Ok(reading.calls)
    }
}

/// Returns the digest of a response's text, inline or in a blob.
fn digest_piece(text: &StoredText) -> Digest {
    match text {
        StoredText::Text(text) => Digest::hash_bytes(text.as_bytes()),
        StoredText::Blob(blob) => blob.hash.clone(),
    }
}

/// The tool calls of one run.
#[derive(Default)]
struct RunCallReader {
    plan: RecordedPlan,
    pending: HashMap<CallKey, PendingToolCall>,
    calls: Vec<RecordedToolCall>,
    edited_cells: HashSet<CellIx>,
}

/// The position of a tool call in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct CallKey {
    cell: CellIx,
    turn: TurnIx,
    call: CallIx,
}

/// A call without a response.
struct PendingToolCall {
    tool: String,
    raw_args: String,
    canonical_args: Option<RawJson>,
}

impl RunCallReader {
    fn apply(&mut self, event: &RunEvent) {
        match &event.kind {
            EventKind::Tool {
                cell,
                turn,
                call,
                fact,
            } => {
                let position = CallKey {
                    cell: *cell,
                    turn: *turn,
                    call: *call,
                };
                self.apply_tool_fact(position, fact);
            }
            // Every action except `go` changes the trace.
            EventKind::Resumed { cell, how } if how.by == "human" && how.what != "go" => {
                self.edited_cells.insert(*cell);
            }
            _ => self.plan.apply(event),
        }
    }

    fn apply_tool_fact(&mut self, position: CallKey, fact: &ToolFact) {
        match fact {
            ToolFact::Received { name, raw, .. } => {
                let open = PendingToolCall {
                    tool: name.clone(),
                    raw_args: raw.clone(),
                    canonical_args: None,
                };
                self.pending.insert(position, open);
            }
            ToolFact::Repaired { canonical, .. } => {
                if let Some(open) = self.pending.get_mut(&position) {
                    open.canonical_args = Some(canonical.clone());
                }
            }
            // A rejected call has no response that could be evidence.
            ToolFact::Rejected { .. } => {
                self.pending.remove(&position);
            }
            ToolFact::Finished { answer, source, .. } => {
                let Some(open) = self.pending.remove(&position) else {
                    return;
                };
                // The verdict rests on text that no tool returned.
                if *source == ToolResponseSource::ByHand {
                    self.edited_cells.insert(position.cell);
                    return;
                }
                // The transcript's digest is in the cache key, so these responses need no check.
                if *source == ToolResponseSource::Transcript {
                    return;
                }
                // Without a repair, the raw text is canonical, because a tool never runs with text that is not JSON.
                let Some(canonical) = open
                    .canonical_args
                    .or_else(|| RawJson::parse(&open.raw_args).ok())
                else {
                    return;
                };
                let planned = self.plan.cell(position.cell);
                let judge = planned.and_then(PlannedCell::judge);
                let decl = match judge {
                    // Without the plan, the call is kept, and only the tool's digest is missing.
                    None => None,
                    Some(judge) => match judge.tools.iter().find(|(name, _)| *name == open.tool) {
                        Some((_, digest)) => Some(digest.clone()),
                        // The function that submits a verdict is not a tool of the judge. Its response is a
                        // confirmation; if it counted as a tool response, the cache could never use such a verdict.
                        None => return,
                    },
                };
                self.calls.push(RecordedToolCall {
                    cell: position.cell,
                    cell_name: planned
                        .and_then(PlannedCell::name)
                        .map(|name| name.to_string()),
                    tool: open.tool,
                    tool_digest: decl,
                    canonical_args: canonical,
                    response: answer.clone(),
                });
            }
            ToolFact::Validated { .. } | ToolFact::Started | ToolFact::Hop(_) => {}
        }
    }
}
