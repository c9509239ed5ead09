//! What a worker thread does with a chunk of records: parse, plan, check, recall. No cell has a number yet.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::CachePolicy;
use super::bench::{Bench, Judged, NOBODY, State};
use super::filter::Filter;
use super::plan::{How, Plan, Task, end};
use super::resume::Carried;
use super::source::{Chunk, Record};
use crate::event::CellKey;
use crate::handlers::{Check, ExecutionMode, Subject};
use crate::model::{CellResult, Digest, Outcome, Transcript};
use crate::transcript::BadRecord;

/// A record, worked on.
pub(super) enum Worked {
    /// No transcript.
    Bad(BadRecord),
    /// A transcript, with its cells.
    Item(Box<Item>),
}

/// A transcript with its cells in plan order.
pub(super) struct Item {
    /// Its own id; made unique later.
    pub(super) id: String,
    /// Byte offset in the file.
    pub(super) offset: u64,
    /// Length in bytes.
    pub(super) len: u64,
    /// Which of the transcripts at this place.
    pub(super) part: u32,
    /// Digest of its bytes.
    pub(super) digest: Digest,
    /// Where it stands in its chunk's bytes.
    pub(super) at: Range<usize>,
    /// In plan order.
    pub(super) cells: Vec<(CellKey, State)>,
    /// The decisions among them that are a judge's or wait for a program: which, and which of the cells.
    pub(super) judged: Vec<(Judged, Range<usize>)>,
    /// The transcript, where judges may still be asked.
    pub(super) transcript: Option<Arc<Transcript<'static>>>,
    /// Whether its id is unique already, since an earlier run or pass made it so.
    pub(super) named: bool,
}

/// Works on all records of a chunk; on fewer once the run is to stop.
pub(super) fn work(bench: &Bench, chunk: &Chunk) -> Vec<Worked> {
    chunk
        .records
        .iter()
        .take_while(|_| !bench.stop.is_cancelled())
        .map(|record| {
            catch_unwind(AssertUnwindSafe(|| one(bench, chunk, record))).unwrap_or_else(|panic| {
                Worked::Bad(BadRecord {
                    number: record.found.span.number,
                    why: format!("reading it failed inside dicta: {}", said(&*panic)),
                })
            })
        })
        .collect()
}

fn one(bench: &Bench, chunk: &Chunk, record: &Record) -> Worked {
    let bytes = &chunk.bytes[record.found.byte_range.clone()];
    let mut item = Item {
        id: String::new(),
        offset: record.found.span.offset,
        len: record.found.span.len,
        part: record.found.span.part,
        digest: Digest(String::new()),
        at: record.found.byte_range.clone(),
        cells: Vec::new(),
        judged: Vec::new(),
        transcript: None,
        named: record.id.is_some(),
    };
    let carried = record.carried.as_deref();
    if let Some(carried) = carried
        && let Some(why) = &carried.lost
    {
        item.id.clone_from(&record.default_id);
        item.digest = carried.digest.clone();
        item.cells = carried.without_transcript(why);
        item.judged = judged(&bench.plan, &item.cells);
        return Worked::Item(Box::new(item));
    }
    let transcript = match record.parse(bytes) {
        Ok(transcript) => transcript,
        Err(bad) => return Worked::Bad(bad),
    };
    item.id = match &record.id {
        Some(id) => id.clone(),
        None => transcript.id.to_string(),
    };
    if record.passed {
        return Worked::Item(Box::new(item));
    }
    let tasks = match carried {
        None => bench.plan.tasks(&transcript),
        Some(carried) => carried.tasks(&bench.plan, &transcript),
    };
    if !tasks.is_empty() {
        item.digest = Digest::hash_bytes(bytes);
        decide(bench, &transcript, &tasks, carried, &mut item);
    }
    Worked::Item(Box::new(item))
}

impl Item {
    /// Drops the cells of decisions that a filter by names does not mean: only now is the transcript's id unique.
    pub(super) fn keep_named(&mut self, plan: &Plan) {
        if !plan.filter.as_ref().is_some_and(Filter::is_named) {
            return;
        }
        let mut cells = std::mem::take(&mut self.cells);
        cells.retain(|(key, _)| plan.means(&self.id, key));
        self.cells = cells;
        self.judged = judged(plan, &self.cells);
    }
}

