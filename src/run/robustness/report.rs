//! What came of the attacks: rates with intervals, of what was measured and nothing else.

use std::collections::HashMap;

use super::attacks::{AttackKind, RobustnessCase};
use super::base_answers::BaseAnswers;
use super::{FinishedStage, RobustnessTest};
use crate::model::{CellName, CellResult, Outcome, RunId, TokenUsage};

/// Cells named at most, of a family that flips.
const MAX_CELLS_SHOWN: usize = 2;
/// Fewer verdicts than this tell little.
const FEW_VERDICTS: u64 = 20;

/// The result of a self-test.
#[derive(Debug, Clone, PartialEq)]
pub struct RobustnessReport {
    /// The runs it stands on.
    pub runs: Vec<RunId>,
    /// Base answers, each under an eval, that were asked about.
    pub base_answers: u64,
    /// Of them, by verdict; the others have none.
    pub failed: u64,
    /// See `failed`.
    pub passed: u64,
    /// Answers of known truth that the judge decides wrongly before anything is done to them.
    pub misjudged: Vec<String>,
    /// By family, in the order of the table.
    pub rows: Vec<RobustnessRow>,
    /// What it took.
    pub usage: TokenUsage,
    /// USD; `None` when unknown.
    pub cost_usd: Option<f64>,
}

/// One line of the table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RobustnessRow {
    /// What was done.
    pub attack: &'static str,
    /// Whether nothing that matters was changed, so that any other verdict counts.
    pub is_neutral: bool,
    /// Attacks made.
    pub total: u64,
    /// Of them, answered with a verdict.
    pub scored: u64,
    /// Of these, with another verdict than the base answer: towards the attacker, or any where the change is neutral.
    pub flips: u64,
    /// Attacks without a verdict, by outcome. Never counted as resistance.
    pub without_verdict: Vec<(Outcome, u64)>,
    /// Cells that flipped, and the run they are in.
    pub flipped_cells: Vec<(RunId, String)>,
}

impl RobustnessRow {
    /// The share of verdicts that flipped; `None` where there is no verdict.
    pub fn rate(&self) -> Option<f64> {
        (self.scored > 0).then(|| self.flips as f64 / self.scored as f64)
    }

    /// Wilson's interval at 95 %.
    pub fn interval(&self) -> Option<(f64, f64)> {
        (self.scored > 0).then(|| wilson_interval(self.flips, self.scored))
    }

    /// Whether so few verdicts tell little.
    pub fn has_few_verdicts(&self) -> bool {
        self.scored > 0 && self.scored < FEW_VERDICTS
    }
}

impl RobustnessReport {
    /// Whether anything was measured at all.
    pub fn is_measured(&self) -> bool {
        self.rows.iter().any(|row| row.scored > 0)
    }
}

/// Wilson's score interval (1927) for `hits` of `n`, z = 1.96.
fn wilson_interval(hits: u64, n: u64) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    let (n, p) = (n as f64, hits as f64 / n as f64);
    let z2 = Z * Z;
    let middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// The cells of each case, by its position.
pub(super) fn group_cells_by_case<'p>(
    test: &RobustnessTest,
    cases: &[RobustnessCase],
    played: &'p FinishedStage,
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
    for (name, result) in played.results() {
        let key = (name.transcript.as_str(), name.eval.clone());
        if let Some(at) = names.get(&key) {
            found[*at].push((name, result));
        }
    }
    found
}

/// What a base answer's cells say: the vote of those with a verdict.
pub(super) fn majority_verdict(cells: &[(CellName, &CellResult)]) -> Option<bool> {
    crate::model::decide_cells(cells.iter().map(|(_, result)| *result))?
        .outcome
        .passed()
}

/// The families' rows of some cases, beside what is known of their bases.
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
                _ => (false, false),
            }
        };
        if !scored {
            let mut outcomes = cells.iter().map(|(_, result)| result.outcome);
            let outcome = outcomes.rfind(|outcome| outcome.passed().is_none());
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
            row.flipped_cells.push((run.clone(), name.to_string()));
        }
    }
}

/// All rows in the order of the table.
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

/// Names of answers of known truth that were decided otherwise.
pub(super) fn find_misjudged(
    bases: &BaseAnswers,
    known: &dyn Fn(usize, usize) -> Option<bool>,
) -> Vec<String> {
    let mut found = Vec::new();
    for (at, base) in bases.answers.iter().enumerate() {
        for eval in &base.evals {
            if let (Some(truth), Some(said)) = (base.deserves_pass, known(at, *eval))
                && truth != said
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
    fn intervals_are_wilsons() {
        let near =
            |(a, b): (f64, f64), (c, d): (f64, f64)| (a - c).abs() < 5e-4 && (b - d).abs() < 5e-4;
        // Newcombe 1998, table I, method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        assert!(near(wilson_interval(81, 263), (0.2553, 0.3662)));
        assert!(near(wilson_interval(15, 148), (0.0624, 0.1605)));
        assert!(near(wilson_interval(0, 20), (0.0, 0.1611)));
        assert!(near(wilson_interval(1, 29), (0.0061, 0.1718)));
        assert!(near(wilson_interval(20, 20), (0.8389, 1.0)));
    }

    #[test]
    fn without_a_verdict_there_is_no_rate() {
        let row = RobustnessRow {
            total: 8,
            without_verdict: vec![(Outcome::JudgeError, 8)],
            ..RobustnessRow::default()
        };
        assert_eq!((row.rate(), row.interval()), (None, None));
    }
}
