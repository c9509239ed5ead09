//! The texts of panes, made from the model: what scrolling and drawing both look at.
//!
//! Made anew for every frame and key from borrowed texts, so nothing here copies or lays out a large one. What a text still
//! lacks (a blob, its colours) is noted in [`Ink`]; `update/focus.rs` asks for it.

mod asked;
mod beside;
mod call;
mod changes;
mod examples;
pub(crate) mod fetched;
mod found;
mod hops;
mod prompt;
mod said;
mod transcript;
pub(crate) mod veiled;
pub(crate) mod verdict;
mod votes;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::model::cells::Human;
use super::model::pane::Pane;
use super::model::texts::{HIGHLIGHT_MAX, Named, Read, look_key};
use super::model::trace::{Shown, Wait};
use super::model::{Model, Place};
use super::widget::flow::{Block, Scroll, Source};
use crate::event::{JudgeSpec, StoredText};
use crate::model::{Blob, Outcome, ProviderKind};
use crate::theme::{Glyphs, Lang, Role};

/// A pane's text. Cheap: made anew for every frame and key.
pub(crate) fn of(model: &Model, pane: Pane) -> Box<dyn Source + '_> {
    written(pane, &mut Ink::new(model))
}

/// A pane's text for somewhere else: what stands in columns on the screen stands one below the other.
pub(crate) fn to_copy(model: &Model, pane: Pane) -> Box<dyn Source + '_> {
    let mut ink = Ink::new(model);
    ink.columns = false;
    written(pane, &mut ink)
}

/// What the visible panes lack.
pub(crate) fn wanted(model: &Model) -> Wanted {
    let mut ink = Ink::new(model);
    for (pane, area) in &model.layout().panes {
        if *pane == Pane::Transcript {
            transcript::visible(&mut ink, usize::from(area.height));
        } else {
            let _lacking_is_noted = written(*pane, &mut ink);
        }
    }
    ink.wanted
}

fn written<'a>(pane: Pane, ink: &mut Ink<'a>) -> Box<dyn Source + 'a> {
    match pane {
        Pane::Prompt | Pane::FunctionCall | Pane::FetchedContent | Pane::Verdict
            if veiled::hides(ink.model) =>
        {
            Box::new(veiled::source(ink, pane))
        }
        Pane::Cells => Box::new(Vec::new()),
        Pane::Prompt => prompt::source(ink),
        Pane::FunctionCall => call::source(ink),
        Pane::FetchedContent => fetched::source(ink),
        Pane::Verdict => verdict::source(ink),
        Pane::Transcript => transcript::source(ink),
        Pane::Changes => changes::source(ink.model),
    }
}

/// Texts and colours that are shown and not here.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) blobs: Vec<Blob>,
    pub(crate) looks: Vec<(u64, Lang, Arc<str>)>,
    pub(crate) unshown: Vec<Unshown>,
}

/// A page of which it is wanted where a browser does not show its text.
#[derive(Debug, Clone)]
pub(crate) struct Unshown {
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
struct Ink<'a> {
    model: &'a Model,
    wanted: Wanted,
    /// Whether what belongs together may stand side by side.
    columns: bool,
}

/// A text that may have to be read first.
enum Text<'a> {
    Here(&'a str, Named<'a>),
    Reading(u64),
    Failed(&'a str),
}

impl<'a> Ink<'a> {
    fn new(model: &'a Model) -> Self {
        Self {
            model,
            wanted: Wanted::default(),
            columns: true,
        }
    }

