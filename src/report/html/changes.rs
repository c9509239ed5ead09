//! The difference between two states: the answer, and the flips with reasons, labels, causes and arithmetic.
//!
//! Responsible for these sections. Does not compare states; `compare` does.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;

use indexmap::IndexMap;

use super::parts::{
    find_explanation, format_agreement, format_label, format_standing, outcome_class,
};
use super::writer::HtmlWriter;
use crate::compare::statistics::PairedCounts;
use crate::compare::{
    FileDiff, FlipCounts, FlipDirection, StateChange, StateComparison, compare_recorded_states,
    count_agreement, find_noisy_flip,
};
use crate::model::{CellResult, LabelAgreement, Labels, Outcome, pluralize};
use crate::record::{NoiseRecords, RecordedCell, State, StateDecision};
use crate::report::{CellSource, format_p_value, mark_noisy_flip};

/// The largest number of flips, and of other changes, that a page shows.
pub(super) const MAX_SHOWN_CHANGES: usize = 500;
/// The p-value below which a difference is more than chance.
const SIGNIFICANT: f64 = 0.05;
/// The largest number of characters of a file's diff on a page.
const MAX_DIFF_CHARS: usize = 200_000;

/// A state with the name that a page gives it.
#[derive(Debug, Clone)]
pub struct PageSide<'s> {
    /// The name: `@2 (state 7)`, `run kvqa`.
    pub name: String,
    /// The state.
    pub state: &'s State,
}

/// The comparison of two states with everything that a page shows of it.
pub struct PageComparison<'s> {
    before: PageSide<'s>,
    after: PageSide<'s>,
    found: StateComparison,
    results: HashMap<RecordedCell, CellResult>,
    files: Vec<FileDiff>,
    has_causes: bool,
    figures: Vec<EvalFigureLines>,
    noise: NoiseRecords,
}

/// The figures of one eval on labels and noise, as sentences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EvalFigureLines {
    /// `rubric/eval`.
    pub name: String,
    /// The sentences.
    pub lines: Vec<String>,
}

impl<'s> PageComparison<'s> {
    /// Compares an older state with a newer one. Reads the results of the changes that the page shows. `files` are the
    /// files that differ, if their texts are known.
    pub fn new(
        before: PageSide<'s>,
        after: PageSide<'s>,
        labels: &Labels,
        source: &dyn CellSource,
        files: Vec<FileDiff>,
    ) -> Self {
        let find_run = |number| source.find_run(number);
        let found = compare_recorded_states(before.state, after.state, find_run);
        Self::with_found(before, after, found, labels, source, files)
    }

    /// As [`Self::new`], with a difference that [`compare_recorded_states`] has found.
    pub fn with_found(
        before: PageSide<'s>,
        after: PageSide<'s>,
        mut found: StateComparison,
        labels: &Labels,
        source: &dyn CellSource,
        files: Vec<FileDiff>,
    ) -> Self {
        // The page may show only the first ones: those that no longer agree with the label come first.
        found
            .flips
            .sort_by_key(|flip| FlipDirection::of(flip, labels));
        let shown = found.flips.iter().take(MAX_SHOWN_CHANGES);
        let shown = shown.chain(found.changes.iter().take(MAX_SHOWN_CHANGES));
        let cells = shown
            .flat_map(|change| change.before.cells.iter().chain(&change.after.cells))
            .copied()
            .collect();
        let results = source.read_results(cells);
        Self {
            before,
            after,
            found,
            results,
            files,
            has_causes: true,
            figures: Vec::new(),
            noise: NoiseRecords::default(),
        }
    }

    /// Shows the figures of evals, and marks flips of cells that differ without an edit.
    #[must_use]
    pub fn with_figures(self, figures: Vec<EvalFigureLines>, noise: NoiseRecords) -> Self {
        Self {
            figures,
            noise,
            ..self
        }
    }

    /// Shows causes, or leaves them out: without digests, they are unknown.
    #[must_use]
    pub fn with_causes(self, has_causes: bool) -> Self {
        Self { has_causes, ..self }
    }

    /// Returns the difference.
    pub fn found(&self) -> &StateComparison {
        &self.found
    }
}

/// Returns the CSS class of a flip.
fn flip_class(direction: FlipDirection) -> &'static str {
    match direction {
        FlipDirection::Away => "flip away",
        FlipDirection::Towards => "flip towards",
        FlipDirection::Unlabelled => "flip",
    }
}

fn describe_direction(direction: FlipDirection) -> &'static str {
    match direction {
        FlipDirection::Away => "no longer agrees with the label",
        FlipDirection::Towards => "now agrees with the label",
        FlipDirection::Unlabelled => "no label",
    }
}

