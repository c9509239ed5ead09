//! `dicta history`: lists the revisions of a workspace with what each edit changed, and sets the baseline. Does not
//! compute states; `record` does.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::CommandCx;
use super::compare_figures::paired_to_json;
use super::error::CommandError;
use super::eval_counts::{EvalCount, count_by_eval, find_continued};
use super::format::{Format, format_list};
use super::state_args::HistoryArgs;
use super::states::{StateCatalog, StateSource, labels_for};
use crate::compare::statistics::Confidence;
use crate::compare::{
    FlipCounts, PairedFigures, PairedLabels, collect_paired_labels, compare_entry,
    compute_paired_figures, count_agreement,
};
use crate::model::{
    LabelAgreement, Labels, Outcome, RecordedDraw, ScoreBounds, make_visible, pluralize,
    quote_shell_path,
};
use crate::record::{Correspondence, EvalEdit, EvalEditKind, History, HistoryEntry, State};
use crate::report::{
    describe_entry_edits, describe_paired_figures, format_as_code, format_cost, format_p_value,
    format_points_interval, wrap_line,
};

/// The width of the list without a terminal.
const DEFAULT_WIDTH: usize = 80;
/// The largest number of runs that a row for people names.
const MAX_LISTED_RUNS: usize = 8;
/// The indent of the lines below a row.
const INDENT: usize = 6;

/// A row of the list: an entry and its difference from the entry before it.
struct HistoryRow<'h> {
    entry: &'h HistoryEntry,
    /// The name: `@`, `@2` and so on.
    name: String,
    is_baseline: bool,
    /// The agreement of the state before; `None` for the first one.
    before: Option<LabelAgreement>,
    agreement: LabelAgreement,
    flips: FlipCounts,
    /// Both states on the same labels, by eval; evals without a label in both are left out.
    paired: Vec<EvalPair>,
    /// The same over all evals; `None` without a label.
    pooled: Option<PairedFigures>,
    added: Vec<EvalCount>,
    removed: Vec<EvalCount>,
    pass: u64,
    fail: u64,
    /// The decisions with another outcome.
    other: u64,
    pending: u64,
}

/// The agreement of two states on the labels that both have a verdict for.
struct CommonAgreement {
    labels: u64,
    old_right: u64,
    new_right: u64,
}

impl HistoryRow<'_> {
    /// Returns the agreement on common labels, drawn ones and others; `None` without such a label.
    fn common_counts(&self) -> Option<CommonAgreement> {
        let figures = self.pooled.as_ref()?;
        let sides = [figures.measured, figures.debug];
        Some(CommonAgreement {
            labels: sides.iter().map(|side| side.labels()).sum(),
            old_right: sides.iter().map(|side| side.old_right()).sum(),
            new_right: sides.iter().map(|side| side.new_right()).sum(),
        })
    }
}

/// The figures of one eval of two states.
struct EvalPair {
    rubric: String,
    eval: String,
    figures: PairedFigures,
}

/// Lists the states, or sets the baseline.
pub(super) fn history(args: &HistoryArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let catalog = StateCatalog::open(args.place.workspace.as_deref(), &["@"], cx)?;
    catalog.note_missing_labels(cx);
    if let Some(name) = &args.baseline {
        return set_baseline(name, &catalog, cx);
    }
    if args.no_baseline {
        let mut history = catalog.history()?.clone();
        history.remove_baseline(catalog.store()?, catalog.root())?;
        cx.streams.print("the baseline is removed\n");
        return Ok(0);
    }
    let history = catalog.history()?;
    for problem in history.problems().iter().chain(history.damaged_runs()) {
        cx.streams.print_note(&format!("note: {problem}"));
    }
    let labels = catalog.workspace.as_deref().zip(history.newest());
    let labels = labels.map_or_else(Labels::default, |(workspace, newest)| {
        labels_for(workspace, [&**newest.header()], cx)
    });
    let draws = catalog.draws()?;
    let rows = list_rows(
        history,
        &labels,
        &draws,
        args.limit.map(std::num::NonZeroUsize::get),
    );
    let to_json = || rows.iter().map(row_to_json).collect();
    let text = match args.format {
        Format::Markdown => format_markdown(&rows),
        format => format_list(format, to_json, || {
            format_rows(&rows, history.entries().len(), cx.streams.out.width)
        }),
    };
    cx.streams.print_format(args.format, &text);
    Ok(0)
}

