//! `--format markdown`: the totals and the failures, for a pull request.
//!
//! Responsible for the Markdown. Does not compute decisions.

use std::io::{self, Write};

use super::flags::append_flags;
use super::label_agreement::format_label_lines;
use super::stats::format_stats;
use super::wording::describe_outcome;
use super::{ReportRow, ReportWriter, describe_panel_decision};
use crate::model::{Outcome, make_visible};

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
        }
    }
}

/// Escapes a text for a table cell: one line, without active Markdown or HTML.
fn escape_table_cell(text: &str) -> String {
    let mut out = String::new();
    let mut at_line_start = false;
    for c in make_visible(text.trim_end(), true).chars() {
        at_line_start = c == '\n' || (at_line_start && c == ' ');
        match c {
            '\n' => out.push_str("<br>"),
            // Markdown drops leading spaces, but they align the columns of a diff.
            ' ' if at_line_start => out.push_str("&nbsp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' => {
                out.push('\\');
                out.push(c);
            }
            // Markdown passes HTML through, so escape it.
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
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
                let why = row
                    .result
                    .error
                    .as_deref()
                    .unwrap_or(&row.result.explanation);
                let name = row.name.to_string();
                let outcome = row.result.outcome;
                self.failures.push(format!(
                    "| {} {} | {} | {} |",
                    outcome.symbol(),
                    describe_outcome(outcome),
                    escape_table_cell(&name),
                    escape_table_cell(&append_flags(why, row.result.verdict.as_deref()))
                ));
                Ok(())
            }
            // A cell that passed is listed only if its verdict has flags.
            ReportRow::Result(row) => {
                let flags = append_flags("", row.result.verdict.as_deref());
                if flags.is_empty() {
                    return Ok(());
                }
                if self.flagged_cells.len() == MAX_LISTED_FAILURES {
                    self.unlisted_flagged += 1;
                    return Ok(());
                }
                let (name, outcome) = (row.name.to_string(), row.result.outcome);
                self.flagged_cells.push(format!(
                    "| {} {} | {} | {} |",
                    outcome.symbol(),
                    describe_outcome(outcome),
                    escape_table_cell(&name),
                    escape_table_cell(&flags)
                ));
                Ok(())
            }
            ReportRow::Stats(stats) => {
                self.stats = format_stats(stats);
                Ok(())
            }
            ReportRow::Decision(row) => {
                // Repeats have one judge, so there is no list of judges to print.
                if let Some(ruling) = &row.decision.panel {
                    let outcome = row.decision.outcome;
                    self.panel_decisions.push(format!(
                        "| {} {} | {} | {} |",
                        outcome.symbol(),
                        describe_outcome(outcome),
                        escape_table_cell(&row.name.to_string()),
                        escape_table_cell(&describe_panel_decision(ruling, &row.judges))
                    ));
                }
                Ok(())
            }
            ReportRow::Summary(summary) => {
                // The heading and the table of outcomes.
                writeln!(self.out, "## dicta run {}\n", summary.run)?;
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
                for stop in summary.budgets.iter().filter(|stop| stop.hard) {
                    let stop = escape_table_cell(&stop.to_string());
                    let run = &summary.run;
                    writeln!(
                        self.out,
                        "\nStopped by the budget: {stop}. Go on with `dicta run --resume {run}`."
                    )?;
                }
                // The agreement with labels, and the statistics.
                for (at, line) in format_label_lines(summary).iter().enumerate() {
                    let gap = if at == 0 { "\nAgainst labels:\n\n" } else { "" };
                    writeln!(self.out, "{gap}- {}", escape_table_cell(line))?;
                }
                for (at, line) in self.stats.iter().enumerate() {
                    let gap = if at == 0 { "\n" } else { "" };
                    writeln!(self.out, "{gap}- {}", escape_table_cell(line))?;
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
        self.out.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_cell_keeps_leading_spaces() {
        assert_eq!(
            escape_table_cell("x y\n- a\n  b c"),
            "x y<br>- a<br>&nbsp;&nbsp;b c"
        );
    }
}
