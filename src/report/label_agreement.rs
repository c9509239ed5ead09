//! The agreement of a run's decisions with labels.
//!
//! Responsible for the counts by eval, each with its total. Does not compute rates, because the rate of a few labels
//! means little. Decisions without a verdict are counted separately.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::RunSummary;
use crate::event::{CellKey, RunHeader};
use crate::model::{
    CellResult, CountedLabel, LabelAgreement, LabelLookup, Labels, TranscriptRef, pluralize,
};

/// The counts of an eval's decisions with a verdict, and their agreement with labels.
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
    /// Decisions with a verdict, also those whose judge traces a person edited.
    pub decided: u64,
    /// Decisions without a verdict, except those that the rubric disables or does not sample.
    pub undecided: u64,
    /// The agreement of those decisions that have a label.
    pub agreement: LabelAgreement,
    /// Labelled decisions without a verdict.
    pub without_verdict: u64,
}

impl EvalVerdicts {
    /// Returns the evals of a run, without verdicts, in the order of the header.
    pub(super) fn list(header: &RunHeader) -> Vec<Self> {
        let evals = header.evals.iter().map(|eval| {
            let rubric = header.rubrics.get(eval.rubric as usize);
            Self {
                rubric: rubric.map_or_else(String::new, |rubric| rubric.id.clone()),
                eval: eval.id.clone(),
                ..Self::default()
            }
        });
        evals.collect()
    }

    /// Counts the label of a decision. `passed` is `None` if the decision has no verdict.
    pub(super) fn count_lookup(&mut self, passed: Option<bool>, label: LabelLookup<'_>) {
        match label {
            LabelLookup::Counted(CountedLabel {
                passed: Some(label),
                ..
            }) => self.count_label(passed, label),
            LabelLookup::ToConfirm(..) => self.agreement.to_confirm += 1,
            LabelLookup::Shot(_) => self.agreement.shots += 1,
            LabelLookup::Counted(_) | LabelLookup::Sealed { .. } | LabelLookup::Unlabelled => {}
        }
    }

    fn count_label(&mut self, passed: Option<bool>, label: bool) {
        match passed {
            Some(passed) => self.agreement.add(passed, label),
            None => self.without_verdict += 1,
        }
    }

    fn is_labelled(&self) -> bool {
        self.agreement.total()
            + self.without_verdict
            + self.agreement.to_confirm
            + self.agreement.shots
            > 0
    }
}

/// Looks up the label of a cell's decision. A label applies to a whole transcript, never to one message of it.
pub(super) fn look_up_label<'l>(
    labels: &'l Labels,
    header: &RunHeader,
    transcript: &TranscriptRef,
    key: &CellKey,
) -> LabelLookup<'l> {
    // Without labels, no decision needs a query.
    if labels.is_empty() {
        return LabelLookup::Unlabelled;
    }
    match header.label_query(transcript, key) {
        Some(query) => labels.look_up(&query),
        None => LabelLookup::Unlabelled,
    }
}

/// Returns `true` if a person changed one of a decision's cells: such a decision enters no statistics.
pub(super) fn is_edited_by_human<'r>(
    mut results: impl Iterator<Item = Option<&'r CellResult>>,
) -> bool {
    results.any(|result| result.is_some_and(|result| result.by_human))
}

/// Returns the evals with labels, those that several parts replace last.
fn list_labelled(summary: &RunSummary) -> impl Iterator<Item = &EvalVerdicts> {
    let all = summary.evals.iter().chain(&summary.wholes);
    all.filter(|eval| eval.is_labelled())
}

