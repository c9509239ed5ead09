//! What past runs can answer: judged cells by cache key, and tool calls by their arguments.
//!
//! Read from the lines that matter alone. What a person changed or wrote answers nothing.

use std::collections::{HashMap, HashSet};

use super::plan::{Plan, Planned};
use super::{RecordError, Run};
use crate::event::{
    EventKind, RecordedToolResponse, RunEvent, StoredText, ToolFact, ToolResponseSource,
};
use crate::model::{CallIx, CellIx, CellResult, Digest, Outcome, RawJson, RunId, TurnIx};

const WANTED: &[&str] = &[
    "run_started",
    "cells_planned",
    "cell_started",
    "cell_finished",
    "tool",
    "resumed",
];

/// A judged cell that may answer another with the same key.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheEntry {
    /// The run that judged it.
    pub run: RunId,
    /// Its number there.
    pub cell: CellIx,
    /// Its result: a verdict, or not applicable.
    pub result: CellResult,
    /// The evidence it rests on, in the order of the calls' answers; a hit needs it to hold.
    pub evidence: Vec<EvidenceUsed>,
}

/// A tool call that a verdict rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceUsed {
    /// The tool.
    pub tool: String,
    /// The tool's digest then, where the run recorded it.
    pub decl: Option<Digest>,
    /// The arguments in canonical form.
    pub canonical: RawJson,
    /// BLAKE3 of the text that the model was told, as recorded.
    pub answer: Digest,
}

/// A tool call with its answer, as a run recorded it.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCall {
    /// The cell whose judge made the call.
    pub cell: CellIx,
    /// That cell's name, where the plan is known.
    pub name: Option<String>,
    /// The tool.
    pub tool: String,
    /// The tool's digest then, where the run recorded it.
    pub decl: Option<Digest>,
    /// The arguments in canonical form.
    pub canonical: RawJson,
    /// The answer; its texts may be blobs of that run.
    pub answer: RecordedToolResponse,
}

/// Judged cells by cache key; of those with one key the newest.
#[derive(Debug, Clone, Default)]
pub struct CacheIndex {
    entries: HashMap<Digest, CacheEntry>,
}

impl CacheIndex {
    /// The index over `runs`, newest first as [`super::RunStore::runs`] gives them. A run that cannot be read is left
    /// out and told in the sentences.
    pub fn of(runs: &[Run]) -> (Self, Vec<String>) {
        let (mut index, mut problems) = (Self::default(), Vec::new());
        for run in runs.iter().rev() {
            if let Err(error) = index.add(run) {
                problems.push(error.to_string());
            }
        }
        (index, problems)
    }

    /// The newest judged cell with this key.
    pub fn get(&self, key: &Digest) -> Option<&CacheEntry> {
        self.entries.get(key)
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a run newer than all before it.
    pub fn add(&mut self, run: &Run) -> Result<(), RecordError> {
        let mut reading = Reading::default();
        let (mut keys, mut results) = (HashMap::new(), Vec::new());
        for event in run.events_of(WANTED)? {
            let event = event?;
            match &event.kind {
                EventKind::CellStarted {
                    cell,
                    key: Some(key),
                } => {
                    keys.insert(*cell, key.clone());
                }
                EventKind::CellFinished { cell, result } => {
                    results.push((*cell, (**result).clone()))
                }
                _ => reading.apply(&event),
            }
        }
        let mut used: HashMap<CellIx, Vec<EvidenceUsed>> = HashMap::new();
        for call in &reading.calls {
            used.entry(call.cell).or_default().push(EvidenceUsed {
                tool: call.tool.clone(),
                decl: call.decl.clone(),
                canonical: call.canonical.clone(),
                answer: text_digest(&call.answer.text),
            });
        }
        for (cell, result) in results {
            let decided = result.outcome.is_verdict() || result.outcome == Outcome::NotApplicable;
            if !decided || result.by_human || reading.by_human.contains(&cell) {
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

impl Run {
    /// Every tool call that was answered, in the order of the answers, for `--frozen`. Answers a person wrote are left
    /// out.
    pub fn recorded_calls(&self) -> Result<Vec<RecordedCall>, RecordError> {
        let mut reading = Reading::default();
        for event in self.events_of(WANTED)? {
            reading.apply(&event?);
        }
        Ok(reading.calls)
    }
}

/// The digest under which an answer's text is compared, inline or not.
fn text_digest(text: &StoredText) -> Digest {
    match text {
        StoredText::Text(text) => Digest::hash_bytes(text.as_bytes()),
        StoredText::Blob(blob) => blob.hash.clone(),
    }
}

/// One run's tool calls.
#[derive(Default)]
struct Reading {
    plan: Plan,
    open: HashMap<(CellIx, TurnIx, CallIx), Open>,
    calls: Vec<RecordedCall>,
    by_human: HashSet<CellIx>,
}

/// A call that is not answered yet.
struct Open {
    tool: String,
    raw: String,
    canonical: Option<RawJson>,
}

impl Reading {
    fn apply(&mut self, event: &RunEvent) {
        match &event.kind {
            EventKind::Tool {
                cell,
                turn,
                call,
                fact,
            } => self.tool((*cell, *turn, *call), fact),
            EventKind::Resumed { cell, how } if how.by == "human" && how.what != "go" => {
                self.by_human.insert(*cell);
            }
            _ => self.plan.apply(event),
        }
    }

    fn tool(&mut self, at: (CellIx, TurnIx, CallIx), fact: &ToolFact) {
        match fact {
            ToolFact::Received { name, raw, .. } => {
                let open = Open {
                    tool: name.clone(),
                    raw: raw.clone(),
                    canonical: None,
                };
                self.open.insert(at, open);
            }
            ToolFact::Repaired { canonical, .. } => {
                if let Some(open) = self.open.get_mut(&at) {
                    open.canonical = Some(canonical.clone());
                }
            }
            ToolFact::Rejected { .. } => {
                self.open.remove(&at);
            }
            ToolFact::Finished { answer, source, .. } => {
                let Some(open) = self.open.remove(&at) else {
                    return;
                };
                if *source == ToolResponseSource::ByHand {
                    self.by_human.insert(at.0);
                    return;
                }
                if *source == ToolResponseSource::Transcript {
                    return;
                }
                // Without a repair the raw text is canonical; one that is no JSON was never called.
                let Some(canonical) = open.canonical.or_else(|| RawJson::parse(&open.raw).ok())
                else {
                    return;
                };
                let planned = self.plan.cell(at.0);
                let judge = planned.and_then(Planned::judge);
                let decl = match judge {
                    None => None,
                    Some(judge) => match judge.tools.iter().find(|(name, _)| *name == open.tool) {
                        Some((_, digest)) => Some(digest.clone()),
                        // The function a verdict is submitted with is no tool of the judge: its answer is a receipt, no
                        // evidence. Taken for one, no such verdict would ever be recalled.
                        None => return,
                    },
                };
                self.calls.push(RecordedCall {
                    cell: at.0,
                    name: planned.and_then(Planned::name).map(|name| name.to_string()),
                    tool: open.tool,
                    decl,
                    canonical,
                    answer: answer.clone(),
                });
            }
            ToolFact::Validated { .. } | ToolFact::Started | ToolFact::Hop(_) => {}
        }
    }
}
