//! `--format human`: text for people.
//!
//! Responsible for one block per decision and the totals, which name every outcome. Does not compute decisions.
//! [`ReportDetail`] selects the decisions and the length of their reasons.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::flags::{EDITED_SUFFIX, describe_edited, describe_flags, describe_missing_citations};
use super::label_agreement::{format_label_lines, format_label_suffix};
use super::stats::{format_stats, format_tokens};
use super::undecided_reasons::UndecidedReasons;
use super::wording::{count_outcome, describe_outcome};
use super::workflow_log::WorkflowLogWriter;
use super::wrap::wrap_line;
use super::{
    DecidedRow, ReportDetail, ReportRow, ReportWriter, ResultRow, RubricRow, RunSummary, TextStyle,
    describe_panel_decision,
};
use crate::event::ReplayedEvidencePlan;
use crate::model::{
    Decision, Millis, Outcome, PairChoice, ProviderKind, VoteCounts, compares_pairs, make_visible,
    pluralize,
};

/// The columns of an outcome with its score: `✗ fail 0.50`.
const OUTCOME_WIDTH: usize = 11;
/// The indent of the lines below a decision, in columns.
const INDENT: usize = 4;
/// The largest number of failures that the end lists; the report only counts further ones.
const MAX_LISTED_FAILURES: usize = 40;
/// The largest number of lines and of characters of a reason without `-v`.
const MAX_REASON_LINES: usize = 4;
const MAX_REASON_CHARS: usize = 600;

/// Writes a run as lines for people.
pub struct HumanReportWriter<'w> {
    out: io::BufWriter<WorkflowLogWriter<Box<dyn Write + 'w>>>,
    style: TextStyle,
    /// The number of written decisions, and of those among them that are not problems.
    decision_count: usize,
    other_count: usize,
    /// The listed decisions that failed or ended in an error.
    failures: Vec<FailedDecision>,
    unlisted_failures: usize,
    /// The judges that are `rules`, and whether one of them judged a cell.
    rules_judges: HashSet<String>,
    has_rules_verdicts: bool,
    /// The rubrics with a score: passed, failed, undecided.
    rubrics: [u64; 3],
    has_rubric_lines: bool,
    /// The reasons of decisions that only `-v` lists.
    unlisted_reasons: UndecidedReasons,
    /// True if a call went to a judge that is not free. The provider bills no call that failed, so the bill can be empty.
    called_paid_judge: bool,
}

/// A decision that failed or ended in an error, for the list at the end.
struct FailedDecision {
    outcome: Outcome,
    name: String,
}

impl<'w> HumanReportWriter<'w> {
    /// Returns a writer of lines to `out`.
    pub fn new(out: Box<dyn Write + 'w>, style: TextStyle) -> Self {
        let out = WorkflowLogWriter::new(out, style.is_workflow_log);
        // A run may print a line per cell, so buffer the output.
        Self {
            out: io::BufWriter::with_capacity(64 * 1024, out),
            style,
            decision_count: 0,
            other_count: 0,
            failures: Vec::new(),
            unlisted_failures: 0,
            rules_judges: HashSet::new(),
            has_rules_verdicts: false,
            rubrics: [0; 3],
            has_rubric_lines: false,
            unlisted_reasons: UndecidedReasons::default(),
            called_paid_judge: false,
        }
    }

    fn is_verbose(&self) -> bool {
        self.style.detail == ReportDetail::Verbose
    }

    fn paint(&self, outcome: Outcome, text: &str) -> String {
        // SGR codes: 32 is green, 31 red, 2 dim, 33 yellow.
        let (on, off) = self.style.paint(match outcome {
            Outcome::Pass => "32",
            Outcome::Fail => "31",
            Outcome::NotApplicable | Outcome::Skipped => "2",
            _ => "33",
        });
        format!("{on}{text}{off}")
    }

    /// Writes lines below a decision, wrapped to the width of the terminal.
    fn write_indented(&mut self, indent: usize, text: &str) -> io::Result<()> {
        for line in text.lines() {
            // Escape before wrapping, because a visible mark is wider than the character that it replaces.
            let line = make_visible(line, false);
            let line = wrap_line(&line, indent, indent, self.style.width);
            writeln!(self.out, "{:indent$}{line}", "")?;
        }
        Ok(())
    }

