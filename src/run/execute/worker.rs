//! The work on a chunk of records: parse, plan, check, and look up cached verdicts.
//!
//! Responsible for everything that needs no cell number. Does not emit facts.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::event::{CellKey, PlannedDecision};
use crate::handlers::{Check, ExecutionMode, Subject};
use crate::model::{CellResult, Digest, Outcome, Transcript};
use crate::run::CachePolicy;
use crate::run::inputs::carried::CarriedTranscript;
use crate::run::inputs::feed::{RecordChunk, SourceRecord};
use crate::run::judges::pool::{JudgePool, PlannedCellState};
use crate::run::plan::filter::DecisionFilter;
use crate::run::plan::judged_decision::JudgedDecision;
use crate::run::plan::{DecisionMethod, DecisionTask, RunPlan, judged_message_count};
use crate::transcript::{BadRecord, UnreadContent};

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
    pub(in crate::run) cells: Vec<WorkedCell>,
    /// The decisions that a judge makes or that wait for a program, in plan order.
    pub(in crate::run) judged_ranges: Vec<JudgedRange>,
    /// The transcript, if a judge may still be called.
    pub(in crate::run) transcript: Option<Arc<Transcript<'static>>>,
    /// The decisions that the revision plans for the transcript, if the run records them.
    pub(in crate::run) revision_plan: Vec<PlannedDecision>,
    /// `true` if the id is already unique, because an earlier run or pass made it so.
    pub(in crate::run) has_unique_id: bool,
    /// The content that dicta did not read; `None` if an earlier run counted it.
    pub(in crate::run) unread: Option<UnreadContent>,
}

/// A planned cell with its state.
pub(in crate::run) struct WorkedCell {
    pub(in crate::run) key: CellKey,
    pub(in crate::run) state: PlannedCellState,
}

/// A decision that a judge makes or that waits for a program, with its range of cells.
pub(in crate::run) struct JudgedRange {
    pub(in crate::run) decision: JudgedDecision,
    pub(in crate::run) cells: Range<usize>,
}

/// Works on all records of a chunk, or on fewer if the run is cancelled.
pub(in crate::run) fn process_chunk(
    judge_pool: &JudgePool,
    chunk: &RecordChunk,
) -> Vec<WorkedRecord> {
    chunk
        .records
        .iter()
        // Results of a cancelled run are dropped, so parsing more records would be wasted.
        .take_while(|_| !judge_pool.cancel_flag.is_cancelled())
        .map(|record| {
            // A defect in a reader or handler must cost one record and not the run.
            catch_unwind(AssertUnwindSafe(|| {
                process_record(judge_pool, chunk, record)
            }))
            .unwrap_or_else(|panic| {
                WorkedRecord::Bad(BadRecord {
                    number: record.location.span.number,
                    why: format!("reading it failed inside dicta: {}", panic_message(&*panic)),
                })
            })
        })
        .collect()
}

fn process_record(
    judge_pool: &JudgePool,
    chunk: &RecordChunk,
    record: &SourceRecord,
) -> WorkedRecord {
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
        revision_plan: Vec::new(),
        has_unique_id: record.id.is_some(),
        unread: None,
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
            .map(|(key, result)| WorkedCell::settled(key, result))
            .collect();
        item.judged_ranges = find_judged_ranges(&judge_pool.plan, &item.cells);
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
    // A pair is not a record of the file, so it does not count.
    if carried.is_none() && !record.location.is_pair() {
        item.unread = Some(UnreadContent::find(&transcript));
    }
    // An earlier run planned nothing here. The record only reserves its id.
    if record.is_id_only {
        return WorkedRecord::Transcript(Box::new(item));
    }
    // Step: plan the decisions. A resumed transcript keeps the decisions of its old plan.
    let plan = &judge_pool.plan;
    let tasks = match carried {
        None => {
            let mut tasks = plan.all_tasks(&transcript);
            if plan.records_revision_plan {
                item.revision_plan = tasks.iter().map(DecisionTask::to_planned).collect();
            }
            plan.retain_selected(&transcript, bytes, &mut tasks);
            tasks
        }
        Some(carried) => carried.tasks(plan, &transcript),
    };
    if !tasks.is_empty() || !item.revision_plan.is_empty() {
        // Hashing costs time, and only transcripts with decisions record their digest.
        item.digest = Digest::hash_bytes(bytes);
    }
    if !tasks.is_empty() {
        decide_cells(judge_pool, &transcript, &tasks, carried, &mut item);
    }
    WorkedRecord::Transcript(Box::new(item))
}

impl WorkedCell {
    fn settled(key: CellKey, result: CellResult) -> Self {
        Self {
            key,
            state: PlannedCellState::Settled(Arc::new(result)),
        }
    }
}

impl WorkedTranscript {
    /// Removes the cells of decisions that a filter by names does not select. This needs the unique id of the
    /// transcript.
    pub(in crate::run) fn retain_named(&mut self, plan: &RunPlan) {
        if !plan.filter.as_ref().is_some_and(DecisionFilter::has_names) {
            return;
        }
        let mut cells = std::mem::take(&mut self.cells);
        cells.retain(|cell| plan.is_selected_by_name(&self.id, &cell.key));
        self.cells = cells;
        self.judged_ranges = find_judged_ranges(plan, &self.cells);
    }
}

