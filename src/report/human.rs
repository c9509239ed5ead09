//! `--format human`: a line a cell, then the totals with every class named.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::flags::flags;
use super::labelled::{beside, label_lines};
use super::stats::{stat_lines, tokens};
use super::wrap::wrap;
use super::{DecisionRow, Format, ResultRow, Row, Style, Summary, ruled};
use crate::event::ReplayedEvidencePlan;
use crate::model::{Millis, Outcome, VoteCounts, make_visible, pluralize};

/// Columns of an outcome with its score: `✗ fail 0.50`.
const HEAD: usize = 11;
/// What is said of a result stands so far in.
const INDENT: usize = 4;
/// Failures listed at the end at most; the others are counted.
const MOST: usize = 40;

/// Writes lines for people.
pub struct Human<'w> {
    out: io::BufWriter<Box<dyn Write + 'w>>,
    style: Style,
    /// Decisions told, and those that failed or ended in an error.
    decided: usize,
    troubles: Vec<(Outcome, String)>,
    more: usize,
    rubrics: bool,
}

impl<'w> Human<'w> {
    /// Lines go to `out`.
    pub fn new(out: Box<dyn Write + 'w>, style: Style) -> Self {
        Self {
            out: io::BufWriter::with_capacity(64 * 1024, out),
            style,
            decided: 0,
            troubles: Vec::new(),
            more: 0,
            rubrics: false,
        }
    }

    fn paint(&self, outcome: Outcome, text: &str) -> String {
        let (on, off) = self.style.paint(match outcome {
            Outcome::Pass => "32",
            Outcome::Fail => "31",
            Outcome::NotApplicable | Outcome::Skipped => "2",
            _ => "33",
        });
        format!("{on}{text}{off}")
    }

    /// Lines under a result, broken where the terminal ends.
    fn under(&mut self, text: &str) -> io::Result<()> {
        for line in text.lines() {
            let line = make_visible(line, false);
            let line = wrap(&line, INDENT, INDENT, self.style.width);
            writeln!(self.out, "{:INDENT$}{line}", "")?;
        }
        Ok(())
    }