    /// Writes the reason of a cell. Without `-v`, a long one is cut.
    fn write_reason(&mut self, indent: usize, text: &str) -> io::Result<()> {
        if self.is_verbose() {
            return self.write_indented(indent, text);
        }
        let (shown, hidden) = cut_reason(text);
        self.write_indented(indent, &shown)?;
        if hidden > 0 {
            let lines = pluralize(hidden as u64, "more line");
            writeln!(self.out, "{:indent$}… {lines} (-v)", "")?;
        }
        Ok(())
    }

    fn write_decided(&mut self, row: &DecidedRow<'_>) -> io::Result<()> {
        let is_problem = row.is_problem();
        self.has_rules_verdicts |= row.cells.iter().any(|cell| self.is_by_rules(cell));
        if !row.is_shown(self.style.detail) {
            self.unlisted_reasons.add(row);
            return Ok(());
        }
        self.decision_count += 1;
        match row.outcome() {
            Some(outcome) if is_problem => self.add_failure(outcome, row.name.to_string()),
            _ => self.other_count += 1,
        }
        // A decision of one cell has the line of that cell.
        if let ([cell], false) = (row.cells, row.is_combined()) {
            let suffix = format_label_suffix(row.label, row.is_shot);
            self.write_cell_head(0, cell, suffix)?;
            return self.write_cell_details(INDENT, cell);
        }
        let head = row.outcome().map_or_else(
            || "· undecided".to_owned(),
            |outcome| format!("{} {}", outcome.symbol(), describe_outcome(outcome)),
        );
        let head = format!("{head:<OUTCOME_WIDTH$}");
        let head = match row.outcome() {
            Some(outcome) => self.paint(outcome, &head),
            None => head,
        };
        let how = row.decision.map_or_else(
            || "further cells of it are pending".to_owned(),
            |decision| describe_decision(decision, row.judges, row.eval_type),
        );
        let edited = if row.is_edited() { EDITED_SUFFIX } else { "" };
        writeln!(
            self.out,
            "{head}  {}  {}{edited}{}",
            make_visible(&row.name.to_string(), false),
            make_visible(&how, false),
            format_label_suffix(row.label, row.is_shot)
        )?;
        for cell in row.cells {
            self.write_cell_head(INDENT, cell, "")?;
            // The reasons for another outcome matter less than those of the decision.
            if self.is_verbose() || !is_problem || cell.result.outcome != Outcome::Pass {
                self.write_cell_details(2 * INDENT, cell)?;
            }
        }
        Ok(())
    }

    /// Writes the line of a cell: outcome, score, name, bounds, source and label.
    fn write_cell_head(
        &mut self,
        indent: usize,
        row: &ResultRow<'_>,
        suffix: &str,
    ) -> io::Result<()> {
        let result = row.result;
        let mut head = format!(
            "{} {}",
            result.outcome.symbol(),
            describe_outcome(result.outcome)
        );
        if let Some(score) = result.score {
            // A write into a string cannot fail.
            let _infallible = write!(head, " {score:.2}");
        }
        write!(
            self.out,
            "{:indent$}{}  {}",
            "",
            self.paint(result.outcome, &format!("{head:<OUTCOME_WIDTH$}")),
            make_visible(&row.name.to_string(), false)
        )?;
        if result.score.is_some() {
            match (row.bounds.min, row.bounds.max) {
                (None, None) => {}
                (Some(min), None) => write!(self.out, "  (needs {min:.2})")?,
                (None, Some(max)) => write!(self.out, "  (at most {max:.2})")?,
                (Some(min), Some(max)) => write!(self.out, "  (needs {min:.2} to {max:.2})")?,
            }
        }
        if let Some(run) = &result.cached {
            write!(self.out, "  [from {}]", run.letters())?;
        }
        // In the head, because the details of some cells are left out.
        if result.by_human {
            write!(self.out, "{EDITED_SUFFIX}")?;
        }
        writeln!(self.out, "{suffix}")
    }