/// Finds the decisions that a judge makes or that wait for a program, among cells in plan order.
fn find_judged_ranges(plan: &RunPlan, cells: &[WorkedCell]) -> Vec<JudgedRange> {
    let mut found: Vec<JudgedRange> = Vec::new();
    for (at, WorkedCell { key, state }) in cells.iter().enumerate() {
        let judge = match (key.judge, state) {
            (Some(judge), _) => match &plan.evals[key.eval as usize].panel {
                // The cells of all panel members belong to one decision, so the first member names it.
                Some(panel) => panel.judges.first().copied().or(Some(judge)),
                None => Some(judge),
            },
            (None, PlannedCellState::NeedsJudge(_)) => None,
            (None, PlannedCellState::Settled(_)) => continue,
        };
        let decision = JudgedDecision {
            eval: key.eval,
            message: key.message,
            judge,
            repeat: plan.evals[key.eval as usize].repeat,
        };
        // Plan order puts the cells of a decision next to each other.
        match found.last_mut() {
            Some(last) if last.decision == decision => last.cells.end = at + 1,
            _ => found.push(JudgedRange {
                decision,
                cells: at..at + 1,
            }),
        }
    }
    found
}

fn decide_cells(
    judge_pool: &JudgePool,
    transcript: &Transcript<'_>,
    tasks: &[DecisionTask],
    carried: Option<&CarriedTranscript>,
    item: &mut WorkedTranscript,
) {
    let full_subject = Subject::new(transcript).with_cancel_flag(&judge_pool.cancel_flag);
    // Copy the transcript at most once, and only if a judge or program may read it after this chunk.
    let mut owned: Option<Arc<Transcript<'static>>> = None;
    // Most decisions have one cell.
    item.cells.reserve_exact(tasks.len());
    for task in tasks {
        // Stop between evals: the merge does not use the item of a cancelled run.
        if judge_pool.cancel_flag.is_cancelled() {
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
                let judge = judge_pool.plan.evals[task.eval as usize].judge;
                let result = CellResult::new(Outcome::Skipped, why.as_str());
                let key = CellKey { judge, ..key };
                item.cells.push(WorkedCell::settled(key, result));
            }
            DecisionMethod::Check => {
                // Step: a check. A resumed run does not repeat a check that has a result.
                let result = carried.and_then(|carried| carried.result(&key));
                let check = judge_pool.check(task.eval);
                if result.is_none()
                    && check.is_some_and(|check| check.execution_mode() == ExecutionMode::Blocking)
                {
                    // As with judges, dicta does not plan a cell without a cached result if it may not run it.
                    if judge_pool.cache_policy == CachePolicy::SkipUncached {
                        continue;
                    }
                    owned.get_or_insert_with(|| Arc::new(transcript.clone().into_owned()));
                    let decision = JudgedDecision {
                        eval: task.eval,
                        message: task.message,
                        judge: None,
                        repeat: 1,
                    };
                    let at = item.cells.len();
                    item.cells.push(WorkedCell {
                        key,
                        state: PlannedCellState::NeedsJudge(None),
                    });
                    item.judged_ranges.push(JudgedRange {
                        decision,
                        cells: at..at + 1,
                    });
                    continue;
                }
                let result = result.unwrap_or_else(|| match (check, task.message) {
                    (Some(check), None) => run_check(check, &full_subject),
                    (Some(check), message @ Some(_)) => run_check(
                        check,
                        &full_subject.with_end(judged_message_count(transcript, message)),
                    ),
                    (None, _) => {
                        CellResult::from_error(Outcome::CheckError, "this eval has no check")
                    }
                });
                if judge_pool.cancel_flag.is_cancelled() {
                    // A cancelled check may have returned early, so its result is not valid.
                    return;
                }
                item.cells.push(WorkedCell::settled(key, result));
            }
            DecisionMethod::Judge { judge, repeat } => {
                let decision = JudgedDecision {
                    eval: task.eval,
                    message: task.message,
                    judge: Some(*judge),
                    repeat: *repeat,
                };
                // Step: a judge. Carried cells come first, then those that their results make necessary.
                let owned = owned.get_or_insert_with(|| Arc::new(transcript.clone().into_owned()));
                let mut cells = match carried {
                    None => Vec::new(),
                    Some(carried) => judge_pool.carried_cell_states(carried, owned, decision),
                };
                judge_pool.add_needed_cells(owned, decision, &mut cells);
                let needs_judge = cells
                    .iter()
                    .any(|cell| matches!(cell.state, PlannedCellState::NeedsJudge(_)));
                if needs_judge && judge_pool.cache_policy == CachePolicy::SkipUncached {
                    continue;
                }
                let first = item.cells.len();
                item.cells.extend(cells.into_iter().map(|cell| WorkedCell {
                    key: decision.cell_key(cell.judge_repeat),
                    state: cell.state,
                }));
                item.judged_ranges.push(JudgedRange {
                    decision,
                    cells: first..item.cells.len(),
                });
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
