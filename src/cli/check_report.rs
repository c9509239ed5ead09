//! The report of `dicta check` in each format: diagnostics, counts and a text for people. Does not check anything.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::CommandCx;
use super::error::CommandError;
use super::format::{Format, join_lines};
use super::github_place::find_diagnostic_place;
use crate::diag::{Diagnostic, Severity};
use crate::model::pluralize;
use crate::report::{AnnotationLevel, format_annotation};

/// The report of one check. For people, it prints at once; other formats are printed at the end.
pub(super) struct CheckReport<'c> {
    cx: &'c CommandCx,
    format: Format,
    /// The folder to which the files of diagnostics are relative.
    pub(super) root: PathBuf,
    found: Vec<Diagnostic>,
    /// The number of warnings beyond the largest number that is kept.
    hidden: usize,
    counts: Map<String, Value>,
}

impl<'c> CheckReport<'c> {
    pub(super) fn new(format: Format, cx: &'c CommandCx) -> Self {
        Self {
            cx,
            format,
            root: PathBuf::from("."),
            found: Vec::new(),
            hidden: 0,
            counts: Map::new(),
        }
    }

    /// Returns true if the text for people is printed.
    pub(super) fn is_human(&self) -> bool {
        self.format == Format::Human
    }

    /// Adds diagnostics.
    pub(super) fn diagnose(&mut self, diagnostics: &[Diagnostic]) {
        if self.is_human() {
            self.cx.streams.print_diagnostics(diagnostics);
        } else {
            self.found.extend_from_slice(diagnostics);
        }
    }

    /// Adds the number of warnings that are left out because there are too many.
    pub(super) fn hide(&mut self, warnings: usize) {
        self.hidden += warnings;
        if warnings > 0 && self.is_human() {
            let text = format!("… and {warnings} more like these");
            self.cx.streams.print_stderr(&text);
        }
    }

    /// Adds a number to the summary of formats for programs.
    pub(super) fn count(&mut self, name: &str, number: usize) {
        self.counts.insert(name.to_owned(), json!(number));
    }

    /// Prints the text for people.
    pub(super) fn print(&self, text: &str) {
        if self.is_human() {
            self.cx.streams.print_wrapped(text);
        }
    }

    /// Prints the report in a format for programs. `outcome` is the exit code of the check or the error that ended it.
    pub(super) fn finish(mut self, outcome: Result<u8, CommandError>) -> Result<u8, CommandError> {
        if self.is_human() {
            return outcome;
        }
        let (code, message) = match outcome {
            Ok(code) => (code, String::new()),
            Err(error) => {
                self.found.extend_from_slice(error.diagnostics());
                (error.code, error.message().to_owned())
            }
        };
        let text = match self.format {
            Format::Github => self.format_annotations(&message),
            Format::Jsonl => {
                let lines = self.found.iter().map(to_json);
                let lines = lines.chain([self.summary(code, &message)]);
                join_lines(lines)
            }
            _ => {
                let diagnostics: Vec<Value> = self.found.iter().map(to_json).collect();
                let summary = self.summary(code, &message);
                let document = json!({"diagnostics": diagnostics, "summary": summary});
                format!("{document:#}\n")
            }
        };
        self.cx.streams.print_data(&text);
        Ok(code)
    }

    fn count_severity(&self, severity: Severity) -> usize {
        let found = self.found.iter();
        found.filter(|one| one.severity == severity).count()
    }

    fn summary(&self, code: u8, message: &str) -> Value {
        let error = (!message.is_empty()).then_some(message);
        json!({
            "type": "summary",
            "errors": self.count_severity(Severity::Error) + usize::from(error.is_some()),
            "warnings": self.count_severity(Severity::Warning) + self.hidden,
            "hidden_warnings": self.hidden,
            "error": error,
            "exit_code": code,
            "counts": self.counts,
        })
    }

    fn format_annotations(&self, message: &str) -> String {
        let mut lines: Vec<String> = self
            .found
            .iter()
            .map(|found| {
                let level = match found.severity {
                    Severity::Error => AnnotationLevel::Error,
                    Severity::Warning => AnnotationLevel::Warning,
                };
                let place = find_diagnostic_place(found, &self.root, &self.cx.env);
                let help = found.help.as_ref();
                let help = help.map_or_else(String::new, |help| format!("\nhelp: {help}"));
                let text = format!("{}{help}", found.message);
                format_annotation(level, Some(&place), found.code, &text)
            })
            .collect();
        if !message.is_empty() {
            let error = AnnotationLevel::Error;
            lines.push(format_annotation(error, None, "dicta check", message));
        }
        if self.hidden > 0 {
            let text = format!("… and {}", pluralize(self.hidden, "more warning"));
            let notice = AnnotationLevel::Notice;
            lines.push(format_annotation(notice, None, "dicta check", &text));
        }
        join_lines(lines)
    }
}

fn to_json(diagnostic: &Diagnostic) -> Value {
    let span = diagnostic.span.as_ref();
    json!({
        "type": "diagnostic",
        "severity": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "code": diagnostic.code,
        "file": diagnostic.file.display().to_string(),
        "line": span.map(|span| span.line),
        "column": span.map(|span| span.column),
        "message": diagnostic.message,
        "help": diagnostic.help,
    })
}
