//! `--format human`: text for people.
//!
//! Responsible for one line per cell and the totals, which name every outcome. Does not compute decisions.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::flags::describe_flags;
use super::label_agreement::{format_label_lines, format_label_suffix};
use super::stats::{format_stats, format_tokens};
use super::wording::describe_outcome;
use super::wrap::wrap_line;
use super::{
    DecisionRow, ReportRow, ReportWriter, ResultRow, RunSummary, TextStyle, describe_panel_decision,
};
use crate::event::ReplayedEvidencePlan;
use crate::model::{Millis, Outcome, VoteCounts, make_visible, pluralize};

/// The columns of an outcome with its score: `✗ fail 0.50`.
const OUTCOME_WIDTH: usize = 11;
/// The indent of the lines below a result, in columns.
const INDENT: usize = 4;
/// The largest number of failures that the end lists; the report only counts further ones.
const MAX_LISTED_FAILURES: usize = 40;

/// Writes a run as lines for people.
pub struct HumanReportWriter<'w> {
    out: io::BufWriter<Box<dyn Write + 'w>>,
    style: TextStyle,
    /// The number of decisions written so far.
    decision_count: usize,
    /// The listed decisions that failed or ended in an error.
    failures: Vec<FailedDecision>,
    unlisted_failures: usize,
    has_rubric_rows: bool,
}

/// A decision that failed or ended in an error, for the list at the end.
struct FailedDecision {
    outcome: Outcome,
    name: String,
}