    /// Writes the reason, the citations and the flags of a cell. Without `-v`, only the citations that were not found.
    fn write_cell_details(&mut self, indent: usize, row: &ResultRow<'_>) -> io::Result<()> {
        let result = row.result;
        // The narrator has already printed the reasoning of a cell that a judge decided in this run.
        let live = row.name.judge.is_some() && result.cached.is_none();
        if self.style.has_narrator && live {
            return Ok(());
        }
        let why = result.error.as_deref().unwrap_or(&result.explanation);
        if self.is_by_rules(row) && !self.is_verbose() {
            self.write_reason(indent, &keep_clauses(why))?;
        } else {
            self.write_reason(indent, why)?;
        }
        let Some(verdict) = &result.verdict else {
            return Ok(());
        };
        if self.is_verbose() {
            for citation in &verdict.citations {
                let found = if citation.found {
                    ""
                } else {
                    "  NOT FOUND there"
                };
                let quote = make_visible(&citation.quote, false);
                let source = make_visible(&citation.source, false);
                self.write_indented(indent, &format!("“{quote}” [{source}]{found}"))?;
            }
        } else {
            for missing in describe_missing_citations(verdict) {
                self.write_indented(indent, &make_visible(&missing, false))?;
            }
        }
        for flag in describe_flags(verdict) {
            self.write_indented(indent, &make_visible(&flag, false))?;
        }
        Ok(())
    }

    fn is_by_rules(&self, row: &ResultRow<'_>) -> bool {
        let judge = row.name.judge;
        judge.is_some_and(|judge| self.rules_judges.contains(judge))
    }

    /// Keeps a decision that failed or ended in an error for the list at the end.
    fn add_failure(&mut self, outcome: Outcome, name: String) {
        if self.failures.len() < MAX_LISTED_FAILURES {
            self.failures.push(FailedDecision { outcome, name });
        } else {
            self.unlisted_failures += 1;
        }
    }

    /// Lists the failures again at the end if other results are between them and do not fit on one screen.
    fn write_failures(&mut self) -> io::Result<()> {
        /// The number of decisions that fit on a screen.
        const SCREEN: usize = 12;
        let is_mixed = self.other_count > 0 || self.style.has_narrator;
        if self.decision_count <= SCREEN || !is_mixed || self.failures.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        for FailedDecision { outcome, name } in std::mem::take(&mut self.failures) {
            let head = format!("{} {}", outcome.symbol(), describe_outcome(outcome));
            let head = self.paint(outcome, &head);
            writeln!(self.out, "{head}  {}", make_visible(&name, false))?;
        }
        if self.unlisted_failures > 0 {
            writeln!(self.out, "… and {} more", self.unlisted_failures)?;
        }
        Ok(())
    }

    /// Counts a rubric's score. Writes the line of an undecided one, because it changes the exit code, and of all with
    /// `-v`.
    fn write_rubric(&mut self, row: &RubricRow) -> io::Result<()> {
        let (at, passed) = match row.passed {
            Some(true) => (0, "passed"),
            Some(false) => (1, "failed"),
            None => (2, "undecided"),
        };
        self.rubrics[at] += 1;
        if !self.is_verbose() && row.passed.is_some() {
            return Ok(());
        }
        // A blank line separates the rubrics from the results.
        if !std::mem::replace(&mut self.has_rubric_lines, true) {
            writeln!(self.out)?;
        }
        let score = row
            .score
            .map_or_else(|| "no score".to_owned(), |s| format!("{s:.2}"));
        let (transcript, rubric) = (
            make_visible(&row.transcript, false),
            make_visible(&row.rubric, false),
        );
        let edited = if row.edited { EDITED_SUFFIX } else { "" };
        writeln!(
            self.out,
            "rubric {rubric} on {transcript}: {passed}, {score}{edited}"
        )
    }

    /// Describes the rubric scores: `18 rubric scores: 7 passed, 11 failed (-v lists them)`.
    fn describe_rubrics(&self) -> Option<String> {
        let [passed, failed, undecided] = self.rubrics;
        let total = passed + failed + undecided;
        if total == 0 {
            return None;
        }
        let mut text = format!(
            "{}: {passed} passed, {failed} failed",
            pluralize(total, "rubric score")
        );
        if undecided > 0 {
            let _infallible = write!(text, ", {undecided} undecided");
        }
        if !self.is_verbose() {
            text.push_str(" (-v lists them)");
        }
        Some(text)
    }