fn set_baseline(name: &str, catalog: &StateCatalog, cx: &CommandCx) -> Result<u8, CommandError> {
    let mut history = catalog.history()?.clone();
    let number = match catalog.resolve(name)? {
        StateSource::Entry(number) => number,
        StateSource::Run(run) => {
            let mut entries = history.entries().iter();
            let entry = entries.find(|entry| entry.runs.iter().any(|one| one.id == run.id));
            let entry = entry.ok_or_else(|| {
                CommandError::usage(format!(
                    "run {} is not part of the history; `dicta history` lists the states and their runs",
                    run.id.letters()
                ))
            })?;
            entry.number
        }
        StateSource::File(path) => {
            return Err(CommandError::usage(format!(
                "the baseline is a state of the history, and {} is a file; `dicta compare {} @` compares with it",
                path.display(),
                quote_shell_path(&path)
            )));
        }
    };
    history.set_baseline(catalog.store()?, catalog.root(), number)?;
    let entry = catalog.entry(number)?;
    let name = name_entry(history.entries().len(), number);
    let edits = describe_entry_edits(entry);
    let text = format!(
        "@baseline is state {number} ({name}) of {}, run {}: {}\n",
        format_time(&entry.started.0),
        entry.runs.last().map_or("?", |run| run.id.letters()),
        make_visible(&edits.join("; "), false)
    );
    cx.streams.print_wrapped(&text);
    Ok(0)
}

/// Returns the rows, newest first, at most `limit`.
fn list_rows<'h>(
    history: &'h History,
    labels: &Labels,
    draws: &[RecordedDraw],
    limit: Option<usize>,
) -> Vec<HistoryRow<'h>> {
    let entries = history.entries();
    let baseline = history.baseline().map(|entry| entry.number);
    let mut rows = Vec::new();
    // The agreement of a state is the earlier agreement of the state after it, so each is counted once.
    let mut next: Option<LabelAgreement> = None;
    for (at, entry) in entries.iter().enumerate().rev() {
        if limit.is_some_and(|limit| rows.len() >= limit) {
            break;
        }
        let before = at.checked_sub(1).map(|at| &entries[at]);
        let count = |entry: &HistoryEntry| count_agreement(&entry.state, labels).all;
        let agreement = next.unwrap_or_else(|| count(entry));
        let old_agreement = before.map(count);
        next = old_agreement;
        let mut row = HistoryRow {
            entry,
            name: name_entry(entries.len(), entry.number),
            is_baseline: baseline == Some(entry.number),
            before: old_agreement,
            agreement,
            flips: FlipCounts::default(),
            paired: Vec::new(),
            pooled: None,
            added: Vec::new(),
            removed: Vec::new(),
            pass: 0,
            fail: 0,
            other: 0,
            pending: 0,
        };
        for decision in entry.state.decisions() {
            *match decision.outcome() {
                Some(Outcome::Pass) => &mut row.pass,
                Some(Outcome::Fail) => &mut row.fail,
                Some(_) => &mut row.other,
                None => &mut row.pending,
            } += 1;
        }
        if let Some((before, found)) = before.zip(compare_entry(entries, at)) {
            let matched = Correspondence::find(&before.state, &entry.state);
            let [old, new] = find_continued(&before.state, &matched);
            row.flips = FlipCounts::count(&found.flips, labels);
            (row.paired, row.pooled) = pair_labels((&before.state, &entry.state), labels, draws);
            row.added = count_by_eval(&entry.state, &found.added, &new);
            row.removed = count_by_eval(&before.state, &found.removed, &old);
        }
        rows.push(row);
    }
    rows
}

/// Returns the figures of two states on the same labels, by eval and over all evals.
fn pair_labels(
    (before, after): (&State, &State),
    labels: &Labels,
    draws: &[RecordedDraw],
) -> (Vec<EvalPair>, Option<PairedFigures>) {
    let evals = collect_paired_labels(Some(before), after, labels, draws);
    let figures = compute_paired_figures(&evals, Confidence::P95);
    let pooled = PairedLabels::join(evals.iter().map(|eval| &eval.labels));
    let pooled = pooled.figures(Confidence::P95);
    let pairs = evals
        .into_iter()
        .zip(figures)
        .map(|(eval, figures)| EvalPair {
            rubric: eval.rubric,
            eval: eval.eval,
            figures,
        });
    let pairs = pairs.filter(|pair| pair.figures.has_labels()).collect();
    (pairs, Some(pooled).filter(PairedFigures::has_labels))
}

