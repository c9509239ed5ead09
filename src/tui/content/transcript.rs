//! The judged transcript: messages by number, calls joined with their results.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::{Ink, over, veiled};
use crate::theme::{Glyphs, Lang, Role};
use crate::tui::model::Model;
use crate::tui::model::document::{Doc, Document, Piece, PieceKind, Shown};
use crate::tui::model::texts::{Named, look_key};
use crate::tui::widget::flow::{Block, Source};

/// Longer calls stay plain.
const CALL_MAX: usize = 2048;

/// Whether there is no transcript to show.
pub(crate) fn is_empty(model: &Model) -> bool {
    let desk = model.desk();
    desk.trace.row.is_none() && !desk.cells.rows.is_empty()
        || matches!(desk.document.doc, Shown::Nothing)
}

/// The pane's text.
pub(super) fn source<'a>(ink: &mut Ink<'a>) -> Box<dyn Source + 'a> {
    let model = ink.model;
    if is_empty(model) {
        return Box::new(super::no_cell());
    }
    match &model.desk().document.doc {
        Shown::Nothing => Box::new(super::no_cell()),
        Shown::Reading => Box::new(vec![Block::new("reading the transcript …", Role::Muted)]),
        Shown::Failed(why) => Box::new(vec![
            Block::new("the transcript cannot be read", Role::Error),
            Block::new(why.as_str(), Role::Text),
        ]),
        Shown::Here(doc) if doc.pieces.is_empty() => {
            Box::new(vec![Block::new("no messages", Role::Muted)])
        }
        Shown::Here(doc) => Box::new(DocSource::of(model, doc)),
    }
}

/// Notes what the visible calls lack: their colours.
pub(super) fn visible(ink: &mut Ink<'_>, height: usize) {
    let document = &ink.model.desk().document;
    let Some(doc) = document.here() else {
        return;
    };
    let top = document.scroll.top.block.min(doc.pieces.len());
    for piece in doc.pieces[top..].iter().take(height) {
        if let Some((args, _)) = arguments(doc, piece) {
            ink.code(args.to_owned(), Lang::Json, None);
        }
    }
}

/// A call's arguments, if they are short, and where they begin within its text with its heading.
fn arguments<'d>(doc: &'d Doc, piece: &Piece) -> Option<(&'d str, usize)> {
    let text = doc.text_of(piece);
    if piece.kind != PieceKind::Call || text.len() > CALL_MAX {
        return None;
    }
    let open = text.find('(')? + 1;
    let args = text.get(open..)?.strip_suffix(')')?;
    Some((args, open + usize::from(piece.head)))
}

struct DocSource<'a> {
    doc: &'a Arc<Doc>,
    document: &'a Document,
    model: &'a Model,
    /// The message that the focused cell judges, where it judges one.
    judged: Option<u32>,
    indent: u16,
    glyphs: &'a Glyphs,
}

impl<'a> DocSource<'a> {
    fn of(model: &'a Model, doc: &'a Arc<Doc>) -> Self {
        let desk = model.desk();
        let row = desk.trace.row.and_then(|row| desk.cells.row(row));
        let digits = doc.messages.len().saturating_sub(1).max(1).ilog10() + 1;
        Self {
            doc,
            document: &desk.document,
            model,
            judged: row.and_then(|row| row.message),
            // `[12] `, and a column in front for the judged one's mark.
            indent: u16::try_from(digits + 4).unwrap_or(8),
            glyphs: model.ui.theme.glyphs(),
        }
    }

    /// Who speaks, in colour; then the quotes over all.
    fn spans(&self, at: usize, piece: &Piece) -> Vec<(Range<usize>, Role)> {
        let head = usize::from(piece.head);
        let mut spans = Vec::new();
        if head > 0 {
            let who = self.doc.whole(piece)[..head].find(" · ").unwrap_or(head);
            spans.push((0..who, speaker(piece.kind)));
            // What it took.
            if who < head {
                spans.push((who..head, Role::Muted));
            }
        }
        if let Some((args, from)) = arguments(self.doc, piece) {
            let key = look_key(Lang::Json, Named::Text(args));
            if let Some(Some(looks)) = self.model.texts.looks.get(&key) {
                let moved = |range: &Range<usize>| range.start + from..range.end + from;
                spans.extend(looks.iter().map(|(range, role)| (moved(range), *role)));
            }
        }
        // Where a verdict's words stand would tell it.
        if veiled::hides(self.model) {
            return spans;
        }
        let shifted = |range: &Range<usize>| range.start + head..range.end + head;
        let quotes = &self.document.quotes;
        let first = quotes.partition_point(|(piece, _)| *piece < at);
        let mut marks: Vec<(Range<usize>, Role)> = Vec::new();
        for (_, range) in quotes[first..].iter().take_while(|(piece, _)| *piece == at) {
            // Quotes may overlap; what is drawn must not.
            let from = marks.last().map_or(0, |(last, _)| last.end);
            let range = shifted(range);
            if range.end > from {
                marks.push((range.start.max(from)..range.end, Role::Found));
            }
        }
        for (_, range) in self.document.marks.places.iter().filter(|(p, _)| *p == at) {
            marks = over(&marks, &[(shifted(range), Role::Found)]);
        }
        if let Some((_, range)) = self
            .document
            .quoted
            .as_ref()
            .filter(|(piece, _)| *piece == at)
        {
            marks = over(&marks, &[(shifted(range), Role::Match)]);
        }
        if marks.is_empty() {
            spans
        } else {
            over(&spans, &marks)
        }
    }
}

impl Source for DocSource<'_> {
    fn len(&self) -> usize {
        self.doc.pieces.len()
    }

    fn block(&self, at: usize) -> Block<'_> {
        let Some(piece) = self.doc.pieces.get(at) else {
            return Block::default();
        };
        let joined = matches!(piece.kind, PieceKind::Result { joined: true, .. });
        let number = piece.message;
        let judged = self.judged == Some(number) && self.doc.leads(at);
        let cursor = if judged { self.glyphs.cursor } else { " " };
        let lead = match (joined, self.doc.leads(at)) {
            (true, _) if self.glyphs.ascii => format!("  `-[{number}] "),
            (true, _) => format!("  └ [{number}] "),
            (false, true) => format!("{cursor}[{number}] "),
            (false, false) => String::new(),
        };
        Block {
            text: Cow::Borrowed(self.doc.whole(piece)),
            role: body(piece.kind),
            spans: self.spans(at, piece).into(),
            indent: self.indent + if joined { 3 } else { 0 },
            lead: lead.into(),
        }
    }
}

/// How a piece's heading looks.
fn speaker(kind: PieceKind) -> Role {
    match kind {
        PieceKind::System => Role::System,
        PieceKind::User => Role::User,
        PieceKind::Assistant => Role::Assistant,
        PieceKind::Reasoning => Role::Reasoning,
        PieceKind::Call | PieceKind::Result { error: false, .. } => Role::Tool,
        PieceKind::Result { error: true, .. } => Role::Error,
        PieceKind::Other | PieceKind::Media | PieceKind::About => Role::Muted,
    }
}

/// How its text looks.
fn body(kind: PieceKind) -> Role {
    match kind {
        PieceKind::Reasoning => Role::Reasoning,
        PieceKind::Media | PieceKind::About => Role::Muted,
        _ => Role::Text,
    }
}
