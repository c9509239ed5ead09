//! The rows of evalbench's tables, by column name.
//!
//! Responsible for cells and their values. Does not know the meaning of columns.

use serde_json::Value;

use crate::transcript::formats::csv::{describe_torn_row, parse_cells};
use crate::transcript::scan::CsvRowScanner;
use crate::transcript::walk::RecordLayout;

/// The columns of a table, from its first row.
#[derive(Debug, Default, Clone)]
pub(super) struct EvalbenchColumns(Vec<String>);

impl EvalbenchColumns {
    /// Parses the header row at the beginning of `head`. Returns the columns and the length of the row in bytes.
    pub(super) fn parse_header(head: &[u8]) -> Option<(Self, usize)> {
        // The header may have line breaks in quoted cells, so the CSV scanner finds its end.
        let len = CsvRowScanner::default().feed(head).unwrap_or(head.len());
        let cells = parse_cells(&head[..len])?;
        Some((Self(cells), len))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|column| column == name)
    }

    /// Parses a row. The error is a sentence fragment.
    pub(super) fn parse_row(&self, record: &[u8]) -> Result<EvalbenchRow<'_>, String> {
        let cells = parse_cells(record).ok_or("the row is not UTF-8 text")?;
        // A torn row would assign cells to the wrong columns.
        if cells.len() != self.0.len() {
            return Err(describe_torn_row(cells.len(), self.0.len()));
        }
        Ok(EvalbenchRow {
            columns: &self.0,
            cells,
        })
    }
}

/// The record layout of evalbench's tables.
pub(super) const TABLE_LAYOUT: RecordLayout = RecordLayout::Rows;

/// A row with the names of its columns.
#[derive(Debug)]
pub(super) struct EvalbenchRow<'c> {
    columns: &'c [String],
    cells: Vec<String>,
}

impl EvalbenchRow<'_> {
    /// Returns a cell with a value. For a missing value, pandas writes nothing; older versions write `None` and `nan`.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        // A linear search is enough: the tables have few columns.
        let at = self.columns.iter().position(|column| column == name)?;
        present_cell(&self.cells[at])
    }

    /// Returns every cell with a value, except the named columns.
    pub(super) fn iter_except<'r>(
        &'r self,
        except: &'r [&str],
    ) -> impl Iterator<Item = (&'r str, &'r str)> + 'r {
        let named = self.columns.iter().zip(&self.cells);
        named
            .filter(|(column, _)| !column.is_empty() && !except.contains(&column.as_str()))
            .filter_map(|(column, cell)| Some((column.as_str(), present_cell(cell)?)))
    }
}

fn present_cell(cell: &str) -> Option<&str> {
    (!matches!(cell, "" | "None" | "nan" | "NaN")).then_some(cell)
}

/// Returns a cell as a value: a Python literal or JSON for a list or an object, else its text.
pub(super) fn parse_cell(cell: &str) -> Value {
    // Other cells stay text: `1.0` may be a version, and `True` may be an answer.
    if cell.starts_with(['{', '[', '(']) {
        let json = serde_json::from_str(cell).ok();
        if let Some(value) = json.or_else(|| super::python_literal::parse_literal(cell)) {
            return value;
        }
    }
    cell.into()
}