/// Returns the name of the entry with a number: `@` for the newest.
pub(super) fn name_entry(entries: usize, number: usize) -> String {
    match entries.saturating_sub(number) {
        0 => "@".to_owned(),
        back => format!("@{}", back + 1),
    }
}

/// Formats a wall time to the minute.
fn format_time(time: &str) -> String {
    time.get(..16).unwrap_or(time).replace('T', " ")
}

/// Returns the name of a kind of edit in JSON.
fn name_edit_kind(kind: &EvalEditKind) -> &'static str {
    match kind {
        EvalEditKind::New { .. } => "new",
        EvalEditKind::Removed => "removed",
        EvalEditKind::Renamed { .. } => "renamed",
        EvalEditKind::Question => "question",
        EvalEditKind::Params => "params",
        EvalEditKind::Bounds { .. } => "bounds",
        EvalEditKind::Scope => "scope",
        EvalEditKind::Judge => "judge",
        EvalEditKind::Repeat => "repeat",
        EvalEditKind::Weight => "weight",
    }
}

fn edit_to_json(edit: &EvalEdit) -> Value {
    let bounds = |bounds: &ScoreBounds| json!({"min_score": bounds.min, "max_score": bounds.max});
    let (from, to) = match &edit.kind {
        EvalEditKind::Bounds { from, to } => (bounds(from), bounds(to)),
        EvalEditKind::Renamed { from } => (from.as_str().into(), edit.eval.as_str().into()),
        _ => (Value::Null, Value::Null),
    };
    let perhaps = match &edit.kind {
        EvalEditKind::New { perhaps } => perhaps.as_deref(),
        _ => None,
    };
    json!({
        "rubric": edit.rubric,
        "eval": (!edit.eval.is_empty()).then_some(&edit.eval),
        "kind": name_edit_kind(&edit.kind),
        "from": from,
        "to": to,
        "perhaps": perhaps,
    })
}

fn agreement_to_json(agreement: &LabelAgreement) -> Value {
    json!({
        "n": agreement.total(),
        "true_pass": agreement.true_pass,
        "false_pass": agreement.false_pass,
        "true_fail": agreement.true_fail,
        "false_fail": agreement.false_fail,
        "to_confirm": agreement.to_confirm,
    })
}

fn counts_to_json(counts: &[EvalCount]) -> Value {
    let counts = counts.iter().map(|count| {
        json!({
            "eval": count.name,
            "whole": count.is_whole,
            "decisions": count.total(),
            "pass": count.pass,
            "fail": count.fail,
        })
    });
    counts.collect()
}

fn eval_to_json(pair: &EvalPair) -> Value {
    let mut value = paired_to_json(&pair.figures);
    value["rubric"] = pair.rubric.as_str().into();
    value["eval"] = pair.eval.as_str().into();
    value
}

/// Returns the JSON object of a row.
fn row_to_json(row: &HistoryRow<'_>) -> Value {
    let entry = row.entry;
    let runs = entry.runs.iter().map(|run| {
        json!({
            "run": run.id.0,
            "letters": run.id.letters(),
            "started": run.started.0,
            "cells": run.cells,
            "judged": run.judged,
            "cost_usd": run.cost.exact_usd(),
            "state": run.status.name(),
            "interrupted": run.status.ended_early(),
        })
    });
    json!({
        "type": "state",
        "state": row.name,
        "number": entry.number,
        "revision": entry.revision,
        "same_as": entry.same_as,
        "started": entry.started.0,
        "baseline": row.is_baseline,
        "edits": entry.edits.iter().map(edit_to_json).collect::<Vec<_>>(),
        "judged": entry.judged,
        "cost_usd": entry.cost.exact_usd(),
        "known_usd": entry.cost.usd,
        "unknown_calls": entry.cost.unknown,
        "pass": row.pass,
        "fail": row.fail,
        "other": row.other,
        "pending": row.pending,
        "labels": row.agreement.total(),
        "agreement_before": row.before.as_ref().map(agreement_to_json),
        "agreement": agreement_to_json(&row.agreement),
        "flips": row.flips.total(),
        "flips_towards": row.flips.towards,
        "flips_away": row.flips.away,
        "flips_unlabelled": row.flips.unlabelled,
        "paired": row.pooled.as_ref().map(paired_to_json),
        "evals": row.paired.iter().map(eval_to_json).collect::<Vec<_>>(),
        "added": counts_to_json(&row.added),
        "removed": counts_to_json(&row.removed),
        "runs": runs.collect::<Vec<_>>(),
    })
}

