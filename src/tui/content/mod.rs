//! The texts of panes, made from the model: what scrolling and drawing both look at.

mod call;
mod changes;
mod fetched;
mod prompt;
mod transcript;
mod verdict;

use super::model::Model;
use super::model::pane::Pane;
use super::widget::flow::{Scroll, Source};

/// A pane's text. Cheap: made anew for every frame and key.
pub(crate) fn of(model: &Model, pane: Pane) -> Box<dyn Source + '_> {
    match pane {
        Pane::Cells => Box::new(Vec::new()),
        Pane::Prompt => prompt::source(model),
        Pane::FunctionCall => call::source(model),
        Pane::FetchedContent => fetched::source(model),
        Pane::Verdict => verdict::source(model),
        Pane::Transcript => transcript::source(model),
        Pane::Changes => changes::source(model),
    }
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