/// Returns one line per eval with labels: `grounded  12 labelled: 7 true passes, 1 false pass, 3 true fails, 1 false
/// fail`.
pub(super) fn format_label_lines(summary: &RunSummary) -> Vec<String> {
    let labelled = || list_labelled(summary);
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for verdicts in labelled() {
        *uses.entry(&verdicts.eval).or_default() += 1;
    }
    let names = labelled().map(|verdicts| {
        // The id of an eval is ambiguous if two rubrics use it.
        if uses.get(verdicts.eval.as_str()) == Some(&1) {
            verdicts.eval.clone()
        } else {
            format!("{}/{}", verdicts.rubric, verdicts.eval)
        }
    });
    let names: Vec<String> = names.collect();
    // Align the counts of all lines.
    let wide = names.iter().map(|name| name.chars().count()).max();
    let width = wide.unwrap_or_default();
    let line = |(verdicts, name): (&EvalVerdicts, &String)| {
        let counts = match verdicts.agreement.total() {
            0 => "none labelled with a verdict".to_owned(),
            n => format!("{n} labelled: {}", format_agreement(verdicts.agreement)),
        };
        let left = match verdicts.without_verdict {
            0 => String::new(),
            n => format!(
                " ({} without a verdict left out)",
                pluralize(n, "labelled decision")
            ),
        };
        let drifted = match verdicts.agreement.to_confirm {
            0 => String::new(),
            n => format!(
                " ({} to confirm: the question or the transcript changed)",
                pluralize(n, "label")
            ),
        };
        let shots = match verdicts.agreement.shots {
            0 => String::new(),
            n => format!(
                " ({} left out: the judge saw them, or copies of them)",
                pluralize(n, "shot")
            ),
        };
        format!("{name:<width$}  {counts}{left}{drifted}{shots}")
    };
    labelled().zip(&names).map(line).collect()
}

/// Formats the four counts: `7 true passes, 1 false pass, 3 true fails, 1 false fail`.
fn format_agreement(agreement: LabelAgreement) -> String {
    let word = |n: u64, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    [
        word(agreement.true_pass, "true pass", "true passes"),
        word(agreement.false_pass, "false pass", "false passes"),
        word(agreement.true_fail, "true fail", "true fails"),
        word(agreement.false_fail, "false fail", "false fails"),
    ]
    .join(", ")
}

/// The agreement of one eval, in JSON.
#[derive(Serialize)]
pub(super) struct LabelsLine {
    /// Labelled decisions with a verdict.
    n: u64,
    true_pass: u64,
    false_pass: u64,
    true_fail: u64,
    false_fail: u64,
    without_verdict: u64,
    /// Labels that count nowhere, because the question or the transcript changed.
    to_confirm: u64,
    /// Labels that the judge saw as examples, so that they measure nothing.
    shots: u64,
}

/// Returns the agreement of each labelled eval of a run, by `rubric/eval`.
pub(super) fn collect_labels_lines(summary: &RunSummary) -> BTreeMap<String, LabelsLine> {
    let labelled = list_labelled(summary);
    let line = |verdicts: &EvalVerdicts| {
        let counts = LabelsLine {
            n: verdicts.agreement.total(),
            true_pass: verdicts.agreement.true_pass,
            false_pass: verdicts.agreement.false_pass,
            true_fail: verdicts.agreement.true_fail,
            false_fail: verdicts.agreement.false_fail,
            without_verdict: verdicts.without_verdict,
            to_confirm: verdicts.agreement.to_confirm,
            shots: verdicts.agreement.shots,
        };
        (format!("{}/{}", verdicts.rubric, verdicts.eval), counts)
    };
    labelled.map(line).collect()
}

/// Returns the label as the end of a result line, or an empty text. The label of a shot measures nothing.
pub(super) const fn format_label_suffix(label: Option<bool>, is_shot: bool) -> &'static str {
    match label {
        _ if is_shot => "  [shot]",
        Some(true) => "  [label ✓]",
        Some(false) => "  [label ✗]",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Label, LabelDrift};

    #[test]
    fn label_lines_contain_counts_and_totals() {
        let mut one = EvalVerdicts {
            rubric: "r".to_owned(),
            eval: "grounded".to_owned(),
            ..EvalVerdicts::default()
        };
        for (passed, label) in [(true, true), (true, true), (true, false), (false, true)] {
            one.count_label(Some(passed), label);
        }
        one.count_label(None, true);
        let old = Label::new("t", "grounded", Some(true));
        one.count_lookup(
            Some(true),
            LabelLookup::ToConfirm(&old, LabelDrift::Question),
        );
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
                "grounded  4 labelled: 2 true passes, 1 false pass, 0 true fails, 1 false fail (1 labelled decision without a verdict left out) (1 label to confirm: the question or the transcript changed)",
                "tone      none labelled with a verdict (1 labelled decision without a verdict left out)",
            ]
        );
        summary.evals.push(other);
        assert!(format_label_lines(&summary)[0].starts_with("r/grounded  4 labelled"));
        let json = serde_json::to_value(collect_labels_lines(&summary)).expect("JSON");
        assert_eq!(json["r/grounded"]["true_pass"], 2);
        assert_eq!(json["r/grounded"]["to_confirm"], 1);
        assert_eq!(json["r/tone"]["n"], 0);
        assert_eq!(json["r/tone"]["without_verdict"], 1);
    }
}
