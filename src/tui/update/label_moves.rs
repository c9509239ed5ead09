//! The labels of evals with another name: `M` moves them, and `U` undoes the move.
//!
//! Responsible for the offer and for the order of moves. The runtime writes the files.

use std::fmt::Write as _;
use std::sync::Arc;

use super::label_queues::request_draws;
use super::notices::push_written;
use crate::model::{make_visible, pluralize};
use crate::tui::effect::Effect;
use crate::tui::label_write::MovedLabels;
use crate::tui::state::App;
use crate::tui::state::edit_report::EvalRename;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::task_failure::TaskFailure;

/// Offers to move labels: `M moves 15 labels of grounded`. `None` if there are none.
pub(super) fn offer_labels(app: &App) -> Option<String> {
    let movable = app.movable_labels();
    let many: u64 = movable.iter().map(|(_, many)| many).sum();
    let names: Vec<&str> = movable
        .iter()
        .map(|(rename, _)| &*rename.from.eval)
        .collect();
    let names = make_visible(&names.join(", "), false).into_owned();
    (many > 0).then(|| format!("M moves {} of {names}", pluralize(many, "label")))
}

/// `M`: moves the labels of renamed evals to their new names.
pub(super) fn move_labels(app: &mut App) -> Vec<Effect> {
    let Some(workspace) = app.workspace().map(Arc::clone) else {
        return Vec::new();
    };
    let renames: Vec<EvalRename> = app
        .movable_labels()
        .into_iter()
        .map(|(rename, _)| rename)
        .collect();
    vec![Effect::RenameLabels { workspace, renames }]
}

/// Reports the labels that moved. The watcher then reads the file again.
pub(super) fn handle_labels_renamed(
    app: &mut App,
    moved: Result<MovedLabels, TaskFailure>,
) -> Vec<Effect> {
    match moved {
        Ok(moved) => {
            let many = moved.count();
            let go = if many == 1 { "has" } else { "have" };
            let text = format!(
                "{} {go} the new name (U takes it back)",
                pluralize(many, "label")
            );
            if many > 0 {
                app.label_edits.add_move(moved);
            }
            app.notices.push_written(app.now, NoticeLevel::Info, text);
            // The watcher may miss a change of the file.
            let mut effects = vec![Effect::RescanFiles];
            effects.extend(read_draws_again(app));
            effects
        }
        Err(why) => {
            let text = format!("the labels keep the old name: {}", why.as_str());
            app.notices.push(app.now, NoticeLevel::Error, text);
            Vec::new()
        }
    }
}

/// Reads the draws again, because they move with their labels.
fn read_draws_again(app: &mut App) -> Vec<Effect> {
    app.labelling.draws.requested = None;
    request_draws(app)
}

/// `U`: gives the labels that `M` moved their old names again, if no label was set since. `None` otherwise.
pub(super) fn undo_move(app: &mut App) -> Option<Vec<Effect>> {
    let moved = app.label_edits.take_newest_move()?;
    Some(vec![Effect::UndoLabelMove(moved)])
}

/// Reports the labels that have their old names again.
pub(super) fn handle_move_undone(
    app: &mut App,
    moved: MovedLabels,
    restored: Result<u64, TaskFailure>,
) -> Vec<Effect> {
    match restored {
        Ok(many) => {
            let go = if many == 1 { "has" } else { "have" };
            let mut text = format!("{} {go} the old name again", pluralize(many, "label"));
            // Another program or a later label replaced these lines.
            match moved.count().saturating_sub(many) {
                0 => {}
                1 => text.push_str("; 1 was changed since, and keeps the new name"),
                kept => {
                    let end = "were changed since, and keep the new name";
                    let _infallible = write!(text, "; {kept} {end}");
                }
            }
            let mut effects = push_written(app, text);
            effects.push(Effect::RescanFiles);
            effects.extend(read_draws_again(app));
            effects
        }
        Err(why) => {
            app.label_edits.add_move(moved);
            let text = format!("the labels keep the new name: {}", why.as_str());
            app.notices.push(app.now, NoticeLevel::Error, text);
            Vec::new()
        }
    }
}
