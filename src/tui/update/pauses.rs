//! Breakpoints, and decisions about paused judge traces: step, continue, skip the call. `step_edits` edits them.

use super::notices::push_info;
use crate::event::GatePoint;
use crate::judge::{Breakpoint, PauseDecision, PausedAt};
use crate::model::{CellIx, CellName};
use crate::tui::command::UiCommand;
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::pauses::PauseRef;
use crate::tui::state::phase_text::describe_gate;
use crate::tui::state::runs::{RunTicket, TracePause};
use crate::tui::widget::line_input::LineInput;

/// Stores the thing at which a trace is paused.
pub(super) fn handle_paused(
    app: &mut App,
    ticket: RunTicket,
    cell: CellIx,
    name: Option<CellName>,
    point: GatePoint,
    at: PausedAt,
) -> Vec<Effect> {
    let session = &mut app.live_session;
    let Some(run) = session.runs.by_ticket.get_mut(&ticket) else {
        return Vec::new();
    };
    let is_step = run.stepping.contains(&cell);
    let pause = TracePause {
        point,
        at,
        draft: None,
    };
    run.pauses.insert(cell, pause);
    let slot = run.cell_slots.get(cell.index()).copied().flatten();
    let panes = &session.trace_panes;
    let is_shown = slot.is_some_and(|at| panes.row == Some(at.row) && panes.slot == at.slot);
    // The user watches the trace that pauses.
    if is_step || (is_shown && app.ui.trace_open) {
        return Vec::new();
    }
    // The pause may arrive before the plan of its run, and only the plan puts a cell in the list.
    let decision = name.map(|name| name.decision_name());
    let name = decision.map_or_else(String::new, |name| format!(" {}", name.to_plain_text()));
    // The keys that continue a trace work on its screen.
    let way = if is_shown {
        "enter opens the trace, where s and space continue it"
    } else {
        "] goes to paused traces"
    };
    let text = format!("paused{name} {}; {way}", describe_gate(point));
    push_info(app, text)
}

/// `!`: lists the breakpoints.
pub(super) fn open_breakpoints(app: &mut App) -> Vec<Effect> {
    app.overlays.push(Overlay::Breakpoints {
        input: LineInput::default(),
        selected: 0,
    });
    Vec::new()
}

/// `enter` in the list: sets or removes the typed breakpoint, or the selected one. The error is a sentence.
pub(super) fn toggle_breakpoint(
    app: &mut App,
    typed: &str,
    selected: usize,
) -> Result<Vec<Effect>, String> {
    let breakpoint: Breakpoint = match typed.trim() {
        "" => match app.list_breakpoints().into_iter().nth(selected) {
            Some(offer) => offer.breakpoint,
            None => return Ok(Vec::new()),
        },
        typed => typed
            .parse()
            .map_err(|error: crate::judge::BreakpointError| error.to_string())?,
    };
    let known = app.breakpoints.iter().position(|one| *one == breakpoint);
    if let Some(at) = known {
        app.breakpoints.remove(at);
        push_info(app, format!("removed the breakpoint {breakpoint}"));
    } else {
        let text = format!("set {breakpoint}: traces pause there from now on");
        push_info(app, text);
        app.breakpoints.push(breakpoint);
    }
    Ok(vec![Effect::SetBreakpoints(app.breakpoints.clone())])
}

/// `tab` in the list: returns the typed or selected breakpoint, limited to the focused decision.
pub(super) fn limit_to_focused_cell(app: &App, typed: &str, selected: usize) -> Option<String> {
    let session = app.session();
    let name = session.cells.decision_name(session.cells.selected_row()?)?;
    let point = match typed.trim() {
        "" => app.list_breakpoints().into_iter().nth(selected)?.breakpoint,
        typed => typed.parse().ok()?,
    };
    let stop = match point {
        // A second press replaces the cells.
        Breakpoint::In { stop, .. } => stop,
        stop => Box::new(stop),
    };
    let cells = name.to_string();
    Some(Breakpoint::In { stop, cells }.to_string())
}

/// Runs a command about the shown paused trace.
pub(super) fn run_command(app: &mut App, command: UiCommand) -> Vec<Effect> {
    match command {
        UiCommand::PauseStep => decide(app, PauseDecision::Step),
        UiCommand::PauseContinue => decide(app, PauseDecision::Continue),
        UiCommand::PauseContinueAll => continue_all(app),
        UiCommand::PauseSkip => decide(app, PauseDecision::SkipCall),
        _ => Vec::new(),
    }
}

fn decide(app: &mut App, decision: PauseDecision) -> Vec<Effect> {
    let waiting = app.shown_pause().filter(|at| app.find_pause(*at).is_some());
    match waiting {
        Some(at) => release(app, at, decision),
        None => push_info(app, "the trace goes on to its next stop"),
    }
}

/// Releases a trace.
pub(super) fn release(app: &mut App, at: PauseRef, decision: PauseDecision) -> Vec<Effect> {
    let Some(run) = app.live_session.runs.by_ticket.get_mut(&at.ticket) else {
        return Vec::new();
    };
    run.pauses.remove(&at.cell);
    if decision == PauseDecision::Step {
        run.stepping.insert(at.cell);
    } else {
        run.stepping.remove(&at.cell);
    }
    vec![Effect::DecidePause {
        ticket: at.ticket,
        cell: at.cell,
        decision,
    }]
}

/// Continues every paused trace. Their runs pause no more until the breakpoints change.
fn continue_all(app: &mut App) -> Vec<Effect> {
    let runs = app.live_session.runs.by_ticket.iter();
    let all: Vec<PauseRef> = runs
        .flat_map(|(ticket, run)| {
            let ticket = *ticket;
            let cells = run.pauses.keys();
            cells.map(move |cell| PauseRef {
                ticket,
                cell: *cell,
            })
        })
        .collect();
    let text = format!(
        "{} continued; the run pauses no more until the breakpoints change",
        crate::model::pluralize(all.len() as u64, "trace")
    );
    let mut effects = Vec::new();
    for at in all {
        effects.extend(release(app, at, PauseDecision::ContinueAll));
    }
    push_info(app, text);
    effects
}
