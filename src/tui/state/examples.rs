//! The results of the evals' examples. Missed examples stay visible until they are fixed.

use std::collections::BTreeMap;

use super::App;
use super::cells::CellsEntry;
use super::pane::Pane;
use super::saves::EvalName;
use crate::model::{make_visible, pluralize};
use crate::workspace::lint::{self, ExampleResult, ExampleStatus};

/// The number of evals that a message names before it only counts.
const MAX_NAMED_EVALS: usize = 2;

/// The state of the examples.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExamplesState {
    /// Increases with each check. Results with an older number are ignored.
    pub(crate) number: u64,
    /// The results that code decided, for the newest version of the files.
    pub(crate) checks: Vec<ExampleResult>,
    /// The results of judges, kept until the eval or its judge changes.
    pub(crate) judged: BTreeMap<EvalName, Vec<ExampleResult>>,
    /// The evals whose examples judges check now.
    pub(crate) being_judged: Vec<EvalName>,
    /// The reason why some examples are not judged automatically: a sentence.
    pub(crate) not_judged_reason: Option<String>,
    /// The reason why judges could not be called.
    pub(crate) problem: Option<String>,
    /// The number of misses before the last save.
    pub(crate) misses_before_save: usize,
    /// True if the last save fixed all misses.
    pub(crate) fixed_by_save: bool,
}

impl ExamplesState {
    /// Returns true while judges check examples.
    pub(crate) fn is_judging(&self) -> bool {
        !self.being_judged.is_empty()
    }

    /// Returns all results.
    pub(crate) fn all_trials(&self) -> impl Iterator<Item = &ExampleResult> {
        self.checks.iter().chain(self.judged.values().flatten())
    }

    /// Returns the results of missed examples.
    pub(crate) fn misses(&self) -> impl Iterator<Item = &ExampleResult> {
        self.all_trials().filter(|trial| trial.is_reportable_miss())
    }

    /// Returns the results of one eval.
    pub(crate) fn trials_for_eval<'t>(
        &'t self,
        rubric: &str,
        eval: &str,
    ) -> impl Iterator<Item = &'t ExampleResult> {
        self.all_trials()
            .filter(move |trial| trial.rubric == rubric && trial.eval == eval)
    }

    /// Describes the misses, such as `1 example misses: names-a-version`; `None` if there are none.
    pub(crate) fn describe_misses(&self) -> Option<String> {
        let mut names: Vec<&str> = Vec::new();
        let mut many = 0_u64;
        for trial in self.misses() {
            many += 1;
            if !names.contains(&trial.eval.as_str()) {
                names.push(&trial.eval);
            }
        }
        if many == 0 {
            return None;
        }
        let miss = if many == 1 { "misses" } else { "miss" };
        let more = names.len().saturating_sub(MAX_NAMED_EVALS);
        names.truncate(MAX_NAMED_EVALS);
        // Names come from files, so control characters are escaped.
        let names = make_visible(&names.join(", "), false).into_owned();
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "{} {miss}: {names}{more}",
            pluralize(many, "example")
        ))
    }

    /// Describes the passes, such as `7 examples hold`; `None` if there are no examples or one misses.
    pub(crate) fn describe_passes(&self) -> Option<String> {
        let (mut held, mut others) = (0_u64, false);
        for trial in self.all_trials() {
            match trial.status() {
                ExampleStatus::AsExpected => held += 1,
                // An allowed miss counts neither as held nor as a problem.
                ExampleStatus::Missed => others |= !trial.allowed,
                ExampleStatus::Undecided => others = true,
            }
        }
        let verb = if held == 1 { "holds" } else { "hold" };
        (held > 0 && !others).then(|| format!("{} {verb}", pluralize(held, "example")))
    }
}

impl App {
    /// Returns the missed example that `e` opens: that of the focused eval, or in the changes pane the first one.
    pub(crate) fn focused_example_miss(&self) -> Option<&ExampleResult> {
        let cells = &self.live_session.cells;
        // A replay shows recorded evals; the examples belong to the current files.
        if self.replay.is_some() {
            return None;
        }
        if self.ui.focus == Pane::Changes {
            return self.examples.misses().next();
        }
        let eval = match cells.list.selected? {
            CellsEntry::Group(eval) => eval,
            CellsEntry::Row(row) => cells.row(row)?.eval,
        };
        let eval = cells.evals.get(eval as usize)?;
        let mut trials = self.examples.trials_for_eval(&eval.rubric, &eval.id);
        trials.find(|trial| trial.is_reportable_miss())
    }
}

/// Formats one result for the verdict pane of its eval.
pub(crate) fn format_trial(trial: &ExampleResult) -> String {
    match trial.status() {
        ExampleStatus::AsExpected => format!(
            "example {}: {}, as expected",
            trial.index + 1,
            lint::describe_outcome(trial.outcome)
        ),
        ExampleStatus::Missed => trial.sentence(),
        ExampleStatus::Undecided => {
            format!("not decided, which isn't a miss: {}", trial.sentence())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Outcome::{self, Fail, Pass};

    fn trial(eval: &str, expect: Outcome, got: Outcome) -> ExampleResult {
        ExampleResult {
            rubric: "r".into(),
            eval: eval.into(),
            index: 1,
            expect,
            outcome: got,
            why: String::new(),
            author_note: String::new(),
            allowed: false,
            path: "r.yaml".into(),
            line: 3,
            column: 5,
        }
    }

    fn misses_and_passes(trials: &[ExampleResult]) -> (Option<String>, Option<String>) {
        let examples = ExamplesState {
            checks: trials.to_vec(),
            ..ExamplesState::default()
        };
        (examples.describe_misses(), examples.describe_passes())
    }

    #[test]
    fn misses_are_counted_and_errors_are_undecided() {
        let held = trial("a", Pass, Pass);
        let missed = |eval| trial(eval, Pass, Fail);
        let failed = trial("a", Pass, Outcome::JudgeError);
        let allowed = ExampleResult {
            allowed: true,
            ..missed("a")
        };
        for (trials, missing, holding) in [
            (vec![], None, None),
            (vec![held.clone()], None, Some("1 example holds")),
            (
                vec![held.clone(), held.clone(), allowed],
                None,
                Some("2 examples hold"),
            ),
            (vec![held.clone(), failed.clone()], None, None),
            (
                vec![held, missed("a"), failed],
                Some("1 example misses: a"),
                None,
            ),
            (
                vec![missed("a"), missed("a"), missed("b"), missed("c")],
                Some("4 examples miss: a, b and 1 more"),
                None,
            ),
        ] {
            let (is_missing, is_holding) = misses_and_passes(&trials);
            assert_eq!(is_missing.as_deref(), missing);
            assert_eq!(is_holding.as_deref(), holding);
        }
        assert_eq!(
            format_trial(&missed("a")),
            "example 2: expected pass, got fail"
        );
        assert_eq!(
            format_trial(&trial("a", Fail, Fail)),
            "example 2: fail, as expected"
        );
    }
}
