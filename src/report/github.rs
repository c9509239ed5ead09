//! `--format github`: annotations of a GitHub workflow, one per decision that failed.
//!
//! Responsible for workflow commands and their escapes. Does not find the places of evals; the caller knows them.
//!
//! GitHub documents the syntax under "Workflow commands for GitHub Actions". A text can't add a command, because every
//! line break in it is escaped.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::flags::{append_flags, describe_edited, mark_edited};
use super::wording::describe_outcome;
use super::{DecidedRow, ReportRow, ReportWriter, RunSummary, describe_panel_decision};
use crate::event::RunHeader;
use crate::model::{make_visible, pluralize, skip_rules_head};

/// The level of an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotationLevel {
    /// `::error`
    Error,
    /// `::warning`
    Warning,
    /// `::notice`
    Notice,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilePlace {
    /// The file, relative to the root of the repository if it is inside.
    pub file: String,
    /// The line from 1; 0 if unknown.
    pub line: u32,
    /// The column from 1; 0 if unknown.
    pub column: u32,
}

/// The places of evals, by the ids of rubric and eval.
pub type EvalPlaces = HashMap<(String, String), FilePlace>;

/// Writes annotations.
pub struct GithubReportWriter<'w> {
    out: io::BufWriter<Box<dyn Write + 'w>>,
    places: EvalPlaces,
}

impl<'w> GithubReportWriter<'w> {
    /// Returns a writer to `out`. An eval without a place gets the file of its rubric. Visible marks
    /// replace characters that a terminal executes or hides, also in a file.
    pub fn new(out: Box<dyn Write + 'w>, places: EvalPlaces) -> Self {
        Self {
            out: io::BufWriter::new(out),
            places,
        }
    }

    /// Adds the rubric files of the run for evals without a place.
    fn add_rubric_files(&mut self, header: &RunHeader) {
        for eval in &header.evals {
            let Some(rubric) = header.rubrics.get(eval.rubric as usize) else {
                continue;
            };
            let place = || FilePlace {
                file: rubric.path.display().to_string(),
                ..FilePlace::default()
            };
            let name = (rubric.id.clone(), eval.id.clone());
            self.places.entry(name).or_insert_with(place);
        }
    }

    fn write_line(&mut self, line: &str) -> io::Result<()> {
        // GitHub shows the line to people, and its log runs the colors in it.
        writeln!(self.out, "{}", make_visible(line, false))
    }

    fn write_decided(&mut self, row: &DecidedRow<'_>) -> io::Result<()> {
        let level = match row.is_problem() {
            true => AnnotationLevel::Error,
            false if row.is_flagged() => AnnotationLevel::Warning,
            false => return Ok(()),
        };
        let outcome = row.outcome().map_or("undecided", describe_outcome);
        let place = (row.name.rubric.to_owned(), row.name.eval.to_owned());
        let shot = if row.is_shot { " (shot)" } else { "" };
        let edited = mark_edited(row.is_edited());
        let line = format_annotation(
            level,
            self.places.get(&place),
            &format!("{outcome}: {}{shot}{edited}", row.name),
            &explain_decision(row),
        );
        self.write_line(&line)
    }

    fn write_summary(&mut self, summary: &RunSummary) -> io::Result<()> {
        let mut text = summary.describe_outcomes();
        if summary.pending > 0 {
            let _infallible = write!(text, "; {} pending", pluralize(summary.pending, "cell"));
        }
        if let Some(branch) = &summary.branch {
            let _infallible = write!(text, "; {branch}, so it decides nothing");
        }
        if let Some(edited) = describe_edited(summary.edited()) {
            let _infallible = write!(text, "; {edited}");
        }
        let title = format!("dicta {}", summary.subject());
        self.write_line(&format_annotation(
            AnnotationLevel::Notice,
            None,
            &title,
            &text,
        ))
    }
}

/// Returns the reasons of a decision with the flags of its verdicts.
fn explain_decision(row: &DecidedRow<'_>) -> String {
    let why = |cell: &super::ResultRow<'_>| {
        let result = cell.result;
        let error = result.error.as_deref();
        let why = error.unwrap_or_else(|| skip_rules_head(&result.explanation));
        append_flags(why, result)
    };
    if let ([cell], false) = (row.cells, row.is_combined()) {
        return why(cell);
    }
    let panel = row.decision.and_then(|decision| decision.panel.as_deref());
    let panel = panel.map(|panel| describe_panel_decision(panel, row.judges));
    let cells = row.cells.iter().map(|cell| {
        let outcome = describe_outcome(cell.result.outcome);
        format!("{}: {outcome}: {}", cell.name, why(cell))
    });
    let all: Vec<String> = panel.into_iter().chain(cells).collect();
    all.join("\n")
}

impl ReportWriter for GithubReportWriter<'_> {
    fn write_row(&mut self, row: &ReportRow<'_>) -> io::Result<()> {
        match row {
            ReportRow::Header(header) => {
                self.add_rubric_files(header);
                Ok(())
            }
            ReportRow::Decided(row) => self.write_decided(row),
            // An undecided rubric changes the exit code.
            ReportRow::Rubric(row) if row.passed.is_none() => {
                let title = format!("undecided: rubric {} on {}", row.rubric, row.transcript);
                let why = "a required eval, or every eval, has no verdict";
                self.write_line(&format_annotation(
                    AnnotationLevel::Warning,
                    None,
                    &title,
                    why,
                ))
            }
            ReportRow::Summary(summary) => self.write_summary(summary),
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

/// Formats an annotation as one line without a line end: `::error file=r.yaml,line=3,title=fail%3A a/r/b::why`.
pub fn format_annotation(
    level: AnnotationLevel,
    place: Option<&FilePlace>,
    title: &str,
    message: &str,
) -> String {
    let command = match level {
        AnnotationLevel::Error => "error",
        AnnotationLevel::Warning => "warning",
        AnnotationLevel::Notice => "notice",
    };
    let mut properties = Vec::new();
    if let Some(place) = place {
        properties.push(format!("file={}", escape_property(&place.file)));
        if place.line > 0 {
            properties.push(format!("line={}", place.line));
        }
        if place.column > 0 {
            properties.push(format!("col={}", place.column));
        }
    }
    properties.push(format!("title={}", escape_property(title)));
    format!(
        "::{command} {}::{}",
        properties.join(","),
        escape_message(message.trim_end())
    )
}

/// Escapes the message of a command.
fn escape_message(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes the value of a property.
fn escape_property(text: &str) -> String {
    escape_message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotation_names_file_line_and_title() {
        let place = FilePlace {
            file: "rubrics/a,b.yaml".to_owned(),
            line: 12,
            column: 5,
        };
        assert_eq!(
            format_annotation(
                AnnotationLevel::Error,
                Some(&place),
                "fail: a/r/e",
                "50 % wrong"
            ),
            "::error file=rubrics/a%2Cb.yaml,line=12,col=5,title=fail%3A a/r/e::50 %25 wrong"
        );
    }

    #[test]
    fn text_cannot_add_a_command() {
        let line = format_annotation(
            AnnotationLevel::Warning,
            None,
            "a\n::set-env name=x::y",
            "why\r\n::add-mask::x",
        );
        assert_eq!(line.lines().count(), 1, "{line}");
        assert_eq!(
            line,
            "::warning title=a%0A%3A%3Aset-env name=x%3A%3Ay::why%0D%0A::add-mask::x"
        );
    }
}