fn format_counts(agreement: &LabelAgreement) -> String {
    let total = agreement.total();
    format!("{}/{total}", total - agreement.disagreements())
}

/// Formats the agreement before and after, on the labels that both states have a verdict for: `10/15 → 15/15`.
fn format_agreement(row: &HistoryRow<'_>) -> String {
    match row.common_counts() {
        _ if row.agreement.total() == 0 && row.agreement.to_confirm > 0 => {
            format!("{} to confirm", row.agreement.to_confirm)
        }
        _ if row.agreement.total() == 0 => "–".to_owned(),
        Some(common) => format!(
            "{}/{n} → {}/{n}",
            common.old_right,
            common.new_right,
            n = common.labels
        ),
        None => format_counts(&row.agreement),
    }
}

/// Describes the agreement on all labels of both states, if the arrow of the row leaves some out.
fn describe_other_labels(row: &HistoryRow<'_>) -> Option<String> {
    let common = row.common_counts()?;
    let before = row.before.as_ref()?;
    if before.total() == common.labels && row.agreement.total() == common.labels {
        return None;
    }
    let describe = |agreement: &LabelAgreement| match (agreement.total(), agreement.to_confirm) {
        (0, 0) => "none counted".to_owned(),
        (0, waiting) => format!("{waiting} to confirm"),
        _ => format_counts(agreement),
    };
    Some(format!(
        "of all labels: {} before, {} now",
        describe(before),
        describe(&row.agreement)
    ))
}

fn describe_flips(flips: FlipCounts) -> String {
    match flips.total() {
        0 => "no flips".to_owned(),
        total if flips.labelled() == 0 => pluralize(total, "flip"),
        total => format!(
            "{}: {} towards the label, {} away from it, {} without a label",
            pluralize(total, "flip"),
            flips.towards,
            flips.away,
            flips.unlabelled
        ),
    }
}

/// Describes the changes of agreement on drawn labels: of each eval with a change, else of all evals.
fn describe_pairs(row: &HistoryRow<'_>) -> Vec<String> {
    let describe = |name: &str, figures: &PairedFigures| {
        let lines = describe_paired_figures(figures);
        format!("{name}: {}", lines.join("; "))
    };
    let measured = |figures: &PairedFigures| figures.measured.labels() > 0;
    let changed = row
        .paired
        .iter()
        .filter(|pair| measured(&pair.figures) && pair.figures.measured.discordant() > 0);
    let evals: Vec<String> = changed
        .map(|pair| describe(&format!("{}/{}", pair.rubric, pair.eval), &pair.figures))
        .collect();
    if !evals.is_empty() {
        return evals;
    }
    let pooled = row.pooled.iter().filter(|figures| measured(figures));
    pooled
        .map(|figures| describe("all evals", figures))
        .collect()
}

/// Describes the decisions that only one of the states has; `None` without such decisions.
fn describe_counts(title: &str, counts: &[EvalCount]) -> Option<String> {
    if counts.is_empty() {
        return None;
    }
    let parts = counts.iter().map(|count| match title {
        "new" => format!("{} {}", count.name, count.format_counts()),
        _ => format!("{} {}", count.name, count.total()),
    });
    let total: u64 = counts.iter().map(EvalCount::total).sum();
    let parts = parts.collect::<Vec<_>>().join(", ");
    Some(format!(
        "{title}: {} ({parts})",
        pluralize(total, "decision")
    ))
}

fn describe_runs(entry: &HistoryEntry) -> String {
    let listed = entry.runs.iter().rev().take(MAX_LISTED_RUNS);
    let mut names: Vec<String> = listed
        .map(|run| {
            let letters = run.id.letters();
            match run.status.mark() {
                Some(mark) => format!("{letters} ({mark})"),
                None => letters.to_owned(),
            }
        })
        .collect();
    if entry.runs.len() > MAX_LISTED_RUNS {
        names.push(format!("{} more", entry.runs.len() - MAX_LISTED_RUNS));
    }
    let word = if entry.runs.len() == 1 { "run" } else { "runs" };
    format!("{word} {}", names.join(", "))
}

