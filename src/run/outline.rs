//! The outline of a run: its cells without results, which a screen shows before the first run.
//!
//! Responsible for planning without judging. Does not check, call or record anything.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{CachePolicy, DecisionFilter, RunError, RunOptions, TranscriptSourceError};
use crate::clock::Clock;
use crate::event::{CellKey, EventKind};
use crate::handlers::EvalTypeRegistry;
use crate::model::{CellIx, Digest, TranscriptRef, describe_skipped_file};
use crate::run::inputs::feed::{RecordChunk, SourceRecord};
use crate::run::inputs::ids::TranscriptIds;
use crate::run::plan::{DecisionMethod, DecisionTask, RunPlan};
use crate::run::prepare::{CompiledRun, prepare_without_tools};
use crate::workspace::{Env, Workspace};

/// The number of transcripts per batch; the first few transcripts are sent at once.
const BATCH_TRANSCRIPTS: usize = 64;

/// A part of an outline.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OutlineBatch {
    /// The facts, in order.
    pub facts: Vec<EventKind>,
    /// The tags of the transcripts that have any. No event contains them.
    pub tags: Vec<TranscriptTags>,
}

/// The tags of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptTags {
    /// The id of the transcript.
    pub transcript: String,
    /// Its tags; at least one.
    pub tags: Vec<String>,
}

/// Sends the facts that would begin a run over everything, in order and in batches: `run_started`, then one
/// `cells_planned` per transcript. Records, sends and decides nothing, and needs no keys. Stops if `take` returns
/// `false`.
///
/// The numbers are those of a run without cached verdicts. An eval with repeats has only the cells that are certain.
pub fn outline_run(
    workspace: Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    take: &mut dyn FnMut(OutlineBatch) -> bool,
) -> Result<(), RunError> {
    outline(workspace, registry, env, clock, RunOptions::default(), take)
}

/// As [`outline_run`], with only the decisions that a filter selects, for their names. Evals need no judge.
pub fn outline_names(
    workspace: Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    filter: Option<DecisionFilter>,
    take: &mut dyn FnMut(OutlineBatch) -> bool,
) -> Result<(), RunError> {
    let options = RunOptions {
        filter,
        only_names: true,
        ..RunOptions::default()
    };
    outline(workspace, registry, env, clock, options, take)
}

/// Returns true if a run has a cell. Reads the transcripts up to the first one with a cell. Records, sends and decides
/// nothing.
pub fn selects_any_cell(run: &CompiledRun) -> Result<bool, RunError> {
    let mut ids = TranscriptIds::default();
    // A sample selects nothing if the whole has no cell, so all transcripts count.
    let mut feed = run.open_feed();
    while let Some(chunk) = feed.next_chunk().map_err(TranscriptSourceError::from)? {
        let mut records = chunk.records.iter();
        if records.any(|record| outline_record(run.plan(), &mut ids, &chunk, record).is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn outline(
    workspace: Arc<Workspace>,
    registry: &EvalTypeRegistry,
    env: &Env,
    clock: &Arc<dyn Clock>,
    options: RunOptions,
    take: &mut dyn FnMut(OutlineBatch) -> bool,
) -> Result<(), RunError> {
    let options = RunOptions {
        // The outline uses no cached verdict, so it is fast and the same each time.
        cache: CachePolicy::Off,
        ..options
    };
    let mut prepared = prepare_without_tools(workspace, registry, env, clock, options)?;
    let plan = Arc::clone(&prepared.judge_pool.plan);
    let mut batch = OutlineBatch {
        facts: vec![EventKind::RunStarted(Box::new(prepared.header))],
        tags: Vec::new(),
    };
    // Send the first batch after the first chunk with cells, so that the screen shows something at once.
    let (mut ids, mut next, mut full) = (TranscriptIds::default(), 0, 1);
    while let Some(chunk) = prepared
        .feed
        .next_chunk()
        .map_err(TranscriptSourceError::from)?
    {
        for record in &chunk.records {
            let Some((transcript, keys, tags)) = outline_record(&plan, &mut ids, &chunk, record)
            else {
                continue;
            };
            let first = CellIx(next);
            next += u32::try_from(keys.len()).expect("a run has fewer than 2^32 cells");
            if !tags.is_empty() {
                batch.tags.push(TranscriptTags {
                    transcript: transcript.id.clone(),
                    tags,
                });
            }
            batch.facts.push(EventKind::CellsPlanned {
                transcript,
                first,
                keys,
            });
        }
        // Send whole chunks, after the last record of each.
        if batch.facts.len() > full {
            if !take(std::mem::take(&mut batch)) {
                return Ok(());
            }
            full = BATCH_TRANSCRIPTS;
        }
    }
    // The screen lists the notes of a run, and an outline is shown as one.
    for report in prepared.feed.take_file_reports() {
        if let Some(error) = report.error {
            let text = describe_skipped_file(&report.path, &error);
            batch.facts.push(EventKind::Note { cell: None, text });
        }
    }
    if !batch.facts.is_empty() {
        // This is the last batch, so the answer does not matter.
        let _more = take(batch);
    }
    Ok(())
}

/// Returns the cells of a record and the tags of its transcript; `None` if the record is not a transcript or has no cells.
fn outline_record(
    plan: &RunPlan,
    ids: &mut TranscriptIds,
    chunk: &RecordChunk,
    record: &SourceRecord,
) -> Option<(TranscriptRef, Vec<CellKey>, Vec<String>)> {
    let bytes = &chunk.bytes[record.location.byte_range.clone()];
    // A reader's panic on one record must not hide the other transcripts.
    let read = catch_unwind(AssertUnwindSafe(|| {
        let parsed = record.parse(bytes).ok()?;
        Some((
            parsed.id.to_string(),
            certain_cell_keys(plan, &plan.tasks(&parsed, bytes)),
            parsed.tags.iter().map(ToString::to_string).collect(),
        ))
    }));
    // The run that skips an invalid record reports it.
    let (id_in_file, keys, tags) = read.ok().flatten()?;
    // Reserve the id even without cells, because the run numbers ids in the same way.
    let (id, _) = ids.make_unique(id_in_file);
    if keys.is_empty() {
        return None;
    }
    let transcript = TranscriptRef {
        id,
        path: chunk.path.to_path_buf(),
        offset: record.location.span.offset,
        len: record.location.span.len,
        part: record.location.span.part,
        digest: Digest::hash_bytes(bytes),
    };
    Some((transcript, keys, tags))
}

fn certain_cell_keys(plan: &RunPlan, tasks: &[DecisionTask]) -> Vec<CellKey> {
    let mut keys = Vec::with_capacity(tasks.len());
    for task in tasks {
        let key = CellKey {
            eval: task.eval,
            message: task.message,
            judge: None,
            repeat: None,
        };
        match task.method {
            DecisionMethod::Check => keys.push(key),
            DecisionMethod::Skip(_) => keys.push(CellKey {
                judge: plan.evals[task.eval as usize].judge,
                ..key
            }),
            DecisionMethod::Judge { repeat, .. } => {
                for (judge, certain) in plan.evals[task.eval as usize].terms().needed_cells(&[]) {
                    keys.extend((1..=certain).map(|number| CellKey {
                        judge: Some(judge),
                        // A cell of an eval without repeats has no repeat in its name.
                        repeat: (repeat > 1).then_some(number),
                        ..key
                    }));
                }
            }
        }
    }
    keys
}