impl<'w> HumanReportWriter<'w> {
    /// Returns a writer of lines to `out`.
    pub fn new(out: Box<dyn Write + 'w>, style: TextStyle) -> Self {
        // A run may print a line per cell, so buffer the output.
        Self {
            out: io::BufWriter::with_capacity(64 * 1024, out),
            style,
            decision_count: 0,
            failures: Vec::new(),
            unlisted_failures: 0,
            has_rubric_rows: false,
        }
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

    /// Writes lines below a result, wrapped to the width of the terminal.
    fn write_indented(&mut self, text: &str) -> io::Result<()> {
        for line in text.lines() {
            // Escape before wrapping, because a visible mark is wider than the character that it replaces.
            let line = make_visible(line, false);
            let line = wrap_line(&line, INDENT, INDENT, self.style.width);
            writeln!(self.out, "{:INDENT$}{line}", "")?;
        }
        Ok(())
    }

    fn write_result(&mut self, row: &ResultRow<'_>) -> io::Result<()> {
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
        let name = row.name.to_string();
        write!(
            self.out,
            "{}  {}",
            self.paint(result.outcome, &format!("{head:<OUTCOME_WIDTH$}")),
            make_visible(&name, false)
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
        // A cell that shares its decision with other cells decides nothing alone, so its line shows no label.
        let alone = row.name.repeat.is_none() && !row.is_panel_member;
        write!(
            self.out,
            "{}",
            format_label_suffix(row.label.filter(|_| alone))
        )?;
        writeln!(self.out)?;
        // The decision row counts repeats and panel members.
        if row.name.repeat.is_none() && !row.is_panel_member {
            self.add_failure(result.outcome, &name);
        }
        // The narrator has already printed the reasoning of a cell that a judge decided in this run.
        let live = row.name.judge.is_some() && result.cached.is_none();
        if self.style.has_narrator && live {
            return Ok(());
        }
        self.write_indented(result.error.as_deref().unwrap_or(&result.explanation))?;
        let Some(verdict) = &result.verdict else {
            return Ok(());
        };
        for citation in &verdict.citations {
            let found = if citation.found {
                ""
            } else {
                "  NOT FOUND there"
            };
            self.write_indented(&format!(
                "“{}” [{}]{found}",
                make_visible(&citation.quote, false),
                make_visible(&citation.source, false)
            ))?;
        }
        for flag in describe_flags(verdict) {
            self.write_indented(&make_visible(&flag, false))?;
        }
        Ok(())
    }

    /// Counts a decision, and keeps one that failed or ended in an error for the list at the end.
    fn add_failure(&mut self, outcome: Outcome, name: &str) {
        self.decision_count += 1;
        if outcome == Outcome::Fail || outcome.is_error() {
            if self.failures.len() < MAX_LISTED_FAILURES {
                self.failures.push(FailedDecision {
                    outcome,
                    name: name.to_owned(),
                });
            } else {
                self.unlisted_failures += 1;
            }
        }
    }

    /// Lists the failures again at the end if the results do not fit on one screen.
    fn write_failures(&mut self) -> io::Result<()> {
        /// The number of decisions that fit on a screen.
        const SCREEN: usize = 12;
        if self.decision_count <= SCREEN || self.failures.is_empty() {
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

    fn write_summary(&mut self, summary: &RunSummary) -> io::Result<()> {
        self.write_failures()?;
        writeln!(self.out)?;
        let mut parts = Vec::new();
        for outcome in Outcome::ALL {
            let n = summary.count(outcome);
            // Pass and fail always appear, other outcomes only if they occurred.
            if n > 0 || outcome.is_verdict() {
                let text = format!("{} {n} {}", outcome.symbol(), describe_outcome(outcome));
                parts.push(self.paint(outcome, &text));
            }
        }
        writeln!(self.out, "{}", parts.join("   "))?;
        let verdicts = summary.count(Outcome::Pass) + summary.count(Outcome::Fail);
        let decisions: u64 = summary.outcomes.iter().sum();
        let mut text = String::new();
        if verdicts > 0 {
            let rate = 100.0 * summary.count(Outcome::Pass) as f64 / verdicts as f64;
            let verdict_count = pluralize(verdicts, "verdict");
            let _infallible = write!(text, "pass rate {rate:.0} % of {verdict_count}");
            if decisions > verdicts {
                let others = pluralize(decisions - verdicts, "decision");
                let _infallible = write!(text, " ({others} without a verdict left out)");
            }
            text.push('\n');
        }
        if summary.undecided_rubrics > 0 {
            let _infallible = writeln!(
                text,
                "{} undecided, because a required eval has no verdict (exit code 4 unless a decision failed)",
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
        // The agreement of votes, and of decisions with labels.
        if let Some(agreed) = describe_agreement(summary) {
            text.push_str(&agreed);
            text.push('\n');
        }
        for line in format_label_lines(summary) {
            text.push_str(&make_visible(&line, false));
            text.push('\n');
        }
        // The line about the run: its size, the pending cells, the calls and the duration.
        let _infallible = write!(
            text,
            "run {} · {} over {}",
            summary.run,
            pluralize(summary.cells, "cell"),
            pluralize(summary.transcripts, "transcript")
        );
        if summary.pending > 0 {
            let _infallible = write!(text, " · {} pending", summary.pending);
        }
        if summary.interrupted {
            text.push_str(" · INTERRUPTED");
        }
        // `--resume` judges pending and cancelled cells.
        if summary.pending > 0 || summary.count(Outcome::Cancelled) > 0 {
            let _infallible = write!(text, " (dicta run --resume {})", run_letters(&summary.run));
        }
        let calls = u64::from(summary.usage.calls);
        if calls > 0 {
            let _infallible = write!(text, " · {}", pluralize(calls, "judge call"));
            text.push_str(&describe_spending(summary));
        }
        let _infallible = write!(text, " · {}", Millis(summary.duration_ms));
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
fn describe_spending(summary: &RunSummary) -> String {
    let bill = summary.bill;
    if bill.is_zero() && summary.usage.input.is_none() {
        return ", free".to_owned();
    }
    format!(", {}, {bill}", format_tokens(&summary.usage))
}

/// Describes how a decision was reached: `by vote: 2 pass, 1 fail`, or the verdict of each judge.
fn describe_decision(row: &DecisionRow) -> String {
    match &row.decision.panel {
        None => format!("by vote: {}", describe_votes(row.decision.votes)),
        Some(ruling) => describe_panel_decision(ruling, &row.judges),
    }
}

/// Describes how far votes agreed: `9 decisions by vote, 7 unanimous, the winner's share 93 % on average`.
fn describe_agreement(summary: &RunSummary) -> Option<String> {
    let mean = 100.0 * summary.mean_share()?;
    let mut text = format!(
        "{} by vote, {} unanimous, the winner's share {mean:.0} % on average",
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
                if !header.label.is_empty() {
                    writeln!(self.out, "{}", make_visible(&header.label, false))?;
                }
                Ok(())
            }
            ReportRow::Result(row) => self.write_result(row),
            ReportRow::Decision(row) => {
                let outcome = row.decision.outcome;
                let head = format!("{} {}", outcome.symbol(), describe_outcome(outcome));
                let name = row.name.to_string();
                self.add_failure(outcome, &name);
                // Mark, name and votes of a decision of several cells.
                let label = format_label_suffix(row.label);
                writeln!(
                    self.out,
                    "{}  {}  {}{label}",
                    self.paint(outcome, &format!("{head:<OUTCOME_WIDTH$}")),
                    make_visible(&name, false),
                    make_visible(&describe_decision(row), false),
                )
            }
            ReportRow::Rubric(row) => {
                // A blank line separates the rubrics from the results.
                if !std::mem::replace(&mut self.has_rubric_rows, true) {
                    writeln!(self.out)?;
                }
                let passed = match row.passed {
                    Some(true) => "passed",
                    Some(false) => "failed",
                    None => "undecided",
                };
                let score = row
                    .score
                    .map_or_else(|| "no score".to_owned(), |s| format!("{s:.2}"));
                let (transcript, rubric) = (
                    make_visible(&row.transcript, false),
                    make_visible(&row.rubric, false),
                );
                writeln!(
                    self.out,
                    "rubric {rubric} on {transcript}: {passed}, {score}"
                )
            }
            ReportRow::Stats(stats) => {
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
mod tests {
    use super::*;
    use crate::model::{CellNameRef, CellResult, ScoreBounds};

    const NAME: CellNameRef<'_> = CellNameRef {
        transcript: "refund",
        rubric: "support",
        eval: "brief",
        message: None,
        judge: Some("quick"),
        repeat: None,
    };

    fn printed(style: TextStyle, rows: &[ReportRow<'_>]) -> String {
        let mut out = Vec::new();
        let mut human = HumanReportWriter::new(Box::new(&mut out), style);
        for row in rows {
            human.write_row(row).expect("a Vec takes everything");
        }
        human.finish().expect("a Vec takes everything");
        drop(human);
        String::from_utf8(out).expect("text")
    }

    fn row(result: &CellResult) -> ReportRow<'_> {
        ReportRow::Result(ResultRow {
            name: NAME,
            eval_type: "llm_judge",
            bounds: ScoreBounds::default(),
            is_panel_member: false,
            label: None,
            result,
        })
    }

    #[test]
    fn reasoning_wraps_at_terminal_width() {
        let style = TextStyle {
            width: 40,
            ..TextStyle::default()
        };
        let result = CellResult::new(
            Outcome::Fail,
            "it has 8 sentences, at most 6 are wanted here",
        );
        assert_eq!(
            printed(style, &[row(&result)]),
            "✗ fail       refund/support/brief~quick\n    it has 8 sentences, at most 6 are\n    wanted here\n"
        );
    }

    #[test]
    fn narrated_reasoning_is_not_printed_again() {
        let style = TextStyle {
            has_narrator: true,
            ..TextStyle::default()
        };
        let live = CellResult::new(Outcome::Fail, "too long");
        let mut cached = live.clone();
        cached.cached = Some(crate::model::RunId("20261121T000000Z-abcd".to_owned()));
        assert_eq!(
            printed(style, &[row(&live), row(&cached)]),
            "✗ fail       refund/support/brief~quick\n\
             ✗ fail       refund/support/brief~quick  [from abcd]\n    too long\n",
            "no narrator printed the second one"
        );
    }

    #[test]
    fn long_report_lists_failures_again_at_the_end() {
        let (pass, fail) = (
            CellResult::new(Outcome::Pass, ""),
            CellResult::new(Outcome::Fail, ""),
        );
        let mut rows = vec![row(&pass); 12];
        rows.push(row(&fail));
        let summary = RunSummary::default();
        rows.push(ReportRow::Summary(&summary));
        let text = printed(TextStyle::default(), &rows);
        assert_eq!(text.matches("✗ fail").count(), 2, "{text}");
        assert!(
            text.contains("\n\n✗ fail  refund/support/brief~quick\n\n"),
            "{text}"
        );
    }
}
