//! The transcript on the reading screen: numbered messages, without metadata and without any verdict.

use std::borrow::Cow;
use std::sync::Arc;

use super::transcript::{body_role, speaker_role};
use crate::theme::{Glyphs, StyledSpan};
use crate::tui::state::document::{PieceKind, TranscriptDocument};
use crate::tui::widget::flow::{TextBlock, TextSource};

/// A transcript as blocks. Metadata is empty, because it contains the verdicts of other tools.
pub(crate) struct ReviewSource<'a> {
    doc: &'a Arc<TranscriptDocument>,
    /// The focused message.
    focused: Option<u32>,
    indent: u16,
    glyphs: &'a Glyphs,
}

impl<'a> ReviewSource<'a> {
    /// Creates the source.
    pub(crate) fn new(
        doc: &'a Arc<TranscriptDocument>,
        focused: Option<u32>,
        glyphs: &'a Glyphs,
    ) -> Self {
        let digits = doc.first_pieces.len().saturating_sub(1).max(1).ilog10() + 1;
        Self {
            doc,
            focused,
            indent: u16::try_from(digits + 4).unwrap_or(8),
            glyphs,
        }
    }
}

impl TextSource for ReviewSource<'_> {
    fn len(&self) -> usize {
        self.doc.pieces.len()
    }

    fn block(&self, at: usize) -> TextBlock<'_> {
        let piece = self.doc.pieces.get(at);
        let Some(piece) = piece.filter(|piece| piece.kind != PieceKind::Metadata) else {
            return TextBlock::default();
        };
        let head = usize::from(piece.heading_len);
        let starts = self.doc.starts_message(at);
        let cursor = if self.focused == Some(piece.message) {
            self.glyphs.cursor
        } else {
            " "
        };
        let joined = matches!(piece.kind, PieceKind::Result { paired: true, .. });
        let lead = match (joined, starts) {
            (true, _) => format!("  {cursor}[{}] ", piece.message),
            (false, true) => format!("{cursor}[{}] ", piece.message),
            (false, false) => String::new(),
        };
        let spans = if head > 0 {
            vec![StyledSpan::new(0..head, speaker_role(piece.kind))]
        } else {
            Vec::new()
        };
        TextBlock {
            text: Cow::Borrowed(self.doc.text_with_heading(piece)),
            role: body_role(piece.kind),
            spans: spans.into(),
            indent: self.indent + if joined { 3 } else { 0 },
            lead: lead.into(),
        }
    }
}
