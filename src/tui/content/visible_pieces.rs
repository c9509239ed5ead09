//! Lines of untrusted text, in pieces with a role each.

use crate::model::make_visible;
use crate::theme::{Role, StyledSpan};
use crate::tui::widget::flow::TextBlock;

/// Returns a block of pieces, each with a role.
pub(super) fn join_pieces(pieces: &[(&str, Role)]) -> TextBlock<'static> {
    let (mut text, mut spans) = (String::new(), Vec::new());
    for (piece, role) in pieces {
        // A line break of a note would look like the end of it.
        let piece = make_visible(piece, false);
        let from = text.len();
        text.push_str(&piece);
        spans.push(StyledSpan::new(from..text.len(), *role));
    }
    spans.retain(|span| !span.range.is_empty());
    TextBlock {
        text: text.into(),
        spans: spans.into(),
        ..TextBlock::default()
    }
}
