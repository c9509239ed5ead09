//! The texts of the panes, computed from the app. Scrolling and drawing use the same text, so they can't disagree.
//!
//! A text is built again for every frame and key from borrowed parts, so this module must not copy or lay out large
//! texts. It does no I/O: missing parts (blobs, highlighting) are collected in [`MissingContent`], and
//! `update/focus.rs` requests them.

mod agreement;
mod argument_diff;
mod changes;
mod eval_definition;
mod eval_summary;
mod examples;
mod findings;
pub(crate) mod hidden_verdict;
mod hops;
mod judge_output;
mod prompt;
mod response_layout;
pub(crate) mod review;
pub(crate) mod review_counts;
mod step_details;
pub(crate) mod step_line;
mod tool_call;
pub(crate) mod tool_response;
pub(crate) mod trace_pair;
pub(crate) mod trace_steps;
mod transcript;
pub(crate) mod verdict;
mod visible_pieces;
mod votes;

pub(crate) use agreement::agreement_blocks;
pub(crate) use changes::state_diff_blocks;

use std::borrow::Cow;
use std::sync::Arc;

use super::state::cells::LabelValue;
use super::state::filled_panes::{ShownKind, shown_kind};
use super::state::pane::{Pane, PaneArea};
use super::state::shown_cell::{ShownCell, TraceAvailability, hides_verdict};
use super::state::text_cache::{BlobState, MAX_HIGHLIGHT_BYTES, TextIdentity, highlight_key};
use super::state::{App, OpenedItem};
use super::widget::flow::{ScrollState, TextBlock, TextSource};
use crate::event::{JudgeSpec, StoredText};
use crate::model::{Blob, Outcome, ProviderKind, make_visible};
use crate::report::describe_outcome;
use crate::theme::{CodeLanguage, Glyphs, Role, StyledSpan};

/// Returns the text of a pane. Cheap, because it runs for every frame and key.
pub(crate) fn pane_source(app: &App, pane: Pane) -> Box<dyn TextSource + '_> {
    build_pane(pane, &mut ContentCx::new(app))
}

/// Returns the text of a pane for the clipboard: columns become sections below each other.
pub(crate) fn pane_source_for_copy(app: &App, pane: Pane) -> Box<dyn TextSource + '_> {
    let mut cx = ContentCx::new(app);
    // In the clipboard, each row of columns would mix both texts.
    cx.columns = false;
    build_pane(pane, &mut cx)
}

/// Returns the parts that the visible panes lack.
pub(crate) fn find_missing(app: &App) -> MissingContent {
    let mut cx = ContentCx::new(app);
    for PaneArea { pane, area } in &app.layout().panes {
        if *pane == Pane::Transcript || is_judged_text(app, *pane) {
            // A transcript can be very long, so only its visible calls are highlighted.
            transcript::find_missing_highlights(&mut cx, usize::from(area.height));
        } else {
            // Building a pane records its missing parts in `cx`. The text itself is not needed.
            let _text = build_pane(*pane, &mut cx);
        }
    }
    cx.missing
}

/// Returns true if the pane shows the text that a check judged.
fn is_judged_text(app: &App, pane: Pane) -> bool {
    pane == Pane::Prompt && shown_kind(app) == ShownKind::Check
}

fn build_pane<'a>(pane: Pane, cx: &mut ContentCx<'a>) -> Box<dyn TextSource + 'a> {
    match pane {
        // Blind labelling comes first, because each of these panes could reveal the verdict.
        Pane::Prompt
        | Pane::FunctionCall
        | Pane::FetchedContent
        | Pane::Verdict
        | Pane::Steps
        | Pane::Details
            if hides_verdict(cx.app) =>
        {
            Box::new(hidden_verdict::build_source(cx, pane))
        }
        // The cells pane draws a list instead of a text.
        Pane::Cells => Box::new(Vec::new()),
        Pane::Prompt if is_judged_text(cx.app, pane) => transcript::build_judged_text(cx),
        Pane::Prompt => prompt::build_source(cx),
        Pane::FunctionCall => tool_call::build_source(cx),
        Pane::FetchedContent => tool_response::build_source(cx),
        Pane::Verdict => verdict::build_source(cx),
        Pane::Transcript => transcript::build_source(cx),
        Pane::Changes => changes::build_source(cx.app),
        Pane::Steps => trace_steps::build_source(cx),
        Pane::Details => step_details::build_source(cx),
    }
}

