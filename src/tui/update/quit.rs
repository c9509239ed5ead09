//! Commands and signals that end the program. A key first confirms or cancels an active run.

use super::notices::push_info;
use super::{panes, replay, runs};
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::runs::{RunStage, TrackedRun};

/// `q`: leaves the zoom or the replay first, then quits. Asks if a run is active.
pub(super) fn quit(app: &mut App) -> Vec<Effect> {
    // `q` goes one step back first, so that it never ends the program by surprise.
    if app.ui.zoomed {
        return panes::toggle_zoom(app);
    }
    if app
        .replay
        .as_ref()
        .is_some_and(|replay| !replay.quits_on_leave)
    {
        return replay::leave_replay(app);
    }
    // A run may cost money, so its end needs an answer. The run on opening is free, and no one ordered it.
    let is_ordered = |run: &TrackedRun| !run.started_on_open;
    let is_live = app.live_session.runs.live().any(|(_, run)| is_ordered(run));
    if is_live || app.judged_variants > 0 {
        app.overlays.push(Overlay::QuitWhileRunning);
        return Vec::new();
    }
    if app.label_edits.has_unwritten() && !app.label_edits.quit_when_written {
        // A write takes a moment. A second `q` quits without waiting for it.
        app.label_edits.quit_when_written = true;
        return push_info(app, "a label is being written, then dicta ends");
    }
    quit_with_code(app, 0)
}

/// Quits with an exit code.
pub(super) fn quit_with_code(app: &mut App, code: u8) -> Vec<Effect> {
    app.exit_code = Some(code);
    vec![Effect::Quit]
}

/// `ctrl-c`: cancels runs. Quits if no run is active, or if all of them are already being cancelled.
pub(super) fn cancel_or_quit(app: &mut App) -> Vec<Effect> {
    // Judging that waits is cancelled too.
    let waits = app.saves.pending_judging.take().is_some();
    let runs = app
        .live_session
        .runs
        .live()
        .any(|(_, run)| run.stage != RunStage::Cancelling);
    if runs {
        return runs::cancel_all(app);
    }
    if std::mem::take(&mut app.judged_variants) > 0 {
        push_info(
            app,
            "cancelling the run of the variant; what is judged stays",
        );
        return vec![Effect::CancelVariants];
    }
    if waits {
        return push_info(app, "cancelled: what the save touched is not judged again");
    }
    quit_with_code(app, 0)
}

/// Quits because of a signal.
pub(super) fn handle_signal(app: &mut App, number: i32) -> Vec<Effect> {
    // Shells report a process that a signal ended with 128 plus the signal's number.
    let code = u8::try_from(number.saturating_add(128)).unwrap_or(1);
    quit_with_code(app, code)
}
