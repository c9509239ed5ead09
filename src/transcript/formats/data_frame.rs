//! Tables that pandas writes (`DataFrame.to_csv`), for formats whose rows are JSON elsewhere.
//!
//! Responsible for the cells: a row becomes an object, which the function of a format reads. pandas writes lists and
//! objects as Python prints them, and an empty cell for an absent value. The column of row numbers has no name and is left
//! out. Does not know any format.

use serde_json::{Map, Value};

use super::super::detect::FilePreview;
use super::super::reader::{
    PerRecordReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use super::super::scan::CsvRowScanner;
use super::super::walk::{RecordLayout, RecordWalker};
use super::csv::{describe_torn_row, parse_cells};
use super::evalbench::python_literal::parse_literal;
use super::record_readers::ParseRecord;

/// The header of a table.
#[derive(Debug)]
pub(super) struct TableHeader {
    /// The names of the columns.
    pub(super) columns: Vec<String>,
    /// The offset of the first row.
    start: usize,
}

/// Returns the header of a table with commas; `None` for another file.
pub(super) fn parse_header(preview: &FilePreview<'_>) -> Option<TableHeader> {
    let head = preview.bytes.get(preview.start..)?;
    if preview.layout != RecordLayout::Lines || head.starts_with(b"{") {
        return None;
    }
    let len = CsvRowScanner::default().feed(head)?;
    let columns = parse_cells(&head[..len])?;
    (columns.len() > 1).then_some(TableHeader {
        columns,
        start: preview.start + len,
    })
}

/// The values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    /// Numbers or Booleans.
    Score,
    /// Texts, which stay as written. An answer may be JSON or look like a list of Python.
    Text,
    /// Texts, or lists of messages.
    TextOrMessages,
    /// Texts, lists or objects.
    Any,
}

/// Returns a reader of the rows. `kind_of` returns the kind of a column from its name.
pub(super) fn open(
    header: TableHeader,
    kind_of: fn(&str) -> ColumnKind,
    parse: ParseRecord,
) -> Box<dyn TranscriptReader> {
    let walk = RecordWalker::new(RecordLayout::Rows, header.start as u64);
    let columns = header.columns;
    Box::new(PerRecordReader::new(
        walk,
        RowParser {
            columns,
            kind_of,
            parse,
        },
    ))
}

/// The parser of rows.
#[derive(Debug)]
struct RowParser {
    columns: Vec<String>,
    kind_of: fn(&str) -> ColumnKind,
    parse: ParseRecord,
}

impl RecordParser for RowParser {
    fn parse_record(
        &self,
        record: &str,
        cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let cells = parse_cells(record.as_bytes()).ok_or("the row is not a row of CSV")?;
        if cells.len() != self.columns.len() {
            return Err(describe_torn_row(cells.len(), self.columns.len()));
        }
        let mut row = Map::new();
        for (column, cell) in self.columns.iter().zip(cells) {
            if column.is_empty() || cell.is_empty() {
                continue;
            }
            let value = match (self.kind_of)(column) {
                ColumnKind::Score => parse_score(&cell),
                ColumnKind::Text => None,
                ColumnKind::TextOrMessages => parse_list(&cell).filter(is_list_of_objects),
                ColumnKind::Any => parse_list(&cell),
            };
            row.insert(column.clone(), value.unwrap_or(Value::String(cell)));
        }
        (self.parse)(&Value::Object(row).to_string(), cx, out)
    }
}

/// Returns the number or the Boolean of a cell.
fn parse_score(cell: &str) -> Option<Value> {
    match cell.trim() {
        "True" => Some(Value::Bool(true)),
        "False" => Some(Value::Bool(false)),
        text => serde_json::from_str(text).ok().filter(Value::is_number),
    }
}

/// Returns the list of texts or objects, or the object, of a cell. Other literals may be the text of a person.
fn parse_list(cell: &str) -> Option<Value> {
    if !cell.starts_with(['[', '{']) {
        return None;
    }
    parse_literal(cell).filter(|value| match value {
        Value::Array(items) => items.iter().all(Value::is_string) || is_list_of_objects(value),
        value => value.is_object(),
    })
}

fn is_list_of_objects(value: &Value) -> bool {
    let items = value.as_array();
    items.is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_object))
}
