//! `misses-example`: an eval that decides its own example otherwise than its author expects.

use std::sync::Arc;

use super::{Lints, Of, Said, enabled};
use crate::diag::{Diagnostic, Severity};
use crate::handlers::{Registry, run_examples};
use crate::model::Outcome;
use crate::rubric::Rubric;

/// What became of the examples of some rubrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tried {
    /// Decided as expected.
    pub held: u64,
    /// Decided otherwise, or not at all.
    pub missed: u64,
    /// Not tried, since a judge decides.
    pub judged: u64,
    /// Not tried, since a program of the author's decides, and looking for mistakes starts none.
    pub programs: u64,
    /// Those missed that are not allowed, each where it stands.
    pub problems: Vec<Diagnostic>,
}

/// Tries the examples of every enabled eval that code decides.
pub fn examples(rubrics: &[Arc<Rubric>], registry: &Registry) -> Tried {
    let mut tried = Tried::default();
    for rubric in rubrics {
        let mut lints = Lints::of(rubric);
        for (at, eval) in enabled(rubric).filter(|(_, eval)| !eval.examples.is_empty()) {
            let of = Of { at, eval };
            if eval.kind == "script" {
                tried.programs += eval.examples.len() as u64;
                continue;
            }
            let Some(findings) = run_examples(registry, eval) else {
                tried.judged += eval.examples.len() as u64;
                continue;
            };
            for (nth, (example, found)) in eval.examples.iter().zip(findings).enumerate() {
                if found.outcome == example.expect {
                    tried.held += 1;
                    continue;
                }
                tried.missed += 1;
                let why = found.explanation.lines().next().unwrap_or_default();
                let message = format!(
                    "`{}` misses example {}: expected {}, got {} ({why})",
                    eval.id,
                    nth + 1,
                    word(example.expect),
                    word(found.outcome),
                );
                let said = match example.why.as_str() {
                    "" => "mend the eval or the example".to_owned(),
                    why => format!("the example says why: {why}"),
                };
                lints.eval(
                    of,
                    &format!("/examples/{nth}/expect"),
                    Said {
                        lint: "misses-example",
                        message,
                        help: said,
                    },
                );
            }
        }
        let found = lints.finish();
        debug_assert!(found.iter().all(|d| d.severity == Severity::Warning));
        tried.problems.extend(found);
    }
    tried
}

/// As an example spells it.
fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NotApplicable => "na",
        Outcome::CheckError => "no verdict",
        other => other.as_str(),
    }
}
