//! `--format markdown`: totals and what did not pass, for a pull request.

use std::io::{self, Write};

use super::flags::flagged;
use super::human::words;
use super::labelled::label_lines;
use super::stats::stat_lines;
use super::{Format, Row, ruled};
use crate::model::{Outcome, make_visible};

/// Failures shown at most; the rest is counted.
const MOST: usize = 200;

/// Writes a summary table and the failures.
pub struct Markdown<'w> {
    out: Box<dyn Write + 'w>,
    failures: Vec<String>,
    /// What several judges decided.
    rulings: Vec<String>,
    more: usize,
    /// Of cells that did not fail: what is flagged about their verdicts.
    doubts: Vec<String>,
    more_doubts: usize,
    stats: Vec<String>,
}

impl<'w> Markdown<'w> {
    /// Text goes to `out`.
    pub fn new(out: Box<dyn Write + 'w>) -> Self {
        Self {
            out,
            failures: Vec::new(),
            rulings: Vec::new(),
            more: 0,
            doubts: Vec::new(),
            more_doubts: 0,
            stats: Vec::new(),
        }
    }
}

/// A table cell: one line, nothing that Markdown or HTML would obey.
fn cell(text: &str) -> String {
    let mut out = String::new();
    let mut leads = false;
    for c in make_visible(text.trim_end(), true).chars() {
        leads = c == '\n' || (leads && c == ' ');
        match c {
            '\n' => out.push_str("<br>"),
            // What a line begins with keeps the columns of a diff.
            ' ' if leads => out.push_str("&nbsp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}

impl Format for Markdown<'_> {
    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        match row {
            Row::Result(row)
                if row.result.outcome == Outcome::Fail || row.result.outcome.is_error() =>
            {
                if self.failures.len() == MOST {
                    self.more += 1;
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
                    words(outcome),
                    cell(&name),
                    cell(&flagged(why, row.result.verdict.as_deref()))
                ));
                Ok(())
            }
            // One that passed is told only where there is something against trusting it.
            Row::Result(row) => {
                let flags = flagged("", row.result.verdict.as_deref());
                if flags.is_empty() {
                    return Ok(());
                }
                if self.doubts.len() == MOST {
                    self.more_doubts += 1;
                    return Ok(());
                }
                let (name, outcome) = (row.name.to_string(), row.result.outcome);
                self.doubts.push(format!(
                    "| {} {} | {} | {} |",
                    outcome.symbol(),
                    words(outcome),
                    cell(&name),
                    cell(&flags)
                ));
                Ok(())
            }
            Row::Stats(stats) => {
                self.stats = stat_lines(stats);
                Ok(())
            }
            Row::Decision(row) => {
                if let Some(ruling) = &row.decision.panel {
                    let outcome = row.decision.outcome;
                    self.rulings.push(format!(
                        "| {} {} | {} | {} |",
                        outcome.symbol(),
                        words(outcome),
                        cell(&row.name.to_string()),
                        cell(&ruled(ruling, &row.judges))
                    ));
                }
                Ok(())
            }
            Row::Summary(summary) => {
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
                            words(outcome)
                        )?;
                    }
                }
                if summary.pending > 0 {
                    writeln!(self.out, "| pending cells | {} |", summary.pending)?;
                }
                for stop in summary.budgets.iter().filter(|stop| stop.hard) {
                    let stop = cell(&stop.to_string());
                    let run = &summary.run;
                    writeln!(
                        self.out,
                        "\nStopped by the budget: {stop}. Go on with `dicta run --resume {run}`."
                    )?;
                }
                for (at, line) in label_lines(summary).iter().enumerate() {
                    let gap = if at == 0 { "\nAgainst labels:\n\n" } else { "" };
                    writeln!(self.out, "{gap}- {}", cell(line))?;
                }
                for (at, line) in self.stats.iter().enumerate() {
                    let gap = if at == 0 { "\n" } else { "" };
                    writeln!(self.out, "{gap}- {}", cell(line))?;
                }
                if !self.rulings.is_empty() {
                    writeln!(self.out, "\n| outcome | decision | by |\n|---|---|---|")?;
                    for line in self.rulings.iter().take(MOST) {
                        writeln!(self.out, "{line}")?;
                    }
                    if self.rulings.len() > MOST {
                        writeln!(self.out, "\n… and {} more.", self.rulings.len() - MOST)?;
                    }
                }
                if !self.failures.is_empty() {
                    writeln!(self.out, "\n| outcome | cell | why |\n|---|---|---|")?;
                    for line in &self.failures {
                        writeln!(self.out, "{line}")?;
                    }
                }
                if self.more > 0 {
                    writeln!(self.out, "\n… and {} more.", self.more)?;
                }
                if !self.doubts.is_empty() {
                    writeln!(self.out, "\n| outcome | cell | flagged |\n|---|---|---|")?;
                    for line in &self.doubts {
                        writeln!(self.out, "{line}")?;
                    }
                }
                if self.more_doubts > 0 {
                    writeln!(self.out, "\n… and {} more.", self.more_doubts)?;
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
    fn a_diff_keeps_its_first_column() {
        assert_eq!(cell("x y\n- a\n  b c"), "x y<br>- a<br>&nbsp;&nbsp;b c");
    }
}