/// Formats the list for people. `width` is the terminal's width in columns, 0 without a terminal.
fn format_rows(rows: &[HistoryRow<'_>], entries: usize, width: usize) -> String {
    if rows.is_empty() {
        return "no states yet; `dicta run` records the first one\n".to_owned();
    }
    let width = if width == 0 { DEFAULT_WIDTH } else { width };
    let mut out = format!(
        "{:<7}{:>4}  {:<16}  {:>6}  {:>8}  {:>6}  agreement\n",
        "state", "#", "time", "judged", "cost", "labels"
    );
    for row in rows {
        let entry = row.entry;
        let mark = if row.is_baseline { "*" } else { "" };
        let labels = match row.agreement.total() {
            0 => "–".to_owned(),
            n => n.to_string(),
        };
        let _infallible = writeln!(
            out,
            "{:<7}{:>4}  {:<16}  {:>6}  {:>8}  {labels:>6}  {}",
            format!("{}{mark}", row.name),
            entry.number,
            format_time(&entry.started.0),
            entry.judged,
            format_cost(entry.cost),
            format_agreement(row)
        );
        let mut details = describe_entry_edits(entry);
        if entry.number > 1 {
            details.push(describe_flips(row.flips));
        } else {
            details.push(format!("✓ {}  ✗ {}", row.pass, row.fail));
        }
        details.extend(describe_other_labels(row));
        details.extend(describe_pairs(row));
        details.extend(describe_counts("new", &row.added));
        details.extend(describe_counts("no longer planned", &row.removed));
        if row.other > 0 {
            let decisions = pluralize(row.other, "decision");
            details.push(format!("{decisions} without pass or fail"));
        }
        if row.pending > 0 {
            details.push(format!("{} pending", pluralize(row.pending, "decision")));
        }
        // Without this line, two rows would seem to count the same labels.
        if row.agreement.to_confirm > 0 {
            let labels = pluralize(row.agreement.to_confirm, "label");
            details.push(format!("{labels} to confirm, and not counted"));
        }
        details.push(describe_runs(entry));
        for detail in details {
            let line = make_visible(&detail, false);
            let line = wrap_line(&line, INDENT, INDENT + 2, width);
            let _infallible = writeln!(out, "{:INDENT$}{line}", "");
        }
    }
    if rows.iter().any(|row| row.is_baseline) {
        out.push_str("* the baseline\n");
    }
    if rows.iter().any(|row| row.agreement.total() > 0) {
        out.push_str("agreement: with the labels as they are now, also of earlier states\n");
    }
    if rows.len() < entries {
        let _infallible = writeln!(
            out,
            "{} earlier",
            pluralize((entries - rows.len()) as u64, "state")
        );
    }
    out
}

/// Formats the list as a table for documentation and pull requests.
fn format_markdown(rows: &[HistoryRow<'_>]) -> String {
    let mut out = "| state | number | time | edit | judged | cost | labels | agreement | towards | away | unlabelled | difference on drawn labels | McNemar p | runs |\n\
                   |---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let entry = row.entry;
        let mark = if row.is_baseline { " (baseline)" } else { "" };
        let edits: Vec<String> = describe_entry_edits(entry)
            .iter()
            .map(|edit| format_as_code(edit))
            .collect();
        let runs: Vec<&str> = entry.runs.iter().map(|run| run.id.letters()).collect();
        let measured = row
            .pooled
            .as_ref()
            .filter(|figures| figures.measured.labels() > 0);
        let difference = measured.and_then(|figures| figures.difference.ok());
        let difference = difference.map_or_else(
            || "–".to_owned(),
            |one| format!("{} points", format_points_interval(one.further)),
        );
        let p = measured.and_then(|figures| figures.p_value);
        let _infallible = writeln!(
            out,
            "| {}{mark} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {difference} | {} | {} |",
            row.name,
            entry.number,
            format_time(&entry.started.0),
            edits.join("<br>"),
            entry.judged,
            format_cost(entry.cost),
            row.agreement.total(),
            format_agreement(row),
            row.flips.towards,
            row.flips.away,
            row.flips.unlabelled,
            p.map_or_else(|| "–".to_owned(), format_p_value),
            format_as_code(&runs.join(", "))
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_state_has_no_number_in_its_name() {
        assert_eq!(name_entry(5, 5), "@");
        assert_eq!(name_entry(5, 4), "@2");
        assert_eq!(name_entry(5, 1), "@5");
    }
}
