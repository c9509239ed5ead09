//! A row of one of evalbench's tables by its columns' names.

use serde_json::Value;

use crate::transcript::detect::Form;
use crate::transcript::scan::RowScan;

/// The columns of a table, from its first row.
#[derive(Debug, Default, Clone)]
pub(super) struct Columns(Vec<String>);

impl Columns {
    /// The columns that `head` begins with, and how many bytes their row takes.
    pub(super) fn of(head: &[u8]) -> Option<(Self, usize)> {
        let len = RowScan::default().feed(head).unwrap_or(head.len());
        let cells = cells(&head[..len])?;
        Some((Self(cells), len))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|column| column == name)
    }

    /// A row's cells with their names. The error is a sentence.
    pub(super) fn row(&self, record: &[u8]) -> Result<Row<'_>, String> {
        let cells = cells(record).ok_or("the row is not UTF-8 text")?;
        if cells.len() != self.0.len() {
            return Err(format!(
                "the row has {} cells, the table {} columns",
                cells.len(),
                self.0.len()
            ));
        }
        Ok(Row {
            columns: &self.0,
            cells,
        })
    }
}

/// How rows stand in a table.
pub(super) const ROWS: Form = Form::Rows;

fn cells(row: &[u8]) -> Option<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(row);
    let mut record = csv::StringRecord::new();
    reader.read_record(&mut record).ok()?.then_some(())?;
    Some(record.iter().map(str::to_owned).collect())
}

/// A row.
#[derive(Debug)]
pub(super) struct Row<'c> {
    columns: &'c [String],
    cells: Vec<String>,
}

impl Row<'_> {
    /// A cell that says something: pandas writes nothing, or `None` and `nan` in older versions, for what is missing.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let at = self.columns.iter().position(|column| column == name)?;
        told(&self.cells[at])
    }

    /// Every cell that says something, but those named.
    pub(super) fn others<'r>(
        &'r self,
        but: &'r [&str],
    ) -> impl Iterator<Item = (&'r str, &'r str)> + 'r {
        let named = self.columns.iter().zip(&self.cells);
        named
            .filter(|(column, _)| !column.is_empty() && !but.contains(&column.as_str()))
            .filter_map(|(column, cell)| Some((column.as_str(), told(cell)?)))
    }
}

fn told(cell: &str) -> Option<&str> {
    (!matches!(cell, "" | "None" | "nan" | "NaN")).then_some(cell)
}

/// A cell as a value: Python's literal or JSON where it is a list or an object of one, else its text.
pub(super) fn value(cell: &str) -> Value {
    if cell.starts_with(['{', '[', '(']) {
        let json = serde_json::from_str(cell).ok();
        if let Some(value) = json.or_else(|| super::python::literal(cell)) {
            return value;
        }
    }
    cell.into()
}
