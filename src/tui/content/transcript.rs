//! The text of the transcript pane: numbered messages, with calls joined to their results.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::{ContentCx, overlay_spans};
use crate::handlers::judged_part;
use crate::theme::{CodeLanguage, Glyphs, Role, StyledSpan};
use crate::tui::state::App;
use crate::tui::state::document::{
    DocumentPiece, DocumentState, PieceKind, TranscriptDocument, TranscriptPane,
};
use crate::tui::state::shown_cell::hides_verdict;
use crate::tui::state::text_cache::{TextIdentity, highlight_key};
use crate::tui::widget::flow::{TextBlock, TextSource};

/// The longest call that is highlighted, in bytes.
const MAX_CALL_BYTES: usize = 2048;

/// Returns true if the app shows no transcript.
pub(crate) fn is_empty(app: &App) -> bool {
    let session = app.session();
    session.trace_panes.row.is_none() && !session.cells.rows.is_empty()
        || matches!(session.transcript_pane.document, DocumentState::Unloaded)
}

/// Returns the text of the pane.
pub(super) fn build_source<'a>(cx: &mut ContentCx<'a>) -> Box<dyn TextSource + 'a> {
    let app = cx.app;
    if is_empty(app) {
        return Box::new(super::explain_no_cell());
    }
    match &app.session().transcript_pane.document {
        DocumentState::Unloaded => Box::new(super::explain_no_cell()),
        DocumentState::Loading => Box::new(vec![TextBlock::new(
            "reading the transcript …",
            Role::Muted,
        )]),
        DocumentState::Failed(why) => Box::new(vec![
            TextBlock::new("dicta can't read the transcript", Role::Error),
            TextBlock::new(why.as_str(), Role::Text),
        ]),
        DocumentState::Loaded(doc) if doc.pieces.is_empty() => {
            Box::new(vec![TextBlock::new("no messages", Role::Muted)])
        }
        DocumentState::Loaded(doc) => Box::new(TranscriptSource::new(app, doc)),
    }
}

/// Returns the part of the transcript that the focused check judged.
pub(super) fn build_judged_text<'a>(cx: &mut ContentCx<'a>) -> Box<dyn TextSource + 'a> {
    let app = cx.app;
    let session = app.session();
    let row = session
        .trace_panes
        .row
        .and_then(|row| session.cells.row(row));
    let eval = row.and_then(|row| session.cells.evals.get(row.eval as usize));
    match (&session.transcript_pane.document, row.zip(eval)) {
        (DocumentState::Loaded(doc), Some((row, eval))) => Box::new(JudgedTextSource {
            pieces: doc.judged_pieces(judged_part(&eval.eval_type), row.message),
            whole: TranscriptSource::new(app, doc),
        }),
        _ => Box::new(vec![TextBlock::new(
            "reading the transcript …",
            Role::Muted,
        )]),
    }
}

/// Some pieces of a transcript.
struct JudgedTextSource<'a> {
    whole: TranscriptSource<'a>,
    pieces: &'a [u32],
}

impl TextSource for JudgedTextSource<'_> {
    fn len(&self) -> usize {
        self.pieces.len()
    }

    fn block(&self, at: usize) -> TextBlock<'_> {
        let piece = self.pieces.get(at).map_or(usize::MAX, |at| *at as usize);
        self.whole.block(piece)
    }
}

/// Requests the highlighting of the visible calls.
pub(super) fn find_missing_highlights(cx: &mut ContentCx<'_>, height: usize) {
    let document = &cx.app.session().transcript_pane;
    let Some(doc) = document.loaded_document() else {
        return;
    };
    // The scroll position can exceed a shorter document.
    let top = document.scroll.top.block.min(doc.pieces.len());
    for piece in doc.pieces[top..].iter().take(height) {
        if let Some((args, _)) = call_arguments(doc, piece) {
            cx.highlight_code(args.to_owned(), CodeLanguage::Json, None);
        }
    }
}

/// Returns the arguments of a short call, and their offset in its text, which begins with a heading.
fn call_arguments<'d>(
    doc: &'d TranscriptDocument,
    piece: &DocumentPiece,
) -> Option<(&'d str, usize)> {
    let text = doc.text_of(piece);
    if piece.kind != PieceKind::Call || text.len() > MAX_CALL_BYTES {
        return None;
    }
    // The text of a call is `name(arguments)`.
    let open = text.find('(')? + 1;
    let args = text.get(open..)?.strip_suffix(')')?;
    Some((args, open + usize::from(piece.heading_len)))
}

struct TranscriptSource<'a> {
    doc: &'a Arc<TranscriptDocument>,
    document: &'a TranscriptPane,
    app: &'a App,
    /// The message that the focused cell judges, or None if it judges the whole transcript.
    judged: Option<u32>,
    indent: u16,
    glyphs: &'a Glyphs,
}

