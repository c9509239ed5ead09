//! The reader of one label file: the labels found, and the defaults from dicta.yaml.

use std::path::Path;
use std::sync::Arc;

use super::entries::LabelsEntry;
use crate::diag::{Diagnostic, SourceSpan};
use crate::model::{Label, make_visible};

/// The reader of one label file.
pub(super) struct LabelFileReader<'s> {
    pub(super) text: &'s Arc<str>,
    pub(super) path: &'s Path,
    /// The defaults from dicta.yaml for labels that lack a key.
    pub(super) defaults: &'s LabelsEntry,
    /// True if the file contains Inspect Scout's cases.
    pub(super) is_scout: bool,
    labels: Vec<LocatedLabel>,
    problems: Vec<Diagnostic>,
    /// The rows without a verdict.
    blank_rows: BlankRows,
}

/// A label of the file.
pub(super) struct LocatedLabel {
    pub(super) label: Arc<Label>,
    /// The place of the label in the file.
    pub(super) span: SourceSpan,
}

/// The rows without a verdict, counted.
#[derive(Default)]
struct BlankRows {
    count: u64,
    /// The place of the first one.
    first: Option<SourceSpan>,
}

impl<'s> LabelFileReader<'s> {
    pub(super) fn new(text: &'s Arc<str>, path: &'s Path, defaults: &'s LabelsEntry) -> Self {
        Self {
            text,
            path,
            defaults,
            is_scout: false,
            labels: Vec::new(),
            problems: Vec::new(),
            blank_rows: BlankRows::default(),
        }
    }

    /// Returns the name of the file without its ending.
    pub(super) fn stem(&self) -> String {
        let stem = self.path.file_stem();
        stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
    }

    /// Adds a label, with the defaults for absent keys.
    pub(super) fn add_label(&mut self, mut label: Label, span: SourceSpan) {
        // The label still counts in the list; the error prevents the run.
        for problem in label.list_invalid_values() {
            self.error(span.clone(), problem);
        }
        // A key of the label itself takes precedence over the default.
        let entry = self.defaults;
        label.rubric = label.rubric.or_else(|| entry.rubric.clone());
        label.by = label.by.or_else(|| entry.by.clone());
        let label = Arc::new(label);
        self.labels.push(LocatedLabel { label, span });
    }

    /// Counts a row that has no verdict yet.
    pub(super) fn blank(&mut self, span: SourceSpan) {
        self.blank_rows.count += 1;
        self.blank_rows.first.get_or_insert(span);
    }

    pub(super) fn error(&mut self, span: SourceSpan, message: impl Into<String>) {
        self.report_problem(
            Diagnostic::error(super::LABEL_CODE, self.path, message).with_span(span, self.text),
        );
    }

    pub(super) fn warning(&mut self, span: SourceSpan, message: impl Into<String>) {
        self.report_problem(
            Diagnostic::warning(super::LABEL_CODE, self.path, message).with_span(span, self.text),
        );
    }

    /// Adds a problem with the code of label problems.
    pub(super) fn report_problem(&mut self, problem: Diagnostic) {
        self.problems.push(Diagnostic {
            code: super::LABEL_CODE,
            ..problem
        });
    }

    /// Returns the place of a whole line, from its number (from 1) and its first byte.
    pub(super) fn line_span(&self, number: u64, start: usize) -> SourceSpan {
        let rest = self.text.get(start..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        SourceSpan {
            bytes: start..start + line.trim_end().len(),
            line: u32::try_from(number).unwrap_or(u32::MAX),
            column: 1,
        }
    }

    pub(super) fn finish(mut self) -> (Vec<LocatedLabel>, Vec<Diagnostic>) {
        if let Some(span) = self.blank_rows.first.take() {
            let (rows, are) = match self.blank_rows.count {
                1 => ("1 row has".to_owned(), "does not count as a label"),
                n => (format!("{n} rows have"), "do not count as labels"),
            };
            self.warning(span, format!("{rows} no verdict, and {are}"));
        }
        (self.labels, self.problems)
    }
}

/// Creates a label with only the required keys.
pub(super) fn new_label(transcript: &str, eval: &str, passed: bool) -> Label {
    Label::new(transcript, eval, Some(passed))
}

/// Explains a value that is not a verdict.
pub(super) fn explain_invalid_verdict(what: &str, found: &str) -> String {
    let mut found = make_visible(found, false).into_owned();
    if let Some((at, _)) = found.char_indices().nth(60) {
        found = format!("{}…", &found[..at]);
    }
    format!("{what} must be true or false, pass or fail, yes or no, 1 or 0 (got {found})")
}