/// Blobs and highlighting that the panes need but the app does not have yet.
#[derive(Debug, Default)]
pub(crate) struct MissingContent {
    pub(crate) blobs: Vec<Blob>,
    pub(crate) highlights: Vec<HighlightRequest>,
    pub(crate) hidden_text: Vec<HiddenTextRequest>,
}

/// A request for the syntax highlighting of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HighlightRequest {
    /// The key of the result in the app's cache of highlights.
    pub(crate) key: u64,
    pub(crate) lang: CodeLanguage,
    pub(crate) text: Arc<str>,
}

/// A request for the parts of a page that a browser would not show.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HiddenTextRequest {
    /// The key of the result in the app's cache of highlights.
    pub(crate) key: u64,
    /// The body of the page.
    pub(crate) raw: Blob,
    /// The URL of the page, the base of its relative links.
    pub(crate) url: Option<String>,
    pub(crate) content_type: Option<String>,
    /// The text as the model got it.
    pub(crate) text: Arc<str>,
}

/// The context for building texts: the app, and the list of missing parts.
struct ContentCx<'a> {
    app: &'a App,
    missing: MissingContent,
    /// True if related texts may be in columns, false for the clipboard.
    columns: bool,
}

/// A text that may have to be loaded first.
enum LoadedText<'a> {
    Loaded {
        text: &'a str,
        identity: TextIdentity<'a>,
    },
    Reading(u64),
    Failed(&'a str),
}

impl<'a> ContentCx<'a> {
    fn new(app: &'a App) -> Self {
        Self {
            app,
            missing: MissingContent::default(),
            columns: true,
        }
    }

    fn glyphs(&self) -> &'a Glyphs {
        self.app.ui.theme.glyphs()
    }

    fn outcome_mark(&self, outcome: Outcome) -> (&'a str, Role) {
        outcome_mark(outcome, self.glyphs())
    }

    /// Returns a stored text, or requests it.
    fn load_text(&mut self, piece: &'a StoredText) -> LoadedText<'a> {
        match piece {
            StoredText::Text(text) => LoadedText::Loaded {
                text,
                identity: TextIdentity::Text(text),
            },
            StoredText::Blob(blob) => self.load_blob(blob),
        }
    }

    /// Returns the text of a blob, or requests it.
    fn load_blob(&mut self, blob: &'a Blob) -> LoadedText<'a> {
        match self.app.texts.blobs.get(&blob.hash.0) {
            Some(BlobState::Loaded(text)) => LoadedText::Loaded {
                text,
                identity: TextIdentity::Blob(&blob.hash.0),
            },
            Some(BlobState::Failed(why)) => LoadedText::Failed(why),
            Some(BlobState::Loading) => LoadedText::Reading(blob.bytes),
            None => {
                // `update/focus.rs` starts the read. Until then, the pane shows the size.
                self.missing.blobs.push(blob.clone());
                LoadedText::Reading(blob.bytes)
            }
        }
    }

    /// Returns a text with syntax highlighting, or without until the highlighting is ready.
    fn highlight_code(
        &mut self,
        text: impl Into<Cow<'a, str>>,
        lang: CodeLanguage,
        name: Option<TextIdentity<'_>>,
    ) -> TextBlock<'a> {
        let mut block = TextBlock::new(text, Role::Text);
        // A larger text would take too long to copy and to highlight.
        if block.text.is_empty() || block.text.len() > MAX_HIGHLIGHT_BYTES {
            return block;
        }
        let key = highlight_key(lang, name.unwrap_or(TextIdentity::Text(&block.text)));
        match self.app.texts.highlights.get(&key) {
            Some(Some(looks)) => block.spans = Cow::Borrowed(looks),
            // The highlighting was requested and is not ready yet.
            Some(None) => {}
            None => {
                // Another thread highlights the text, so it needs a copy.
                let text = Arc::from(&*block.text);
                self.missing
                    .highlights
                    .push(HighlightRequest { key, lang, text });
            }
        }
        block
    }

    /// Returns JSON laid out for reading, or the text unchanged if it is not JSON or too large to lay out for every
    /// frame.
    fn format_json(&mut self, text: &'a str) -> TextBlock<'a> {
        // The layout is computed for every frame, so it must stay cheap.
        const LAID_OUT: usize = 16 << 10;
        match (text.len() <= LAID_OUT).then(|| crate::tools::pretty_print_json(text, LAID_OUT)) {
            Some(Some(pretty)) => self.highlight_code(pretty, CodeLanguage::Json, None),
            _ => TextBlock::new(text, Role::Text),
        }
    }

    /// Returns the text for a pane of the judge trace that is empty, or None if it has content. `fills`
    /// describes the pane's future content; it is empty for evals without a judge.
    fn explain_empty_trace(
        &self,
        shown: &ShownCell<'a>,
        fills: &'static str,
    ) -> Option<Vec<TextBlock<'a>>> {
        Some(match shown.availability {
            TraceAvailability::Available => return None,
            TraceAvailability::Loading => {
                vec![TextBlock::new("reading the recording …", Role::Muted)]
            }
            TraceAvailability::Failed(why) => vec![
                TextBlock::new("dicta can't read the recording", Role::Error),
                TextBlock::new(why, Role::Text),
            ],
            // In a replay, the cell may start later.
            TraceAvailability::NeverRun if self.app.replay.is_some() => {
                vec![TextBlock::new(
                    "not reached yet in this recording",
                    Role::Muted,
                )]
            }
            TraceAvailability::NeverRun
                if matches!(self.app.opened, OpenedItem::TranscriptFile(_)) =>
            {
                vec![styled_line([
                    ("no rubric for this file yet: ", Role::Muted),
                    ("W", Role::Key),
                    (" creates a workspace around it", Role::Muted),
                ])]
            }
            TraceAvailability::NeverRun if self.app.reads_past_verdicts() => {
                vec![TextBlock::new("reading earlier verdicts …", Role::Muted)]
            }
            TraceAvailability::NeverRun => {
                let mut out = self.explain_missing_key(shown.row.eval).unwrap_or_else(|| {
                    vec![styled_line([
                        ("not run yet: ", Role::Muted),
                        ("r", Role::Key),
                        (" runs this cell, ", Role::Muted),
                        ("R", Role::Key),
                        (" runs everything", Role::Muted),
                    ])]
                });
                if !fills.is_empty() {
                    out.push(empty_row());
                    out.push(TextBlock::new(fills, Role::Muted));
                }
                out
            }
        })
    }
}

