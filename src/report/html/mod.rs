//! `--format html`: one self-contained page about a state, or about the difference between two states.
//!
//! Responsible for pages that anyone can open without dicta, network or script. All text goes through one writer, which
//! escapes it. The page forbids itself every resource (`Content-Security-Policy`). Its size is bounded, and it states
//! each bound that it reaches. Does not compare or judge.

mod changes;
mod decisions;
mod parts;
mod plots;
mod progress;
mod traces;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::io::{self, Write};

pub use changes::{EvalFigureLines, PageComparison, PageSide};

use changes::{write_answer, write_changes};
use decisions::{ShownDecisions, key_of};
use progress::write_progress;
pub(crate) use writer::HtmlWriter;

use crate::model::{Labels, pluralize};
use crate::record::{History, StateDecision};
use crate::report::CellSource;

/// The style sheet of every page.
const STYLE: &str = include_str!("style.css");
/// The policy of every page: no script, no resource of any origin. Plots are part of the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// A history and the number of the state that the page shows.
#[derive(Clone, Copy)]
pub struct PageHistory<'p> {
    /// The history.
    pub history: &'p History,
    /// The number of the state.
    pub number: usize,
}

/// A page about a state.
pub struct StatePage<'p> {
    /// The name of the workspace.
    pub workspace: &'p str,
    /// The state.
    pub side: PageSide<'p>,
    /// The current labels.
    pub labels: &'p Labels,
    /// The comparisons with the baseline and with the state before, if they exist.
    pub comparisons: Vec<PageComparison<'p>>,
    /// The history; `None` for a run.
    pub history: Option<PageHistory<'p>>,
    /// The recordings of results and judge traces.
    pub source: &'p dyn CellSource,
    /// The pattern of the selected decisions as the user wrote it, and the selection; `None` for all.
    pub selected: Option<PageSelection<'p>>,
}

/// A part of a state's decisions.
pub struct PageSelection<'p> {
    /// The pattern as the user wrote it.
    pub pattern: &'p str,
    /// Returns true for a selected decision.
    pub selects: &'p dyn Fn(&StateDecision) -> bool,
}

/// Writes a page about a state.
pub fn write_state_page(out: &mut dyn Write, page: &StatePage<'_>) -> io::Result<()> {
    let mut buffered = io::BufWriter::with_capacity(64 * 1024, out);
    let mut html = HtmlWriter::new(&mut buffered);
    let title = format!("{}: {}", page.workspace, page.side.name);
    open_page(&mut html, &title)?;
    let header = &page.side.state.header;
    let mut facts = vec![
        pluralize(page.side.state.len(), "decision"),
        format!("revision {}", shorten_digest(&header.revision_digest().0)),
        format!("dicta {}", header.dicta),
    ];
    if header.demo {
        facts.push("the built-in demo: invented agents, labels included".to_owned());
    }
    open_main(&mut html, &title, &facts)?;
    let everything = |_: &StateDecision| true;
    let (selects, is_part): (&dyn Fn(&StateDecision) -> bool, bool) = match &page.selected {
        Some(selection) => (selection.selects, true),
        None => (&everything, false),
    };
    let flipped: HashSet<_> = page
        .comparisons
        .iter()
        .flat_map(|comparison| &comparison.found().flips)
        .map(|flip| key_of(&flip.after))
        .collect();
    let shown = ShownDecisions::rank(page.side.state, page.labels, &flipped, selects);
    if let Some(selection) = &page.selected {
        // Counts and plots of a part would be mistaken for those of the whole state.
        let text = format!(
            "Only the {} that match `{}`.",
            pluralize(shown.len(), "decision"),
            selection.pattern
        );
        html.element("p", &[], &text)?;
    }
    if !is_part {
        if page.comparisons.is_empty() {
            html.open("div", &[("class", "answer")])?;
            let lead = "There is no earlier state and no baseline, so nothing is compared.";
            html.element("p", &[("class", "lead")], lead)?;
            html.close()?;
        }
        for comparison in &page.comparisons {
            write_answer(&mut html, comparison, page.labels)?;
        }
        shown.write_summary(&mut html)?;
        for comparison in &page.comparisons {
            write_changes(&mut html, comparison, page.labels)?;
        }
    }
    shown.write_table(&mut html)?;
    if !is_part {
        shown.write_scores(&mut html)?;
        if let Some(PageHistory { history, number }) = page.history {
            write_progress(&mut html, history, number, page.labels)?;
        }
    }
    shown.write_details(&mut html, page.source)?;
    html.finish()
}

/// Writes a page about the difference between two states.
pub fn write_comparison(
    out: &mut dyn Write,
    title: &str,
    comparison: &PageComparison<'_>,
    labels: &Labels,
) -> io::Result<()> {
    let mut buffered = io::BufWriter::with_capacity(64 * 1024, out);
    let mut html = HtmlWriter::new(&mut buffered);
    open_page(&mut html, title)?;
    open_main(&mut html, title, &[])?;
    write_answer(&mut html, comparison, labels)?;
    write_changes(&mut html, comparison, labels)?;
    html.finish()
}

/// Writes the head of a page: title, policy and style sheet.
pub(crate) fn open_page(html: &mut HtmlWriter<'_>, title: &str) -> io::Result<()> {
    html.write_constant("<!DOCTYPE html>\n")?;
    html.open("html", &[("lang", "en")])?;
    html.open("head", &[])?;
    html.open("meta", &[("charset", "utf-8")])?;
    html.open(
        "meta",
        &[
            ("http-equiv", "Content-Security-Policy"),
            ("content", POLICY),
        ],
    )?;
    html.open(
        "meta",
        &[
            ("name", "viewport"),
            ("content", "width=device-width, initial-scale=1"),
        ],
    )?;
    html.open("meta", &[("name", "referrer"), ("content", "no-referrer")])?;
    html.element("title", &[], title)?;
    html.open("style", &[])?;
    html.write_constant(STYLE)?;
    html.close()?;
    html.close()?;
    html.open("body", &[])
}

/// Writes the heading of the page and opens its content.
pub(crate) fn open_main(
    html: &mut HtmlWriter<'_>,
    title: &str,
    facts: &[String],
) -> io::Result<()> {
    html.open("header", &[])?;
    html.element("h1", &[], title)?;
    if !facts.is_empty() {
        html.element("p", &[("class", "dim small")], &facts.join(" · "))?;
    }
    html.close()?;
    html.open("main", &[])
}

/// Returns the first characters of a digest, which identify it for people.
fn shorten_digest(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
