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
    cells: Vec<CarriedCell>,
    /// The digest of the transcript's bytes.
    pub(in crate::run) digest: Digest,
    /// The reason why the transcript itself is not available, if it isn't.
    pub(in crate::run) missing_reason: Option<String>,
}

impl CarriedTranscript {
    /// Returns the transcript of an earlier run, with its cells in plan order.
    pub(in crate::run) fn new(
        mut cells: Vec<CarriedCell>,
        digest: Digest,
        missing_reason: Option<String>,
    ) -> Self {
        cells.sort_by_key(|carried| {
            let key = carried.key;
            (key.eval, key.message, key.judge, key.repeat)
        });
        Self {
            cells,
            digest,
            missing_reason,
        }
    }

    /// Returns the cells of one decision. Every decision asks for its cells, so this searches the order and not all cells.
    pub(in crate::run) fn decision_cells(&self, eval: u32, message: Option<u32>) -> &[CarriedCell] {
        let decision = |carried: &CarriedCell| (carried.key.eval, carried.key.message);
        let wanted = (eval, message);
        let first = self.cells.partition_point(|one| decision(one) < wanted);
        let rest = &self.cells[first..];
        &rest[..rest.partition_point(|one| decision(one) == wanted)]
    }

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
        let cells = self.decision_cells(key.eval, key.message);
        let carried = cells.iter().find(|carried| carried.key == *key)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(cell: u32, eval: u32, message: Option<u32>, repeat: Option<u32>) -> CarriedCell {
        CarriedCell {
            cell: CellIx(cell),
            key: CellKey {
                eval,
                message,
                judge: None,
                repeat,
            },
            result: Some(CellResult::new(Outcome::Pass, format!("cell {cell}"))),
        }
    }

    #[test]
    fn decision_has_only_its_own_cells_whatever_the_order_of_the_old_log() {
        // A later range of the old run adds a repeat of the first decision at the end.
        let cells = vec![
            carried(0, 0, None, Some(1)),
            carried(1, 1, Some(1), None),
            carried(2, 1, Some(3), None),
            carried(3, 2, None, None),
            carried(4, 0, None, Some(2)),
        ];
        let old = CarriedTranscript::new(cells, Digest::hash_bytes(b"t"), None);
        let numbers = |eval, message| -> Vec<u32> {
            let cells = old.decision_cells(eval, message).iter();
            cells.map(|carried| carried.cell.0).collect()
        };
        assert_eq!(numbers(0, None), [0, 4], "both repeats");
        assert_eq!(numbers(1, Some(3)), [2], "one message of several");
        assert_eq!(numbers(2, None), [3], "the last decision");
        assert_eq!(numbers(1, None), Vec::<u32>::new(), "no such decision");
        assert_eq!(numbers(3, None), Vec::<u32>::new(), "after the last one");
        let key = carried(2, 1, Some(3), None).key;
        let result = old.result(&key).expect("the old run has a result");
        assert_eq!(result.explanation, "cell 2");
    }
}
