//! `--format junit`: a test case a cell, a suite a rubric. Fail is `<failure>`, an error outcome `<error>`, not applicable
//! and skipped `<skipped>`.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use indexmap::IndexMap;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{Format, ResultRow, Row};
use crate::model::{Outcome, is_invisible};

/// Gathers cases; a suite's counts stand in front of them, so that nothing can be written before the end.
pub struct Junit<'w> {
    out: Box<dyn Write + 'w>,
    terminal: bool,
    suites: IndexMap<String, TestSuite>,
    name: String,
}

impl<'w> Junit<'w> {
    /// XML goes to `out` at the end. `terminal`: characters that a terminal obeys or hides are written as references.
    pub fn new(out: Box<dyn Write + 'w>, terminal: bool) -> Self {
        Self {
            out,
            terminal,
            suites: IndexMap::new(),
            name: "dicta".to_owned(),
        }
    }

    fn case(&mut self, row: &ResultRow<'_>) {
        let result = row.result;
        let status = match result.outcome {
            Outcome::Pass => TestCaseStatus::success(),
            Outcome::NotApplicable | Outcome::Skipped => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(result.explanation.clone());
                status
            }
            outcome => {
                let kind = if outcome == Outcome::Fail {
                    NonSuccessKind::Failure
                } else {
                    NonSuccessKind::Error
                };
                let mut status = TestCaseStatus::non_success(kind);
                status.set_type(outcome.as_str());
                status.set_message(
                    result
                        .error
                        .clone()
                        .unwrap_or_else(|| result.explanation.clone()),
                );
                status
            }
        };
        let mut case = TestCase::new(row.name.to_string(), status);
        case.set_time(Duration::from_millis(result.duration_ms.0));
        case.set_classname(format!("{}.{}", row.name.rubric, row.name.eval));
        let suite = self
            .suites
            .entry(row.name.rubric.to_owned())
            .or_insert_with(|| TestSuite::new(row.name.rubric));
        suite.add_test_case(case);
    }
}

/// A reference means the same to a reader of XML and nothing to a terminal.
fn escape(xml: &str) -> String {
    let mut out = String::with_capacity(xml.len());
    for c in xml.chars() {
        if c == '\u{7F}' || is_invisible(c) {
            let _infallible = write!(out, "&#x{:X};", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

impl Format for Junit<'_> {
    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        match row {
            Row::Header(header) => self.name = format!("dicta {}", header.run),
            Row::Result(row) => self.case(row),
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let mut report = Report::new(self.name.clone());
        report.add_test_suites(std::mem::take(&mut self.suites).into_values());
        // Written by us, so that an error of the stream keeps its kind.
        let mut xml = report.to_string().map_err(io::Error::other)?;
        if self.terminal {
            xml = escape(&xml);
        }
        self.out.write_all(xml.as_bytes())?;
        self.out.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_references_for_what_it_would_obey_or_hide() {
        assert_eq!(
            escape("<a b=\"\u{202E}x\u{7F}\u{FEFF}\">\n"),
            "<a b=\"&#x202E;x&#x7F;&#xFEFF;\">\n"
        );
    }
}
