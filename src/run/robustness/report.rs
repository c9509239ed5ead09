//! The results of a robustness run: rates of measured verdicts only.
//!
//! Responsible for the counts. Does not print them.

use std::collections::HashMap;

use super::attacks::{AttackKind, RobustnessCase};
use super::base_answers::BaseAnswers;
use super::{FinishedStage, RobustnessTest};
use crate::model::{CellName, CellResult, Outcome, RunId, TokenUsage};

/// The largest number of flipped cells that a family lists.
const MAX_CELLS_SHOWN: usize = 2;
/// The number of verdicts below which a rate is unreliable.
const FEW_VERDICTS: u64 = 20;

/// The result of a robustness run.
#[derive(Debug, Clone, PartialEq)]
pub struct RobustnessReport {
    /// The runs that it counts.
    pub runs: Vec<RunId>,
    /// The number of judged pairs of base answer and eval.
    pub base_answers: u64,
    /// The number of pairs that failed. Pairs that neither failed nor passed have no verdict.
    pub failed: u64,
    /// The number of pairs that passed.
    pub passed: u64,
    /// Base answers with a known verdict that the judge decides wrongly.
    pub misjudged: Vec<String>,
    /// The rows by family, in the order of the table.
    pub rows: Vec<RobustnessRow>,
    /// The tokens and calls of both runs.
    pub usage: TokenUsage,
    /// The cost in USD; `None` if it is unknown.
    pub cost_usd: Option<f64>,
}

/// A cell whose verdict flipped.
#[derive(Debug, Clone, PartialEq)]
pub struct FlippedCell {
    /// The run of the cell.
    pub run: RunId,
    /// The name of the cell.
    pub name: String,
}

/// One row of the table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RobustnessRow {
    /// The name of the attack.
    pub attack: &'static str,
    /// `true` if the attack changes nothing that matters, so that any other verdict is a flip.
    pub is_neutral: bool,
    /// The number of attacks.
    pub total: u64,
    /// The number of attacks with a verdict.
    pub scored: u64,
    /// The number of flips: a pass instead of a fail, or any other verdict if the change is neutral.
    pub flips: u64,
    /// The number of attacks without a verdict, by outcome. They never count as resistance.
    pub without_verdict: Vec<(Outcome, u64)>,
    /// The first cells that flipped.
    pub flipped_cells: Vec<FlippedCell>,
}

impl RobustnessRow {
    /// Returns the share of verdicts that flipped; `None` without a verdict.
    pub fn rate(&self) -> Option<f64> {
        (self.scored > 0).then(|| self.flips as f64 / self.scored as f64)
    }

    /// Returns `true` if there are so few verdicts that the rate is unreliable.
    pub fn has_few_verdicts(&self) -> bool {
        self.scored > 0 && self.scored < FEW_VERDICTS
    }
}

impl RobustnessReport {
    /// Returns `true` if any attack has a verdict.
    pub fn is_measured(&self) -> bool {
        self.rows.iter().any(|row| row.scored > 0)
    }
}

/// Returns the cells of each case, by the position of the case.
pub(super) fn group_cells_by_case<'p>(
    test: &RobustnessTest,
    cases: &[RobustnessCase],
    stage: &'p FinishedStage,
) -> Vec<Vec<(CellName, &'p CellResult)>> {
    let names: HashMap<(&str, String), usize> = cases
        .iter()
        .enumerate()
        .map(|(at, case)| {
            (
                (case.id.as_str(), test.eval_id(case.eval, case.variant)),
                at,
            )
        })
        .collect();
    let mut found = vec![Vec::new(); cases.len()];
    for (name, result) in stage.results() {
        let key = (name.transcript.as_str(), name.eval.clone());
        if let Some(at) = names.get(&key) {
            found[*at].push((name, result));
        }
    }
    found
}

/// Returns the vote of those cells of a base answer that have a verdict.
pub(super) fn majority_verdict(cells: &[(CellName, &CellResult)]) -> Option<bool> {
    crate::model::decide_cells(cells.iter().map(|(_, result)| *result))?
        .outcome
        .passed()
}

/// Adds the flips of some cases to the rows of their families. Compares them with the known verdicts on their bases.
pub(super) fn count_flips(
    rows: &mut HashMap<AttackKind, RobustnessRow>,
    cases: &[RobustnessCase],
    cells: &[Vec<(CellName, &CellResult)>],
    run: &RunId,
    known: &dyn Fn(usize, usize) -> Option<bool>,
) {
    for (case, cells) in cases.iter().zip(cells) {
        let row = rows.entry(case.attack).or_default();
        let verdicts = || {
            cells
                .iter()
                .filter_map(|(_, result)| result.outcome.passed())
        };
        row.total += 1;
        // Repeats compare with each other, and the other attacks compare with the base answer.
        let (scored, flipped) = if case.attack == AttackKind::Repeat {
            let first = verdicts().next();
            (
                verdicts().count() > 1,
                verdicts().any(|one| Some(one) != first),
            )
        } else {
            let before = known(case.base, case.eval);
            match (verdicts().next(), before) {
                (Some(now), Some(before)) if case.attack.is_neutral() => (true, now != before),
                (Some(now), Some(false)) => (true, now),
                // Without both verdicts, or for an attack on a passing answer, nothing is measured.
                _ => (false, false),
            }
        };
        if !scored {
            let mut outcomes = cells.iter().map(|(_, result)| result.outcome);
            // With several cells, the last one without a verdict names the reason.
            let outcome = outcomes.rfind(|outcome| outcome.passed().is_none());
            // A case without any result was not reached before the run ended.
            let outcome = outcome.unwrap_or(Outcome::Cancelled);
            match row
                .without_verdict
                .iter_mut()
                .find(|(known, _)| *known == outcome)
            {
                Some((_, n)) => *n += 1,
                None => row.without_verdict.push((outcome, 1)),
            }
            continue;
        }
        row.scored += 1;
        row.flips += u64::from(flipped);
        if flipped
            && row.flipped_cells.len() < MAX_CELLS_SHOWN
            && let Some((name, _)) = cells.last()
        {
            row.flipped_cells.push(FlippedCell {
                run: run.clone(),
                name: name.to_string(),
            });
        }
    }
}

/// Returns all rows in the order of the table.
pub(super) fn sort_rows(mut rows: HashMap<AttackKind, RobustnessRow>) -> Vec<RobustnessRow> {
    let all = AttackKind::ALL.into_iter();
    let rows = all.filter_map(|family| {
        let row = rows.remove(&family)?;
        Some(RobustnessRow {
            attack: family.name(),
            is_neutral: family.is_neutral(),
            ..row
        })
    });
    rows.collect()
}

/// Returns the names of base answers whose verdict differs from the known one.
pub(super) fn find_misjudged(
    bases: &BaseAnswers,
    known: &dyn Fn(usize, usize) -> Option<bool>,
) -> Vec<String> {
    let mut found = Vec::new();
    for (at, base) in bases.answers.iter().enumerate() {
        for eval in &base.evals {
            if let (Some(truth), Some(verdict)) = (base.deserves_pass, known(at, *eval))
                && truth != verdict
            {
                found.push(base.id.clone());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_without_verdicts_has_no_rate() {
        let row = RobustnessRow {
            total: 8,
            without_verdict: vec![(Outcome::JudgeError, 8)],
            ..RobustnessRow::default()
        };
        assert_eq!(row.rate(), None);
    }
}
