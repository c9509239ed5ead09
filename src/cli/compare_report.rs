//! The comparison of two states as text: human, json, jsonl, markdown, junit.
//!
//! Responsible for the formats of `dicta compare`. Does not compare.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::compare_figures::ComparisonFigures;
use super::error::CommandError;
use super::eval_counts::{EvalCount, count_by_eval, find_continued};
use super::format::{Format, join_lines};
use super::migration::MigrationReport;
use super::states::{LoadedState, StateSource};
use crate::compare::{FileDiff, FlipCounts, FlipDirection, StateChange, StateComparison};
use crate::model::{CellName, CellResult, Labels, Outcome, make_visible, pluralize};
use crate::record::{Correspondence, RecordedCell, State, StateDecision};
use crate::report::{
    JunitCaseText, JunitStatus, ReportDetail, TextStyle, describe_edited, format_as_code,
    format_junit, mark_edited, mark_noisy_flip, wrap_line,
};

/// An eval with another name in the newer state.
struct RenamedEval {
    from: String,
    to: String,
}

/// A comparison with everything that its formats show.
pub(super) struct ComparisonReport<'s> {
    sides: [&'s LoadedState; 2],
    found: StateComparison,
    labels: Labels,
    results: HashMap<RecordedCell, CellResult>,
    files: Vec<FileDiff>,
    figures: ComparisonFigures,
    /// The comparison of the judges, if the user asked for it.
    migration: Option<MigrationReport>,
    /// False if a side is identified by names only, so that causes are unknown.
    has_causes: bool,
    renamed: Vec<RenamedEval>,
    added: Vec<EvalCount>,
    removed: Vec<EvalCount>,
}