    fn write_summary(&mut self, summary: &RunSummary) -> io::Result<()> {
        self.write_failures()?;
        writeln!(self.out)?;
        // The agreement of votes, and of decisions with labels, comes before the counts: the last lines stay visible.
        let mut details = String::new();
        if let Some(rubrics) = self.describe_rubrics() {
            details.push_str(&rubrics);
            details.push('\n');
        }
        if let Some(agreed) = describe_agreement(summary) {
            details.push_str(&agreed);
            details.push('\n');
        }
        for line in format_label_lines(summary) {
            let line = make_visible(&line, false);
            details.push_str(&wrap_line(&line, 0, 2, self.style.width));
            details.push('\n');
        }
        if !details.is_empty() {
            writeln!(self.out, "{details}")?;
        }
        let mut parts = Vec::new();
        for outcome in Outcome::ALL {
            let n = summary.count(outcome);
            // Pass and fail always appear, other outcomes only if they occurred.
            if n > 0 || outcome.is_verdict() {
                let text = format!("{} {}", outcome.symbol(), count_outcome(outcome, n));
                parts.push(self.paint(outcome, &text));
            }
        }
        writeln!(self.out, "{}", parts.join("   "))?;
        let passes = summary.count_unedited(Outcome::Pass);
        let verdicts = passes + summary.count_unedited(Outcome::Fail);
        let decisions: u64 = summary.outcomes.iter().sum::<u64>() - summary.edited();
        let mut text = String::new();
        for reasons in self.unlisted_reasons.describe() {
            text.push_str(&make_visible(&reasons, false));
            text.push('\n');
        }
        if let Some(evals) = summary.describe_undecided_evals() {
            let evals = make_visible(&evals, false);
            let _infallible = writeln!(text, "{evals}");
        }
        if let Some(edited) = describe_edited(summary.edited()) {
            text.push_str(&edited);
            text.push('\n');
        }
        if verdicts > 0 {
            let rate = 100.0 * passes as f64 / verdicts as f64;
            let verdict_count = pluralize(verdicts, "verdict");
            let _infallible = write!(text, "pass rate {rate:.0}% of {verdict_count}");
            if decisions > verdicts {
                let others = pluralize(decisions - verdicts, "decision");
                let _infallible = write!(text, " ({others} without a verdict left out)");
            }
            text.push('\n');
        }
        if self.has_rules_verdicts {
            // A reader could take its verdicts for a model's, and a short reason does not mention it.
            let mut names: Vec<&str> = self.rules_judges.iter().map(String::as_str).collect();
            names.sort_unstable();
            let sentence = describe_rules_judges(&names);
            let _infallible = writeln!(text, "{}", make_visible(&sentence, false));
        }
        if summary.undecided_rubrics > 0 {
            let _infallible = writeln!(
                text,
                "{} undecided, because a required eval has no verdict (exit code 4 unless a decision failed or ended in an error)",
                pluralize(summary.undecided_rubrics, "rubric")
            );
        }
        if summary.flagged > 0 {
            let _infallible = writeln!(
                text,
                "{} flagged: a contradiction, or a quote that is not in its source (`--strict` fails on them)",
                pluralize(summary.flagged, "verdict")
            );
        }
        // The line about the run: its size, the pending cells, the calls and the duration.
        let _infallible = write!(
            text,
            "{} · {} over {}",
            summary.subject(),
            pluralize(summary.cells, "cell"),
            pluralize(summary.transcripts, "transcript")
        );
        if let Some(branch) = &summary.branch {
            let branch = make_visible(branch, false);
            let _infallible = write!(text, " · {branch}, so it decides nothing");
        }
        if summary.pending > 0 {
            let _infallible = write!(text, " · {} pending", summary.pending);
        }
        if summary.reading.not_understood > 0 {
            let _infallible = write!(
                text,
                " · {} of {} not understood",
                summary.reading.not_understood,
                pluralize(summary.reading.records, "record")
            );
        }
        if summary.reading.broken_files > 0 {
            let broken = pluralize(summary.reading.broken_files, "broken file");
            let _infallible = write!(text, " · {broken}");
        }
        if let Some(mark) = summary.status.mark() {
            let _infallible = write!(text, " · {}", mark.to_uppercase());
        }
        // `--resume` judges pending and cancelled cells.
        if summary.pending > 0 || summary.count(Outcome::Cancelled) > 0 {
            let _infallible = write!(text, " (dicta run --resume {})", run_letters(&summary.run));
        }
        // The calls and the time of a state are those of several runs. The events have only those of the newest one.
        if summary.state.is_none() {
            let calls = u64::from(summary.usage.calls);
            if calls > 0 {
                let _infallible = write!(text, " · {}", pluralize(calls, "judge call"));
                text.push_str(&describe_spending(summary, self.called_paid_judge));
            }
            let _infallible = write!(text, " · {}", Millis(summary.duration_ms));
        }
        if summary.status.ended_early() {
            text.push('\n');
            text.push_str(&describe_early_end(summary.pending));
        }
        if let Some(frozen) = &summary.evidence {
            text.push('\n');
            text.push_str(&describe_evidence(frozen, summary));
        }
        // A soft limit only asks judges to conclude, so it stops nothing.
        for stop in summary.budgets.iter().filter(|stop| stop.hard) {
            let _infallible = write!(
                text,
                "\nstopped by the budget: {stop}; {} not run; go on with: dicta run --resume {}",
                pluralize(summary.pending, "cell"),
                run_letters(&summary.run)
            );
        }
        for stopped in &summary.stopped_judges {
            let _infallible = write!(
                text,
                "\njudge {stopped}; its other cells are pending; try again with: dicta run --resume {}",
                run_letters(&summary.run)
            );
        }
        for other in &summary.other_models {
            let other = make_visible(&other.to_string(), false).into_owned();
            let _infallible = write!(text, "\nanother model: {other}");
        }
        if let Some(as_of) = &summary.prices_as_of {
            let _infallible = write!(
                text,
                "\ndicta calculated the cost with its built-in prices as of {as_of}; to use other prices, set `prices:` of the judge"
            );
        }
        for line in text.lines() {
            writeln!(self.out, "{}", wrap_line(line, 0, 0, self.style.width))?;
        }
        Ok(())
    }
}

