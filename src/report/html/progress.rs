//! The edits of a workspace: a row for each state, and the agreement over edits as a line.
//!
//! Responsible for this section. Does not compute states.

use std::io;

use super::parts::{format_time, write_headings, write_number};
use super::plots::{AgreementPoint, write_agreement_line};
use super::writer::HtmlWriter;
use crate::compare::{FlipCounts, compare_entry, count_agreement};
use crate::model::{LabelAgreement, Labels};
use crate::record::{History, HistoryEntry};
use crate::report::{describe_entry_edits, format_cost};

/// The largest number of states that a page shows.
const MAX_SHOWN_STATES: usize = 60;
/// The largest number of edits that a row names.
const MAX_NAMED_EDITS: usize = 8;

/// A state in the list.
struct ProgressRow<'h> {
    entry: &'h HistoryEntry,
    agreement: LabelAgreement,
    /// The flips since the state before; `None` for the oldest one.
    flips: Option<FlipCounts>,
    is_baseline: bool,
}

/// Writes the states up to the one with the number `last`, with their agreement.
pub(super) fn write_progress(
    html: &mut HtmlWriter<'_>,
    history: &History,
    last: usize,
    labels: &Labels,
) -> io::Result<()> {
    let entries = &history.entries()[..last.min(history.entries().len())];
    let first = entries.len().saturating_sub(MAX_SHOWN_STATES);
    let baseline = history.baseline().map(|entry| entry.number);
    let rows: Vec<ProgressRow<'_>> = (first..entries.len())
        .map(|at| {
            let entry = &entries[at];
            ProgressRow {
                entry,
                agreement: count_agreement(&entry.state, labels).all,
                flips: compare_entry(entries, at)
                    .map(|found| FlipCounts::count(&found.flips, labels)),
                is_baseline: baseline == Some(entry.number),
            }
        })
        .collect();
    html.open("section", &[])?;
    html.element("h2", &[], "Edits")?;
    let points: Vec<AgreementPoint> = rows
        .iter()
        .map(|row| AgreementPoint {
            state: row.entry.number,
            agreement: row.agreement,
        })
        .collect();
    write_agreement_line(html, &points)?;
    if first > 0 {
        let bound = format!(
            "The page shows the newest {MAX_SHOWN_STATES} of {} states; `dicta history` lists all.",
            entries.len()
        );
        html.element("p", &[("class", "dim")], &bound)?;
    }
    html.open("div", &[("class", "wide")])?;
    html.open("table", &[("class", "history")])?;
    write_headings(
        html,
        &[
            "state",
            "time",
            "edit",
            "judged",
            "cost",
            "agree",
            "false passes",
            "false fails",
            "flips",
            "now agree",
            "no longer agree",
        ],
    )?;
    for row in rows.iter().rev() {
        write_row(html, row)?;
    }
    html.close()?;
    html.close()?;
    html.element(
        "p",
        &[("class", "dim small")],
        "Agreement uses the current labels for all states. A state counts the labels that it has a verdict for, so two rows \
         can count different labels.",
    )?;
    html.close()
}

fn write_row(html: &mut HtmlWriter<'_>, row: &ProgressRow<'_>) -> io::Result<()> {
    let entry = row.entry;
    html.open("tr", &[])?;
    let mark = if row.is_baseline { " (baseline)" } else { "" };
    html.element("td", &[], &format!("{}{mark}", entry.number))?;
    html.element("td", &[], &format_time(&entry.started.0))?;
    html.open("td", &[("class", "name")])?;
    write_edits(html, entry)?;
    html.close()?;
    write_number(html, &entry.judged)?;
    write_number(html, &format_cost(entry.cost))?;
    let counts = row.agreement;
    let agreed = counts.total() - counts.disagreements();
    write_number(html, &format!("{agreed} of {}", counts.total()))?;
    write_number(html, &counts.false_pass)?;
    write_number(html, &counts.false_fail)?;
    match row.flips {
        None => {
            for _ in 0..3 {
                write_number(html, "–")?;
            }
        }
        Some(flips) => {
            write_number(html, &flips.total())?;
            write_number(html, &flips.towards)?;
            write_number(html, &flips.away)?;
        }
    }
    html.close()
}

fn write_edits(html: &mut HtmlWriter<'_>, entry: &HistoryEntry) -> io::Result<()> {
    let edits = describe_entry_edits(entry);
    for (edit, at) in edits.iter().take(MAX_NAMED_EDITS).zip(0..) {
        if at > 0 {
            html.open("br", &[])?;
        }
        html.text(edit)?;
    }
    let more = edits.len().saturating_sub(MAX_NAMED_EDITS);
    if more > 0 {
        html.open("br", &[])?;
        html.text(&format!("and {more} more"))?;
    }
    Ok(())
}
