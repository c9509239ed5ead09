//! The work on a chunk of records: parse, plan, check, and look up cached verdicts.
//!
//! Responsible for everything that needs no cell number. Does not emit facts.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::event::CellKey;
use crate::handlers::{Check, ExecutionMode, Subject};
use crate::model::{CellResult, Digest, Outcome, Transcript};
use crate::run::CachePolicy;
use crate::run::inputs::carried::CarriedTranscript;
use crate::run::inputs::feed::{RecordChunk, SourceRecord};
use crate::run::judges::pool::{JudgePool, PlannedCellState};
use crate::run::plan::filter::DecisionFilter;
use crate::run::plan::judged_decision::{JudgedDecision, NO_JUDGE};
use crate::run::plan::{DecisionMethod, DecisionTask, RunPlan, judged_message_count};
use crate::transcript::BadRecord;

/// The result of the work on one record.
pub(in crate::run) enum WorkedRecord {
    /// A record that is not a transcript.
    Bad(BadRecord),
    /// A transcript with its cells.
    Transcript(Box<WorkedTranscript>),
}

/// A transcript with its cells in plan order.
pub(in crate::run) struct WorkedTranscript {
    /// The id from the file; the merge makes it unique.
    pub(in crate::run) id: String,
    /// The byte offset in the file.
    pub(in crate::run) offset: u64,
    /// The length in bytes.
    pub(in crate::run) len: u64,
    /// The position among the transcripts at this place.
    pub(in crate::run) part: u32,
    /// The digest of its bytes.
    pub(in crate::run) digest: Digest,
    /// The position in the bytes of its chunk.
    pub(in crate::run) byte_range: Range<usize>,
    /// The cells with their states, in plan order.
    pub(in crate::run) cells: Vec<(CellKey, PlannedCellState)>,
    /// The decisions that a judge makes or that wait for a program, each with its range of `cells`.
    pub(in crate::run) judged_ranges: Vec<(JudgedDecision, Range<usize>)>,
    /// The transcript, if a judge may still be called.
    pub(in crate::run) transcript: Option<Arc<Transcript<'static>>>,
    /// `true` if the id is already unique, because an earlier run or pass made it so.
    pub(in crate::run) has_unique_id: bool,
}

/// Works on all records of a chunk, or on fewer if the run is cancelled.
pub(in crate::run) fn process_chunk(bench: &JudgePool, chunk: &RecordChunk) -> Vec<WorkedRecord> {
    chunk
        .records
        .iter()
        // Results of a cancelled run are dropped, so parsing more records would be wasted.
        .take_while(|_| !bench.cancel_flag.is_cancelled())
        .map(|record| {
            // A defect in a reader or handler must cost one record and not the run.
            catch_unwind(AssertUnwindSafe(|| process_record(bench, chunk, record))).unwrap_or_else(
                |panic| {
                    WorkedRecord::Bad(BadRecord {
                        number: record.location.span.number,
                        why: format!("reading it failed inside dicta: {}", panic_message(&*panic)),
                    })
                },
            )
        })
        .collect()
}

fn process_record(bench: &JudgePool, chunk: &RecordChunk, record: &SourceRecord) -> WorkedRecord {
    let bytes = &chunk.bytes[record.location.byte_range.clone()];
    let mut item = WorkedTranscript {
        id: String::new(),
        offset: record.location.span.offset,
        len: record.location.span.len,
        part: record.location.span.part,
        digest: Digest(String::new()),
        byte_range: record.location.byte_range.clone(),
        cells: Vec::new(),
        judged_ranges: Vec::new(),
        transcript: None,
        has_unique_id: record.id.is_some(),
    };
    // Step: a resumed transcript whose text is lost keeps its results; its open cells become errors.
    let carried = record.carried.as_deref();
    if let Some(carried) = carried
        && let Some(why) = &carried.missing_reason
    {
        item.id.clone_from(&record.default_id);
        item.digest = carried.digest.clone();
        item.cells = carried
            .cells_without_transcript(why)
            .into_iter()
            .map(|(key, result)| (key, PlannedCellState::Settled(result)))
            .collect();
        item.judged_ranges = find_judged_ranges(&bench.plan, &item.cells);
        return WorkedRecord::Transcript(Box::new(item));
    }
    // Step: parse the record.
    let transcript = match record.parse(bytes) {
        Ok(transcript) => transcript,
        Err(bad) => return WorkedRecord::Bad(bad),
    };
    item.id = match &record.id {
        Some(id) => id.clone(),
        None => transcript.id.to_string(),
    };
    // An earlier run planned nothing here. The record only reserves its id.
    if record.is_id_only {
        return WorkedRecord::Transcript(Box::new(item));
    }
    // Step: plan the decisions. A resumed transcript keeps the decisions of its old plan.
    let tasks = match carried {
        None => bench.plan.tasks(&transcript),
        Some(carried) => carried.tasks(&bench.plan, &transcript),
    };
    if !tasks.is_empty() {
        // Hashing costs time, and only transcripts with cells record their digest.
        item.digest = Digest::hash_bytes(bytes);
        decide_cells(bench, &transcript, &tasks, carried, &mut item);
    }
    WorkedRecord::Transcript(Box::new(item))
}

impl WorkedTranscript {
    /// Removes the cells of decisions that a filter by names does not select. This needs the unique id of the
    /// transcript.
    pub(in crate::run) fn retain_named(&mut self, plan: &RunPlan) {
        if !plan.filter.as_ref().is_some_and(DecisionFilter::has_names) {
            return;
        }
        let mut cells = std::mem::take(&mut self.cells);
        cells.retain(|(key, _)| plan.is_selected_by_name(&self.id, key));
        self.cells = cells;
        self.judged_ranges = find_judged_ranges(plan, &self.cells);
    }
}