/// The answer to the question whether the newer state is better.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    class: &'static str,
    lead: String,
}

/// Returns the answer that the counts of flips give. It is a count and not a test of significance.
fn answer(counts: FlipCounts) -> Answer {
    let FlipCounts {
        towards,
        away,
        unlabelled,
    } = counts;
    let flips = |n: u64| pluralize(n, "flip");
    let (class, lead) = match (towards, away) {
        (0, 0) if unlabelled == 0 => ("answer", "No verdict flipped.".to_owned()),
        (0, 0) => (
            "answer",
            format!(
                "Unknown: {}, and no flipped decision has a label.",
                flips(unlabelled)
            ),
        ),
        (towards, away) => {
            let (class, word) = match towards.cmp(&away) {
                std::cmp::Ordering::Greater => ("answer better", "Better"),
                std::cmp::Ordering::Less => ("answer worse", "Worse"),
                std::cmp::Ordering::Equal => ("answer mixed", "Neither better nor worse"),
            };
            let agrees = if towards == 1 { "agrees" } else { "agree" };
            let disagrees = if away == 1 { "agrees" } else { "agree" };
            (
                class,
                format!(
                    "{word}: {} now {agrees} with the label, and {away} no longer {disagrees}.",
                    flips(towards)
                ),
            )
        }
    };
    Answer { class, lead }
}

/// Writes whether the newer state is better than the older one, with the counts that say so.
pub(super) fn write_answer(
    html: &mut HtmlWriter<'_>,
    comparison: &PageComparison<'_>,
    labels: &Labels,
) -> io::Result<()> {
    let found = &comparison.found;
    let counts = FlipCounts::count(&found.flips, labels);
    let Answer { class, lead } = answer(counts);
    html.open("div", &[("class", class)])?;
    html.element("p", &[("class", "lead")], &lead)?;
    let names = format!("{} → {}", comparison.before.name, comparison.after.name);
    html.element("p", &[], &names)?;
    let agreement = |state| count_agreement(state, labels).all;
    let (before, after) = (
        agreement(comparison.before.state),
        agreement(comparison.after.state),
    );
    for (word, counts) in [("Before", before), ("After", after)] {
        html.element("p", &[], &format!("{word}: {}.", format_agreement(counts)))?;
    }
    html.element("p", &[], &format_counts(found, counts))?;
    let mut remarks = Vec::new();
    if found.pending > 0 {
        remarks.push(format!(
            "The answer is incomplete: {} pending.",
            count_are(found.pending, "decision")
        ));
    }
    if counts.labelled() > 0 {
        remarks.push(describe_chance(counts));
    }
    let states = (comparison.before.state, comparison.after.state);
    let noisy = found.flips.iter();
    let noisy = noisy.filter(|flip| find_noisy_flip(flip, states, &comparison.noise).is_some());
    let noisy = noisy.count();
    if noisy > 0 {
        let of_all = format!("of the {}", pluralize(found.flips.len(), "flip"));
        remarks.push(if noisy == 1 {
            format!("1 {of_all} is of a decision whose judge differs without an edit, so it proves nothing.")
        } else {
            format!("{noisy} {of_all} are of decisions whose judge differs without an edit, so they prove nothing.")
        });
    }
    if counts.labelled() > 0 && has_few_labels(after) {
        remarks.push(
            "These are counts of few labels: the difference may be chance. Labels on more decisions make the answer \
             firmer."
                .to_owned(),
        );
    }
    for remark in remarks {
        html.element("p", &[("class", "dim")], &remark)?;
    }
    html.close()
}

/// Returns whether chance explains the flips with labels, by the exact McNemar test.
fn describe_chance(counts: FlipCounts) -> String {
    let p = PairedCounts {
        lost: counts.away,
        gained: counts.towards,
        ..PairedCounts::default()
    }
    .mcnemar_exact();
    let verdict = if p < SIGNIFICANT {
        "chance alone rarely gives such a difference"
    } else {
        "chance alone can explain the difference"
    };
    format!(
        "Exact McNemar test on the flips with labels: p = {}; {verdict}.",
        format_p_value(p)
    )
}

/// Returns `true` if so few verdicts have a label that a few of them change the answer.
fn has_few_labels(agreement: LabelAgreement) -> bool {
    const FEW: u64 = 50;
    agreement.total() < FEW
}

fn count_are(n: usize, noun: &str) -> String {
    let verb = if n == 1 { "is" } else { "are" };
    format!("{} {verb}", pluralize(n, noun))
}

