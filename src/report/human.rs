//! `--format human`: a line a cell, then the totals with every class named.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::{Format, ResultRow, Row, Style, Summary};
use crate::model::{Millis, Outcome, counted, visible};

/// Writes lines for people.
pub struct Human<'w> {
    out: io::BufWriter<Box<dyn Write + 'w>>,
    style: Style,
}

impl<'w> Human<'w> {
    /// Lines go to `out`.
    pub fn new(out: Box<dyn Write + 'w>, style: Style) -> Self {
        Self {
            out: io::BufWriter::with_capacity(64 * 1024, out),
            style,
        }
    }

    fn paint(&self, outcome: Outcome, text: &str) -> String {
        if !self.style.color {
            return text.to_owned();
        }
        let code = match outcome {
            Outcome::Pass => "32",
            Outcome::Fail => "31",
            Outcome::NotApplicable | Outcome::Skipped => "2",
            _ => "33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    fn result(&mut self, row: &ResultRow<'_>) -> io::Result<()> {
        let result = row.result;
        let mut head = format!("{} {}", result.outcome.mark(), words(result.outcome));
        if let Some(score) = result.score {
            let _infallible = write!(head, " {score:.2}");
            if let Some(needs) = row.min_score {
                let _infallible = write!(head, " (needs {needs:.2})");
            }
        }
        let name = row.name.to_string();
        write!(
            self.out,
            "{}  {}",
            self.paint(result.outcome, &head),
            visible(&name, false)
        )?;
        if let Some(run) = &result.cached {
            write!(self.out, "  [from {}]", run.letters())?;
        }
        writeln!(self.out)?;
        let why = result.error.as_deref().unwrap_or(&result.explanation);
        for line in why.lines() {
            writeln!(self.out, "    {}", visible(line, false))?;
        }
        let Some(verdict) = &result.verdict else {
            return Ok(());
        };
        for citation in &verdict.citations {
            let found = if citation.found {
                ""
            } else {
                "  NOT FOUND there"
            };
            let quote = visible(&citation.quote, false);
            writeln!(
                self.out,
                "    “{quote}” [{}]{found}",
                visible(&citation.source, false)
            )?;
        }
        if let Some(why) = &verdict.contradiction {
            writeln!(
                self.out,
                "    the reason seems to contradict the verdict: {}",
                visible(why, false)
            )?;
        }
        Ok(())
    }

    fn summary(&mut self, summary: &Summary) -> io::Result<()> {
        writeln!(self.out)?;
        let mut parts = Vec::new();
        for outcome in Outcome::ALL {
            let n = summary.count(outcome);
            if n > 0 || outcome.is_verdict() {
                let text = format!("{} {n} {}", outcome.mark(), words(outcome));
                parts.push(self.paint(outcome, &text));
            }
        }
        writeln!(self.out, "{}", parts.join("   "))?;
        let verdicts = summary.count(Outcome::Pass) + summary.count(Outcome::Fail);
        let decisions: u64 = summary.outcomes.iter().sum();
        if verdicts > 0 {
            let rate = 100.0 * summary.count(Outcome::Pass) as f64 / verdicts as f64;
            let of = counted(verdicts, "verdict");
            write!(self.out, "pass rate {rate:.0} % of {of}")?;
            if decisions > verdicts {
                write!(
                    self.out,
                    " ({} without a verdict left out)",
                    counted(decisions - verdicts, "decision")
                )?;
            }
            writeln!(self.out)?;
        }
        write!(self.out, "run {}", summary.run)?;
        write!(
            self.out,
            " · {} over {}",
            counted(summary.cells, "cell"),
            counted(summary.transcripts, "transcript")
        )?;
        if summary.pending > 0 {
            write!(self.out, " · {} pending", summary.pending)?;
        }
        if summary.interrupted {
            write!(self.out, " · INTERRUPTED")?;
        }
        if summary.pending > 0 || summary.count(Outcome::Cancelled) > 0 {
            write!(self.out, " (dicta run --resume {})", letters(&summary.run))?;
        }
        if summary.usage.calls > 0 {
            let calls = counted(summary.usage.calls, "judge call");
            write!(self.out, " · {calls}")?;
            match (summary.usage.input, summary.usage.output) {
                (Some(input), Some(output)) => write!(self.out, ", {input} + {output} tokens")?,
                _ => write!(self.out, ", tokens unknown")?,
            }
            match summary.cost_usd {
                Some(cost) => write!(self.out, ", ${cost:.4}")?,
                None => write!(self.out, ", cost unknown")?,
            }
        }
        writeln!(self.out, " · {}", Millis(summary.duration_ms))
    }
}

fn letters(run: &str) -> &str {
    run.rsplit_once('-').map_or(run, |(_, letters)| letters)
}

/// An outcome in words.
pub(super) fn words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NotApplicable => "not applicable",
        Outcome::CheckError => "check error",
        Outcome::JudgeError => "judge error",
        Outcome::TurnLimit => "turn limit",
        other => other.as_str(),
    }
}

impl Format for Human<'_> {
    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        match row {
            Row::Header(header) => {
                if !header.label.is_empty() {
                    writeln!(self.out, "{}", visible(&header.label, false))?;
                }
                Ok(())
            }
            Row::Result(row) => self.result(row),
            Row::Decision(row) => {
                let votes = row.decision.votes;
                let head = format!(
                    "{} {}",
                    row.decision.outcome.mark(),
                    words(row.decision.outcome)
                );
                let name = row.name.to_string();
                writeln!(
                    self.out,
                    "{}  {}  by vote: {} pass, {} fail, {} n/a, {} without",
                    self.paint(row.decision.outcome, &head),
                    visible(&name, false),
                    votes.pass,
                    votes.fail,
                    votes.na,
                    votes.error,
                )
            }
            Row::Rubric(row) => {
                let passed = match row.passed {
                    Some(true) => "passed",
                    Some(false) => "failed",
                    None => "undecided",
                };
                let score = row
                    .score
                    .map_or_else(|| "no score".to_owned(), |s| format!("{s:.2}"));
                let (transcript, rubric) =
                    (visible(&row.transcript, false), visible(&row.rubric, false));
                writeln!(
                    self.out,
                    "rubric {rubric} on {transcript}: {passed}, {score}"
                )
            }
            Row::Summary(summary) => self.summary(summary),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