/// Finds the decisions that a judge makes or that wait for a program, among cells in plan order.
fn find_judged_ranges(
    plan: &RunPlan,
    cells: &[(CellKey, PlannedCellState)],
) -> Vec<(JudgedDecision, Range<usize>)> {
    let mut found: Vec<(JudgedDecision, Range<usize>)> = Vec::new();
    for (at, (key, state)) in cells.iter().enumerate() {
        let judge = match (key.judge, state) {
            (Some(judge), _) => match &plan.evals[key.eval as usize].panel {
                // The cells of all panel members belong to one decision, so the first member names it.
                Some(panel) => panel.judges.first().copied().unwrap_or(judge),
                None => judge,
            },
            (None, PlannedCellState::NeedsJudge(_)) => NO_JUDGE,
            (None, PlannedCellState::Settled(_)) => continue,
        };
        let of = JudgedDecision {
            eval: key.eval,
            message: key.message,
            judge,
            repeat: plan.evals[key.eval as usize].repeat,
        };
        // Plan order puts the cells of a decision next to each other.
        match found.last_mut() {
            Some((last, range)) if *last == of => range.end = at + 1,
            _ => found.push((of, at..at + 1)),
        }
    }
    found
}

fn decide_cells(
    bench: &JudgePool,
    transcript: &Transcript<'_>,
    tasks: &[DecisionTask],
    carried: Option<&CarriedTranscript>,
    item: &mut WorkedTranscript,
) {
    let whole = Subject::new(transcript).with_cancel_flag(&bench.cancel_flag);
    // Copy the transcript at most once, and only if a judge or program may read it after this chunk.
    let mut owned: Option<Arc<Transcript<'static>>> = None;
    for task in tasks {
        // Stop between evals: the merge does not use the item of a cancelled run.
        if bench.cancel_flag.is_cancelled() {
            return;
        }
        let key = CellKey {
            eval: task.eval,
            message: task.message,
            judge: None,
            repeat: None,
        };
        match &task.method {
            DecisionMethod::Skip(why) => {
                // A skipped cell names the eval's judge, as the judged cells of the eval do.
                let judge = bench.plan.evals[task.eval as usize].judge;
                let result = CellResult::new(Outcome::Skipped, why.as_str());
                let key = CellKey { judge, ..key };
                item.cells.push((key, PlannedCellState::Settled(result)));
            }
            DecisionMethod::Check => {
                // Step: a check. A resumed run does not repeat a check that has a result.
                let result = carried.and_then(|carried| carried.result(&key));
                let check = bench.check(task.eval);
                if result.is_none()
                    && check.is_some_and(|check| check.execution_mode() == ExecutionMode::Blocking)
                {
                    // As with judges, dicta does not plan a cell without a cached result if it may not run it.
                    if bench.cache_policy == CachePolicy::SkipUncached {
                        continue;
                    }
                    owned.get_or_insert_with(|| Arc::new(transcript.clone().into_owned()));
                    let of = JudgedDecision {
                        eval: task.eval,
                        message: task.message,
                        judge: NO_JUDGE,
                        repeat: 1,
                    };
                    let at = item.cells.len();
                    item.cells.push((key, PlannedCellState::NeedsJudge(None)));
                    item.judged_ranges.push((of, at..at + 1));
                    continue;
                }
                let result = result.unwrap_or_else(|| match (check, task.message) {
                    (Some(check), None) => run_check(check, &whole),
                    (Some(check), message @ Some(_)) => run_check(
                        check,
                        &whole.with_end(judged_message_count(transcript, message)),
                    ),
                    (None, _) => {
                        CellResult::from_error(Outcome::CheckError, "this eval has no check")
                    }
                });
                if bench.cancel_flag.is_cancelled() {
                    // A cancelled check may have returned early, so its result is not valid.
                    return;
                }
                item.cells.push((key, PlannedCellState::Settled(result)));
            }
            DecisionMethod::Judge { judge, repeat } => {
                let of = JudgedDecision {
                    eval: task.eval,
                    message: task.message,
                    judge: *judge,
                    repeat: *repeat,
                };
                // Step: a judge. Carried cells come first, then those that their results make necessary.
                let owned = owned.get_or_insert_with(|| Arc::new(transcript.clone().into_owned()));
                let mut cells = match carried {
                    None => Vec::new(),
                    Some(carried) => bench.carried_cell_states(carried, owned, of),
                };
                bench.add_needed_cells(owned, of, &mut cells);
                let asks = cells
                    .iter()
                    .any(|(_, cell)| matches!(cell, PlannedCellState::NeedsJudge(_)));
                if asks && bench.cache_policy == CachePolicy::SkipUncached {
                    continue;
                }
                let first = item.cells.len();
                item.cells.extend(
                    cells
                        .into_iter()
                        .map(|(post, state)| (of.cell_key(post), state)),
                );
                item.judged_ranges.push((of, first..item.cells.len()));
            }
        }
    }
    item.transcript = owned;
}

/// Runs one check. A panic of the handler becomes a `check_error`.
pub(in crate::run) fn run_check(check: &dyn Check, subject: &Subject<'_>) -> CellResult {
    match catch_unwind(AssertUnwindSafe(|| check.check(subject))) {
        Ok(found) => found.into(),
        Err(panic) => CellResult::from_error(
            Outcome::CheckError,
            format!(
                "the handler failed inside dicta: {}",
                panic_message(&*panic)
            ),
        ),
    }
}

/// Returns the message of a panic.
pub(in crate::run) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        // `panic!` with arguments carries a `String`, without arguments a `&str`.
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without words")
}
