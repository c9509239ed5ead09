//! Recorded events as text: human, jsonl, junit, markdown.
//!
//! Owns the result lines of design.md 4 and the exit code over decisions. Eats events with counters; never folds a whole
//! run, so that its memory does not grow with deterministic results. Untrusted text is shown on a terminal with visible
//! marks, and stands byte for byte in a pipe.
//!
//! [`Rows`] turns events into rows in plan order; a [`Format`] writes rows. [`Narrator`] tells live turns as text.

mod flags;
mod human;
mod interleave;
mod jsonl;
mod judge_trace;
mod junit;
mod label_agreement;
mod markdown;
mod narrate;
mod panel_decision;
mod reasoning;
mod rows;
#[cfg(test)]
mod rows_tests;
mod score;
mod stats;
mod wording;
mod wrap;

use std::io;
use std::path::Path;

pub use human::HumanReportWriter;
pub use jsonl::JsonlReportWriter;
pub use judge_trace::{format_judge_trace, read_piece, read_rope};
pub use junit::JunitReportWriter;
pub use label_agreement::EvalVerdicts;
pub use markdown::MarkdownReportWriter;
pub use narrate::Narrator;
pub use panel_decision::{describe_panel_decision, describe_undecided, explain_doubt};
pub use reasoning::extract_reasoning;
pub use rows::{DecisionRow, ReportRow, ResultRow, RowBuilder, RubricRow, RunSummary};
pub use stats::{format_stats, format_tokens};
pub use wording::{describe_outcome, format_bytes};
pub use wrap::wrap_line;

/// Writes rows in one format.
pub trait ReportWriter {
    /// Writes a row.
    fn write_row(&mut self, row: &ReportRow<'_>) -> io::Result<()>;
    /// Writes what only the end can tell, and flushes.
    fn finish(&mut self) -> io::Result<()>;
    /// Flushes what is buffered.
    fn flush(&mut self) -> io::Result<()>;
}

/// The formats by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    /// For people.
    Human,
    /// One JSON object a line; design.md 4.
    Jsonl,
    /// `JUnit` XML, for CI servers.
    Junit,
    /// A summary and the failures, for pull requests.
    Markdown,
}

impl ReportFormat {
    /// The format a file's ending asks for.
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "xml" => Some(Self::Junit),
            "md" | "markdown" => Some(Self::Markdown),
            "txt" => Some(Self::Human),
            _ => None,
        }
    }

    /// A writer of this format. `terminal`: `out` is one.
    pub fn writer<'w>(
        self,
        out: Box<dyn io::Write + 'w>,
        style: TextStyle,
    ) -> Box<dyn ReportWriter + 'w> {
        match self {
            Self::Human => Box::new(HumanReportWriter::new(out, style)),
            Self::Jsonl => Box::new(JsonlReportWriter::new(out, style.terminal)),
            Self::Junit => Box::new(JunitReportWriter::new(out, style.terminal)),
            Self::Markdown => Box::new(MarkdownReportWriter::new(out)),
        }
    }
}

/// How text may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextStyle {
    /// A terminal reads it: hostile characters are escaped.
    pub terminal: bool,
    /// ANSI colours may be used.
    pub color: bool,
    /// Columns to break lines at; 0: lines are not broken.
    pub width: usize,
    /// A [`Narrator`] tells the reasons of judged cells on the same screen.
    pub has_narrator: bool,
}

impl TextStyle {
    /// What begins and ends text of a colour (parameters of SGR, ECMA-48 8.3.117); nothing without colours.
    fn paint(self, code: &str) -> (String, &'static str) {
        if self.color && !code.is_empty() {
            (format!("\u{1b}[{code}m"), "\u{1b}[0m")
        } else {
            (String::new(), "")
        }
    }
}
