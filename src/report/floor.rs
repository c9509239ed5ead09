//! Who is heard. Several judges speak at once; one has the floor and is told live, what others say waits.
//!
//! Owns headings, indents and the order of blocks. Goes by the times of events alone, so that a replay reads as the run
//! did. What waits is bounded by the judges at work, and by [`MANY`] of those that are done.

use std::collections::HashSet;
use std::io::{self, Write};

use indexmap::IndexMap;

use super::Style;
use super::wrap::wrap;
use crate::model::{CellIx, Millis, make_visible};

/// So long a speaker may be silent before another gets the floor.
const PATIENCE: Millis = Millis(2000);
/// So many cells that are done wait at most.
const MANY: usize = 8;
/// Lines of a block stand so far in, behind a mark and a space.
const INDENT: usize = 4;

/// The floor.
pub(super) struct Floor<W> {
    out: W,
    style: Style,
    now: Millis,
    /// When the speaker was last heard.
    last: Millis,
    speaker: Option<CellIx>,
    /// Whose heading is the newest.
    heard: Option<CellIx>,
    /// Who has a heading already.
    begun: HashSet<CellIx>,
    waiting: IndexMap<CellIx, Waiting>,
}

#[derive(Default)]
struct Waiting {
    name: String,
    lines: Vec<String>,
    done: bool,
}

impl<W: Write> Floor<W> {
    pub(super) fn new(out: W, style: Style) -> Self {
        Self {
            out,
            style,
            now: Millis(0),
            last: Millis(0),
            speaker: None,
            heard: None,
            begun: HashSet::new(),
            waiting: IndexMap::new(),
        }
    }

    /// What follows happened then.
    pub(super) fn at(&mut self, now: Millis) {
        self.now = now;
    }

    /// A cell says a line.
    pub(super) fn say(
        &mut self,
        cell: CellIx,
        name: &str,
        mark: &str,
        text: &str,
    ) -> io::Result<()> {
        let line = self.line_of(mark, text);
        self.hear(cell, name, Some(line))
    }

    /// A cell has begun; its heading says so.
    pub(super) fn open(&mut self, cell: CellIx, name: &str) -> io::Result<()> {
        self.hear(cell, name, None)
    }

    /// A cell has nothing more to say.
    pub(super) fn close(&mut self, cell: CellIx) -> io::Result<()> {
        if self.speaker == Some(cell) {
            self.speaker = None;
            self.begun.remove(&cell);
            self.tell_done()?;
            if let Some(next) = self.waiting.keys().next().copied() {
                self.give(next)?;
            }
            return Ok(());
        }
        if let Some(waiting) = self.waiting.get_mut(&cell) {
            waiting.done = true;
        }
        let done = self.waiting.values().filter(|w| w.done).count();
        if done >= MANY || self.silent() {
            self.tell_done()?;
        }
        Ok(())
    }

    /// A line of the run as a whole.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        self.heard = None;
        let text = make_visible(text, false);
        writeln!(self.out, "{}", wrap(&text, 0, 0, self.style.width))
    }

    /// Tells all that waits.
    pub(super) fn rest(&mut self) -> io::Result<()> {
        for (cell, waiting) in std::mem::take(&mut self.waiting) {
            self.block(cell, &waiting)?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn silent(&self) -> bool {
        self.now.since(self.last) >= PATIENCE
    }

    fn hear(&mut self, cell: CellIx, name: &str, line: Option<String>) -> io::Result<()> {
        if *self.speaker.get_or_insert(cell) == cell {
            self.last = self.now;
            self.heading(cell, name)?;
            if let Some(line) = line {
                writeln!(self.out, "{line}")?;
            }
            return Ok(());
        }
        let waiting = self.waiting.entry(cell).or_default();
        name.clone_into(&mut waiting.name);
        waiting.lines.extend(line);
        if self.silent() {
            self.give(cell)?;
        }
        Ok(())
    }

    /// Gives a waiting cell the floor.
    fn give(&mut self, cell: CellIx) -> io::Result<()> {
        self.speaker = Some(cell);
        self.last = self.now;
        match self.waiting.shift_remove(&cell) {
            Some(waiting) => self.block(cell, &waiting),
            None => Ok(()),
        }
    }

    fn tell_done(&mut self) -> io::Result<()> {
        let (done, waiting): (IndexMap<_, _>, IndexMap<_, _>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(_, waiting): &(_, Waiting)| waiting.done);
        self.waiting = waiting;
        for (cell, waiting) in done {
            self.block(cell, &waiting)?;
            self.begun.remove(&cell);
        }
        Ok(())
    }

    fn block(&mut self, cell: CellIx, waiting: &Waiting) -> io::Result<()> {
        self.heading(cell, &waiting.name)?;
        for line in &waiting.lines {
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }

    fn heading(&mut self, cell: CellIx, name: &str) -> io::Result<()> {
        if self.heard == Some(cell) {
            return Ok(());
        }
        self.heard = Some(cell);
        let again = if self.begun.insert(cell) {
            ""
        } else {
            " (goes on)"
        };
        let (on, off) = self.style.paint("1");
        let name = make_visible(name, false);
        writeln!(self.out, "{on}▸ {name}{off}{again}")
    }

    fn line_of(&self, mark: &str, text: &str) -> String {
        let (on, off) = self.style.paint(match mark {
            "✓" => "32",
            "✗" => "31",
            "!" => "33",
            "┊" | "·" | "–" => "2",
            _ => "",
        });
        let text = make_visible(text, false);
        let text = wrap(&text, INDENT, INDENT, self.style.width);
        format!("{on}  {mark} {text}{off}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: CellIx = CellIx(0);
    const B: CellIx = CellIx(1);

    fn told(script: impl FnOnce(&mut Floor<&mut Vec<u8>>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        script(&mut Floor::new(&mut out, Style::default())).expect("a Vec takes everything");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn two_judges_at_once_are_two_blocks() {
        let text = told(|floor| {
            floor.open(A, "a")?;
            floor.open(B, "b")?;
            floor.say(A, "a", "│", "one")?;
            floor.say(B, "b", "│", "uno")?;
            floor.say(A, "a", "│", "two")?;
            floor.say(B, "b", "✓", "pass")?;
            floor.close(B)?;
            floor.say(A, "a", "✗", "fail")?;
            floor.close(A)
        });
        assert_eq!(
            text,
            "▸ a\n  │ one\n  │ two\n  ✗ fail\n▸ b\n  │ uno\n  ✓ pass\n"
        );
    }

    #[test]
    fn a_silent_speaker_loses_the_floor_and_goes_on_later() {
        let text = told(|floor| {
            floor.open(A, "a")?;
            floor.say(B, "b", "│", "uno")?;
            floor.at(Millis(2500));
            floor.say(B, "b", "│", "due")?;
            floor.say(A, "a", "│", "one")?;
            floor.rest()
        });
        assert_eq!(text, "▸ a\n▸ b\n  │ uno\n  │ due\n▸ a (goes on)\n  │ one\n");
    }

    #[test]
    fn those_who_are_done_do_not_wait_for_ever() {
        let text = told(|floor| {
            floor.open(A, "a")?;
            for number in 1..=8 {
                floor.say(CellIx(number), &format!("c{number}"), "✓", "pass")?;
                floor.close(CellIx(number))?;
            }
            floor.say(A, "a", "│", "one")
        });
        assert!(text.starts_with("▸ a\n▸ c1\n  ✓ pass\n"), "{text}");
        assert!(
            text.ends_with("▸ c8\n  ✓ pass\n▸ a (goes on)\n  │ one\n"),
            "{text}"
        );
    }
}
