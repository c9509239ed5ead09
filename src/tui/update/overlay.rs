//! Opens overlays, and fills in results that arrive later.

use std::sync::Arc;

use super::notices::push_info;
use super::runs;
use crate::run::CachePolicy;
use crate::theme;
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::cells::RowId;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::{AvailableJudge, Overlay};
use crate::tui::task_failure::TaskFailure;
use crate::tui::widget::flow::ScrollState;
use crate::tui::widget::line_input::LineInput;

/// Opens the list of all keys, with a search line.
pub(super) fn open_help(app: &mut App) -> Vec<Effect> {
    let search = LineInput::default();
    app.overlays.push(Overlay::Help {
        search,
        selected: 0,
    });
    Vec::new()
}

/// Opens the log of notices, scrolled to its end.
pub(super) fn open_log(app: &mut App) -> Vec<Effect> {
    let scroll = ScrollState::tail();
    app.overlays.push(Overlay::Log { scroll });
    Vec::new()
}

/// Opens the statistics of the run's judges and tools.
pub(super) fn open_statistics(app: &mut App) -> Vec<Effect> {
    let scroll = ScrollState::top();
    app.overlays.push(Overlay::Statistics { scroll });
    Vec::new()
}

/// Opens the list of bundled themes.
pub(super) fn open_themes(app: &mut App) -> Vec<Effect> {
    // The old theme is kept, so that esc restores it.
    let before = Arc::clone(&app.ui.theme);
    let selected = theme::bundled_names()
        .iter()
        .position(|name| *name == before.name);
    let selected = selected.unwrap_or(0);
    app.overlays.push(Overlay::Themes {
        selected,
        previous: before,
    });
    Vec::new()
}

/// Opens the list of judges that the user can ask about the focused cell. They see the same recorded tool responses.
pub(super) fn open_judges(app: &mut App) -> Vec<Effect> {
    let cells = &app.live_session.cells;
    let Some(row) = cells.selected_row() else {
        return push_info(app, "select a cell first (j, k)");
    };
    let Some(name) = cells.decision_name(row) else {
        return Vec::new();
    };
    // A cached verdict has its tool responses in the run that it came from.
    let slot = cells.row(row).and_then(|row| row.slots.first());
    let run = slot.and_then(|slot| {
        let slot_run = slot.run_cell.and_then(|at| cells.runs.get(at.run as usize));
        slot.cached_from.clone().or_else(|| slot_run.cloned())
    });
    let only = Some(vec![name.to_string()]);
    let Some(mut order) = runs::build_workspace_order(app, only, None, CachePolicy::Refresh, None)
    else {
        return Vec::new();
    };
    // A run that the workspace names takes precedence.
    if order.workspace.replayed_evidence_run.is_none() {
        order.replayed_evidence = run.map(|run| run.0.clone());
    }
    app.overlays.push(Overlay::Judges {
        row,
        order: order.clone(),
        judges: None,
        selected: 0,
    });
    vec![Effect::FindJudges { row, order }]
}

/// Returns the name of the judge that decides a row.
fn find_own_judge(app: &App, row: RowId) -> Option<String> {
    let cells = &app.session().cells;
    let judge = cells.row(row)?.slots.first()?.judge?;
    let judge = cells.judges.get(judge as usize)?;
    Some(judge.name.clone())
}

/// Adds the available judges to the overlay that waits for them.
pub(super) fn handle_judges_found(
    app: &mut App,
    row: RowId,
    judges: Result<Vec<AvailableJudge>, TaskFailure>,
) -> Vec<Effect> {
    let judges = match judges {
        Ok(judges) => judges,
        Err(why) => {
            // An empty list would state that there are no judges, so the overlay closes.
            app.overlays.retain(|overlay| {
                !matches!(overlay, Overlay::Judges { row: searched, judges: None, .. } if *searched == row)
            });
            let why = format!("dicta could not search for judges: {why}");
            app.notices.push(app.now, NoticeLevel::Error, why);
            return Vec::new();
        }
    };
    // A second opinion of the eval's own judge is less wanted than that of another one.
    let own = find_own_judge(app, row);
    let other = judges.iter().position(|found| {
        let config = found.judge.as_ref();
        config.is_some_and(|config| Some(&config.name) != own.as_ref())
    });
    for overlay in &mut app.overlays {
        // The user may have closed the overlay and opened it for another cell.
        if let Overlay::Judges {
            row: overlay_row,
            judges: found,
            selected,
            ..
        } = overlay
            && *overlay_row == row
            && found.is_none()
        {
            *selected = other.unwrap_or(0);
            *found = Some(judges);
            break;
        }
    }
    Vec::new()
}
