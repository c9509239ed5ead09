//! The details of the figures of an eval, and the meaning of each.
//!
//! Responsible for an explanation of each figure that the details show, and of no other one.

use super::{describe_raters, format_few, format_with_range};
use crate::compare::statistics::{BootstrapInterval, ConfusionTable, Figure};
use crate::compare::{EvalFigures, TableIntervals};
use crate::model::pluralize;

/// Returns the lines of the details: figures of the table, of scores, and of several raters.
pub fn describe_details(eval: &EvalFigures) -> Vec<String> {
    let table = details_table(eval);
    let LabelCounts {
        labels,
        fails,
        judged_fails,
        fewer,
    } = count_details_labels(eval);
    let intervals = eval.intervals.as_ref();
    let range = |choose: fn(&TableIntervals) -> Option<BootstrapInterval>| {
        intervals.and_then(choose).map(|one| one.interval)
    };
    let tnr_range = eval.measured.as_ref().map(|measured| measured.tnr.interval);
    let mut out = Vec::new();
    if eval.measured.is_none() && labels > 0 {
        out.push("of the debug labels, which were not drawn by chance:".to_owned());
    }
    let table_lines = [
        format!(
            "on fail    precision {}  recall {}  F1 {}",
            format_with_range(
                table.precision_on_fail(),
                range(|one| one.precision),
                judged_fails
            ),
            format_with_range(table.tnr(), tnr_range, fails),
            format_with_range(table.f1_on_fail(), range(|one| one.f1), fails),
        ),
        format!(
            "balanced accuracy {}  MCC {}",
            format_with_range(
                table.balanced_accuracy(),
                range(|one| one.balanced_accuracy),
                fewer
            ),
            format_with_range(table.mcc(), range(|one| one.mcc), labels),
        ),
        format!(
            "κ {} of at most {}  AC1 {}",
            format_with_range(table.kappa(), range(|one| one.kappa), labels),
            format_few(table.kappa_max(), labels),
            format_with_range(table.ac1(), range(|one| one.ac1), labels),
        ),
    ];
    // Without a label, each figure would only repeat that there is none.
    if labels > 0 {
        out.extend(table_lines);
    }
    if let Some(intervals) = intervals {
        let approximate = if intervals.is_approximate {
            "; approximate under 100 labels"
        } else {
            ""
        };
        out.push(format!(
            "ranges of precision, F1, balanced accuracy, MCC, κ and AC1: bootstrap of {} resamples, seed {}{approximate}",
            intervals.settings.draws, intervals.settings.seed
        ));
    }
    if let Some(pair) = eval.people.closest_pair() {
        out.push(format!(
            "ceiling    κ {} between {} and {}",
            format_with_range(pair.kappa(), pair.kappa_interval.ok(), pair.common),
            pair.first,
            pair.second
        ));
        out.push(describe_raters("people     ", &eval.people));
    }
    if eval.judges.units > 0 {
        out.push(describe_raters("judges     ", &eval.judges));
    }
    if let Some(scores) = &eval.scores {
        let few = |figure: Figure| format_few(figure, scores.pairs);
        out.push(format!(
            "scores     {}{}: weighted κ {}  ρ {}  τ-b {}  mean absolute error {}  bias {}",
            pluralize(scores.pairs, "pair"),
            match (scores.is_measured, eval.is_one_random_draw) {
                (false, _) => " of debug labels",
                (true, true) => "",
                (true, false) => ", each counts the same in spite of the strata",
            },
            few(scores.weighted_kappa),
            few(scores.rho),
            few(scores.tau_b),
            few(scores.mean_error),
            few(scores.bias)
        ));
    }
    out
}

/// Returns the table of the details: that of the population, or else that of debug labels.
pub fn details_table(eval: &EvalFigures) -> &ConfusionTable {
    match &eval.measured {
        Some(measured) => &measured.weighted,
        None => &eval.debug,
    }
}

/// The numbers of labels behind the figures of the details.
struct LabelCounts {
    labels: u64,
    /// The labels that are a fail.
    fails: u64,
    /// The labels of decisions that the judge fails.
    judged_fails: u64,
    /// The labels of the class with fewer of them.
    fewer: u64,
}

fn count_details_labels(eval: &EvalFigures) -> LabelCounts {
    // The table of the population is weighted, so its counts are no numbers of labels.
    let (labels, counts) = match &eval.measured {
        Some(measured) => (measured.agreement.labels, &measured.counts),
        None => (eval.debug_labels, &eval.debug),
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the sum of whole numbers of labels"
    )]
    let whole = |count: f64| count.round() as u64;
    let (passes, fails) = (whole(counts.label_passes()), whole(counts.label_fails()));
    LabelCounts {
        labels,
        fails,
        judged_fails: whole(counts.true_fail + counts.false_fail),
        fewer: passes.min(fails),
    }
}

/// Returns a sentence or two for each figure in the details of an eval.
pub fn explain_details(eval: &EvalFigures) -> Vec<&'static str> {
    let mut out = Vec::new();
    if count_details_labels(eval).labels > 0 {
        out.extend([
            "On fail: precision is the share of the judge's fails that people fail, too. Recall is TNR. F1 is their harmonic mean.",
            "Balanced accuracy: the mean of TPR and TNR. A judge that always returns the same verdict has 0.5.",
            "MCC, κ and AC1: the agreement beyond chance. 1 is full agreement, 0 is chance. They differ in what counts as chance.",
            "κ of at most: the highest κ that is possible if the judge and people pass different shares.",
        ]);
    }
    if eval.people.closest_pair().is_some() || eval.judges.units > 0 {
        out.push("α and Fleiss' κ: the agreement beyond chance of all people or judges together.");
    }
    if eval.scores.is_some() {
        out.push(
            "Scores: weighted κ counts a far miss more than a near one. ρ and τ-b compare the order. A generous judge has a positive bias.",
        );
    }
    out
}
