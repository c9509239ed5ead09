//! `misses-example`: an eval that decides its own example otherwise than its author expects.
//!
//! Owns what is said of an example, whoever decided it: code here, a judge in [`crate::run`]. That somebody could not
//! decide is told as what it is; it is no miss.

use std::path::PathBuf;
use std::sync::Arc;

use super::{LintMessage, LintedEval, RubricLints, enabled_evals};
use crate::diag::{Diagnostic, Severity};
use crate::handlers::{EvalTypeRegistry, run_examples};
use crate::model::Outcome;
use crate::rubric::{Eval, Rubric};

/// What became of the examples of some rubrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExampleSummary {
    /// Decided as expected.
    pub as_expected: u64,
    /// Decided otherwise, or not at all.
    pub missed: u64,
    /// Not tried, since a judge decides.
    pub left_to_judges: u64,
    /// Not tried, since a program decides.
    pub left_to_programs: u64,
    /// Those that were tried, in the order of the files.
    pub results: Vec<ExampleResult>,
    /// Those missed that are not allowed, each where it stands.
    pub problems: Vec<Diagnostic>,
}

/// One example that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleResult {
    /// The rubric's id.
    pub rubric: String,
    /// The eval's.
    pub eval: String,
    /// Which of its examples, from 0.
    pub index: usize,
    /// What its author expects.
    pub expect: Outcome,
    /// What came of it.
    pub outcome: Outcome,
    /// Why, in a line.
    pub why: String,
    /// What its author says of it; empty for none.
    pub author_note: String,
    /// Whether a miss is meant so (`allow: [misses-example]`).
    pub allowed: bool,
    /// The rubric's file.
    pub path: PathBuf,
    /// Where the example begins in it, from 1.
    pub line: u32,
    /// Likewise.
    pub column: u32,
}

/// Whether an example held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleStatus {
    /// It was decided as expected.
    AsExpected,
    /// It was decided otherwise, or could not be by what it holds.
    Missed,
    /// Whoever decides could not: that says nothing of the example.
    Undecided,
}

impl ExampleResult {
    /// An eval's example that came to something; `None` if it has no such example.
    pub fn from_outcome(
        rubric: &Rubric,
        eval: &Eval,
        nth: usize,
        got: Outcome,
        why: &str,
    ) -> Option<Self> {
        const NAME: &str = "misses-example";
        let example = eval.examples.get(nth)?;
        Some(Self {
            rubric: rubric.id.clone(),
            eval: eval.id.clone(),
            index: nth,
            expect: example.expect,
            outcome: got,
            why: why.lines().next().unwrap_or_default().to_owned(),
            author_note: example.why.clone(),
            allowed: eval.allow.contains(&NAME) || rubric.allow.contains(&NAME),
            path: rubric.path.clone(),
            line: example.span.line.max(1),
            column: example.span.column.max(1),
        })
    }

    /// Whether it held.
    pub fn status(&self) -> ExampleStatus {
        match self.outcome {
            got if got == self.expect => ExampleStatus::AsExpected,
            Outcome::Pass | Outcome::Fail | Outcome::NotApplicable | Outcome::CheckError => {
                ExampleStatus::Missed
            }
            _ => ExampleStatus::Undecided,
        }
    }

    /// Whether somebody should be told that it missed.
    pub fn is_reportable_miss(&self) -> bool {
        !self.allowed && self.status() == ExampleStatus::Missed
    }

    /// `example 2: expected pass, got fail (no match in message 0)`.
    pub fn sentence(&self) -> String {
        let (nth, expect, got) = (
            self.index + 1,
            describe_outcome(self.expect),
            describe_outcome(self.outcome),
        );
        match self.why.as_str() {
            "" => format!("example {nth}: expected {expect}, got {got}"),
            why => format!("example {nth}: expected {expect}, got {got} ({why})"),
        }
    }
}

/// Tries the examples of every enabled eval that code decides.
pub fn run_code_examples(rubrics: &[Arc<Rubric>], registry: &EvalTypeRegistry) -> ExampleSummary {
    let mut tried = ExampleSummary::default();
    for rubric in rubrics {
        for (_, eval) in enabled_evals(rubric).filter(|(_, eval)| !eval.examples.is_empty()) {
            let Some(findings) = run_examples(registry, eval) else {
                let kind = crate::rubric::EvalTypeCatalog::eval_type(registry, &eval.eval_type);
                let untried = match kind {
                    Some(kind) if !kind.judged => &mut tried.left_to_programs,
                    _ => &mut tried.left_to_judges,
                };
                *untried += eval.examples.len() as u64;
                continue;
            };
            let found = findings.into_iter().enumerate();
            tried.results.extend(found.filter_map(|(nth, found)| {
                ExampleResult::from_outcome(rubric, eval, nth, found.outcome, &found.explanation)
            }));
        }
    }
    tried.as_expected = count_by_status(&tried.results, ExampleStatus::AsExpected);
    tried.missed = count_by_status(&tried.results, ExampleStatus::Missed);
    tried.problems = report_misses(rubrics, &tried.results);
    tried
}

/// How many came to this.
pub fn count_by_status(trials: &[ExampleResult], fate: ExampleStatus) -> u64 {
    trials.iter().filter(|trial| trial.status() == fate).count() as u64
}

/// Those missed that are not allowed, each where it stands.
pub fn report_misses(rubrics: &[Arc<Rubric>], trials: &[ExampleResult]) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    for rubric in rubrics {
        let mut lints = RubricLints::new(rubric);
        let own: Vec<&ExampleResult> = trials
            .iter()
            .filter(|trial| trial.rubric == rubric.id && trial.is_reportable_miss())
            .collect();
        for (at, eval) in enabled_evals(rubric).filter(|(_, eval)| !eval.examples.is_empty()) {
            for trial in own.iter().filter(|trial| trial.eval == eval.id) {
                let said = match trial.author_note.as_str() {
                    "" => "mend the eval or the example".to_owned(),
                    why => format!("the example says why: {why}"),
                };
                lints.report_for_eval(
                    LintedEval { index: at, eval },
                    &format!("/examples/{}/expect", trial.index),
                    LintMessage {
                        lint: "misses-example",
                        message: format!("`{}` misses {}", eval.id, trial.sentence()),
                        help: said,
                    },
                );
            }
        }
        let found = lints.finish();
        debug_assert!(found.iter().all(|d| d.severity == Severity::Warning));
        all.extend(found);
    }
    all
}

/// As an example spells it.
pub fn describe_outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NotApplicable => "na",
        Outcome::CheckError => "no verdict",
        other => other.as_str(),
    }
}
