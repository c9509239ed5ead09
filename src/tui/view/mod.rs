//! The model as a screen. Pure: the same model draws the same cells; says what a click would hit.

mod cells;
mod changes;
mod footer;
mod header;
mod overlay;
mod problems;
mod replay;
mod trace;
mod transcript;

use ratatui::buffer::Buffer;

use super::state::App;
use super::state::pane::Pane;
use super::widget::canvas::{Canvas, HitMap};
use crate::theme::Role;

/// Draws everything.
pub(crate) fn draw_app(model: &App, buffer: &mut Buffer) -> HitMap {
    let layout = model.layout();
    let mut canvas = Canvas::new(buffer, &model.ui.theme);
    // Only the text's role states the ground; the others show it through.
    canvas.fill(canvas.buffer.area, Role::Text);
    header::draw(&mut canvas, &layout, model);
    for (pane, area) in &layout.panes {
        match pane {
            Pane::Cells => cells::draw(&mut canvas, *area, model),
            Pane::Prompt | Pane::FunctionCall | Pane::FetchedContent | Pane::Verdict => {
                trace::draw(&mut canvas, *pane, *area, model);
            }
            Pane::Transcript => transcript::draw(&mut canvas, *area, model),
            Pane::Changes => changes::draw(&mut canvas, *area, model),
        }
    }
    trace::draw_strip(&mut canvas, layout.turn_strip, model);
    problems::draw(&mut canvas, layout.problems, model);
    replay::draw(&mut canvas, layout.replay, model);
    footer::draw(&mut canvas, &layout, model);
    overlay::draw(&mut canvas, model);
    canvas.sanitize();
    canvas.hits
}