/// Formats the counts of a difference.
fn format_counts(found: &StateComparison, counts: FlipCounts) -> String {
    let mut parts = vec![
        pluralize(counts.total(), "flip"),
        pluralize(found.changes.len(), "other change"),
        format!("{} new", found.added.len()),
        format!("{} removed", found.removed.len()),
        format!("{} unchanged", found.unchanged),
    ];
    if !found.first_verdicts.is_empty() {
        parts.push(format!("{} judged first", found.first_verdicts.len()));
    }
    if found.with_earlier_verdict > 0 {
        let waited = found.with_earlier_verdict;
        parts.push(format!(
            "{waited} compared with a verdict from before an edit"
        ));
    }
    if found.pending > 0 {
        parts.push(format!("{} pending", found.pending));
    }
    parts.join(", ")
}

/// Writes the figures of each eval: both states on the same labels, and the noise of the judge.
fn write_figures(html: &mut HtmlWriter<'_>, figures: &[EvalFigureLines]) -> io::Result<()> {
    if figures.is_empty() {
        return Ok(());
    }
    html.element("h3", &[], "Labels and noise")?;
    for eval in figures {
        html.element("p", &[], &eval.name)?;
        html.open("ul", &[])?;
        for line in &eval.lines {
            html.element("li", &[], line)?;
        }
        html.close()?;
    }
    Ok(())
}

/// Writes the flips and the other differences.
pub(super) fn write_changes(
    html: &mut HtmlWriter<'_>,
    comparison: &PageComparison<'_>,
    labels: &Labels,
) -> io::Result<()> {
    let found = &comparison.found;
    html.open("section", &[])?;
    let title = format!("Flips from {}", comparison.before.name);
    html.element("h2", &[], &title)?;
    write_figures(html, &comparison.figures)?;
    if found.flips.is_empty() {
        html.element("p", &[], "No verdict flipped.")?;
    }
    write_list(html, comparison, &found.flips, labels)?;
    if !found.changes.is_empty() {
        let title = pluralize(found.changes.len(), "other change");
        html.element("h3", &[], &title)?;
        write_list(html, comparison, &found.changes, labels)?;
    }
    for (title, state, decisions) in [
        ("New", comparison.after.state, &found.added),
        ("Removed", comparison.before.state, &found.removed),
        (
            "Judged first",
            comparison.after.state,
            &found.first_verdicts,
        ),
    ] {
        write_counts_by_eval(html, title, state, decisions)?;
    }
    write_files(html, &comparison.files)?;
    html.close()
}

fn write_list(
    html: &mut HtmlWriter<'_>,
    comparison: &PageComparison<'_>,
    changes: &[StateChange],
    labels: &Labels,
) -> io::Result<()> {
    if changes.len() > MAX_SHOWN_CHANGES {
        let bound = format!(
            "The page shows {MAX_SHOWN_CHANGES} of {}; those that no longer agree with the label come first.",
            changes.len()
        );
        html.element("p", &[("class", "dim")], &bound)?;
    }
    for change in changes.iter().take(MAX_SHOWN_CHANGES) {
        write_change(html, change, comparison, labels)?;
    }
    Ok(())
}

fn write_change(
    html: &mut HtmlWriter<'_>,
    change: &StateChange,
    comparison: &PageComparison<'_>,
    labels: &Labels,
) -> io::Result<()> {
    let direction = FlipDirection::of(change, labels);
    html.open("div", &[("class", flip_class(direction))])?;
    html.open("p", &[])?;
    for (side, before) in [(&change.before, true), (&change.after, false)] {
        let class = outcome_class(side.outcome());
        html.element("b", &[("class", class)], &format_standing(side))?;
        html.text(if before { " → " } else { " · " })?;
    }
    html.text(&change.name.to_string())?;
    html.close()?;
    html.open("p", &[("class", "small")])?;
    let label = change.find_label(labels);
    let label = label.map_or_else(String::new, |label| {
        format!("label {}: ", format_label(label))
    });
    html.text(&format!("{label}{}", describe_direction(direction)))?;
    if comparison.has_causes {
        html.text(&format!(" · cause: {}", change.describe_cause()))?;
    }
    if let Some(old) = &change.old_name {
        html.text(&format!(" · before: {old}"))?;
    }
    if change.before.passed().is_some()
        && change.after.passed().is_some()
        && let Some(cell) = find_noisy_flip(
            change,
            (comparison.before.state, comparison.after.state),
            &comparison.noise,
        )
    {
        html.text(&format!(" · {}", mark_noisy_flip(cell)))?;
    }
    html.close()?;
    for side in [&change.before, &change.after] {
        write_reason(html, side, &comparison.results)?;
    }
    html.close()
}

