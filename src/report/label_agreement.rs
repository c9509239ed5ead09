//! What a run's decisions come to beside what people said: counts by eval, each with how many they are of. Decisions
//! without a verdict count nowhere, and it is said how many they are. No rates: a few labels make none.

use std::collections::BTreeMap;

use serde::Serialize;

use super::RunSummary;
use crate::model::{CellResult, Label, LabelAgreement, Labels, pluralize};

/// How an eval's decisions ended that have a verdict, and what labels say of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EvalVerdicts {
    /// The rubric's id.
    pub rubric: String,
    /// The eval's id.
    pub eval: String,
    /// Decisions that passed.
    pub pass: u64,
    /// Decisions that failed.
    pub fail: u64,
    /// Those of them with a label.
    pub agreement: LabelAgreement,
    /// Labelled decisions without a verdict.
    pub without_verdict: u64,
}

impl EvalVerdicts {
    /// Counts a decision with a label; `None`: it has no verdict.
    pub(super) fn count_label(&mut self, passed: Option<bool>, label: bool) {
        match passed {
            Some(passed) => self.agreement.add(passed, label),
            None => self.without_verdict += 1,
        }
    }

    fn is_labelled(&self) -> bool {
        self.agreement.total() + self.without_verdict > 0
    }
}

/// The label of a decision. A label is about a whole transcript, never about one message of it.
pub(super) fn find_label(
    labels: &Labels,
    (transcript, rubric, eval): (&str, &str, &str),
    message: Option<u32>,
) -> Option<bool> {
    if message.is_some() || labels.is_empty() {
        return None;
    }
    let found: Option<&Label> = labels.find(transcript, rubric, eval);
    found.and_then(|label| label.passed)
}

/// Whether a person changed one of a decision's cells: such a decision enters no statistics.
pub(super) fn is_edited_by_human<'r>(
    mut results: impl Iterator<Item = Option<&'r CellResult>>,
) -> bool {
    results.any(|result| result.is_some_and(|result| result.by_human))
}

/// `grounded  12 labelled: 7 true passes, 1 false pass, 3 true fails, 1 false fail`, a line an eval with labels.
pub(super) fn format_label_lines(summary: &RunSummary) -> Vec<String> {
    let labelled = || summary.evals.iter().filter(|eval| eval.is_labelled());
    let alone = |of: &EvalVerdicts| labelled().filter(|eval| eval.eval == of.eval).count() == 1;
    let names = labelled().map(|of| {
        if alone(of) {
            of.eval.clone()
        } else {
            format!("{}/{}", of.rubric, of.eval)
        }
    });
    let names: Vec<String> = names.collect();
    let wide = names.iter().map(|name| name.chars().count()).max();
    let width = wide.unwrap_or_default();
    let line = |(of, name): (&EvalVerdicts, &String)| {
        let counts = match of.agreement.total() {
            0 => "none labelled with a verdict".to_owned(),
            n => format!("{n} labelled: {}", format_agreement(of.agreement)),
        };
        let left = match of.without_verdict {
            0 => String::new(),
            n => format!(
                " ({} without a verdict left out)",
                pluralize(n, "labelled decision")
            ),
        };
        format!("{name:<width$}  {counts}{left}")
    };
    labelled().zip(&names).map(line).collect()
}

/// `7 true passes, 1 false pass, 3 true fails, 1 false fail`.
fn format_agreement(of: LabelAgreement) -> String {
    let word = |n: u64, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    [
        word(of.true_pass, "true pass", "true passes"),
        word(of.false_pass, "false pass", "false passes"),
        word(of.true_fail, "true fail", "true fails"),
        word(of.false_fail, "false fail", "false fails"),
    ]
    .join(", ")
}

/// The same in JSON, by `rubric/eval`.
#[derive(Serialize)]
pub(super) struct LabelsLine {
    /// Labelled decisions with a verdict.
    n: u64,
    true_pass: u64,
    false_pass: u64,
    true_fail: u64,
    false_fail: u64,
    without_verdict: u64,
}

/// Those of a run.
pub(super) fn collect_labels_lines(summary: &RunSummary) -> BTreeMap<String, LabelsLine> {
    let labelled = summary.evals.iter().filter(|eval| eval.is_labelled());
    let line = |of: &EvalVerdicts| {
        let counts = LabelsLine {
            n: of.agreement.total(),
            true_pass: of.agreement.true_pass,
            false_pass: of.agreement.false_pass,
            true_fail: of.agreement.true_fail,
            false_fail: of.agreement.false_fail,
            without_verdict: of.without_verdict,
        };
        (format!("{}/{}", of.rubric, of.eval), counts)
    };
    labelled.map(line).collect()
}

/// A label as it stands beside a verdict.
pub(super) fn format_label_suffix(label: Option<bool>) -> &'static str {
    match label {
        Some(true) => "  [label ✓]",
        Some(false) => "  [label ✗]",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_with_how_many_they_are_of() {
        let mut one = EvalVerdicts {
            rubric: "r".to_owned(),
            eval: "grounded".to_owned(),
            ..EvalVerdicts::default()
        };
        for (passed, label) in [(true, true), (true, true), (true, false), (false, true)] {
            one.count_label(Some(passed), label);
        }
        one.count_label(None, true);
        let mut none = EvalVerdicts {
            rubric: "r".to_owned(),
            eval: "tone".to_owned(),
            ..EvalVerdicts::default()
        };
        none.count_label(None, false);
        let other = EvalVerdicts {
            rubric: "s".to_owned(),
            ..one.clone()
        };
        let unlabelled = EvalVerdicts::default();
        let mut summary = RunSummary {
            evals: vec![one, none, unlabelled],
            ..RunSummary::default()
        };
        assert_eq!(
            format_label_lines(&summary),
            [
                "grounded  4 labelled: 2 true passes, 1 false pass, 0 true fails, 1 false fail (1 labelled decision without a verdict left out)",
                "tone      none labelled with a verdict (1 labelled decision without a verdict left out)",
            ]
        );
        summary.evals.push(other);
        assert!(format_label_lines(&summary)[0].starts_with("r/grounded  4 labelled"));
        let json = serde_json::to_value(collect_labels_lines(&summary)).expect("JSON");
        assert_eq!(json["r/grounded"]["true_pass"], 2);
        assert_eq!(json["r/tone"]["n"], 0);
        assert_eq!(json["r/tone"]["without_verdict"], 1);
    }
}