    fn result(&mut self, row: &ResultRow<'_>) -> io::Result<()> {
        let result = row.result;
        let mut head = format!("{} {}", result.outcome.symbol(), words(result.outcome));
        if let Some(score) = result.score {
            let _infallible = write!(head, " {score:.2}");
        }
        let name = row.name.to_string();
        write!(
            self.out,
            "{}  {}",
            self.paint(result.outcome, &format!("{head:<HEAD$}")),
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
        // One of several cells decides nothing alone.
        let alone = row.name.repeat.is_none() && !row.seated;
        write!(self.out, "{}", beside(row.label.filter(|_| alone)))?;
        writeln!(self.out)?;
        if row.name.repeat.is_none() && !row.seated {
            self.note(result.outcome, &name);
        }
        let live = row.name.judge.is_some() && result.cached.is_none();
        if self.style.told && live {
            return Ok(());
        }
        self.under(result.error.as_deref().unwrap_or(&result.explanation))?;
        let Some(verdict) = &result.verdict else {
            return Ok(());
        };
        for citation in &verdict.citations {
            let found = if citation.found {
                ""
            } else {
                "  NOT FOUND there"
            };
            self.under(&format!(
                "“{}” [{}]{found}",
                make_visible(&citation.quote, false),
                make_visible(&citation.source, false)
            ))?;
        }
        for flag in flags(verdict) {
            self.under(&make_visible(&flag, false))?;
        }
        Ok(())
    }

    /// Keeps a decision without a pass for the list at the end.
    fn note(&mut self, outcome: Outcome, name: &str) {
        self.decided += 1;
        if outcome == Outcome::Fail || outcome.is_error() {
            if self.troubles.len() < MOST {
                self.troubles.push((outcome, name.to_owned()));
            } else {
                self.more += 1;
            }
        }
    }

    /// What did not pass, once more in one place where results ran off the screen.
    fn troubles(&mut self) -> io::Result<()> {
        /// Fewer decisions stay on a screen.
        const SCREEN: usize = 12;
        if self.decided <= SCREEN || self.troubles.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        for (outcome, name) in std::mem::take(&mut self.troubles) {
            let head = format!("{} {}", outcome.symbol(), words(outcome));
            let head = self.paint(outcome, &head);
            writeln!(self.out, "{head}  {}", make_visible(&name, false))?;
        }
        if self.more > 0 {
            writeln!(self.out, "… and {} more", self.more)?;
        }
        Ok(())
    }

    fn summary(&mut self, summary: &Summary) -> io::Result<()> {
        self.troubles()?;
        writeln!(self.out)?;
        let mut parts = Vec::new();
        for outcome in Outcome::ALL {
            let n = summary.count(outcome);
            if n > 0 || outcome.is_verdict() {
                let text = format!("{} {n} {}", outcome.symbol(), words(outcome));
                parts.push(self.paint(outcome, &text));
            }
        }
        writeln!(self.out, "{}", parts.join("   "))?;
        let verdicts = summary.count(Outcome::Pass) + summary.count(Outcome::Fail);
        let decisions: u64 = summary.outcomes.iter().sum();
        let mut text = String::new();
        if verdicts > 0 {
            let rate = 100.0 * summary.count(Outcome::Pass) as f64 / verdicts as f64;
            let of = pluralize(verdicts, "verdict");
            let _infallible = write!(text, "pass rate {rate:.0} % of {of}");
            if decisions > verdicts {
                let others = pluralize(decisions - verdicts, "decision");
                let _infallible = write!(text, " ({others} without a verdict left out)");
            }
            text.push('\n');
        }
        if let Some(agreed) = agreed(summary) {
            text.push_str(&agreed);
            text.push('\n');
        }
        for line in label_lines(summary) {
            text.push_str(&make_visible(&line, false));
            text.push('\n');
        }
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
        if summary.pending > 0 || summary.count(Outcome::Cancelled) > 0 {
            let _infallible = write!(text, " (dicta run --resume {})", letters(&summary.run));
        }
        let calls = u64::from(summary.usage.calls);
        if calls > 0 {
            let _infallible = write!(text, " · {}", pluralize(calls, "judge call"));
            text.push_str(&spent(summary));
        }
        let _infallible = write!(text, " · {}", Millis(summary.duration_ms));
        if let Some(frozen) = &summary.frozen {
            text.push('\n');
            text.push_str(&evidence(frozen, summary));
        }
        for stop in summary.budgets.iter().filter(|stop| stop.hard) {
            let _infallible = write!(
                text,
                "\nstopped by the budget: {stop}; {} not run; go on with: dicta run --resume {}",
                pluralize(summary.pending, "cell"),
                letters(&summary.run)
            );
        }
        if let Some(as_of) = &summary.as_of {
            let _infallible = write!(
                text,
                "\nthe cost is reckoned by dicta's own prices as of {as_of}; `prices:` of a judge says otherwise"
            );
        }
        for line in text.lines() {
            writeln!(self.out, "{}", wrap(line, 0, 0, self.style.width))?;
        }
        Ok(())
    }
}

/// `evidence frozen to run kvqa: 3 tool calls answered from it, 1 miss (a call without one is refused)`.
fn evidence(frozen: &ReplayedEvidencePlan, summary: &Summary) -> String {
    let answered = pluralize(summary.frozen_answers, "tool call");
    let misses = match summary.frozen_misses {
        0 => "no misses".to_owned(),
        1 => format!("1 miss ({})", frozen.describe_miss_policy()),
        n => format!("{n} misses ({})", frozen.describe_miss_policy()),
    };
    let whose = frozen.describe_runs();
    format!("evidence frozen to {whose}: {answered} answered from it, {misses}")
}

/// What judge calls took. A judge that is free and counts no tokens took nothing worth telling.
fn spent(summary: &Summary) -> String {
    let bill = summary.bill;
    if bill.is_zero() && summary.usage.input.is_none() {
        return ", free".to_owned();
    }
    format!(", {}, {bill}", tokens(&summary.usage))
}

/// How it was decided: `by vote: 2 pass, 1 fail`, or what each judge said.
fn decided(row: &DecisionRow) -> String {
    match &row.decision.panel {
        None => format!("by vote: {}", tally(row.decision.votes)),
        Some(ruling) => ruled(ruling, &row.judges),
    }
}

/// How far votes agreed: `9 decisions by vote, 7 unanimous, the winner's share 93 % on average`.
fn agreed(summary: &Summary) -> Option<String> {
    let mean = 100.0 * summary.mean_share()?;
    let mut text = format!(
        "{} by vote, {} unanimous, the winner's share {mean:.0} % on average",
        pluralize(summary.voted, "decision"),
        summary.unanimous
    );
    if summary.cascades > 0 {
        let of = pluralize(summary.cascades, "cascade");
        let _infallible = write!(text, " · {} of {of} went on", summary.escalated);
    }
    Some(text)
}

/// The votes that were cast: `2 pass, 1 fail`.
fn tally(votes: VoteCounts) -> String {
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

fn letters(run: &str) -> &str {
    run.rsplit_once('-').map_or(run, |(_, letters)| letters)
}

/// An outcome in words.
pub fn words(outcome: Outcome) -> &'static str {
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
                    writeln!(self.out, "{}", make_visible(&header.label, false))?;
                }
                Ok(())
            }
            Row::Result(row) => self.result(row),
            Row::Decision(row) => {
                let outcome = row.decision.outcome;
                let head = format!("{} {}", outcome.symbol(), words(outcome));
                let name = row.name.to_string();
                self.note(outcome, &name);
                let label = beside(row.label);
                writeln!(
                    self.out,
                    "{}  {}  {}{label}",
                    self.paint(outcome, &format!("{head:<HEAD$}")),
                    make_visible(&name, false),
                    make_visible(&decided(row), false),
                )
            }
            Row::Rubric(row) => {
                if !std::mem::replace(&mut self.rubrics, true) {
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
            Row::Stats(stats) => {
                writeln!(self.out)?;
                for line in stat_lines(stats) {
                    writeln!(self.out, "{}", wrap(&line, 0, 2, self.style.width))?;
                }
                Ok(())
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

    fn printed(style: Style, rows: &[Row<'_>]) -> String {
        let mut out = Vec::new();
        let mut human = Human::new(Box::new(&mut out), style);
        for row in rows {
            human.row(row).expect("a Vec takes everything");
        }
        human.finish().expect("a Vec takes everything");
        drop(human);
        String::from_utf8(out).expect("text")
    }

    fn row(result: &CellResult) -> Row<'_> {
        Row::Result(ResultRow {
            name: NAME,
            kind: "llm_judge",
            bounds: ScoreBounds::default(),
            seated: false,
            label: None,
            result,
        })
    }

    #[test]
    fn reasons_are_broken_where_the_terminal_ends() {
        let style = Style {
            width: 40,
            ..Style::default()
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
    fn a_reason_that_was_told_live_is_not_told_again() {
        let style = Style {
            told: true,
            ..Style::default()
        };
        let live = CellResult::new(Outcome::Fail, "too long");
        let mut recalled = live.clone();
        recalled.cached = Some(crate::model::RunId("20261121T000000Z-abcd".to_owned()));
        assert_eq!(
            printed(style, &[row(&live), row(&recalled)]),
            "✗ fail       refund/support/brief~quick\n\
             ✗ fail       refund/support/brief~quick  [from abcd]\n    too long\n",
            "nobody spoke for the second one"
        );
    }

    #[test]
    fn failures_that_ran_off_the_screen_are_listed_at_the_end() {
        let (pass, fail) = (
            CellResult::new(Outcome::Pass, ""),
            CellResult::new(Outcome::Fail, ""),
        );
        let mut rows = vec![row(&pass); 12];
        rows.push(row(&fail));
        let summary = Summary::default();
        rows.push(Row::Summary(&summary));
        let text = printed(Style::default(), &rows);
        assert_eq!(text.matches("✗ fail").count(), 2, "{text}");
        assert!(
            text.contains("\n\n✗ fail  refund/support/brief~quick\n\n"),
            "{text}"
        );
    }
}
