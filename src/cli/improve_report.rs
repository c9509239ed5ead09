//! The output of `dicta improve`: the table of the measured proposals, and each proposal as a diff.
//!
//! Responsible for the rule of which proposals are offered, and for the output. Does not ask or run anything.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::format::{Format, format_document};
use super::variant_report::VariantReport;
use crate::compare::VariantFigures;
use crate::model::{make_visible, pluralize, quote_shell_word};

/// A proposal with its diff.
pub(super) struct ShownProposal {
    pub(super) number: u32,
    pub(super) why: String,
    /// The diff of the rubric; empty if the proposal was not usable.
    pub(super) diff: String,
    /// The reason why the proposal is not offered; `None` if it is.
    pub(super) refused: Option<String>,
}

/// The result of a call for proposals.
pub(super) struct ImproveReport {
    pub(super) eval: String,
    pub(super) disagreements: u64,
    pub(super) train_labels: u64,
    /// The table of the present text and the measured proposals; `None` if no proposal could be measured.
    pub(super) measured: Option<VariantReport>,
    pub(super) proposals: Vec<ShownProposal>,
}

/// Returns why a measured proposal is not offered; `None` if it is.
///
/// Agreement alone is not enough: on labels of mostly one class, a judge that always gives that verdict agrees often.
pub(super) fn find_refusal(base: &VariantFigures, own: &VariantFigures) -> Option<String> {
    let paired = own.paired?;
    if own.without_verdict > base.without_verdict {
        return Some(format!(
            "not measured on all labels: {} without a verdict",
            pluralize(own.without_verdict, "label")
        ));
    }
    let counts = paired.counts;
    if counts.gained <= counts.lost {
        return Some(format!(
            "no improvement on dev: {} gained, {} lost",
            counts.gained, counts.lost
        ));
    }
    let rise =
        |old: Option<f64>, new: Option<f64>| old.zip(new).map_or(0.0, |(old, new)| new - old);
    let tpr = rise(base.tpr.share(), own.tpr.share());
    let tnr = rise(base.tnr.share(), own.tnr.share());
    (tpr + tnr <= 0.0).then(|| {
        "it only moves towards the more frequent class of labels: TPR and TNR together do not rise"
            .to_owned()
    })
}

impl ImproveReport {
    /// Formats the report.
    pub(super) fn format(&self, format: Format) -> String {
        match format {
            Format::Human => self.format_text(),
            format => format_document(format, &self.to_json()),
        }
    }

    fn offered(&self) -> impl Iterator<Item = &ShownProposal> {
        self.proposals.iter().filter(|one| one.refused.is_none())
    }

    fn format_text(&self) -> String {
        let mut out = format!(
            "{} of {} of train {} from the judge\n",
            self.disagreements,
            pluralize(self.train_labels, "label"),
            if self.disagreements == 1 {
                "differs"
            } else {
                "differ"
            }
        );
        if let Some(measured) = &self.measured {
            let _infallible = write!(out, "\n{}", measured.format(Format::Human));
        }
        for proposal in &self.proposals {
            let _infallible = write!(out, "\nproposal {}", proposal.number);
            match &proposal.refused {
                None => {
                    let why = make_visible(&proposal.why, false);
                    let _infallible =
                        write!(out, ": {why}\n{}", make_visible(&proposal.diff, true));
                }
                Some(why) => {
                    let _infallible = writeln!(out, ": not offered: {}", make_visible(why, false));
                }
            }
        }
        match self.offered().next() {
            Some(first) => {
                let _infallible = writeln!(
                    out,
                    "\nnothing is written; `dicta improve {} --take {}` writes that proposal into the rubric",
                    quote_shell_word(&self.eval),
                    first.number
                );
            }
            None => out.push_str(
                "\nno proposal is better on dev, so none is offered and nothing is written\n",
            ),
        }
        out
    }

    fn to_json(&self) -> Value {
        let proposals = self.proposals.iter().map(|one| {
            json!({
                "number": one.number,
                "offered": one.refused.is_none(),
                "refused": one.refused,
                // A proposal that is not offered shows no text.
                "why": one.refused.is_none().then_some(&one.why),
                "diff": one.refused.is_none().then_some(&one.diff),
            })
        });
        json!({
            "type": "improvement",
            "eval": self.eval,
            "train": {"labels": self.train_labels, "disagreements": self.disagreements},
            "measured": self.measured.as_ref().map(VariantReport::to_json),
            "proposals": proposals.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{VariantVerdicts, compare_variants};

    fn verdicts(text: &str) -> VariantVerdicts {
        VariantVerdicts {
            verdicts: text
                .chars()
                .map(|c| match c {
                    'p' => Some(true),
                    'f' => Some(false),
                    _ => None,
                })
                .collect(),
            ..VariantVerdicts::default()
        }
    }

    #[test]
    fn only_improvements_in_both_classes_together_are_offered() {
        // Eight passes and two fails.
        let labels = [true, true, true, true, true, true, true, true, false, false];
        let refusal = |base: &str, own: &str| {
            let table = compare_variants(&labels, &[verdicts(base), verdicts(own)]);
            find_refusal(&table.variants[0], &table.variants[1])
        };
        let base = "ppppffffff";
        assert_eq!(refusal(base, "ppppppffff"), None);
        let no_better = refusal(base, "ffppppffff").expect("refused");
        assert!(no_better.contains("2 gained, 2 lost"), "{no_better}");
        // Always "pass" agrees with more labels and finds no fail any more.
        let always = refusal(base, "pppppppppp").expect("refused");
        assert!(always.contains("more frequent class"), "{always}");
        let partial = refusal(base, "ppppppffp-").expect("refused");
        assert!(partial.contains("not measured on all labels"), "{partial}");
    }
}
