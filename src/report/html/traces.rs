//! A judge trace as folded sections: prompt, calls, responses, verdict.
//!
//! Responsible for the folding. The sections are those of `dicta show STATE CELL`.

use std::io;

use super::changes::write_cut;
use super::writer::HtmlWriter;
use crate::model::{SUBMIT_VERDICT, pluralize};
use crate::report::cell_source::{CellSource, JudgedTrace};
use crate::report::judge_trace::{PROMPT_HEADING, VERDICT_HEADING, list_trace_sections};

/// The class of folds that stay closed on paper.
const UNPRINTED: &str = "unprinted";

/// The largest number of characters of one section.
const MAX_SECTION_CHARS: usize = 200_000;

/// Writes a folded judge trace. `is_printed` unfolds it on paper.
pub(super) fn write_trace(
    html: &mut HtmlWriter<'_>,
    title: &str,
    is_printed: bool,
    trace: &JudgedTrace,
    source: &dyn CellSource,
) -> io::Result<()> {
    let (blobs, places) = (trace.run.blobs(), source.find_quotes(trace));
    let class: &[(&'static str, &str)] = if is_printed {
        &[]
    } else {
        &[("class", UNPRINTED)]
    };
    html.open("details", class)?;
    let turns = trace.cell.judge_trace.iter();
    let turns = pluralize(turns.filter(|turn| !turn.unsent).count(), "turn");
    html.element("summary", &[], &format!("{title} ({turns})"))?;
    for section in list_trace_sections(&trace.cell, &*blobs, &places) {
        let text = section.text.trim_end_matches('\n');
        if section.heading.is_empty() {
            html.element("p", &[("class", "dim")], text)?;
            continue;
        }
        // A prompt is long and mostly known, so it is folded. The verdict is what a reader wants.
        let is_open = section.heading == VERDICT_HEADING;
        // Printed pages leave prompts folded, because each trace repeats most of them, and the call with the verdict,
        // which the verdict repeats.
        let is_repeated =
            section.heading.starts_with(PROMPT_HEADING) || text.starts_with(SUBMIT_VERDICT);
        let attributes: &[(&'static str, &str)] = match (is_open, is_repeated) {
            (true, _) => &[("open", "")],
            (false, true) => &[("class", UNPRINTED)],
            (false, false) => &[],
        };
        html.open("details", attributes)?;
        html.element("summary", &[("class", "key")], &section.heading)?;
        write_cut(html, text, MAX_SECTION_CHARS)?;
        html.close()?;
    }
    html.close()
}
