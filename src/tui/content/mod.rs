//! The texts of panes, made from the model: what scrolling and drawing both look at.
//!
//! Made anew for every frame and key from borrowed texts, so nothing here copies or lays out a large one. What a text still
//! lacks (a blob, its colours) is noted in [`Ink`]; `update/focus.rs` asks for it.

mod argument_diff;
mod changes;
mod eval_definition;
mod examples;
mod findings;
pub(crate) mod hidden_verdict;
mod hops;
mod judge_output;
mod prompt;
mod tool_call;
pub(crate) mod tool_response;
mod transcript;
pub(crate) mod verdict;
mod votes;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::state::cells::LabelValue;
use super::state::pane::Pane;
use super::state::shown_cell::{ShownCell, TraceAvailability};
use super::state::text_cache::{BlobState, MAX_HIGHLIGHT_BYTES, TextIdentity, highlight_key};
use super::state::{App, OpenedItem};
use super::widget::flow::{ScrollState, TextBlock, TextSource};
use crate::event::{JudgeSpec, StoredText};
use crate::model::{Blob, Outcome, ProviderKind};
use crate::theme::{CodeLanguage, Glyphs, Role};

/// A pane's text. Cheap: made anew for every frame and key.
pub(crate) fn pane_source(app: &App, pane: Pane) -> Box<dyn TextSource + '_> {
    build_pane(pane, &mut ContentCx::new(app))
}

/// A pane's text for somewhere else: what stands in columns on the screen stands one below the other.
pub(crate) fn pane_source_for_copy(app: &App, pane: Pane) -> Box<dyn TextSource + '_> {
    let mut ink = ContentCx::new(app);
    ink.columns = false;
    build_pane(pane, &mut ink)
}

/// What the visible panes lack.
pub(crate) fn find_missing(app: &App) -> MissingContent {
    let mut ink = ContentCx::new(app);
    for (pane, area) in &app.layout().panes {
        if *pane == Pane::Transcript {
            transcript::find_missing_highlights(&mut ink, usize::from(area.height));
        } else {
            let _lacking_is_noted = build_pane(*pane, &mut ink);
        }
    }
    ink.missing
}

fn build_pane<'a>(pane: Pane, ink: &mut ContentCx<'a>) -> Box<dyn TextSource + 'a> {
    match pane {
        Pane::Prompt | Pane::FunctionCall | Pane::FetchedContent | Pane::Verdict
            if hidden_verdict::hides_verdict(ink.app) =>
        {
            Box::new(hidden_verdict::build_source(ink, pane))
        }
        Pane::Cells => Box::new(Vec::new()),
        Pane::Prompt => prompt::build_source(ink),
        Pane::FunctionCall => tool_call::build_source(ink),
        Pane::FetchedContent => tool_response::build_source(ink),
        Pane::Verdict => verdict::build_source(ink),
        Pane::Transcript => transcript::build_source(ink),
        Pane::Changes => changes::build_source(ink.app),
    }
}

/// Texts and colours that are shown and not here.
#[derive(Debug, Default)]
pub(crate) struct MissingContent {
    pub(crate) blobs: Vec<Blob>,
    pub(crate) highlights: Vec<(u64, CodeLanguage, Arc<str>)>,
    pub(crate) hidden_text: Vec<HiddenTextRequest>,
}

/// A page of which it is wanted where a browser does not show its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HiddenTextRequest {
    /// Under which it is kept among the looks.
    pub(crate) key: u64,
    /// The page's body.
    pub(crate) raw: Blob,
    /// Where it came from, which its links count from.
    pub(crate) url: Option<String>,
    pub(crate) content_type: Option<String>,
    /// As the model got it.
    pub(crate) text: Arc<str>,
}

/// What texts are written with: the model, and a note of what is lacking.
struct ContentCx<'a> {
    app: &'a App,
    missing: MissingContent,
    /// Whether what belongs together may stand side by side.
    columns: bool,
}

