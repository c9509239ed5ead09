//! promptfoo's tables: `promptfoo eval -o out.csv` and the CSV export of its web view.
//!
//! Responsible for one transcript per output of a row. The columns before the outputs are the variables; an output has
//! the column `[PROVIDER] PROMPT`. The mark `[PASS]`, `[FAIL]` or `[ERROR]` and the score before the text are the verdict
//! `overall` of the judge `promptfoo`, and so are the columns `Status`, `Score` and `Grader Reason` after an output. The
//! prompt of a table is a template, so the user's message is the template with the variables of the row.

use serde_json::{Map, Value};

use crate::model::{MessageRole, RawJson, SourceVerdict};
use crate::transcript::TranscriptError;
use crate::transcript::detect::FilePreview;
use crate::transcript::reader::{
    PerRecordReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use crate::transcript::scan::CsvRowScanner;
use crate::transcript::source::SourceFile;
use crate::transcript::walk::{RecordLayout, RecordWalker};

use super::csv::{describe_torn_row, parse_cells};
use super::transcript_builder::{TranscriptBuilder, text_part, verdict_of};

/// The marks before an output, and whether they mean a pass.
const MARKS: [(&str, Option<bool>); 3] = [
    ("[PASS]", Some(true)),
    ("[FAIL]", Some(false)),
    ("[ERROR]", None),
];

/// The columns that describe the output before them.
const DETAILS: [&str; 5] = [
    "Status",
    "Score",
    "Named Scores",
    "Grader Reason",
    "Comment",
];

/// The meaning of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    Variable(String),
    Output { provider: String, prompt: String },
    Detail(&'static str),
}

/// Returns the columns of a table and the offset of its first row, if it is one of promptfoo's.
fn parse_header(preview: &FilePreview<'_>) -> Option<(Vec<Column>, usize)> {
    let head = preview.bytes.get(preview.start..)?;
    if preview.layout != RecordLayout::Lines || head.starts_with(b"{") {
        return None;
    }
    let len = CsvRowScanner::default().feed(head)?;
    let cells = parse_cells(&head[..len])?;
    let columns: Vec<Column> = cells.into_iter().map(parse_column).collect();
    let is_output = |column: &&Column| matches!(column, Column::Output { .. });
    columns.iter().find(is_output)?;
    // A name in brackets alone is not enough: an output begins with a mark, or has its status in a column.
    let first = parse_cells(head.get(len..)?.get(..row_len(&head[len..]))?)?;
    let has_mark = columns.iter().zip(&first).any(|(column, cell)| {
        is_output(&column) && MARKS.iter().any(|(mark, _)| cell.starts_with(mark))
    });
    let has_status = columns.contains(&Column::Detail("Status"));
    (has_mark || has_status).then_some((columns, preview.start + len))
}

/// Returns the length of the first row, or of the whole text if its end is not in it.
fn row_len(text: &[u8]) -> usize {
    CsvRowScanner::default().feed(text).unwrap_or(text.len())
}

fn parse_column(name: String) -> Column {
    let (provider, rest) = match name
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
    {
        Some((provider, rest)) => (Some(provider), rest),
        None => (None, &*name),
    };
    if let Some(detail) = DETAILS.iter().find(|detail| **detail == rest) {
        return Column::Detail(detail);
    }
    match provider {
        Some(provider) => Column::Output {
            provider: provider.to_owned(),
            prompt: rest.to_owned(),
        },
        None => Column::Variable(name),
    }
}

/// Returns true if the file is a table of promptfoo.
pub(super) fn is_table(preview: &FilePreview<'_>) -> bool {
    parse_header(preview).is_some()
}

pub(super) fn open(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let (columns, start) = parse_header(preview)
        .ok_or_else(|| source.unknown_error("it is not a table of promptfoo"))?;
    let walk = RecordWalker::new(RecordLayout::Rows, start as u64);
    Ok(Box::new(PerRecordReader::new(walk, RowParser { columns })))
}

/// The parser of rows.
#[derive(Debug)]
struct RowParser {
    columns: Vec<Column>,
}

/// An output with its details.
#[derive(Default)]
struct Output<'r> {
    provider: &'r str,
    prompt: &'r str,
    cell: &'r str,
    details: Vec<(&'static str, &'r str)>,
}