impl ContentCx<'_> {
    /// Returns the sentences about a key that the judges of an eval lack, and what comes next.
    fn explain_missing_key(&self, eval: u32) -> Option<Vec<TextBlock<'static>>> {
        let judges = self.app.session().cells.list_judges(eval);
        let missing = judges
            .into_iter()
            .find_map(|judge| self.app.missing_keys.get(judge))?;
        let next = styled_line([
            ("next: ", Role::Muted),
            ("q", Role::Key),
            (", set the key, start dicta again, then ", Role::Muted),
            ("r", Role::Key),
            (" on this eval; ", Role::Muted),
            ("dicta check --connect", Role::Key),
            (" tests the judge", Role::Muted),
        ]);
        let text = format!("not judged: {}", make_visible(missing, false));
        Some(vec![TextBlock::new(text, Role::Warning), next])
    }
}

/// Returns true for a source judge, which returns imported verdicts and calls nothing.
fn is_source_judge(judge: &JudgeSpec) -> bool {
    judge.config.provider == ProviderKind::Source
}

/// Returns the text for a pane of the judge trace while no cell is selected.
fn explain_no_cell<'a>() -> Vec<TextBlock<'a>> {
    vec![styled_line([
        ("no cell selected: ", Role::Muted),
        ("j", Role::Key),
        (" and ", Role::Muted),
        ("k", Role::Key),
        (" move in the cells", Role::Muted),
    ])]
}

/// The mark of a verdict whose trace a person edited.
pub(crate) const EDITED_BY_HAND: &str = "edited by hand";

/// Returns the short form of [`EDITED_BY_HAND`].
pub(crate) const fn edited_mark(glyphs: &Glyphs) -> &'static str {
    if glyphs.ascii { "e" } else { "✎" }
}

/// Returns the mark of a paused trace.
pub(crate) const fn pause_mark(glyphs: &Glyphs) -> &'static str {
    if glyphs.ascii { "=" } else { "‖" }
}

/// Returns the mark and the role of an outcome.
pub(crate) fn outcome_mark(outcome: Outcome, glyphs: &Glyphs) -> (&'static str, Role) {
    match outcome {
        Outcome::Pass => (glyphs.pass, Role::Pass),
        Outcome::Fail => (glyphs.fail, Role::Fail),
        Outcome::NotApplicable => (glyphs.not_applicable, Role::NotApplicable),
        Outcome::Skipped => (glyphs.skipped, Role::Skipped),
        _ => (glyphs.error, Role::Error),
    }
}

