//! CSV tables with `,`, `;`, `|` or tabs between the cells.
//!
//! Responsible for the header and the rows. The first line contains the column names. Quotes, line breaks inside them,
//! a byte order mark, CRLF and Excel's `sep=;` line are supported. Does not interpret columns: that is the task of a
//! field mapping.

use std::ops::Range;

use csv::{ByteRecord, ReaderBuilder};
use indexmap::IndexSet;

use super::super::text_encoding::TextEncoding;
use crate::model::pluralize;
use crate::transcript::TranscriptError;
use crate::transcript::detect::FilePreview;
use crate::transcript::reader::TranscriptReader;
use crate::transcript::source::{BLOCK_SIZE, SourceFile};

/// The delimiters with their names. If two occur equally often, the first one counts.
const DELIMITERS: [(u8, &str); 4] = [(b',', ","), (b';', ";"), (b'\t', "tab"), (b'|', "|")];
/// The number of rows that decide whether a text is a table.
const MAX_TABLE_CHECK_ROWS: usize = 8;

/// Returns the error for a table without a field mapping.
pub(super) fn refuse_unmapped(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let columns = CsvLayout::detect(preview.bytes, true).map(|layout| layout.columns);
    let names: Vec<String> = columns.unwrap_or_default();
    // A table may have hundreds of columns; six of them identify it in a message.
    let shown_names: Vec<String> = names
        .iter()
        .take(6)
        .map(|name| format!("{name:?}"))
        .collect();
    let more = if names.len() > shown_names.len() {
        " …"
    } else {
        ""
    };
    Err(source.unmapped_error(format!(
        "it is a table with the columns {}{more}, and no `map` defines their meaning",
        shown_names.join(", ")
    )))
}

/// Returns the reason why a row is not read: it has another number of cells than the table has columns.
pub(super) fn describe_torn_row(cells: usize, columns: usize) -> String {
    format!(
        "the row has {}, the table {}",
        pluralize(cells, "cell"),
        pluralize(columns, "column")
    )
}

/// Returns the cells of a row with commas; `None` if it is not UTF-8 text or has no cell.
pub(super) fn parse_cells(row: &[u8]) -> Option<Vec<String>> {
    let mut rows = CsvRows::from_bytes(row, b',');
    let (_, cells) = rows.next_row()?;
    let to_text = |cell| std::str::from_utf8(cell).ok().map(str::to_owned);
    cells.iter().map(to_text).collect()
}

/// Returns true if a text looks like a table. The line after the header has as many cells, at least two, and so do most
/// of the following lines.
pub(super) fn is_table(head: &[u8]) -> bool {
    // JSON also has lines with the same number of commas.
    if head.trim_ascii_start().starts_with(b"{") || head.trim_ascii_start().starts_with(b"[") {
        return false;
    }
    let Ok(layout) = CsvLayout::detect(head, true) else {
        return false;
    };
    let columns = layout.columns.len();
    let mut rows = CsvRows::from_bytes(&head[layout.rows_start..], layout.delimiter);
    let mut cell_counts = Vec::new();
    while cell_counts.len() <= MAX_TABLE_CHECK_ROWS
        && let Some((_, row)) = rows.next_row()
    {
        cell_counts.push(row.len());
    }
    // The last row of the preview may be incomplete.
    if cell_counts.len() > 1 {
        cell_counts.pop();
    }
    // Free text may contain unquoted commas, so a majority of rows is enough.
    let matching_rows = cell_counts
        .iter()
        .filter(|cells| **cells == columns)
        .count();
    columns >= 2 && cell_counts.first() == Some(&columns) && matching_rows * 2 > cell_counts.len()
}

/// The layout of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::transcript) struct CsvLayout {
    /// The character between cells.
    pub(in crate::transcript) delimiter: u8,
    /// The column names.
    pub(in crate::transcript) columns: Vec<String>,
    /// The offset of the first row after the header.
    pub(in crate::transcript) rows_start: usize,
    /// The encoding of the cells.
    pub(in crate::transcript) encoding: TextEncoding,
}

