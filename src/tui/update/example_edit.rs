//! `E`: keeps the judged message as an example of its eval.

use std::sync::Arc;

use super::notices::push_info;
use crate::handlers::JudgedPart;
use crate::tui::effect::Effect;
use crate::tui::history_view::RubricEditOrder;
use crate::tui::state::App;
use crate::tui::state::cells::LabelValue;

/// `E`: writes the judged message as an example of the eval, with its label as `expect`.
pub(super) fn save_as_example(app: &mut App) -> Vec<Effect> {
    let Some(workspace) = app.workspace().map(Arc::clone) else {
        return Vec::new();
    };
    let session = &app.live_session;
    let row = session
        .trace_panes
        .row
        .and_then(|row| session.cells.row(row));
    let eval = row.and_then(|row| session.cells.evals.get(row.eval as usize));
    let (Some(row), Some(eval), Some(doc)) = (row, eval, session.transcript_pane.loaded_document())
    else {
        return push_info(app, "the transcript is not here yet: press E again");
    };
    let Some(expects_pass) = row.label.and_then(LabelValue::passed) else {
        return push_info(
            app,
            "label it first: p (pass) or f (fail) is what the example expects",
        );
    };
    let pieces = doc.judged_pieces(JudgedPart::Output, row.message).iter();
    let pieces = pieces.filter_map(|piece| doc.pieces.get(*piece as usize));
    let texts: Vec<&str> = pieces.map(|piece| doc.text_of(piece)).collect();
    let text = texts.join("\n");
    if text.trim().is_empty() {
        return push_info(
            app,
            "this transcript has no message of the assistant to save",
        );
    }
    let rubric = workspace
        .rubrics
        .iter()
        .find(|rubric| rubric.id == eval.rubric);
    let Some(rubric) = rubric else {
        return push_info(app, "its rubric is not in this workspace");
    };
    let order = RubricEditOrder::AddExample {
        path: rubric.path.clone(),
        eval: eval.id.clone(),
        text,
        expects_pass,
    };
    vec![Effect::EditRubrics { workspace, order }]
}