/// Describes the judges that are `rules`, by their names.
fn describe_rules_judges(names: &[&str]) -> String {
    let who = match names {
        ["rules"] => "judge rules is".to_owned(),
        [name] => format!("judge {name} is `rules`,"),
        names => format!("judges {} are `rules`,", names.join(", ")),
    };
    format!("{who} a built-in checker of clauses and not a model")
}

/// Describes what a run that ended early left. A run plans the cells of a transcript when it reaches it, so the number of
/// all cells is unknown.
fn describe_early_end(pending: u64) -> String {
    let rest = "transcripts that the run did not reach can have more";
    match pending {
        0 => format!("ended early: {rest} cells"),
        1 => format!("ended early: 1 planned cell is pending; {rest}"),
        n => format!("ended early: {n} planned cells are pending; {rest}"),
    }
}

/// Describes the recorded tool responses that a run used:
/// `recorded tool responses of run kvqa: used for 3 tool calls, 1 miss (a call without one is refused)`.
fn describe_evidence(frozen: &ReplayedEvidencePlan, summary: &RunSummary) -> String {
    let answered = pluralize(summary.evidence_answers, "tool call");
    let misses = match summary.evidence_misses {
        0 => "no misses".to_owned(),
        1 => format!("1 miss ({})", frozen.describe_miss_policy()),
        n => format!("{n} misses ({})", frozen.describe_miss_policy()),
    };
    let whose = frozen.describe_runs();
    format!("recorded tool responses of {whose}: used for {answered}, {misses}")
}

/// Returns the tokens and the cost of the judge calls, or `free` for a judge that costs nothing and counts no tokens.
fn describe_spending(summary: &RunSummary, called_paid_judge: bool) -> String {
    let bill = summary.bill;
    if bill.is_zero() && summary.usage.input.is_none() {
        let cost = if called_paid_judge {
            "nothing billed"
        } else {
            "free"
        };
        return format!(", {cost}");
    }
    format!(", {}, {bill}", format_tokens(&summary.usage))
}