impl RecordParser for RowParser {
    fn parse_record(
        &self,
        record: &str,
        _: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let cells = parse_cells(record.as_bytes()).ok_or("the row is not a row of CSV")?;
        if cells.len() != self.columns.len() {
            return Err(describe_torn_row(cells.len(), self.columns.len()));
        }
        let mut variables = Map::new();
        let mut outputs: Vec<Output<'_>> = Vec::new();
        for (column, cell) in self.columns.iter().zip(&cells) {
            match column {
                Column::Variable(name) => {
                    variables.insert(name.clone(), cell.as_str().into());
                }
                Column::Output { provider, prompt } => outputs.push(Output {
                    provider,
                    prompt,
                    cell,
                    details: Vec::new(),
                }),
                Column::Detail(name) => {
                    if let Some(output) = outputs.last_mut() {
                        output.details.push((name, cell));
                    }
                }
            }
        }
        for output in outputs {
            push_output(&output, &variables, out);
        }
        Ok(())
    }
}

fn push_output(output: &Output<'_>, variables: &Map<String, Value>, out: &mut TranscriptSink) {
    let mut built = TranscriptBuilder::new("promptfoo", None);
    let mut prompt = output.prompt.to_owned();
    for (name, value) in variables {
        let value = value.as_str().unwrap_or_default();
        for written in [format!("{{{{{name}}}}}"), format!("{{{{ {name} }}}}")] {
            prompt = prompt.replace(&written, value);
        }
    }
    built.push_text(MessageRole::User, &prompt);
    let detail = |name: &str| {
        let mut details = output.details.iter();
        let (_, value) = details.find(|(own, value)| *own == name && !value.is_empty())?;
        Some(*value)
    };
    let (mark, text) = split_mark(output.cell);
    let status = mark.or_else(|| {
        let status = detail("Status")?;
        let mark = format!("[{}]", status.to_ascii_uppercase());
        MARKS
            .iter()
            .find(|(own, _)| *own == mark)
            .map(|(own, passed)| (*own, *passed))
    });
    let (score, text) = split_score(text);
    let (text, reason) = split_reason(text);
    let score = score.or_else(|| detail("Score")?.parse().ok());
    let reason = detail("Grader Reason").map(str::to_owned).or(reason);
    let failed = status.is_some_and(|(mark, _)| mark == "[ERROR]");
    if failed {
        built.meta.set("error", text.trim());
    } else {
        built.push(MessageRole::Assistant, vec![text_part(text.trim())]);
    }
    if status.is_some() || score.is_some() {
        let reason = reason.map(std::convert::Into::into);
        let is_on_scale = |score: &f64| (0.0..=1.0).contains(score);
        let verdict = verdict_of("promptfoo", "overall", None, reason);
        built.push_verdict(SourceVerdict {
            passed: status.and_then(|(_, passed)| passed),
            // A score on another scale is only in `value`.
            score: score.filter(|score| is_on_scale(score) && !failed),
            value: score
                .filter(|score| score.is_finite() && !is_on_scale(score))
                .and_then(|score| RawJson::from_serializable(&score).ok()),
            error: failed.then(|| text.trim().to_owned()),
            ..verdict
        });
    }
    built.meta.set("provider", output.provider);
    built.meta.set("vars", Value::Object(variables.clone()));
    if let Some(comment) = detail("Comment") {
        built.meta.set("comment", comment);
    }
    built.finish(out);
}

/// Splits the mark from an output.
fn split_mark(cell: &str) -> (Option<(&'static str, Option<bool>)>, &str) {
    for (mark, passed) in MARKS {
        if let Some(rest) = cell.strip_prefix(mark) {
            return (Some((mark, passed)), rest.trim_start());
        }
    }
    (None, cell)
}

/// Splits the score from the text after a mark: `(0.50)` or `(0.50, name: 1.00)`, before an empty line.
fn split_score(text: &str) -> (Option<f64>, &str) {
    let inner = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let Some((score, rest)) = inner else {
        return (None, text);
    };
    let score = score.split(',').next().unwrap_or_default();
    match score.trim().parse() {
        // Without the empty line, the brackets are part of the output.
        Ok(score) if rest.is_empty() || rest.starts_with(['\n', '\r']) => (Some(score), rest),
        _ => (None, text),
    }
}

/// Splits the reason of the grading from the end of an output.
fn split_reason(text: &str) -> (&str, Option<String>) {
    for word in ["\nPass Reason: ", "\nFail Reason: "] {
        if let Some((text, reason)) = text.rsplit_once(word) {
            return (text, Some(reason.trim().to_owned()));
        }
    }
    (text, None)
}
