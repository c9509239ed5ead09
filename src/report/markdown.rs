//! `--format markdown`: the totals and the failures, for a pull request.
//!
//! Responsible for the Markdown. Does not compute decisions.

use std::io::{self, Write};

use super::flags::{append_flags, describe_edited, mark_edited};
use super::label_agreement::format_label_lines;
use super::stats::format_stats;
use super::wording::describe_outcome;
use super::{ReportRow, ReportWriter, ResultRow, describe_panel_decision};
use crate::model::{Outcome, make_visible, skip_rules_head};

/// The largest number of failures in the report; it only counts further ones.
const MAX_LISTED_FAILURES: usize = 200;

/// Writes a summary table and the failures.
pub struct MarkdownReportWriter<'w> {
    out: Box<dyn Write + 'w>,
    failures: Vec<String>,
    /// The decisions of several judges, in words.
    panel_decisions: Vec<String>,
    unlisted_failures: usize,
    /// The flags of cells that did not fail.
    flagged_cells: Vec<String>,
    unlisted_flagged: usize,
    stats: Vec<String>,
    /// The cells that did not fail, for a report without a summary.
    others: Vec<String>,
    unlisted_others: usize,
    has_summary: bool,
}

impl<'w> MarkdownReportWriter<'w> {
    /// Returns a writer to `out`.
    pub fn new(out: Box<dyn Write + 'w>) -> Self {
        Self {
            out,
            failures: Vec::new(),
            panel_decisions: Vec::new(),
            unlisted_failures: 0,
            flagged_cells: Vec::new(),
            unlisted_flagged: 0,
            stats: Vec::new(),
            others: Vec::new(),
            unlisted_others: 0,
            has_summary: false,
        }
    }

    /// Keeps a cell that did not fail, for a report without a summary.
    fn keep_other(&mut self, row: &ResultRow<'_>) {
        if self.others.len() == MAX_LISTED_FAILURES {
            self.unlisted_others += 1;
        } else {
            self.others.push(format_result_line(row));
        }
    }

    /// Writes the table of the selected cells.
    fn write_selected_cells(&mut self) -> io::Result<()> {
        if self.failures.is_empty() && self.others.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "| outcome | cell | why |\n|---|---|---|")?;
        for line in self.failures.iter().chain(&self.others) {
            writeln!(self.out, "{line}")?;
        }
        let unlisted = self.unlisted_failures + self.unlisted_others;
        if unlisted > 0 {
            writeln!(self.out, "\n… and {unlisted} more.")?;
        }
        Ok(())
    }
}

/// Formats a cell with its reason as the line of a table.
fn format_result_line(row: &ResultRow<'_>) -> String {
    let why = row
        .result
        .error
        .as_deref()
        .unwrap_or_else(|| skip_rules_head(&row.result.explanation));
    let outcome = row.result.outcome;
    format!(
        "| {} {} | {} | {} |",
        outcome.symbol(),
        describe_outcome(outcome),
        format_name(&row.name.to_string(), row.is_shot, row.result.by_human),
        format_as_code(&append_flags(why, row.result))
    )
}

/// Formats a text as code spans, one for each line, for a table cell or a list item.
///
/// A forge makes names, addresses, issue numbers and HTML of a text active, and no escape prevents all of that. In a
/// code span nothing is active. A code span cannot contain every text of a table cell, so a pipe is between two spans.
pub fn format_as_code(text: &str) -> String {
    let visible = make_visible(text.trim_end(), true);
    let lines: Vec<String> = visible.split('\n').map(format_line_as_code).collect();
    lines.join("<br>")
}

/// Formats a name, with the marks of a decision that measures nothing: the judge saw it as an example, or a person edited
/// it.
fn format_name(name: &str, is_shot: bool, edited: bool) -> String {
    let shot = if is_shot { " (shot)" } else { "" };
    let edited = mark_edited(edited);
    format!("{}{shot}{edited}", format_as_code(name))
}

fn format_line_as_code(line: &str) -> String {
    // Forges remove spaces at the start of a line; no-break spaces keep the columns of a diff aligned.
    let indent = line.len() - line.trim_start_matches(' ').len();
    let line = format!("{}{}", "\u{a0}".repeat(indent), &line[indent..]);
    let spans: Vec<String> = line
        .replace('\t', " ")
        .split('|')
        .map(format_code_span)
        .collect();
    spans.join("\\|")
}