/// Describes how a decision was reached: `by vote: 2 pass, 1 fail`, or the verdict of each judge. Of a comparison, also
/// the choice.
fn describe_decision(decision: &Decision, judges: &[String], eval_type: &str) -> String {
    let choice = decision
        .score
        .filter(|_| compares_pairs(eval_type))
        .map(PairChoice::from_score);
    if let (Some(choice), None) = (choice, &decision.panel) {
        return format!("{}: {}", choice.describe(), describe_votes(decision.votes));
    }
    match &decision.panel {
        None => format!("by vote: {}", describe_votes(decision.votes)),
        Some(panel) => describe_panel_decision(panel, judges),
    }
}

/// Returns the clauses that do not hold or can't be read, in the reasoning of `rules`: they are the reason of a failure.
fn keep_clauses(text: &str) -> Cow<'_, str> {
    let is_problem = |line: &&str| {
        line.split_once(". ").is_some_and(|(number, clause)| {
            let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
            is_number && (clause.starts_with('✗') || clause.starts_with('?'))
        })
    };
    let clauses: Vec<&str> = text.lines().filter(is_problem).collect();
    if clauses.is_empty() {
        text.into()
    } else {
        clauses.join("\n").into()
    }
}

/// Returns the first lines of a reason, and the number of lines that are left out. A cut line counts as left out.
fn cut_reason(text: &str) -> (String, usize) {
    let mut shown = String::new();
    let mut room = MAX_REASON_CHARS;
    let mut lines = text.lines();
    for line in lines.by_ref().take(MAX_REASON_LINES) {
        let cut: String = line.chars().take(room).collect();
        shown.push_str(&cut);
        if cut.len() < line.len() {
            shown.push('…');
            return (shown, 1 + lines.count());
        }
        shown.push('\n');
        room = room.saturating_sub(line.chars().count());
    }
    (shown, lines.count())
}

/// Describes how far votes agreed: `9 decisions by vote, 7 unanimous, the winner's share 93% on average`.
fn describe_agreement(summary: &RunSummary) -> Option<String> {
    let mean = 100.0 * summary.mean_share()?;
    let mut text = format!(
        "{} by vote, {} unanimous, the winner's share {mean:.0}% on average",
        pluralize(summary.voted, "decision"),
        summary.unanimous
    );
    if summary.cascades > 0 {
        let cascade_count = pluralize(summary.cascades, "cascade");
        let _infallible = write!(text, " · {} of {cascade_count} went on", summary.escalated);
    }
    Some(text)
}

/// Returns the votes that were cast: `2 pass, 1 fail`.
fn describe_votes(votes: VoteCounts) -> String {
    let cast = [
        (votes.pass, "pass"),
        (votes.fail, "fail"),
        (votes.na, "not applicable"),
        (votes.error, "without a verdict"),
    ];
    let cast: Vec<String> = cast
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{n} {word}"))
        .collect();
    cast.join(", ")
}

fn run_letters(run: &str) -> &str {
    // A run's id is its time and its letters. The letters are enough on the command line.
    run.rsplit_once('-').map_or(run, |(_, letters)| letters)
}

impl ReportWriter for HumanReportWriter<'_> {
    fn write_row(&mut self, row: &ReportRow<'_>) -> io::Result<()> {
        match row {
            // A run without a label needs no header line.
            ReportRow::Header(header) => {
                let rules = header.judges.iter().map(|judge| &judge.config);
                let rules = rules.filter(|judge| judge.provider == ProviderKind::Rules);
                self.rules_judges = rules.map(|judge| judge.name.clone()).collect();
                if !header.label.is_empty() {
                    writeln!(self.out, "{}", make_visible(&header.label, false))?;
                }
                Ok(())
            }
            ReportRow::Decided(row) => self.write_decided(row),
            // A decided row contains these.
            ReportRow::Result(_) | ReportRow::Decision(_) => Ok(()),
            ReportRow::Rubric(row) => self.write_rubric(row),
            ReportRow::Stats(stats) => {
                let mut judges = stats.judges.iter();
                self.called_paid_judge = judges.any(|judge| judge.calls > 0 && !judge.free);
                if self.style.detail == ReportDetail::Quiet {
                    return Ok(());
                }
                writeln!(self.out)?;
                for line in format_stats(stats) {
                    writeln!(self.out, "{}", wrap_line(&line, 0, 2, self.style.width))?;
                }
                Ok(())
            }
            ReportRow::Summary(summary) => self.write_summary(summary),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