fn write_reason(
    html: &mut HtmlWriter<'_>,
    side: &StateDecision,
    results: &HashMap<RecordedCell, CellResult>,
) -> io::Result<()> {
    let symbol = side.outcome().map_or('…', Outcome::symbol);
    let reason = find_explanation(side, results);
    let reason = if reason.is_empty() {
        "(no reason is recorded)"
    } else {
        reason
    };
    html.open("div", &[("class", "reason")])?;
    html.element(
        "b",
        &[("class", outcome_class(side.outcome()))],
        &symbol.to_string(),
    )?;
    html.text(" ")?;
    html.text(reason)?;
    html.close()
}

/// Writes the decisions that only one of the states has, as counts by eval.
fn write_counts_by_eval(
    html: &mut HtmlWriter<'_>,
    title: &str,
    state: &State,
    decisions: &[StateDecision],
) -> io::Result<()> {
    if decisions.is_empty() {
        return Ok(());
    }
    let mut evals: IndexMap<u32, Vec<&StateDecision>> = IndexMap::new();
    for decision in decisions {
        evals.entry(decision.eval).or_default().push(decision);
    }
    let heading = format!("{title}: {}", pluralize(decisions.len(), "decision"));
    html.element("h3", &[], &heading)?;
    html.open("ul", &[])?;
    for list in evals.values() {
        let Some(first) = list.first() else { continue };
        let eval = state.eval(first);
        let count = |passed| list.iter().filter(|one| one.passed() == passed).count();
        let mut text = format!(
            "{}/{}: ✓ {}, ✗ {}",
            state.rubric_id(eval),
            eval.id,
            count(Some(true)),
            count(Some(false))
        );
        let others = count(None);
        if others > 0 {
            let _infallible = write!(text, ", {others} without a verdict");
        }
        html.element("li", &[], &text)?;
    }
    html.close()
}

/// Writes the diffs of the files that determine verdicts.
fn write_files(html: &mut HtmlWriter<'_>, files: &[FileDiff]) -> io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    html.element("h3", &[], "The edit")?;
    for file in files {
        html.open("details", &[("open", "")])?;
        html.element("summary", &[], &file.path.display().to_string())?;
        let diff = if file.diff.is_empty() {
            "The file differs; dicta couldn't read its text."
        } else {
            &file.diff
        };
        write_cut(html, diff, MAX_DIFF_CHARS)?;
        html.close()?;
    }
    Ok(())
}

/// Writes preformatted text with at most `max` characters, and a remark if it is longer.
pub(super) fn write_cut(html: &mut HtmlWriter<'_>, text: &str, max: usize) -> io::Result<()> {
    let Some((at, _)) = text.char_indices().nth(max) else {
        return html.element("pre", &[], text);
    };
    html.element("pre", &[], &text[..at])?;
    let remark = format!(
        "The page shows {max} characters of this text of {} bytes.",
        text.len()
    );
    html.element("p", &[("class", "dim")], &remark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_flips_are_explained_by_chance_and_many_are_not() {
        let counts = |towards, away| FlipCounts {
            towards,
            away,
            unlabelled: 9,
        };
        let few = describe_chance(counts(5, 3));
        assert!(few.contains("p = 0.727; chance alone can explain"), "{few}");
        let many = describe_chance(counts(12, 1));
        assert!(many.contains("rarely gives"), "{many}");
    }

    #[test]
    fn answer_follows_from_the_flips_with_labels() {
        let counts = |towards, away, unlabelled| FlipCounts {
            towards,
            away,
            unlabelled,
        };
        for (counts, class, lead) in [
            (counts(0, 0, 0), "answer", "No verdict flipped."),
            (
                counts(0, 0, 1),
                "answer",
                "Unknown: 1 flip, and no flipped decision has a label.",
            ),
            (
                counts(3, 1, 2),
                "answer better",
                "Better: 3 flips now agree with the label, and 1 no longer agrees.",
            ),
            (
                counts(1, 2, 0),
                "answer worse",
                "Worse: 1 flip now agrees with the label, and 2 no longer agree.",
            ),
            (
                counts(1, 1, 9),
                "answer mixed",
                "Neither better nor worse: 1 flip now agrees with the label, and 1 no longer agrees.",
            ),
        ] {
            let lead = lead.to_owned();
            assert_eq!(answer(counts), Answer { class, lead });
        }
    }
}