impl<'s> ComparisonReport<'s> {
    pub(super) fn new(
        sides: [&'s LoadedState; 2],
        found: StateComparison,
        labels: Labels,
        results: HashMap<RecordedCell, CellResult>,
        files: Vec<FileDiff>,
        figures: ComparisonFigures,
        has_causes: bool,
    ) -> Self {
        let (before, after) = (&sides[0].state, &sides[1].state);
        let matched = Correspondence::find(before, after);
        let [old, new] = find_continued(before, &matched);
        let name = |state: &State, at: usize| {
            let eval = &state.header.evals[at];
            format!("{}/{}", state.rubric_id(eval), eval.id)
        };
        let renamed = matched.evals.iter().enumerate().filter_map(|(at, from)| {
            let (from, to) = (name(before, (*from)?), name(after, at));
            (from != to).then_some(RenamedEval { from, to })
        });
        Self {
            renamed: renamed.collect(),
            added: count_by_eval(after, &found.added, &new),
            removed: count_by_eval(before, &found.removed, &old),
            sides,
            found,
            labels,
            results,
            files,
            figures,
            migration: None,
            has_causes,
        }
    }

    /// Adds the comparison of two judges.
    #[must_use]
    pub(super) fn with_migration(self, migration: Option<MigrationReport>) -> Self {
        Self { migration, ..self }
    }

    /// Returns the number of flips that are regressions.
    pub(super) fn count_regressions(&self) -> u64 {
        let flips = self.found.flips.iter();
        flips.filter(|flip| self.is_regression(flip)).count() as u64
    }

    fn direction(&self, change: &StateChange) -> FlipDirection {
        FlipDirection::of(change, &self.labels)
    }

    fn is_regression(&self, change: &StateChange) -> bool {
        self.direction(change).is_regression(change)
    }

    /// Returns the mark of a flip whose cell differs without an edit.
    fn noise_mark(&self, change: &StateChange) -> Option<String> {
        let [before, after] = self.sides.map(|side| &side.state);
        let cell = self.figures.noisy_flip(change, (before, after))?;
        Some(mark_noisy_flip(cell))
    }

    fn label(&self, change: &StateChange) -> Option<bool> {
        change.find_label(&self.labels)
    }

    /// Returns the explanation of the first cell that voted for the outcome, or that cell's error.
    fn explanation(&self, decision: &StateDecision) -> &str {
        let results = || {
            decision
                .cells
                .iter()
                .filter_map(|cell| self.results.get(cell))
        };
        let outcome = decision.outcome();
        let voter = results().find(|result| Some(result.outcome) == outcome);
        voter.or_else(|| results().next()).map_or("", |result| {
            result.error.as_deref().unwrap_or(&result.explanation)
        })
    }

    /// Describes the cause of a change in words; `None` if it is unknown.
    fn describe_cause(&self, change: &StateChange) -> Option<String> {
        self.has_causes.then(|| change.describe_cause())
    }

    /// Formats the counts: `3 flips, 0 other changes, 0 new, 0 removed, 82 unchanged`.
    fn format_counts(&self) -> String {
        let found = &self.found;
        let mut text = format!(
            "{}, {}, {} new, {} removed, {} unchanged",
            pluralize(found.flips.len() as u64, "flip"),
            pluralize(found.changes.len() as u64, "other change"),
            found.added.len(),
            found.removed.len(),
            found.unchanged
        );
        if !found.first_verdicts.is_empty() {
            let _infallible = write!(text, ", {} judged first", found.first_verdicts.len());
        }
        if found.with_earlier_verdict > 0 {
            let waited = found.with_earlier_verdict;
            let _infallible = write!(
                text,
                ", {waited} compared with a verdict from before an edit"
            );
        }
        if found.pending > 0 {
            let _infallible = write!(text, ", {} pending", found.pending);
        }
        let to_confirm = self.figures.to_confirm();
        if to_confirm > 0 {
            let labels = pluralize(to_confirm, "label");
            let _infallible = write!(text, ", {labels} to confirm");
        }
        for (word, side) in ["older", "newer"].into_iter().zip(self.sides) {
            if let Some(edited) = describe_edited(count_edited(side)) {
                let _infallible = write!(text, "\n{word}: {edited}");
            }
        }
        text
    }

    fn format_flip_counts(&self) -> String {
        let counts = FlipCounts::count(&self.found.flips, &self.labels);
        if counts.labelled() == 0 {
            return counts.total().to_string();
        }
        format!(
            "{} ({} towards the label, {} away from it, {} without a label)",
            counts.total(),
            counts.towards,
            counts.away,
            counts.unlabelled
        )
    }
}

/// Formats a comparison.
pub(super) fn write_comparison(
    report: &ComparisonReport<'_>,
    format: Format,
    style: TextStyle,
) -> Result<String, CommandError> {
    Ok(match format {
        Format::Human => format_text(report, style),
        Format::Markdown => format_markdown(report),
        Format::Jsonl => join_lines(to_lines(report)),
        Format::Junit => format_comparison_junit(report).map_err(|error| {
            CommandError::usage(format!("dicta can't write the JUnit report: {error}"))
        })?,
        _ => format!("{:#}\n", to_document(report)),
    })
}

/// Describes a side: its name, and for a state its number, its time and run.
fn describe_side(side: &LoadedState) -> String {
    let header = &side.state.header;
    match &side.source {
        StateSource::Entry(number) => format!(
            "{} (state {number}, run {})",
            side.name,
            header.run.letters()
        ),
        StateSource::Run(run) => run.id.0.clone(),
        StateSource::File(path) => path.display().to_string(),
    }
}

/// Returns the number of decisions of a side that a person edited.
fn count_edited(side: &LoadedState) -> u64 {
    side.state.decisions().filter(|one| one.edited).count() as u64
}

/// Formats the comparison for people.
fn format_text(report: &ComparisonReport<'_>, style: TextStyle) -> String {
    let [before, after] = report.sides.map(describe_side);
    let mut out = format!("{before} → {after}\n");
    let is_quiet = style.detail == ReportDetail::Quiet;
    let flips: Vec<&StateChange> = report
        .found
        .flips
        .iter()
        .filter(|flip| !is_quiet || report.is_regression(flip))
        .collect();
    if !flips.is_empty() {
        let title = if is_quiet { "regressions" } else { "flips" };
        let counts = if is_quiet {
            flips.len().to_string()
        } else {
            report.format_flip_counts()
        };
        let _infallible = writeln!(out, "\n{title}: {counts}");
        for flip in flips {
            write_change(&mut out, report, flip, style.width);
        }
    }
    if !is_quiet {
        write_details(&mut out, report, style);
        out.push_str(&report.figures.format_text(&report.sides[1].state));
    }
    if let Some(migration) = &report.migration {
        out.push_str(&migration.format_text());
    }
    let _infallible = writeln!(out, "\n{}", report.format_counts());
    out
}

/// Writes everything but the flips.
fn write_details(out: &mut String, report: &ComparisonReport<'_>, style: TextStyle) {
    if !report.found.changes.is_empty() {
        let _infallible = writeln!(out, "\nother changes: {}", report.found.changes.len());
        for change in &report.found.changes {
            write_change(out, report, change, style.width);
        }
    }
    if !report.renamed.is_empty() {
        let _infallible = writeln!(out, "\nrenamed: {}", report.renamed.len());
        for one in &report.renamed {
            let line = format!("  {} → {}", one.from, one.to);
            let _infallible = writeln!(out, "{}", make_visible(&line, false));
        }
    }
    let lists = style.detail == ReportDetail::Verbose;
    for (title, counts, total) in [
        ("new", &report.added, report.found.added.len()),
        ("removed", &report.removed, report.found.removed.len()),
    ] {
        if total == 0 {
            continue;
        }
        let _infallible = writeln!(out, "\n{title}: {total}");
        for count in counts {
            let name = make_visible(&count.name, false);
            let part = if count.is_whole {
                ""
            } else {
                ", in some transcripts"
            };
            let _infallible = match title {
                "new" => writeln!(out, "  {name}{part}  {}", count.format_counts()),
                _ => writeln!(out, "  {name}{part}  {}", count.total()),
            };
            if lists {
                for name in &count.decisions {
                    let _infallible =
                        writeln!(out, "    {}", make_visible(&name.to_string(), false));
                }
            }
        }
        if !lists && title == "removed" {
            out.push_str("  (-v lists them)\n");
        }
    }
    for file in &report.files {
        if file.diff.is_empty() {
            let _infallible = writeln!(
                out,
                "\n{} differs; dicta couldn't read its text",
                file.path.display()
            );
        } else {
            let _infallible = write!(out, "\n{}", file.diff);
        }
    }
}

/// Writes a changed decision. `width` is the terminal's width in columns, 0 without a terminal.
fn write_change(
    out: &mut String,
    report: &ComparisonReport<'_>,
    change: &StateChange,
    width: usize,
) {
    let symbol = |decision: &StateDecision| decision.outcome().map_or('?', Outcome::symbol);
    let is_flip = change.before.passed().is_some() && change.after.passed().is_some();
    let label = match (report.label(change), report.direction(change)) {
        (Some(label), FlipDirection::Towards) if is_flip => {
            format!(
                "  towards the label {}",
                Outcome::from_passed(label).symbol()
            )
        }
        (Some(label), FlipDirection::Away) if is_flip => {
            format!(
                "  away from the label {}",
                Outcome::from_passed(label).symbol()
            )
        }
        (Some(label), _) => format!("  label {}", Outcome::from_passed(label).symbol()),
        (None, _) => String::new(),
    };
    let name = change.name.to_string();
    let _infallible = writeln!(
        out,
        "  {} → {}  {}{label}",
        symbol(&change.before),
        symbol(&change.after),
        make_visible(&name, false),
    );
    if let Some(old) = &change.old_name {
        let old = old.to_string();
        let _infallible = writeln!(out, "      was named {}", make_visible(&old, false));
    }
    if let Some(cause) = report.describe_cause(change) {
        let _infallible = writeln!(out, "      {cause}");
    }
    if let Some(noise) = report.noise_mark(change).filter(|_| is_flip) {
        let _infallible = writeln!(out, "      {noise}");
    }
    let was = report.explanation(&change.before);
    let now = report.explanation(&change.after);
    // With other bounds, both sides rest on the same verdict.
    if was != now {
        write_side(out, "was", &change.before, was, width);
    }
    write_side(out, "now", &change.after, now, width);
}

fn write_side(out: &mut String, word: &str, decision: &StateDecision, why: &str, width: usize) {
    let score = decision.score().map(|score| format!(" {score:.2}"));
    let outcome = describe_side_outcome(decision);
    // Explanations come from judges, so make control characters visible and wrap the lines.
    let head = format!("{word} {outcome}{}", score.unwrap_or_default());
    if why.is_empty() {
        let _infallible = writeln!(out, "      {head}");
        return;
    }
    let head = format!("{head}: ");
    let mut lines = why.lines();
    let first = make_visible(lines.next().unwrap_or(""), false);
    let first = wrap_line(&first, 6 + head.chars().count(), 10, width);
    let _infallible = writeln!(out, "      {head}{first}");
    for line in lines {
        let line = make_visible(line, false);
        let _infallible = writeln!(out, "          {}", wrap_line(&line, 10, 10, width));
    }
}

/// Returns the outcome of a decision, with a mark if a person edited it.
fn describe_side_outcome(decision: &StateDecision) -> String {
    let outcome = decision.outcome().map_or("pending", Outcome::as_str);
    let edited = mark_edited(decision.edited);
    format!("{outcome}{edited}")
}

/// Returns the JSON object of a changed decision.
fn change_to_json(report: &ComparisonReport<'_>, kind: &str, change: &StateChange) -> Value {
    let name = &change.name;
    let side = |decision: &StateDecision| {
        json!({
            "outcome": decision.outcome(),
            "passed": decision.passed(),
            "score": decision.score(),
            "explanation": report.explanation(decision),
            "edited": decision.edited,
        })
    };
    let is_flip = kind == "flip";
    let cause = report.has_causes.then(|| change.cause.as_str());
    let arithmetic = change.cause.format_arithmetic();
    let [before, after] = report.sides.map(|side| &side.state);
    let noise = report
        .figures
        .noisy_flip(change, (before, after))
        .filter(|_| is_flip);
    json!({
        "type": kind,
        "decision": name.to_string(),
        "transcript": name.transcript,
        "rubric": name.rubric,
        "eval": name.eval,
        "message": name.message,
        "before": side(&change.before),
        "after": side(&change.after),
        "label": report.label(change),
        "old_decision": change.old_name.as_ref().map(ToString::to_string),
        "cause": cause,
        "arithmetic": arithmetic.filter(|_| report.has_causes),
        "direction": is_flip.then(|| report.direction(change).as_str()),
        "regression": is_flip && report.is_regression(change),
        "noise": noise.map(|cell| json!({"passes": cell.passes, "repeats": cell.repeats})),
    })
}

/// Returns the JSON object of a decision that only one state has.
fn decision_to_json(kind: &str, state: &State, decision: &StateDecision) -> Value {
    let name = state.name(decision);
    json!({
        "type": kind,
        "decision": name.to_string(),
        "transcript": name.transcript,
        "rubric": name.rubric,
        "eval": name.eval,
        "message": name.message,
        "outcome": decision.outcome(),
        "passed": decision.passed(),
        "score": decision.score(),
        "edited": decision.edited,
    })
}

/// Returns the JSON object of a side.
fn side_to_json(side: &LoadedState) -> Value {
    json!({
        "name": side.name,
        "state": match side.source {
            StateSource::Entry(number) => Some(number),
            _ => None,
        },
        "revision": side.has_digests.then(|| side.state.header.revision_digest()),
        "edited": count_edited(side),
    })
}

/// Returns one JSON object for each difference, then the counts.
fn to_lines(report: &ComparisonReport<'_>) -> Vec<Value> {
    let found = &report.found;
    let [before, after] = report.sides;
    let counts = FlipCounts::count(&found.flips, &report.labels);
    let mut lines = Vec::new();
    for (kind, changes) in [("flip", &found.flips), ("change", &found.changes)] {
        lines.extend(changes.iter().map(|one| change_to_json(report, kind, one)));
    }
    for (kind, state, decisions) in [
        ("added", &after.state, &found.added),
        ("removed", &before.state, &found.removed),
    ] {
        let decisions = decisions.iter();
        lines.extend(decisions.map(|one| decision_to_json(kind, state, one)));
    }
    let renamed = report.renamed.iter();
    lines.extend(renamed.map(|one| json!({"type": "renamed", "from": one.from, "to": one.to})));
    lines.extend(report.files.iter().map(
        |file| json!({"type": "file", "path": file.path.display().to_string(), "diff": file.diff}),
    ));
    lines.extend(report.figures.to_lines(&after.state));
    lines.push(json!({
        "type": "summary",
        "before": before.run_id().0,
        "after": after.run_id().0,
        "flips": found.flips.len(),
        "changes": found.changes.len(),
        "added": found.added.len(),
        "removed": found.removed.len(),
        "unchanged": found.unchanged,
        "first_verdicts": found.first_verdicts.len(),
        "with_earlier_verdict": found.with_earlier_verdict,
        "pending": found.pending,
        "towards_label": counts.towards,
        "away_from_label": counts.away,
        "unlabelled": counts.unlabelled,
        "regressions": report.count_regressions(),
        "to_confirm": report.figures.to_confirm(),
        "migration": report.migration.as_ref().map(MigrationReport::to_json),
        "older": side_to_json(before),
        "newer": side_to_json(after),
    }));
    lines
}

/// Returns the comparison as one document: the same objects as the lines, in a list for each kind.
fn to_document(report: &ComparisonReport<'_>) -> Value {
    let mut document = json!({
        "flips": [], "changes": [], "added": [], "removed": [], "renamed": [], "files": [], "evals": [],
        "summary": null,
    });
    for line in to_lines(report) {
        let kind = line["type"].as_str().unwrap_or_default();
        let key = match kind {
            "flip" => "flips",
            "change" => "changes",
            "file" => "files",
            "eval" => "evals",
            other => other,
        };
        match document[key].as_array_mut() {
            Some(list) => list.push(line),
            None => document["summary"] = line,
        }
    }
    document
}

/// Formats the comparison for a pull request.
fn format_markdown(report: &ComparisonReport<'_>) -> String {
    let [before, after] = report
        .sides
        .map(|side| format_as_code(&describe_side(side)));
    let mut out = format!("## dicta compare {before} {after}\n");
    for (title, changes) in [
        ("flip", &report.found.flips),
        ("other change", &report.found.changes),
    ] {
        if changes.is_empty() {
            continue;
        }
        let counts = pluralize(changes.len() as u64, title);
        let _infallible = writeln!(
            out,
            "\n{counts}:\n\n| before | after | decision | why | label | cause |\n|---|---|---|---|---|---|"
        );
        for change in changes {
            let side = |decision: &StateDecision| match decision.outcome() {
                Some(outcome) => {
                    format!("{} {}", outcome.symbol(), describe_side_outcome(decision))
                }
                None => "pending".to_owned(),
            };
            let label = report.label(change).map_or(String::new(), |label| {
                Outcome::from_passed(label).symbol().to_string()
            });
            let direction = match report.direction(change) {
                FlipDirection::Towards => " towards",
                FlipDirection::Away => " away",
                FlipDirection::Unlabelled => "",
            };
            let mut cause = report.describe_cause(change).unwrap_or_default();
            if let Some(noise) = report.noise_mark(change).filter(|_| title == "flip") {
                let _infallible = write!(cause, "; {noise}");
            }
            let _infallible = writeln!(
                out,
                "| {} | {} | {} | {} | {label}{direction} | {cause} |",
                side(&change.before),
                side(&change.after),
                format_as_code(&change.name.to_string()),
                format_as_code(report.explanation(&change.after)),
            );
        }
    }
    out.push_str(&report.figures.format_markdown(&report.sides[1].state));
    for one in &report.renamed {
        let (from, to) = (format_as_code(&one.from), format_as_code(&one.to));
        let _infallible = writeln!(out, "\nRenamed: {from} → {to}.");
    }
    for (title, counts) in [("New", &report.added), ("Removed", &report.removed)] {
        if counts.is_empty() {
            continue;
        }
        let parts = counts.iter().map(|count| {
            let results = match title {
                "New" => count.format_counts(),
                _ => count.total().to_string(),
            };
            format!("{} ({results})", format_as_code(&count.name))
        });
        let parts: Vec<String> = parts.collect();
        let _infallible = writeln!(out, "\n{title}: {}.", parts.join(", "));
    }
    let _infallible = writeln!(out, "\n{}", report.format_counts());
    let regressions = report.count_regressions();
    if regressions > 0 {
        let _infallible = writeln!(out, "\n**{}**", pluralize(regressions, "regression"));
    }
    out
}

/// Formats the comparison for CI servers: one case per eval of the newer state, and one per changed decision. A
/// regression is a failure.
fn format_comparison_junit(report: &ComparisonReport<'_>) -> Result<String, std::io::Error> {
    let after = &report.sides[1].state;
    let mut cases = Vec::new();
    let mut flips: HashMap<(&str, &str), u64> = HashMap::new();
    for CellName { rubric, eval, .. } in report.found.flips.iter().map(|flip| &flip.name) {
        *flips.entry((rubric, eval)).or_default() += 1;
    }
    let figures = report.figures.describe_evals(after);
    // A server reports a file without cases as an error, so each eval has one.
    for eval in &after.header.evals {
        let rubric = after.rubric_id(eval);
        let name = (rubric, eval.id.as_str());
        let mut text = pluralize(flips.get(&name).copied().unwrap_or_default(), "flip");
        for line in figures.get(&name).into_iter().flatten() {
            let _infallible = write!(text, "\n{line}");
        }
        cases.push(JunitCaseText {
            suite: rubric.to_owned(),
            class: format!("{rubric}.{}", eval.id),
            name: format!("{rubric}/{}", eval.id),
            status: JunitStatus::Passed,
            message: String::new(),
            text,
        });
    }
    for change in report.found.flips.iter().chain(&report.found.changes) {
        let is_flip = change.before.passed().is_some() && change.after.passed().is_some();
        let status = if !is_flip {
            JunitStatus::Skipped
        } else if report.is_regression(change) {
            JunitStatus::Failed
        } else {
            JunitStatus::Passed
        };
        let mut text = String::new();
        write_change(&mut text, report, change, 0);
        let outcome = describe_side_outcome;
        let mut message = format!("{} → {}", outcome(&change.before), outcome(&change.after));
        if let Some(cause) = report.describe_cause(change) {
            let _infallible = write!(message, ": {cause}");
        }
        let name = &change.name;
        cases.push(JunitCaseText {
            suite: name.rubric.clone(),
            class: format!("{}.{}", name.rubric, name.eval),
            name: name.to_string(),
            status,
            message,
            text,
        });
    }
    let [before, after] = report.sides.map(|side| side.name.as_str());
    format_junit(&format!("dicta compare {before} {after}"), cases)
}
