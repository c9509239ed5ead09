//! Tables as Markdown: one row per line, with a rule below a header row.
//!
//! The writer first writes cells as blocks. At the end of the table it decides whether the table holds data. A table
//! that only lays out the page stays as blocks. It has an inner table, a single column, or cells as long as an article.

use std::ops::Range;

use super::MarkdownWriter;

/// The length limit of a data cell in bytes, for tables without a header.
const MAX_CELL: usize = 2000;

/// The limit of cells in a data table. A larger table stays as blocks.
const MAX_CELLS: usize = 50_000;

/// The limit of columns. Further cells share the last one.
const MAX_COLUMNS: usize = 64;

/// An open table.
#[derive(Debug, Default)]
pub(in crate::tools::html) struct HtmlTable {
    /// The start of its text in the output.
    text_start: usize,
    cells: Vec<HtmlTableCell>,
    /// The number of rows so far.
    row_count: usize,
    /// True while a cell is open.
    in_cell: bool,
    in_table_head: bool,
    /// True if the table only lays out the page, for example because it contains another table.
    is_layout: bool,
    /// The number of lists that are open around the table.
    outer_list_depth: usize,
}

#[derive(Debug)]
struct HtmlTableCell {
    row: usize,
    text_range: Range<usize>,
    is_header: bool,
    column_span: usize,
    row_span: usize,
}

impl MarkdownWriter {
    pub(in crate::tools::html) fn start_table(&mut self) {
        self.end_block();
        // A table around another table is layout: Markdown cells cannot contain tables.
        if let Some(outer) = self.tables.last_mut() {
            outer.is_layout = true;
        }
        self.request_line_breaks(if self.tables.is_empty() { 2 } else { 1 });
        self.tables.push(HtmlTable {
            text_start: self.out.len(),
            outer_list_depth: self.lists.len(),
            ..HtmlTable::default()
        });
    }

    /// Handles the start and end of `thead`.
    pub(in crate::tools::html) fn set_in_table_head(&mut self, begins: bool) {
        self.end_cell();
        if let Some(table) = self.tables.last_mut() {
            table.in_table_head = begins;
        }
    }

    pub(in crate::tools::html) fn start_row(&mut self) {
        self.end_cell();
        self.request_line_breaks(1);
        if let Some(table) = self.tables.last_mut() {
            table.row_count += 1;
        }
    }

    pub(in crate::tools::html) fn start_cell(&mut self, heads: bool, columns: usize, rows: usize) {
        self.end_cell();
        self.request_line_breaks(1);
        let from = self.out.len();
        if let Some(table) = self.tables.last_mut() {
            table.in_cell = true;
            // Too many cells for a data table; the text stays as paragraphs.
            if table.cells.len() == MAX_CELLS {
                table.is_layout = true;
                return;
            }
            table.cells.push(HtmlTableCell {
                row: table.row_count,
                text_range: from..from,
                is_header: heads || table.in_table_head,
                column_span: columns.clamp(1, MAX_COLUMNS),
                row_span: rows.clamp(1, 1000),
            });
        }
    }

    pub(in crate::tools::html) fn end_cell(&mut self) {
        if self.tables.last().is_some_and(|table| table.in_cell) {
            self.end_block();
            self.request_line_breaks(1);
            let end = self.out.len();
            if let Some(table) = self.tables.last_mut() {
                table.in_cell = false;
                if let Some(cell) = table.cells.last_mut() {
                    cell.text_range.end = end;
                }
            }
        }
    }

    pub(in crate::tools::html) fn end_table(&mut self) {
        self.end_cell();
        self.end_block();
        if let Some(table) = self.tables.pop() {
            // A list that the table's content left open ends with the table.
            self.lists.truncate(table.outer_list_depth);
            if table.is_data_table() {
                self.write_data_table(&table);
            }
            self.request_line_breaks(if self.tables.is_empty() { 2 } else { 1 });
        }
    }