fn format_code_span(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    // The fence is longer than every run of backticks in the text (CommonMark 6.1).
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let touches_fence = text.starts_with('`') || text.ends_with('`');
    let is_trimmed =
        text.starts_with(' ') && text.ends_with(' ') && !text.trim_matches(' ').is_empty();
    // A reader removes one space at both ends, except from a span of spaces.
    let pad = if touches_fence || is_trimmed { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

impl ReportWriter for MarkdownReportWriter<'_> {
    fn write_row(&mut self, row: &ReportRow<'_>) -> io::Result<()> {
        match row {
            ReportRow::Result(row)
                if row.result.outcome == Outcome::Fail || row.result.outcome.is_error() =>
            {
                if self.failures.len() == MAX_LISTED_FAILURES {
                    self.unlisted_failures += 1;
                    return Ok(());
                }
                self.failures.push(format_result_line(row));
                Ok(())
            }
            // A cell that passed is listed only if its verdict has flags.
            ReportRow::Result(row) => {
                self.keep_other(row);
                let flags = append_flags("", row.result);
                if flags.is_empty() {
                    return Ok(());
                }
                if self.flagged_cells.len() == MAX_LISTED_FAILURES {
                    self.unlisted_flagged += 1;
                    return Ok(());
                }
                let outcome = row.result.outcome;
                self.flagged_cells.push(format!(
                    "| {} {} | {} | {} |",
                    outcome.symbol(),
                    describe_outcome(outcome),
                    format_name(&row.name.to_string(), row.is_shot, row.result.by_human),
                    format_as_code(&flags)
                ));
                Ok(())
            }
            ReportRow::Stats(stats) => {
                self.stats = format_stats(stats);
                Ok(())
            }
            ReportRow::Decision(row) => {
                // Repeats have one judge, so there is no list of judges to print.
                if let Some(panel) = &row.decision.panel {
                    let outcome = row.decision.outcome;
                    self.panel_decisions.push(format!(
                        "| {} {} | {} | {} |",
                        outcome.symbol(),
                        describe_outcome(outcome),
                        format_name(&row.name.to_string(), row.is_shot, row.edited),
                        format_as_code(&describe_panel_decision(panel, &row.judges))
                    ));
                }
                Ok(())
            }
            ReportRow::Summary(summary) => {
                self.has_summary = true;
                // The heading and the table of outcomes.
                writeln!(self.out, "## dicta {}\n", summary.subject())?;
                if let Some(branch) = &summary.branch {
                    let branch = format_as_code(branch);
                    writeln!(self.out, "It decides nothing: {branch}.\n")?;
                }
                if summary.demo {
                    writeln!(self.out, "This ran the built-in demo.\n")?;
                }
                writeln!(self.out, "| outcome | decisions |\n|---|---|")?;
                for outcome in Outcome::ALL {
                    let n = summary.count(outcome);
                    if n > 0 || outcome.is_verdict() {
                        writeln!(
                            self.out,
                            "| {} {} | {n} |",
                            outcome.symbol(),
                            describe_outcome(outcome)
                        )?;
                    }
                }
                if summary.pending > 0 {
                    writeln!(self.out, "| pending cells | {} |", summary.pending)?;
                }
                if let Some(evals) = summary.describe_undecided_evals() {
                    let evals = format_as_code(&evals);
                    writeln!(self.out, "\n{evals}.")?;
                }
                if let Some(edited) = describe_edited(summary.edited()) {
                    writeln!(self.out, "\n{edited}.")?;
                }
                for stop in summary.budgets.iter().filter(|stop| stop.hard) {
                    let stop = format_as_code(&stop.to_string());
                    let run = &summary.run;
                    writeln!(
                        self.out,
                        "\nStopped by the budget: {stop}. Go on with `dicta run --resume {run}`."
                    )?;
                }
                for stopped in &summary.stopped_judges {
                    let stopped = format_as_code(&stopped.to_string());
                    let run = &summary.run;
                    writeln!(
                        self.out,
                        "\nStopped calling a judge: {stopped}. Its other cells are pending. Try again with `dicta run --resume {run}`."
                    )?;
                }
                for other in &summary.other_models {
                    let other = format_as_code(&other.to_string());
                    writeln!(self.out, "\nAnother model: {other}.")?;
                }
                // The agreement with labels, and the statistics.
                for (at, line) in format_label_lines(summary).iter().enumerate() {
                    let gap = if at == 0 { "\nAgainst labels:\n\n" } else { "" };
                    writeln!(self.out, "{gap}- {}", format_as_code(line))?;
                }
                for (at, line) in self.stats.iter().enumerate() {
                    let gap = if at == 0 { "\n" } else { "" };
                    writeln!(self.out, "{gap}- {}", format_as_code(line))?;
                }
                // The tables of panel decisions, failures and flags.
                if !self.panel_decisions.is_empty() {
                    writeln!(self.out, "\n| outcome | decision | by |\n|---|---|---|")?;
                    for line in self.panel_decisions.iter().take(MAX_LISTED_FAILURES) {
                        writeln!(self.out, "{line}")?;
                    }
                    if self.panel_decisions.len() > MAX_LISTED_FAILURES {
                        writeln!(
                            self.out,
                            "\n… and {} more.",
                            self.panel_decisions.len() - MAX_LISTED_FAILURES
                        )?;
                    }
                }
                if !self.failures.is_empty() {
                    writeln!(self.out, "\n| outcome | cell | why |\n|---|---|---|")?;
                    for line in &self.failures {
                        writeln!(self.out, "{line}")?;
                    }
                }
                if self.unlisted_failures > 0 {
                    writeln!(self.out, "\n… and {} more.", self.unlisted_failures)?;
                }
                if !self.flagged_cells.is_empty() {
                    writeln!(self.out, "\n| outcome | cell | flagged |\n|---|---|---|")?;
                    for line in &self.flagged_cells {
                        writeln!(self.out, "{line}")?;
                    }
                }
                if self.unlisted_flagged > 0 {
                    writeln!(self.out, "\n… and {} more.", self.unlisted_flagged)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        // Only a report about selected cells has no summary, and its reader wants all of these cells.
        if !self.has_summary {
            self.write_selected_cells()?;
        }
        self.out.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn table_cell_keeps_leading_spaces() {
        assert_eq!(
            format_as_code("x y\n- a\n  b c"),
            "`x y`<br>`- a`<br>`\u{a0}\u{a0}b c`"
        );
    }

    #[test]
    fn forge_activates_nothing_of_a_text() {
        for (text, code) in [
            ("ping @octocat in #1", "`ping @octocat in #1`"),
            (
                "http://a.test ~~no~~ <img src=x> &amp;",
                "`http://a.test ~~no~~ <img src=x> &amp;`",
            ),
            ("a|b", "`a`\\|`b`"),
            ("a\\|@b", "`a\\`\\|`@b`"),
            ("|", "\\|"),
            ("`@a`", "`` `@a` ``"),
            ("x``@a", "```x``@a```"),
            ("@a ` ", "`` @a ` ``"),
            ("", ""),
        ] {
            assert_eq!(format_as_code(text), code, "{text:?}");
        }
    }

    proptest! {
        /// Reads the result as a forge does: nothing but separators is outside of code spans, and the spans hold the
        /// text.
        #[test]
        fn text_is_inside_code_spans(text in "[ab`|@<~\\\\ ]{0,20}") {
            let cell = format_as_code(&text);
            let mut rest = cell.as_str();
            let mut read = String::new();
            while !rest.is_empty() {
                if let Some(next) = rest.strip_prefix("\\|") {
                    read.push('|');
                    rest = next;
                    continue;
                }
                let fence = rest.len() - rest.trim_start_matches('`').len();
                prop_assert!(fence > 0, "{cell:?}");
                let inside = &rest[fence..];
                // A span ends at the first run of backticks of the same length.
                let mut at = 0;
                let end = loop {
                    let Some(start) = inside[at..].find('`') else {
                        return Err(TestCaseError::fail(format!("open span: {cell:?}")));
                    };
                    let run = inside[at + start..].len()
                        - inside[at + start..].trim_start_matches('`').len();
                    if run == fence {
                        break at + start;
                    }
                    at += start + run;
                };
                let span = &inside[..end];
                prop_assert!(!span.contains('|'), "{cell:?}");
                let is_padded = span.starts_with(' ') && span.ends_with(' ') && !span.trim_matches(' ').is_empty();
                read.push_str(if is_padded { &span[1..span.len() - 1] } else { span });
                rest = &inside[end + fence..];
            }
            let indent = |text: &str| text.replace('\u{a0}', " ");
            let read = indent(&read);
            prop_assert_eq!(read.trim_matches(' '), text.trim_end().trim_matches(' '));
        }
    }
}
