//! Tables as Markdown: a row a line, the header's row underlined.
//!
//! Cells are written as blocks first. Once the table ends it is known whether it holds data; one that only lays out the
//! page (a table within, a single column, cells as long as an article) stays as its blocks are.

use std::ops::Range;

use super::layout::Writer;

/// A cell of data is no longer than this, in bytes, unless the table has headers.
const MAX_CELL: usize = 2000;

/// A table of more is read cell by cell.
const MAX_CELLS: usize = 50_000;

/// Columns kept apart; further cells share the last one's.
const MAX_COLUMNS: usize = 64;

/// An open table.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Where its text begins.
    from: usize,
    cells: Vec<Cell>,
    /// Rows so far.
    rows: usize,
    /// Whether a cell is open.
    in_cell: bool,
    in_head: bool,
    /// Whether it holds another.
    lays_out: bool,
    /// Lists open around it.
    lists: usize,
}

#[derive(Debug)]
struct Cell {
    row: usize,
    at: Range<usize>,
    heads: bool,
    columns: usize,
    rows: usize,
}

impl Writer {
    pub(super) fn start_table(&mut self) {
        self.end_block();
        if let Some(outer) = self.tables.last_mut() {
            outer.lays_out = true;
        }
        self.block(if self.tables.is_empty() { 2 } else { 1 });
        self.tables.push(Table {
            from: self.out.len(),
            lists: self.lists.len(),
            ..Table::default()
        });
    }

    /// `thead` begins or ends.
    pub(super) fn head(&mut self, begins: bool) {
        self.end_cell();
        if let Some(table) = self.tables.last_mut() {
            table.in_head = begins;
        }
    }

    pub(super) fn row(&mut self) {
        self.end_cell();
        self.block(1);
        if let Some(table) = self.tables.last_mut() {
            table.rows += 1;
        }
    }

    pub(super) fn cell(&mut self, heads: bool, columns: usize, rows: usize) {
        self.end_cell();
        self.block(1);
        let from = self.out.len();
        if let Some(table) = self.tables.last_mut() {
            table.in_cell = true;
            if table.cells.len() == MAX_CELLS {
                table.lays_out = true;
                return;
            }
            table.cells.push(Cell {
                row: table.rows,
                at: from..from,
                heads: heads || table.in_head,
                columns: columns.clamp(1, MAX_COLUMNS),
                rows: rows.clamp(1, 1000),
            });
        }
    }

    pub(super) fn end_cell(&mut self) {
        if self.tables.last().is_some_and(|table| table.in_cell) {
            self.end_block();
            self.block(1);
            let end = self.out.len();
            if let Some(table) = self.tables.last_mut() {
                table.in_cell = false;
                if let Some(cell) = table.cells.last_mut() {
                    cell.at.end = end;
                }
            }
        }
    }

    pub(super) fn end_table(&mut self) {
        self.end_cell();
        self.end_block();
        if let Some(table) = self.tables.pop() {
            self.lists.truncate(table.lists);
            if table.is_data() {
                self.lay(&table);
            }
            self.block(if self.tables.is_empty() { 2 } else { 1 });
        }
    }

    /// Writes the table again, row by row.
    fn lay(&mut self, table: &Table) {
        let text = self.out.split_off(table.from);
        let first = self.marks.partition_point(|mark| mark.end <= table.from);
        let mut page = Page {
            marks: self.marks.split_off(first),
            text,
            from: table.from,
        };
        // Rows that cells of earlier rows still reach into, by column.
        let mut reach = [0_usize; MAX_COLUMNS];
        let mut at = table.from;
        for (n, row) in table.cells.chunk_by(|a, b| a.row == b.row).enumerate() {
            if self.out.len() > self.max {
                return;
            }
            // What stands between the rows: a caption, say.
            self.beside(&mut page, at..row[0].at.start, n == 0);
            self.newline(n == 0);
            self.out.push('|');
            let mut column = 0;
            for cell in row {
                column = self.reached(&mut reach, column);
                self.out.push(' ');
                let before = self.out.len();
                page.copy(cell.at.clone(), &mut self.out, &mut self.marks, true);
                self.out
                    .push_str(if self.out.len() > before { " |" } else { "|" });
                for more in 0..cell.columns {
                    if column < MAX_COLUMNS {
                        reach[column] = cell.rows - 1;
                        column += 1;
                        if more > 0 {
                            self.out.push_str(" |");
                        }
                    }
                }
                at = cell.at.end;
            }
            self.reached(&mut reach, column);
            if n == 0 && row.iter().all(|cell| cell.heads) {
                let columns: usize = row.iter().map(|cell| cell.columns).sum();
                self.newline(false);
                self.out.push('|');
                self.out
                    .push_str(&" --- |".repeat(columns.min(MAX_COLUMNS)));
            }
        }
        self.beside(&mut page, at..usize::MAX, false);
    }

    /// Empty cells where one of an earlier row reaches down.
    fn reached(&mut self, reach: &mut [usize; MAX_COLUMNS], mut column: usize) -> usize {
        while let Some(rows @ 1..) = reach.get_mut(column) {
            *rows -= 1;
            self.out.push_str(" |");
            column += 1;
        }
        column
    }

    fn beside(&mut self, page: &mut Page, at: Range<usize>, first: bool) {
        if page.slice(&at).trim().is_empty() {
            return;
        }
        self.newline(first);
        page.copy(at, &mut self.out, &mut self.marks, false);
        if first {
            self.out.push('\n');
        }
    }

    fn newline(&mut self, first: bool) {
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

impl Table {
    fn is_data(&self) -> bool {
        let heads = self.cells.iter().any(|cell| cell.heads);
        let several = self.cells.windows(2).any(|two| two[0].row == two[1].row);
        let short = |cell: &Cell| cell.at.len() <= MAX_CELL;
        !self.lays_out && several && (heads || self.cells.iter().all(short))
    }
}

/// The text of a table as it was written first.
struct Page {
    text: String,
    /// Where it stood.
    from: usize,
    marks: Vec<Range<usize>>,
}

impl Page {
    fn slice(&self, at: &Range<usize>) -> &str {
        let end = at.end.saturating_sub(self.from).min(self.text.len());
        let start = at.start.saturating_sub(self.from).min(end);
        &self.text[start..end]
    }

    /// Copies a part in one line, and the marks in it.
    fn copy(
        &mut self,
        at: Range<usize>,
        out: &mut String,
        marks: &mut Vec<Range<usize>>,
        in_cell: bool,
    ) {
        let (from, begin) = (self.from, out.len());
        let end = at.end.min(from + self.text.len());
        let mut here = at.start;
        let gone = self.marks.partition_point(|mark| mark.end <= here);
        self.marks.drain(..gone);
        let mut seen = 0;
        while here < end {
            let mark = self.marks.get(seen).filter(|mark| mark.start < end);
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