/// Returns the mark and the name of an outcome, `✓ pass`, and the role of both.
pub(super) fn name_with_mark(outcome: Outcome, glyphs: &Glyphs) -> (String, Role) {
    let (mark, role) = outcome_mark(outcome, glyphs);
    (format!("{mark} {}", describe_outcome(outcome)), role)
}

/// Returns the mark of a label.
pub(crate) fn label_mark(label: LabelValue, glyphs: &Glyphs) -> &'static str {
    match label.passed() {
        Some(passed) => outcome_mark(Outcome::from_passed(passed), glyphs).0,
        // A label without pass or fail means unsure.
        None => "?",
    }
}

/// Returns a line made of pieces with roles.
fn styled_line<'a, T: AsRef<str>>(pieces: impl IntoIterator<Item = (T, Role)>) -> TextBlock<'a> {
    let (mut text, mut spans) = (String::new(), Vec::new());
    for (piece, role) in pieces {
        let from = text.len();
        text.push_str(piece.as_ref());
        if from < text.len() {
            spans.push(StyledSpan::new(from..text.len(), role));
        }
    }
    TextBlock {
        text: text.into(),
        spans: spans.into(),
        ..TextBlock::default()
    }
}

/// Lays the spans `upper` over `under`. Both must be sorted; the result is, too.
fn overlay_spans(under: &[StyledSpan], upper: &[StyledSpan]) -> Vec<StyledSpan> {
    let mut out = Vec::with_capacity(under.len() + 2 * upper.len());
    // Both lists are sorted, so one pass is enough.
    let mut upper = upper.iter().peekable();
    for StyledSpan { range, role } in under {
        let mut from = range.start;
        while let Some(over) = upper.peek().filter(|over| over.range.start < range.end) {
            let top = &over.range;
            if from < top.start {
                out.push(StyledSpan::new(from..top.start, *role));
            }
            // The upper span hides this part of the lower one.
            from = from.max(top.end);
            // An upper span that extends past this one continues over the next.
            if top.end > range.end {
                break;
            }
            out.push((*over).clone());
            upper.next();
        }
        if from < range.end {
            out.push(StyledSpan::new(from..range.end, *role));
        }
    }
    out.extend(upper.cloned());
    out
}

/// Returns a heading inside a pane.
fn heading<'a>(text: impl Into<Cow<'a, str>>) -> TextBlock<'a> {
    TextBlock::new(text, Role::Title)
}

/// Returns an empty row.
fn empty_row<'a>() -> TextBlock<'a> {
    TextBlock::default()
}

/// Formats a size in bytes: `12.4 KB`.
fn format_size(bytes: u64) -> String {
    crate::report::format_bytes(bytes)
}

/// Returns the scroll position of a pane, or None for the cells, which have a list instead.
pub(crate) fn pane_scroll(app: &App, pane: Pane) -> Option<&ScrollState> {
    let session = app.session();
    match pane {
        Pane::Cells => None,
        Pane::Prompt => Some(&session.trace_panes.prompt),
        Pane::FunctionCall => Some(&session.trace_panes.call),
        Pane::FetchedContent => Some(&session.trace_panes.fetched),
        Pane::Verdict => Some(&session.trace_panes.verdict),
        Pane::Transcript => Some(&session.transcript_pane.scroll),
        Pane::Changes => Some(&app.saves.scroll),
        Pane::Steps => Some(&session.trace_screen.steps),
        Pane::Details => Some(&session.trace_screen.details),
    }
}

/// Returns the same as [`pane_scroll`], for changes.
pub(crate) fn pane_scroll_mut(app: &mut App, pane: Pane) -> Option<&mut ScrollState> {
    // Return first, because `session_mut` borrows the whole app.
    if pane == Pane::Changes {
        return Some(&mut app.saves.scroll);
    }
    let session = app.session_mut();
    match pane {
        Pane::Cells | Pane::Changes => None,
        Pane::Prompt => Some(&mut session.trace_panes.prompt),
        Pane::FunctionCall => Some(&mut session.trace_panes.call),
        Pane::FetchedContent => Some(&mut session.trace_panes.fetched),
        Pane::Verdict => Some(&mut session.trace_panes.verdict),
        Pane::Transcript => Some(&mut session.transcript_pane.scroll),
        Pane::Steps => Some(&mut session.trace_screen.steps),
        Pane::Details => Some(&mut session.trace_screen.details),
    }
}

#[cfg(test)]
mod tests;