/// A text that may have to be read first.
enum LoadedText<'a> {
    Loaded(&'a str, TextIdentity<'a>),
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

    /// A piece's text.
    fn load_text(&mut self, piece: &'a StoredText) -> LoadedText<'a> {
        match piece {
            StoredText::Text(text) => LoadedText::Loaded(text, TextIdentity::Text(text)),
            StoredText::Blob(blob) => self.load_blob(blob),
        }
    }

    /// A blob's text.
    fn load_blob(&mut self, blob: &'a Blob) -> LoadedText<'a> {
        match self.app.texts.blobs.get(&blob.hash.0) {
            Some(BlobState::Loaded(text)) => {
                LoadedText::Loaded(text, TextIdentity::Blob(&blob.hash.0))
            }
            Some(BlobState::Failed(why)) => LoadedText::Failed(why),
            Some(BlobState::Loading) => LoadedText::Reading(blob.bytes),
            None => {
                self.missing.blobs.push(blob.clone());
                LoadedText::Reading(blob.bytes)
            }
        }
    }

    /// A text in a language, in its colours where they are known.
    fn highlight_code(
        &mut self,
        text: impl Into<Cow<'a, str>>,
        lang: CodeLanguage,
        name: Option<TextIdentity<'_>>,
    ) -> TextBlock<'a> {
        let mut block = TextBlock::new(text, Role::Text);
        if block.text.is_empty() || block.text.len() > MAX_HIGHLIGHT_BYTES {
            return block;
        }
        let key = highlight_key(lang, name.unwrap_or(TextIdentity::Text(&block.text)));
        match self.app.texts.highlights.get(&key) {
            Some(Some(looks)) => block.spans = Cow::Borrowed(looks),
            Some(None) => {}
            None => {
                let text = Arc::from(&*block.text);
                self.missing.highlights.push((key, lang, text));
            }
        }
        block
    }

    /// JSON laid out for reading, if it is JSON and small enough to be laid out for every frame.
    fn format_json(&mut self, text: &'a str) -> TextBlock<'a> {
        const LAID_OUT: usize = 16 << 10;
        match (text.len() <= LAID_OUT).then(|| crate::tools::pretty_print_json(text, LAID_OUT)) {
            Some(Some(pretty)) => self.highlight_code(pretty, CodeLanguage::Json, None),
            _ => TextBlock::new(text, Role::Text),
        }
    }

    /// What stands in a pane of the trace while there is no trace; `None` if there is one.
    /// `fills`: what would stand there; nothing else is said where a judge never will.
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
                TextBlock::new("the recording cannot be read", Role::Error),
                TextBlock::new(why, Role::Text),
            ],
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
                    ("no rubric judges this file yet: ", Role::Muted),
                    ("W", Role::Key),
                    (" makes a workspace around it", Role::Muted),
                ])]
            }
            TraceAvailability::NeverRun => {
                let mut out = vec![styled_line([
                    ("not run yet: ", Role::Muted),
                    ("r", Role::Key),
                    (" runs this cell, ", Role::Muted),
                    ("R", Role::Key),
                    (" runs everything", Role::Muted),
                ])];
                if !fills.is_empty() {
                    out.push(empty_row());
                    out.push(TextBlock::new(fills, Role::Muted));
                }
                out
            }
        })
    }
}

/// What stands in a pane that only a judge fills, where code decides; `None` where a judge does.
fn explain_code_check<'a>(
    ink: &ContentCx<'a>,
    shown: &ShownCell<'a>,
) -> Option<Vec<TextBlock<'a>>> {
    let eval = ink.app.session().cells.evals.get(shown.row.eval as usize)?;
    if shown.judge_spec().is_some_and(is_source_judge) {
        return Some(vec![
            TextBlock::new(
                "nobody was asked: this verdict came with the transcript",
                Role::Muted,
            ),
            styled_line([
                ("5", Role::Key),
                (" has it as its source recorded it", Role::Muted),
            ]),
        ]);
    }
    // Without a kind it is the group of a file that nothing judges.
    (!eval.judged && !eval.eval_type.is_empty()).then(|| {
        vec![
            styled_line([
                ("no judge here: code decides ", Role::Muted),
                (eval.eval_type.as_str(), Role::Text),
            ]),
            styled_line([
                ("5", Role::Key),
                (" says what it found, and how it is asked", Role::Muted),
            ]),
        ]
    })
}

