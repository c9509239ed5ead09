//! `x` on the progress screen: exports the selected state to a file.

use std::path::PathBuf;
use std::sync::Arc;

use super::notices::push_info;
use crate::model::make_visible;
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::progress::ProgressItem;
use crate::tui::task_failure::TaskFailure;
use crate::tui::widget::line_input::LineInput;

/// The endings of the files that a state can be exported to.
const FILE_ENDINGS: [&str; 3] = ["html", "htm", "csv"];

/// `x`: asks for the file of an export.
pub(super) fn ask_file(app: &mut App) -> Vec<Effect> {
    if let Some(entry) = app.progress.list.selected.map(ProgressItem::entry) {
        let input = LineInput::new(format!("state-{entry}.html"));
        app.overlays.push(Overlay::ExportFile { entry, input });
    }
    Vec::new()
}

/// Exports a state to the typed file.
pub(super) fn export_state(app: &mut App, entry: usize, typed: &str) -> Vec<Effect> {
    let output = PathBuf::from(typed.trim());
    let ending = output.extension().and_then(|ending| ending.to_str());
    if !ending.is_some_and(|ending| FILE_ENDINGS.contains(&ending)) {
        return push_info(
            app,
            "type the file: a page ends with .html, a table with .csv",
        );
    }
    let workspace = app.workspace().map(Arc::clone);
    let order = workspace.map(|workspace| Effect::ExportState {
        workspace,
        entry,
        output,
    });
    order.into_iter().collect()
}

pub(super) fn handle_exported(app: &mut App, written: Result<String, TaskFailure>) -> Vec<Effect> {
    match written {
        Ok(what) => {
            let asks = |overlay: &Overlay| matches!(overlay, Overlay::ExportFile { .. });
            app.overlays.retain(|overlay| !asks(overlay));
            push_info(app, make_visible(&what, false).into_owned())
        }
        Err(why) => {
            let why = make_visible(why.as_str(), false);
            let why = format!("nothing was exported: {why}");
            app.notices.push(app.now, NoticeLevel::Error, why);
            Vec::new()
        }
    }
}
