//! The panes that have something to show for the selected entry, and their titles.
//!
//! A code check has no judge trace, and an eval's row has no cell. The layout gives empty panes no room.

use super::App;
use super::cells::{CellsEntry, RowSlotState};
use super::document::DocumentState;
use super::judge_trace::find_streaming_call;
use super::pane::{FilledPanes, Pane};
use super::shown_cell::{ShownCell, TraceAvailability, hides_verdict, resolve_shown_cell};
use crate::event::CellPhase;
use crate::handlers::judged_part;
use crate::model::{ProviderKind, SUBMIT_VERDICT};

/// The kind of the selected entry, which decides about the panes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownKind {
    /// Nothing, or a file without a rubric.
    Nothing,
    /// The row of an eval.
    Eval,
    /// A cell that code decides.
    Check,
    /// A cell that a judge decides.
    Judged,
}

/// Returns the kind of the selected entry.
pub(crate) fn shown_kind(app: &App) -> ShownKind {
    let session = app.session();
    let cells = &session.cells;
    let eval = |at: u32| {
        let eval = cells.evals.get(at as usize);
        // The rows of a file without a rubric have no eval type.
        eval.filter(|eval| !eval.eval_type.is_empty())
    };
    if let Some(row) = session.trace_panes.row.and_then(|row| cells.row(row)) {
        return match eval(row.eval) {
            Some(eval) if eval.judged => ShownKind::Judged,
            Some(_) => ShownKind::Check,
            None => ShownKind::Nothing,
        };
    }
    match cells.list.selected {
        Some(CellsEntry::Group(at)) if eval(at).is_some() => ShownKind::Eval,
        _ => ShownKind::Nothing,
    }
}

/// Returns the panes that have something to show.
pub(crate) fn find_filled_panes(app: &App) -> FilledPanes {
    FilledPanes {
        trace_screen: app.shows_trace_screen(),
        ..find_home_panes(app)
    }
}

fn find_home_panes(app: &App) -> FilledPanes {
    if app.shows_unjudged_file() {
        return FilledPanes::TRANSCRIPT;
    }
    let Some(shown) = resolve_shown_cell(app) else {
        return FilledPanes {
            verdict: shown_kind(app) == ShownKind::Eval,
            ..FilledPanes::default()
        };
    };
    let cell_only = FilledPanes {
        verdict: true,
        transcript: true,
        turn_strip: true,
        ..FilledPanes::default()
    };
    // A hidden verdict hides its trace too: only the question and the transcript are left.
    if hides_verdict(app) {
        return cell_only;
    }
    match shown_kind(app) {
        ShownKind::Check => FilledPanes {
            prompt: has_judged_text(app, &shown),
            ..cell_only
        },
        ShownKind::Judged => add_trace_panes(app, &shown, cell_only),
        ShownKind::Nothing | ShownKind::Eval => cell_only,
    }
}

/// Returns true if the text that a check judged is known, or being read.
fn has_judged_text(app: &App, shown: &ShownCell<'_>) -> bool {
    let session = app.session();
    let Some(eval) = session.cells.evals.get(shown.row.eval as usize) else {
        return false;
    };
    match &session.transcript_pane.document {
        DocumentState::Loaded(doc) => {
            let part = judged_part(&eval.eval_type);
            !doc.judged_pieces(part, shown.row.message).is_empty()
        }
        // The pane keeps its place until the transcript is here.
        DocumentState::Loading => true,
        DocumentState::Unloaded | DocumentState::Failed(_) => false,
    }
}

/// Adds the panes of a judge trace that have content in some turn, so that stepping does not move the panes.
fn add_trace_panes(app: &App, shown: &ShownCell<'_>, mut filled: FilledPanes) -> FilledPanes {
    // A source judge returns imported verdicts and has no trace.
    let is_source = |judge: &crate::event::JudgeSpec| judge.config.provider == ProviderKind::Source;
    if shown.judge_spec().is_some_and(is_source) {
        return filled;
    }
    match shown.availability {
        TraceAvailability::NeverRun | TraceAvailability::Failed(_) => return filled,
        // The trace is being read; the row knows which panes it will fill.
        TraceAvailability::Loading => {
            let is_judged = matches!(shown.slot.state, RowSlotState::Done { .. });
            filled.prompt = is_judged || shown.slot.is_interrupted();
            filled.function_call = shown.slot.used_tools;
            filled.fetched_content = shown.slot.used_tools;
            return filled;
        }
        TraceAvailability::Available => {}
    }
    let turns = shown.turns();
    let mut calls = turns.iter().flat_map(|turn| &turn.calls);
    let streams = find_streaming_call(&app.session().trace_panes, turns).is_some();
    // A working judge with tools will call one: its panes must not appear and disappear.
    let is_started = shown
        .trace
        .is_some_and(|cell| cell.phase != CellPhase::Planned);
    let may_call = shown.is_live() && is_started && !shown.is_toolless();
    filled.prompt = !turns.is_empty() || may_call;
    filled.fetched_content = may_call || calls.clone().any(|call| call.name != SUBMIT_VERDICT);
    filled.function_call = may_call || streams || calls.next().is_some();
    filled
}

impl App {
    /// Returns the title of a pane, which depends on the selected entry.
    pub(crate) fn pane_title(&self, pane: Pane) -> &'static str {
        match (pane, shown_kind(self)) {
            (Pane::Verdict, _) if hides_verdict(self) => "criteria",
            (Pane::Prompt, ShownKind::Check) => "judged text",
            (Pane::Verdict, ShownKind::Check) => "finding",
            (Pane::Verdict, ShownKind::Eval) => "eval",
            _ => pane.title(),
        }
    }

    /// Returns the title of a pane for narrow places.
    pub(crate) fn short_pane_title(&self, pane: Pane) -> &'static str {
        match (pane, shown_kind(self)) {
            (Pane::Prompt, ShownKind::Check) => "text",
            (Pane::Verdict, ShownKind::Check | ShownKind::Eval) => self.pane_title(pane),
            _ => pane.short_title(),
        }
    }

    /// Returns the reason why a pane has nothing to show, or Ok if it has.
    pub(crate) fn check_filled(&self, pane: Pane) -> Result<(), &'static str> {
        if find_filled_panes(self).contains(pane) {
            return Ok(());
        }
        Err(match shown_kind(self) {
            _ if hides_verdict(self) => {
                "hidden until you label it: p (pass), f (fail) or u (unsure)"
            }
            ShownKind::Nothing if self.shows_unjudged_file() => {
                "no rubric for this file yet: W creates a workspace around it"
            }
            ShownKind::Nothing => "no cell selected: j and k move in the cells",
            ShownKind::Eval => "an eval has a summary only: j and k go to its cells",
            ShownKind::Check => "a code check calls no judge: 2 shows its text, 5 its finding",
            ShownKind::Judged if pane == Pane::Prompt => {
                "no judge was called for this cell yet: r calls it"
            }
            ShownKind::Judged => "the judge called no tool for this cell",
        })
    }
}
