//! What is focused is read: the trace of its newest run, the transcript, the texts that are visible, their colours.

use std::ops::Range;
use std::sync::Arc;

use crate::model::Blob;
use crate::theme::Role;
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::cells::RowId;
use crate::tui::model::document::Doc;
use crate::tui::model::trace::Recorded;

/// After every update: asks for what the focused cell needs and nobody asked for yet. Does nothing if nothing moved.
pub(super) fn look(_model: &mut Model) -> Vec<Effect> {
    Vec::new()
}

/// A recorded trace is here.
pub(super) fn trace_read(
    _model: &mut Model,
    _row: RowId,
    _recorded: Result<Arc<Recorded>, String>,
) -> Vec<Effect> {
    Vec::new()
}

/// A blob is here.
pub(super) fn text_read(
    _model: &mut Model,
    _blob: &Blob,
    _text: Result<Arc<str>, String>,
) -> Vec<Effect> {
    Vec::new()
}

/// A text's looks are known.
pub(super) fn highlighted(
    _model: &mut Model,
    _key: u64,
    _spans: Vec<(Range<usize>, Role)>,
) -> Vec<Effect> {
    Vec::new()
}

/// A transcript is here.
pub(super) fn document_read(
    _model: &mut Model,
    _id: &str,
    _doc: Result<Arc<Doc>, String>,
) -> Vec<Effect> {
    Vec::new()
}