    fn glyphs(&self) -> &'a Glyphs {
        self.model.ui.theme.glyphs()
    }

    fn mark(&self, outcome: Outcome) -> (&'a str, Role) {
        mark(outcome, self.glyphs())
    }

    /// A piece's text.
    fn text(&mut self, piece: &'a StoredText) -> Text<'a> {
        match piece {
            StoredText::Text(text) => Text::Here(text, Named::Text(text)),
            StoredText::Blob(blob) => self.blob(blob),
        }
    }

    /// A blob's text.
    fn blob(&mut self, blob: &'a Blob) -> Text<'a> {
        match self.model.texts.blobs.get(&blob.hash.0) {
            Some(Read::Here(text)) => Text::Here(text, Named::Blob(&blob.hash.0)),
            Some(Read::Failed(why)) => Text::Failed(why),
            Some(Read::Reading) => Text::Reading(blob.bytes),
            None => {
                self.wanted.blobs.push(blob.clone());
                Text::Reading(blob.bytes)
            }
        }
    }

    /// A text in a language, in its colours where they are known.
    fn code(
        &mut self,
        text: impl Into<Cow<'a, str>>,
        lang: Lang,
        name: Option<Named<'_>>,
    ) -> Block<'a> {
        let mut block = Block::new(text, Role::Text);
        if block.text.is_empty() || block.text.len() > HIGHLIGHT_MAX {
            return block;
        }
        let key = look_key(lang, name.unwrap_or(Named::Text(&block.text)));
        match self.model.texts.looks.get(&key) {
            Some(Some(looks)) => block.spans = Cow::Borrowed(looks),
            Some(None) => {}
            None => {
                let text = Arc::from(&*block.text);
                self.wanted.looks.push((key, lang, text));
            }
        }
        block
    }

    /// JSON laid out for reading, if it is JSON and small enough to be laid out for every frame.
    fn json(&mut self, text: &'a str) -> Block<'a> {
        const LAID_OUT: usize = 16 << 10;
        match (text.len() <= LAID_OUT).then(|| crate::tools::pretty_print_json(text, LAID_OUT)) {
            Some(Some(pretty)) => self.code(pretty, Lang::Json, None),
            _ => Block::new(text, Role::Text),
        }
    }

    /// What stands in a pane of the trace while there is no trace; `None` if there is one.
    /// `fills`: what would stand there; nothing else is said where a judge never will.
    fn waiting(&self, shown: &Shown<'a>, fills: &'static str) -> Option<Vec<Block<'a>>> {
        Some(match shown.wait {
            Wait::Not => return None,
            Wait::Reading => vec![Block::new("reading the recording …", Role::Muted)],
            Wait::Failed(why) => vec![
                Block::new("the recording cannot be read", Role::Error),
                Block::new(why, Role::Text),
            ],
            Wait::NeverRun if self.model.replay.is_some() => {
                vec![Block::new("not reached yet in this recording", Role::Muted)]
            }
            Wait::NeverRun if matches!(self.model.place, Place::Bare(_)) => vec![rich([
                ("no rubric judges this file yet: ", Role::Muted),
                ("W", Role::Key),
                (" makes a workspace around it", Role::Muted),
            ])],
            Wait::NeverRun => {
                let mut out = vec![rich([
                    ("not run yet: ", Role::Muted),
                    ("r", Role::Key),
                    (" runs this cell, ", Role::Muted),
                    ("R", Role::Key),
                    (" runs everything", Role::Muted),
                ])];
                if !fills.is_empty() {
                    out.push(gap());
                    out.push(Block::new(fills, Role::Muted));
                }
                out
            }
        })
    }
}

/// What stands in a pane that only a judge fills, where code decides; `None` where a judge does.
fn decided_by_code<'a>(ink: &Ink<'a>, shown: &Shown<'a>) -> Option<Vec<Block<'a>>> {
    let eval = ink.model.desk().cells.evals.get(shown.row.eval as usize)?;
    if shown.judge().is_some_and(of_source) {
        return Some(vec![
            Block::new(
                "nobody was asked: this verdict came with the transcript",
                Role::Muted,
            ),
            rich([
                ("5", Role::Key),
                (" has it as its source recorded it", Role::Muted),
            ]),
        ]);
    }
    // Without a kind it is the group of a file that nothing judges.
    (!eval.judged && !eval.kind.is_empty()).then(|| {
        vec![
            rich([
                ("no judge here: code decides ", Role::Muted),
                (eval.kind.as_str(), Role::Text),
            ]),
            rich([
                ("5", Role::Key),
                (" says what it found, and how it is asked", Role::Muted),
            ]),
        ]
    })
}

