//! The rows of a table of labels: CSV, or with tabs or semicolons between its cells.
//!
//! Responsible for the delimiter and for the place of each row. Does not know the columns.

use super::label_file::LabelFileReader;
use crate::diag::SourceSpan;
use crate::model::{has_formula_marks, pluralize, unmark_formula};

/// A row with its place.
pub(super) struct LabelTableRow {
    pub(super) cells: Vec<String>,
    pub(super) span: SourceSpan,
}

/// Reads all rows that are not empty. Reports a text that is not a table.
pub(super) fn read_rows(reader: &mut LabelFileReader<'_>) -> Vec<LabelTableRow> {
    let full_text = reader.text.clone();
    let skip = full_text.len() - full_text.trim_start_matches('\u{feff}').len();
    let text = &full_text[skip..];
    let first = text.lines().next().unwrap_or_default();
    let count = |delimiter: u8| first.bytes().filter(|byte| *byte == delimiter).count();
    let delimiter = [b',', b'\t', b';']
        .into_iter()
        // `max_by_key` takes the last of several maxima, so reversed order prefers the comma.
        .rev()
        .max_by_key(|d| count(*d));
    let mut csv_reader = csv::ReaderBuilder::new()
        .has_headers(false)
        // A row of the wrong length is reported at its own line by `check_row_length`.
        .flexible(true)
        .delimiter(delimiter.unwrap_or(b','))
        .from_reader(text.as_bytes());
    let mut rows: Vec<LabelTableRow> = Vec::new();
    let mut has_marks = false;
    let mut record = csv::StringRecord::new();
    // The lines are counted here, because the reader's positions are before the empty lines that it skips.
    let (mut counted, mut line) = (0, 1);
    loop {
        match csv_reader.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => return rows,
            Err(error) => {
                let span = reader.line_span(line, skip + counted);
                reader.error(span, format!("no table: {error}"));
                return rows;
            }
        }
        let at = record.position().map_or(0, csv::Position::byte);
        let mut at = usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
        let empty = |c: char| matches!(c, '\r' | '\n');
        at += text[at..].len() - text[at..].trim_start_matches(empty).len();
        line += text
            .get(counted..at)
            .unwrap_or_default()
            .matches('\n')
            .count() as u64;
        counted = at;
        if record.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        if rows.is_empty() {
            has_marks = has_formula_marks(&record.iter().map(str::trim));
        }
        let unmark = |cell| {
            if has_marks {
                unmark_formula(cell)
            } else {
                cell
            }
        };
        rows.push(LabelTableRow {
            cells: record.iter().map(unmark).map(str::to_owned).collect(),
            span: reader.line_span(line, skip + at),
        });
    }
}

/// Returns true if a row is as long as the header; reports it otherwise.
pub(super) fn check_row_length(
    reader: &mut LabelFileReader<'_>,
    row: &LabelTableRow,
    columns: usize,
) -> bool {
    let n = row.cells.len();
    if n == columns {
        return true;
    }
    let message = format!(
        "this row has {}, and the header names {columns}",
        pluralize(n, "cell")
    );
    reader.error(row.span.clone(), message);
    false
}
