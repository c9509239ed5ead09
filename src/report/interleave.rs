//! Interleaves the output of judges that work at the same time.
//!
//! One cell is live: its lines appear at once. The lines of other cells are buffered. Responsible for headings,
//! indents and the order of blocks. Does not read a clock: it uses the times of events only, so a replay prints what
//! the run printed. The buffer is bounded by the number of running judges and by [`MAX_FINISHED_WAITING`].

use std::collections::HashSet;
use std::io::{self, Write};

use indexmap::IndexMap;

use super::TextStyle;
use super::workflow_log::WorkflowLogWriter;
use super::wrap::wrap_line;
use crate::model::{CellIx, Millis, make_visible};

/// The time without output after which the live cell gives way to another cell.
const MAX_SILENCE: Millis = Millis(2000);
/// The largest number of finished cells whose lines wait in the buffer.
const MAX_FINISHED_WAITING: usize = 8;
/// The indent of the lines of a block, in columns: a mark and a space precede the text.
const INDENT: usize = 4;

/// Orders the lines of several cells into blocks.
pub(super) struct Interleaver<W> {
    out: WorkflowLogWriter<W>,
    style: TextStyle,
    now: Millis,
    /// The time of the live cell's last output.
    last_output: Millis,
    live_cell: Option<CellIx>,
    /// The cell with the newest heading.
    last_heading: Option<CellIx>,
    /// The cells that already have a heading; a later one says `(goes on)`.
    with_heading: HashSet<CellIx>,
    waiting: IndexMap<CellIx, BufferedCell>,
}

#[derive(Default)]
struct BufferedCell {
    name: String,
    lines: Vec<String>,
    done: bool,
}

impl<W: Write> Interleaver<W> {
    pub(super) fn new(out: W, style: TextStyle) -> Self {
        Self {
            out: WorkflowLogWriter::new(out, style.is_workflow_log),
            style,
            now: Millis(0),
            last_output: Millis(0),
            live_cell: None,
            last_heading: None,
            with_heading: HashSet::new(),
            waiting: IndexMap::new(),
        }
    }

    /// Sets the time of the lines that follow.
    pub(super) fn set_time(&mut self, now: Millis) {
        self.now = now;
    }

    /// Writes or buffers a line of a cell.
    pub(super) fn write_cell_line(
        &mut self,
        cell: CellIx,
        name: &str,
        mark: &str,
        text: &str,
    ) -> io::Result<()> {
        let line = self.format_line(mark, text);
        self.write_or_buffer(cell, name, Some(line))
    }

    /// Begins a cell; its heading shows this.
    pub(super) fn open_cell(&mut self, cell: CellIx, name: &str) -> io::Result<()> {
        self.write_or_buffer(cell, name, None)
    }

    /// Ends a cell: no more lines follow.
    pub(super) fn close_cell(&mut self, cell: CellIx) -> io::Result<()> {
        if self.live_cell == Some(cell) {
            self.live_cell = None;
            // The cell prints nothing more, so its heading need not be remembered.
            self.with_heading.remove(&cell);
            // First the cells that finished meanwhile, then the oldest cell that still waits.
            self.write_finished()?;
            if let Some(next) = self.waiting.keys().next().copied() {
                self.make_live(next)?;
            }
            return Ok(());
        }
        if let Some(waiting) = self.waiting.get_mut(&cell) {
            waiting.done = true;
        }
        let done = self.waiting.values().filter(|w| w.done).count();
        // Finished cells must neither fill the buffer nor wait for a silent cell.
        if done >= MAX_FINISHED_WAITING || self.is_silent() {
            self.write_finished()?;
        }
        Ok(())
    }

    /// Writes a line about the whole run.
    pub(super) fn write_run_line(&mut self, text: &str) -> io::Result<()> {
        self.interrupt_block();
        let text = make_visible(text, false);
        writeln!(self.out, "{}", wrap_line(&text, 0, 0, self.style.width))
    }

    /// Ends the block of the live cell, so the next line of that cell gets its heading again.
    pub(super) fn interrupt_block(&mut self) {
        self.last_heading = None;
    }