    /// Writes the table again, row by row.
    fn write_data_table(&mut self, table: &HtmlTable) {
        // The table's text was written as paragraphs; it is now replaced by rows.
        let text = self.out.split_off(table.text_start);
        let first = self
            .hidden_ranges
            .partition_point(|mark| mark.end <= table.text_start);
        let mut page = TableSource {
            hidden_ranges: self.hidden_ranges.split_off(first),
            text,
            text_start: table.text_start,
        };
        // For each column, the number of further rows that a cell of an earlier row spans.
        let mut reach = [0_usize; MAX_COLUMNS];
        let mut at = table.text_start;
        for (n, row) in table.cells.chunk_by(|a, b| a.row == b.row).enumerate() {
            if self.out.len() > self.max_bytes {
                return;
            }
            // Text between rows, such as a caption.
            self.write_text_between_cells(&mut page, at..row[0].text_range.start, n == 0);
            self.start_table_line(n == 0);
            self.out.push('|');
            let mut column = 0;
            for cell in row {
                column = self.write_spanned_cells(&mut reach, column);
                self.out.push(' ');
                let before = self.out.len();
                page.copy_as_one_line(
                    cell.text_range.clone(),
                    &mut self.out,
                    &mut self.hidden_ranges,
                    true,
                );
                // An empty cell needs only one space.
                self.out
                    .push_str(if self.out.len() > before { " |" } else { "|" });
                for more in 0..cell.column_span {
                    if column < MAX_COLUMNS {
                        reach[column] = cell.row_span - 1;
                        column += 1;
                        if more > 0 {
                            self.out.push_str(" |");
                        }
                    }
                }
                at = cell.text_range.end;
            }
            self.write_spanned_cells(&mut reach, column);
            // Markdown marks a header row by a line of dashes below it.
            if n == 0 && row.iter().all(|cell| cell.is_header) {
                let columns: usize = row.iter().map(|cell| cell.column_span).sum();
                self.start_table_line(false);
                self.out.push('|');
                self.out
                    .push_str(&" --- |".repeat(columns.min(MAX_COLUMNS)));
            }
        }
        self.write_text_between_cells(&mut page, at..usize::MAX, false);
    }

    /// Writes empty cells for the cells of earlier rows that span this row.
    fn write_spanned_cells(
        &mut self,
        reach: &mut [usize; MAX_COLUMNS],
        mut column: usize,
    ) -> usize {
        while let Some(rows @ 1..) = reach.get_mut(column) {
            *rows -= 1;
            self.out.push_str(" |");
            column += 1;
        }
        column
    }

    fn write_text_between_cells(&mut self, page: &mut TableSource, at: Range<usize>, first: bool) {
        if page.slice(&at).trim().is_empty() {
            return;
        }
        self.start_table_line(first);
        page.copy_as_one_line(at, &mut self.out, &mut self.hidden_ranges, false);
        if first {
            self.out.push('\n');
        }
    }

    fn start_table_line(&mut self, first: bool) {
        let have = self.out.len() - self.out.trim_end_matches('\n').len();
        let due: usize = if self.out.is_empty() {
            0
        } else if first {
            2
        } else {
            1
        };
        self.out.push_str(&"\n".repeat(due.saturating_sub(have)));
    }
}

impl HtmlTable {
    fn is_data_table(&self) -> bool {
        let heads = self.cells.iter().any(|cell| cell.is_header);
        let several = self.cells.windows(2).any(|two| two[0].row == two[1].row);
        let short = |cell: &HtmlTableCell| cell.text_range.len() <= MAX_CELL;
        // Long cells without headers are columns of a page layout.
        !self.is_layout && several && (heads || self.cells.iter().all(short))
    }
}

/// The text of a table before it is written again.
struct TableSource {
    text: String,
    /// The position of the text in the output.
    text_start: usize,
    hidden_ranges: Vec<Range<usize>>,
}

impl TableSource {
    fn slice(&self, at: &Range<usize>) -> &str {
        let end = at.end.saturating_sub(self.text_start).min(self.text.len());
        let start = at.start.saturating_sub(self.text_start).min(end);
        &self.text[start..end]
    }

    /// Copies a range as one line, with its hidden ranges.
    fn copy_as_one_line(
        &mut self,
        at: Range<usize>,
        out: &mut String,
        marks: &mut Vec<Range<usize>>,
        in_cell: bool,
    ) {
        let (from, begin) = (self.text_start, out.len());
        let end = at.end.min(from + self.text.len());
        let mut here = at.start;
        // Calls come in the order of the text, so earlier ranges are never needed again.
        let gone = self.hidden_ranges.partition_point(|mark| mark.end <= here);
        self.hidden_ranges.drain(..gone);
        let mut seen = 0;
        while here < end {
            let mark = self.hidden_ranges.get(seen).filter(|mark| mark.start < end);
            // The piece up to the next border between hidden and visible text.
            let (until, hidden) = match mark {
                Some(mark) if mark.start <= here => (mark.end.min(end), true),
                Some(mark) => (mark.start, false),
                None => (end, false),
            };
            let mut marked: Option<usize> = None;
            for (n, word) in self
                .slice(&(here..until))
                .split(char::is_whitespace)
                .enumerate()
            {
                let blank = n > 0 && out.len() > begin && !out.ends_with(' ');
                if blank {
                    out.push(' ');
                }
                if !word.is_empty() {
                    marked.get_or_insert(out.len());
                    for c in word.chars() {
                        // A vertical bar would end the Markdown cell.
                        if c == '|' && in_cell {
                            out.push('\\');
                        }
                        out.push(c);
                    }
                }
            }
            if let Some(start) = marked.filter(|_| hidden) {
                marks.push(start..out.trim_end_matches(' ').len());
            }
            seen += usize::from(hidden);
            here = until;
        }
        out.truncate(begin + out[begin..].trim_end().len());
    }
}
