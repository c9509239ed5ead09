//! The place of the records of a mapped file: lines, elements of a list inside an object, or rows of a table.
//!
//! Responsible for the choice of the place from the file's first bytes and for the walk over the records. Does not
//! evaluate expressions.

use serde_json::{Map, Value};

use super::super::csv::{CsvLayout, CsvRows};
use super::super::record_readers::WalkRecords;
use super::table::{RowWalker, row_cells};
use crate::transcript::MAX_RECORD;
use crate::transcript::detect::{self, DetectError, FilePreview};
use crate::transcript::field_mapping::RecordMapping;
use crate::transcript::json_path::find_array_offset;
use crate::transcript::scan::JsonValueScanner;
use crate::transcript::source::{BLOCK_SIZE, SourceFile};
use crate::transcript::text_encoding::TextEncoding;
use crate::transcript::walk::{RecordLayout, RecordWalker};

/// The place of the records of a file.
#[derive(Debug, Clone)]
pub(super) enum RecordPlace {
    /// JSON values.
    Json {
        layout: RecordLayout,
        start: u64,
        encoding: TextEncoding,
        /// The keys to the list of records in each value; empty if each value is a record.
        inner: Vec<String>,
    },
    /// Rows of a table.
    Rows(CsvLayout),
}

impl RecordPlace {
    /// Finds the records of a file that begins with `head`.
    pub(super) fn find(
        source: &SourceFile,
        head: &[u8],
        mapping: &RecordMapping,
    ) -> Result<Self, DetectError> {
        if let Some(format) = detect::name_binary_format(head) {
            return Err(DetectError::Unknown(format!(
                "it is {format}, and `map` is for JSON and tables of text"
            )));
        }
        let preview = detect::preview_file(head)?;
        let encoding = mapping.encoding;
        let is_json = matches!(preview.layout, RecordLayout::Values { .. })
            || preview.bytes[preview.start..].starts_with(b"{");
        if !is_json {
            if !mapping.records.is_empty() {
                return Err(DetectError::Unknown(
                    "`records` is a path in JSON, and the file is a table: leave it out of `map`"
                        .to_owned(),
                ));
            }
            // A small file may be a header without a line end.
            let is_complete = source.size() <= BLOCK_SIZE as u64;
            let layout = CsvLayout::detect_encoded(head, is_complete, encoding)
                .map_err(DetectError::Unknown)?;
            return Ok(Self::Rows(layout));
        }
        let whole = |inner: Vec<String>| Self::Json {
            layout: preview.layout,
            start: preview.start as u64,
            encoding,
            inner,
        };
        if mapping.records.is_empty() {
            return Ok(whole(Vec::new()));
        }
        if !is_single_object(source, &preview)? {
            return Ok(whole(mapping.records.clone()));
        }
        let path: Vec<&str> = mapping.records.iter().map(String::as_str).collect();
        match find_array_offset(source, preview.start as u64, &path) {
            Ok(Some(start)) => Ok(Self::Json {
                layout: RecordLayout::Elements,
                start,
                encoding,
                inner: Vec::new(),
            }),
            Ok(None) => Err(DetectError::Unknown(format!(
                "`records` ({}) leads to no list in its object",
                path.join(".")
            ))),
            Err(error) => Err(DetectError::Unknown(error.to_string())),
        }
    }

    /// Returns the offset of the first record.
    pub(super) fn start(&self) -> u64 {
        match self {
            Self::Json { start, .. } => *start,
            Self::Rows(layout) => layout.rows_start as u64,
        }
    }

    /// Returns the walk over the records from an offset.
    pub(super) fn walk_from(&self, offset: u64) -> Box<dyn WalkRecords> {
        match self {
            Self::Json { layout, .. } => Box::new(RecordWalker::from_any_record(*layout, offset)),
            Self::Rows(layout) => Box::new(RowWalker::new(layout.delimiter, offset)),
        }
    }

    /// Returns a record as JSON; a row as an object of texts. The error is a sentence fragment.
    pub(super) fn to_json(&self, record: &[u8]) -> Result<String, String> {
        match self {
            Self::Json { encoding, .. } => {
                if record.len() >= MAX_RECORD {
                    let limit = MAX_RECORD / (1024 * 1024);
                    return Err(format!("the record is {limit} MiB or longer"));
                }
                encoding.decode(record).map(std::borrow::Cow::into_owned)
            }
            Self::Rows(layout) => {
                let mut rows = CsvRows::from_bytes(record, layout.delimiter);
                let (_, row) = rows.next_row().ok_or("the row is empty")?;
                let cells = row_cells(layout, row)?;
                let cells = layout.columns.iter().cloned().zip(cells);
                let object: Map<String, Value> = cells
                    .map(|(name, cell)| (name, Value::String(cell.into_owned())))
                    .collect();
                Ok(Value::Object(object).to_string())
            }
        }
    }
}

/// Returns true if the file contains one object and nothing after it. It reads a large file once to find its end.
fn is_single_object(source: &SourceFile, preview: &FilePreview<'_>) -> Result<bool, DetectError> {
    if preview.records.len() != 1 || preview.layout == (RecordLayout::Values { array: true }) {
        return Ok(false);
    }
    let mut scan = JsonValueScanner::default();
    let mut pos = preview.start as u64;
    let mut has_ended = false;
    let mut block = Vec::new();
    loop {
        block.clear();
        let is_last = source
            .fill_buffer(pos, &mut block, BLOCK_SIZE)
            .map_err(|error| DetectError::Unknown(error.to_string()))?;
        let end = if has_ended {
            Some(0)
        } else {
            scan.feed(&block)
        };
        if let Some(end) = end {
            has_ended = true;
            if !block[end.min(block.len())..].trim_ascii().is_empty() {
                return Ok(false);
            }
        }
        if is_last {
            return Ok(true);
        }
        pos += block.len() as u64;
    }
}