impl<'a> TranscriptSource<'a> {
    fn new(app: &'a App, doc: &'a Arc<TranscriptDocument>) -> Self {
        let session = app.session();
        let row = session
            .trace_panes
            .row
            .and_then(|row| session.cells.row(row));
        let digits = doc.first_pieces.len().saturating_sub(1).max(1).ilog10() + 1;
        Self {
            doc,
            document: &session.transcript_pane,
            app,
            judged: row.and_then(|row| row.message),
            // `[12] `, and one column in front for the mark of the judged message.
            indent: u16::try_from(digits + 4).unwrap_or(8),
            glyphs: app.ui.theme.glyphs(),
        }
    }

    /// Returns the spans of a piece: the speaker, with the quotes on top.
    fn piece_spans(&self, at: usize, piece: &DocumentPiece) -> Vec<StyledSpan> {
        let head = usize::from(piece.heading_len);
        let mut spans = Vec::new();
        if head > 0 {
            let who = self.doc.text_with_heading(piece)[..head]
                .find(" · ")
                .unwrap_or(head);
            spans.push(StyledSpan::new(0..who, speaker_role(piece.kind)));
            // The duration.
            if who < head {
                spans.push(StyledSpan::new(who..head, Role::Muted));
            }
        }
        // `find_missing_highlights` requests the highlighting under the same key.
        if let Some((args, from)) = call_arguments(self.doc, piece) {
            let key = highlight_key(CodeLanguage::Json, TextIdentity::Text(args));
            if let Some(Some(looks)) = self.app.texts.highlights.get(&key) {
                let moved = |range: &Range<usize>| range.start + from..range.end + from;
                spans.extend(
                    looks
                        .iter()
                        .map(|span| StyledSpan::new(moved(&span.range), span.role)),
                );
            }
        }
        // The positions of a verdict's quotes would reveal the hidden verdict.
        if hides_verdict(self.app) {
            return spans;
        }
        let shifted = |range: &Range<usize>| range.start + head..range.end + head;
        let quotes = &self.document.quotes;
        // Quotes are sorted by piece, so a binary search finds the first one.
        let first = quotes.partition_point(|quote| quote.piece < at);
        let mut marks: Vec<StyledSpan> = Vec::new();
        for quote in quotes[first..].iter().take_while(|quote| quote.piece == at) {
            // Quotes may overlap, but drawn spans must not.
            let from = marks.last().map_or(0, |last| last.range.end);
            let range = shifted(&quote.range);
            if range.end > from {
                marks.push(StyledSpan::new(
                    range.start.max(from)..range.end,
                    Role::Found,
                ));
            }
        }
        let places = self.document.marks.places.iter();
        for place in places.filter(|place| place.piece == at) {
            marks = overlay_spans(
                &marks,
                &[StyledSpan::new(shifted(&place.range), Role::Found)],
            );
        }
        if let Some(quote) = self
            .document
            .selected_quote
            .as_ref()
            .filter(|quote| quote.piece == at)
        {
            marks = overlay_spans(
                &marks,
                &[StyledSpan::new(shifted(&quote.range), Role::Match)],
            );
        }
        if marks.is_empty() {
            spans
        } else {
            overlay_spans(&spans, &marks)
        }
    }
}

impl TextSource for TranscriptSource<'_> {
    fn len(&self) -> usize {
        self.doc.pieces.len()
    }

    fn block(&self, at: usize) -> TextBlock<'_> {
        let Some(piece) = self.doc.pieces.get(at) else {
            return TextBlock::default();
        };
        // The result of a call is indented below the call.
        let joined = matches!(piece.kind, PieceKind::Result { paired: true, .. });
        let number = piece.message;
        let judged = self.judged == Some(number) && self.doc.starts_message(at);
        let cursor = if judged { self.glyphs.cursor } else { " " };
        let lead = match (joined, self.doc.starts_message(at)) {
            (true, _) if self.glyphs.ascii => format!("  `-[{number}] "),
            (true, _) => format!("  └ [{number}] "),
            (false, true) => format!("{cursor}[{number}] "),
            (false, false) => String::new(),
        };
        TextBlock {
            text: Cow::Borrowed(self.doc.text_with_heading(piece)),
            role: body_role(piece.kind),
            spans: self.piece_spans(at, piece).into(),
            indent: self.indent + if joined { 3 } else { 0 },
            lead: lead.into(),
        }
    }
}

/// Returns the role of a piece's heading.
pub(super) fn speaker_role(kind: PieceKind) -> Role {
    match kind {
        PieceKind::System => Role::System,
        PieceKind::User => Role::User,
        PieceKind::Assistant => Role::Assistant,
        PieceKind::Reasoning => Role::Reasoning,
        PieceKind::Call | PieceKind::Result { error: false, .. } => Role::Tool,
        PieceKind::Result { error: true, .. } => Role::Error,
        PieceKind::Other | PieceKind::Media | PieceKind::Metadata => Role::Muted,
    }
}

/// Returns the role of a piece's text.
pub(super) fn body_role(kind: PieceKind) -> Role {
    match kind {
        PieceKind::Reasoning => Role::Reasoning,
        PieceKind::Media | PieceKind::Metadata => Role::Muted,
        _ => Role::Text,
    }
}