/// Whether a judge gives what others recorded.
fn of_source(judge: &JudgeSpec) -> bool {
    judge.config.provider == ProviderKind::Source
}

/// What stands in a pane of the trace while no cell is focused.
fn no_cell<'a>() -> Vec<Block<'a>> {
    vec![rich([
        ("no cell is selected: ", Role::Muted),
        ("j", Role::Key),
        (" and ", Role::Muted),
        ("k", Role::Key),
        (" move in the cells", Role::Muted),
    ])]
}

/// An outcome's mark, and how it looks.
pub(crate) fn mark(outcome: Outcome, glyphs: &Glyphs) -> (&'static str, Role) {
    match outcome {
        Outcome::Pass => (glyphs.pass, Role::Pass),
        Outcome::Fail => (glyphs.fail, Role::Fail),
        Outcome::NotApplicable => (glyphs.not_applicable, Role::NotApplicable),
        Outcome::Skipped => (glyphs.skipped, Role::Skipped),
        _ => (glyphs.error, Role::Error),
    }
}

/// The mark of what a person said.
pub(crate) fn human(label: Human, glyphs: &Glyphs) -> &'static str {
    match label.passed() {
        Some(passed) => mark(Outcome::from_passed(passed), glyphs).0,
        None => "?",
    }
}

/// A line of pieces.
fn rich<'a, T: AsRef<str>>(pieces: impl IntoIterator<Item = (T, Role)>) -> Block<'a> {
    let (mut text, mut spans) = (String::new(), Vec::new());
    for (piece, role) in pieces {
        let from = text.len();
        text.push_str(piece.as_ref());
        if from < text.len() {
            spans.push((from..text.len(), role));
        }
    }
    Block {
        text: text.into(),
        spans: spans.into(),
        ..Block::default()
    }
}

/// Spans with others laid over them; both sorted.
fn over(
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
fn heading<'a>(text: impl Into<Cow<'a, str>>) -> Block<'a> {
    Block::new(text, Role::Title)
}

/// An empty row.
fn gap<'a>() -> Block<'a> {
    Block::default()
}

/// A count with digits of its own: `12.4 KB`.
fn size(bytes: u64) -> String {
    crate::report::format_bytes(bytes)
}

/// Where a pane stands in its text; the cells have a list instead.
pub(crate) fn scroll(model: &Model, pane: Pane) -> Option<&Scroll> {
    let desk = model.desk();
    match pane {
        Pane::Cells => None,
        Pane::Prompt => Some(&desk.trace.prompt),
        Pane::FunctionCall => Some(&desk.trace.call),
        Pane::FetchedContent => Some(&desk.trace.fetched),
        Pane::Verdict => Some(&desk.trace.verdict),
        Pane::Transcript => Some(&desk.document.scroll),
        Pane::Changes => Some(&model.saves.scroll),
    }
}

/// See [`scroll`].
pub(crate) fn scroll_mut(model: &mut Model, pane: Pane) -> Option<&mut Scroll> {
    if pane == Pane::Changes {
        return Some(&mut model.saves.scroll);
    }
    let desk = model.desk_mut();
    match pane {
        Pane::Cells | Pane::Changes => None,
        Pane::Prompt => Some(&mut desk.trace.prompt),
        Pane::FunctionCall => Some(&mut desk.trace.call),
        Pane::FetchedContent => Some(&mut desk.trace.fetched),
        Pane::Verdict => Some(&mut desk.trace.verdict),
        Pane::Transcript => Some(&mut desk.document.scroll),
    }
}

#[cfg(test)]
mod tests;
