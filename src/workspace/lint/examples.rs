//! `misses-example`: an eval that decides its own example otherwise than its author expects.
//!
//! Owns what is said of an example, whoever decided it: code here, a judge in [`crate::run`]. That somebody could not
//! decide is told as what it is; it is no miss.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Lints, Of, Said, enabled};
use crate::diag::{Diagnostic, Severity};
use crate::handlers::{EvalTypeRegistry, run_examples};
use crate::model::Outcome;
use crate::rubric::{Eval, Rubric};

/// What became of the examples of some rubrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tried {
    /// Decided as expected.
    pub held: u64,
    /// Decided otherwise, or not at all.
    pub missed: u64,
    /// Not tried, since a judge decides.
    pub judged: u64,
    /// Not tried, since a program decides.
    pub programs: u64,
    /// Those that were tried, in the order of the files.
    pub trials: Vec<Trial>,
    /// Those missed that are not allowed, each where it stands.
    pub problems: Vec<Diagnostic>,
}

/// One example that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The rubric's id.
    pub rubric: String,
    /// The eval's.
    pub eval: String,
    /// Which of its examples, from 0.
    pub nth: usize,
    /// What its author expects.
    pub expect: Outcome,
    /// What came of it.
    pub got: Outcome,
    /// Why, in a line.
    pub why: String,
    /// What its author says of it; empty for none.
    pub said: String,
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
pub enum Fate {
    /// It was decided as expected.
    Held,
    /// It was decided otherwise, or could not be by what it holds.
    Missed,
    /// Whoever decides could not: that says nothing of the example.
    Undecided,
}

impl Trial {
    /// An eval's example that came to something; `None` if it has no such example.
    pub fn of(rubric: &Rubric, eval: &Eval, nth: usize, got: Outcome, why: &str) -> Option<Self> {
        const NAME: &str = "misses-example";
        let example = eval.examples.get(nth)?;
        Some(Self {
            rubric: rubric.id.clone(),
            eval: eval.id.clone(),
            nth,
            expect: example.expect,
            got,
            why: why.lines().next().unwrap_or_default().to_owned(),
            said: example.why.clone(),
            allowed: eval.allow.contains(&NAME) || rubric.allow.contains(&NAME),
            path: rubric.path.clone(),
            line: example.span.line.max(1),
            column: example.span.column.max(1),
        })
    }

    /// Whether it held.
    pub fn fate(&self) -> Fate {
        match self.got {
            got if got == self.expect => Fate::Held,
            Outcome::Pass | Outcome::Fail | Outcome::NotApplicable | Outcome::CheckError => {
                Fate::Missed
            }
            _ => Fate::Undecided,
        }
    }

    /// Whether somebody should be told that it missed.
    pub fn misses(&self) -> bool {
        !self.allowed && self.fate() == Fate::Missed
    }

    /// `example 2: expected pass, got fail (no match in message 0)`.
    pub fn sentence(&self) -> String {
        let (nth, expect, got) = (self.nth + 1, word(self.expect), word(self.got));
        match self.why.as_str() {
            "" => format!("example {nth}: expected {expect}, got {got}"),
            why => format!("example {nth}: expected {expect}, got {got} ({why})"),
        }
    }
}

/// Tries the examples of every enabled eval that code decides.
pub fn examples(rubrics: &[Arc<Rubric>], registry: &EvalTypeRegistry) -> Tried {
    let mut tried = Tried::default();
    for rubric in rubrics {
        for (_, eval) in enabled(rubric).filter(|(_, eval)| !eval.examples.is_empty()) {
            let Some(findings) = run_examples(registry, eval) else {
                let kind = crate::rubric::EvalTypeCatalog::eval_type(registry, &eval.eval_type);
                let untried = match kind {
                    Some(kind) if !kind.judged => &mut tried.programs,
                    _ => &mut tried.judged,
                };
                *untried += eval.examples.len() as u64;
                continue;
            };
            let found = findings.into_iter().enumerate();
            tried.trials.extend(found.filter_map(|(nth, found)| {
                Trial::of(rubric, eval, nth, found.outcome, &found.explanation)
            }));
        }
    }
    tried.held = count(&tried.trials, Fate::Held);
    tried.missed = count(&tried.trials, Fate::Missed);
    tried.problems = misses(rubrics, &tried.trials);
    tried
}

/// How many came to this.
pub fn count(trials: &[Trial], fate: Fate) -> u64 {
    trials.iter().filter(|trial| trial.fate() == fate).count() as u64
}

/// Those missed that are not allowed, each where it stands.
pub fn misses(rubrics: &[Arc<Rubric>], trials: &[Trial]) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    for rubric in rubrics {
        let mut lints = Lints::of(rubric);
        let own: Vec<&Trial> = trials
            .iter()
            .filter(|trial| trial.rubric == rubric.id && trial.misses())
            .collect();
        for (at, eval) in enabled(rubric).filter(|(_, eval)| !eval.examples.is_empty()) {
            for trial in own.iter().filter(|trial| trial.eval == eval.id) {
                let said = match trial.said.as_str() {
                    "" => "mend the eval or the example".to_owned(),
                    why => format!("the example says why: {why}"),
                };
                lints.eval(
                    Of { at, eval },
                    &format!("/examples/{}/expect", trial.nth),
                    Said {
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
pub fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NotApplicable => "na",
        Outcome::CheckError => "no verdict",
        other => other.as_str(),
    }
}
