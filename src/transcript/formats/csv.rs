//! Tables of text: CSV, with `,` `;` `|` or tabs between the cells. What the columns mean, a map says.
//!
//! The first line names the columns. A row's cells are texts; quotes, line breaks within them, a byte order mark, CRLF and
//! Excel's `sep=;` line are understood. A row with more or fewer cells than there are columns is a fault, and so is a
//! quote that is never closed: what it swallowed is no row. Rows of nothing but empty cells are passed over and counted.

use std::ops::Range;

use csv::{ByteRecord, ReaderBuilder};

use crate::transcript::TranscriptError;
use crate::transcript::detect::FilePreview;
use crate::transcript::reader::TranscriptReader;
use crate::transcript::source::SourceFile;
use crate::transcript::walk::BLOCK_SIZE;

/// What may stand between cells; of equally many the first.
const DELIMITERS: [(u8, &str); 4] = [(b',', ","), (b';', ";"), (b'\t', "tab"), (b'|', "|")];
/// So many rows decide whether text is a table.
const MAX_TABLE_CHECK_ROWS: usize = 8;

/// Refuses a table that no map is given for.
pub(super) fn refuse_unmapped(
    source: &SourceFile,
    look: &FilePreview<'_>,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let columns = CsvLayout::detect(look.bytes, true).map(|layout| layout.columns);
    let names: Vec<String> = columns.unwrap_or_default();
    let shown: Vec<String> = names
        .iter()
        .take(6)
        .map(|name| format!("{name:?}"))
        .collect();
    let more = if names.len() > shown.len() {
        " …"
    } else {
        ""
    };
    Err(source.unmapped_error(format!(
        "it is a table with the columns {}{more}, and nothing says what they mean",
        shown.join(", ")
    )))
}

/// Whether text looks like a table: below its first line another one with as many cells, two or more, and most of the
/// further ones likewise.
pub(super) fn is_table(head: &[u8]) -> bool {
    if head.trim_ascii_start().starts_with(b"{") || head.trim_ascii_start().starts_with(b"[") {
        return false;
    }
    let Ok(layout) = CsvLayout::detect(head, true) else {
        return false;
    };
    let columns = layout.columns.len();
    let mut rows = CsvRows::from_bytes(&head[layout.rows_start..], layout.delimiter);
    let mut seen = Vec::new();
    while seen.len() <= MAX_TABLE_CHECK_ROWS
        && let Some((_, row)) = rows.next_row()
    {
        seen.push(row.len());
    }
    // The last one may be torn.
    if seen.len() > 1 {
        seen.pop();
    }
    let like = seen.iter().filter(|cells| **cells == columns).count();
    columns >= 2 && seen.first() == Some(&columns) && like * 2 > seen.len()
}

/// How a table stands in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::transcript) struct CsvLayout {
    /// Between cells.
    pub(in crate::transcript) delimiter: u8,
    /// The columns.
    pub(in crate::transcript) columns: Vec<String>,
    /// Where the rows begin.
    pub(in crate::transcript) rows_start: usize,
}

impl CsvLayout {
    /// From the beginning of a file; `whole`: what is there is all, or enough of it. The error is a sentence.
    pub(in crate::transcript) fn detect(head: &[u8], whole: bool) -> Result<Self, String> {
        let mut start = if head.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        };
        let mut said = None;
        if let [b's', b'e', b'p', b'=', sign, rest @ ..] = &head[start..]
            && let [b'\n', ..] | [b'\r', b'\n', ..] = rest
        {
            said = Some(*sign);
            start += 5 + if rest[0] == b'\r' { 2 } else { 1 };
        }
        while matches!(head.get(start), Some(b'\r' | b'\n')) {
            start += 1;
        }
        let rest = &head[start..];
        let most = DELIMITERS
            .iter()
            .rev()
            .max_by_key(|(sign, _)| count_outside_quotes(rest, *sign));
        let delimiter = said.or(most.map(|(sign, _)| *sign)).unwrap_or(b',');
        let end = match CsvQuoteState::scan_rows(rest, delimiter, true) {
            CsvScanResult { end: Some(end), .. } => end,
            CsvScanResult {
                in_quotes: true, ..
            } => {
                return Err("a quote in its first line is never closed".to_owned());
            }
            _ if whole => rest.len(),
            _ => return Err(format!("its first line is longer than {BLOCK_SIZE} bytes")),
        };
        let mut rows = CsvRows::from_bytes(&rest[..end], delimiter);
        let Some((_, row)) = rows.next_row() else {
            return Err("it holds no line that names columns".to_owned());
        };
        let mut names: Vec<String> = Vec::with_capacity(row.len());
        for (at, cell) in row.iter().enumerate() {
            let name = std::str::from_utf8(cell)
                .map_err(|_| "the line that names its columns is not UTF-8".to_owned())?
                .trim();
            let name = if name.is_empty() {
                format!("column_{}", at + 1)
            } else {
                name.to_owned()
            };
            if names.contains(&name) {
                return Err(format!("its column {name:?} stands there twice"));
            }
            names.push(name);
        }
        Ok(Self {
            delimiter,
            columns: names,
            rows_start: start + end,
        })
    }

    /// What stands between cells, in a word.
    pub(in crate::transcript) fn delimiter_name(&self) -> &'static str {
        let known = DELIMITERS.iter().find(|(sign, _)| *sign == self.delimiter);
        known.map_or("another sign", |(_, word)| word)
    }
}