/// Whether a judge gives what others recorded.
fn is_source_judge(judge: &JudgeSpec) -> bool {
    judge.config.provider == ProviderKind::Source
}

/// What stands in a pane of the trace while no cell is focused.
fn explain_no_cell<'a>() -> Vec<TextBlock<'a>> {
    vec![styled_line([
        ("no cell is selected: ", Role::Muted),
        ("j", Role::Key),
        (" and ", Role::Muted),
        ("k", Role::Key),
        (" move in the cells", Role::Muted),
    ])]
}

/// An outcome's mark, and how it looks.
pub(crate) fn outcome_mark(outcome: Outcome, glyphs: &Glyphs) -> (&'static str, Role) {
    match outcome {
        Outcome::Pass => (glyphs.pass, Role::Pass),
        Outcome::Fail => (glyphs.fail, Role::Fail),
        Outcome::NotApplicable => (glyphs.not_applicable, Role::NotApplicable),
        Outcome::Skipped => (glyphs.skipped, Role::Skipped),
        _ => (glyphs.error, Role::Error),
    }
}

/// The mark of what a person said.
pub(crate) fn label_mark(label: LabelValue, glyphs: &Glyphs) -> &'static str {
    match label.passed() {
        Some(passed) => outcome_mark(Outcome::from_passed(passed), glyphs).0,
        None => "?",
    }
}

/// A line of pieces.
fn styled_line<'a, T: AsRef<str>>(pieces: impl IntoIterator<Item = (T, Role)>) -> TextBlock<'a> {
    let (mut text, mut spans) = (String::new(), Vec::new());
    for (piece, role) in pieces {
        let from = text.len();
        text.push_str(piece.as_ref());
        if from < text.len() {
            spans.push((from..text.len(), role));
        }
    }
    TextBlock {
        text: text.into(),
        spans: spans.into(),
        ..TextBlock::default()
    }
}

/// Spans with others laid over them; both sorted.
fn overlay_spans(
    under: &[(Range<usize>, Role)],
    upper: &[(Range<usize>, Role)],
) -> Vec<(Range<usize>, Role)> {
    let mut out = Vec::with_capacity(under.len() + 2 * upper.len());
    let mut upper = upper.iter().peekable();
    for (range, role) in under {
        let mut from = range.start;
        while let Some((top, over)) = upper.peek().filter(|(top, _)| top.start < range.end) {
            if from < top.start {
                out.push((from..top.start, *role));
            }
            from = from.max(top.end);
            // One that reaches further goes on over the next.
            if top.end > range.end {
                break;
            }
            out.push((top.clone(), *over));
            upper.next();
        }
        if from < range.end {
            out.push((from..range.end, *role));
        }
    }
    out.extend(upper.cloned());
    out
}

/// A heading within a pane.
fn heading<'a>(text: impl Into<Cow<'a, str>>) -> TextBlock<'a> {
    TextBlock::new(text, Role::Title)
}

/// An empty row.
fn empty_row<'a>() -> TextBlock<'a> {
    TextBlock::default()
}

/// A count with digits of its own: `12.4 KB`.
fn format_size(bytes: u64) -> String {
    crate::report::format_bytes(bytes)
}

/// Where a pane stands in its text; the cells have a list instead.
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
    }
}

/// See [`scroll`].
pub(crate) fn pane_scroll_mut(app: &mut App, pane: Pane) -> Option<&mut ScrollState> {
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
    }
}

#[cfg(test)]
mod tests;
