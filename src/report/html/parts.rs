//! Small pieces that the sections of a page share: outcomes, scores, labels and explanations.
//!
//! Responsible for their words and classes. Does not write sections.

use std::collections::HashMap;
use std::io;

use super::writer::HtmlWriter;
use crate::model::{CellResult, CountedLabel, LabelAgreement, Labels, Outcome, pluralize};
use crate::record::{RecordedCell, State, StateDecision};
use crate::report::describe_outcome;

/// Returns the class of an outcome, which selects its color. `None` is a pending decision.
pub(super) fn outcome_class(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Pass) => "pass",
        Some(Outcome::Fail) => "fail",
        Some(outcome) if outcome.is_error() => "other",
        _ => "dim",
    }
}

/// Formats the outcome of a decision: `✗ fail 0.30`, `! judge error`, `pending`.
pub(super) fn format_standing(decision: &StateDecision) -> String {
    match decision.outcome() {
        None => "pending".to_owned(),
        Some(outcome) => {
            let score = decision.score().map(|score| format!(" {score:.2}"));
            let edited = if decision.edited {
                ", edited by hand"
            } else {
                ""
            };
            format!(
                "{} {}{}{edited}",
                outcome.symbol(),
                describe_outcome(outcome),
                score.unwrap_or_default()
            )
        }
    }
}

/// Formats the outcome of a decision for a narrow column: `✗ 0.30`.
pub(super) fn format_mark(decision: &StateDecision) -> String {
    let Some(outcome) = decision.outcome() else {
        return "…".to_owned();
    };
    let score = decision.score().map(|score| format!(" {score:.2}"));
    format!("{}{}", outcome.symbol(), score.unwrap_or_default())
}

/// Formats a label: `✓ pass`, `✗ fail`.
pub(super) fn format_label(passed: bool) -> String {
    let outcome = Outcome::from_passed(passed);
    format!("{} {}", outcome.symbol(), describe_outcome(outcome))
}

/// Returns the label of a decision. A label applies to a whole transcript, never to one message of it.
pub(super) fn find_label<'l>(
    state: &State,
    decision: &StateDecision,
    labels: &'l Labels,
) -> Option<CountedLabel<'l>> {
    if labels.is_empty() {
        return None;
    }
    labels.find(&state.label_query(decision)?)
}

/// Returns the explanation of the first cell that voted for the outcome, or that cell's error.
pub(super) fn find_explanation<'r>(
    decision: &StateDecision,
    results: &'r HashMap<RecordedCell, CellResult>,
) -> &'r str {
    let found = || decision.cells.iter().filter_map(|cell| results.get(cell));
    let outcome = decision.outcome();
    let voter = found().find(|result| Some(result.outcome) == outcome);
    voter.or_else(|| found().next()).map_or("", |result| {
        result.error.as_deref().unwrap_or(&result.explanation)
    })
}

/// Formats the agreement with labels: `35 of 40 labelled decisions agree: 2 false passes, 3 false fails`.
pub(super) fn format_agreement(counts: LabelAgreement) -> String {
    let total = counts.total();
    let drifted = match counts.to_confirm {
        0 => String::new(),
        n => format!("; {} to confirm", pluralize(n, "label")),
    };
    if total == 0 {
        return format!("no labelled decision has a verdict{drifted}");
    }
    let verb = if total == 1 { "agrees" } else { "agree" };
    let count = |n: u64, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    format!(
        "{} of {} {verb}: {}, {}{drifted}",
        total - counts.disagreements(),
        pluralize(total, "labelled decision"),
        count(counts.false_pass, "false pass", "false passes"),
        count(counts.false_fail, "false fail", "false fails"),
    )
}

/// Returns the time of a run for people: `2026-11-22 21:09 UTC`.
pub(super) fn format_time(time: &str) -> String {
    // 16 characters of RFC 3339 are the date with hours and minutes.
    match time.get(..16) {
        Some(minutes) => format!("{} UTC", minutes.replace('T', " ")),
        None => time.to_owned(),
    }
}

/// Writes a table cell with a number.
pub(super) fn write_number<N: ToString + ?Sized>(
    html: &mut HtmlWriter<'_>,
    number: &N,
) -> io::Result<()> {
    html.element("td", &[("class", "n")], &number.to_string())
}

/// Writes a row of column headings.
pub(super) fn write_headings(html: &mut HtmlWriter<'_>, names: &[&str]) -> io::Result<()> {
    html.open("tr", &[])?;
    for name in names {
        html.element("th", &[("scope", "col")], name)?;
    }
    html.close()
}