/// How often a sign stands outside quotes in the first line.
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

/// Where rows end, by the same rules as the crate that reads them.
pub(super) enum CsvQuoteState {
    /// At the beginning of a cell: a quote opens it.
    Begin,
    /// In a cell without quotes.
    Plain,
    /// Between quotes.
    Quoted,
    /// After a quote that closes, unless another one follows.
    Closed,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvScanResult {
    /// Behind the last row that ends (or the first one, where that was asked for).
    pub(super) end: Option<usize>,
    /// A quote is open at the end.
    pub(super) in_quotes: bool,
}

impl CsvQuoteState {
    pub(super) fn scan_rows(bytes: &[u8], delimiter: u8, first: bool) -> CsvScanResult {
        let mut at = Self::Begin;
        let mut end = None;
        for (place, byte) in bytes.iter().enumerate() {
            at = match (at, *byte) {
                (Self::Quoted, b'"') => Self::Closed,
                (Self::Quoted, _) | (Self::Begin | Self::Closed, b'"') => Self::Quoted,
                (_, b'\n' | b'\r') => {
                    end = Some(place + 1);
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
            in_quotes: matches!(at, Self::Quoted),
        }
    }
}

/// The rows of whole lines, each with the place of its first byte.
pub(super) struct CsvRows<'b> {
    bytes: &'b [u8],
    reader: csv::Reader<&'b [u8]>,
    row: ByteRecord,
}

impl<'b> CsvRows<'b> {
    pub(super) fn from_bytes(bytes: &'b [u8], delimiter: u8) -> Self {
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .buffer_capacity(bytes.len().clamp(1, 64 * 1024))
            .from_reader(bytes);
        Self {
            bytes,
            reader,
            row: ByteRecord::new(),
        }
    }

    pub(super) fn next_row(&mut self) -> Option<(Range<usize>, &ByteRecord)> {
        // Bytes in memory cannot fail to be read, and rows of any length are wanted.
        let found = self.reader.read_byte_record(&mut self.row).unwrap_or(false);
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let start = self.row.position().map_or(0, |at| place(at.byte()));
        let end = place(self.reader.position().byte());
        // Line ends belong to no row.
        let line = &self.bytes[start..end];
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let before = line.iter().take_while(|byte| is_end(byte)).count();
        let behind = line[before..]
            .iter()
            .rev()
            .take_while(|byte| is_end(byte))
            .count();
        found.then_some((start + before..end - behind, &self.row))
    }
}

/// The first rows that have a cell for every column, as far as they are whole.
pub(in crate::transcript) fn first_rows(
    head: &[u8],
    layout: &CsvLayout,
    most: usize,
) -> Vec<Vec<String>> {
    let mut rows = CsvRows::from_bytes(&head[layout.rows_start..], layout.delimiter);
    let mut found = Vec::new();
    while found.len() < most
        && let Some((_, row)) = rows.next_row()
    {
        if row.len() == layout.columns.len() {
            let text = |cell| String::from_utf8_lossy(cell).into_owned();
            found.push(row.iter().map(text).collect());
        }
    }
    found
}

#[cfg(test)]
mod tests;
