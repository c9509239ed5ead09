//! Recorded events as text: human, jsonl, junit, markdown.
//!
//! Owns the result lines of design.md 4 and the exit code over decisions. Eats events with counters; never folds a whole
//! run, so that its memory does not grow with deterministic results. Untrusted text is shown on a terminal with visible
//! marks, and stands byte for byte in a pipe.
//!
//! [`Rows`] turns events into rows in plan order; a [`Format`] writes rows. [`Narrator`] tells live turns as text.

mod flags;
mod floor;
mod human;
mod jsonl;
mod junit;
mod labelled;
mod markdown;
mod narrate;
mod reasoning;
mod rows;
#[cfg(test)]
mod rows_tests;
mod ruling;
mod score;
mod stats;
mod trace;
mod wrap;

use std::io;
use std::path::Path;

pub use human::{Human, words};
pub use jsonl::Jsonl;
pub use junit::Junit;
pub use labelled::EvalVerdicts;
pub use markdown::Markdown;
pub use narrate::{Narrator, size};
pub use reasoning::reasoning_in;
pub use rows::{DecisionRow, ResultRow, Row, Rows, RubricRow, Summary};
pub use ruling::{ruled, undecided, unsure};
pub use stats::{stat_lines, tokens};
pub use trace::{piece_text, rope_text, trace};
pub use wrap::wrap;

/// Writes rows in one format.
pub trait Format {
    /// Writes a row.
    fn row(&mut self, row: &Row<'_>) -> io::Result<()>;
    /// Writes what only the end can tell, and flushes.
    fn finish(&mut self) -> io::Result<()>;
    /// Flushes what is buffered.
    fn flush(&mut self) -> io::Result<()>;
}

/// The formats by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatName {
    /// For people.
    Human,
    /// One JSON object a line; design.md 4.
    Jsonl,
    /// `JUnit` XML, for CI servers.
    Junit,
    /// A summary and the failures, for pull requests.
    Markdown,
}

impl FormatName {
    /// The format a file's ending asks for.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "xml" => Some(Self::Junit),
            "md" | "markdown" => Some(Self::Markdown),
            "txt" => Some(Self::Human),
            _ => None,
        }
    }

    /// A writer of this format. `terminal`: `out` is one.
    pub fn writer<'w>(self, out: Box<dyn io::Write + 'w>, style: Style) -> Box<dyn Format + 'w> {
        match self {
            Self::Human => Box::new(Human::new(out, style)),
            Self::Jsonl => Box::new(Jsonl::new(out, style.terminal)),
            Self::Junit => Box::new(Junit::new(out, style.terminal)),
            Self::Markdown => Box::new(Markdown::new(out)),
        }
    }
}

/// How text may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// A terminal reads it: hostile characters are escaped.
    pub terminal: bool,
    /// ANSI colours may be used.
    pub color: bool,
    /// Columns to break lines at; 0: lines are not broken.
    pub width: usize,
    /// A [`Narrator`] tells the reasons of judged cells on the same screen.
    pub told: bool,
}

impl Style {
    /// What begins and ends text of a colour (parameters of SGR, ECMA-48 8.3.117); nothing without colours.
    fn paint(self, code: &str) -> (String, &'static str) {
        if self.color && !code.is_empty() {
            (format!("\u{1b}[{code}m"), "\u{1b}[0m")
        } else {
            (String::new(), "")
        }
    }
}