impl CsvLayout {
    /// Detects the layout from the beginning of a file. `is_complete` is true if `head` is the complete file, or enough
    /// of it. The error is a sentence fragment.
    pub(in crate::transcript) fn detect(head: &[u8], is_complete: bool) -> Result<Self, String> {
        Self::detect_encoded(head, is_complete, TextEncoding::default())
    }

    /// Detects the layout of a table in an encoding, as [`Self::detect`] does.
    pub(in crate::transcript) fn detect_encoded(
        head: &[u8],
        is_complete: bool,
        encoding: TextEncoding,
    ) -> Result<Self, String> {
        let mut start = if head.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        };
        let mut stated = None;
        // Excel reads this line as an instruction, so it isn't a row.
        if let [b's', b'e', b'p', b'=', sign, rest @ ..] = &head[start..]
            && let [b'\n', ..] | [b'\r', b'\n', ..] = rest
        {
            stated = Some(*sign);
            start += 5 + if rest[0] == b'\r' { 2 } else { 1 };
        }
        // The `csv` crate skips empty lines, so the header may follow some.
        while matches!(head.get(start), Some(b'\r' | b'\n')) {
            start += 1;
        }
        let rest = &head[start..];
        let most_frequent = DELIMITERS
            .iter()
            .rev()
            // `max_by_key` returns the last maximum, so the reversal makes the first delimiter win.
            .max_by_key(|(sign, _)| count_outside_quotes(rest, *sign));
        // A stated delimiter is certain. A header with one column has no delimiter, so a comma applies.
        let delimiter = stated
            .or(most_frequent.map(|(sign, _)| *sign))
            .unwrap_or(b',');
        // The header may contain line breaks in quotes, so a search for the first line break is not enough.
        let end = match CsvQuoteState::scan_rows(rest, delimiter, true) {
            CsvScanResult { end: Some(end), .. } => end,
            CsvScanResult {
                in_quotes: true, ..
            } => {
                return Err("a quote in its first line is never closed".to_owned());
            }
            // A file that ends without a line end has only a header.
            _ if is_complete => rest.len(),
            _ => return Err(format!("its first line is longer than {BLOCK_SIZE} bytes")),
        };
        let mut rows = CsvRows::from_bytes(&rest[..end], delimiter);
        let Some((_, row)) = rows.next_row() else {
            return Err("it has no line with column names".to_owned());
        };
        let mut names: IndexSet<String> = IndexSet::with_capacity(row.len());
        for (at, cell) in row.iter().enumerate() {
            let name = encoding
                .decode(cell)
                .map_err(|why| format!("the line with its column names is {why}"))?;
            let name = name.trim();
            let name = if name.is_empty() {
                // pandas writes an empty name for the index column.
                format!("column_{}", at + 1)
            } else {
                name.to_owned()
            };
            // Expressions address columns by name, so a name must be unique.
            if let (at, false) = names.insert_full(name) {
                return Err(format!("its column {:?} occurs twice", names[at]));
            }
        }
        Ok(Self {
            delimiter,
            columns: names.into_iter().collect(),
            rows_start: start + end,
            encoding,
        })
    }

    /// Returns the name of the delimiter.
    pub(in crate::transcript) fn delimiter_name(&self) -> &'static str {
        let known = DELIMITERS.iter().find(|(sign, _)| *sign == self.delimiter);
        known.map_or("another sign", |(_, word)| word)
    }
}

/// Returns the number of unquoted occurrences of `sign` in the first line.
fn count_outside_quotes(text: &[u8], sign: u8) -> usize {
    let (mut quoted, mut count) = (false, 0);
    for byte in text {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            byte if *byte == sign && !quoted => count += 1,
            _ => {}
        }
    }
    count
}

/// The quote state of a scan for row ends, with the same rules as the `csv` crate.
pub(super) enum CsvQuoteState {
    /// At the beginning of a cell. A quote opens the cell.
    Begin,
    /// In an unquoted cell.
    Plain,
    /// In a quoted cell.
    Quoted,
    /// After a quote that closes the cell, unless another quote follows.
    Closed,
}