    /// Writes all buffered lines.
    pub(super) fn write_buffered(&mut self) -> io::Result<()> {
        for (cell, waiting) in std::mem::take(&mut self.waiting) {
            self.write_block(cell, &waiting)?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn is_silent(&self) -> bool {
        self.now.since(self.last_output) >= MAX_SILENCE
    }

    fn write_or_buffer(
        &mut self,
        cell: CellIx,
        name: &str,
        line: Option<String>,
    ) -> io::Result<()> {
        // Without a live cell, this cell becomes live.
        if *self.live_cell.get_or_insert(cell) == cell {
            self.last_output = self.now;
            self.write_heading(cell, name)?;
            if let Some(line) = line {
                writeln!(self.out, "{line}")?;
            }
            return Ok(());
        }
        let waiting = self.waiting.entry(cell).or_default();
        name.clone_into(&mut waiting.name);
        waiting.lines.extend(line);
        // The live cell was silent for too long, so this cell replaces it.
        if self.is_silent() {
            self.make_live(cell)?;
        }
        Ok(())
    }

    /// Makes a waiting cell the live cell.
    fn make_live(&mut self, cell: CellIx) -> io::Result<()> {
        self.live_cell = Some(cell);
        self.last_output = self.now;
        match self.waiting.shift_remove(&cell) {
            Some(waiting) => self.write_block(cell, &waiting),
            None => Ok(()),
        }
    }

    fn write_finished(&mut self) -> io::Result<()> {
        // `partition` keeps the order in which the cells began to wait.
        let (done, waiting): (IndexMap<_, _>, IndexMap<_, _>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(_, waiting): &(_, BufferedCell)| waiting.done);
        self.waiting = waiting;
        for (cell, waiting) in done {
            self.write_block(cell, &waiting)?;
            self.with_heading.remove(&cell);
        }
        Ok(())
    }

    fn write_block(&mut self, cell: CellIx, waiting: &BufferedCell) -> io::Result<()> {
        self.write_heading(cell, &waiting.name)?;
        for line in &waiting.lines {
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }

    fn write_heading(&mut self, cell: CellIx, name: &str) -> io::Result<()> {
        if self.last_heading == Some(cell) {
            return Ok(());
        }
        self.last_heading = Some(cell);
        let again = if self.with_heading.insert(cell) {
            ""
        } else {
            " (goes on)"
        };
        let (on, off) = self.style.paint("1");
        let name = make_visible(name, false);
        writeln!(self.out, "{on}▸ {name}{off}{again}")
    }

    fn format_line(&self, mark: &str, text: &str) -> String {
        // SGR codes: 32 is green, 31 red, 33 yellow, 2 dim.
        let (on, off) = self.style.paint(match mark {
            "✓" => "32",
            "✗" => "31",
            "!" => "33",
            "┊" | "·" | "–" => "2",
            _ => "",
        });
        let text = make_visible(text, false);
        let text = wrap_line(&text, INDENT, INDENT, self.style.width);
        format!("{on}  {mark} {text}{off}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: CellIx = CellIx(0);
    const B: CellIx = CellIx(1);

    fn written(script: impl FnOnce(&mut Interleaver<&mut Vec<u8>>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        script(&mut Interleaver::new(&mut out, TextStyle::default()))
            .expect("a Vec takes everything");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn concurrent_judges_print_separate_blocks() {
        let text = written(|interleaver| {
            interleaver.open_cell(A, "a")?;
            interleaver.open_cell(B, "b")?;
            interleaver.write_cell_line(A, "a", "│", "one")?;
            interleaver.write_cell_line(B, "b", "│", "uno")?;
            interleaver.write_cell_line(A, "a", "│", "two")?;
            interleaver.write_cell_line(B, "b", "✓", "pass")?;
            interleaver.close_cell(B)?;
            interleaver.write_cell_line(A, "a", "✗", "fail")?;
            interleaver.close_cell(A)
        });
        assert_eq!(
            text,
            "▸ a\n  │ one\n  │ two\n  ✗ fail\n▸ b\n  │ uno\n  ✓ pass\n"
        );
    }

    #[test]
    fn silent_cell_gives_way_and_continues_later() {
        let text = written(|interleaver| {
            interleaver.open_cell(A, "a")?;
            interleaver.write_cell_line(B, "b", "│", "uno")?;
            interleaver.set_time(Millis(2500));
            interleaver.write_cell_line(B, "b", "│", "due")?;
            interleaver.write_cell_line(A, "a", "│", "one")?;
            interleaver.write_buffered()
        });
        assert_eq!(text, "▸ a\n▸ b\n  │ uno\n  │ due\n▸ a (goes on)\n  │ one\n");
    }

    #[test]
    fn block_of_another_writer_is_followed_by_a_heading() {
        let text = written(|interleaver| {
            interleaver.open_cell(A, "a")?;
            interleaver.write_cell_line(A, "a", "│", "one")?;
            interleaver.interrupt_block();
            interleaver.write_cell_line(A, "a", "│", "two")
        });
        assert_eq!(text, "▸ a\n  │ one\n▸ a (goes on)\n  │ two\n");
    }

    #[test]
    fn finished_cells_are_written_when_the_buffer_is_full() {
        let text = written(|interleaver| {
            interleaver.open_cell(A, "a")?;
            for number in 1..=8 {
                interleaver.write_cell_line(CellIx(number), &format!("c{number}"), "✓", "pass")?;
                interleaver.close_cell(CellIx(number))?;
            }
            interleaver.write_cell_line(A, "a", "│", "one")
        });
        assert!(text.starts_with("▸ a\n▸ c1\n  ✓ pass\n"), "{text}");
        assert!(
            text.ends_with("▸ c8\n  ✓ pass\n▸ a (goes on)\n  │ one\n"),
            "{text}"
        );
    }
}