/// The decisions among cells in plan order that a judge makes, or that wait for a program.
fn judged(plan: &Plan, cells: &[(CellKey, State)]) -> Vec<(Judged, Range<usize>)> {
    let mut found: Vec<(Judged, Range<usize>)> = Vec::new();
    for (at, (key, state)) in cells.iter().enumerate() {
        let judge = match (key.judge, state) {
            (Some(judge), _) => match &plan.evals[key.eval as usize].panel {
                // All its judges' cells are one decision.
                Some(panel) => panel.judges.first().copied().unwrap_or(judge),
                None => judge,
            },
            (None, State::Ask(_)) => NOBODY,
            (None, State::Settled(_)) => continue,
        };
        let of = Judged {
            eval: key.eval,
            message: key.message,
            judge,
            repeat: plan.evals[key.eval as usize].repeat,
        };
        match found.last_mut() {
            Some((last, range)) if *last == of => range.end = at + 1,
            _ => found.push((of, at..at + 1)),
        }
    }
    found
}

fn decide(
    bench: &Bench,
    transcript: &Transcript<'_>,
    tasks: &[Task],
    carried: Option<&Carried>,
    item: &mut Item,
) {
    let whole = Subject::new(transcript).with_cancel_flag(&bench.stop);
    let mut owned: Option<Arc<Transcript<'static>>> = None;
    for task in tasks {
        if bench.stop.is_cancelled() {
            return;
        }
        let key = CellKey {
            eval: task.eval,
            message: task.message,
            judge: None,
            repeat: None,
        };
        match &task.how {
            How::Skip(why) => {
                let judge = bench.plan.evals[task.eval as usize].judge;
                let result = CellResult::new(Outcome::Skipped, why.as_str());
                let key = CellKey { judge, ..key };
                item.cells.push((key, State::Settled(result)));
            }
            How::Check => {
                let result = carried.and_then(|carried| carried.result(&key));
                let check = bench.check(task.eval);
                if result.is_none()
                    && check.is_some_and(|check| check.execution_mode() == ExecutionMode::Blocking)
                {
                    // As with judges: what is not known and may not be asked for is not planned.
                    if bench.cache == CachePolicy::Only {
                        continue;
                    }
                    owned.get_or_insert_with(|| Arc::new(transcript.clone().into_owned()));
                    let of = Judged {
                        eval: task.eval,
                        message: task.message,
                        judge: NOBODY,
                        repeat: 1,
                    };
                    let at = item.cells.len();
                    item.cells.push((key, State::Ask(None)));
                    item.judged.push((of, at..at + 1));
                    continue;
                }
                let result = result.unwrap_or_else(|| match (check, task.message) {
                    (Some(check), None) => run(check, &whole),
                    (Some(check), message @ Some(_)) => {
                        run(check, &whole.with_end(end(transcript, message)))
                    }
                    (None, _) => {
                        CellResult::from_error(Outcome::CheckError, "this eval has no check")
                    }
                });
                if bench.stop.is_cancelled() {
                    // It may have left early: what it found is no finding.
                    return;
                }
                item.cells.push((key, State::Settled(result)));
            }
            How::Judge { judge, repeat } => {
                let of = Judged {
                    eval: task.eval,
                    message: task.message,
                    judge: *judge,
                    repeat: *repeat,
                };
                let owned = owned.get_or_insert_with(|| Arc::new(transcript.clone().into_owned()));
                let mut cells = match carried {
                    None => Vec::new(),
                    Some(carried) => carried.states(bench, owned, of),
                };
                bench.extend(owned, of, &mut cells);
                let asks = cells.iter().any(|(_, cell)| matches!(cell, State::Ask(_)));
                if asks && bench.cache == CachePolicy::Only {
                    continue;
                }
                let first = item.cells.len();
                item.cells
                    .extend(cells.into_iter().map(|(post, state)| (of.key(post), state)));
                item.judged.push((of, first..item.cells.len()));
            }
        }
    }
    item.transcript = owned;
}

/// Runs one check. A handler that panics could not decide.
pub(super) fn run(check: &dyn Check, subject: &Subject<'_>) -> CellResult {
    match catch_unwind(AssertUnwindSafe(|| check.check(subject))) {
        Ok(found) => found.into(),
        Err(panic) => CellResult::from_error(
            Outcome::CheckError,
            format!("the handler failed inside dicta: {}", said(&*panic)),
        ),
    }
}

/// What a panic said.
pub(super) fn said(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without words")
}
