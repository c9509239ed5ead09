//! The part of an earlier run that a resumed run keeps for one transcript.
//!
//! Responsible for the planned cells and their carried results. Does not read runs (see `past::resume`) or judge cells.

use crate::event::CellKey;
use crate::model::{CellIx, CellResult, Digest, Outcome, Transcript};
use crate::run::plan::{DecisionMethod, DecisionTask, RunPlan};

/// A planned cell of an earlier run.
#[derive(Debug)]
pub(in crate::run) struct CarriedCell {
    /// The number of the cell in the earlier run.
    pub(in crate::run) cell: CellIx,
    pub(in crate::run) key: CellKey,
    /// The carried result; `None` if the cell must be judged again.
    pub(in crate::run) result: Option<CellResult>,
}

/// The planned cells of one transcript of an earlier run, with their carried results.
#[derive(Debug)]
pub(in crate::run) struct CarriedTranscript {
    /// The cells in plan order.
    pub(in crate::run) cells: Vec<CarriedCell>,
    /// The digest of the transcript's bytes.
    pub(in crate::run) digest: Digest,
    /// The reason why the transcript itself is not available, if it isn't.
    pub(in crate::run) missing_reason: Option<String>,
}

impl CarriedTranscript {
    /// Returns the decisions that the earlier run planned. A decision without a result is skipped if it was to be
    /// skipped then.
    pub(in crate::run) fn tasks(
        &self,
        plan: &RunPlan,
        transcript: &Transcript<'_>,
    ) -> Vec<DecisionTask> {
        let mut tasks: Vec<DecisionTask> = Vec::new();
        for CarriedCell { key, result, .. } in &self.cells {
            let Some(eval) = plan.evals.get(key.eval as usize) else {
                continue;
            };
            if tasks
                .last()
                // The cells of one decision follow each other, so comparing with the last task is enough.
                .is_some_and(|task| task.eval == key.eval && task.message == key.message)
            {
                continue;
            }
            let skip = match result {
                Some(result) => {
                    (result.outcome == Outcome::Skipped).then(|| result.explanation.clone())
                }
                // Without a result, decide again whether the cell is skipped, as the old run would have.
                None => eval.skip_reason(plan.eval(key.eval).2, key.message, transcript),
            };
            // A panel's decision is named by its first member, whichever member's cell comes first.
            let judge = match eval.panel {
                Some(_) => eval.judge,
                // A skipped cell of an older recording may lack its judge.
                None => key.judge.or(eval.judge),
            };
            let how = match (skip, judge) {
                (Some(why), _) => DecisionMethod::Skip(why),
                (None, Some(judge)) => DecisionMethod::Judge {
                    judge,
                    repeat: eval.repeat,
                },
                (None, None) => DecisionMethod::Check,
            };
            tasks.push(DecisionTask {
                eval: key.eval,
                message: key.message,
                method: how,
            });
        }
        tasks
    }

    /// Returns the carried result of a cell.
    pub(in crate::run) fn result(&self, key: &CellKey) -> Option<CellResult> {
        let carried = self.cells.iter().find(|carried| carried.key == *key)?;
        carried.result.clone()
    }

    /// Returns the cells of a transcript that is not available. A cell without a carried result cannot be decided.
    pub(in crate::run) fn cells_without_transcript(&self, why: &str) -> Vec<(CellKey, CellResult)> {
        self.cells
            .iter()
            .map(|CarriedCell { key, result, .. }| {
                let outcome = match key.judge {
                    Some(_) => Outcome::JudgeError,
                    None => Outcome::CheckError,
                };
                let result = result.clone();
                let result = result.unwrap_or_else(|| CellResult::from_error(outcome, why));
                (*key, result)
            })
            .collect()
    }
}