/// The result of a scan for row ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvScanResult {
    /// The offset after the last complete row, or after the first one if the caller asked for that.
    pub(super) end: Option<usize>,
    /// True if a quote is open at the end.
    pub(super) in_quotes: bool,
}

impl CsvQuoteState {
    /// Scans for the end of the first row if `first` is true, else of the last complete row.
    pub(super) fn scan_rows(bytes: &[u8], delimiter: u8, first: bool) -> CsvScanResult {
        let mut state = Self::Begin;
        let mut end = None;
        for (offset, byte) in bytes.iter().enumerate() {
            state = match (state, *byte) {
                // The order matters: in a quoted cell, line ends and delimiters are content.
                (Self::Quoted, b'"') => Self::Closed,
                (Self::Quoted, _) | (Self::Begin | Self::Closed, b'"') => Self::Quoted,
                (_, b'\n' | b'\r') => {
                    end = Some(offset + 1);
                    if first {
                        return CsvScanResult {
                            end,
                            in_quotes: false,
                        };
                    }
                    Self::Begin
                }
                (_, byte) if byte == delimiter => Self::Begin,
                _ => Self::Plain,
            };
        }
        CsvScanResult {
            end,
            in_quotes: matches!(state, Self::Quoted),
        }
    }
}

/// The rows of complete lines with their byte ranges.
pub(super) struct CsvRows<'b> {
    bytes: &'b [u8],
    reader: csv::Reader<&'b [u8]>,
    row: ByteRecord,
}

impl<'b> CsvRows<'b> {
    pub(super) fn from_bytes(bytes: &'b [u8], delimiter: u8) -> Self {
        let reader = ReaderBuilder::new()
            .has_headers(false)
            // The caller reports rows with another number of cells by their location.
            .flexible(true)
            .delimiter(delimiter)
            // The reader allocates its buffer for every block and every single row.
            .buffer_capacity(bytes.len().clamp(1, 64 * 1024))
            .from_reader(bytes);
        Self {
            bytes,
            reader,
            row: ByteRecord::new(),
        }
    }

    /// Returns the next row with its range in the bytes.
    pub(super) fn next_row(&mut self) -> Option<(Range<usize>, &ByteRecord)> {
        // Reads from memory can't fail, and the reader is flexible about the number of cells.
        let found = self.reader.read_byte_record(&mut self.row).unwrap_or(false);
        let to_usize = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let start = self.row.position().map_or(0, |at| to_usize(at.byte()));
        let end = to_usize(self.reader.position().byte());
        // The position includes line ends, which do not belong to the row.
        let line = &self.bytes[start..end];
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let leading_line_ends = line.iter().take_while(|byte| is_end(byte)).count();
        let trailing_line_ends = line[leading_line_ends..]
            .iter()
            .rev()
            .take_while(|byte| is_end(byte))
            .count();
        found.then_some((
            start + leading_line_ends..end - trailing_line_ends,
            &self.row,
        ))
    }
}

/// Returns the first complete rows that have a cell for every column.
pub(in crate::transcript) fn first_rows(
    head: &[u8],
    layout: &CsvLayout,
    limit: usize,
) -> Vec<Vec<String>> {
    let mut rows = CsvRows::from_bytes(&head[layout.rows_start..], layout.delimiter);
    let mut complete_rows = Vec::new();
    while complete_rows.len() < limit
        && let Some((_, row)) = rows.next_row()
    {
        // A torn or broken row would assign cells to the wrong columns.
        if row.len() == layout.columns.len() {
            let text = |cell| match layout.encoding.decode(cell) {
                Ok(text) => text.into_owned(),
                Err(_) => String::from_utf8_lossy(cell).into_owned(),
            };
            complete_rows.push(row.iter().map(text).collect());
        }
    }
    complete_rows
}

#[cfg(test)]
mod tests;
