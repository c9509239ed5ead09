//! Recorded events as text: human, json, jsonl, junit, markdown, csv, github; and states as pages and tables.
//!
//! Responsible for the result lines and the exit code over decisions. Does not fold a whole run: it counts events, so that
//! its memory does not grow with deterministic results. A terminal shows untrusted text with visible marks; a pipe
//! receives it byte for byte.
//!
//! [`RowBuilder`] turns events into rows in plan order, a [`ReportWriter`] writes rows, and a [`Narrator`] prints live
//! turns. [`RunProgress`] is the line about an unfinished run.

pub mod agreement_text;
mod cell_source;
mod csv;
mod decision_csv;
mod edit_words;
mod flags;
mod foreign_keys;
mod github;
pub mod html;
mod human;
mod interleave;
mod json;
mod jsonl;
mod judge_trace;
mod junit;
mod label_agreement;
mod line_schema;
mod markdown;
mod narrate;
mod otlp;
mod paired_words;
mod panel_decision;
mod progress;
mod reasoning;
mod result_digests;
mod result_file;
mod rows;
mod score;
mod stats;
mod undecided_reasons;
mod wording;
mod workflow_log;
mod wrap;

use std::io;
use std::path::Path;

pub use cell_source::{CellSource, JudgedTrace};
pub use csv::{CsvReportWriter, format_csv};
pub use decision_csv::write_decision_csv;
pub use edit_words::{describe_edit, describe_edit_briefly, describe_entry_edits};
pub use flags::{describe_edited, mark_edited};
pub use foreign_keys::{KeyFinder, describe_keys};
pub use github::{AnnotationLevel, EvalPlaces, FilePlace, GithubReportWriter, format_annotation};
pub use human::HumanReportWriter;
pub use json::JsonReportWriter;
pub use jsonl::JsonlReportWriter;
pub use judge_trace::{QuotePlaces, format_judge_trace, read_piece, read_rope};
pub use junit::{JunitCaseText, JunitReportWriter, JunitStatus, format_junit};
pub use label_agreement::EvalVerdicts;
pub use line_schema::result_schema;
pub use markdown::{MarkdownReportWriter, format_as_code};
pub use narrate::{Narrator, describe_run_event};
pub use otlp::{ExportedCell, write_otlp};
pub use paired_words::{
    describe_flip_noise, describe_noise, describe_paired_figures, describe_progress,
    describe_progress_briefly, describe_undrawn_labels, format_p_value, format_points,
    format_points_interval, mark_noisy_flip,
};
pub use panel_decision::{describe_panel_decision, describe_undecided, explain_doubt};
pub use progress::RunProgress;
pub use reasoning::extract_reasoning;
pub use result_digests::{CellDigests, EvalSettings, JudgeDigest};
pub use result_file::{
    FileDecision, ResultFile, ResultFileError, parse_result_file, read_result_file,
};
pub use rows::{
    DecidedRow, DecisionOrder, DecisionRow, ReportRow, RerunFailure, ResultRow, RowBuilder,
    RubricRow, RunSummary, describe_branch,
};
pub use stats::{format_stats, format_tokens};
pub use wording::{count_outcome, describe_outcome, format_bytes, format_cost, format_threshold};
pub use workflow_log::{WorkflowLogWriter, escape_workflow_commands};
pub use wrap::{wrap_line, wrap_lines};

/// A writer of rows in one format.
pub trait ReportWriter {
    /// Writes a row.
    fn write_row(&mut self, row: &ReportRow<'_>) -> io::Result<()>;
    /// Writes the rows that are known only at the end, and flushes.
    fn finish(&mut self) -> io::Result<()>;
    /// Flushes the buffer.
    fn flush(&mut self) -> io::Result<()>;
}

/// The output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    /// Text for people.
    Human,
    /// One JSON document.
    Json,
    /// One JSON object per line.
    Jsonl,
    /// `JUnit` XML, for CI servers.
    Junit,
    /// A summary and the failures, for pull requests.
    Markdown,
    /// A table of the results, for spreadsheets.
    Csv,
    /// Annotations of a GitHub workflow.
    Github,
}

impl ReportFormat {
    /// Returns the format for a file extension.
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "json" => Some(Self::Json),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "xml" => Some(Self::Junit),
            "md" | "markdown" => Some(Self::Markdown),
            "txt" => Some(Self::Human),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }

    /// Returns `true` if the format writes decisions with their cells, see [`RowBuilder::with_decisions`].
    pub fn needs_decisions(self) -> bool {
        matches!(self, Self::Human | Self::Github)
    }

    /// Returns a writer of this format for `out`. `places` are the places of the evals, for formats that print them.
    pub fn writer<'w>(
        self,
        out: Box<dyn io::Write + 'w>,
        style: TextStyle,
        places: &EvalPlaces,
    ) -> Box<dyn ReportWriter + 'w> {
        match self {
            Self::Human => Box::new(HumanReportWriter::new(out, style)),
            Self::Json => Box::new(JsonReportWriter::new(out, style.terminal)),
            Self::Jsonl => Box::new(JsonlReportWriter::new(out, style.terminal)),
            Self::Junit => Box::new(JunitReportWriter::new(out, style.terminal)),
            Self::Markdown => Box::new(MarkdownReportWriter::new(out)),
            Self::Csv => Box::new(CsvReportWriter::new(out, style.terminal)),
            Self::Github => Box::new(GithubReportWriter::new(out, places.clone())),
        }
    }
}

/// The amount of detail of a report for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReportDetail {
    /// Failures and the summary.
    Quiet,
    /// Failures, statistics and the summary.
    #[default]
    Normal,
    /// Every decision with its whole reason, every rubric score, statistics and the summary.
    Verbose,
}

/// The style of text output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextStyle {
    /// `true` if `out` is a terminal, so that hostile characters are escaped.
    pub terminal: bool,
    /// `true` if ANSI colors may be used.
    pub color: bool,
    /// The width in columns at which lines break; 0 for no line breaks.
    pub width: usize,
    /// `true` if a [`Narrator`] prints the reasoning of judged cells on the same screen.
    pub has_narrator: bool,
    /// `true` if the output is the log of a GitHub workflow, in which a line can be a command.
    pub is_workflow_log: bool,
    /// The amount of detail.
    pub detail: ReportDetail,
}

impl TextStyle {
    /// Returns the text before and after colored text (parameters of SGR, ECMA-48 8.3.117); both empty without
    /// colors.
    fn paint(self, code: &str) -> (String, &'static str) {
        // Some marks have no style, so they have an empty code.
        if self.color && !code.is_empty() {
            (format!("\u{1b}[{code}m"), "\u{1b}[0m")
        } else {
            (String::new(), "")
        }
    }
}
