//! The text of the panes while blind labelling hides a verdict: only the question, so that the person decides without
//! influence.

use super::verdict::draft_note;
use super::{ContentCx, empty_row, eval_definition, styled_line};
use crate::model::make_visible;
use crate::theme::Role;
use crate::tui::state::pane::Pane;
use crate::tui::widget::flow::TextBlock;

/// The short form, for the strip and other narrow places.
pub(crate) const HIDDEN: &str = "hidden until you label it";

/// Returns the question of a judged eval as plain text. Its definition in the rubric begins with keys, which would take the
/// rows of a low pane.
fn question_blocks<'a>(cx: &ContentCx<'a>, eval: u32) -> Vec<TextBlock<'a>> {
    let texts = cx.app.question_texts(eval);
    let mut out = Vec::new();
    for (name, text) in texts {
        if name != "criteria" {
            out.push(TextBlock::new(name.replace('_', " "), Role::Label));
        }
        let text = make_visible(&text, true).into_owned();
        out.extend(
            text.lines()
                .map(|line| TextBlock::new(line.to_owned(), Role::Text)),
        );
    }
    if !out.is_empty() {
        out.push(empty_row());
    }
    out
}

/// Returns the text of one of the four panes.
pub(super) fn build_source<'a>(cx: &mut ContentCx<'a>, pane: Pane) -> Vec<TextBlock<'a>> {
    let mut out = vec![styled_line([
        (format!("{HIDDEN}: ").as_str(), Role::Muted),
        ("p", Role::Key),
        (" pass, ", Role::Muted),
        ("f", Role::Key),
        (" fail, ", Role::Muted),
        ("u", Role::Key),
        (" unsure, ", Role::Muted),
        ("i", Role::Key),
        (" note", Role::Muted),
    ])];
    let session = cx.app.session();
    let row = session
        .trace_panes
        .row
        .and_then(|row| session.cells.row(row));
    // The question and its definition stay visible, because they do not influence the person.
    if let (Pane::Verdict, Some(row)) = (pane, row) {
        out.extend(draft_note(cx));
        out.extend(question_blocks(cx, row.eval));
        // The first row of the definition is empty, and a low pane needs its rows.
        out.extend(
            eval_definition::eval_definition(cx, row.eval)
                .into_iter()
                .skip(1),
        );
        out.push(empty_row());
        out.push(styled_line([
            ("1", Role::Key),
            (" the cells, ", Role::Muted),
            ("s", Role::Key),
            (" the next one, ", Role::Muted),
            ("Q", Role::Key),
            (" the queues, ", Role::Muted),
            ("B", Role::Key),
            (" shows all verdicts", Role::Muted),
        ]));
    }
    out
}
